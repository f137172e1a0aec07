"""Runs a twin, and returns the outcome, which can be compared with that of another run."""

import gc
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial

import msgspec

from kcm_cli.api.resource import GVR
from kcm_cli.component.virtual import run
from kcm_cli.machinery import codec
from kcm_cli.machinery.codec import Doc
from kcm_cli.machinery.documents import nested_map, nested_str
from kcm_cli.machinery.quoting import listed
from kcm_cli.machinery.times import format_time
from kcm_cli.manager.config import Config
from kcm_cli.plan.answer import Availability, Object
from kcm_cli.plan.applying import Applying
from kcm_cli.plan.availability import availability
from kcm_cli.plan.changes import Change, Options
from kcm_cli.plan.forking import Copy, may_fork
from kcm_cli.plan.formatting import span
from kcm_cli.plan.losses import CALLING, CLAIMS, VOLUMES, Serving, serving, strict_webhooks, volume_of
from kcm_cli.plan.observe import NODES, PODS, Observer, Occurrence, seen
from kcm_cli.plan.problems import Key, Problems
from kcm_cli.plan.refusals import Refusal
from kcm_cli.plan.snapshot import PlanError, Snapshot
from kcm_cli.plan.twin.twin import Twin
from kcm_cli.plan.twin.writes import Emitted, Write
from kcm_cli.planning.pods import is_terminal
from kcm_cli.runtime.tasks import Tasks, innermost
from kcm_cli.sandbox.apiserver.store import Store
from kcm_cli.sandbox.requests import amounts, of_pod
from kcm_cli.sandbox.scheduler.scheduler import NAME as DEFAULT_SCHEDULER
from kcm_cli.sandbox.views import SimulatedNode, SimulatedPod

_THRESHOLDS = 100_000, 20, 100
_UNSHOWN = frozenset((GVR("coordination.k8s.io", "v1", "leases"), GVR("", "v1", "events")))
_DEFINITIONS = GVR("apiextensions.k8s.io", "v1", "customresourcedefinitions")
_API_SERVICES = GVR("apiregistration.k8s.io", "v1", "apiservices")
_NAMED = 5
_BY_POD = "Preempted by pod "


class Simulation(msgspec.Struct):
    """The outcome of a run.

    finals: the final state of written objects; None for deleted ones. initial: their state in the snapshot, and that of
    the volumes of written claims. writes: all writes, including those before the change, which is made at ``since_s``.
    """

    since_s: float
    writes: list[Write]
    events: list[Emitted]
    occurred: list[Occurrence]
    finals: dict[Key, bytes | None]
    initial: dict[Key, bytes]
    problems: list[Refusal]
    fills: dict[str, tuple[int, int, int]]
    restarts: Mapping[Object, int]
    notes: list[str] = msgspec.field(default_factory=list)
    services: dict[Object, Serving] = msgspec.field(default_factory=dict)
    webhooks: dict[Object, list[str]] = msgspec.field(default_factory=dict)
    """Those without which a write is refused, by their Service."""
    begins_at: str = ""
    images: list[str] = msgspec.field(default_factory=list)
    """The images of new pods that no node has. They are assumed to be pulled."""
    assumed: list[str] = msgspec.field(default_factory=list)
    remarks: dict[int, str] = msgspec.field(default_factory=dict)
    """How changes were made, by their number."""
    availability: list[Availability] = msgspec.field(default_factory=list)


def simulate(
    snapshot: Snapshot, config: Config, seed: int, changes: Sequence[Change], options: Options
) -> tuple[Simulation, Simulation]:
    """Run the twin for the horizon without the changes and with them; returns both outcomes. Without changes it runs
    once."""
    life = partial(_Life, snapshot, config, seed, options)
    with _rare_collections():
        if not changes:
            alone = run(_one(life, ()))
            return alone, alone
        if may_fork():
            return run(_both(life, tuple(changes)))
        return run(_one(life, ())), run(_one(life, tuple(changes)))


