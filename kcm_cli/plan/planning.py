"""Makes an answer from a snapshot and changes: for each seed a run without the changes and one with them."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import zip_longest

from msgspec.structs import replace

from kcm_cli.api.resource import group_resource
from kcm_cli.api.short_names import kind_in
from kcm_cli.machinery import labels
from kcm_cli.machinery.documents import nested_str
from kcm_cli.machinery.errors import FormatError
from kcm_cli.machinery.quoting import listed
from kcm_cli.machinery.times import format_time
from kcm_cli.manager.config import Config, ConfigError
from kcm_cli.manager.controller_map import all_controllers
from kcm_cli.plan.answer import (
    API_VERSION,
    KIND,
    Answer,
    Difference,
    Fill,
    Happening,
    Object,
    OwnWrite,
    Problem,
    Risk,
    Source,
    Totals,
    Varies,
    Written,
)
from kcm_cli.plan.changes import Apply, Change, Options
from kcm_cli.plan.compare import complete, differences, timeline
from kcm_cli.plan.formatting import describe_changes
from kcm_cli.plan.kinds import KINDS
from kcm_cli.plan.limits import not_modelled, unread
from kcm_cli.plan.losses import lost_data, lost_endpoints, silent_webhooks
from kcm_cli.plan.observe import NAMESPACES, NODES, PODS
from kcm_cli.plan.questions import shown_as_created, with_kinds
from kcm_cli.plan.refusals import Refusal
from kcm_cli.plan.regular import Regular
from kcm_cli.plan.shown_part import Shown
from kcm_cli.plan.simulation import Simulation, simulate, simulate_changes
from kcm_cli.plan.snapshot import PlanError, Snapshot, cluster_of
from kcm_cli.plan.twin.parameters import unread_parameters
from kcm_cli.plan.twin.twin import SIMULATED, configuration
from kcm_cli.plan.twin.writes import Write

_SHOWN = 3
_KIND_OF = {(one.gvr.group, one.gvr.plural): one.kind for one in KINDS}
Progress = Callable[[str], object]
"""Called with what is being done."""


def plan(
    snapshot: Snapshot,
    changes: Sequence[Change] = (),
    options: Options | None = None,
    progress: Progress = lambda text: None,
) -> Answer:
    """Predict what the controllers, the scheduler and the kubelets would do. Without changes: the takeover audit.

    progress: called with what is being done. Raises PlanError, as for a selector, a name or a flag that is wrong.
    """
    options = options or Options()
    selector = _selector(options.selector)
    _check_namespace(snapshot, changes, options.namespace)
    config, is_audit = configured(options.flags), not changes
    snapshot, assumed = with_kinds(snapshot, changes)
    runs = _runs(snapshot, config, changes, options, progress)
    base, changed = runs[0]
    shown = Shown(options.namespace, selector, snapshot, {id(one): one for run in runs for one in run}.values())
    found = [differences(one, other, shown) for one, other in runs]
    unlisted = 0
    if not is_audit and not shown.everything:
        unlisted = len(differences(base, changed, Shown("", labels.EVERYTHING, snapshot, ()))) - len(found[0])
    happened = [] if is_audit else timeline(base, changed)
    audit = _audit(base, shown) if is_audit else ()
    without = partial(simulate_changes, snapshot, config, options.seeds[0], changes, options)
    return Answer(
        api_version=API_VERSION,
        kind=KIND,
        source=_source(snapshot),
        changes=describe_changes(changes, changed.remarks),
        horizon_s=options.horizon_s,
        seeds=len(runs),
        problems=_problems(runs, shown),
        assumed=(
            *(f"image {image}, which no node has, can be pulled" for image in changed.images),
            *_read_enough(snapshot),
            *assumed,
            *changed.assumed,
            *_evicted_jobs(happened),
        ),
        risks=_risks(runs[0] if changes else None, shown, progress, without),
        timeline=tuple(one for one in happened if shown.has(one.about)),
        differences=tuple(found[0]),
        nodes=tuple(_fills(base, changed)),
        writes=_writes(base, changed, shown, is_audit=is_audit),
        audit=audit,
        routine=sum(_is_routine(one) for one in base.writes) + sum(e.count for e in base.events) if is_audit else 0,
        totals=_totals(base, changed, shown),
        varies=_varies(found),
        not_modelled=(*shown_as_created(snapshot, changes), *not_modelled(snapshot, config, changed)),
        begins_at=changed.begins_at,
        unlisted=unlisted,
        availability=() if is_audit else tuple(one for one in changed.availability if shown.has(one.about)),
    )


def _selector(text: str) -> labels.Selector:
    """Raises PlanError."""
    try:
        return labels.parse(text)
    except FormatError as error:
        raise PlanError(f"--selector: {error}") from None


def _runs(
    snapshot: Snapshot, config: Config, changes: Sequence[Change], options: Options, progress: Progress
) -> list[tuple[Simulation, Simulation]]:
    """The cluster without and with the changes, run ahead with each seed."""
    runs: list[tuple[Simulation, Simulation]] = []
    for number, seed in enumerate(options.seeds, 1):
        of = f" (seed {number} of {len(options.seeds)})" if len(options.seeds) > 1 else ""
        progress(f"running the cluster ahead{of}")
        base, changed = simulate(snapshot, config, seed, changes, options)
        if changes:
            complete(base, changed)
        runs.append((base, changed))
    return runs


def _check_namespace(snapshot: Snapshot, changes: Sequence[Change], name: str) -> None:
    """Raises PlanError for a namespace that neither exists nor is made."""
    made = {
        nested_str(one.doc, "metadata", "name")
        for one in changes
        if isinstance(one, Apply) and nested_str(one.doc, "kind") == "Namespace"
    }
    known = snapshot.items(NAMESPACES)
    if name and known and name not in made and not any(item.name == name for item in known):
        raise PlanError(f'Error from server (NotFound): namespaces "{name}" not found')


def _risks(
    run: tuple[Simulation, Simulation] | None,
    shown: Shown,
    progress: Progress,
    without_images: Callable[[Sequence[str]], Simulation],
) -> tuple[Risk, ...]:
    """The problems if images that no node has cannot be pulled. run: None if there are no changes."""
    images = run[1].images if run is not None else ()
    if run is None or not images:
        return ()
    progress("running it without the images that no node has")
    failed = without_images(images)
    known = {(one.kind, one.about) for outcome in run for one in outcome.problems}
    found = [
        Problem(one.kind, one.about, one.text, False, 1, not shown.has(one.about))
        for one in (*failed.problems, *_losses(run[0], failed))
        if one.kind != "image" and (one.kind, one.about) not in known
    ]
    found.sort(key=lambda one: (one.kind, one.about, one.text))
    return (Risk(f"if {listed(images, _SHOWN)} cannot be pulled", tuple(found)),) if found else ()


def _read_enough(snapshot: Snapshot) -> Iterator[str]:
    if missing := unread(snapshot):
        yield f"what could not be read makes no difference: {listed(missing, _SHOWN)}"
    if policies := sorted({name for _, name in unread_parameters(snapshot)}):
        yield f"policies whose parameters were not read make no difference: {listed(policies, _SHOWN)}"


def configured(flags: Sequence[str]) -> Config:
    """The manager's configuration for a twin. Raises PlanError."""
    try:
        return configuration(flags)
    except ConfigError as error:
        raise PlanError("\n".join(error.problems)) from None


