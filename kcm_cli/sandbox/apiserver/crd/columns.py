"""Tables of custom objects.

upstream: apiextensions-apiserver pkg/registry/customresource/tableconvertor/tableconvertor.go
"""

from collections.abc import Callable, Sequence
from datetime import datetime

from kcm_cli.machinery import go_json
from kcm_cli.machinery.errors import FormatError
from kcm_cli.machinery.jsonpath import Path, parse
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
_NOTHING = Path([lambda value: iter(())])

Cell = Callable[[object, datetime], object]


def layout_of(declared: Sequence[Tree]) -> Layout:
    """The table with the declared columns; with none, the age."""
    columns = [NAME]
    cells: list[tuple[Path, Cell]] = []
    for one in declared or _DEFAULT:
        about = one.get("description") or f"Custom resource definition column (in JSONPath format): {one['jsonPath']}"
        columns.append(Column(one["name"], about, one["type"], one.get("format") or "", one.get("priority") or 0))
        cells.append((_path(one["jsonPath"]), _CELLS.get(one["type"], _nothing)))

    def row(doc: Tree, now: datetime) -> list[object]:
        shown: list[object] = [doc["metadata"]["name"]]
        for path, cell in cells:
            found = path.find(doc)
            if found and found[0] is None:
                shown.append("<no value>" if cell is _text else None)
            else:
                shown.append(cell(found[0], now) if found else None)
        return shown

    return Layout(tuple(columns), row)


def _path(text: str) -> Path:
    try:
        return parse(text)
    except FormatError:
        return _NOTHING


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
    return whole if -(1 << 63) <= whole < 1 << 63 else -(1 << 63)  # as Go converts what has no room


def _number(value: object, now: datetime) -> object:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _boolean(value: object, now: datetime) -> object:
    return value if isinstance(value, bool) else None


def _date(value: object, now: datetime) -> object:
    if not isinstance(value, str):
        return None
    shown = age(value, now)
    return "<invalid>" if shown == "<unknown>" and value else shown


_CELLS: dict[str, Cell] = {
    "string": _text,
    "integer": _integer,
    "number": _number,
    "boolean": _boolean,
    "date": _date,
}
