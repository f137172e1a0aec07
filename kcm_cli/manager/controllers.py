"""Builds and runs the configured controllers.

Order: the service account token controller starts first, since others wait for its tokens. Then the controllers are
built, one after the other: the caches of each are filled while the modules of the next are loaded, and a listener that
comes later is called for what is there. Then they start, each after one to two times --controller-start-interval. When
``stop`` is set they end in reverse order.

upstream: cmd/kube-controller-manager/app/controllermanager.go#BuildControllers, RunControllers
"""

import asyncio
import contextlib
import logging
import random
from collections.abc import Callable, Iterator
from functools import partial

import msgspec
from msgspec.structs import asdict

from kcm_cli.api.well_known import GROUPS
from kcm_cli.component.clock import Clock
from kcm_cli.component.environment import DEFAULTS
from kcm_cli.component.garbage import no_collections
from kcm_cli.component.health import HealthChecks
from kcm_cli.component.logs import V1, named
from kcm_cli.component.metrics import Registry
from kcm_cli.component.metrics.informers import CacheState
from kcm_cli.engine.building import build
from kcm_cli.engine.context import Common, ControllerContext, DebugTable, Runnable
from kcm_cli.engine.descriptor import Descriptor
from kcm_cli.engine.door import Door, count_writes
from kcm_cli.machinery.meta import number_of
from kcm_cli.manager.config import Config
from kcm_cli.manager.running import MANAGER, RunningControllers
from kcm_cli.planning.actions import Notice
from kcm_cli.rest.builder import Clients
from kcm_cli.rest.client import Client
from kcm_cli.runtime.cause_ring import CauseRing
from kcm_cli.runtime.events import EventNames, EventWriter, ObjectRecorder
from kcm_cli.runtime.informers import Informers
from kcm_cli.runtime.object_errors import ObjectErrors
from kcm_cli.runtime.tasks import Stopped, Tasks, unless
from kcm_cli.runtime.workqueue import QueueMetrics

log = logging.getLogger(__name__)

INFORMERS_CLIENT = "shared-informers"


def _unobserved() -> RunningControllers:
    return RunningControllers(HealthChecks(), Registry())


class RunContext(msgspec.Struct, frozen=True, kw_only=True):
    """The arguments of ``run_controllers``.

    chosen: the descriptors to run, filtered by --controllers and gates. clients: creates each controller's client.
    root_clients: creates clients with the manager's own identity, if that is another one. served: API resources as
    group/version/plural. environment: values of ``component.environment`` other than the defaults, and groups of
    options in place of the configuration's. causes: the record of syncs, writes and why. observer: records which
    controllers run, and their caches. caches: those of a warm standby; without them, they are made by
    ``run_controllers``.
    """

    config: Config
    chosen: tuple[Descriptor, ...]
    clients: Clients
    clock: Clock
    rng: random.Random
    root_clients: Clients | None = None
    served: frozenset[str] = frozenset()
    environment: tuple[object, ...] = ()
    metrics: Registry = msgspec.field(default_factory=Registry)
    queue_metrics: Callable[[str], QueueMetrics | None] = lambda name: None
    causes: CauseRing | None = None
    observer: RunningControllers = msgspec.field(default_factory=_unobserved)
    debug: DebugTable = msgspec.field(default_factory=dict)
    caches: "Caches | None" = None

    @property
    def root(self) -> Clients:
        return self.root_clients or self.clients

    def common(self) -> Common:
        """What all controllers get."""
        return Common(
            clock=self.clock,
            rng=self.rng,
            gates=self.config.gates,
            configs=self.config.by_type() | {type(one): one for one in (*DEFAULTS, *self.environment)},
            served=self.served,
            metrics=self.metrics,
            queue_metrics=self.queue_metrics,
            causes=self.causes,
        )


class Caches:
    """The shared informers of a manager. In a warm standby they are filled before its controllers are built.

    emit: sends Events about objects that cannot be decoded; the start of the controllers sets it.
    """

    def __init__(self, run: RunContext) -> None:
        self.emit: Callable[[Notice], None] = lambda notice: None
        errors = ObjectErrors(run.metrics, lambda notice: self.emit(notice), run.clock.monotonic)
        self.informers = Informers(
            run.root.client(INFORMERS_CLIENT),
            run.clock,
            run.rng,
            resync_s=run.config.component.generic.min_resync_period_s,
            object_errors=errors,
            watch_list=run.config.gates.enabled("WatchListClient"),
        )
        run.observer.caches(partial(cache_states, self.informers))
        run.observer.warn(errors.warnings)
        run.observer.warn(self.informers.warnings)

    async def fill(self, run: RunContext, tasks: Tasks) -> None:
        """Fill and follow the caches that the declarations of the chosen controllers name, with no listener. Raises
        StartError. Yields to the loop in between.

        Those that controllers find by discovery are made when these are built.
        """
        common = run.common()
        for descriptor in run.chosen:
            with no_collections():  # it loads the controller's modules
                descriptor.load().fill(common, self.informers)
            self.informers.start(tasks)
            await asyncio.sleep(0)


