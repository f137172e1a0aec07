"""Options of the service account token controller, and the root CA, which the root CA publisher hands out too."""

from typing import ClassVar

from kcm_cli.component.options import OptionGroup, concurrency, option
from kcm_cli.component.value_types import STRING


class ServiceAccountTokenConfig(OptionGroup):
    """Options of the serviceaccount-token controller. The root CA publisher uses the same root CA."""

    SECTION: ClassVar[str] = "Serviceaccount-controller"

    service_account_key_file: str = option(
        STRING,
        "",
        flag="service-account-private-key-file",
        key="ServiceAccountKeyFile",
        help=(
            "File with the PEM private key (RSA or ECDSA) that signs service account tokens. Without "
            "it, no token Secrets are filled in."
        ),
    )
    concurrent_syncs: int = concurrency(
        "service account tokens",
        5,
        flag="concurrent-serviceaccount-token-syncs",
        key="ConcurrentSATokenSyncs",
    )
    root_ca_file: str = option(
        STRING,
        "",
        flag="root-ca-file",
        key="RootCAFile",
        help=(
            "File with the PEM bundle of CA certificates for every token Secret, and for the "
            "ConfigMap kube-root-ca.crt of every namespace."
        ),
    )
