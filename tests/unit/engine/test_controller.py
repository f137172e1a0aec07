"""Effects of a controller's declaration: the keys that changes queue, and the caches that workers wait for."""

import asyncio
import random
from collections.abc import Callable, Iterable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from kcm_cli.api.apps import REPLICA_SETS
from kcm_cli.api.core import CONFIG_MAPS, PODS, SERVICE_ACCOUNTS
from kcm_cli.component.clock import LoopClock
from kcm_cli.engine.building import bound, build
from kcm_cli.engine.context import ControllerContext
from kcm_cli.engine.controller import After, Controller, Owns, Periodic, Queue, Watch, gate, only, own_key
from kcm_cli.engine.door import Door
from kcm_cli.machinery.labels import from_label_selector
from kcm_cli.rest.client import Client
from kcm_cli.rest.ratelimit import Unlimited
from kcm_cli.runtime.informers import Informers
from kcm_cli.runtime.tasks import Tasks
from kcm_cli.sandbox.apiserver.security.certificates import Certificates
from tests.kit.embedded import EmbeddedServer
from tests.kit.world import EPOCH

NS = "default"


@pytest.fixture(scope="module")
def certificates() -> Certificates:
    return Certificates.load(None, EPOCH)


class Gates:
    """Features that are on by their names."""

    def enabled(self, name: str) -> bool:
        return name.startswith("On")


class Recorder:
    """Events go nowhere."""

    def event(self, *args: object, **more: object) -> None: ...


@dataclass(frozen=True)
class Three:
    """Options of a controller."""

    concurrent_syncs: int = 3


@dataclass
class Made:
    """What the declarations below make: keeps the keys that were synced and the passes, with their times."""

    context: ControllerContext
    synced: list[tuple[float, str]] = field(default_factory=list)
    passed: list[float] = field(default_factory=list)
    prepared: list[float] = field(default_factory=list)

    def now(self) -> float:
        return round(asyncio.get_running_loop().time(), 3)

    async def sync(self, key: str) -> None:
        self.synced.append((self.now(), key))

    async def step(self) -> None:
        self.passed.append(self.now())

    async def prepare(self) -> None:
        self.prepared.append(self.now())

    def taken(self) -> list[str]:
        """The keys synced since this was last asked."""
        found, self.synced = sorted(key for _, key in self.synced), []
        return found


@dataclass
class Story:
    """A server with one controller on it."""

    client: Client
    informers: Informers
    tasks: Tasks
    made: Made

    async def create(self, resource: Any, name: str, **doc: Any) -> Any:
        metadata = {"name": name, **doc.pop("metadata", {})}
        return await self.client.create(resource, NS, {"metadata": metadata, **doc})

    async def keys(self) -> list[str]:
        await asyncio.sleep(0.1)
        return self.made.taken()


Begun = Callable[[Controller], AbstractAsyncContextManager[Story]]


def _crashed(name: str, error: BaseException) -> None:
    raise AssertionError(f"{name} crashed: {error!r}")


@pytest.fixture
def begun(certificates: Certificates) -> Begun:
    @asynccontextmanager
    async def begin(controller: Controller) -> Any:
        clock, rng = LoopClock(EPOCH), random.Random(1)
        server = EmbeddedServer(clock, rng, certificates)
        await server.start()
        client = Client(server.transport(), limiter=Unlimited(), user_agent="test", clock=clock)
        await client.create(SERVICE_ACCOUNTS, NS, {"metadata": {"name": "default"}})
        informers, tasks = Informers(client, clock, rng), Tasks(_crashed)
        context = ControllerContext(
            name="c",
            clock=clock,
            rng=rng,
            gates=Gates(),
            configs={Three: Three()},
            client=Door(client, "c"),
            informers=informers,
            recorder=Recorder(),
            recorder_for=lambda source: Recorder(),
        )
        kept: list[Made] = []

        def make(given: ControllerContext) -> Made:
            kept.append(Made(given))
            return kept[0]

        running = build(replace(controller, make=make), context)
        assert running is not None
        tasks.start("c", running.run())
        try:
            yield Story(client, informers, tasks, kept[0])
        finally:
            await tasks.stop()

    return begin


def of(*queues: Queue, **more: Any) -> Controller:
    return Controller(Made, queues, **more)


def queue(reconciles: Any = None, **more: Any) -> Queue:
    return Queue("q", reconciles, sync=Made.sync, **more)


