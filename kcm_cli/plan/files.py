"""Snapshots as files: gzip over JSON lines (docs/plan.md describes the format).

The first line has the version of the format. Each resource has a line with its name and one line for each object. The
last line has their number, by which truncated files are detected. Values of environment variables are left out (see
``redaction``).
"""

import gzip
import os
import re
import stat
import zlib
from collections.abc import Iterator
from datetime import UTC
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from kcm_cli.api.resource import GVR
from kcm_cli.component.files import replaced
from kcm_cli.machinery import codec
from kcm_cli.machinery.errors import FormatError
from kcm_cli.machinery.names import path_segment
from kcm_cli.machinery.quoting import quote
from kcm_cli.machinery.times import format_time, parse_time
from kcm_cli.plan.collect import item_of
from kcm_cli.plan.redaction import Redaction
from kcm_cli.plan.shapes import Shapes
from kcm_cli.plan.snapshot import Collection, Gap, Item, PlanError, Snapshot, is_time_of_cluster

LONGEST = 64 << 20
"""Bytes of a line. An object of an API server has 3 MiB at most."""
LARGEST, MOST_EXPANSION, LINE_COST = 512 << 20, 100, 512
"""The most bytes that all lines may take in memory, or this many times the bytes of the file if that is more. A line
counts this much besides its own."""
FORMAT, VERSION = "kcm-snapshot", 2
_SALT = re.compile(r"(?:[0-9a-f]{2}){0,64}")


class _Header(msgspec.Struct, rename="camel"):
    format: str = ""
    version: int = 0
    taken_at: str = ""
    server_version: str = ""
    resource_version: str = ""
    torn: tuple[str, ...] = ()
    gaps: tuple[Gap, ...] = ()
    skipped: tuple[str, ...] = ()
    redacted: bool = False
    salt: str = ""
    """Of version 1, whose files had digests instead of values."""


class _Resource(msgspec.Struct):
    resource: tuple[str, str, str]
    kind: str
    namespaced: bool = True
    count: int = 0


class _End(msgspec.Struct):
    end: int


def save(snapshot: Snapshot, path: str | os.PathLike[str]) -> None:
    """Write a snapshot. A file is replaced when all is written; a pipe or device is written directly. Raises
    OSError."""
    given = Path(path)
    if given.exists() and not given.is_file():
        with given.open("wb") as pipe:
            _write(snapshot, pipe)
        return
    target = given.resolve()  # a symbolic link stays one
    with replaced(target) as raw:
        _write(snapshot, raw)
        raw.flush()
        os.fsync(raw.fileno())


def _write(snapshot: Snapshot, raw: BinaryIO) -> None:
    with gzip.GzipFile("", "wb", 6, raw, mtime=0) as file:
        for line in _lines(snapshot):
            file.write(line + b"\n")


def load(path: str | os.PathLike[str]) -> Snapshot:
    """Read a snapshot. Raises PlanError for an invalid file."""
    try:
        with open(path, "rb") as raw, gzip.GzipFile(fileobj=raw, mode="rb") as file:
            known = os.fstat(raw.fileno())
            size = known.st_size if stat.S_ISREG(known.st_mode) else 0
            return _parsed(_read(file, max(LARGEST, MOST_EXPANSION * size)))
    except _Wrong as error:
        raise PlanError(f"{path}: {error}") from None
    except FileNotFoundError as error:
        raise PlanError(f"cannot read {path}: {error.strerror}") from None
    except EOFError:
        raise PlanError(f"{path}: the file is cut short") from None
    except gzip.BadGzipFile:
        raise PlanError(f"{path}: this is no snapshot of kcm plan --save") from None
    except zlib.error as error:
        raise PlanError(f"{path}: the file is damaged: {error}") from None
    except OSError as error:
        raise PlanError(f"cannot read {path}: {error.strerror or error}") from None


def _read(file: gzip.GzipFile, most: int) -> Iterator[bytes]:
    """The lines of a file, up to so many bytes."""
    total = 0
    while line := file.readline(LONGEST + 1):
        if len(line) > LONGEST:
            raise _Wrong(f"a line is longer than {LONGEST >> 20} MiB: this is no snapshot of kcm plan --save")
        total += len(line) + LINE_COST
        if total > most:
            raise _Wrong(f"it takes more than {most >> 20} MiB: this is no snapshot of kcm plan --save")
        yield line


class _Wrong(Exception):
    """The file is invalid; the text says why."""


