"""Decides which data a token Secret lacks.

upstream: pkg/controller/serviceaccount/tokens_controller.go#secretUpdateNeeded
"""

from kcm_cli.api.core import Secret, ServiceAccount
from kcm_cli.api.well_known import ACCOUNT_NAME, ACCOUNT_TOKEN, ACCOUNT_UID
from kcm_cli.machinery.formats import base64_text

TOKEN, CA, NAMESPACE = "token", "ca.crt", "namespace"


def plan(secret: Secret, root_ca: bytes) -> frozenset[str]:
    """The keys of the data to fill in. A wrong namespace is kept; a wrong CA is replaced."""
    data = secret.data or {}
    missing = frozenset(key for key in (NAMESPACE, TOKEN) if not data.get(key))
    return missing | {CA} if root_ca and data.get(CA) != base64_text(root_ca) else missing


def belongs_to(secret: Secret, account: ServiceAccount) -> bool:
    """Whether a Secret is a token of this account. Without a uid the name suffices."""
    return (
        secret.type == ACCOUNT_TOKEN
        and secret.namespace == account.namespace
        and secret.annotations.get(ACCOUNT_NAME) == account.name
        and secret.annotations.get(ACCOUNT_UID, "") in ("", account.uid)
    )
