"""Compares a plan that was saved with what the cluster became: what happened as planned, what has not yet, what went
another way, and what nobody planned.

A later snapshot is what is compared with. It shows objects, not requests: a write that left nothing behind is not seen.
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec

from kcm_cli.api.discovery import SERVICE_NAME
from kcm_cli.machinery import codec
from kcm_cli.machinery.errors import FormatError
from kcm_cli.machinery.integers import parse_int64
from kcm_cli.machinery.meta import OwnerReference, View
from kcm_cli.machinery.times import format_time, parse_time
from kcm_cli.plan.answer import API_VERSION, KIND, Answer, Availability, Difference, Object, Part
from kcm_cli.plan.compare import GENERATED, is_same_value, keyed, short
from kcm_cli.plan.kinds import CONFIG_MAPS, KINDS
from kcm_cli.plan.losses import SERVICES
from kcm_cli.plan.observe import PODS, SLICES, Seen, endpoints_of, is_ready, seen, serves
from kcm_cli.plan.snapshot import Item, PlanError, Snapshot, cluster_of

HAPPENED, NOT_YET, DIFFERENTLY, UNKNOWN = "happened", "not-yet", "differently", "unknown"
MOST_BYTES = 256 << 20
_MARGIN_S = 60.0
"""How much later than planned what happens is still on its way."""
_QUIET = frozenset(
    ("ControllerRevision", "CSINode", "Endpoints", "EndpointSlice", "Event", "IPAddress", "Lease", "VolumeAttachment")
)
"""Kinds that follow from others, or change all the time."""
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


class Unexpected(Part, frozen=True):
    """What no plan has. what: ``created``, ``changed`` or ``deleting``. by: the field manager, if known. at: the last
    time. count: of the owner's objects."""

    what: str
    about: Object
    owner: str
    count: int
    by: str
    at: str


class Ready(Part, frozen=True):
    """Ready pods of a workload, or endpoints of a Service. planned: for this moment; lowest, final: of the whole plan;
    found: now."""

    about: Object
    state: str
    wanted: int
    planned: int
    lowest: int
    final: int
    found: int


class Comparison(Part, frozen=True):
    """A saved plan, and the cluster at another time.

    planned_at: when the plan's snapshot was taken. begun_at: the first change of an object of the plan since then; ""
    if there is none. read_at: when the cluster was read. elapsed_s: between both. settles_s: after which all that was
    planned should have happened.
    """

    api_version: str
    kind: str
    changes: tuple[str, ...]
    planned_at: str
    begun_at: str
    read_at: str
    elapsed_s: float
    settles_s: float
    steps: tuple[Step, ...]
    unexpected: tuple[Unexpected, ...]
    availability: tuple[Ready, ...]
    notes: tuple[str, ...]

    def count(self, state: str) -> int:
        """The planned differences in this state."""
        return sum(one.state == state for one in self.steps)

    @property
    def low(self) -> int:
        """Workloads and Services with fewer ready than planned."""
        return sum(one.state == DIFFERENTLY for one in self.availability)

    @property
    def late(self) -> bool:
        """Whether more time has passed than was planned."""
        return bool(self.begun_at) and self.elapsed_s > self.settles_s

    @property
    def as_planned(self) -> bool:
        """Whether nothing went another way."""
        wrong = self.count(DIFFERENTLY) or self.low or self.unexpected
        return not (wrong or (self.late and self.count(NOT_YET)))

    @property
    def complete(self) -> bool:
        """Whether all that was planned has happened, as far as that is known."""
        return not self.count(NOT_YET)

    def json(self) -> bytes:
        """The JSON document, indented, with a final newline."""
        return msgspec.json.format(msgspec.json.encode(self), indent=2) + b"\n"


def read_plan(path: str) -> Answer:
    """A saved plan: the output of ``kcm plan -o json``. Raises PlanError with one line."""
    try:
        with Path(path).open("rb") as file:
            data = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise PlanError(f"--compare: cannot read {path}: {error.strerror or error}") from None
    if len(data) > MOST_BYTES:
        raise PlanError(f"--compare: {path} has more than {MOST_BYTES >> 20} MiB, and is no plan")
    try:
        head = msgspec.json.decode(data, type=_Kind)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise PlanError(f"--compare: {path} is not a plan in JSON, or was cut short ({error}): {_HOW}") from None
    if head.kind != KIND:
        raise PlanError(f"--compare: {path} has the kind {head.kind or 'none'!r:.80}, and is no plan: {_HOW}")
    if head.api_version != API_VERSION:
        raise PlanError(
            f"--compare: {path} has the version {head.api_version!r:.80}, and this kcm reads {API_VERSION}: "
            "use the kcm that made it"
        )
    try:
        answer = msgspec.json.decode(data, type=Answer)
        parse_time(answer.source.taken_at)
    except (msgspec.DecodeError, RecursionError, FormatError) as error:
        raise PlanError(f"--compare: {path} is not a whole plan ({error}): {_HOW}") from None
    if not answer.changes:
        raise PlanError(f"--compare: {path} is a takeover audit, which plans no change: {_HOW}")
    return answer