def _lines(snapshot: Snapshot) -> Iterator[bytes]:
    yield codec.encode(
        _Header(
            FORMAT,
            VERSION,
            format_time(snapshot.taken_at),
            snapshot.server_version,
            snapshot.resource_version,
            snapshot.torn,
            snapshot.gaps,
            snapshot.skipped,
            redacted=True,
        )
    )
    total = 0
    redaction = Redaction()
    for collection in snapshot.collections.values():
        gvr, items = collection.gvr, collection.items
        named = gvr.group, gvr.version, gvr.plural
        yield codec.encode(_Resource(named, collection.kind, collection.namespaced, len(items)))
        total += len(items)
        for item in items:
            yield item.data if snapshot.redacted else redaction.clean(item.data)
    yield codec.encode(_End(total))


def _parsed(lines: Iterator[bytes]) -> Snapshot:
    header = _decoded(_next(lines), _Header, "the first line")
    if header.format != FORMAT:
        raise _Wrong("this is no snapshot of kcm plan --save")
    if header.version > VERSION:
        raise _Wrong(f"its format is {header.version}, of a later kcm: this one reads up to {VERSION}")
    if _SALT.fullmatch(header.salt) is None:
        raise _Wrong("salt: it is not hexadecimal")
    try:
        taken_at = parse_time(header.taken_at).astimezone(UTC)
    except (FormatError, OverflowError) as error:
        raise _Wrong(f"takenAt: {error}") from None
    if not is_time_of_cluster(taken_at):
        raise _Wrong(f"takenAt: {header.taken_at} is no time of a cluster")
    collections: dict[GVR, Collection] = {}
    shapes = Shapes()
    total = 0
    while True:
        line = _next(lines)
        if line.startswith(b'{"end":'):
            break
        named = _decoded(line, _Resource, f"the line after {total} objects")
        gvr = GVR(*named.resource)
        if named.count < 0:
            raise _Wrong(f"{gvr.group_resource}: it says that there are {named.count} objects of a kind")
        if gvr in collections:
            raise _Wrong(f"{gvr.group_resource}: it is there twice")
        kept = tuple(_items(lines, named, gvr, shapes))
        total += len(kept)
        collections[gvr] = Collection(gvr, named.kind, named.namespaced, kept)
    if _decoded(line, _End, "the last line").end != total:
        raise _Wrong("the file is damaged: objects are missing")
    return Snapshot(
        taken_at,
        header.server_version,
        header.resource_version,
        collections,
        header.torn,
        header.gaps,
        header.redacted or bool(header.salt),
        header.skipped,
    )


def _next(lines: Iterator[bytes]) -> bytes:
    line = next(lines, None)
    if line is None:
        raise _Wrong("the file is cut short")
    return line


def _items(lines: Iterator[bytes], named: _Resource, gvr: GVR, shapes: Shapes) -> Iterator[Item]:
    """The objects of a kind, each with a name and place of its own."""
    known: set[tuple[str, str]] = set()
    for number in range(1, named.count + 1):
        item = _item(_next(lines), gvr, named.kind, number, shapes)
        where = f"{gvr.group_resource} {item.namespace and f'{item.namespace}/'}{item.name}"
        if (item.namespace, item.name) in known:
            raise _Wrong(f"{where}: it is there twice")
        if bool(item.namespace) != named.namespaced:
            what = (
                "it has no namespace" if named.namespaced else "it has a namespace, and objects of its kind have none"
            )
            raise _Wrong(f"{where}: {what}")
        known.add((item.namespace, item.name))
        yield item


def _item(line: bytes, gvr: GVR, kind: str, number: int, shapes: Shapes) -> Item:
    item = item_of(line, gvr, kind)
    if item is None:
        where = f"{gvr.group_resource}, object {number}"
        raise _Wrong(f"{where}: it is no object with a metadata.name")
    if faults := [*path_segment(item.name), *path_segment(item.namespace)]:
        raise _Wrong(f"{gvr.group_resource}, object {number}: {quote(item.name)} is no name: {faults[0]}")
    try:
        fault = shapes.fault(gvr, kind, item.doc)
    except codec.DecodeError as error:
        fault = str(error)
    if fault:
        raise _Wrong(f"{gvr.group_resource} {item.namespace and f'{item.namespace}/'}{item.name}: {fault}")
    return item


def _decoded(line: bytes, type_: Any, where: str) -> Any:
    try:
        return codec.decode(line, type_)
    except codec.DecodeError as error:
        raise _Wrong(f"the file is damaged: {where}: {error}") from None