async def run_controllers(run: RunContext, stop: asyncio.Event) -> None:
    """Run the chosen controllers until ``stop``. Raises StartError, and the error of a controller that crashed."""
    crashed, crash = list[BaseException](), asyncio.Event()

    def failed(name: str, error: BaseException) -> None:
        log.error("Task ended unexpectedly", extra={"fields": {"task": name, "err": str(error)}}, exc_info=error)
        crashed.append(error)
        crash.set()

    tasks = Tasks(failed)
    try:
        await _Start(run, tasks).all()
        with contextlib.suppress(Stopped):
            await unless(stop, crash.wait())
    finally:
        await tasks.stop()
        log.info("All controllers terminated")
    if crashed:
        raise crashed[0]


class _Start:
    """The start of the controllers: shared informers, event writers, and their order."""

    def __init__(self, run: RunContext, tasks: Tasks) -> None:
        self._run = run
        self._tasks = tasks
        client = run.root.client(INFORMERS_CLIENT)
        self._common = run.common()
        self._names = EventNames(run.clock)
        self._writers: dict[str, EventWriter] = {}
        self._waiting: set[str] = set()
        self._count = count_writes(run.metrics)
        caches = run.caches or Caches(run)
        caches.emit = self._writer(INFORMERS_CLIENT, client).recorder(MANAGER).emit
        self._informers = caches.informers

    async def all(self) -> None:
        """Build all controllers, then start them. Yields to the loop in between."""
        first = [descriptor for descriptor in self._run.chosen if descriptor.starts_first]
        rest = [descriptor for descriptor in self._run.chosen if not descriptor.starts_first]
        self._waiting.update(descriptor.name for descriptor in self._run.chosen)
        for descriptor in first:
            self._start(descriptor, self._build(descriptor))
        self._informers.start(self._tasks)
        built = []
        for descriptor in rest:
            built.append((descriptor, self._build(descriptor)))
            self._informers.start(self._tasks)
            await asyncio.sleep(0)
        self._run.rng.shuffle(built)
        for descriptor, runnable in built:
            self._start(descriptor, runnable)
        self._report_all_started()

    def _build(self, descriptor: Descriptor) -> Runnable | None:
        with named(descriptor.name), no_collections():  # it loads the controller's modules
            runnable = build(descriptor.load(), self._context(descriptor))
        if runnable is None:
            log.info("Warning: skipping controller", extra={"fields": {"controller": descriptor.name}})
        else:
            self._run.observer.built(descriptor.name, descriptor.running_as)
        return runnable

    def _start(self, descriptor: Descriptor, runnable: Runnable | None) -> None:
        if runnable is None:
            self._waiting.discard(descriptor.name)
        else:
            self._tasks.start(descriptor.name, self._running(descriptor.name, runnable))

    async def _running(self, name: str, runnable: Runnable) -> None:
        run, observer, stopped = self._run, self._run.observer, False
        interval_s = run.config.component.generic.controller_start_interval_s
        if interval_s > 0:
            await run.clock.sleep(interval_s * (1.0 + run.rng.random()))
        log.log(V1, "Controller starting...", extra={"fields": {"controller": name}})
        observer.started(name)
        self._waiting.discard(name)
        self._report_all_started()
        try:
            with named(name):
                await runnable.run()
        except asyncio.CancelledError:
            stopped = True
            raise
        finally:
            log.log(V1, "Controller terminated", extra={"fields": {"controller": name}})
            observer.ended(name, stopped=stopped)

    def _report_all_started(self) -> None:
        if not self._waiting:
            self._run.observer.all_started()

    def _context(self, descriptor: Descriptor) -> ControllerContext:
        run = self._run
        clients = run.root if descriptor.starts_first else run.clients
        name = descriptor.called
        client = Door(clients.client(name), descriptor.name, self._count, self._run.causes)

        def recorder_for(source: str) -> ObjectRecorder:
            return self._writer(name, client).recorder(source)

        return ControllerContext(
            **asdict(self._common),
            name=descriptor.name,
            client=client,
            informers=self._informers,
            recorder=recorder_for(descriptor.source or descriptor.name),
            recorder_for=recorder_for,
            start_informers=lambda: self._informers.start(self._tasks),
            debug=run.debug.setdefault(descriptor.name, {}),
        )

    def _writer(self, name: str, client: Client) -> EventWriter:
        writer = self._writers.get(name)
        if writer is None:
            writer = self._writers[name] = EventWriter(client, self._names, self._run.clock, self._run.rng)
            self._tasks.start(f"events of {name}", writer.run())
        return writer


TYPED_GROUPS = GROUPS - {
    "apiextensions.k8s.io",
    "apiregistration.k8s.io",
    "authentication.k8s.io",
    "authorization.k8s.io",
    "events.k8s.io",
    "extensions",
}
"""Those that client-go has informers of whole objects for (upstream: staging/src/k8s.io/client-go/informers)."""


def cache_states(informers: Informers) -> Iterator[CacheState]:
    """The caches in kube-controller-manager's metrics. Metadata caches of other groups are left out."""
    for informer in informers.all():
        gvr = informer.resource.gvr
        if not informer.scope.metadata_only or gvr.group in TYPED_GROUPS:
            name = f"{informer.resource.kind.lower()}s"  # as upstream makes it of the Go type: endpointss, ingresss
            at = number_of(informer.last_version)
            yield CacheState(gvr.group, gvr.version, name, at, informer.handling)
