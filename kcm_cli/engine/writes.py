"""One action, one request.

An update edits the raw document that the view was decoded from, so that unknown fields are kept.
"""

import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

import msgspec

from kcm_cli.api.resource import Resource
from kcm_cli.component.logs import level_of
from kcm_cli.engine.door import Door
from kcm_cli.machinery import codec
from kcm_cli.machinery.meta import Object
from kcm_cli.planning.actions import APPLY, Action, Apply, Create, Delete, Patch, Path, Remark, Update, Value, edited
from kcm_cli.rest.errors import ApiError, Conflict, NotFound
from kcm_cli.rest.transport import TransportError

log = logging.getLogger(__name__)

R = TypeVar("R")
T = TypeVar("T", bound=Object)


def send(client: Door, action: Action) -> Awaitable[Object | None]:
    """Send an action. Returns the object in the answer, None for a deletion. Raises RequestError: Conflict for an
    update of an object that has changed since it was read."""
    if action.remark is not None:
        tell(action.remark)
    return _SENDS[type(action)](client, action)


def tell(remark: Remark) -> None:
    """Log what a plan says about a decision."""
    log.log(level_of(remark.verbosity), remark.message, extra={"fields": remark.fields}, stacklevel=2)


def _create(client: Door, action: Create) -> Awaitable[Object]:
    """The answer is decoded to its metadata only, for kinds that are created and never read."""
    body = action.body if isinstance(action.body, bytes) else codec.encode(action.body)
    resource = action.resource if action.resource.keeps_raw else action.resource.metadata_only
    return client.create(resource, action.namespace, body, reason=action.reason)


def _update(client: Door, action: Update) -> Awaitable[Object]:
    obj, doc = action.obj, edited(action.obj, action.changes)
    return client.update(
        action.resource, obj.namespace, obj.name, doc, subresource=action.subresource, reason=action.reason
    )


def _patch(client: Door, action: Patch) -> Awaitable[Object]:
    return client.patch(
        action.resource,
        action.namespace,
        action.name,
        codec.encode(action.body),
        content_type=action.content_type,
        subresource=action.subresource,
        reason=action.reason,
    )


def _apply(client: Door, action: Apply) -> Awaitable[Object]:
    return client.patch(
        action.resource,
        action.namespace,
        action.name,
        codec.encode(action.body),
        content_type=APPLY,
        subresource=action.subresource,
        query=(("fieldManager", action.manager), ("force", "true")),
        reason=action.reason,
    )


def _delete(client: Door, action: Delete) -> Awaitable[None]:
    return client.delete(
        action.resource,
        action.namespace,
        action.name,
        uid=action.uid,
        resource_version=action.resource_version,
        propagation=action.propagation,
        reason=action.reason,
    )


_SENDS: Mapping[type[Action], Callable[[Door, Any], Awaitable[Object | None]]] = {
    Create: _create,
    Update: _update,
    Patch: _patch,
    Apply: _apply,
    Delete: _delete,
}


class Retries(msgspec.Struct, frozen=True):
    """The maximum number of attempts, and the errors after which an update is sent again."""

    attempts: int = 5
    after: tuple[type[Exception], ...] = (Conflict,)


ON_CONFLICT = Retries()
"""As client-go's RetryOnConflict with its default."""

ONCE_MORE = Retries(2, (ApiError, TransportError))
"""As ReplicaSets and DaemonSets do: whatever the error."""


async def retry_on(retries: Retries, write: Callable[[], Awaitable[R]]) -> R:
    """Call until it succeeds, as long as it raises one of these errors. Raises the last of them.

    upstream: staging/src/k8s.io/client-go/util/retry/util.go#OnError
    """
    attempt = 1
    while True:
        try:
            return await write()
        except retries.after:
            if attempt >= retries.attempts:
                raise
        attempt += 1


async def put_status(
    client: Door, resource: Resource[T], obj: T, changes: Mapping[Path, Value], retries: Retries = ONCE_MORE
) -> T:
    """Write fields of an object's status. After an error the object is read again and the fields are written to that.

    Raises the last error, NotFound if the object (this uid) was deleted.
    """
    return await retry_on_conflict(client, resource, obj, lambda _: changes, subresource="status", retries=retries)


async def retry_on_conflict(  # noqa: PLR0913  # an object, its changes, and how they are written
    client: Door,
    resource: Resource[T],
    obj: T,
    changes_for: Callable[[T], Mapping[Path, Value]],
    *,
    subresource: str = "",
    retries: Retries = ON_CONFLICT,
    reason: str = "",
) -> T:
    """Update; after a conflict read the object again and compute the changes again. Without changes nothing is written.

    Raises the error of the last attempt, NotFound if the object (this uid) was deleted.
    """
    attempt = 1
    while True:
        changes = changes_for(obj)
        if not changes:
            return obj
        try:
            doc = edited(obj, changes)
            return await client.update(resource, obj.namespace, obj.name, doc, subresource=subresource, reason=reason)
        except retries.after:
            if attempt >= retries.attempts:
                raise
        attempt += 1
        fresh = await client.get(resource, obj.namespace, obj.name)
        if fresh.uid != obj.uid:
            raise NotFound(404, "NotFound", f"{resource} {obj.key} with uid {obj.uid} is gone")
        obj = fresh
