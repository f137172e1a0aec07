"""Compares a plan that was saved with what the cluster became: what happened as planned, what has not yet, what went
another way, and what nobody planned.

A later snapshot is what is compared with. It shows objects, not requests: a write that left nothing behind is not seen.
"""

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import msgspec

from kcm_cli.api.well_known import ROOT_CA
from kcm_cli.machinery import codec
from kcm_cli.machinery.errors import FormatError
from kcm_cli.machinery.integers import parse_int64
from kcm_cli.machinery.times import format_time, parse_time
from kcm_cli.plan.answer import API_VERSION, KIND, Answer, Object, Part
from kcm_cli.plan.kinds import CONFIG_MAPS, KINDS
from kcm_cli.plan.present import Present, time_of
from kcm_cli.plan.ready import Ready, available
from kcm_cli.plan.snapshot import PlanError, Snapshot, cluster_of
from kcm_cli.plan.steps import DIFFERENTLY, NOT_YET, QUIET, Step, objects_made, steps_of

MOST_BYTES = 256 << 20
_MANAGERS = frozenset(("kube-controller-manager", "kcm"))
_MARGIN_S = 60.0
"""How much later than planned what happens is still on its way."""


class Unexpected(Part, frozen=True):
    """What no plan has. what: ``created``, ``changed`` or ``deleting``. by: the field manager, if known. at: the last
    time. count: of the owner's objects."""

    what: str
    about: Object
    owner: str
    count: int
    by: str
    at: str


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
        head = codec.decode(data, _Kind)
    except codec.DecodeError as error:
        raise PlanError(f"--compare: {path} is not a plan in JSON, or was cut short ({error}): {_HOW}") from None
    if head.kind != KIND:
        raise PlanError(f"--compare: {path} has the kind {head.kind or 'none'!r:.80}, and is no plan: {_HOW}")
    if head.api_version != API_VERSION:
        raise PlanError(
            f"--compare: {path} has the version {head.api_version!r:.80}, and this kcm reads {API_VERSION}: "
            "use the kcm that made it"
        )
    try:
        answer = codec.decode(data, Answer)
        parse_time(answer.source.taken_at)
    except (codec.DecodeError, FormatError) as error:
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


def compare(answer: Answer, snapshot: Snapshot) -> Comparison:
    """Compare a plan with the cluster as it is in a later snapshot. Raises PlanError for one of another cluster."""
    _check(answer, snapshot)
    since = parse_time(answer.source.taken_at)
    now = Present(snapshot, since, answer.source.resource_version)
    begun = _begun(answer, now)
    elapsed_s = max(0.0, (snapshot.taken_at - begun).total_seconds()) if begun is not None else 0.0
    settles_s = max((one.until_s for one in answer.timeline), default=answer.horizon_s) + _MARGIN_S
    over = begun is not None and elapsed_s > settles_s
    steps = tuple(steps_of(answer.differences, now, over=over))
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
        tuple(available(answer.availability, now, elapsed_s, over=over)) if begun is not None else (),
        tuple(_notes(answer, snapshot, now)),
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


def _begun(answer: Answer, now: Present) -> datetime | None:
    """The first change of an object of the plan."""
    times: list[datetime] = []
    for one in answer.differences:
        if one.about not in now.items:
            continue
        meta = now.meta(one.about)
        given = [meta.creation_timestamp, meta.deletion_timestamp]
        given += [entry.time for entry in meta.managed_fields if entry.subresource != "status"]
        times += [time_of(text) for text in given if now.is_later(meta, text)]
    made = [about for one in answer.differences for about in objects_made(one, now)]
    times += [time_of(now.meta(about).creation_timestamp) for about in made]
    if times:
        return min(times)
    deleted = (one.about for one in answer.differences if one.action == "deleted")
    gone = any(about not in now.items and not now.unread(about) for about in deleted)
    return time_of(answer.begins_at) if gone and answer.begins_at else None


# -- what was not planned


def _unexpected(answer: Answer, now: Present) -> Iterator[Unexpected]:
    """Of the namespaces of the plan, and of what has no namespace; volumes are of that of their claim. The work of
    CronJobs is none: it goes on with and without the plan. What controllers change in objects that have an owner
    follows from the owner."""
    planned = {one.about for one in answer.differences}
    groups = {(one.about.kind, one.about.namespace, one.owner) for one in answer.differences if one.action == "created"}
    spaces = {one.about.namespace for one in answer.differences} | {""}
    made: dict[tuple[str, str, str], list[Object]] = {}
    for about in sorted(now.items):
        if about in planned or about.kind in QUIET or now.space(about) not in spaces or _is_regular(about, now):
            continue
        meta, owner = now.meta(about), now.owner(about)
        group = about.kind, about.namespace, owner
        if now.is_new(about):
            if group not in groups:
                made.setdefault(group if owner else (about.kind, about.namespace, f"/{about.name}"), []).append(about)
        elif meta.deletion_timestamp and now.is_later(meta, meta.deletion_timestamp):
            yield Unexpected("deleting", about, owner, 1, "", meta.deletion_timestamp)
        elif (last := now.changed(about)) is not None and not (owner and last.manager in _MANAGERS):
            yield Unexpected("changed", about, owner, 1, last.manager, last.time)
    for found in made.values():
        metas = [now.meta(about) for about in found]
        first = next((entry.manager for meta in metas for entry in meta.managed_fields), "")
        last_at = max(meta.creation_timestamp for meta in metas)
        yield Unexpected("created", found[0], now.owner(found[0]), len(found), first, last_at)


def _is_regular(about: Object, now: Present) -> bool:
    """Whether it is of a CronJob that was there before, a Job or a pod of one, or the ConfigMap that each namespace
    has."""
    if about.kind == CONFIG_MAPS.kind:
        return about.name == ROOT_CA
    if about.kind == "Pod":
        kind, _, name = now.owner(about).partition("/")
        about = Object(kind, about.namespace, name)
    if about.kind != "Job" or about not in now.items:
        return False
    kind, _, name = now.owner(about).partition("/")
    owner = Object(kind, about.namespace, name)
    return kind == "CronJob" and owner in now.items and not now.is_new(owner)


def _notes(answer: Answer, snapshot: Snapshot, now: Present) -> Iterator[str]:
    if not (answer.source.cluster and cluster_of(snapshot)):
        yield "whether the plan is of this cluster is not known: the uid of its namespace kube-system is missing"
    if answer.unlisted:
        yield f"{answer.unlisted} differences are not in the file, which was made with -n or -l"
    unread = sorted({one.about.kind for one in answer.differences} - now.kinds)
    if unread:
        yield f"not read: {', '.join(unread)}"
    yield from (f"{gap.resource}: {gap.reason}" for gap in snapshot.gaps if gap.partial)
    yield "writes that left nothing behind, and pods that came and went, are not seen; kcm trace shows them"