def _source(snapshot: Snapshot) -> Source:
    return Source(
        format_time(snapshot.taken_at),
        snapshot.server_version,
        snapshot.resource_version,
        snapshot.size,
        len(snapshot.items(NODES)),
        len(snapshot.items(PODS)),
        snapshot.torn,
        tuple((gap.resource, gap.reason) for gap in snapshot.gaps),
        cluster_of(snapshot),
    )


def _totals(base: Simulation, changed: Simulation, shown: Shown) -> Totals:
    def of(outcome: Simulation, what: str) -> int:
        return sum(one.what == what and shown.has(one.about) for one in outcome.occurred)

    def restarts(outcome: Simulation) -> int:
        return sum(count for about, count in outcome.restarts.items() if shown.has(about))

    return Totals(
        of(changed, "created") - of(base, "created"),
        of(changed, "gone") - of(base, "gone"),
        of(changed, "evicted"),
        restarts(changed) - restarts(base),
    )


def _problems(runs: Sequence[tuple[Simulation, Simulation]], shown: Shown) -> tuple[Problem, ...]:
    """The problems of the first run, then those of other runs only. They are matched by object and kind, since texts
    may differ. All are reported, wherever they are."""
    counts: Counter[tuple[str, Object]] = Counter()
    found: dict[tuple[str, Object], Problem] = {}
    for base, changed in runs:
        before = _by_object(base.problems if base is not changed else ())
        now = _by_object((*changed.problems, *_losses(base, changed)))
        counts.update(now.keys())
        for key, some in now.items():
            earlier = before.get(key, ())
            already = all(any(not _is_worse(one, other) for other in earlier) for one in some)
            text = "; ".join(dict.fromkeys(one.text for one in some))
            known = found.get(key)
            if known is None or (known.already and not already):
                found[key] = Problem(*key, text, already, 1, not shown.has(key[1]))
    ranked = (replace(one, seeds=counts[key]) for key, one in found.items())
    return tuple(sorted(ranked, key=lambda one: (one.already, one.elsewhere, one.kind, one.about, one.text)))


