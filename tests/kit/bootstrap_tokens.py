"""Secrets with bootstrap tokens."""

import base64
from typing import Any


def token(id_: str = "abcdef", name: str = "", type_: str = "bootstrap.kubernetes.io/token", **data: str) -> Any:
    """A token that may sign. Dashes of keys are written as underscores here; an empty value leaves a key out."""
    values = {"token_id": id_, "token_secret": "0123456789abcdef", "usage_bootstrap_signing": "true", **data}
    encoded = {k.replace("_", "-"): base64.b64encode(v.encode()).decode() for k, v in values.items() if v}
    return {"metadata": {"name": name or f"bootstrap-token-{id_}"}, "type": type_, "data": encoded}
