"""Compares the results of a run with the change and one without it."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from msgspec.structs import replace

from kcm_cli.api.short_names import kind_in
from kcm_cli.machinery import codec
from kcm_cli.machinery.documents import nested_list, nested_str
from kcm_cli.machinery.errors import FormatError
from kcm_cli.machinery.meta import PartialObject
from kcm_cli.machinery.times import parse_time
from kcm_cli.plan.answer import Difference, Field, Happening, Object
from kcm_cli.plan.observe import Occurrence
from kcm_cli.plan.problems import Key
from kcm_cli.plan.shown_part import Shown
from kcm_cli.plan.simulation import Simulation

_IGNORED_METADATA = frozenset(
    ("resourceVersion", "managedFields", "generation", "uid", "creationTimestamp", "selfLink")
)
_TIMES = frozenset(
    ("lastTransitionTime", "lastUpdateTime", "lastHeartbeatTime", "lastProbeTime", "observedGeneration", "renewTime")
)
_SHOWN_TEXT = 200
_JITTER_S = 60.0
"""Times that differ by less are the same moment of the two runs: which node pulls an image decides about seconds."""
TOGETHER_S = 10.0
"""The same happening to pods of one workload counts as one while no more than this lies between."""
_ORDER = {
    what: rank
    for rank, what in enumerate(
        ("node", "blocked", "evicted", "preempted", "terminating", "failed", "succeeded", "gone", "begun", "created")
        + ("refused", "pending", "unready", "ready", "complete")
    )
}
"""Of what occurs at the same time, the cause comes first."""
_CUT = "…"
_UNKNOWABLE = re.compile(
    r"(?a)\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?Z"
    r'|"message":"[^"\\]*(?:\\.[^"\\]*)*"?'
)
_UID = re.compile(r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b")
_OF_REFERENCE = re.compile(r"^status\.active\[.*\]\.(?:resourceVersion|uid)$")
"""Of a CronJob's references to its Jobs: another one in each run."""
_EMPTY: tuple[object, ...] = (None, {}, [], "")
_OF_CONTAINERS = "spec.containers[", "spec.initContainers["
_KEYED_BY = ("name", "type", "containerPort", "key", "ip")
GENERATED = frozenset(("Pod", "EndpointSlice", "ControllerRevision", "PersistentVolume"))


def differences(base: Simulation, changed: Simulation, shown: Shown) -> list[Difference]:
    """The final differences, sorted by namespace, kind and name."""
    found: list[Difference] = []
    made: Counter[tuple[str, str, str]] = Counter()
    names: dict[tuple[str, str, str], list[str]] = {}
    changes = _Changes(base, changed)
    for key in {**base.finals, **changed.finals}:
        before, after = _end(base, key), _end(changed, key)
        doc = after or before
        if before == after or doc is None:
            continue
        about, owner = _object(doc, key), _owner(doc)
        if not shown.has(about, owner):
            continue
        if key not in base.initial and key not in changed.initial and _is_generated(doc):
            group = about.kind, about.namespace, owner
            made[group] += (after is not None) - (before is not None)
            if after is not None:
                names.setdefault(group, []).append(about.name)
            continue
        if before is None or after is None:
            there = key in base.initial or key in changed.initial
            absent, added = ("deleted", "kept") if there else ("missing", "created")
            action = absent if after is None else added
            found.append(Difference(action, about, owner, 1, ()))
            continue
        fields = tuple(changes.fields(before, after))
        if about.kind == "Pod" and _uid(before) != _uid(after):
            found.append(Difference("replaced", about, owner, 1, tuple(one for one in fields if _is_wish(one.path))))
        elif fields:
            found.append(Difference("changed", about, owner, 1, fields))
    for (kind, space, owner), count in made.items():
        if count:
            chosen = sorted(names.get((kind, space, owner), ()))
            name = chosen[0] if count == 1 and chosen else ""
            action = "created" if count > 0 else "missing"
            found.append(Difference(action, Object(kind, space, name), owner, abs(count), ()))
    return sorted(found, key=lambda one: (one.about.namespace, one.about.kind, one.about.name, one.owner, one.action))


