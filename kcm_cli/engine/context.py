"""What a controller is built with: client, shared caches, clock, configuration.

Nothing here is global: a test passes an in-process transport and a virtual clock.
"""

import random
from collections.abc import Callable, Mapping
from typing import Protocol, TypeVar, cast

import msgspec

from kcm_cli.api.resource import GVR, Resource
from kcm_cli.component.clock import Clock
from kcm_cli.component.metrics import Registry
from kcm_cli.engine.door import Door
from kcm_cli.engine.execute import Executor, Recorder, SendOne
from kcm_cli.machinery.meta import Object
from kcm_cli.runtime.cause_ring import CauseRing
from kcm_cli.runtime.expectations import Expectations
from kcm_cli.runtime.informer import Informer, Scope
from kcm_cli.runtime.informers import Informers
from kcm_cli.runtime.workqueue import QueueMetrics, RetryLimiter, WorkQueue

C = TypeVar("C")
T = TypeVar("T", bound=Object)


class Runnable(Protocol):
    """Something that runs until it is cancelled."""

    async def run(self) -> None: ...


class CacheOf(Protocol):
    """Returns the cache of a kind."""

    def __call__(self, resource: Resource[T]) -> Informer[T]: ...


class Gates(Protocol):
    """Which features are on."""

    def enabled(self, name: str) -> bool: ...


DebugHandler = Callable[[str, Mapping[str, str]], tuple[str, bytes]]
"""Answers /debug/controllers/NAME/PATH: (path, query) to (content type, body)."""
DebugTable = dict[str, dict[str, DebugHandler]]
"""The handlers of all controllers, by controller and path."""


class Common(msgspec.Struct, frozen=True, kw_only=True):
    """What all controllers of a manager have in common, and what conditions of declarations are asked with.

    ``clock``, ``rng``: the one clock, and the one source of randomness. ``gates``: which features are on. ``configs``:
    the completed option groups by their type, and the values of ``component.environment``. ``served``: API resources
    as group/version/plural. ``causes``: the record of syncs, writes and why; None for none.
    """

    clock: Clock
    rng: random.Random
    gates: Gates
    configs: Mapping[type, object]
    served: frozenset[str] = frozenset()
    metrics: Registry = msgspec.field(default_factory=Registry)
    queue_metrics: Callable[[str], QueueMetrics | None] = lambda name: None
    causes: CauseRing | None = None

    def config(self, type_: type[C]) -> C:
        """The completed options of this type. Raises KeyError for a type that is not configured."""
        return cast(C, self.configs[type_])


class ControllerContext(Common, frozen=True, kw_only=True):
    """Everything one controller may use.

    ``client`` writes to the API server, and reads what no cache has; ``metrics`` makes counters. ``recorder_for`` makes
    recorders for other sources of Events. ``start_informers`` starts informers that were requested after the start.
    ``queues``: its queues in the order of its declaration. ``scopes``: those of the kinds in its declaration.
    ``expectations``: set by its executor, and observed by the kinds that it owns.
    """

    name: str
    client: Door
    informers: Informers
    recorder: Recorder
    recorder_for: Callable[[str], Recorder]
    start_informers: Callable[[], None] = lambda: None
    debug: dict[str, DebugHandler] = msgspec.field(default_factory=dict)
    queues: tuple[WorkQueue, ...] = ()
    scopes: Mapping[GVR, Scope] = msgspec.field(default_factory=dict)
    expectations: Expectations = msgspec.field(default_factory=Expectations)

    def cache(self, resource: Resource[T]) -> Informer[T]:
        """The cache of a kind that the controller's declaration names. Raises KeyError for another one."""
        return self.informers.get(resource, self.scopes[resource.gvr])

    def queue(self, name: str, limiter: RetryLimiter | None = None) -> WorkQueue:
        """A work queue with its metrics."""
        metrics, caused = self.queue_metrics(name), self.causes is not None
        return WorkQueue(name, self.clock, limiter=limiter, metrics=metrics, caused=caused)

    def executor(self, send_one: SendOne | None = None, alone: tuple[type[Exception], ...] = ()) -> Executor:
        """An executor of plans with this controller's client, recorder and expectations."""
        return Executor(self.client, self.recorder, self.expectations, self.clock, send_one, alone)
