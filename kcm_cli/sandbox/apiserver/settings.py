"""How an API server is told to differ from the default: what kube-apiserver's flags say and the sandbox can do.

upstream: pkg/kubeapiserver/options, staging/src/k8s.io/apiserver/pkg/server/options
"""

from collections.abc import Mapping

import msgspec

from kcm_cli.sandbox.apiserver.types import User

ISSUER = "https://kubernetes.default.svc"
SERVICE_RANGE = "10.0.0.0/16"
_PLUGINS_WORDS = """
NamespaceLifecycle LimitRanger ServiceAccount TaintNodesByCondition Priority DefaultTolerationSeconds
DefaultStorageClass StorageObjectInUseProtection RuntimeClass DefaultIngressClass PodTopologyLabels PodSecurity
PersistentVolumeClaimResize CertificateApproval CertificateSigning CertificateSubjectRestriction PodResizeValidator
ResourceQuota
"""
PLUGINS = frozenset(_PLUGINS_WORDS.split())
"""Admission plugins that can be turned off, by upstream's names."""


class Settings(msgspec.Struct, frozen=True):
    """All defaults are those of ``kcm sandbox``.

    tokens: static bearer tokens. client_cas: PEM, of those who vouch for client certificates beside the cluster's CA.
    anonymous: whether requests without credentials have a user. authorization: modes, of which one that allows is
    enough: RBAC, AlwaysAllow, AlwaysDeny. issuers: of service account tokens; the first one's name is in new tokens.
    audiences: of such tokens; the issuers by default. token_keys: PEM, private, public or certificates, whose tokens
    are good; by default the key that signs. disabled_plugins: admission plugins by upstream's names. service_ranges:
    CIDRs of Services, one for each family, the cluster's default family first. ratchets: see ``registry.core.Core``.
    """

    tokens: Mapping[str, User] = msgspec.field(default_factory=dict)
    client_cas: bytes = b""
    anonymous: bool = True
    authorization: tuple[str, ...] = ("RBAC",)
    issuers: tuple[str, ...] = (ISSUER,)
    audiences: tuple[str, ...] = ()
    token_keys: tuple[bytes, ...] = ()
    disabled_plugins: frozenset[str] = frozenset()
    service_ranges: tuple[str, ...] = (SERVICE_RANGE,)
    ratchets: bool = False

    def flags(self) -> Mapping[str, str]:
        """The same as flags of kube-apiserver, as it shows their values."""
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
