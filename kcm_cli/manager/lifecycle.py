"""One life of a manager: serve, lead, wait for the API server, run controllers, and the way back.

Two loops: the controllers' (on which ``Manager.run`` runs) and the control thread's, with the server and the election.

upstream: cmd/kube-controller-manager/app/controllermanager.go#Run
"""

import asyncio
import contextlib
import logging
import random
import sys
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass

from kcm_cli.component.clock import Clock
from kcm_cli.component.health import Warnings
from kcm_cli.component.metrics.informers import States
from kcm_cli.component.surroundings import Host, ServerCA
from kcm_cli.engine.context import Common
from kcm_cli.engine.descriptor import Descriptor
from kcm_cli.machinery.durations import format_duration
from kcm_cli.manager.candidate import HEALTH_CHECK as INFORMER_SYNC
from kcm_cli.manager.candidate import QUEUE as CANDIDATE_QUEUE
from kcm_cli.manager.candidate import Candidate
from kcm_cli.manager.config import Config
from kcm_cli.manager.config_controllers import known_of, selected
from kcm_cli.manager.connections import Connections, Dial, check, connect, delegates, election_client
from kcm_cli.manager.controller_map import all_controllers
from kcm_cli.manager.controllers import RunContext, choose, run_controllers
from kcm_cli.manager.errors import RunError
from kcm_cli.manager.leadership import Election, Elections, new_identity
from kcm_cli.manager.loop_thread import LoopThread
from kcm_cli.manager.migration import DEFAULT_LEADERS, DEFAULT_NAME, Lock, locks
from kcm_cli.manager.notify import READY, STOPPING, notify
from kcm_cli.manager.observability import Observability
from kcm_cli.manager.running import MANAGER
from kcm_cli.manager.server.metrics import AuthMetrics
from kcm_cli.manager.server.queues import Loads
from kcm_cli.manager.server.server import Server, ServerConfig
from kcm_cli.rest.client import Client
from kcm_cli.rest.discovery import resources_of
from kcm_cli.rest.probe import wait_until_healthy
from kcm_cli.rest.session import Session
from kcm_cli.runtime.events import EventNames, EventWriter
from kcm_cli.runtime.leader import HEALTH_CHECK
from kcm_cli.runtime.loop_monitor import SWITCH_INTERVAL_S, LoopMonitor
from kcm_cli.runtime.tasks import Stopped, Tasks, innermost, unless

log = logging.getLogger(__name__)

_SERVER_END_S = 3.0
_TASKS_END_S = 3.0
"""For what is still there after the work has ended, or has been given up."""
_LEAST_RELEASE_S = 2.0
"""A release may take so long even where the controllers have used up the time of the stop."""
_FLUSH_S = 1.0
_REPORT_S = 5.0
RELEASE_GATE = "ControllerManagerReleaseLeaderElectionLockOnExit"


class ShutdownTimeout(RunError):
    """Controllers were asked to end and did not."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a manager runs. ``dial``: how its controllers reach the API server. ``real_time``: that a loop which turns
    late stands still, and does not only have its time moved."""

    dial: Dial = Session
    real_time: bool = True
    host: Host = Host()


