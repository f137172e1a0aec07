"""The state of a cluster without what differs in every run: times, uids, addresses, random names."""

import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from kcm_cli.api.well_known import REGION, ZONE
from kcm_cli.machinery import codec
from kcm_cli.machinery.quoting import bounded
from kcm_cli.sandbox.apiserver.store import Store, Stored
from kcm_cli.sandbox.snapshots import Snapshot
from kcm_cli.testing.perturb.host import OPERATORS, Measure

State = dict[str, list[Any]]
"""Objects by resource and name (``configmaps web``); several where names are generated (``pods web-*``)."""
OTHER_CLIENT = "sandbox.kcm.dev/other-client"
"""An annotation that stands for what another client writes. It is not compared."""
OVERTAKEN = {OTHER_CLIENT: "yes"}
PLACED = frozenset(
    {
        OTHER_CLIENT,
        "nodeName",
        "hostIP",
        "hostIPs",
        "podIP",
        "podIPs",
        "clusterIP",
        "clusterIPs",
        "nodePort",
        "containerID",
        "imageID",
        "volumeName",
        "restartCount",
        "volume.kubernetes.io/selected-node",
        ZONE,
        REGION,
    }
)
"""Fields that tell where something runs, and how often and from what it was started."""
_DROPPED = PLACED | {"uid", "resourceVersion", "generation", "managedFields", "creationTimestamp", "selfLink"}
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)")
_UID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_RANDOM = re.compile(f"{_UID.pattern}|[0-9a-f]{{40,}}")
"""What names have of uids, and of hashes over what differs from run to run."""
_HASHES = ("pod-template-hash", "controller.kubernetes.io/hash", "controller-revision-hash")
"""Labels of ReplicaSets and ControllerRevisions. A template may have what differs in every run, such as a namespace."""
_KOPF = "kopf.zalando.org/KopfFinalizerMarker"
_BETWEEN = re.compile(r"[-._/]")
Generated = Mapping[str, str]
"""The generated names of a run, and what stands for each: ``web-*`` for ``web-x2k8p``."""
NONE_GENERATED: Generated = {}
GONE = "(gone)"
CURRENT = "the object's generation"
"""What stands for an ``observedGeneration`` that is it; an older one says nothing, and is left out."""
ANY, _SOME = object(), object()
"""What may be there or not, and what has to be there: neither needs a certain value."""
_FREE = frozenset({"data", "stringData"})
"""Fields whose keys are the user's."""


def state_of(
    store: Store,
    base: Snapshot,
    namespace: str,
    *,
    measure: Measure = OPERATORS,
    generated: Generated = NONE_GENERATED,
) -> State:
    """The changes since a snapshot. namespace: of the test; its name differs in every run."""
    found: State = defaultdict(list)
    for name, doc in changed(store, base, namespace, measure.uncompared, generated):
        value = plain(doc, namespace, doc["metadata"].get("generation"), generated=generated)
        found[name].append(measure.simplify(value))
    for gvr, before in base.objects.items():
        resource = gvr.group_resource
        for key, stored in before.items() if gvr.plural not in measure.uncompared else ():
            if store.get(gvr, stored.namespace, stored.name) is None:
                found[f"{resource} {key.replace(namespace, 'NAMESPACE') if namespace else key}"].append(GONE)
    for several in found.values():
        several.sort(key=codec.encode_sorted)
    return dict(found)


def changed(
    store: Store, base: Snapshot, namespace: str, uncompared: Collection[str], generated: Generated
) -> Iterator[tuple[str, Any]]:
    """Each object that was created or changed since a snapshot, with its stable name."""
    for gvr in store.sizes():
        if gvr.plural in uncompared:
            continue
        before = base.objects.get(gvr, {})
        resource = gvr.group_resource
        for stored in store.list(gvr):
            known = before.get(stored.key)
            if known is None or not _same(known, stored, namespace):
                yield f"{resource} {name_of(stored.doc, stored.namespace, namespace, generated)}", stored.doc


