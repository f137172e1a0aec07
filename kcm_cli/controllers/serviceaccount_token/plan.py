"""What a token Secret lacks.

upstream: pkg/controller/serviceaccount/tokens_controller.go#secretUpdateNeeded
"""

import base64
from dataclasses import dataclass

from kcm_cli.api.core import Secret, ServiceAccount

TYPE = "kubernetes.io/service-account-token"
ACCOUNT_NAME = "kubernetes.io/service-account.name"
ACCOUNT_UID = "kubernetes.io/service-account.uid"
TOKEN, CA, NAMESPACE = "token", "ca.crt", "namespace"


@dataclass(frozen=True, slots=True)
class Missing:
    """What has to be filled in. A wrong namespace is left, a wrong CA is replaced."""

    ca: bool
    namespace: bool
    token: bool

    @property
    def nothing(self) -> bool:
        return not (self.ca or self.namespace or self.token)


def plan(secret: Secret, root_ca: bytes) -> Missing:
    """What is to be filled in."""
    data = secret.data or {}
    return Missing(
        ca=bool(root_ca) and data.get(CA) != encoded(root_ca),
        namespace=not data.get(NAMESPACE),
        token=not data.get(TOKEN),
    )


def encoded(value: bytes) -> str:
    """As a Secret's data holds it."""
    return base64.b64encode(value).decode()


def belongs_to(secret: Secret, account: ServiceAccount) -> bool:
    """Whether a Secret is a token of this account; without a uid the name is enough."""
    return (
        secret.type == TYPE
        and secret.namespace == account.namespace
        and secret.annotations.get(ACCOUNT_NAME) == account.name
        and secret.annotations.get(ACCOUNT_UID, "") in ("", account.uid)
    )
