"""Errors of admission.

upstream: staging/src/k8s.io/apiserver/pkg/admission/errors.go
"""

from collections.abc import Sequence

from kcm_cli.machinery import names
from kcm_cli.machinery.codec import Doc
from kcm_cli.machinery.quoting import quote
from kcm_cli.sandbox.apiserver.errors import forbidden
from kcm_cli.sandbox.apiserver.types import ApiError, Attributes, Tree


def denied(attrs: Attributes, why: str, causes: Sequence[Doc] = ()) -> ApiError:
    """403 for a write."""
    gvr = attrs.resource.gvr
    return forbidden(gvr.group, gvr.plural, name_of(attrs), why, causes)


def name_of(attrs: Attributes) -> str:
    """The object's name in errors; without a name its generateName."""
    if attrs.name:
        return attrs.name
    if attrs.obj is None:
        return "Unknown"
    metadata: Tree = attrs.obj.get("metadata") or {}  # type: ignore[assignment]  # checked by the schema
    return metadata.get("name") or metadata.get("generateName") or "Unknown"


def invalid_name(name: str) -> str:
    """client-go's error for a get with this name, which it does not send; otherwise empty."""
    if not name:
        return "resource name may not be empty"
    problems = names.path_segment(name)
    return f"invalid resource name {quote(name)}: [{' '.join(problems)}]" if problems else ""
