"""The writes of a controller that its caches do not show yet, by key of its queue.

A plan made on a cache that is older than the controller's own writes would repeat them. So the worker says which key it
is syncing (``acting_for``), the door records the answers to that key's writes, and the key is not synced again before
the caches show them:

- a creation, update or patch: the cache must have reached its resource version;
- a deletion: the cache must show the object's deletion timestamp, or not have the object;
- an update or patch that removes the last finalizer of an object that is being deleted: the cache must not have the
  object (the answer has the resource version before the deletion);
- a write to an object that turns out to be deleted: the cache must not have the object;
- a write whose answer was lost, and a creation refused because the name is taken by an object that the cache does not
  show: the object is looked up on the server first, and then waited for.

A write that the cache shows already when the answer comes is not recorded. As soon as the cache shows the rest, they
are forgotten and the key is queued. Writes that were refused or never sent are not recorded. Nothing is kept over a
restart: a cache that has just synced is newer than all writes before it. A resource version that is not a number is not
waited for. A key waits for TIMEOUT_S at most; then that is logged and counted, and only expectations protect it.

upstream: pkg/controller/util/consistency (gates StaleControllerConsistency*), for creations, updates and patches
"""

import logging
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from typing import Any, Protocol

import msgspec

from kcm_cli.api.resource import Resource
from kcm_cli.component.clock import Clock
from kcm_cli.component.metrics import Registry
from kcm_cli.machinery import codec
from kcm_cli.machinery.codec import Doc
from kcm_cli.machinery.meta import Object, ObjectMeta, PartialObject, controller_of, object_key
from kcm_cli.rest.client import Client
from kcm_cli.rest.errors import (
    UNEXPECTED_RESPONSE,
    AlreadyExists,
    ApiError,
    NotFound,
    ServerTimeout,
    Timeout,
    TooManyRequests,
)
from kcm_cli.rest.listing import list_readable
from kcm_cli.rest.transport import RequestError, TransportError, Unreachable, Unreadable
from kcm_cli.runtime.informer import AnyInformer

log = logging.getLogger(__name__)

TIMEOUT_S = 900.0
"""A watch ends after ten minutes at most: what a cache does not show by then, it will never show."""
CREATE, UPDATE, DELETE = "create", "update", "delete"
"""Kinds of writes; a patch is an update."""
_UNSEEN = "kcm_own_writes_unseen_total"


class Queue(Protocol):
    """Where a key is put once its caches have caught up."""

    def add(self, key: str) -> None: ...


class _Lost(msgspec.Struct, frozen=True):
    """A write that may or may not have taken effect.

    It is identified by the object's name or, for a creation with generateName, by labels and the controller's uid.
    """

    informer: AnyInformer
    namespace: str
    name: str
    labels: str = ""
    owner: str = ""


class _Unseen(msgspec.Struct):
    """What the caches must show before a key is synced.

    waiting: queues to add the key to as soon as they do. cancel: cancels the timeout, which begins when a worker first
    asks for the key. overdue: whether the timeout has passed.
    """

    versions: dict[AnyInformer, int] = msgspec.field(default_factory=dict)
    ends: dict[tuple[str, bool], AnyInformer] = msgspec.field(default_factory=dict)
    """By uid, and whether the object must be gone; otherwise a deletion timestamp is enough."""
    lost: dict[_Lost, None] = msgspec.field(default_factory=dict)
    waiting: list[Queue] = msgspec.field(default_factory=list)
    cancel: Callable[[], None] | None = None
    overdue: bool = False

    def informers(self) -> Iterator[AnyInformer]:
        yield from self.versions
        yield from self.ends.values()
        yield from (lost.informer for lost in self.lost)


