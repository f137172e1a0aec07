"""A stopped manager exits with 0 and releases its lease, with any failures during shutdown."""

import asyncio
import random
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import Any

import pytest

from kcm_cli.engine.worker import Worker
from kcm_cli.manager import lifecycle
from kcm_cli.manager.config import load
from kcm_cli.manager.connections import Connections
from kcm_cli.manager.leadership import Election
from kcm_cli.manager.lifecycle import Manager, Place, ShutdownTimeout
from kcm_cli.manager.loop_thread import LoopThread
from kcm_cli.manager.server.server import Delegates, Server
from kcm_cli.rest.builder import ClientSettings, RootClients
from kcm_cli.rest.client import Client
from kcm_cli.rest.errors import InternalError
from kcm_cli.rest.transport import ConnectionLost, Transport
from kcm_cli.runtime.events import EventWriter
from kcm_cli.runtime.informer import Informer
from kcm_cli.runtime.leader import Elector, LeaseLock
from kcm_cli.runtime.loop_monitor import LoopMonitor
from kcm_cli.runtime.tasks import innermost
from tests.kit.world import World, resource

pytestmark = pytest.mark.cluster(alone=True)

LEASES = resource("leases", "coordination.k8s.io")
FLAGS = ("--secure-port=0", "--controllers=ttl-controller", "--leader-elect-resource-name=kcm")
LED_S, MOST_S = 9.3, 25.0
ERRORS = (
    RuntimeError("closed"),
    OSError("reset"),
    ConnectionLost("lost"),
    InternalError(500, "x", "y"),
    ValueError("x"),
)


class SameLoop(LoopThread):
    """The control thread's part on the loop of the test, whose time is virtual."""

    def __init__(self, name: str) -> None:
        self._loop = asyncio.get_running_loop()
        self._running: set[asyncio.Task[Any]] = set()

    def start(self) -> None: ...

    def submit(self, work: Coroutine[object, object, Any]) -> "Future[Any]":
        task, future = self._task(work), Future[Any]()

        def ended(task: asyncio.Task[Any]) -> None:
            if task.cancelled():
                future.cancel()
            elif (error := task.exception()) is not None:
                future.set_exception(error)
            else:
                future.set_result(task.result())

        task.add_done_callback(ended)
        return future

    async def call(self, work: Coroutine[object, object, Any]) -> Any:
        return await self._task(work)

    async def stop(self) -> None:
        for task in self._running:
            task.cancel()
        if self._running:
            await asyncio.wait(self._running, timeout=3)

    def _task(self, work: Coroutine[object, object, Any]) -> asyncio.Task[Any]:
        task = self._loop.create_task(work)
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        return task


def manager_of(
    world: World, transport: Transport, patch: pytest.MonkeyPatch, stop: asyncio.Event, *flags: str, seed: int = 1
) -> tuple[Manager, list[str]]:
    """A whole manager on the loop of its world, and why it was abandoned."""
    clients = RootClients(transport, ClientSettings(qps=-1), world.clock)

    async def connect(*_: object) -> Connections:
        return Connections(clients, clients, (transport,))

    async def election_client(*_: object) -> Client:
        return clients.client("election")

    async def delegates(*_: object) -> Delegates:
        return Delegates()

    for name, made in (("connect", connect), ("election_client", election_client), ("delegates", delegates)):
        patch.setattr(lifecycle, name, made)
    patch.setattr(lifecycle, "check", lambda config: None)
    patch.setattr(lifecycle, "LoopThread", SameLoop)
    abandoned, place = list[str](), Place(real_time=False)
    config, rng = load([*FLAGS, *flags]), random.Random(seed)
    return Manager(config, stop, abandoned.append, world.clock, rng, place), abandoned


class Life:
    """A manager with its lease, on a separate world."""

    def __init__(self, world: World, monkeypatch: pytest.MonkeyPatch, *flags: str) -> None:
        self.world, self.stop = world, asyncio.Event()
        self.manager, self.abandoned = manager_of(world, world.server.transport(), monkeypatch, self.stop, *flags)

    async def holder(self) -> str:
        spec = (await self.world.get(LEASES, "kcm", "kube-system"))["spec"]
        return str(spec.get("holderIdentity") or "")


def _raises(owner: type, name: str, error: Exception, since: asyncio.Event, *, after: bool) -> Callable[..., Any]:
    """The method, which fails from the stop on: instead of what it does, or after it."""
    original = getattr(owner, name)

    async def method(*words: Any, **named: Any) -> Any:
        if since.is_set() and not after:
            raise error
        try:
            return await original(*words, **named)
        finally:
            if since.is_set():
                raise error

    return method


PARTS: dict[str, tuple[type, str, bool]] = {
    "the server's stop": (Server, "stop", False),
    "the server": (Server, "serve", True),
    "the Events that are left": (EventWriter, "flush", False),
    "the writer of Events": (EventWriter, "run", True),
    "a client's close": (Client, "close", True),
    "the connections' close": (Connections, "close", True),
    "the control thread's end": (SameLoop, "stop", True),
    "a renewal": (Elector, "hold", True),
    "the release": (Election, "release", True),
    "the lease's read": (LeaseLock, "get", False),
    "the lease's write": (LeaseLock, "update", False),
    "a worker": (Worker, "run", True),
    "a cache": (Informer, "run", True),
    "the loop's monitor": (LoopMonitor, "run", True),
}
KEEPS_LEASE = ("the lease's read", "the lease's write")


@pytest.mark.parametrize("part", PARTS)
async def test_errors_during_shutdown_do_not_affect_others(
    world: World, part: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    owner, name, after = PARTS[part]
    for error in ERRORS:
        with pytest.MonkeyPatch.context() as patch:
            one = Life(world, patch)
            patch.setattr(owner, name, _raises(owner, name, error, one.stop, after=after))
            running = asyncio.ensure_future(one.manager.run())
            await world.wait(LED_S)
            assert await one.holder()
            assert not running.done()
            one.stop.set()
            async with asyncio.timeout(MOST_S):
                await running
            assert one.abandoned == []
            assert part in KEEPS_LEASE or not await one.holder()


async def test_errors_before_shutdown_are_reported(world: World) -> None:
    with pytest.MonkeyPatch.context() as patch:
        one, broken = Life(world, patch), asyncio.Event()
        patch.setattr(Worker, "run", _raises(Worker, "run", RuntimeError("a bug"), broken, after=False))
        broken.set()
        with pytest.raises(ExceptionGroup) as caught:
            await one.manager.run()
        assert str(innermost(caught.value)) == "a bug"
        assert not await one.holder()


async def goes_on(self: Worker) -> None:
    """Ends a minute after it was asked to."""
    try:
        await asyncio.Event().wait()
    finally:
        await asyncio.sleep(60)


@pytest.mark.parametrize("timeout", ["0", "-1s"])
async def test_without_a_timeout_controllers_are_waited_for(world: World, timeout: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        one = Life(world, patch, f"--controller-shutdown-timeout={timeout}")
        patch.setattr(Worker, "run", goes_on)
        running = asyncio.ensure_future(one.manager.run())
        await world.wait(LED_S)
        one.stop.set()
        await running
        assert not await one.holder()


async def test_controllers_that_do_not_end_are_reported_and_the_lease_is_kept(world: World) -> None:
    with pytest.MonkeyPatch.context() as patch:
        one = Life(world, patch)
        patch.setattr(Worker, "run", goes_on)
        running = asyncio.ensure_future(one.manager.run())
        await world.wait(LED_S)
        one.stop.set()
        with pytest.raises(ShutdownTimeout):
            await running
        assert await one.holder()