def timeline(base: Simulation, changed: Simulation) -> list[Happening]:
    """What occurs only with the change, in order.

    An occurrence of one run is that of the other if it is the same, by the same client, about the same time: those at
    the same moment are paired first.
    """
    times: dict[Occurrence, list[float]] = {}
    for one in base.occurred:
        times.setdefault(_kind_of(one), []).append(one.at_s)
    rest: dict[Occurrence, list[float]] = {}
    for one in changed.occurred:
        rest.setdefault(_kind_of(one), []).append(one.at_s)
    found: list[Happening] = []
    for kind, at in rest.items():
        other = times.get(kind, [])
        for tolerance_s in (1.0, _JITTER_S) if other else ():
            at, other = _unpaired(at, other, tolerance_s)
        found += _grouped(kind, at)
    return sorted(found, key=lambda one: (one.at_s, _ORDER.get(one.what, len(_ORDER))))


def _kind_of(one: Occurrence) -> Occurrence:
    return replace(one, at_s=0.0)


def _unpaired(left: list[float], right: list[float], tolerance_s: float) -> tuple[list[float], list[float]]:
    """The times of both lists that have no counterpart in the other one. Both are sorted."""
    ours: list[float] = []
    theirs: list[float] = []
    at, other = 0, 0
    while at < len(left) and other < len(right):
        if abs(left[at] - right[other]) <= tolerance_s:
            at, other = at + 1, other + 1
        elif left[at] < right[other]:
            ours.append(left[at])
            at += 1
        else:
            theirs.append(right[other])
            other += 1
    return [*ours, *left[at:]], [*theirs, *right[other:]]


def _grouped(kind: Occurrence, times: list[float]) -> Iterator[Happening]:
    """Occurrences of one kind. They count as one while no more than TOGETHER_S lies between."""
    first, last, count = 0.0, 0.0, 0
    for at_s in times:
        if count and at_s - last > TOGETHER_S:
            yield Happening(first, last, kind.what, kind.about, count, kind.detail, kind.cause)
            count = 0
        first, last, count = first if count else at_s, at_s, count + 1
    if count:
        yield Happening(first, last, kind.what, kind.about, count, kind.detail, kind.cause)


def _end(outcome: Simulation, key: Key) -> dict[str, Any] | None:
    """The final state of an object, even if the run did not write it."""
    data = outcome.finals.get(key, outcome.initial.get(key))
    if data is None and key not in outcome.finals:
        return None
    return codec.decode_doc(data) if data is not None else None


def complete(base: Simulation, changed: Simulation) -> None:
    """Add to each run the objects that only the other one wrote, as they are in the snapshot."""
    for one, other in ((base, changed), (changed, base)):
        for key, data in other.initial.items():
            one.initial.setdefault(key, data)


def _object(doc: Mapping[str, Any], key: Key) -> Object:
    return Object(kind_in(key[0].group, str(doc.get("kind") or key[0].plural)), key[1], key[2])


def _uid(doc: Mapping[str, Any]) -> object:
    return (doc.get("metadata") or {}).get("uid")


def _is_wish(path: str) -> bool:
    """Whether a field of a pod is worth reporting when another pod of the same name replaces it."""
    return path == "spec.nodeName" or (path.startswith(_OF_CONTAINERS) and path.endswith((".image", ".resources")))


def _owner(doc: Mapping[str, Any]) -> str:
    refs = [ref for ref in nested_list(doc, "metadata", "ownerReferences") if isinstance(ref, dict)]
    chosen = next((ref for ref in refs if ref.get("controller")), refs[0] if refs else None)
    if chosen is None:
        return ""
    group = nested_str(chosen, "apiVersion").rpartition("/")[0]
    return f"{kind_in(group, nested_str(chosen, 'kind'))}/{chosen.get('name')}"


def _is_generated(doc: Mapping[str, Any]) -> bool:
    """Whether the name differs in every run. Pods of StatefulSets keep theirs."""
    metadata = doc.get("metadata") or {}
    if metadata.get("generateName"):
        return True
    return doc.get("kind") in GENERATED and not _owner(doc).startswith("StatefulSet/")


# -- fields