class OwnWrites:
    """The own writes of the keys of one queue, or of several queues with the same keys.

    ``informers``: the caches that plans are made on; writes to other resources are not recorded. ``unheeded``: verbs
    that are not waited for. ``skipped``: called with the group and resource of a cache for each sync that is deferred
    because of it. ``given_up``: called with the resource of a cache that has not shown a write in time.
    """

    def __init__(
        self,
        client: Client,
        clock: Clock,
        informers: Iterable[AnyInformer],
        *,
        unheeded: frozenset[str] = frozenset(),
        skipped: Callable[[str, str], None] | None = None,
        given_up: Callable[[str], None] = lambda resource: None,
    ) -> None:
        self._client = client
        self._clock = clock
        self._informers = {_place(informer.resource): informer for informer in informers}
        self._unheeded = unheeded
        self._skipped = skipped
        self._given_up = given_up
        self._unseen: dict[str, _Unseen] = {}

    def __len__(self) -> int:
        """The number of keys with writes that the caches do not show yet."""
        return len(self._unseen)

    @contextmanager
    def acting_for(self, key: str) -> Iterator[None]:
        """Within this block, and in tasks started in it, writes through the door belong to this key."""
        token = _ACTING.set((self, key))
        try:
            yield
        finally:
            _ACTING.reset(token)

    # -- what the worker asks

    async def shown(self, key: str, queue: Queue) -> bool:
        """Whether the caches show all that was written for a key; if not, it is added to the queue when they do.

        Looks up writes whose answers were lost. Raises RequestError where that fails.
        """
        unseen = self._unseen.get(key)
        if unseen is None:
            return True
        if unseen.cancel is None:
            unseen.cancel = self._clock.call_later(TIMEOUT_S, partial(self._give_up, key, unseen)).cancel
        while unseen.lost:
            lost = next(iter(unseen.lost))
            try:
                await self._look_up(key, lost)
            except ApiError as error:
                if not unseen.overdue or error.status >= 500 or isinstance(error, TooManyRequests):
                    raise
                self._report_given_up(key, lost.informer)  # a later attempt would be refused, too
            unseen.lost.pop(lost, None)
        self._tidy(key, unseen)
        unseen = self._unseen.get(key)
        if unseen is None:
            return True
        informer = next(unseen.informers())
        if self._skipped is not None:
            self._skipped(informer.resource.gvr.group, informer.resource.plural)
        if queue not in unseen.waiting:
            unseen.waiting.append(queue)
        return False

    # -- what the door reports

    def wrote(self, key: str, resource: Resource[Any], obj: Object, verb: str) -> None:
        """The answer to a creation, update or patch."""
        informer = self._informers.get(_place(resource))
        if informer is not None and verb not in self._unheeded:
            self._expect(key, informer, obj.version)
            if verb == UPDATE and _deleted_by_update(obj):
                self._expect_end(key, informer, obj.key, obj.uid, removed=True)

    def deleted(self, key: str, resource: Resource[Any], namespace: str, name: str, uid: str) -> None:
        """A deletion was accepted; without a uid, that of the object which the cache has."""
        informer = self._informers.get(_place(resource))
        if informer is not None and DELETE not in self._unheeded:
            self._expect_end(key, informer, object_key(namespace, name), uid)

    def shown_uid(self, resource: Resource[Any], namespace: str, name: str) -> str:
        """The uid of the object of this name that the cache has; "" if it has none, or is not followed."""
        informer = self._informers.get(_place(resource))
        held = informer.store.get(object_key(namespace, name)) if informer is not None else None
        return held.uid if held is not None else ""

    def failed(
        self, key: str, resource: Resource[Any], namespace: str, name: str, error: RequestError, uid: str
    ) -> None:
        """A write to an object of this name failed. ``uid``: the result of ``shown_uid`` before the write."""
        informer = self._informers.get(_place(resource))
        if informer is None:
            return
        if may_have_taken_effect(error):
            self._of(key).lost[_Lost(informer, namespace, name)] = None
        elif uid and isinstance(error, NotFound) and error.details.name == name and DELETE not in self._unheeded:
            self._expect_end(key, informer, object_key(namespace, name), uid, removed=True)

    def not_created(
        self, key: str, resource: Resource[Any], namespace: str, body: Doc | bytes, error: RequestError
    ) -> None:
        """A creation failed."""
        informer = self._informers.get(_place(resource))
        taken = CREATE not in self._unheeded and isinstance(error, AlreadyExists)
        if informer is None or not (taken or may_have_taken_effect(error)):
            return
        new = _metadata(body)
        if taken and (not new.name or informer.store.get(object_key(namespace, new.name)) is not None):
            return
        lost = _Lost(informer, namespace, new.name)
        if not new.name:
            labels = ",".join(f"{name}={value}" for name, value in sorted((new.labels or {}).items()))
            ref = controller_of(Object(metadata=new))
            lost = _Lost(informer, namespace, "", labels, ref.uid if ref is not None else "")
        self._of(key).lost[lost] = None

    # -- inside

    def _of(self, key: str) -> _Unseen:
        return self._unseen.setdefault(key, _Unseen())

    def _expect(self, key: str, informer: AnyInformer, version: int) -> None:
        if not informer.progress.behind(version):
            return
        versions = self._of(key).versions
        before = versions.get(informer)
        versions[informer] = max(version, before or 0)
        if before is None:
            informer.progress.at(version, partial(self._reached, key, informer))

    def _expect_end(self, key: str, informer: AnyInformer, obj_key: str, uid: str, *, removed: bool = False) -> None:
        held = informer.store.get(obj_key)
        if held is None or (uid and held.uid != uid) or (held.deleting and not removed):
            return
        ends, end = self._of(key).ends, (held.uid, removed)
        if end not in ends:
            ends[end] = informer
            at = informer.progress.at_removal_of if removed else informer.progress.at_end_of
            at(held.uid, partial(self._ended, key, end))

    async def _look_up(self, key: str, lost: _Lost) -> None:
        """Look up the object on the API server, to know which version to wait for. Raises RequestError.

        It lists, as for a cache, since the roles of many of upstream's controllers lack get.
        """
        found = await list_readable(
            self._client,
            lost.informer.resource.metadata_only,
            lost.namespace,
            label_selector=lost.labels,
            field_selector=f"metadata.name={lost.name}" if lost.name else "",
            metadata_only=True,
        )
        if not found.resource_version:
            raise Unreadable("the answer cannot be read: a list without a resourceVersion shows nothing")
        for made in found.items:
            ref = controller_of(made)
            if not lost.owner or (ref is not None and ref.uid == lost.owner):
                self._expect(key, lost.informer, made.version)
        if lost.name and not (found.items or found.unknown):
            self._expect_end(key, lost.informer, object_key(lost.namespace, lost.name), "", removed=True)

    def _reached(self, key: str, informer: AnyInformer) -> None:
        unseen = self._unseen.get(key)
        version = unseen.versions.get(informer) if unseen is not None else None
        if unseen is None or version is None:
            return
        if informer.progress.behind(version):  # more was written meanwhile
            informer.progress.at(version, partial(self._reached, key, informer))
            return
        del unseen.versions[informer]
        self._tidy(key, unseen)

    def _ended(self, key: str, end: tuple[str, bool]) -> None:
        unseen = self._unseen.get(key)
        if unseen is not None and unseen.ends.pop(end, None) is not None:
            self._tidy(key, unseen)

    def _tidy(self, key: str, unseen: _Unseen) -> None:
        """If nothing is left to wait for, queue the key where it was deferred. Forget it if nothing is left to look up
        either."""
        if unseen.versions or unseen.ends:
            return
        if not unseen.lost:
            if self._unseen.get(key) is unseen:  # another queue may have written since a lookup began
                del self._unseen[key]
            if unseen.cancel is not None:
                unseen.cancel()
        waiting, unseen.waiting = unseen.waiting, []
        for queue in waiting:
            queue.add(key)

    def _give_up(self, key: str, unseen: _Unseen) -> None:
        """Stop waiting for the caches. Lost answers are still looked up."""
        for informer in {*unseen.versions, *unseen.ends.values()}:
            self._report_given_up(key, informer)
        unseen.versions.clear()
        unseen.ends.clear()
        unseen.overdue, unseen.cancel = True, None
        self._tidy(key, unseen)

    def _report_given_up(self, key: str, informer: AnyInformer) -> None:
        fields = {"key": key, "resource": str(informer.resource), "wait_s": TIMEOUT_S}
        log.error("Cache does not show own writes, syncing without them", extra={"fields": fields})
        self._given_up(informer.resource.plural)


