"""A controller's declaration: what it reconciles, owns and watches, and the functions that process its queues.

How data flows: a change in a cache is mapped to keys of a queue. A worker takes a key and calls ``sync``, which reads
the caches, plans and writes. What it wrote comes back as a change of an object that it owns. ``engine.building`` makes
that of a declaration.

The words are controller-runtime's: ``Queue.reconciles`` is For, ``owns`` is Owns, ``watches`` is Watches with a mapper.
A mapper that returns no keys does the work of a predicate. Mappers, ``sync`` and steps are functions whose first
argument is the object that ``Controller.make`` returned: its methods, those of one of its attributes, or functions.

upstream: none. There, each controller registers its event handlers in its constructor.
"""

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import KW_ONLY, dataclass
from typing import Any, NamedTuple, Protocol, TypeVar

import msgspec

from kcm_cli.api.resource import Resource
from kcm_cli.engine.context import Common, ControllerContext, Runnable
from kcm_cli.engine.dependents import selector_of
from kcm_cli.engine.own_writes import CREATE, DELETE, UPDATE
from kcm_cli.engine.passes import PASS_FAILED
from kcm_cli.engine.worker import SYNC_FAILED, Failures
from kcm_cli.machinery.labels import Selector
from kcm_cli.machinery.meta import Object
from kcm_cli.runtime.informer import Scope
from kcm_cli.runtime.informers import Informers
from kcm_cli.runtime.workqueue import RetryLimiter

T = TypeVar("T")

CUSTOM = "custom"
"""In ``Controller.also_needs``: the definitions of all custom resources."""


class After(NamedTuple):
    """A key to be queued after ``delay_s`` seconds."""

    key: str
    delay_s: float


Keys = Iterable[str | After]
Mapper = Callable[[Any, Any], Keys]
"""(controller, object) to keys."""
UpdateMapper = Callable[[Any, Any, Any], Keys]
"""(controller, object before, object now) to keys."""
Condition = Callable[[Common], bool]


def own_key(controller: object, obj: Object) -> Keys:
    """The object's own key: ``namespace/name``, or its name where it has no namespace."""
    return (obj.key,)


def only(predicate: Callable[[Any], bool]) -> Mapper:
    """The object's own key, if it satisfies a predicate."""

    def mapper(controller: object, obj: Object) -> Keys:
        return (obj.key,) if predicate(obj) else ()

    return mapper


def always(common: Common) -> bool:
    """No condition."""
    return True


def gate(name: str) -> Condition:
    """Whether a feature gate is on."""
    return lambda common: common.gates.enabled(name)


class StartLines(msgspec.Struct, frozen=True):
    """What upstream logs at the start and at the end of a controller, and the fields of both lines."""

    started: str
    ended: str
    fields: tuple[tuple[str, str], ...] = ()


def starting(what: str, **fields: str) -> tuple[StartLines, ...]:
    """``Starting WHAT`` and ``Shutting down WHAT``."""
    return (StartLines(f"Starting {what}", f"Shutting down {what}", tuple(fields.items())),)


@dataclass(frozen=True, slots=True)
class Watch:
    """The events of a kind, mapped to keys.

    keys: the mapper for objects that were added, updated or deleted. changed: the one for objects that were added or
    updated. added, updated, deleted: the mapper for this event only; it replaces ``keys`` and ``changed`` there.
    unknown_deleted: the mapper for deleted objects (``Undecodable``) of which no version could be decoded. after: the
    delay in seconds before keys are queued, so that several changes lead to one sync. scope: which objects are watched.
    when: whether the kind is watched at all. Without a mapper the kind is cached, and its changes
    queue no keys.
    """

    resource: Resource[Any]
    keys: Mapper | None = None
    _: KW_ONLY
    changed: Mapper | None = None
    added: Mapper | None = None
    updated: UpdateMapper | None = None
    deleted: Mapper | None = None
    unknown_deleted: Mapper | None = None
    after: Callable[[ControllerContext], float] | None = None
    scope: Scope = Scope()
    when: Condition = always


@dataclass(frozen=True, slots=True)
class Owns:
    """A kind whose objects are controlled by the objects that the queue reconciles. Their changes queue the owner.

    selector: the selector of an owner, if it is not that of its spec. An orphan queues all owners whose selectors match
    it; a selector that raises FormatError matches nothing. updated: (controller, owner, before, now) to further keys,
    for changes that take effect later. matters: (before, now) whether an update that leaves labels and owner as they
    are queues the owner; where an expectation has expired, any does. expected: whether the controller's expectations
    count these objects. Where they do not, a new object queues no owner.
    """

    resource: Resource[Any]
    _: KW_ONLY
    selector: Callable[[Any], Selector] = selector_of
    updated: Callable[[Any, Any, Any, Any], Keys] | None = None
    matters: Callable[[Any, Any], bool] = lambda before, now: True
    expected: bool = True


class ConcurrentSyncs(Protocol):
    """Options of a controller with --concurrent-NAME-syncs: how many keys are synced at a time."""

    @property
    def concurrent_syncs(self) -> int:
        """The number of keys."""


Limiter = Callable[[ControllerContext], RetryLimiter]


