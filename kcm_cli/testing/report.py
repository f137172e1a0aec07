"""Describes a cluster as text for a failed test: the tables that kubectl shows, and Events."""

from collections.abc import Iterator, Sequence
from typing import Any

from kcm_cli.machinery import codec
from kcm_cli.machinery.meta import View, number_of
from kcm_cli.machinery.quoting import bounded
from kcm_cli.rest.client import Client
from kcm_cli.rest.discovery import discover
from kcm_cli.rest.errors import ApiError
from kcm_cli.rest.transport import Request

_ROWS, _EVENTS = 20, 30
_WIDTH = 100
"""The maximum width of a cell."""
_TABLE = "application/json;as=Table;g=meta.k8s.io;v=v1"
_UNTOLD = frozenset({"configmaps", "controllerrevisions", "endpoints", "endpointslices", "events", "serviceaccounts"})
"""Resources with many objects and little information, and Events, which have a part of their own."""


class _Column(View, frozen=True, gc=False):
    name: str = ""
    priority: int = 0


class _Metadata(View, frozen=True, gc=False):
    resource_version: str = ""


class _Object(View, frozen=True, gc=False):
    metadata: _Metadata = _Metadata()


class _Row(View, frozen=True, gc=False):
    cells: tuple[Any, ...] = ()
    object: _Object = _Object()


class _Table(View, frozen=True, gc=False):
    column_definitions: tuple[_Column, ...] | None = None
    rows: tuple[_Row, ...] | None = None


async def report(client: Client, namespace: str) -> str:
    """The nodes, the objects in the namespace (of all kinds, including custom ones), and its last Events."""
    parts: list[str] = []
    for resource in (await discover(client)).preferred():
        listed = resource.gvr.plural not in _UNTOLD and resource.supports("list")
        if listed and (resource.namespaced or resource.group_resource == ("", "nodes")):
            path = resource.gvr.path(namespace if resource.namespaced else "")
            found = await _table(client, path)
            parts += _shown(f"{resource.gvr.plural}:", found, found.rows or ())
    events = await _table(client, f"/api/v1/namespaces/{namespace}/events")
    latest = sorted(events.rows or (), key=lambda row: number_of(row.object.metadata.resource_version))[-_EVENTS:]
    parts += _shown("events:", events, latest, most=_EVENTS)
    return "\n\n".join(parts)


async def _table(client: Client, path: str) -> _Table:
    try:
        return codec.decode(await client.call(Request("GET", path, (), {"accept": _TABLE})), _Table)
    except ApiError:  # its server is unavailable, or it was deleted
        return _Table()


def _shown(title: str, table: _Table, rows: Sequence[_Row], most: int = _ROWS) -> Iterator[str]:
    if not rows:
        return
    columns = table.column_definitions or ()
    kept = [number for number, column in enumerate(columns) if column.priority == 0]
    lines = [[columns[number].name.upper() for number in kept]]
    lines += [[_cell(row.cells[number]) for number in kept] for row in rows[:most]]
    widths = [max(len(line[number]) for line in lines) for number in range(len(kept))]
    text = ["  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines]
    if len(rows) > most:
        text.append(f"and {len(rows) - most} more")
    yield "\n".join([title, *(f"  {line}" for line in text)])


def _cell(value: object) -> str:
    return bounded(" ".join(str("<none>" if value is None else value).split()), _WIDTH)