_HOW = "save one with kcm plan CHANGE... -o json"


class _Kind(msgspec.Struct, frozen=True, rename="camel"):
    api_version: str = ""
    kind: str = ""


def needed(answer: Answer) -> tuple[str, ...]:
    """What --include has to name, so that the objects of a plan are read."""
    kinds = {one.about.kind for one in answer.differences}
    usual = {kind.kind for kind in KINDS} | {CONFIG_MAPS.kind, "Secret", "Event", "CustomResourceDefinition"}
    wanted = ((CONFIG_MAPS.key, CONFIG_MAPS.kind in kinds), ("custom", bool(kinds - usual)))
    return tuple(word for word, wants in wanted if wants)


class _Managed(View, frozen=True, gc=False):
    manager: str = ""
    time: str = ""
    subresource: str = ""


class _Meta(View, frozen=True, gc=False):
    resource_version: str = ""
    creation_timestamp: str = ""
    deletion_timestamp: str = ""
    owner_references: tuple[OwnerReference, ...] = ()
    managed_fields: tuple[_Managed, ...] = ()


class _Head(View, frozen=True, gc=False):
    metadata: _Meta = _Meta()


class _Now:
    """The cluster as it is. since, version: when the plan's snapshot was taken. Times of objects are whole seconds: of
    what happened in that second, versions tell."""

    def __init__(self, snapshot: Snapshot, since: datetime, version: str) -> None:
        self.snapshot = snapshot
        self._since, self._version = since, parse_int64(version)
        self.kinds = {one.kind for one in snapshot.collections.values()}
        self.items: dict[Object, Item] = {}
        self._heads: dict[Object, _Meta] = {}
        self._placed: dict[tuple[str, str], list[Object]] = {}
        self._made: dict[tuple[str, str], dict[str, list[Object]]] = {}
        for collection in snapshot.collections.values():
            for item in collection.items:
                about = Object(collection.kind, item.namespace, item.name)
                self.items[about] = item
                self._placed.setdefault((about.kind, about.namespace), []).append(about)

    def meta(self, about: Object) -> _Meta:
        """Its metadata; empty if they cannot be read."""
        found = self._heads.get(about)
        if found is None:
            try:
                found = codec.decode(self.items[about].data, _Head).metadata
            except codec.DecodeError:
                found = _Meta()
            self._heads[about] = found
        return found

    def is_new(self, about: Object) -> bool:
        """Whether it was created after the plan's snapshot."""
        meta = self.meta(about)
        return self.is_later(meta, meta.creation_timestamp)

    def is_later(self, meta: _Meta, time: str) -> bool:
        """Whether a time of an object is after the plan's snapshot."""
        version = parse_int64(meta.resource_version)
        if version is not None and self._version is not None and version <= self._version:
            return False  # it has not changed since
        return _time(time) >= self._since

    def made(self, kind: str, namespace: str, owner: str) -> Sequence[Object]:
        """The new objects of an owner."""
        by_owner = self._made.get((kind, namespace))
        if by_owner is None:
            by_owner = self._made[kind, namespace] = {}
            for about in filter(self.is_new, self._placed.get((kind, namespace), ())):
                by_owner.setdefault(self.owner(about), []).append(about)
        return by_owner.get(owner, ())

    def owner(self, about: Object) -> str:
        """``Kind/name`` of what it belongs to."""
        refs = self.meta(about).owner_references
        chosen = next((ref for ref in refs if ref.controller), refs[0] if refs else None)
        return f"{chosen.kind}/{chosen.name}" if chosen is not None else ""

    def changed(self, about: Object) -> _Managed | None:
        """The last change of more than its status since the plan."""
        meta = self.meta(about)
        found = [one for one in meta.managed_fields if one.subresource != "status"]
        last = max(found, key=lambda one: _time(one.time), default=None)
        return last if last is not None and self.is_later(meta, last.time) else None


