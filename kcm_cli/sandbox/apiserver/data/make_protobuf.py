"""Makes protobuf.json: the numbers that the fields of each kind have in the protobuf form.

    python -m kcm_cli.sandbox.apiserver.data.make_protobuf KUBECTL

KUBECTL is an installed kubectl of v1.33 or before: programs of Go carry the descriptors of their messages, packed.
Later ones have none, so that fields that are newer than it have no number here. Which of the messages' fields
are embedded in JSON is read from the installed package kubernetes-validate; kinds that the server does not serve
are left out.
"""

import json
import re
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path

from kcm_cli.machinery import codec
from kcm_cli.sandbox.apiserver.data.make import SOURCE
from kcm_cli.sandbox.apiserver.protobuf.wire import fields
from kcm_cli.sandbox.apiserver.registry.catalog import Catalog

_PACKED = re.compile(rb"\x1f\x8b\x08")
_MOST = 1 << 20
_SCALARS = {1: "float", 3: "int", 4: "int", 5: "int", 8: "bool", 9: "string", 12: "bytes"}
_REPEATED = 3

Field = tuple[int, str, str]
Messages = dict[str, list[Field]]


def main(program: Path) -> None:
    """Write protobuf.json beside this file."""
    messages: Messages = {}
    maps: dict[str, str] = {}
    for descriptor in _descriptors(program.read_bytes()):
        _read_file(descriptor, messages, maps)
    for name, found in messages.items():
        messages[name] = [(number, field, maps.get(type_, type_)) for number, field, type_ in found]
    _inline(messages)
    needed = _needed(messages)
    lines = []
    for name in sorted(needed):
        short = [(number, field, _short(type_)) for number, field, type_ in sorted(messages[name])]
        lines.append(f"{json.dumps(_short(name))}:{codec.encode(short).decode()}")
    Path(__file__).with_name("protobuf.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")


def _descriptors(data: bytes) -> Iterator[bytes]:
    for match in _PACKED.finditer(data):
        try:
            found = zlib.decompressobj(31).decompress(data[match.start() : match.start() + _MOST])
        except zlib.error:
            continue
        if found.startswith(b"\x0a") and b"k8s.io/" in found[:12] and b"/generated.proto" in found[:120]:
            yield found


def _read_file(descriptor: bytes, messages: Messages, maps: dict[str, str]) -> None:
    parts = _parts(descriptor)
    package = parts[2][0].decode()
    for message in parts.get(4, []):
        _read_message(package, message, messages, maps)


def _read_message(scope: str, message: bytes, messages: Messages, maps: dict[str, str]) -> None:
    parts = _parts(message)
    name = f"{scope}.{parts[1][0].decode()}"
    found = [_field(field) for field in parts.get(2, [])]
    options = parts.get(7, [])
    if options and dict(fields(options[0])).get(7):
        maps["[]" + name] = "{}" + found[1][2]
        return
    messages[name] = found
    for nested in parts.get(3, []):
        _read_message(name, nested, messages, maps)


def _field(data: bytes) -> Field:
    parts = dict(fields(data))
    name, number, label, type_ = parts[1], parts[3], parts[4], parts[5]
    assert isinstance(name, bytes)
    assert isinstance(number, int)
    assert isinstance(type_, int)
    named = parts.get(6, b"")
    assert isinstance(named, bytes)
    known = named.decode().removeprefix(".") or _SCALARS[type_]
    return number, name.decode(), ("[]" if label == _REPEATED else "") + known


def _parts(message: bytes) -> dict[int, list[bytes]]:
    found: dict[int, list[bytes]] = {}
    for number, value in fields(message):
        if isinstance(value, bytes):
            found.setdefault(number, []).append(value)
    return found


def _inline(messages: Messages) -> None:
    """Names as JSON has them; a field that it does not have holds what is embedded: its name becomes empty."""
    definitions = json.loads((SOURCE / "_definitions.json").read_text())["$defs"]
    for name, found in messages.items():
        known = definitions.get(name.replace("k8s.io.", "io.k8s.", 1), {}).get("properties")
        if known is None:
            continue
        for place, (number, field, type_) in enumerate(found):
            if field not in known:
                same = [key for key in known if key.lower() == field.lower()]
                found[place] = number, *(same or ([""] if type_ in messages else [field])), type_


def _needed(messages: Messages) -> set[str]:
    wanted = {"k8s.io.apimachinery.pkg.apis.meta.v1.DeleteOptions"}
    for served in Catalog():
        info = served.info
        wanted.add(_message(info.gvr.group, info.gvr.version, info.kind))
        for sub in served.subresources.values():
            wanted.add(_message(sub.group or info.gvr.group, sub.version or info.gvr.version, sub.kind))
    needed: set[str] = set()
    while wanted:
        name = wanted.pop()
        if name in messages and name not in needed:
            needed.add(name)
            wanted |= {type_.removeprefix("[]").removeprefix("{}") for _, _, type_ in messages[name]}
    return needed


def _message(group: str, version: str, kind: str) -> str:
    return f"k8s.io.api.{group.partition('.')[0] or 'core'}.{version}.{kind}"


def _short(type_: str) -> str:
    for prefix in (
        "k8s.io.apimachinery.pkg.api.",
        "k8s.io.apimachinery.pkg.apis.",
        "k8s.io.apimachinery.pkg.",
        "k8s.io.api.",
    ):
        type_ = type_.replace(prefix, "")
    return type_


if __name__ == "__main__":
    main(Path(sys.argv[1]))