def simulate_changes(
    snapshot: Snapshot,
    config: Config,
    seed: int,
    changes: Sequence[Change],
    options: Options,
    unpullable: Sequence[str] = (),
) -> Simulation:
    """Run the twin with the changes only. unpullable: images that cannot be pulled. Raises PlanError."""
    with _rare_collections():
        return run(_one(partial(_Life, snapshot, config, seed, options, unpullable), tuple(changes)))


@contextmanager
def _rare_collections() -> Iterator[None]:
    """Runs Python's garbage collector less often: a twin has many objects, but few cycles."""
    before = gc.get_threshold()
    gc.set_threshold(*_THRESHOLDS)
    try:
        yield
    finally:
        gc.set_threshold(*before)


async def _one(make: "Callable[[], _Life]", changes: tuple[Change, ...]) -> Simulation:
    life = make()
    async with life.twin:
        await life.begin()
        return await life.lead(changes)


async def _both(make: "Callable[[], _Life]", changes: tuple[Change, ...]) -> tuple[Simulation, Simulation]:
    life = make()
    async with life.twin:
        await life.begin()
        base = Copy(life.lead(()))
        await base.start()
        try:
            changed = await life.lead(changes)
            return base.result(), changed
        finally:
            base.end()


class _Life:
    """One run of a twin. Call ``begin``, then ``lead`` once."""

    def __init__(
        self, snapshot: Snapshot, config: Config, seed: int, options: Options, unpullable: Sequence[str] = ()
    ) -> None:
        self.twin = Twin(snapshot, config, seed, unpullable)
        self._options = options
        self._observer = Observer(self.twin.store, self.twin.clock.monotonic)
        self._applying = Applying(self.twin, options, self._observer.note)
        self._services: dict[Object, Serving] = {}
        """What Services lead to before the changes."""

    async def begin(self) -> None:
        """Wait until the caches have synced."""
        await self.twin.settle()
        self._services = serving(self.twin.store, self._observer)

    async def lead(self, changes: tuple[Change, ...]) -> Simulation:
        """Make the changes, and wait for the horizon. Raises PlanError."""
        twin, failed = self.twin, list[tuple[str, BaseException]]()
        drains = Tasks(lambda name, error: failed.append((name, error)))
        self._observer.since_s, begins_at = twin.clock.monotonic(), format_time(twin.clock.now())
        names = await self._applying.begin(changes)
        if names and self._applying.drain is not None:
            drains.start("drain", self._applying.drain.run(names))
        await twin.clock.sleep(self._options.horizon_s)
        await drains.stop()
        for name, error in (*twin.failed, *failed):
            raise PlanError(f"{name} failed in the twin: {innermost(error)!r}") from error
        return _outcome(twin, self._observer, self._applying, self._options, begins_at, self._services)


def _initial(loaded: Mapping[Key, bytes], keys: Sequence[Key]) -> dict[Key, bytes]:
    found = {key: loaded[key] for key in keys if key in loaded}
    volumes = [(VOLUMES, "", volume_of(codec.decode_doc(data))) for key, data in found.items() if key[0] == CLAIMS]
    return {**{key: loaded[key] for key in volumes if key in loaded}, **found}


def _outcome(
    twin: Twin,
    observer: Observer,
    applying: Applying,
    options: Options,
    begins_at: str,
    before: Mapping[Object, Serving],
) -> Simulation:
    """before: what Services led to before the changes."""
    keys = [key for key in twin.loaded.touched if key[0] not in _UNSHOWN]
    loaded = {(gvr, space, name): data for gvr, space, name, _, data in twin.loaded.rows}
    finals: dict[Key, bytes | None] = {}
    for gvr, space, name in keys:
        stored = twin.store.get(gvr, space, name)
        finals[gvr, space, name] = stored.data if stored is not None else None
    problems = [*applying.refusals, *Problems(twin, observer, loaded, options.horizon_s).all()]
    if applying.drain is not None:
        problems += applying.drain.problems(span(options.horizon_s))
    services = serving(twin.store, observer)
    return Simulation(
        since_s=observer.since_s,
        writes=twin.written.writes,
        events=list(twin.written.events.values()),
        occurred=observer.occurred(_preemptors(twin.written.events)),
        finals=finals,
        initial=_initial(loaded, keys),
        problems=problems,
        fills=dict(_fills(twin.store)),
        restarts=observer.restarts,
        notes=list(_notes(twin)),
        images=sorted(twin.learned.assumed),
        services=services,
        webhooks=strict_webhooks(twin.store),
        begins_at=begins_at,
        assumed=[*applying.assumed, *sorted(twin.existence.assumed)],
        remarks=dict(applying.remarks),
        availability=availability(twin.store, observer, before, services, options.horizon_s),
    )


