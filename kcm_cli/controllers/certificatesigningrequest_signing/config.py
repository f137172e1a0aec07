"""Options of the certificatesigningrequest-signing-controller."""

from collections.abc import Iterator

from kcm_cli.component.options import OptionGroup, duration, option
from kcm_cli.component.value_types import STRING


def _file(kind: str, flag: str, key: str, text: str) -> str:
    name, key = f"cluster-signing-{flag}-{kind}-file", f"{key}SignerConfiguration.{kind.capitalize()}File"
    rest = "flag of that signer, and excludes --cluster-signing-{cert,key}-file."
    return option(STRING, "", flag=name, key=key, help=f"{text} {rest}")


def _cert_file(flag: str, key: str, signer: str) -> str:
    """The CA certificate of one signer."""
    return _file("cert", flag, key, f"PEM CA certificate for the signer kubernetes.io/{signer}. Needs the key")


def _key_file(flag: str, key: str, signer: str) -> str:
    """The private key of one signer."""
    text = f"PEM private key of the CA for the signer kubernetes.io/{signer}. Needs the certificate"
    return _file("key", flag, key, text)


class CSRSigningConfig(OptionGroup):
    cert_file: str = option(
        STRING,
        "",
        flag="cluster-signing-cert-file",
        key="ClusterSigningCertFile",
        help=("PEM CA certificate for all signers. Excludes the flags of single signers."),
    )
    key_file: str = option(
        STRING,
        "",
        flag="cluster-signing-key-file",
        key="ClusterSigningKeyFile",
        help="PEM private key of the CA for all signers. Excludes the flags of single signers.",
    )
    kubelet_serving_cert_file: str = _cert_file("kubelet-serving", "KubeletServing", "kubelet-serving")
    kubelet_serving_key_file: str = _key_file("kubelet-serving", "KubeletServing", "kubelet-serving")
    kubelet_client_cert_file: str = _cert_file("kubelet-client", "KubeletClient", "kube-apiserver-client-kubelet")
    kubelet_client_key_file: str = _key_file("kubelet-client", "KubeletClient", "kube-apiserver-client-kubelet")
    kube_apiserver_client_cert_file: str = _cert_file(
        "kube-apiserver-client", "KubeAPIServerClient", "kube-apiserver-client"
    )
    kube_apiserver_client_key_file: str = _key_file(
        "kube-apiserver-client", "KubeAPIServerClient", "kube-apiserver-client"
    )
    legacy_unknown_cert_file: str = _cert_file("legacy-unknown", "LegacyUnknown", "legacy-unknown")
    legacy_unknown_key_file: str = _key_file("legacy-unknown", "LegacyUnknown", "legacy-unknown")
    duration_s: float = duration(
        8760 * 3600.0,
        flag="cluster-signing-duration",
        key="ClusterSigningDuration",
        help=("Longest validity of a certificate. A request may set a shorter one in spec.expirationSeconds."),
    )

    def problems(self) -> Iterator[str]:
        signers = self._signers()
        for name, cert, key in signers:
            if cert and not key:
                yield f'"{name}": cannot specify cert without key'
            if key and not cert:
                yield f'"{name}": cannot specify key without cert'
        if (self.cert_file or self.key_file) and any(cert or key for _, cert, key in signers):
            yield (
                "cannot specify --cluster-signing-{cert,key}-file and other --cluster-signing-*-file flags "
                "at the same time"
            )

    def _signers(self) -> tuple[tuple[str, str, str], ...]:
        return (
            ("cluster-signing-kubelet-serving", self.kubelet_serving_cert_file, self.kubelet_serving_key_file),
            ("cluster-signing-kubelet-client", self.kubelet_client_cert_file, self.kubelet_client_key_file),
            (
                "cluster-signing-kube-apiserver-client",
                self.kube_apiserver_client_cert_file,
                self.kube_apiserver_client_key_file,
            ),
            ("cluster-signing-legacy-unknown", self.legacy_unknown_cert_file, self.legacy_unknown_key_file),
        )
