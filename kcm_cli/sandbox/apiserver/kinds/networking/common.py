"""What the kinds of networking share."""

from kcm_cli.machinery import names
from kcm_cli.sandbox.apiserver.types import Errors, Tree
from kcm_cli.sandbox.apiserver.validation import errors


def validate_reference(reference: Tree, path: str) -> Errors:
    """An object of any kind, in the same namespace."""
    group = reference.get("apiGroup")
    if group is not None:
        yield from errors.invalid_each(f"{path}.apiGroup", group, names.dns1123_subdomain(group))
    for field in ("kind", "name"):
        value = reference.get(field, "")
        if value:
            yield from errors.invalid_each(f"{path}.{field}", value, names.path_segment(value))
        else:
            yield errors.required(f"{path}.{field}")


def balancer_addresses(doc: Tree) -> str:
    status = (doc.get("status") or {}).get("loadBalancer") or {}
    return ",".join(sorted({one.get("ip") or one.get("hostname") or "" for one in status.get("ingress") or ()} - {""}))
