"""Writes documents as YAML in the format of upstream's library.

A string that YAML would read as another type is in double quotes, one with line breaks is a literal block. Keys are in
natural order: letters last, numbers by value.

upstream: sigs.k8s.io/yaml goyaml.v2 (encode.go, resolve.go, sorter.go)
"""

import re
from functools import cmp_to_key
from typing import Any

import yaml

_WORDS = re.compile(
    r"~|null|Null|NULL|y|Y|yes|Yes|YES|on|On|ON|n|N|no|No|NO|off|Off|OFF|true|True|TRUE|false|False|FALSE|"
    r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)|"
)
_NUMBER = re.compile(
    r"[-+]?(?:0[xX][0-9a-fA-F_]+|0[bB][01_]+|0[oO]?[0-7_]+|[0-9][0-9_]*)|"
    r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|"
    r"[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?"
)
_TIME = re.compile(
    r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}"
    r"(?:(?:[Tt]|[ \t]+)[0-9]{1,2}:[0-9]{1,2}:[0-9]{1,2}(?:\.[0-9]*)?(?:[ \t]*(?:Z|[-+][0-9]{1,2}(?::[0-9]{1,2})?))?)?"
)
_DIGITS = re.compile(r"[0-9]*")
_Base: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


class _Dumper(_Base):  # type: ignore[misc]
    def ignore_aliases(self, data: object) -> bool:
        return True


def _text(dumper: _Dumper, value: str) -> yaml.Node:
    style = None
    if "\n" in value:
        style = "|"
    elif _WORDS.fullmatch(value) or _NUMBER.fullmatch(value) or _TIME.fullmatch(value):
        style = '"'
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style)  # type: ignore[no-any-return]


def _mapping(dumper: _Dumper, value: dict[str, object]) -> yaml.Node:
    pairs = [(key, value[key]) for key in sorted(value, key=natural)]
    return dumper.represent_mapping("tag:yaml.org,2002:map", pairs)  # type: ignore[no-any-return]


def _compare(first: str, second: str) -> int:
    for place, (one, other) in enumerate(zip(first, second, strict=False)):
        if one == other:
            continue
        letters = one.isalpha(), other.isalpha()
        if any(letters):
            return (1 if one > other else -1) if all(letters) else (1 if letters[0] else -1)
        return _compare_numbers(first, second, place)
    return len(first) - len(second)


def _compare_numbers(first: str, second: str, place: int) -> int:
    lead = ""
    if "0" in (first[place], second[place]):
        head = first[:place]
        lead = "1" if head[len(head.rstrip("0123456789")) :].strip("0") else ""
    runs = [_DIGITS.match(text, place) for text in (first, second)]
    one, other = (run[0] if run is not None else "" for run in runs)
    values = int(lead + one or "0"), int(lead + other or "0")
    if values[0] != values[1]:
        return values[0] - values[1]
    if len(one) != len(other):
        return len(one) - len(other)
    return 1 if first[place] > second[place] else -1


natural = cmp_to_key(_compare)
"""The sort key of mapping keys."""

_PLAIN_THERE = ("tag:yaml.org,2002:value", "tag:yaml.org,2002:merge")
_Dumper.yaml_implicit_resolvers = {
    char: [(tag, pattern) for tag, pattern in resolvers if tag not in _PLAIN_THERE]
    for char, resolvers in _Dumper.yaml_implicit_resolvers.items()
}
_Dumper.add_representer(str, _text)
_Dumper.add_representer(dict, _mapping)


def dump(document: object) -> str:
    """A document, with a line break at its end."""
    return yaml.dump(document, Dumper=_Dumper, default_flow_style=False, allow_unicode=True, sort_keys=False)
