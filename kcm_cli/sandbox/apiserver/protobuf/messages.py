"""What each number in a message stands for, as upstream's definitions of messages have it."""

from collections.abc import Iterable
from functools import cache

import msgspec

from kcm_cli.sandbox.apiserver.data import read_data


class Field(msgspec.Struct, frozen=True):
    """A field of a message: ``name`` is that in JSON, empty for what is embedded; ``type`` a message or a scalar."""

    name: str
    type: str
    repeated: bool
    keyed: bool


Message = dict[int, Field]
_META_KINDS = frozenset(["APIGroup", "APIGroupList", "APIResourceList", "APIVersions", "DeleteOptions", "Status"])


@cache
def message(name: str) -> Message | None:
    """The fields of a message (``core.v1.PodSpec``) by number, or None where its form is not known."""
    found = _data().get(name)
    return None if found is None else {number: _field(field, type_) for number, field, type_ in found}


def message_names() -> Iterable[str]:
    """The messages whose form is known."""
    return _data()


def message_of(api_version: str, kind: str) -> str:
    """The message's name of a kind (``apps/v1``, ``Deployment``: ``apps.v1.Deployment``)."""
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
    return msgspec.json.decode(read_data("protobuf"), type=dict[str, list[tuple[int, str, str]]])
