"""Snapshots as files: gzip over JSON lines (docs/plan.md describes the format).

The first line has the version of the format. Each resource has a line with its name and one line for each object. The
last line has their number, by which truncated files are detected. Values of environment variables are replaced by 16
bits of a salted digest, which shows whether values are equal, and nothing else. Last-applied annotations are left out.
"""

import gzip
import hmac
import os
import secrets
import zlib
from collections.abc import Iterator
from datetime import UTC
from pathlib import Path
from typing import Any, BinaryIO

import msgspec
from msgspec.structs import replace

from kcm_cli.api.resource import GVR
from kcm_cli.api.well_known import LAST_APPLIED
from kcm_cli.machinery import codec
from kcm_cli.machinery.codec import Doc
from kcm_cli.machinery.documents import nested_list, nested_map, nested_str
from kcm_cli.machinery.times import format_time, parse_time
from kcm_cli.plan.collect import item_of
from kcm_cli.plan.snapshot import Collection, Gap, Item, PlanError, Snapshot

LONGEST = 64 << 20
"""Bytes of a line. An object of an API server has 3 MiB at most."""
FORMAT, VERSION = "kcm-snapshot", 1
_CONTAINERS = ("containers", "initContainers", "ephemeralContainers")


class _Header(msgspec.Struct, rename="camel"):
    format: str = ""
    version: int = 0
    taken_at: str = ""
    server_version: str = ""
    resource_version: str = ""
    torn: tuple[str, ...] = ()
    gaps: tuple[Gap, ...] = ()
    skipped: tuple[str, ...] = ()
    salt: str = ""


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
        _write(snapshot, given)
        return
    target = given.resolve()  # a symbolic link stays one
    partial = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        _write(snapshot, partial)
        partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)


def _write(snapshot: Snapshot, path: Path) -> None:
    salt = snapshot.salt or secrets.token_hex(16)
    with _created(path) as raw, gzip.GzipFile("", "wb", 6, raw, mtime=0) as file:
        for line in _lines(replace(snapshot, salt=salt), redacted=bool(snapshot.salt)):
            file.write(line + b"\n")


def load(path: str | os.PathLike[str]) -> Snapshot:
    """Read a snapshot. Raises PlanError for an invalid file."""
    try:
        with gzip.open(path, "rb") as file:
            return _parsed(_read(file))
    except _Wrong as error:
        raise PlanError(f"{path}: {error}") from None
    except FileNotFoundError as error:
        raise PlanError(f"cannot read {path}: {error.strerror}") from None
    except (EOFError, StopIteration):
        raise PlanError(f"{path}: the file is cut short") from None
    except gzip.BadGzipFile:
        raise PlanError(f"{path}: this is no snapshot of kcm plan --save") from None
    except zlib.error as error:
        raise PlanError(f"{path}: the file is damaged: {error}") from None
    except OSError as error:
        raise PlanError(f"cannot read {path}: {error.strerror or error}") from None


def _created(path: Path) -> BinaryIO:
    """Create a file that other users cannot read."""
    return os.fdopen(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600), "wb")


def _read(file: gzip.GzipFile) -> Iterator[bytes]:
    """The lines of a file, which have a maximum length."""
    while line := file.readline(LONGEST + 1):
        if len(line) > LONGEST:
            raise _Wrong(f"a line is longer than {LONGEST >> 20} MiB: this is no snapshot of kcm plan --save")
        yield line


class _Wrong(Exception):
    """The file is invalid; the text says why."""


def _lines(snapshot: Snapshot, *, redacted: bool) -> Iterator[bytes]:
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
            snapshot.salt,
        )
    )
    total = 0
    for collection in snapshot.collections.values():
        gvr, items = collection.gvr, collection.items
        named = gvr.group, gvr.version, gvr.plural
        yield codec.encode(_Resource(named, collection.kind, collection.namespaced, len(items)))
        total += len(items)
        for item in items:
            yield item.data if redacted else _clean(item, snapshot.salt)
    yield codec.encode(_End(total))


def _parsed(lines: Iterator[bytes]) -> Snapshot:
    header = _decoded(next(lines), _Header)
    if header.format != FORMAT:
        raise _Wrong("this is no snapshot of kcm plan --save")
    if header.version > VERSION:
        raise _Wrong(f"its format is {header.version}, of a later kcm: this one reads up to {VERSION}")
    collections: dict[GVR, Collection] = {}
    total = 0
    while True:
        line = next(lines)
        if line.startswith(b'{"end":'):
            break
        named = _decoded(line, _Resource)
        if named.count < 0:
            raise _Wrong(f"it says that there are {named.count} objects of a kind")
        gvr = GVR(*named.resource)
        items = [item_of(next(lines).rstrip(b"\n"), gvr, named.kind) for _ in range(named.count)]
        kept = tuple(item for item in items if item is not None)
        if len(kept) != len(items):
            raise _Wrong(f"an object of {gvr} cannot be read")
        total += len(kept)
        collections[gvr] = Collection(gvr, named.kind, named.namespaced, kept)
    if _decoded(line, _End).end != total:
        raise _Wrong("the file is damaged: objects are missing")
    try:
        taken_at = parse_time(header.taken_at).astimezone(UTC)
    except ValueError as error:
        raise _Wrong(f"takenAt: {error}") from None
    return Snapshot(
        taken_at,
        header.server_version,
        header.resource_version,
        collections,
        header.torn,
        header.gaps,
        header.salt,
        header.skipped,
    )


def _decoded(line: bytes, type_: Any) -> Any:
    try:
        return codec.decode(line, type_)
    except codec.DecodeError as error:
        raise _Wrong(f"the file is damaged: {error}") from None


# -- what is left out


def _clean(item: Item, salt: str) -> bytes:
    """An object without its last-applied annotation and values of environment variables."""
    if LAST_APPLIED.encode() not in item.data and b'"env"' not in item.data:
        return item.data
    doc = item.doc
    without_last_applied(doc)
    without_env(doc, salt)
    return codec.encode(doc)


def without_last_applied(doc: Doc) -> None:
    """Remove the last-applied annotation from an object."""
    nested_map(doc, "metadata", "annotations").pop(LAST_APPLIED, None)


def without_env(doc: object, salt: str) -> None:
    """Replace the values of environment variables in all pod specs of an object."""
    if isinstance(doc, list):
        for one in doc:
            without_env(one, salt)
        return
    if not isinstance(doc, dict):
        return
    for name, value in doc.items():
        if name in _CONTAINERS and isinstance(value, list):
            for container in value:
                _container(container, salt)
        elif name != "metadata":
            without_env(value, salt)


def _container(container: object, salt: str) -> None:
    for one in nested_list(container, "env"):
        if value := nested_str(one, "value"):
            one["value"] = digest(value, salt)


def digest(value: str, salt: str) -> str:
    """The replacement of a value: too short to recover the value, long enough to see whether it changes."""
    return f"x-{hmac.digest(bytes.fromhex(salt), value.encode(), 'sha256').hex()[:4]}"