def compare(answer: Answer, snapshot: Snapshot) -> Comparison:
    """Compare a plan with the cluster as it is in a later snapshot. Raises PlanError for one of another cluster."""
    _check(answer, snapshot)
    since = parse_time(answer.source.taken_at)
    now = _Now(snapshot, since, answer.source.resource_version)
    begun = _begun(answer, now)
    elapsed_s = max(0.0, (snapshot.taken_at - begun).total_seconds()) if begun is not None else 0.0
    settles_s = max((one.until_s for one in answer.timeline), default=answer.horizon_s) + _MARGIN_S
    over = begun is not None and elapsed_s > settles_s
    steps = tuple(_steps(answer.differences, now, over=over))
    return Comparison(
        API_VERSION,
        "Comparison",
        answer.changes,
        answer.source.taken_at,
        format_time(begun) if begun is not None else "",
        format_time(snapshot.taken_at),
        elapsed_s,
        settles_s,
        steps,
        tuple(_unexpected(answer, now)),
        tuple(_available(answer.availability, now, elapsed_s, over=over)) if begun is not None else (),
        tuple(_notes(answer, snapshot)),
    )


def _check(answer: Answer, snapshot: Snapshot) -> None:
    there, here = answer.source.cluster, cluster_of(snapshot)
    if there and here and there != here:
        raise PlanError(
            f"--compare: the plan is of another cluster: its namespace kube-system has the uid {there:.64}, here it is "
            f"{here}; name the cluster's kubeconfig"
        )
    versions = parse_int64(answer.source.resource_version), parse_int64(snapshot.resource_version)
    if versions[0] is not None and versions[1] is not None and versions[1] < versions[0]:
        raise PlanError(
            f"--compare: the plan is of a later state (resource version {versions[0]}) than the cluster's "
            f"({versions[1]}): it is of another cluster, of one before it was restored, or the snapshot is an older one"
        )


def _begun(answer: Answer, now: _Now) -> datetime | None:
    """The first change of an object of the plan."""
    times: list[datetime] = []
    for one in answer.differences:
        if one.about not in now.items:
            continue
        meta = now.meta(one.about)
        given = [meta.creation_timestamp, meta.deletion_timestamp]
        given += [entry.time for entry in meta.managed_fields if entry.subresource != "status"]
        times += [_time(text) for text in given if now.is_later(meta, text)]
    times += [_time(now.meta(about).creation_timestamp) for one in answer.differences for about in _made(one, now)]
    if times:
        return min(times)
    gone = any(one.action == "deleted" and one.about not in now.items for one in answer.differences)
    return _time(answer.begins_at) if gone and answer.begins_at else None


# -- planned differences


def _steps(differences: Iterable[Difference], now: _Now, *, over: bool) -> Iterator[Step]:
    for one in differences:
        state, detail, fields = _outcome(one, now, over=over)
        yield Step(one.action, one.about, one.owner, one.count, state, detail, fields)


_Result = tuple[str, str, tuple[Checked, ...]]


def _outcome(one: Difference, now: _Now, *, over: bool) -> _Result:
    if one.about.kind not in now.kinds:
        return UNKNOWN, "objects of this kind were not read", ()
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
            return (NOT_YET if one.action == "replaced" else DIFFERENTLY), "it is not there", ()
        case "replaced" if not now.is_new(one.about):
            return NOT_YET, "it is still the one that was there", ()
        case "replaced" | "changed":
            return _fields(one, codec.decode_doc(now.items[one.about].data), over=over)
        case _:
            return UNKNOWN, "the names are generated", ()


def _deleted(about: Object, now: _Now) -> _Result:
    if now.is_new(about):
        return DIFFERENTLY, f"another one of this name was created at {now.meta(about).creation_timestamp}", ()
    return NOT_YET, "it is being deleted" if now.meta(about).deletion_timestamp else "it is still there", ()


def _in_group(one: Difference, now: _Now) -> bool:
    """Whether a created object has another name in each run."""
    if one.about in now.items:
        return False
    return not one.about.name or (one.about.kind in GENERATED and not one.owner.startswith("StatefulSet/"))


def _made(one: Difference, now: _Now) -> Sequence[Object]:
    """The objects of a group that were created since the plan."""
    if one.action != "created" or not _in_group(one, now):
        return ()
    return now.made(one.about.kind, one.about.namespace, one.owner)


def _grown(one: Difference, now: _Now) -> _Result:
    found = len([about for about in _made(one, now) if not now.meta(about).deletion_timestamp])
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
    """Of endpoints, the addresses alone: annotations have the time of what triggered them."""
    return one.about.kind not in _QUIET or not path.startswith("metadata.")


