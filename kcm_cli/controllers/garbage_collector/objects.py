"""The garbage collector's requests: metadata of objects of any kind, by identity.

A path that is not served says nothing about the object, which may be there when the path is served again (an aggregated
API is registered anew), at another one (a version is not served any more), or on another API server (while they are
upgraded one by one). Go's servers then answer with a text of their own or a Status that names no object, which counts
as NoMatch. Any other 404 is an absent object: not every aggregated server answers with a Status.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial

from kcm_cli.api.resource import Resource
from kcm_cli.controllers.garbage_collector.graph import Identity
from kcm_cli.controllers.garbage_collector.plan import propagation_of, without_finalizer
from kcm_cli.engine import writes
from kcm_cli.engine.door import Door
from kcm_cli.machinery.codec import Doc
from kcm_cli.machinery.meta import ObjectMeta, PartialObject
from kcm_cli.planning.actions import MERGE, STRATEGIC_MERGE
from kcm_cli.rest.errors import UNEXPECTED_RESPONSE, Conflict, Details, NotFound, UnsupportedMediaType
from kcm_cli.rest.mapper import Mapper, NoMatch

FINALIZER_ATTEMPTS = 5
_UNSERVED = "404 page not found"


class OwnerOfAnotherScope(Exception):
    """A cluster-scoped object names a namespaced owner, about which nothing is known."""


class Objects:
    """Reads, patches and deletes objects by the name of their kind."""

    def __init__(self, client: Door, mapper: Mapper) -> None:
        self._client = client
        self._mapper = mapper

    async def resource(self, api_version: str, kind: str) -> Resource[PartialObject]:
        """The resource of a kind. Raises rest.mapper.NoMatch."""
        group, _, version = api_version.rpartition("/")
        return (await self._mapper.kind(group, kind, version)).partial()

    async def get(self, identity: Identity) -> PartialObject:
        """The object on the API server.

        Raises NotFound (also if the name belongs to another object), NoMatch, OwnerOfAnotherScope.
        """
        resource = await self.resource(identity.api_version, identity.kind)
        if resource.namespaced and not identity.namespace:
            raise OwnerOfAnotherScope(f"{identity.kind} {identity.name} is namespaced")
        with _served(identity):
            found = await self._client.get(resource, _scope(resource, identity), identity.name, metadata_only=True)
        if found.uid != identity.uid:
            raise NotFound(404, "NotFound", "another object of this name", details=Details(name=identity.name))
        return found

    async def delete(
        self, identity: Identity, meta: ObjectMeta, propagation: str, *, reason: str = "", owner: str = ""
    ) -> None:
        """Delete the object if it still is as in ``meta``. If only other fields than its owners and finalizers changed,
        it is deleted by uid.

        Raises NotFound, Conflict, NoMatch.
        """
        resource = await self.resource(identity.api_version, identity.kind)
        delete = partial(
            self._client.delete,
            resource,
            _scope(resource, identity),
            identity.name,
            uid=identity.uid,
            propagation=propagation,
            reason=reason,
            owner=owner,
        )
        with _served(identity):
            try:
                await delete(resource_version=meta.resource_version)
            except Conflict:
                live = await self.get(identity)
                if not _planned_alike(live.metadata, meta):
                    raise
                await delete()

    async def patch(
        self,
        identity: Identity,
        strategic: Doc,
        whole: Callable[[ObjectMeta], Doc],
        *,
        reason: str = "",
        owner: str = "",
    ) -> None:
        """Send a strategic merge patch. For kinds without that, a merge patch is computed from the live object. Raises
        NotFound, Conflict, NoMatch."""
        resource = await self.resource(identity.api_version, identity.kind)
        place = resource, _scope(resource, identity), identity.name
        with _served(identity):
            try:
                await self._client.patch(*place, strategic, content_type=STRATEGIC_MERGE, reason=reason, owner=owner)
            except UnsupportedMediaType:
                live = await self.get(identity)
                await self._client.patch(*place, whole(live.metadata), content_type=MERGE, reason=reason, owner=owner)

    async def remove_finalizer(self, identity: Identity, finalizer: str, *, reason: str = "") -> None:
        """Remove a finalizer, with retries on conflict. Raises Conflict after the last attempt."""
        resource = await self.resource(identity.api_version, identity.kind)

        async def remove() -> None:
            live = await self.get(identity)
            body = without_finalizer(live.metadata, finalizer)
            if body is not None:
                namespace = _scope(resource, identity)
                with _served(identity):
                    await self._client.patch(
                        resource, namespace, identity.name, body, content_type=MERGE, reason=reason
                    )

        with suppress(NotFound):
            await writes.retry_on(writes.Retries(FINALIZER_ATTEMPTS), remove)


@contextmanager
def _served(identity: Identity) -> Iterator[None]:
    """Raises NoMatch for a response that the path is not served."""
    try:
        yield
    except NotFound as error:
        if not _of_path(error):
            raise
        raise NoMatch(f'kind "{identity.kind}" in version "{identity.api_version}"') from None


def _of_path(error: NotFound) -> bool:
    """Whether the path is not served, rather than the object absent."""
    texts = [cause.message.strip() for cause in error.causes if cause.reason == UNEXPECTED_RESPONSE]
    return _UNSERVED in texts if texts else not error.details.name


def _planned_alike(live: ObjectMeta, meta: ObjectMeta) -> bool:
    """Whether two states of an object lead to the same plan. An orphaning deletion that another client started must not
    become a background deletion, which would remove its finalizer."""
    return live.owner_references == meta.owner_references and propagation_of(live) == propagation_of(meta)


def _scope(resource: Resource[PartialObject], identity: Identity) -> str:
    return identity.namespace if resource.namespaced else ""