@dataclass(frozen=True, slots=True)
class Queue:
    """A work queue: the changes that fill it and the function that processes its keys.

    name: the name in metrics. reconciles: a kind whose every change queues the object's own key, or a Watch for other
    mappers. sync: called with (controller, key); raises an error to have the key retried, returns the seconds after
    which to requeue it, or None. workers: how many keys are synced at a time, or the options with that number. retries:
    the number of failures after which a key is dropped until its next change; None for no limit. limiter: the rate
    limiter for retries, if not the default one. measured: whether /metrics shows the queue.

    writes: the kinds that ``sync`` writes and plans on. A key is not synced again before the caches show its own writes
    to them (``own_writes``). stale_gate: an upstream gate. Where it is off, verbs of ``without_gate`` are not waited
    for; where it is on, deferred syncs are counted as KIND_controller_stale_sync_skips_total. skipped: called with
    (controller, group, resource) for each deferred sync of a controller without such a gate. failures: how failed syncs
    are logged.
    """

    name: str
    reconciles: Resource[Any] | Watch | None = None
    _: KW_ONLY
    sync: Callable[[Any, str], Awaitable[float | None]]
    owns: tuple[Owns, ...] = ()
    watches: tuple[Watch, ...] = ()
    workers: int | type[ConcurrentSyncs] = 1
    retries: int | None = None
    limiter: Limiter | None = None
    measured: bool = True
    writes: tuple[Resource[Any], ...] = ()
    stale_gate: str = ""
    without_gate: frozenset[str] = frozenset((CREATE, UPDATE, DELETE))
    skipped: Callable[[Any, str, str], None] | None = None
    failures: Failures = SYNC_FAILED

    @property
    def followed(self) -> tuple[Watch, ...]:
        """All kinds whose changes fill the queue."""
        own = () if self.reconciles is None else (self.main,)
        return (*own, *(Watch(owned.resource) for owned in self.owns), *self.watches)

    @property
    def main(self) -> Watch:
        """The kind that it reconciles. Raises TypeError where there is none."""
        if isinstance(self.reconciles, Watch):
            return self.reconciles
        if self.reconciles is None:
            raise TypeError(f"queue {self.name} reconciles no kind, so it can own none")
        return Watch(self.reconciles, own_key)


@dataclass(frozen=True, slots=True)
class Periodic:
    """A step that is repeated: first when the caches have synced, then ``pause_s`` seconds after each pass has ended.

    delayed: the first pass waits for ``pause_s``, too. Where ``pause_s`` is 0 at the start there are no passes. failed:
    the message of a pass that failed.
    """

    step: Callable[[Any], Awaitable[None]]
    _: KW_ONLY
    pause_s: Callable[[Any], float]
    delayed: bool = False
    failed: str = PASS_FAILED


@dataclass(frozen=True, slots=True)
class Controller:
    """A controller. docs/controllers.md has a whole one.

    make: builds the controller's object from its context; raises StartError where it cannot run. queues: one or
    several; ``context.queues`` has them in this order, and ``context.cache`` gives the declared kinds. enabled: False
    where the controller has nothing to do under this configuration. reads: kinds that are read from caches but queue no
    keys. prepare: awaited once before workers and passes start; caches may not have synced yet (``until_synced``).
    beside: what else runs from the start. announces: upstream's lines at its start and end; one without is announced as
    "Controller starting..." at verbosity 1 only, as all are. also_needs: what it reads besides the declared kinds, and
    without which it is left out of ``kcm plan``: ``pods``, ``deployments.apps``, or CUSTOM.
    """

    make: Callable[[ControllerContext], Any]
    queues: Queue | tuple[Queue, ...] = ()
    _: KW_ONLY
    reads: tuple[Resource[Any] | Watch, ...] = ()
    passes: tuple[Periodic, ...] = ()
    prepare: Callable[[Any], Awaitable[None]] | None = None
    beside: Callable[[Any], Iterable[Runnable]] | None = None
    enabled: Condition = always
    announces: tuple[StartLines, ...] = ()
    also_needs: tuple[str, ...] = ()

    @property
    def all_queues(self) -> tuple[Queue, ...]:
        """Its queues as a tuple."""
        return (self.queues,) if isinstance(self.queues, Queue) else self.queues

    @property
    def followed(self) -> tuple[Watch, ...]:
        """All kinds whose caches it needs."""
        watched = (watch for queue in self.all_queues for watch in queue.followed)
        return (*watched, *(read if isinstance(read, Watch) else Watch(read) for read in self.reads))

    def followed_under(self, common: Common) -> tuple[Watch, ...]:
        """All kinds whose caches it needs under this configuration."""
        return tuple(watch for watch in self.followed if watch.when(common))

    def needed_under(self, common: Common) -> tuple[str, ...]:
        """The kinds that it needs, as ``pods`` or ``deployments.apps``, and CUSTOM."""
        followed = (watch.resource.gvr.group_resource for watch in self.followed_under(common))
        return tuple(dict.fromkeys((*followed, *self.also_needs)))

    def fill(self, common: Common, informers: Informers) -> None:
        """Request the caches that it would have if it were built, without a listener."""
        if self.enabled(common):
            for watch in self.followed_under(common):
                informers.get(watch.resource, watch.scope)