def _preemptors(events: Mapping[str, Emitted]) -> dict[str, str]:
    """The uid of the pod that preempted another one, by namespace/name of this."""
    found: dict[str, str] = {}
    for event in events.values():
        if event.reason == "Preempted" and event.message.startswith(_BY_POD):
            found[f"{event.namespace}/{event.name}"] = event.message[len(_BY_POD) :].partition(" ")[0]
    return found


# -- what the nodes have


def _fills(store: Store) -> Iterator[tuple[str, tuple[int, int, int]]]:
    """The requests on each node in percent: CPU, memory, pods."""
    used: dict[str, dict[str, int]] = {}
    for stored in store.list(PODS):
        pod = codec.decode_or_none(stored.data, SimulatedPod)
        if pod is not None and pod.spec.node_name and not is_terminal(pod):
            sums = used.setdefault(pod.spec.node_name, {})
            for name, amount in {**of_pod(pod), "pods": 1}.items():
                sums[name] = sums.get(name, 0) + amount
    for stored in store.list(NODES):
        node = codec.decode_or_none(stored.data, SimulatedNode)
        if node is None:
            continue
        room = amounts(node.status.allocatable)
        sums = used.get(stored.name, {})
        cpu, memory, pods = (_percent(sums.get(name, 0), room.get(name, 0)) for name in ("cpu", "memory", "pods"))
        yield stored.name, (cpu, memory, pods)


def _percent(part: int, whole: int) -> int:
    return round(100 * part / whole) if whole else 0


# -- what the twin does not know


def _notes(twin: Twin) -> Iterator[str]:
    for kind, count in sorted(twin.loaded.unknown.items()):
        yield f"{count} {kind}: a kind that the twin does not serve"
    if twin.loaded.stand_ins:
        made = ", ".join(f"{count} {plural}" for plural, count in sorted(twin.loaded.stand_ins.items()))
        yield f"stand-ins for objects that are referred to and were not read: {made}"
    if twin.loaded.uncounted:
        yield f"{twin.loaded.uncounted} ConfigMaps and Secrets that quotas count: they are too many to stand in for"
    for kind, names in _uncalled(twin.store):
        yield f"not called: {kind} {listed(names, _NAMED)}"
    others = _other_schedulers(twin)
    if others:
        yield f"pods of other schedulers stay Pending: {', '.join(others)}"


def _uncalled(store: Store) -> Iterator[tuple[str, list[str]]]:
    """The kinds and names of objects that make an API server call others. A twin's calls nothing."""
    for kind, gvr in CALLING.items():
        names = [one.name for one in store.list(gvr)]
        if names:
            yield kind, names
    converted = [one.name for one in store.list(_DEFINITIONS) if _converts(one.doc)]
    if converted:
        yield "conversion webhooks (fields are kept as they are) of CustomResourceDefinition", converted
    aggregated = [one.name for one in store.list(_API_SERVICES) if nested_map(one.doc, "spec", "service")]
    if aggregated:
        yield "APIService", aggregated


def _converts(definition: Doc) -> bool:
    return nested_str(definition, "spec", "conversion", "strategy") == "Webhook"


def _other_schedulers(twin: Twin) -> list[str]:
    found: dict[str, int] = {}
    for stored in twin.store.list(PODS):
        spec = seen(stored.data).spec
        if spec.scheduler_name not in ("", DEFAULT_SCHEDULER) and not spec.node_name:
            found[spec.scheduler_name] = found.get(spec.scheduler_name, 0) + 1
    return [f"{name} ({count})" for name, count in sorted(found.items())]
