"""What became of the differences that were planned."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from kcm_cli.machinery import codec
from kcm_cli.plan.answer import Difference, Object, Part
from kcm_cli.plan.compare import GENERATED, is_same_value, keyed, short
from kcm_cli.plan.present import Present

HAPPENED, NOT_YET, DIFFERENTLY, UNKNOWN = "happened", "not-yet", "differently", "unknown"
QUIET = frozenset(
    ("ControllerRevision", "CSINode", "Endpoints", "EndpointSlice", "Event", "IPAddress", "Lease", "VolumeAttachment")
)
"""Kinds that follow from others, or change all the time."""
_DRAWN = frozenset(("IPAddress", "VolumeAttachment"))
"""Kinds whose objects are named by an address that the API server draws, or by the uid of a claim."""
_VOLUMES = ("status.volumesAttached", "status.volumesInUse")
_SOFT = (".message", "spec.nodeName", "kubectl.kubernetes.io/last-applied-configuration")
"""Ends of paths that a plan cannot know: they are shown, and decide nothing."""


class Checked(Part, frozen=True):
    """A planned field. planned, before, found: shortened JSON values."""

    path: str
    state: str
    before: object
    planned: object
    found: object


class Step(Part, frozen=True):
    """A planned difference, and what became of it. state: HAPPENED, NOT_YET, DIFFERENTLY or UNKNOWN; detail: why, if it
    did not happen."""

    action: str
    about: Object
    owner: str
    count: int
    state: str
    detail: str
    fields: tuple[Checked, ...] = ()


def steps_of(differences: Iterable[Difference], now: Present, *, over: bool) -> Iterator[Step]:
    """What became of each difference. over: whether more time has passed than was planned. What has other names in each
    run, and follows from others, is left out if it is not there."""
    for one in differences:
        if one.about.kind in _DRAWN and one.action == "created" and one.about not in now.items:
            continue
        state, detail, fields = _outcome(one, now, over=over)
        yield Step(one.action, one.about, one.owner, one.count, state, detail, fields)


_Result = tuple[str, str, tuple[Checked, ...]]


def _outcome(one: Difference, now: Present, *, over: bool) -> _Result:
    if why := now.unread(one.about):
        return UNKNOWN, why, ()
    there = one.about in now.items
    match one.action:
        case "created" if _in_group(one, now):
            return _grown(one, now)
        case "created" | "kept":
            late = "it was deleted" if one.action == "kept" else ""
            return (HAPPENED, "", ()) if there else (DIFFERENTLY if late else NOT_YET, late or "it is not there", ())
        case "missing" if one.about.name:
            return (DIFFERENTLY, "it is there", ()) if there else (HAPPENED, "", ())
        case "deleted":
            return _deleted(one.about, now) if there else (HAPPENED, "", ())
        case "replaced" | "changed" if not there:
            is_due = one.owner.startswith("CronJob/") and not over  # its time may not have come
            return (NOT_YET if one.action == "replaced" or is_due else DIFFERENTLY), "it is not there", ()
        case "replaced" if not now.is_new(one.about):
            return NOT_YET, "it is still the one that was there", ()
        case "replaced" | "changed":
            return _fields(one, codec.decode_doc(now.items[one.about].data), over=over)
        case _:
            return UNKNOWN, "the names are generated", ()


def _deleted(about: Object, now: Present) -> _Result:
    if now.is_new(about):
        return DIFFERENTLY, f"another one of this name was created at {now.meta(about).creation_timestamp}", ()
    return NOT_YET, "it is being deleted" if now.meta(about).deletion_timestamp else "it is still there", ()


def _in_group(one: Difference, now: Present) -> bool:
    """Whether a created object has another name in each run."""
    if one.about in now.items:
        return False
    return not one.about.name or (one.about.kind in GENERATED and not one.owner.startswith("StatefulSet/"))


def objects_made(one: Difference, now: Present) -> Sequence[Object]:
    """The objects of a group that were created since the plan."""
    if one.action != "created" or not _in_group(one, now):
        return ()
    return now.made(one.about.kind, one.about.namespace, one.owner)


def _grown(one: Difference, now: Present) -> _Result:
    found = len([about for about in objects_made(one, now) if not now.meta(about).deletion_timestamp])
    if found == one.count:
        return HAPPENED, "", ()
    return (NOT_YET if found < one.count else DIFFERENTLY), f"{found} of {one.count} are there", ()


def _fields(one: Difference, doc: Mapping[str, Any], *, over: bool) -> _Result:
    fields = tuple(
        Checked(path, _state(one, path, (before, planned, found), over=over), before, planned, found)
        for path, before, planned in ((field.path, field.before, field.after) for field in one.fields)
        for found in (short(_at(doc, path)),)
    )
    hard = [field for field in fields if not field.path.endswith(_SOFT) and _decides(one, field.path)]
    wrong = [field.path for field in hard if field.state == DIFFERENTLY]
    if wrong:
        return DIFFERENTLY, ", ".join(wrong[:3]), fields
    waiting = [field.path for field in hard if field.state == NOT_YET]
    return (NOT_YET, ", ".join(waiting[:3]), fields) if waiting else (HAPPENED, "", fields)


def _decides(one: Difference, path: str) -> bool:
    """Of endpoints, the addresses alone: annotations have the time of what triggered them. Of nodes not the volumes,
    which have the uids of claims in their names."""
    if one.about.kind == "Node" and path.startswith(_VOLUMES):
        return False
    return one.about.kind not in QUIET or not path.startswith("metadata.")


def _state(one: Difference, path: str, values: tuple[object, object, object], *, over: bool) -> str:
    before, planned, found = values
    if is_same_value(planned, found):
        return HAPPENED
    if is_same_value(before, found):
        return NOT_YET
    if one.about.kind in QUIET:
        return HAPPENED  # addresses and names of pods, which are others in each run: their numbers are compared
    moves = path.startswith("status.") or (bool(one.owner) and _is_between(before, planned, found))
    return NOT_YET if moves and not over else DIFFERENTLY


def _is_between(before: object, planned: object, found: object) -> bool:
    """Whether a number is on its way; none is 0."""
    numbers = [0 if one is None else one for one in (before, found, planned)]
    if not all(isinstance(one, int | float) and not isinstance(one, bool) for one in numbers):
        return False
    return numbers in (sorted(numbers), sorted(numbers, reverse=True))  # type: ignore[type-var]  # they are numbers


def _at(value: Any, path: str) -> Any:
    """The value at a path as ``Field`` has it; None where there is none. Names may have dots: the longest one that is
    there counts."""
    rest = path
    while rest and value is not None:
        if rest.startswith("["):
            name, _, rest = rest[1:].partition("]")
            value = (keyed(value) or {}).get(name) if isinstance(value, list) else None
            continue
        rest = rest.removeprefix(".")
        if not isinstance(value, dict):
            return None
        fitting = [name for name in value if rest == name or rest.startswith((f"{name}.", f"{name}["))]
        if not fitting:
            return None
        name = max(fitting, key=len)
        value, rest = value[name], rest[len(name) :]
    return value
