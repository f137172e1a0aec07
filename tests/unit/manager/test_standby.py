"""Two managers on one API server: the second one is a standby, cold or warm."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from msgspec.structs import replace

from kcm_cli.component.clock import LoopClock
from kcm_cli.manager.config import ConfigError, load
from kcm_cli.rest.transport import Request, Response, Stream, Transport, Unreachable
from kcm_cli.runtime import informer
from tests.kit.world import PODS, World, resource
from tests.unit.manager.test_stopping import manager_of

pytestmark = pytest.mark.cluster(alone=True)

LEASES = resource("leases", "coordination.k8s.io")
SETS = resource("replicasets", "apps")
WARM, COLD = ("--warm-standby",), ()
LEASE_S, REPLICAS = 15.0, 3


class Wire:
    """One manager's way to the API server. dead: nothing it sends arrives. late_s: watches of pods deliver late."""

    def __init__(self, inner: Transport, clock: LoopClock) -> None:
        self._inner, self._clock = inner, clock
        self.dead = False
        self.late_s = 0.0
        self.sent: list[tuple[float, Request]] = []

    async def send(self, request: Request) -> Response:
        self._note(request)
        return await self._inner.send(request)

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[Stream]:
        self._note(request)
        async with self._inner.stream(request) as stream:
            late = request.path.endswith("/pods")
            yield replace(stream, chunks=self._late(stream.chunks)) if late else stream

    async def _late(self, chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        async for chunk in chunks:
            await self._clock.sleep(self.late_s)
            yield chunk

    async def close(self) -> None: ...

    def _note(self, request: Request) -> None:
        if self.dead:
            raise Unreachable("dead")
        self.sent.append((self._clock.monotonic(), request))

    def writes(self) -> list[tuple[float, Request]]:
        """Other than those of the election."""
        return [
            (at, one)
            for at, one in self.sent
            if one.method != "GET" and "/leases" not in one.path and "/events" not in one.path
        ]

    def reads(self) -> set[str]:
        """The kinds that were listed or watched."""
        return {one.path for _, one in self.sent if one.method == "GET" and "/leases" not in one.path}


class Candidate:
    """A manager of ReplicaSets. No fence keeps it from writing."""

    def __init__(self, world: World, patch: pytest.MonkeyPatch, flags: tuple[str, ...], seed: int) -> None:
        self.wire, self.stop = Wire(world.server.transport(), world.clock), asyncio.Event()
        names = "--controllers=replicaset-controller"
        self.manager, _ = manager_of(world, self.wire, patch, self.stop, names, *flags, seed=seed)
        self.running = asyncio.ensure_future(self.manager.run())


async def scale(world: World, name: str, replicas: int = REPLICAS) -> None:
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "nginx"}]}}
    spec = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template}
    await world.create(SETS, {"metadata": {"name": name}, "spec": spec})


async def pods(world: World) -> int:
    return len(await world.items(PODS))


@asynccontextmanager
async def pair(world: World, flags: tuple[str, ...]) -> AsyncIterator[tuple[Candidate, Candidate]]:
    """A leader, and a standby that has had time for its caches."""
    with pytest.MonkeyPatch.context() as patch:
        leader = Candidate(world, patch, (), 1)
        await world.wait(5)
        standby = Candidate(world, patch, flags, 2)
        await world.wait(5)
        await scale(world, "a")
        await world.wait(5)
        assert await pods(world) == REPLICAS
        yield leader, standby
        for one in (leader, standby):
            one.stop.set()
        await asyncio.gather(leader.running, standby.running, return_exceptions=True)  # the dead one has failed


@pytest.fixture(params=[informer.SMALL, -1], ids=["by lists", "by watches"])
def confirmed(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The ways in which caches are confirmed."""
    monkeypatch.setattr(informer, "SMALL", request.param)


@pytest.mark.parametrize("flags", [WARM, COLD])
async def test_only_a_warm_standby_reads_and_none_writes(world: World, flags: tuple[str, ...]) -> None:
    async with pair(world, flags) as (_, standby):
        await world.wait(60)
        followed = {"/api/v1/nodes", "/api/v1/pods", "/apis/apps/v1/replicasets"}
        assert standby.wire.reads() == (followed if flags else set())
        assert {one.method for _, one in standby.wire.sent} == {"GET"}


@pytest.mark.usefixtures("confirmed")
async def test_it_takes_over_when_the_lease_of_a_dead_leader_expires(world: World) -> None:
    async with pair(world, WARM) as (leader, standby):
        leader.wire.dead, died_at = True, world.clock.monotonic()
        await scale(world, "b")
        await world.wait(LEASE_S + 10)
        assert await pods(world) == 2 * REPLICAS
        first, _ = standby.wire.writes()[0]
        assert first - died_at <= LEASE_S + 2


@pytest.mark.usefixtures("confirmed")
async def test_it_takes_over_within_two_seconds_from_a_leader_that_releases(world: World) -> None:
    async with pair(world, WARM) as (leader, standby):
        leader.stop.set()
        await leader.running
        ended_at = world.clock.monotonic()
        await scale(world, "b")
        await world.wait(10)
        assert await pods(world) == 2 * REPLICAS
        first, _ = standby.wire.writes()[0]
        assert first - ended_at <= 2


@pytest.mark.usefixtures("confirmed")
async def test_the_last_writes_of_the_former_leader_are_seen_before_the_first_sync(world: World) -> None:
    """Its watch of pods is late by minutes, as it may be at an API server of its own."""
    async with pair(world, WARM) as (leader, standby):
        standby.wire.late_s = 300
        await scale(world, "b")
        await world.wait(1)
        assert await pods(world) == 2 * REPLICAS
        leader.wire.dead = True
        await world.wait(LEASE_S + 5)
        standby.wire.late_s = 0
        await world.wait(400)
        assert await pods(world) == 2 * REPLICAS
        assert not [one for _, one in standby.wire.writes() if one.method == "POST"]


def test_it_is_refused_with_leader_migration() -> None:
    with pytest.raises(ConfigError, match="warm-standby cannot be used with enable-leader-migration"):
        load(["--warm-standby", "--enable-leader-migration"])
