"""Settings of an API server: those of kube-apiserver's flags that the sandbox supports.

upstream: pkg/kubeapiserver/options, staging/src/k8s.io/apiserver/pkg/server/options
"""

from collections.abc import Mapping

import msgspec

from kcm_cli.component.user_headers import ProxyHeaders
from kcm_cli.component.version import GIT_VERSION
from kcm_cli.sandbox.apiserver.types import User
from kcm_cli.sandbox.networks import SERVICE_RANGE

ISSUER = "https://kubernetes.default.svc"
_PLUGINS_WORDS = """
NamespaceLifecycle LimitRanger ServiceAccount TaintNodesByCondition Priority DefaultTolerationSeconds
DefaultStorageClass StorageObjectInUseProtection RuntimeClass DefaultIngressClass PodTopologyLabels PodSecurity
PersistentVolumeClaimResize CertificateApproval CertificateSigning CertificateSubjectRestriction PodResizeValidator
ResourceQuota MutatingAdmissionPolicy MutatingAdmissionWebhook ValidatingAdmissionPolicy ValidatingAdmissionWebhook
"""
PLUGINS = frozenset(_PLUGINS_WORDS.split())
"""Admission plugins that can be disabled, by upstream's names."""


class Proxies(msgspec.Struct, frozen=True):
    """Authenticating proxies. cas: PEM of the CAs of their certificates. headers: those in which they name users."""

    cas: bytes
    headers: ProxyHeaders


class Settings(msgspec.Struct, frozen=True):
    """The defaults are those of ``kcm sandbox``.

    tokens: static bearer tokens. client_cas: PEM of CAs for client certificates, in addition to the cluster's CA.
    proxies: whose headers are trusted. anonymous: whether requests without credentials are those of system:anonymous.
    authorization: modes (RBAC, AlwaysAllow, AlwaysDeny), of which one has to allow a request. issuers: of service
    account tokens; the first one issues new tokens. audiences: of such tokens, by default the issuers. token_keys: PEM
    of private keys, public keys or certificates that verify tokens, by default the signing key. disabled_plugins:
    admission plugins by upstream's names. disabled_policies: admission policies by their resource and name.
    service_ranges: CIDRs of Services, one for each family, the cluster's default family first. ratchets: see
    ``registry.core.Core``. version: the gitVersion of /version.
    deletion_gap_s: see ``registry.deleting.Deleter``; 0 on virtual time.
    """

    tokens: Mapping[str, User] = msgspec.field(default_factory=dict)
    client_cas: bytes = b""
    proxies: Proxies | None = None
    anonymous: bool = True
    authorization: tuple[str, ...] = ("RBAC",)
    issuers: tuple[str, ...] = (ISSUER,)
    audiences: tuple[str, ...] = ()
    token_keys: tuple[bytes, ...] = ()
    disabled_plugins: frozenset[str] = frozenset()
    disabled_policies: frozenset[tuple[str, str]] = frozenset()
    service_ranges: tuple[str, ...] = (SERVICE_RANGE,)
    ratchets: bool = False
    version: str = GIT_VERSION
    deletion_gap_s: float = 0.0

    def flags(self) -> Mapping[str, str]:
        """The values as kube-apiserver shows them on /flagz, by flag."""
        lists = {
            "api-audiences": self.audiences,
            "authorization-mode": self.authorization,
            "disable-admission-plugins": sorted(self.disabled_plugins),
            "service-account-issuer": self.issuers,
        }
        return {
            "anonymous-auth": str(self.anonymous).lower(),
            "service-cluster-ip-range": ",".join(self.service_ranges),
            **{name: f"[{','.join(values)}]" for name, values in lists.items()},
        }


DEFAULTS = Settings()
DELETION_GAP_S = 0.005
"""For servers in real time."""
