"""The Go types under v1.PodTemplateSpec, v1.36: names and order of fields, names in JSON, types.

Facts that the hash of a pod template depends on (``machinery.hashes``). ``tests/generate/go_types.txt`` has them, and
explains the notation.
"""

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from kcm_cli.machinery import codec
from kcm_cli.machinery.packed import unpacked

DATA = Path(__file__).with_name("go_types.json.gz")
_field = re.compile(r"(\w+)(?:=([\w.]+))?:(\S+)")


@cache
def _data() -> Mapping[str, dict[str, str]]:
    return codec.decode(unpacked(DATA), dict[str, dict[str, str]])


def declarations() -> dict[str, str]:
    """The fields of each Go type, in order, as text (``Field:type Field=json:type``)."""
    return _data()["structs"]


@cache
def structs() -> Mapping[str, tuple[tuple[str, str, str], ...]]:
    """The fields of each Go type, in order: name, name in JSON (``.`` for an inlined struct), Go type."""
    return {
        type_: tuple((name, json or name[0].lower() + name[1:], of) for name, json, of in _field.findall(declaration))
        for type_, declaration in declarations().items()
    }


@cache
def required() -> Mapping[str, frozenset[str]]:
    """For each Go type, the JSON names of the fields that are written even if they are empty, since they lack
    ``omitempty``.
    """
    return {type_: frozenset(names.split()) for type_, names in _data()["required"].items()}


def aliases() -> Mapping[str, str]:
    """The underlying types of type aliases."""
    return _data()["alias"]
