"""Elections across two threads: they run on the control thread, and the controllers' loop checks them before each
write.

Losing a lease ends the process at once (``lost``), since the controllers' loop may be the one that hangs.
"""

import logging
import random
import socket
import uuid
from collections.abc import Callable

import msgspec

from kcm_cli.component.clock import Clock
from kcm_cli.component.leader_config import LeaderElectionConfig
from kcm_cli.component.metrics import Registry
from kcm_cli.manager.loop_thread import LoopThread
from kcm_cli.rest.client import Client
from kcm_cli.runtime.events import ObjectRecorder
from kcm_cli.runtime.leader import ElectionConfig, Elector, LeaseLock
from kcm_cli.runtime.loop_monitor import LoopMonitor
from kcm_cli.runtime.tasks import Tasks

log = logging.getLogger(__name__)


def new_identity(rng: random.Random) -> str:
    """``HOST_UUID``, unique to each process."""
    return f"{socket.gethostname()}_{uuid.UUID(int=rng.getrandbits(128), version=4)}"


class Election:
    """The election for one lease."""

    def __init__(self, name: str, shared: "Elections") -> None:
        settings = shared.settings
        self._shared = shared
        self._config = ElectionConfig(
            identity=shared.identity,
            name=name,
            namespace=settings.resource_namespace,
            lease_duration_s=settings.lease_duration_s,
            renew_deadline_s=settings.renew_deadline_s,
            retry_period_s=settings.retry_period_s,
            coordinated=shared.coordinated,
            eager=shared.eager,
        )
        lock = LeaseLock(shared.client, self._config.namespace, name, shared.recorder.emit)
        self._elector = Elector(self._config, lock, shared.clock, shared.rng, shared.registry)
        self._tasks = Tasks(self._failed)
        self._given_up = False

    async def acquire(self) -> None:
        """Wait until this process leads, and renew the lease from then on."""
        await self._shared.thread.call(self._acquire())

    def safe(self) -> bool:
        """Whether no other candidate can lead yet. May be called on any thread."""
        return self._elector.safe()

    def check(self) -> str | None:
        """The health check. May be called on any thread."""
        return self._elector.check(self._shared.clock.monotonic())

    async def release(self, within_s: float) -> bool:
        """Release the lease after all work has ended. Returns whether that worked within the time."""
        return await self._shared.thread.call(self._release(within_s))

    async def _acquire(self) -> None:
        await self._elector.acquire()
        self._tasks.start("leader election", self._hold())

    async def _hold(self) -> None:
        self._shared.lost(await self._elector.hold(self._alive))

    async def _release(self, within_s: float) -> bool:
        self._given_up = True
        await self._tasks.stop()
        return await self._elector.release(within_s)

    def _failed(self, task: str, error: BaseException) -> None:
        if self._given_up:
            log.error("Failed while the lease is released", extra={"fields": {"err": str(error)}}, exc_info=error)
        else:
            self._shared.lost(f"{task}: {error}")

    def _alive(self) -> bool:
        stalled_s = self._shared.monitor.stalled_s(self._shared.clock.monotonic())
        if stalled_s < self._config.renew_deadline_s:
            return True
        log.error("The controllers' event loop has stalled", extra={"fields": {"seconds": round(stalled_s, 1)}})
        return False


class Elections(msgspec.Struct, frozen=True, kw_only=True):
    """The settings that all elections of a process share.

    lost: called with the reason on the control thread. coordinated: the API server chooses the holder (gate
    CoordinatedLeaderElection). eager: see ``ElectionConfig``.
    """

    identity: str
    settings: LeaderElectionConfig
    coordinated: bool
    client: Client
    recorder: ObjectRecorder
    thread: LoopThread
    monitor: LoopMonitor
    clock: Clock
    rng: random.Random
    registry: Registry
    lost: Callable[[str], None]
    eager: bool = False
