"""How admission refuses.

upstream: staging/src/k8s.io/apiserver/pkg/admission/errors.go
"""

from collections.abc import Sequence

from kcm_cli.machinery import names
from kcm_cli.machinery.codec import Doc
from kcm_cli.machinery.quoting import quote
from kcm_cli.sandbox.apiserver.errors import forbidden
from kcm_cli.sandbox.apiserver.types import ApiError, Attributes, Tree


def denied(attrs: Attributes, why: str, causes: Sequence[Doc] = ()) -> ApiError:
    """403 about the object that is written."""
    gvr = attrs.resource.gvr
    return forbidden(gvr.group, gvr.plural, name_of(attrs), why, causes)


def name_of(attrs: Attributes) -> str:
    """The object's name as error texts show it; of one without a name yet, its prefix."""
    if attrs.name:
        return attrs.name
    if attrs.obj is None:
        return "Unknown"
    metadata: Tree = attrs.obj.get("metadata") or {}  # type: ignore[assignment]  # checked by the schema
    return metadata.get("name") or metadata.get("generateName") or "Unknown"


def invalid_name(name: str) -> str:
    """Why a client would not even ask the server for an object of this name; empty if it would."""
    if not name:
        return "resource name may not be empty"
    problems = names.path_segment(name)
    return f"invalid resource name {quote(name)}: [{' '.join(problems)}]" if problems else ""