def _by_object(refusals: Iterable[Refusal]) -> dict[tuple[str, Object], list[Refusal]]:
    """By kind and object. Of one there may be several, with facts of their own."""
    found: dict[tuple[str, Object], list[Refusal]] = {}
    for one in refusals:
        found.setdefault((one.kind, one.about), []).append(one)
    return found


def _losses(base: Simulation, changed: Simulation) -> Iterator[Refusal]:
    if base is not changed:
        yield from lost_endpoints(base.services, changed.services)
        yield from silent_webhooks(changed.webhooks, base.services, changed.services, changed.availability)
        yield from lost_data(base.finals, changed.finals, changed.initial)


def _is_worse(now: Refusal, before: Refusal) -> bool:
    """Whether any fact of a problem is worse than without the change."""
    return any(one > other for one, other in zip_longest(now.measure, before.measure, fillvalue=0.0))


def _evicted_jobs(happened: Sequence[Happening]) -> Iterator[str]:
    """The Jobs whose running pods others delete: how such a pod ends is a race."""
    intended = {one.called for one in all_controllers() if one.ends_jobs}
    for about in sorted(
        {
            one.about
            for one in happened
            if one.what in ("terminating", "preempted")
            and one.about.kind in ("Job", "CronJob")
            and one.cause not in intended
            and not one.detail
        }
    ):
        yield f"evicted pods of {about} end as failed, not with exit code 0 in the second after SIGTERM"


def _fills(base: Simulation, changed: Simulation) -> list[Fill]:
    fills = []
    for name in sorted({**base.fills, **changed.fills}):
        before, after = base.fills.get(name, (0, 0, 0)), changed.fills.get(name, (0, 0, 0))
        fills.append(Fill(name, before[0], after[0], before[1], after[1], before[2], after[2]))
    return fills


def _resource(group: str, plural: str, subresource: str) -> str:
    name = group_resource(group, plural)
    return f"{name}/{subresource}" if subresource else name


def _writes(base: Simulation, changed: Simulation, shown: Shown, *, is_audit: bool) -> tuple[Written, ...]:
    def counted(outcome: Simulation, *, refused: bool = False) -> Counter[tuple[str, str, str, str]]:
        return Counter(
            (one.client, one.verb, _resource(one.group, one.resource, one.subresource), one.owner)
            for one in outcome.writes
            if one.client not in SIMULATED and not (refused and one.done) and shown.has(_about(one), one.owner)
        )

    with_change, without, refused = counted(changed), counted(base), counted(changed, refused=True)
    keys = sorted({**with_change, **without})
    chosen = [key for key in keys if is_audit or with_change[key] != without[key]]
    return tuple(Written(*key, with_change[key], 0 if is_audit else without[key], refused[key]) for key in chosen)


def _is_routine(write: Write) -> bool:
    """Whether any new leader sends this write on any cluster."""
    if write.client in SIMULATED:
        return False
    of_autoscaler = write.resource == "horizontalpodautoscalers" and write.subresource == "status"
    return write.resource in ("leases", "events") or of_autoscaler


def _about(write: Write) -> Object:
    kind = write.kind or _KIND_OF.get((write.group, write.resource), write.resource)
    return Object(kind_in(write.group, kind), write.namespace, write.name)


def _audit(base: Simulation, shown: Shown) -> tuple[OwnWrite, ...]:
    groups: dict[tuple[str, str, str, Object, str], OwnWrite] = {}
    regular = Regular()
    for write in base.writes:
        if write.client in SIMULATED or _is_routine(write):
            continue
        about = _about(write)
        scheduled = regular.has(write, about)
        if not shown.has(about, write.owner):
            continue
        resource = _resource(write.group, write.resource, write.subresource)
        key = write.client, write.verb, resource, about, write.message
        known = groups.get(key)
        count = known.count + 1 if known is not None else 1
        at_s = known.at_s if known is not None else write.at_s
        scheduled = scheduled and (known is None or known.scheduled)
        groups[key] = OwnWrite(*key[:4], write.owner, count, at_s, write.message, scheduled)
    return tuple(groups.values())


def _varies(found: Sequence[Sequence[Difference]]) -> tuple[Varies, ...]:
    """The differences that occur with some seeds only."""
    counts: Counter[str] = Counter()
    for one in found:
        counts.update({_text(difference) for difference in one})
    return tuple(Varies(text, count) for text, count in sorted(counts.items()) if count < len(found))


def _text(difference: Difference) -> str:
    if difference.count > 1 or not difference.about.name:
        return f"{difference.count} x {difference.about.kind} of {difference.owner} {difference.action}"
    paths = ", ".join(field.path for field in difference.fields[:3])
    return f"{difference.about} {difference.action}{f': {paths}' if paths else ''}"
