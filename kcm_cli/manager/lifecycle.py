"""The lifecycle of a manager, from top to bottom in the order in which its parts start.

    control thread > spans > server > Events, elections
    > for each lock: connections > lease > health > discovery > controllers

While these wait for each other and for the API server, the controllers' modules are loaded. With --warm-standby
discovery and caches come before the lease, too. They stop in the opposite order: the cleanup of each part follows the
``yield`` after its start. There are two loops: the control thread's (server, elections, their Events), and that of
``Manager.run`` (controllers).

upstream: cmd/kube-controller-manager/app/controllermanager.go#Run
"""

import asyncio
import contextlib
import logging
import random
import socket
import sys
from collections.abc import AsyncIterator, Callable, Collection, Coroutine
from concurrent.futures import Future
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import msgspec

from kcm_cli.component.clock import Clock
from kcm_cli.component.environment import Host, ServerCA
from kcm_cli.component.leader_config import DEFAULT_MIGRATION
from kcm_cli.machinery.durations import format_duration
from kcm_cli.manager.candidate import HEALTH_CHECK as INFORMER_SYNC
from kcm_cli.manager.candidate import QUEUE as CANDIDATE_QUEUE
from kcm_cli.manager.candidate import Candidate
from kcm_cli.manager.config import Config
from kcm_cli.manager.connections import Connections, Dial, check, connect, delegates, election_client
from kcm_cli.manager.controllers import Caches, RunContext, run_controllers
from kcm_cli.manager.errors import RunError
from kcm_cli.manager.leadership import Election, Elections, new_identity
from kcm_cli.manager.loop_thread import LoopThread
from kcm_cli.manager.notify import READY, STOPPING, notify
from kcm_cli.manager.observability import Observability
from kcm_cli.manager.running import MANAGER
from kcm_cli.manager.selection import Lock, chosen_under, load, served_apis
from kcm_cli.manager.server.metrics import AuthMetrics
from kcm_cli.manager.server.server import Server, ServerConfig
from kcm_cli.manager.standby import Standby
from kcm_cli.rest.client import Client
from kcm_cli.rest.probe import wait_until_healthy
from kcm_cli.rest.session import Session
from kcm_cli.runtime.cause_ring import CauseRing
from kcm_cli.runtime.events import EventNames, EventWriter
from kcm_cli.runtime.leader import HEALTH_CHECK
from kcm_cli.runtime.loads import Loads
from kcm_cli.runtime.loop_monitor import SWITCH_INTERVAL_S, LoopMonitor
from kcm_cli.runtime.tasks import Stopped, Tasks, innermost, unless

if TYPE_CHECKING:
    from kcm_cli.manager.server.mux import Mux

log = logging.getLogger(__name__)

_SERVER_END_S = 3.0
_TASKS_END_S = 3.0
"""For what is still there after the work has ended, or has been given up."""
_LEAST_RELEASE_S = 2.0
"""A release may take so long even where the controllers have used up the time of the stop."""
_FLUSH_S = 1.0
_SPANS_S = 2.0
"""For the spans that wait when everything else has ended."""
_REPORT_S = 5.0
RELEASE_GATE = "ControllerManagerReleaseLeaderElectionLockOnExit"


class ShutdownTimeout(RunError):
    """Controllers did not end within --controller-shutdown-timeout."""


class Place(msgspec.Struct, frozen=True):
    """Where a manager runs.

    dial: connects the controllers to the API server. real_time: whether the loop runs in real time, so that a late loop
    has stalled. listener: a socket that is already bound to the secure port; it is closed with the server. causes: a
    record that others write to as well; None: one of its own.
    """

    dial: Dial = Session
    real_time: bool = True
    host: Host = Host()
    listener: socket.socket | None = None
    causes: CauseRing | None = None


