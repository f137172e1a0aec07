"""What a table consists of: columns, and a function that makes the cells of an object."""

from collections.abc import Callable, Mapping
from datetime import datetime
from importlib import resources

import msgspec

from kcm_cli.machinery import codec
from kcm_cli.machinery.ages import human_duration
from kcm_cli.machinery.codec import Doc
from kcm_cli.machinery.errors import FormatError
from kcm_cli.machinery.times import parse_time
from kcm_cli.sandbox.apiserver.types import Tree

Cells = Callable[[Tree, datetime], list[object]]
"""The cells of one object, given what time it is."""


class Column(msgspec.Struct, frozen=True):
    """One column. ``about``: its description, or ``Type.field`` whose description in the API's schema it is."""

    name: str
    about: str = ""
    type: str = "string"
    format: str = ""
    priority: int = 0

    def definition(self) -> Doc:
        """As a Table has it."""
        return {
            "name": self.name,
            "type": self.type,
            "format": self.format,
            "description": descriptions().get(self.about, self.about),
            "priority": self.priority,
        }


class Layout(msgspec.Struct, frozen=True):
    """The table of a kind. ``completed``: the condition that the row of a finished object carries."""

    columns: tuple[Column, ...]
    cells: Cells
    completed: Callable[[Tree], list[Doc]] | None = msgspec.field(default=None)

    def definitions(self) -> list[Doc]:
        return [column.definition() for column in self.columns]


def number(name: str, about: str) -> Column:
    """A column of whole numbers."""
    return Column(name, about, "integer")


def flag(name: str, about: str) -> Column:
    """A column of booleans."""
    return Column(name, about, "boolean")


def wide(name: str, about: str, type_: str = "string", format_: str = "") -> Column:
    """A column that is shown on request only."""
    return Column(name, about, type_, format_, 1)


NAME = Column("Name", "ObjectMeta.name", format="name")
AGE = Column("Age", "ObjectMeta.creationTimestamp")

_kept: dict[str, str] = {}


def descriptions() -> Mapping[str, str]:
    """Descriptions of fields, by ``Type.field``; read when the first table is asked for."""
    if not _kept:
        file = resources.files("kcm_cli.sandbox.apiserver.data").joinpath("columns.json")
        _kept.update(codec.decode(file.read_bytes(), dict[str, str]))
    return _kept


def age(text: str | None, now: datetime) -> str:
    """How long ago an API time was."""
    if not text:
        return "<unknown>"
    try:
        return human_duration((now - parse_time(text)).total_seconds())
    except FormatError:
        return "<unknown>"


def created(doc: Tree, now: datetime) -> str:
    """The age of an object."""
    return age(doc["metadata"].get("creationTimestamp"), now)


def more(items: list[str], limit: int) -> str:
    """The first of a list, and how many there are beyond."""
    text = ",".join(items[:limit])
    return f"{text} + {len(items) - limit} more..." if len(items) > limit else text


UNSET = "<unset>"


def name_of(doc: Tree) -> str:
    """The name of an object."""
    return str(doc["metadata"].get("name", ""))


def named(doc: Tree, now: datetime) -> list[object]:
    """Name and age."""
    return [name_of(doc), created(doc, now)]


def _plain(doc: Tree, now: datetime) -> list[object]:
    return [name_of(doc), doc["metadata"].get("creationTimestamp")]


PLAIN = Layout((NAME, Column("Created At", "ObjectMeta.creationTimestamp", "date")), _plain)
"""Name and creation time: for kinds without a table of their own."""
