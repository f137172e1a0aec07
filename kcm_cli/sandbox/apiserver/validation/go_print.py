"""Values of upstream's internal types as errors print them: as JSON, or as a diff of two.

Only errors need it, so nothing is precomputed. The types are those of ``machinery.go_types``, and in the same notation
those of ``go_structs.json.gz`` (``tests/generate/go_structs.txt`` explains it).

upstream: apimachinery pkg/util/validation/field/errors.go, pkg/util/diff/diff.go; go-difflib
"""

import difflib
import json
import re
from collections.abc import Iterable, Mapping
from functools import cache

import msgspec

from kcm_cli.machinery import codec, go_types
from kcm_cli.sandbox.apiserver.data import read_data
from kcm_cli.sandbox.apiserver.types import Tree
from kcm_cli.sandbox.apiserver.validation.labels import shown as shown_selector

_field = re.compile(r"(\w+)(?:=([\w.^$]+))?:(\S+)").findall
_map = re.compile(r"map\[[^]]+\](.+)").fullmatch
_ZEROS: Mapping[str, object] = {"string": "", "bool": False, "int32": 0, "int64": 0}
_INTERNAL_NAMES = {
    "v1.PodTemplateSpec": "core.PodTemplateSpec",
    "v1.PodSpec": "core.PodSpec",
    "v1.PodSecurityContext": "core.PodSecurityContext",
    "v1.Volume": "core.Volume",
    "v1.VolumeSource": "core.VolumeSource",
}
_META_ORDER = (
    "name",
    "generateName",
    "namespace",
    "selfLink",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "labels",
    "annotations",
    "ownerReferences",
    "finalizers",
    "managedFields",
)
_ENTRY_ORDER = ("manager", "operation", "apiVersion", "time", "fieldsType", "fieldsV1", "subresource")
_CONTEXT_LINES = 3
_MOST_LINES = 2_000
"""The limit for the lines of both values: a comparison takes quadratic time, 100 s for a pod with 10,000 variables."""
Change = tuple[str, int, int, int, int]
"""An operation with ranges of old and new lines: tag, old from and to, new from and to (as in difflib)."""
_HTML = {"&": "\\u0026", "<": "\\u003c", ">": "\\u003e", "\u2028": "\\u2028", "\u2029": "\\u2029"}


@cache
def _structs() -> Mapping[str, str]:
    return {**go_types.declarations(), **codec.decode(read_data("go_structs"), dict[str, str])}


def internal(type_: str, value: object) -> object:
    """Convert a versioned value to an internal type (``core.PodSpec``), for encoding as JSON."""
    return _value(type_, value, {})


def _value(type_: str, value: object, above: Tree) -> object:
    type_ = go_types.aliases().get(type_, type_)
    if type_.startswith("*"):
        if value is None and not type_.endswith(".PodSecurityContext"):
            return None
        return _value(type_[1:], value, above)
    if type_.startswith("[]"):
        if value is None:
            return None
        assert isinstance(value, list)
        return [_value(type_[2:], item, above) for item in value]
    if found := _map(type_):
        if value is None:
            return None
        assert isinstance(value, dict)
        return {key: _value(found[1], value[key], above) for key in sorted(value)}
    return _plain(type_, value, above)


def _plain(type_: str, value: object, above: Tree) -> object:
    if type_ in _ZEROS:
        return _ZEROS[type_] if value is None else value
    if type_ == "v1.LabelSelector":
        assert isinstance(value, dict)
        return shown_selector(value)
    if type_ == "runtime.RawExtension":
        return value
    if type_ in ("resource.Quantity", "intstr.IntOrString", "v1.Time"):
        return value if value is not None else {"resource.Quantity": "0", "intstr.IntOrString": 0}.get(type_)
    name = _INTERNAL_NAMES.get(type_, type_)
    return _struct(_structs()[name], value if isinstance(value, dict) else {}, above)


def _struct(declaration: str, doc: Tree, above: Tree) -> Tree:
    result: Tree = {}
    for name, json_name, type_ in _field(declaration):
        source = json_name or name[0].lower() + name[1:]
        if type_ == "~metadata":
            result.update(metadata(doc.get(source) or {}))
        elif source == ".":
            inlined = _value(type_, doc, above)
            assert isinstance(inlined, dict)
            result.update(inlined)
        elif source.startswith("^"):
            result[name] = _value(type_, above.get(source[1:]), above)
        else:
            result[name] = _value(type_, doc.get(source), doc)
    return result


def metadata(meta: Tree) -> Tree:
    """The metadata of an object in the order of its type."""
    shown: Tree = {}
    entries = meta.get("managedFields")
    if isinstance(entries, list) and all(isinstance(one, dict) for one in entries):
        ordered = [{key: _sorted(one[key]) for key in _ENTRY_ORDER if key in one} for one in entries]
        meta = {**meta, "managedFields": ordered}
    for field in _META_ORDER:
        value = meta.get(field)
        if value or (value is not None and field == "deletionGracePeriodSeconds"):
            shown[field] = dict(sorted(value.items())) if isinstance(value, dict) else value
    return shown


def _sorted(value: object) -> object:
    return msgspec.json.decode(msgspec.json.encode(value, order="deterministic"))


def diff(type_: str, old: object, new: object) -> str:
    """The unified diff of two values of an internal type, as indented JSON."""
    return unified(internal(type_, old), internal(type_, new))


def unified(old: object, new: object) -> str:
    """The same for converted values."""
    before, after = _lines(old), _lines(new)
    if len(before) + len(after) > _MOST_LINES:
        return "".join(_hunks(_whole(before, after), before, after))
    matcher = difflib.SequenceMatcher(None, before, after)
    return "".join(_hunks(matcher.get_grouped_opcodes(_CONTEXT_LINES), before, after))


def _whole(before: list[str], after: list[str]) -> Iterable[list[Change]]:
    """One change: the lines between the common first and the common last ones."""
    most = min(len(before), len(after))
    head = next((at for at in range(most) if before[at] != after[at]), most)
    tail = next((at for at in range(most - head) if before[-1 - at] != after[-1 - at]), most - head)
    high, new_high = len(before) - tail, len(after) - tail
    if head < max(high, new_high):
        above, below = min(head, _CONTEXT_LINES), min(tail, _CONTEXT_LINES)
        yield [
            ("equal", head - above, head, head - above, head),
            ("replace", head, high, head, new_high),
            ("equal", high, high + below, new_high, new_high + below),
        ]


def _lines(value: object) -> list[str]:
    text = json.dumps(value, indent=1, ensure_ascii=False)
    for plain, escaped in _HTML.items():
        text = text.replace(plain, escaped)
    return [f"{line}\n" for line in text.split("\n")]


def _hunks(groups: Iterable[list[Change]], before: list[str], after: list[str]) -> Iterable[str]:
    for group in groups:
        first, last = group[0], group[-1]
        yield f"@@ -{_range(first[1], last[2])} +{_range(first[3], last[4])} @@\n"
        for tag, low, high, new_low, new_high in group:
            if tag == "equal":
                yield from (f" {line}" for line in before[low:high])
                continue
            if tag in ("replace", "delete"):
                yield from (f"-{line}" for line in before[low:high])
            if tag in ("replace", "insert"):
                yield from (f"+{line}" for line in after[new_low:new_high])


def _range(start: int, stop: int) -> str:
    length = stop - start
    if length == 1:
        return str(start + 1)
    return f"{start + 1 if length else start},{length}"
