"""Tables of custom objects.

upstream: apiextensions-apiserver pkg/registry/customresource/tableconvertor/tableconvertor.go
"""

from collections.abc import Callable, Sequence
from datetime import datetime

from kcm_cli.machinery import go_json
from kcm_cli.machinery.errors import FormatError
from kcm_cli.machinery.jsonpath import parse
from kcm_cli.sandbox.apiserver.crd.findings import number
from kcm_cli.sandbox.apiserver.tables.column import NAME, Column, Layout, age
from kcm_cli.sandbox.apiserver.types import Tree

_DEFAULT: Sequence[Tree] = (
    {
        "name": "Age",
        "type": "date",
        "jsonPath": ".metadata.creationTimestamp",
        "description": "ObjectMeta.creationTimestamp",
    },
)

Shown = Callable[[object, datetime], object]
"""Formats the value at a column's path."""


def layout_of(declared: Sequence[Tree]) -> Layout:
    """The table with the declared columns, by default the age.

    A column that cannot be read is left out, and so are those after it, as upstream.
    """
    columns = [NAME]
    for one in declared or _DEFAULT:
        try:
            columns.append(_column(one))
        except FormatError:
            break
    return Layout(tuple(columns))


def _column(declared: Tree) -> Column:
    about = declared.get("description") or (
        f"Custom resource definition column (in JSONPath format): {declared['jsonPath']}"
    )
    path, shown = parse(declared["jsonPath"]), _SHOWN.get(declared["type"], _nothing)

    def cell(doc: Tree, now: datetime) -> object:
        found = path.find(doc)
        if found and found[0] is None:
            return "<no value>" if shown is _text else None
        return shown(found[0], now) if found else None

    format_, priority = declared.get("format") or "", declared.get("priority") or 0
    return Column(declared["name"], about, cell, declared["type"], format_, priority)


def _nothing(value: object, now: datetime) -> object:
    return None


def _text(value: object, now: datetime) -> object:
    if isinstance(value, dict | list):
        return go_json.encode(value).decode()
    if isinstance(value, bool):
        return "true" if value else "false"
    return number(value) if isinstance(value, int | float) else value


def _integer(value: object, now: datetime) -> object:
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    whole = int(value)
    return whole if -(1 << 63) <= whole < 1 << 63 else -(1 << 63)  # as Go on overflow


def _number(value: object, now: datetime) -> object:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _boolean(value: object, now: datetime) -> object:
    return value if isinstance(value, bool) else None


def _date(value: object, now: datetime) -> object:
    if not isinstance(value, str):
        return None
    shown = age(value, now)
    return "<invalid>" if shown == "<unknown>" and value else shown


_SHOWN: dict[str, Shown] = {
    "string": _text,
    "integer": _integer,
    "number": _number,
    "boolean": _boolean,
    "date": _date,
}
