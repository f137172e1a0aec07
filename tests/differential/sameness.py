"""Whether two servers said the same, apart from what no two servers share: uids, times, versions, allocated numbers."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

_UNSTABLE = (
    (re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"), "<uid>"),
    (
        re.compile(r"\b20[2-9]\d-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?( ?(Z|[+-]\d\d:?\d\d)( UTC)?)?( m=\+[\d.]+)?"),
        "<time>",
    ),
    (re.compile(r"\bkube-api-access-[a-z0-9]{5}\b"), "kube-api-access-<rand>"),
    (re.compile(r"(current|[Rr]esource ?[Vv]ersion)(: | of |\\*\"?:\\*\"?)\d+"), r"\1\2<version>"),
)
_EMPTY = re.compile(r'(Invalid value: |": )(?:null|\[\]|\{\}|"")(?=[:,\n]|$)')
_ALLOCATED = ("clusterIP", "clusterIPs", "nodePort", "healthCheckNodePort")
_UNORDERED = ("resourceRules", "nonResourceRules")
_OF_DISTRIBUTIONS = "openshift-service-ca.crt"
"""A source that the API servers of some distributions add to every token volume."""


@dataclass(frozen=True)
class Answer:
    """What a server said: the code, the warnings, and the document (text where it is none)."""

    status: int
    warnings: tuple[str, ...]
    body: Any


def differences(real: Answer, ours: Answer, asked: str) -> list[str]:
    """A line for each place that differs; ``asked``: the request's text, values in which are not allocated ones."""
    lines = [*_between("warnings", [*map(stable, real.warnings)], [*map(stable, ours.warnings)])]
    if real.status != ours.status:
        return [*lines, f"{real.status}: {_said(real)}", f"{ours.status}: {_said(ours)} (ours)"]
    return lines + [*_between("", masked(real.body, asked), masked(ours.body, asked))]


def _said(answer: Answer) -> str:
    """The message of an error."""
    body = answer.body
    if not isinstance(body, dict):
        return str(body)[:400]
    return str(body.get("message", "done"))[:400] if body.get("kind") == "Status" else "done"


def masked(value: Any, asked: str, key: str = "") -> Any:
    if isinstance(value, Mapping):
        return {stable(name): masked(one, asked, name) for name, one in value.items() if name != "resourceVersion"}
    if isinstance(value, list):
        items = [masked(one, asked, key) for one in value if not _foreign(one)]
        unordered = key in _UNORDERED or (key == "causes" and _conflicts(items))
        return sorted(items, key=partial(json.dumps, sort_keys=True)) if unordered else items
    if key in _ALLOCATED and value not in ("", "None") and str(value) not in asked:
        return f"<{key}>"
    return stable(value) if isinstance(value, str) else value


def _conflicts(causes: list[Any]) -> bool:
    """Whether they are the conflicts of an apply, which upstream keeps in a map."""
    return all(isinstance(one, dict) and one.get("reason") == "FieldManagerConflict" for one in causes)


def _foreign(item: object) -> bool:
    source = item.get("configMap") if isinstance(item, dict) else None
    return isinstance(source, dict) and source.get("name") == _OF_DISTRIBUTIONS


def stable(text: str) -> str:
    for pattern, token in _UNSTABLE:
        text = pattern.sub(token, text)
    return text


def _between(place: str, real: Any, ours: Any) -> Iterator[str]:
    if isinstance(real, dict) and isinstance(ours, dict):
        for key in sorted(real.keys() | ours.keys()):
            yield from _between(f"{place}.{key}".lstrip("."), real.get(key, ...), ours.get(key, ...))
    elif isinstance(real, list) and isinstance(ours, list) and len(real) == len(ours):
        for index, (one, other) in enumerate(zip(real, ours, strict=True)):
            yield from _between(f"{place}[{index}]", one, other)
    elif real != ours and not _same_text(real, ours):
        one, other = _shown(real, ours), _shown(ours, real)
        yield f"{place}: {one}\n{' ' * len(place)}  {other} (ours)"


def _same_text(real: object, ours: object) -> bool:
    """Whether two texts differ in nothing but how errors print what is empty (docs/deviations.md)."""
    if not (isinstance(real, str) and isinstance(ours, str)):
        return False
    one, other = (_EMPTY.sub(r"\1<empty>", text) for text in (real, ours))
    return one == other


def _shown(value: object, other: object) -> str:
    """A value, long texts from a little before where they part."""
    if value is ...:
        return "(absent)"
    if not (isinstance(value, str) and isinstance(other, str)):
        return repr(value)[:400]
    parted = next(
        (at for at, (a, b) in enumerate(zip(value, other, strict=False)) if a != b), min(len(value), len(other))
    )
    start = max(0, parted - 60)
    return f"{'…' if start else ''}{value[start : start + 300]!r}"