class _Changes:
    """The differences between the objects of two runs, without what differs in every run: uids and times."""

    def __init__(self, base: Simulation, changed: Simulation) -> None:
        self._base, self._changed = _objects_by_uid(base), _objects_by_uid(changed)

    def fields(self, before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[Field]:
        """The fields that differ, with shortened values."""
        for path, old, new in self._between("", before, after):
            yield Field(path, short(old), short(new))

    def _between(self, path: str, old: Any, new: Any) -> Iterator[tuple[str, Any, Any]]:
        if _OF_REFERENCE.search(path):
            return
        if old == new or (old in _EMPTY and new in _EMPTY and not path.startswith("spec.")):
            return
        if isinstance(old, dict) and isinstance(new, dict):
            for name in sorted({**old, **new}):
                if name in _TIMES or (path == "metadata" and name in _IGNORED_METADATA):
                    continue
                yield from self._between(f"{path}.{name}" if path else name, old.get(name), new.get(name))
            return
        if isinstance(old, list) and isinstance(new, list):
            one, other = keyed(old), keyed(new)
            if one is not None and other is not None:
                for name in sorted({**one, **other}):
                    yield from self._between(f"{path}[{name}]", one.get(name), other.get(name))
                return
        if not self._mean_the_same(old, new):
            yield path, old, new

    def _mean_the_same(self, old: Any, new: Any) -> bool:
        if type(old) is not type(new):
            return False
        one, other = codec.as_text(old), codec.as_text(new)
        if _UID.sub(lambda uid: self._base.get(uid[0], uid[0]), one) == _UID.sub(
            lambda uid: self._changed.get(uid[0], uid[0]), other
        ):
            return True
        try:
            return abs((parse_time(one) - parse_time(other)).total_seconds()) < _JITTER_S
        except FormatError:
            return False


def _objects_by_uid(outcome: Simulation) -> dict[str, str]:
    """The objects that a run wrote, as resource/namespace/name by uid."""
    found: dict[str, str] = {}
    for (gvr, namespace, name), data in outcome.finals.items():
        if data is None:
            continue
        written = codec.decode_or_none(data, PartialObject)
        if written is not None and (uid := written.metadata.uid):  # else odd metadata: its uid is not known
            found[uid] = f"{gvr.plural}.{gvr.group}/{namespace}/{name}"
    return found


def is_same_value(planned: object, found: object) -> bool:
    """Whether a planned value, shortened, is that of a cluster, but for what no plan knows: uids, times and messages.
    Of long ones, the beginning is compared."""
    if planned == found or (planned in _EMPTY and found in _EMPTY):
        return True
    if isinstance(planned, int | float) or isinstance(found, int | float):
        return False
    (one, is_cut), (other, other_is_cut) = (_knowable(codec.as_text(value)) for value in (planned, found))
    size = min(len(one) if is_cut else len(other), len(other) if other_is_cut else len(one))
    return one[:size] == other[:size] if is_cut or other_is_cut else one == other


def _knowable(text: str) -> tuple[str, bool]:
    """What a plan can know of a value; of a shortened one up to its last comma, and that it is one."""
    is_cut = text.endswith(_CUT)
    if is_cut:
        text = text.removesuffix(_CUT)
        text = text.rpartition(",")[0] or text
    return _UNKNOWABLE.sub("", text), is_cut


def keyed(items: list[Any]) -> dict[str, Any] | None:
    """The items of a list by the key that identifies them; None if there is none."""
    if not all(isinstance(item, dict) for item in items):
        return None
    for key in _KEYED_BY:
        names = [str(item[key]) for item in items if key in item]
        if len(names) == len(items) == len(set(names)):
            return dict(zip(names, items, strict=True))
    return None


def short(value: Any) -> Any:
    """A value as a field of a difference has it."""
    if isinstance(value, str) and len(value) > _SHOWN_TEXT:
        return f"{value[:_SHOWN_TEXT]}{_CUT}"
    if isinstance(value, dict | list):
        text = codec.encode_sorted(value).decode()
        return value if len(text) <= 2 * _SHOWN_TEXT else f"{text[:_SHOWN_TEXT]}{_CUT}"
    return value
