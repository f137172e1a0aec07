"""Columns and layouts of tables."""

from collections.abc import Callable
from datetime import datetime
from functools import cache
from typing import Any

import msgspec

from kcm_cli.machinery.ages import human_duration
from kcm_cli.machinery.codec import Doc
from kcm_cli.machinery.errors import FormatError
from kcm_cli.machinery.times import parse_time
from kcm_cli.sandbox.apiserver import trees
from kcm_cli.sandbox.apiserver.data import read_descriptions
from kcm_cli.sandbox.apiserver.types import Tree

Cell = Callable[[Tree, datetime], Any]
"""Returns a column's cell for an object. The datetime is the current time."""
Cells = Callable[[Tree, datetime], list[object]]


def _of_row(doc: Tree, now: datetime) -> object:
    raise NotImplementedError("the layout makes the cells of this column")


class Column(msgspec.Struct, frozen=True):
    """A column. about: its description, or ``Type.field`` for the description of a field. cell: not needed if the
    layout makes whole rows.
    """

    name: str
    about: str = ""
    cell: Cell = _of_row
    type: str = "string"
    format: str = ""
    priority: int = 0

    def definition(self) -> Doc:
        """The column as a TableColumnDefinition."""
        return {
            "name": self.name,
            "type": self.type,
            "format": self.format,
            "description": descriptions().get(self.about, self.about),
            "priority": self.priority,
        }


class Layout(msgspec.Struct, frozen=True):
    """The table of a kind. row: makes all cells of an object, for kinds whose cells share work. completed: the
    conditions of an object's row, such as that of a finished pod. order: by which the rows of a list are sorted.
    """

    columns: tuple[Column, ...]
    row: Cells | None = None
    completed: Callable[[Tree], list[Doc]] | None = None
    order: Callable[[Tree], tuple[int, str]] | None = None

    def definitions(self) -> list[Doc]:
        return [column.definition() for column in self.columns]

    def cells(self, doc: Tree, now: datetime) -> list[object]:
        """The cells of an object's row."""
        return [column.cell(doc, now) for column in self.columns] if self.row is None else self.row(doc, now)


def layout(*columns: Column, row: Cells | None = None, completed: Callable[[Tree], list[Doc]] | None = None) -> Layout:
    """A table with these columns."""
    return Layout(columns, row, completed)


def number(name: str, about: str, cell: Cell = _of_row) -> Column:
    """A column of integers."""
    return Column(name, about, cell, "integer")


def flag(name: str, about: str, cell: Cell = _of_row) -> Column:
    """A column of booleans."""
    return Column(name, about, cell, "boolean")


def wide(name: str, about: str, cell: Cell = _of_row, format_: str = "") -> Column:
    """A column that is shown only with ``-o wide``."""
    return Column(name, about, cell, format=format_, priority=1)


def at(path: str, otherwise: object = "") -> Cell:
    """The value at a dotted path; ``otherwise`` if it is missing or empty."""
    *above, last = path.split(".")

    def cell(doc: Tree, now: datetime) -> object:
        for part in above:
            doc = doc.get(part) or {}
        return doc.get(last) or otherwise

    return cell


def shown(path: str, absent: object, show: Callable[[Any], object]) -> Cell:
    """The value at a dotted path as ``show`` writes it; ``absent`` if it is missing."""

    def cell(doc: Tree, now: datetime) -> object:
        value = trees.at(doc, path)
        return absent if value is None else show(value)

    return cell


def count(path: str) -> Cell:
    """The number of items in the list or map at a path."""
    items = at(path, ())
    return lambda doc, now: len(items(doc, now))


def of_field(kind: str, path: str, otherwise: object = "") -> tuple[str, Cell]:
    """Description and cell of a column for a field: ``of_field("Lease", "spec.holderIdentity")`` has the description
    of ``LeaseSpec.holderIdentity``."""
    first, *rest = path.split(".")
    about = f"{kind}{first.capitalize()}.{rest[0]}" if rest else f"{kind}.{first}"
    return about, at(path, otherwise)


descriptions = cache(read_descriptions)
"""Descriptions of fields by ``Type.field``, read at the first use."""


def age(text: str | None, now: datetime) -> str:
    """The age of a timestamp, as ``5m``."""
    if not text:
        return "<unknown>"
    try:
        return human_duration((now - parse_time(text)).total_seconds())
    except FormatError:
        return "<unknown>"


def created(doc: Tree, now: datetime) -> str:
    """The age of an object."""
    return age(doc["metadata"].get("creationTimestamp"), now)


def more(items: list[str]) -> str:
    """The first three items, and the number of the others: ``a,b,c + 3 more...``."""
    text = ",".join(items[:3])
    return f"{text} + {len(items) - 3} more..." if len(items) > 3 else text


UNSET = "<unset>"


def name_of(doc: Tree) -> str:
    """The name of an object."""
    return str(doc["metadata"].get("name", ""))


NAME = Column("Name", "ObjectMeta.name", at("metadata.name"), format="name")
AGE = Column("Age", "ObjectMeta.creationTimestamp", created)
PLAIN = layout(
    NAME, Column("Created At", "ObjectMeta.creationTimestamp", at("metadata.creationTimestamp", None), "date")
)
"""The default table: name and creation time."""
