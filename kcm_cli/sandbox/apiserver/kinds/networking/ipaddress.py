"""IPAddress.

Source: pkg/apis/networking/validation,
pkg/registry/networking/ipaddress/strategy.go, pkg/printers/internalversion/printers.go.
"""

from datetime import datetime

from kcm_cli.machinery import names
from kcm_cli.sandbox.apiserver.kinds.kind import Kind
from kcm_cli.sandbox.apiserver.strategy.base import Strategy
from kcm_cli.sandbox.apiserver.tables.column import NAME, Column, Layout, created, name_of
from kcm_cli.sandbox.apiserver.tables.templates import NONE
from kcm_cli.sandbox.apiserver.types import Errors, Tree
from kcm_cli.sandbox.apiserver.validation import addresses, errors, go_print, metadata


def _address_name(name: str, prefix: bool) -> list[str]:
    start = f"Invalid value: {errors.show(name)}: "
    return [error.message.removeprefix(start) for error in addresses.strict_ip(name, "")]


def validate_address(doc: Tree) -> Errors:
    yield from metadata.validate_meta(doc["metadata"], False, _address_name)
    parent, path = (doc.get("spec") or {}).get("parentRef"), "spec.parentRef"
    if parent is None:
        yield errors.required(path)
        return
    group, namespace = parent.get("group", ""), parent.get("namespace", "")
    if group:
        yield from errors.invalid_each(f"{path}.group", group, names.dns1123_subdomain(group))
    for field in ("resource", "name"):
        value = parent.get(field, "")
        if value:
            yield from errors.invalid_each(f"{path}.{field}", value, names.path_segment(value))
        else:
            yield errors.required(f"{path}.{field}")
    if namespace:
        yield from errors.invalid_each(f"{path}.namespace", namespace, names.path_segment(namespace))


def validate_address_update(new: Tree, old: Tree) -> Errors:
    yield from validate_address(new)
    yield from metadata.validate_meta_update(new["metadata"], old["metadata"])
    after, before = ((doc.get("spec") or {}).get("parentRef") for doc in (new, old))
    shown = None if after is None else go_print.internal("networking.ParentReference", after)
    yield from errors.fixed("spec.parentRef", after, before, shown)


def _cells(doc: Tree, now: datetime) -> list[object]:
    parent, text = (doc.get("spec") or {}).get("parentRef"), NONE
    if parent is not None:
        group = f".{parent['group']}" if parent.get("group") else ""
        text = f"{parent.get('resource', '')}{group}".lower()
        text += f"/{parent['namespace']}" if parent.get("namespace") else ""
        text += f"/{parent.get('name', '')}"
    return [name_of(doc), text, created(doc, now)]


KIND = Kind(
    "networking.k8s.io",
    "ipaddresses",
    strategy=Strategy(
        namespaced=False,
        check_create=validate_address,
        check_update=validate_address_update,
    ),
    table=Layout((NAME, Column("ParentRef", "IPAddressSpec.parentRef")), _cells),
)