async def started(story: Story) -> None:
    story.informers.start(story.tasks)
    await asyncio.sleep(1)
    story.made.taken()


def labelled(made: object, obj: Any) -> Iterable[str]:
    return (f"{obj.key}!",)


async def test_every_change_of_what_a_queue_reconciles_queues_its_key(begun: Begun) -> None:
    async with begun(of(queue(CONFIG_MAPS))) as one:
        await started(one)
        made = await one.create(CONFIG_MAPS, "a")
        assert await one.keys() == ["default/a"]
        await one.client.update(CONFIG_MAPS, NS, "a", {"metadata": {"name": "a"}, "data": {"k": "v"}})
        assert await one.keys() == ["default/a"]
        await one.client.delete(CONFIG_MAPS, NS, "a", uid=made.uid)
        assert await one.keys() == ["default/a"]


async def test_a_predicate_leaves_objects_out(begun: Begun) -> None:
    async with begun(of(queue(Watch(CONFIG_MAPS, only(lambda obj: obj.name == "b"))))) as one:
        await started(one)
        await one.create(CONFIG_MAPS, "a")
        await one.create(CONFIG_MAPS, "b")
        assert await one.keys() == ["default/b"]


async def test_each_event_has_its_mapper(begun: Begun) -> None:
    watch = Watch(
        CONFIG_MAPS,
        labelled,
        added=lambda made, obj: (f"added {obj.name}",),
        updated=lambda made, old, new: (f"{old.name} {len(old.metadata.labels or {})} to {len(new.metadata.labels)}",),
    )
    async with begun(of(queue(watches=(watch,)))) as one:
        await started(one)
        made = await one.create(CONFIG_MAPS, "a")
        assert await one.keys() == ["added a"]
        await one.client.update(CONFIG_MAPS, NS, "a", {"metadata": {"name": "a", "labels": {"x": "y"}}})
        assert await one.keys() == ["a 0 to 1"]
        await one.client.delete(CONFIG_MAPS, NS, "a", uid=made.uid)
        assert await one.keys() == ["default/a!"]


async def test_changed_covers_only_adds_and_updates(begun: Begun) -> None:
    async with begun(of(queue(watches=(Watch(CONFIG_MAPS, changed=own_key),)))) as one:
        await started(one)
        made = await one.create(CONFIG_MAPS, "a")
        assert await one.keys() == ["default/a"]
        await one.client.delete(CONFIG_MAPS, NS, "a", uid=made.uid)
        assert await one.keys() == []


@pytest.mark.parametrize(
    ("watch", "after_s"),
    [
        pytest.param(Watch(CONFIG_MAPS, own_key, after=lambda context: 5.0), 5, id="of-the-watch"),
        pytest.param(Watch(CONFIG_MAPS, lambda made, obj: (After(obj.key, 7.0),)), 7, id="of-the-key"),
    ],
)
async def test_a_key_can_be_delayed(begun, watch: Watch, after_s: float) -> None:
    async with begun(of(queue(watches=(watch,)))) as one:
        await started(one)
        await one.create(CONFIG_MAPS, "a")
        begun = one.made.now()
        await asyncio.sleep(10)
        times = [at for at, key in one.made.synced if key == "default/a"]
        assert times == [pytest.approx(begun + after_s, abs=0.1)]


@pytest.mark.parametrize(("name", "followed"), [("OnFeature", True), ("OffFeature", False)])
async def test_a_kind_can_be_watched_under_a_gate_only(begun, name: str, followed: bool) -> None:
    async with begun(of(queue(watches=(Watch(CONFIG_MAPS, own_key, when=gate(name)),)))) as one:
        await started(one)
        await one.create(CONFIG_MAPS, "a")
        assert await one.keys() == (["default/a"] if followed else [])
        assert [informer.resource for informer in one.informers.all()] == ([CONFIG_MAPS] if followed else [])


