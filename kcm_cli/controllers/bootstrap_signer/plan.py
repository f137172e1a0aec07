"""The signatures of the public cluster information, one per bootstrap token that may sign.

A signature is a JWS with detached content (RFC 7515, appendix F); the token's secret is the key of its HMAC.

upstream: pkg/controller/bootstrap/{bootstrapsigner,util}.go, staging/src/k8s.io/cluster-bootstrap/token/jws
"""

import hashlib
import hmac
from collections.abc import Iterable
from datetime import datetime

from kcm_cli.api.core import CONFIG_MAPS, ConfigMap, Secret
from kcm_cli.machinery import codec
from kcm_cli.machinery.formats import base64url_text
from kcm_cli.planning import bootstrap_tokens
from kcm_cli.planning.actions import ABSENT, Path, Update, Value

NAMESPACE = "kube-public"
NAME = "cluster-info"
CONTENT = "kubeconfig"
PREFIX = "jws-kubeconfig-"


def plan(info: ConfigMap, secrets: Iterable[Secret], now: datetime) -> Update | None:
    """The update of the signatures; None if they are right, or if there is no content to sign."""
    known = info.data or {}
    content = known.get(CONTENT)
    if content is None:
        return None
    wanted = {
        PREFIX + secret.name.removeprefix("bootstrap-token-"): signature(content, secret)
        for secret in secrets
        if may_sign(secret, now)
    }
    changes: dict[Path, Value] = {("data", key): text for key, text in wanted.items() if known.get(key) != text}
    for key in known:
        if key.startswith(PREFIX) and key not in wanted:
            changes[("data", key)] = ABSENT
    return Update(CONFIG_MAPS, info, changes, reason="signatures by bootstrap tokens") if changes else None


def may_sign(secret: Secret, now: datetime) -> bool:
    """Whether a Secret is an unexpired bootstrap token with the usage for signing."""
    token_id = bootstrap_tokens.id_of_name(secret.name)
    return (
        bool(token_id)
        and bootstrap_tokens.value(secret, "token-id") == token_id.encode()
        and bool(bootstrap_tokens.value(secret, "token-secret"))
        and bootstrap_tokens.left_s(secret, now) > 0
        and bootstrap_tokens.value(secret, "usage-bootstrap-signing") == b"true"
    )


def signature(content: str, secret: Secret) -> str:
    """The detached signature ``HEADER..SIGNATURE`` with a Secret's token."""
    token_id = bootstrap_tokens.id_of_name(secret.name)
    header = base64url_text(codec.encode({"alg": "HS256", "kid": token_id}))
    signed = f"{header}.{base64url_text(content.encode())}".encode()
    key = bootstrap_tokens.value(secret, "token-secret")
    return f"{header}..{base64url_text(hmac.new(key, signed, hashlib.sha256).digest())}"