def _same(known: Stored, stored: Stored, namespace: str) -> bool:
    """Whether an object is as it was, except for what another client wrote."""
    if known.revision == stored.revision:
        return True
    before: Any = known.doc
    after: Any = stored.doc
    if before["metadata"]["uid"] != after["metadata"]["uid"]:
        return False
    alike: bool = plain(before, namespace) == plain(after, namespace)
    return alike


def name_of(doc: Any, space: str, namespace: str, generated: Generated = NONE_GENERATED) -> str:
    """The stable name of an object. namespace: of the test, which is omitted."""
    metadata = doc.get("metadata") or {}
    prefix = metadata.get("generateName")
    name = stable(str(prefix or metadata.get("name", "")), generated) + ("*" if prefix else "")
    name = name.replace(namespace, "NAMESPACE") if namespace else name
    return f"{space}/{name}" if space not in ("", namespace) else name


def generated_name(doc: Any, generated: Generated) -> str:
    """What stands for the object's name if that is generated, or ends in the hash of a template; else empty."""
    metadata = doc["metadata"]
    if prefix := metadata.get("generateName"):
        return f"{stable(str(prefix), generated)}*"
    name, labels = str(metadata.get("name", "")), metadata.get("labels") or {}
    for label in _HASHES:
        if (end := f"-{labels.get(label) or ''}") != "-" and name.endswith(end):
            return f"{stable(name.removesuffix(end), generated)}-*"
    return ""


def stable(name: str, generated: Generated) -> str:
    """A name without what is random in it: uids, hashes, and generated names from which it is derived."""
    if generated:
        ends = [*(found.start() for found in _BETWEEN.finditer(name)), len(name)]
        for start in (0, *(end + 1 for end in ends[:-1])):
            for end in reversed(ends):
                if end > start and (known := generated.get(name[start:end])) is not None:
                    return f"{_RANDOM.sub('*', name[:start])}{known}{stable(name[end:], generated)}"
    return _RANDOM.sub("*", name)


def plain(
    value: Any,
    namespace: str,
    generation: Any = None,
    *,
    free: bool = False,
    generated: Generated = NONE_GENERATED,
) -> Any:
    """A value without what differs in every run. generation: of the object. free: whether its keys are the user's, as
    in data."""
    if isinstance(value, dict):
        if "generateName" in value and "name" in value:
            value = {**value, "name": "*"}
        if value.get("annotations") == OVERTAKEN:
            value = {key: one for key, one in value.items() if key != "annotations"}
        found = {
            key: _in_order(key, plain(one, namespace, generation, free=key in _FREE, generated=generated))
            for key, one in _current(value, generation)
            if free or key not in _DROPPED
        }
        return _with_stable_keys(found, generated)
    if isinstance(value, list):
        return [plain(one, namespace, generation, generated=generated) for one in value]
    if isinstance(value, str):
        text = value.replace(namespace, "NAMESPACE") if namespace else value
        return _RANDOM.sub("UID", TIME.sub("TIME", text))
    return value


def _with_stable_keys(value: dict[str, Any], generated: Generated) -> dict[str, Any]:
    """The same with stable keys. Keys that become equal get numbers, in the order of their values."""
    names = {key: stable(key, generated) for key in value if key}
    if all(key == name for key, name in names.items()):
        return value
    found = {key: one for key, one in value.items() if names.get(key, key) == key}
    for key in sorted((key for key in value if key not in found), key=lambda key: codec.encode_sorted(value[key])):
        name = names[key]
        number = sum(1 for one in found if one == name or one.startswith(f"{name}#"))
        found[f"{name}#{number + 1}" if number else name] = value[key]
    return found


def _current(value: dict[str, Any], generation: Any) -> Iterator[tuple[str, Any]]:
    for key, one in value.items():
        if key != "observedGeneration":
            yield key, one
        elif one == generation:
            yield key, CURRENT


def _in_order(key: str, value: Any) -> Any:
    """Conditions sorted by type, since their order depends on timing."""
    if key != "conditions" or not isinstance(value, list) or not all(isinstance(one, dict) for one in value):
        return value
    return sorted(value, key=lambda one: str(one.get("type")))