async def test_owned_objects_queue_their_owner_and_orphans_possible_adopters(begun: Begun) -> None:
    owns = Owns(PODS, selector=lambda replica_set: from_label_selector(replica_set.spec.selector))
    spec = {"containers": [{"name": "c", "image": "i"}]}
    template = {"metadata": {"labels": {"app": "x"}}, "spec": spec}
    async with begun(of(queue(REPLICA_SETS, owns=(owns,)))) as one:
        await started(one)
        chosen = {"replicas": 0, "selector": {"matchLabels": {"app": "x"}}, "template": template}
        owner = await one.create(REPLICA_SETS, "r", spec=chosen)
        await one.keys()
        ref = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": owner.uid, "controller": True}
        await one.create(PODS, "owned", metadata={"ownerReferences": [ref]}, spec=spec)
        assert await one.keys() == ["default/r"]
        await one.create(PODS, "orphan", metadata={"labels": {"app": "x"}}, spec=spec)
        assert await one.keys() == ["default/r"]
        await one.create(PODS, "stranger", metadata={"labels": {"app": "y"}}, spec=spec)
        assert await one.keys() == []
        await one.create(PODS, "of-another", metadata={"ownerReferences": [{**ref, "uid": "u"}]}, spec=spec)
        assert await one.keys() == []


async def test_workers_and_passes_wait_for_all_caches_and_preparation_for_none(begun: Begun) -> None:
    controller = of(
        queue(CONFIG_MAPS),
        reads=(PODS,),
        prepare=Made.prepare,
        passes=(Periodic(Made.step, pause_s=lambda made: 60.0), Periodic(Made.step, pause_s=lambda made: 0.0)),
    )
    async with begun(controller) as one:
        await one.create(CONFIG_MAPS, "a")
        await asyncio.sleep(30)
        assert (one.made.prepared, one.made.synced, one.made.passed) == ([0.0], [], [])
        one.informers.start(one.tasks)
        await asyncio.sleep(1)
        assert "default/a" in one.made.taken()
        assert one.made.passed == [pytest.approx(30, abs=0.5)]
        await asyncio.sleep(60)
        assert len(one.made.passed) == 2


@pytest.mark.parametrize(("workers", "most"), [(1, 1), (2, 2), (Three, 3)])
async def test_concurrent_syncs_are_limited(begun, workers: int | type[Three], most: int) -> None:
    going, counts = 0, []

    async def slow(made: Made, key: str) -> None:
        nonlocal going
        going += 1
        counts.append(going)
        await asyncio.sleep(1)
        going -= 1

    async with begun(of(Queue("q", CONFIG_MAPS, sync=slow, workers=workers))) as one:
        for number in range(4):
            await one.create(CONFIG_MAPS, f"m{number}")
        await started(one)
        await asyncio.sleep(10)
        assert (len(counts) >= 4, max(counts)) == (True, most)


async def test_a_delayed_pass_starts_with_a_pause(begun: Begun) -> None:
    async with begun(of(passes=(Periodic(Made.step, pause_s=lambda made: 60.0, delayed=True),))) as one:
        await started(one)
        await asyncio.sleep(61)
        assert one.made.passed == [pytest.approx(60, abs=0.5)]


async def test_an_undeclared_cache_is_not_available(begun: Begun) -> None:
    async with begun(of(queue(CONFIG_MAPS))) as one:
        with pytest.raises(KeyError):
            one.made.context.cache(PODS)


def test_a_controller_without_work_is_not_created() -> None:
    def make(context: ControllerContext) -> Any:
        raise AssertionError("made")

    assert build(Controller(make, enabled=lambda context: False), None) is None  # type: ignore[arg-type]


def test_a_queue_that_reconciles_nothing_can_own_nothing() -> None:
    with pytest.raises(TypeError, match="reconciles no kind"):
        _ = queue().main


class Part:
    """A part of a controller."""

    def sync(self) -> str:
        return "of the part"


class Whole:
    """A controller."""

    def __init__(self, *parts: object) -> None:
        self.__dict__.update({f"part{index}": part for index, part in enumerate(parts)})

    def sync(self) -> str:
        return "of the controller"


class Derived(Whole):
    """Another one, with its own ``sync``."""

    def sync(self) -> str:
        return "its own"


def test_functions_are_bound_to_the_controller_or_its_part() -> None:
    made = Derived(Part(), 1)
    assert bound(Part.sync, made)() == "of the part"
    assert bound(Whole.sync, made)() == "of the controller"
    assert bound(lambda one: one, made)() is made


@pytest.mark.parametrize("parts", [(), (Part(), Part())], ids=["none", "two"])
def test_a_method_of_nothing_or_of_two_parts_is_an_error(parts: tuple[Part, ...]) -> None:
    with pytest.raises(TypeError, match=rf"Part.sync is a method of {len(parts)} attributes of Whole"):
        bound(Part.sync, Whole(*parts))
