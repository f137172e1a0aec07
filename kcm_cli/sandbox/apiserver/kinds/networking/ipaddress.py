"""IPAddress.

upstream: pkg/apis/networking/validation,
pkg/registry/networking/ipaddress/strategy.go, pkg/printers/internalversion/printers.go
"""

from datetime import datetime

from kcm_cli.sandbox.apiserver.registry.core import Kind
from kcm_cli.sandbox.apiserver.strategy.base import Strategy, by_spec
from kcm_cli.sandbox.apiserver.tables.column import NAME, Column, created, layout, name_of
from kcm_cli.sandbox.apiserver.tables.templates import NONE
from kcm_cli.sandbox.apiserver.types import Errors, Tree
from kcm_cli.sandbox.apiserver.validation import addresses, errors, go_print, rules


def _address_name(name: str, prefix: bool) -> list[str]:
    start = f"Invalid value: {errors.show(name)}: "
    return [error.message.removeprefix(start) for error in addresses.strict_ip(name, "")]


_PARENT = rules.fields(
    rules.nonempty("group", rules.SUBDOMAIN),
    rules.required("resource", rules.SEGMENT),
    rules.required("name", rules.SEGMENT),
    rules.nonempty("namespace", rules.SEGMENT),
)


def _check_change(new: Tree, old: Tree) -> Errors:
    after, before = ((doc.get("spec") or {}).get("parentRef") for doc in (new, old))
    shown = None if after is None else go_print.internal("networking.ParentReference", after)
    return errors.fixed("spec.parentRef", after, before, shown)


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
        names=_address_name,
        check=by_spec(rules.fields(rules.present("parentRef", _PARENT))),
        check_change=_check_change,
        update_steps=("name", "rules", "metadata", "change"),
    ),
    table=layout(NAME, Column("ParentRef", "IPAddressSpec.parentRef"), row=_cells),
)