_ACTING: ContextVar[tuple[OwnWrites, str] | None] = ContextVar("acting", default=None)


def acting() -> tuple[OwnWrites, str] | None:
    """The own writes and the key of the sync that this task belongs to; None outside of a sync."""
    return _ACTING.get()


def count_unseen(registry: Registry, controller: str) -> Callable[[str], None]:
    """Counts keys that were synced although a cache never showed their own writes."""
    family = registry.counter(
        _UNSEEN,
        "Times a key was synced although a cache had not shown the controller's own write for 15 minutes.",
        labels=("controller", "resource"),
    )
    return lambda resource: family.labels(controller, resource).inc()


def stale_sync_skips(registry: Registry, kind: str) -> Callable[[str, str], None]:
    """Counts deferred syncs of a kind, for ``OwnWrites.skipped``."""
    family = registry.counter(
        f"{kind.lower()}_controller_stale_sync_skips_total",
        f"How often a {kind} was not synced since a cache had not caught up.",
        labels=("group", "resource"),
    )
    return lambda group, resource: family.labels(group, resource).inc()


def may_have_taken_effect(error: RequestError) -> bool:
    """Whether a failed write may have taken effect. That includes errors without a reason, such as a timeout of etcd,
    and answers of proxies."""
    if isinstance(error, TransportError):
        return not isinstance(error, Unreachable)
    if isinstance(error, Timeout | ServerTimeout):
        return True
    if not isinstance(error, ApiError) or error.status < 500:
        return False
    return not error.reason or error.has_cause(UNEXPECTED_RESPONSE)


def _deleted_by_update(written: Object) -> bool:
    """Upstream: staging/src/k8s.io/apiserver/pkg/registry/generic/registry/store.go#ShouldDeleteDuringUpdate."""
    meta = written.metadata
    return written.deleting and not meta.finalizers and not meta.deletion_grace_period_seconds


def _place(resource: Resource[Any]) -> tuple[str, str]:
    return resource.gvr.group, resource.gvr.plural


def _metadata(body: Doc | bytes) -> ObjectMeta:
    """The metadata of the object to create. Empty if it cannot be decoded; then the whole namespace is looked up."""
    sent = codec.decode_or_none(body if isinstance(body, bytes) else codec.encode(body), PartialObject)
    return ObjectMeta() if sent is None else sent.metadata