def _state(one: Difference, path: str, values: tuple[object, object, object], *, over: bool) -> str:
    before, planned, found = values
    if is_same_value(planned, found):
        return HAPPENED
    if is_same_value(before, found):
        return NOT_YET
    if one.about.kind in _QUIET:
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


# -- what was not planned


def _unexpected(answer: Answer, now: _Now) -> Iterator[Unexpected]:
    """Of the namespaces of the plan, and of what has no namespace."""
    planned = {one.about for one in answer.differences}
    groups = {(one.about.kind, one.about.namespace, one.owner) for one in answer.differences if one.action == "created"}
    spaces = {one.about.namespace for one in answer.differences} | {""}
    made: dict[tuple[str, str, str], list[Object]] = {}
    for about in sorted(now.items):
        if about in planned or about.kind in _QUIET or about.namespace not in spaces:
            continue
        meta, owner = now.meta(about), now.owner(about)
        group = about.kind, about.namespace, owner
        if now.is_new(about):
            if group not in groups:
                made.setdefault(group if owner else (about.kind, about.namespace, f"/{about.name}"), []).append(about)
        elif meta.deletion_timestamp and now.is_later(meta, meta.deletion_timestamp):
            yield Unexpected("deleting", about, owner, 1, "", meta.deletion_timestamp)
        elif (last := now.changed(about)) is not None:
            yield Unexpected("changed", about, owner, 1, last.manager, last.time)
    for found in made.values():
        metas = [now.meta(about) for about in found]
        first = next((entry.manager for meta in metas for entry in meta.managed_fields), "")
        last_at = max(meta.creation_timestamp for meta in metas)
        yield Unexpected("created", found[0], now.owner(found[0]), len(found), first, last_at)


# -- availability


def _available(planned: Iterable[Availability], now: _Now, elapsed_s: float, *, over: bool) -> Iterator[Ready]:
    ready = _ready_now(now)
    for one in planned:
        found = ready[one.about]
        at = bisect_right(one.ready, elapsed_s, key=lambda step: step[0]) - 1
        final = one.ready[-1][1] if one.ready else 0
        expected = one.ready[at][1] if one.ready and at >= 0 else one.before
        low = found < one.lowest or (over and found < final)
        state, expected = DIFFERENTLY if low else HAPPENED, final if over else expected
        yield Ready(one.about, state, one.wanted, expected, one.lowest, final, found)


def _ready_now(now: _Now) -> Counter[Object]:
    """The Ready pods of each workload, and the ready endpoints of each Service."""
    found: Counter[Object] = Counter()
    for item in now.snapshot.items(PODS):
        pod = seen(item.data)
        if serves(pod):
            found[_root(pod, now)] += 1
    ends: Counter[tuple[Object, str]] = Counter()
    for item in now.snapshot.items(SLICES):
        one = endpoints_of(item.data)
        about = Object("Service", item.namespace, (one.metadata.labels or {}).get(SERVICE_NAME, ""))
        ends[about, one.address_type] += sum(map(is_ready, one.endpoints))
    services = {Object("Service", item.namespace, item.name) for item in now.snapshot.items(SERVICES)}
    for (about, _), count in ends.items():
        if about in services:
            found[about] = max(found[about], count)
    return found


def _root(pod: Seen, now: _Now) -> Object:
    """The workload that a pod belongs to."""
    ref = next((one for one in pod.metadata.owner_references if one.controller), None)
    if ref is None:
        return Object("Pod", pod.metadata.namespace, pod.metadata.name)
    about = Object(ref.kind, pod.metadata.namespace, ref.name)
    above = now.owner(about) if about in now.items else ""
    kind, _, name = above.partition("/")
    return Object(kind, about.namespace, name) if name else about


def _notes(answer: Answer, snapshot: Snapshot) -> Iterator[str]:
    if not (answer.source.cluster and cluster_of(snapshot)):
        yield "whether the plan is of this cluster is not known: the uid of its namespace kube-system is missing"
    if answer.unlisted:
        yield f"{answer.unlisted} differences are not in the file, which was made with -n or -l"
    kinds = {one.kind for one in snapshot.collections.values()}
    unread = sorted({one.about.kind for one in answer.differences} - kinds)
    if unread:
        yield f"not read: {', '.join(unread)}"
    yield "writes that left nothing behind, and pods that came and went, are not seen; kcm trace shows them"


_EPOCH = datetime.min.replace(tzinfo=parse_time("2000-01-01T00:00:00Z").tzinfo) + timedelta(days=1)


def _time(text: str) -> datetime:
    try:
        return parse_time(text)
    except FormatError:
        return _EPOCH
