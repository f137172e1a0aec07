"""One action, one request.

An update edits the raw document that the view was decoded from, so that unknown fields are kept.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import TypeVar

import msgspec

from kcm_cli.api.resource import Resource
from kcm_cli.engine.door import Door
from kcm_cli.machinery import codec
from kcm_cli.machinery.meta import Object
from kcm_cli.planning.actions import Create, Delete, Patch, Path, Update, Value, changed
from kcm_cli.rest.errors import ApiError, Conflict, NotFound
from kcm_cli.rest.transport import TransportError

R = TypeVar("R")
T = TypeVar("T", bound=Object)


async def create(client: Door, action: Create) -> Object:
    """Create an object. The answer is decoded to its metadata only, for kinds that are created and never read."""
    body = action.body if isinstance(action.body, bytes) else codec.encode(action.body)
    if action.resource.keeps_raw:
        return await client.create(action.resource, action.namespace, body, reason=action.reason)
    return await client.create(action.resource.metadata_only, action.namespace, body, reason=action.reason)


async def update(client: Door, action: Update) -> Object:
    """Replace the object by its raw document with the changes. Raises Conflict if it has changed since."""
    obj = action.obj
    doc = edited(obj, action.changes)
    return await client.update(
        action.resource, obj.namespace, obj.name, doc, subresource=action.subresource, reason=action.reason
    )


def edited(obj: Object, changes: Mapping[Path, Value]) -> codec.Doc:
    """The raw document of a view with some fields changed. Raises ValueError for a view without one.

    The other fields keep their bytes: kube-apiserver compares those of RawExtensions, and refuses other spellings.
    """
    if obj.raw is None:
        raise ValueError(f"{type(obj).__name__} {obj.key} keeps no raw document: it cannot be written back")
    return changed(codec.decode_paths(obj.raw, changes), changes)


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
    for left in reversed(range(retries.attempts)):
        try:
            return await write()
        except retries.after:
            if not left:
                raise
    raise AssertionError("unreachable: the last attempt returns or raises")


async def put_status(
    client: Door, resource: Resource[T], obj: T, changes: Mapping[Path, Value], retries: Retries = ONCE_MORE
) -> T:
    """Write fields of an object's status. After an error the object is read again and the fields are written to that.

    Raises the last error, NotFound if the object (this uid) was deleted.
    """
    return await retry_on_conflict(client, resource, obj, lambda _: changes, subresource="status", retries=retries)


async def patch(client: Door, action: Patch, query: tuple[tuple[str, str], ...] = ()) -> Object:
    return await client.patch(
        action.resource,
        action.namespace,
        action.name,
        codec.encode(action.body),
        content_type=action.content_type,
        subresource=action.subresource,
        query=query,
        reason=action.reason,
    )


async def apply(client: Door, action: Patch, manager: str) -> Object:
    """Server-side apply with force: this manager takes over the fields of the body from other managers."""
    return await patch(client, action, (("fieldManager", manager), ("force", "true")))


async def delete(client: Door, action: Delete) -> None:
    await client.delete(
        action.resource,
        action.namespace,
        action.name,
        uid=action.uid,
        resource_version=action.resource_version,
        propagation=action.propagation,
        grace_s=action.grace_s,
        reason=action.reason,
    )


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
    for left in reversed(range(retries.attempts)):
        changes = changes_for(obj)
        if not changes:
            return obj
        try:
            doc = edited(obj, changes)
            return await client.update(resource, obj.namespace, obj.name, doc, subresource=subresource, reason=reason)
        except retries.after:
            if not left:
                raise
        fresh = await client.get(resource, obj.namespace, obj.name)
        if fresh.uid != obj.uid:
            raise NotFound(404, "NotFound", f"{resource} {obj.key} with uid {obj.uid} is gone")
        obj = fresh
    raise AssertionError("unreachable: the last attempt returns or raises")