class Manager:
    """Runs once.

    stop: set it for a graceful stop. abandon: called on the control thread when others may lead; the process must exit
    at once. If it returns, the manager ends as fast as its loop allows.
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
        """Call it on the controllers' loop. Raises RunError."""
        self._place = place
        self._config = config
        self._stop = stop
        self._loop = asyncio.get_running_loop()
        self._abandon = abandon
        self._clock = clock
        self._rng = rng
        self._identity = new_identity(rng)
        self._show = Observability(config, clock, self._place.causes)
        self._control_monitor = LoopMonitor(clock, real_time=True)
        self._monitor = LoopMonitor(clock, self._show.registry, yields_to=self._control_monitor, real_time=True)
        self._thread = LoopThread("control")
        self._thread_clients: list[Client] = []
        self._failure: BaseException | None = None
        self._stop_until: float | None = None

    @property
    def observability(self) -> Observability:
        """The metrics, health checks and pages of this manager."""
        return self._show

    async def run(self) -> None:
        """Run until stopped. Raises the error that ended the manager.

        An error after ``stop`` is only logged. Upstream exits with 0 then, too, unless its controllers do not end.
        """
        check(self._config)
        sys.setswitchinterval(SWITCH_INTERVAL_S)
        try:
            async with self._control_thread(), self._traced(), self._serving(), self._monitored(), self._loading():
                await self._lead()
        except Stopped:
            pass  # before the election
        except Exception as error:  # of whatever kind, it is raised or logged
            if not self._ignores("manager", innermost(error)):
                raise
        if self._failure is not None:
            raise self._failure

    @asynccontextmanager
    async def _control_thread(self) -> AsyncIterator[None]:
        """Start the control thread, with the loop of the server and the elections."""
        self._thread.start()
        try:
            yield
        finally:
            try:
                for client in self._thread_clients:
                    await self._thread.call(client.close())
            finally:
                await self._thread.stop()

    @asynccontextmanager
    async def _traced(self) -> AsyncIterator[None]:
        """Export spans (--tracing-config-file). Raises RunError where that cannot be done."""
        config = self._config.tracing
        if config is None or not config.rate:
            yield
            return
        try:
            # imported here: it needs the extra, and most managers have neither
            from kcm_cli.manager.tracing import Tracing
            from kcm_cli.runtime.spans import Spans
        except ImportError as error:
            raise RunError(
                f"tracing-config-file: spans need the extra otel: pip install 'kcm-cli[otel]', or leave the flag out "
                f"({error})"
            ) from error
        tracing, causes = Tracing(config, self._show.registry, self._identity), self._show.causes
        spans = causes.spans = Spans(self._identity, config.rate, causes.shift, tracing.export)
        try:
            yield
        finally:
            causes.spans = None  # others may write to the record for longer
            spans.close(self._clock.monotonic())
            await tracing.stop(_SPANS_S)

    @asynccontextmanager
    async def _serving(self) -> AsyncIterator[None]:
        """Serve port 10257. It is bound, and its certificates are loaded, before an API server is contacted."""
        with contextlib.closing(self._server()) as server:
            reviews = delegates(self._config, self._clock, self._show.rest)
            reviewers = await unless(self._stop, self._thread.call(reviews))
            clients = (reviewers.authentication, reviewers.authorization)
            self._thread_clients += [client for client in clients if client is not None]
            serving = self._on_thread(server.serve(reviewers, self._rng))
            try:
                yield
            finally:
                await self._thread.call(server.stop())
                ended = asyncio.gather(asyncio.wrap_future(serving), return_exceptions=True)  # reported by _on_thread
                await asyncio.wait([ended], timeout=_SERVER_END_S)

    def _server(self) -> Server:
        config = self._config
        settings = ServerConfig(
            serving=config.serving,
            authentication=config.authentication,
            authorization=config.authorization,
            certificate_uids=config.gates.enabled("AllowParsingUserUIDFromCertAuth"),
        )
        loads = Loads(self._clock, lambda name: self._show.workqueues.queue(name, self._clock.monotonic))
        metrics = AuthMetrics.register(self._show.registry)
        return Server(settings, self._pages, metrics, self._clock, loads, self._place.listener)

    def _pages(self) -> "Mux":
        # imported here: the first client of the port needs them
        from kcm_cli.manager.pages import pages

        return pages(self._show, self._loop, lambda: self._thread.loop)

    @asynccontextmanager
    async def _monitored(self) -> AsyncIterator[None]:
        """Monitor both loops, and report the state to systemd."""
        self._on_thread(self._control_monitor.run())
        tasks = Tasks(self._failed)
        if self._place.real_time:
            tasks.start("loop monitor", self._monitor.run())
        notify(READY)
        try:
            yield
        finally:
            notify(STOPPING)
            await tasks.stop(_TASKS_END_S)

    @asynccontextmanager
    async def _loading(self) -> AsyncIterator[None]:
        """Load the controllers' modules while others are waited for. A candidate that waits for days must not load
        them from the files of a later installation, and has less to do when it leads."""
        tasks = Tasks(self._failed)
        tasks.start("modules", load(self._config))
        try:
            yield
        finally:
            await tasks.stop(_TASKS_END_S)

    async def _lead(self) -> None:
        """Run the controllers under the lease, or without one (--leader-elect=false)."""
        generic = self._config.component.generic
        if not generic.leader_election.enabled:
            await self._work(None, (Lock.MAIN, Lock.MIGRATION))
            return
        async with self._elections() as elections:
            main = Election(generic.leader_election.resource_name, elections)
            self._show.health.add(HEALTH_CHECK, main.check)
            if generic.leader_migration_enabled:
                name = generic.leader_migration.leader_name or DEFAULT_MIGRATION.leader_name
                await self._work_apart(main, Election(name, elections))
            else:
                await self._work(main, (Lock.MAIN,))

    @asynccontextmanager
    async def _elections(self) -> AsyncIterator[Elections]:
        """Start what elections need: a client, Events and, with CoordinatedLeaderElection, the LeaseCandidate."""
        config, clock, rng = self._config, self._clock, self._rng
        client = await unless(self._stop, self._thread.call(election_client(config, clock, self._show.rest)))
        self._thread_clients.append(client)
        events = EventWriter(client, EventNames(clock), clock, rng)
        self._on_thread(events.run())
        elections = Elections(
            identity=self._identity,
            settings=config.component.generic.leader_election,
            coordinated=config.gates.enabled("CoordinatedLeaderElection"),
            client=client,
            recorder=events.recorder(MANAGER, level=logging.INFO),
            thread=self._thread,
            monitor=self._monitor,
            clock=clock,
            rng=rng,
            registry=self._show.registry,
            lost=self._lost,
            eager=config.warm_standby,
        )
        if elections.coordinated:
            candidate = Candidate(client, elections.identity, MANAGER, config.version, clock, rng)
            self._show.health.add(INFORMER_SYNC, candidate.check)
            self._on_thread(candidate.run(self._show.workqueues.queue(CANDIDATE_QUEUE, clock.monotonic)))
        try:
            yield elections
        finally:
            flushed = asyncio.wrap_future(self._thread.submit(events.flush()))
            await asyncio.wait([flushed], timeout=_FLUSH_S)
            if flushed.done() and not flushed.cancelled() and (error := flushed.exception()) is not None:
                log.error("Unable to write the last events", extra={"fields": {"err": str(error)}}, exc_info=error)

    async def _work_apart(self, main: Election, migration: Election) -> None:
        """Run the controllers under two locks (leader migration). If one part fails the other ends gracefully, so that
        no lease is released under running controllers."""

        async def later() -> None:
            """Run the controllers of the migration lock after the main lock was acquired, so that one process holds
            both."""
            with contextlib.suppress(Stopped):
                await unless(self._stop, self._show.running.first_started.wait())
                log.info("leader migration: starting migrated controllers.")
                await self._work(migration, (Lock.MIGRATION,))

        log.info("starting leader migration")
        tasks = Tasks(self._failed)
        log.info("leader migration: starting main controllers.")
        locked = tasks.start("main lock", self._work(main, (Lock.MAIN,)))
        migrated = tasks.start("migration lock", later())
        try:
            await asyncio.wait([locked, migrated])
        finally:
            await tasks.stop(_TASKS_END_S)

    async def _work(self, election: Election | None, held: Collection[Lock]) -> None:
        """Run the controllers of these locks while the lease is held."""
        with contextlib.suppress(Stopped):
            async with (
                self._connected(election) as connections,
                self._standby(election, connections, held) as standby,
                self._leading(election),
            ):
                caches = await standby.acquired() if standby is not None else None
                await unless(self._stop, wait_until_healthy(connections.root.client(MANAGER), self._clock))
                served = await unless(self._stop, self._served(connections))
                await self._run(self._context(connections, held, served, caches))

    async def _served(self, connections: Connections) -> frozenset[str]:
        return await served_apis(self._config, connections.root.discovery_client("controller-discovery"))

    @asynccontextmanager
    async def _standby(
        self, election: Election | None, connections: Connections, held: Collection[Lock]
    ) -> AsyncIterator[Standby | None]:
        """Fill the caches before the lease is held (--warm-standby), and follow them."""
        if election is None or not self._config.warm_standby:
            yield None
            return

        async def context() -> RunContext:
            return self._context(connections, held, await self._served(connections))

        standby = Standby(context, self._clock, self._failed)
        try:
            yield standby
        finally:
            await standby.stop(_TASKS_END_S)

    @asynccontextmanager
    async def _connected(self, election: Election | None) -> AsyncIterator[Connections]:
        """Connect the controllers. They write only while the election is safe."""
        safe = election.safe if election is not None else None
        place = self._place
        making = connect(self._config, self._clock, self._show.rest, safe, place.dial)
        connections = await unless(self._stop, making)
        try:
            yield connections
        finally:
            await connections.close()

    @asynccontextmanager
    async def _leading(self, election: Election | None) -> AsyncIterator[None]:
        """Acquire the lease, and release it at the end."""
        releases = election is not None and self._config.gates.enabled(RELEASE_GATE)
        try:
            if election is not None:
                await unless(self._stop, election.acquire())
            yield
        except ShutdownTimeout:
            releases = False  # a controller may still act: no other candidate may lead yet
            raise
        finally:
            if election is not None and releases:
                left_s = self._left_to_stop_s()
                await election.release(float("inf") if left_s is None else max(left_s, _LEAST_RELEASE_S))

    def _context(
        self, connections: Connections, held: Collection[Lock], served: frozenset[str], caches: Caches | None = None
    ) -> RunContext:
        show = self._show
        return RunContext(
            config=self._config,
            chosen=chosen_under(held, self._config, served),
            clients=connections.controllers,
            root_clients=connections.root,
            clock=self._clock,
            rng=self._rng,
            served=served,
            environment=(self._place.host, ServerCA(connections.ca_data)),
            metrics=show.registry,
            queue_metrics=lambda name: show.workqueues.queue(name, self._clock.monotonic),
            causes=show.causes,
            observer=show.running,
            debug=show.debug,
            caches=caches,
        )

    async def _run(self, context: RunContext) -> None:
        """Run the controllers until ``stop`` or until one of them ends, and wait until all have ended."""
        tasks = Tasks(self._failed)
        work = tasks.start("controllers", run_controllers(context, self._stop))
        try:
            await unless_done(self._stop, work)
            await self._wind_up(work)
        finally:
            await tasks.stop(_TASKS_END_S)

    async def _wind_up(self, work: asyncio.Task[None]) -> None:
        """Wait until the controllers have ended. Raises ShutdownTimeout."""
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
        """The seconds that are left of --controller-shutdown-timeout, counted from the first call; None for no limit.

        Controllers and the release of the lease share it, so that it bounds the whole stop.
        """
        if self._config.shutdown_timeout_s <= 0:
            return None
        now = self._clock.monotonic()
        if self._stop_until is None:
            self._stop_until = now + self._config.shutdown_timeout_s
        return self._stop_until - now

    def _on_thread(self, work: Coroutine[object, object, None]) -> "Future[None]":
        """Start a coroutine on the control thread. An error of it ends the manager."""

        def ended(future: "Future[None]") -> None:
            if not future.cancelled() and (error := future.exception()) is not None:
                self._loop.call_soon_threadsafe(self._failed, "control thread", error)

        future = self._thread.submit(work)
        future.add_done_callback(ended)
        return future

    def _lost(self, why: str) -> None:
        """The lease was lost. Called on the control thread."""
        self._abandon(why)
        self._loop.call_soon_threadsafe(self._fail, RunError(f"leaderelection lost: {why}"))

    def _failed(self, task: str, error: BaseException) -> None:
        """A required part has ended with an error."""
        error = innermost(error)
        if not self._ignores(task, error):
            self._fail(error)

    def _fail(self, error: BaseException) -> None:
        if self._failure is None:
            self._failure = error
        self._stop.set()

    def _ignores(self, task: str, error: BaseException) -> bool:
        """Whether an error is only logged, because the manager is stopping."""
        if isinstance(error, ShutdownTimeout) or self._failure is not None or not self._stop.is_set():
            return False
        fields = {"task": task, "err": " ".join(str(error).split())}
        log.error("Failed while stopping", extra={"fields": fields}, exc_info=error)
        return True


async def unless_done(stop: asyncio.Event, work: "asyncio.Task[None]") -> None:
    """Wait until ``stop`` is set or the task has ended. The task is not cancelled."""
    waiter = asyncio.ensure_future(stop.wait())
    try:
        await asyncio.wait((work, waiter), return_when=asyncio.FIRST_COMPLETED)
    finally:
        waiter.cancel()
        await asyncio.wait([waiter])
