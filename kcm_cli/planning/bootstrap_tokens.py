"""Bootstrap tokens: Secrets in kube-system by which new nodes and the cluster trust each other.

upstream: staging/src/k8s.io/cluster-bootstrap/{token/api,util/secrets}
"""

import math
import re
from datetime import datetime

from kcm_cli.api.core import Secret
from kcm_cli.machinery.errors import FormatError
from kcm_cli.machinery.formats import from_base64
from kcm_cli.machinery.times import parse_time

TYPE = "bootstrap.kubernetes.io/token"
NAMESPACE = "kube-system"
FIELD_SELECTOR = f"type={TYPE}"

_named = re.compile(r"bootstrap-token-([a-z0-9]{6})").fullmatch


def value(secret: Secret, key: str) -> bytes:
    """One value of a Secret; empty where there is none."""
    try:
        return from_base64((secret.data or {}).get(key, ""))
    except ValueError:
        return b""


def id_of_name(name: str) -> str:
    """The id of the token that a Secret of this name may hold; empty for any other name."""
    match = _named(name)
    return match[1] if match is not None else ""


def left_s(secret: Secret, now: datetime) -> float:
    """Seconds until a token expires: 0 where it has, or its expiration is not a time; infinity where it has none."""
    expiration = value(secret, "expiration")
    if not expiration:
        return math.inf
    try:
        return max(0.0, (parse_time(expiration.decode(errors="replace")) - now).total_seconds())
    except FormatError:
        return 0.0
