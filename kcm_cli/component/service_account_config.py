"""Options of the service account token controller, and the root CA, which the root CA publisher hands out too."""

from dataclasses import dataclass
from typing import ClassVar

from kcm_cli.component.kinds import INT32, STRING
from kcm_cli.component.options import option


@dataclass(frozen=True, slots=True)
class ServiceAccountTokenConfig:
    """Options of the serviceaccount-token controller; the root CA is also what the root CA publisher hands out."""

    SECTION: ClassVar[str] = "Serviceaccount-controller"
    KEY: ClassVar[str] = "SAController"

    service_account_key_file: str = option(
        STRING,
        "",
        flag="service-account-private-key-file",
        key="ServiceAccountKeyFile",
        help=(
            "File with the PEM private key (RSA or ECDSA) that signs service account tokens. Without it no "
            "tokens are made."
        ),
    )
    concurrent_syncs: int = option(
        INT32,
        5,
        flag="concurrent-serviceaccount-token-syncs",
        key="ConcurrentSATokenSyncs",
        help=(
            "How many service account tokens are worked on at the same time. More makes the controller "
            "quicker to respond and uses more CPU and network."
        ),
    )
    root_ca_file: str = option(
        STRING,
        "",
        flag="root-ca-file",
        key="RootCAFile",
        help=(
            "File with the PEM certificate bundle that goes into every token Secret and into the kube-root-"
            "ca.crt ConfigMap of every namespace."
        ),
    )
