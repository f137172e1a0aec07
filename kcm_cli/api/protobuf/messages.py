"""The fields of upstream's protobuf messages by number."""

from functools import cache
from pathlib import Path

import msgspec

from kcm_cli.machinery import codec
from kcm_cli.machinery.packed import unpacked

DATA = Path(__file__).with_name("messages.json.gz")
"""``tests.generate.protobuf`` makes it."""


class Field(msgspec.Struct, frozen=True):
    """A field. name: its JSON name, empty for an embedded message. type: a message or scalar. keyed: it is a map."""

    name: str
    type: str
    repeated: bool
    keyed: bool


Message = dict[int, Field]
_META_KINDS = frozenset(["APIGroup", "APIGroupList", "APIResourceList", "APIVersions", "DeleteOptions", "Status"])


def message(name: str) -> Message | None:
    """The fields of a message (``core.v1.PodSpec``) by number, or None for an unknown message."""
    return _message(name) if name in _data() else None


@cache
def _message(name: str) -> Message:
    return {number: _field(field, type_) for number, field, type_ in _data()[name]}


def message_of(api_version: str, kind: str) -> str:
    """The name of a kind's message: ``apps.v1.Deployment`` for ``apps/v1``, ``Deployment``."""
    group, _, version = api_version.rpartition("/")
    if kind in _META_KINDS or group == "meta.k8s.io":
        return f"meta.v1.{kind}"
    return f"{group.partition('.')[0] or 'core'}.{version}.{kind}"


def _field(name: str, type_: str) -> Field:
    form = type_[:2]
    plain = type_.removeprefix("[]").removeprefix("{}")
    return Field(name, plain, form == "[]", form == "{}")


@cache
def _data() -> dict[str, list[tuple[int, str, str]]]:
    return codec.decode(unpacked(DATA), dict[str, list[tuple[int, str, str]]])