class Manager:
    """Lives once.

    ``stop`` ends it in order. ``abandon`` is called, on the control thread, when others may lead: a process of its own
    has to be gone at once. If it returns, the manager ends itself as fast as its loop allows.
    """

    def __init__(
        self,
        config: Config,
        stop: asyncio.Event,
        abandon: Callable[[str], None],
        clock: Clock,
        rng: random.Random,
        place: Place,
    ) -> None:
        """On the controllers' loop. Raises RunError."""
        self._place = place
        self._config = config
        self._stop = stop
        self._loop = asyncio.get_running_loop()
        self._abandon = abandon
        self._clock = clock
        self._rng = rng
        self._show = Observability(config, clock)
        self._control_monitor = LoopMonitor(clock, real_time=True)
        self._monitor = LoopMonitor(clock, self._show.registry, yields_to=self._control_monitor, real_time=True)
        self._thread = LoopThread("control")
        self._tasks = Tasks(self._failed)
        self._failure: BaseException | None = None
        self._first_started = asyncio.Event()
        self._control_clients: list[Client] = []
        self._events: EventWriter | None = None
        self._stop_until: float | None = None

    @property
    def observability(self) -> Observability:
        """What this manager shows of itself."""
        return self._show

    async def run(self) -> None:
        """Live until stopped. Raises what made it impossible to go on."""
        check(self._config)
        server = self._server()
        sys.setswitchinterval(SWITCH_INTERVAL_S)
        self._thread.start()
        serving: Future[None] | None = None
        try:
            asked = await unless(self._stop, self._thread.call(delegates(self._config, self._clock, self._show.rest)))
            self._control_clients += [one for one in (asked.authentication, asked.authorization) if one is not None]
            serving = self._thread.submit(server.serve(asked, self._rng))
            self._watch(serving)
            self._thread.submit(self._control_monitor.run())
            if self._place.real_time:
                self._tasks.start("loop monitor", self._monitor.run())
            notify(READY)
            await self._lead()
        except Stopped:
            pass  # before the election
        finally:
            notify(STOPPING)
            await self._tasks.stop(_TASKS_END_S)
            await self._close(server, serving)
        if self._failure is not None:
            raise self._failure

    async def _close(self, server: Server, serving: "Future[None] | None") -> None:
        """End the server, the connections of its thread, and the thread."""
        if self._events is not None:
            await asyncio.wait([asyncio.wrap_future(self._thread.submit(self._events.flush()))], timeout=_FLUSH_S)
        if serving is not None:
            await self._thread.call(server.stop())
            await asyncio.wait([asyncio.wrap_future(serving)], timeout=_SERVER_END_S)
        server.close()
        for client in self._control_clients:
            await self._thread.call(client.close())
        await self._thread.stop()

    def _server(self) -> Server:
        config = self._config
        mux = self._show.pages(self._loop, lambda: self._thread.loop)
        settings = ServerConfig(
            serving=config.serving,
            authentication=config.authentication,
            authorization=config.authorization,
            certificate_uids=config.gates.enabled("AllowParsingUserUIDFromCertAuth"),
        )
        loads = Loads(self._clock, lambda name: self._show.workqueues.queue(name, self._clock.monotonic))
        return Server(settings, mux, AuthMetrics.register(self._show.registry), self._clock, loads)

    async def _lead(self) -> None:
        """Under the lease, or without one where --leader-elect=false."""
        generic = self._config.component.generic
        if not generic.leader_election.enabled:
            await self._work(None, lambda lock: lock is not Lock.ELSEWHERE or not generic.leader_migration_enabled)
            return
        elections = await unless(self._stop, self._elections())
        if elections.coordinated:
            self._stand(elections)
        main = Election(generic.leader_election.resource_name, elections)
        self._show.health.add(HEALTH_CHECK, main.check)
        if not generic.leader_migration_enabled:
            await self._work(main, lambda lock: True)
            return
        migration = Election(generic.leader_migration.leader_name or DEFAULT_NAME, elections)
        # Where one of them fails the other one ends in order: its lease is not given up under its controllers.
        locked = self._tasks.start("main lock", self._work(main, lambda lock: lock is Lock.MAIN))
        migrated = self._tasks.start("migration lock", self._later(migration))
        await asyncio.wait([locked, migrated])

    async def _later(self, migration: Election) -> None:
        """Acquires the main lock first, to avoid a split between the two locks."""
        with contextlib.suppress(Stopped):
            await unless(self._stop, self._first_started.wait())
            await self._work(migration, lambda lock: lock is Lock.MIGRATION, first=False)

    async def _elections(self) -> Elections:
        client = await self._thread.call(election_client(self._config, self._clock, self._show.rest))
        self._control_clients.append(client)
        events = self._events = EventWriter(client, EventNames(self._clock), self._clock, self._rng)
        self._watch(self._thread.submit(events.run()))
        return Elections(
            identity=new_identity(self._rng),
            settings=self._config.component.generic.leader_election,
            coordinated=self._config.gates.enabled("CoordinatedLeaderElection"),
            client=client,
            recorder=events.recorder(MANAGER, level=logging.INFO),
            thread=self._thread,
            monitor=self._monitor,
            clock=self._clock,
            rng=self._rng,
            registry=self._show.registry,
            lost=self._lost,
        )

    def _stand(self, elections: Elections) -> None:
        """Be a candidate among whom the API server chooses."""
        config, clock = self._config, self._clock
        candidate = Candidate(elections.client, elections.identity, MANAGER, config.version, clock, self._rng)
        self._show.health.add(INFORMER_SYNC, candidate.check)
        metrics = self._show.workqueues.queue(CANDIDATE_QUEUE, clock.monotonic)
        self._watch(self._thread.submit(candidate.run(metrics)))

    async def _work(self, election: Election | None, wanted: Callable[[Lock], bool], *, first: bool = True) -> None:
        """Run the controllers that belong under one lock, once it is held; then release it."""
        safe = election.safe if election is not None else None
        with contextlib.suppress(Stopped):
            connections = await unless(
                self._stop, connect(self._config, self._clock, self._show.rest, safe, self._place.dial)
            )
            try:
                await self._work_with(connections, election, wanted, first=first)
            finally:
                await connections.close()

    async def _work_with(
        self, connections: Connections, election: Election | None, wanted: Callable[[Lock], bool], *, first: bool
    ) -> None:
        try:
            if election is not None:
                await unless(self._stop, election.acquire())
            probe = connections.root.client(MANAGER)
            await unless(self._stop, wait_until_healthy(probe, self._clock))
            await self._controllers(connections, wanted, first=first)
        except ShutdownTimeout:
            election = None  # a controller may still act: no other candidate may lead yet
            raise
        finally:
            if election is not None and self._config.gates.enabled(RELEASE_GATE):
                left_s = self._left_to_stop_s()
                await election.release(float("inf") if left_s is None else max(left_s, _LEAST_RELEASE_S))

    async def _controllers(self, connections: Connections, wanted: Callable[[Lock], bool], *, first: bool) -> None:
        config, generic = self._config, self._config.component.generic
        served = await unless(self._stop, self._served(connections))
        run = RunContext(
            chosen=self._chosen(served, wanted, first=first),
            clients=connections.controllers,
            root_clients=connections.root,
            common=Common(
                clock=self._clock,
                rng=self._rng,
                gates=config.gates,
                configs={**config.by_type(), Host: self._place.host, ServerCA: ServerCA(connections.ca_data)},
                served=served,
                metrics=self._show.registry,
                queue_metrics=lambda name: self._show.workqueues.queue(name, self._clock.monotonic),
            ),
            start_interval_s=generic.controller_start_interval_s,
            resync_s=generic.min_resync_period_s,
            observer=self,
            debug=self._show.debug,
        )
        work = self._tasks.start("controllers", run_controllers(run, self._stop))
        await unless_done(self._stop, work)
        await self._wind_up(work)

    async def _served(self, connections: Connections) -> frozenset[str]:
        """What is served of the APIs that controllers require, as group/version/plural. Raises ApiError,
        TransportError: as upstream, a controller that cannot know whether to run ends the start."""
        client, gates = connections.root.discovery_client("controller-discovery"), self._config.gates
        required = {
            api.rpartition("/")[0]
            for one in all_controllers()
            if one.name in self._config.controllers and all(gates.enabled(gate) for gate in one.gates)
            for api in one.requires
        }
        found = [await resources_of(client, *group_version.split("/")) for group_version in sorted(required)]
        return frozenset(f"{one.gvr.group_version}/{one.gvr.plural}" for served in found for one in served)

    async def _wind_up(self, work: asyncio.Task[None]) -> None:
        """Wait for the controllers' end. Raises ShutdownTimeout if they take too long."""
        limit_s, running = self._config.shutdown_timeout_s, self._show.running.names
        while not work.done():
            left_s = self._left_to_stop_s()
            if left_s is not None and left_s <= 0:
                fields = {"timeout": format_duration(limit_s), "runningControllers": sorted(running)}
                log.info("Controller shutdown timeout reached", extra={"fields": fields})
                raise ShutdownTimeout("controller shutdown timeout reached")
            await asyncio.wait([work], timeout=_REPORT_S if left_s is None else min(left_s, limit_s / 3))
            if not work.done():
                fields = {"runningControllers": sorted(running)}
                log.info("Still waiting for some controllers to terminate...", extra={"fields": fields})
        work.result()

    def _left_to_stop_s(self) -> float | None:
        """What is left of --controller-shutdown-timeout since the stop was first noticed; None for no limit.

        Controllers and the release of the lease share it, so that the whole stop has one bound.
        """
        if not self._config.shutdown_timeout_s:
            return None
        now = self._clock.monotonic()
        if self._stop_until is None:
            self._stop_until = now + self._config.shutdown_timeout_s
        return self._stop_until - now

    def _chosen(self, served: frozenset[str], wanted: Callable[[Lock], bool], *, first: bool) -> tuple[Descriptor, ...]:
        generic, everything = self._config.component.generic, all_controllers()
        known = known_of(everything)
        table = self._locks(known.aliases)
        here = tuple(
            one for one in everything if wanted(table.get(one.name, Lock.MAIN)) and (first or not one.starts_first)
        )
        return choose(here, selected(generic.controllers, known), self._config.gates, served)

    def _locks(self, aliases: Mapping[str, str]) -> Mapping[str, Lock]:
        generic = self._config.component.generic
        if not generic.leader_migration_enabled:
            return {}
        return locks(generic.leader_migration.controller_leaders or DEFAULT_LEADERS, aliases)

    def built(self, controller: str) -> None:
        """A controller has been made."""
        self._show.running.built(controller)

    def started(self, controller: str) -> None:
        """A controller begins to run."""
        self._first_started.set()
        self._show.running.started(controller)

    def ended(self, controller: str, *, stopped: bool) -> None:
        """A controller has ended."""
        self._show.running.ended(controller, stopped=stopped)

    def all_started(self) -> None:
        """There is no controller left to start."""
        self._show.running.all_started()

    def caches(self, states: States) -> None:
        """The caches to measure."""
        self._show.informers.add(states)

    def warn(self, warnings: Warnings) -> None:
        """Warnings to show with the health checks."""
        self._show.health.warn(warnings)

    def _watch(self, serving: "Future[None]") -> None:
        """End the manager if the server ends with an error."""

        def ended(future: "Future[None]") -> None:
            if not future.cancelled() and (error := future.exception()) is not None:
                self._loop.call_soon_threadsafe(self._failed, "server", error)

        serving.add_done_callback(ended)

    def _lost(self, why: str) -> None:
        """The lease was lost. Called on the control thread."""
        self._abandon(why)
        self._loop.call_soon_threadsafe(self._failed, "leader election", RunError(f"leaderelection lost: {why}"))

    def _failed(self, task: str, error: BaseException) -> None:
        """Something that has to run has ended."""
        if self._failure is None:
            self._failure = innermost(error)
        self._stop.set()


async def unless_done(stop: asyncio.Event, work: "asyncio.Task[None]") -> None:
    """Wait for the event or the end of the work, whichever is first; the work goes on."""
    waiter = asyncio.ensure_future(stop.wait())
    try:
        await asyncio.wait((work, waiter), return_when=asyncio.FIRST_COMPLETED)
    finally:
        waiter.cancel()
        await asyncio.wait([waiter])