def masked(first: State, second: State) -> State:
    """The common part of two states. Objects that only one has are optional, and values that differ may be anything."""
    return {key: _common(first.get(key, ANY), second.get(key, ANY)) for key in {*first, *second}}


def _common(one: Any, other: Any) -> Any:
    if one is ANY or other is ANY:
        return ANY
    if isinstance(one, dict) and isinstance(other, dict):
        return {key: _common(one.get(key, ANY), other.get(key, ANY)) for key in {*one, *other}}
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        return [_common(*pair) for pair in zip(one, other, strict=True)]
    return one if one == other else _SOME


def differences(reference: State, state: State) -> Iterator[str]:
    """The differences from the reference as text; the first few for each object."""
    for key in sorted({*reference, *state}):
        wanted, found = reference.get(key, []), state.get(key, [])
        if wanted is ANY or (wanted is _SOME and found):
            continue
        if wanted is _SOME:
            yield f"{key} is missing"
        elif len(wanted) != len(found):
            yield _count(key, wanted, found)
        elif GONE in found or GONE in wanted:
            if found != wanted:
                yield f"{key} {'is gone' if GONE in found else 'is still there'}"
        else:
            pairs = zip(wanted, found, strict=True)
            yield from [f"{key}: {one}" for pair in pairs for one in _unlike(*pair, "")][:_MOST_SHOWN]


_MOST_SHOWN = 5


def _count(key: str, wanted: list[Any], found: list[Any]) -> str:
    if not found:
        return f"{key} {'is still there' if GONE in wanted else 'is missing'}"
    if not wanted:
        return f"{key} {'is gone' if GONE in found else 'was never deleted, or should not be there'}"
    return f"{key}: there are {len(found)}, not {len(wanted)}"


def _unlike(wanted: Any, found: Any, path: str) -> Iterator[str]:
    if wanted is ANY or wanted is _SOME:
        return
    if isinstance(wanted, dict) and isinstance(found, dict):
        found = _without_spare_finalizer(wanted, found)
        for key in {*wanted, *found}:
            if key not in wanted and found[key] == CURRENT:
                continue
            if key not in wanted:
                yield f"{path}{key} is {_short(found[key])}, and was not set"
            elif key not in found:
                if wanted[key] is not ANY:
                    yield f"{path}{key} is not set, and was {_short(wanted[key])}"
            else:
                yield from _unlike(wanted[key], found[key], f"{path}{key}.")
    elif isinstance(wanted, list) and isinstance(found, list) and len(wanted) == len(found):
        for index, pair in enumerate(zip(wanted, found, strict=True)):
            yield from _unlike(*pair, f"{path}{index}.")
    elif wanted != found:
        yield f"{path.rstrip('.')} is {_short(found)}, and was {_short(wanted)}"


def _without_spare_finalizer(wanted: dict[str, Any], found: dict[str, Any]) -> dict[str, Any]:
    """Without kopf's finalizer if that is not needed: kopf removes it at the next event of the object."""
    finalizers, needed = found.get("finalizers"), wanted.get("finalizers", [])
    if not isinstance(finalizers, list) or _KOPF not in finalizers or not isinstance(needed, list) or _KOPF in needed:
        return found
    others = [one for one in finalizers if one != _KOPF]
    return {key: one for key, one in found.items() if key != "finalizers"} | ({"finalizers": others} if others else {})


def _short(value: Any) -> str:
    return cut(repr(shown(value)))


def cut(text: str) -> str:
    """The text, shortened to fit into a line."""
    return bounded(text, _WIDTH)


def shown(value: Any) -> Any:
    """The value with placeholders for what may be anything."""
    if isinstance(value, dict):
        return {key: shown(one) for key, one in value.items()}
    if isinstance(value, list):
        return [shown(one) for one in value]
    return "anything" if value is ANY or value is _SOME else value


_WIDTH = 120


def counts_above(reference: Mapping[str, int], found: Mapping[str, int]) -> Iterator[tuple[str, int, int]]:
    """(key, count, count in the reference) for keys that are counted more often than in the reference."""
    for key in sorted(found):
        if found[key] > reference.get(key, 0):
            yield key, found[key], reference.get(key, 0)
