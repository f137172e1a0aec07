"""The informers of a manager against an API server: shared by kind and scope, resynced, released."""

import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from kcm_cli.api.core import NAMESPACES, NODES
from kcm_cli.api.resource import GVR, Resource, Undecodable
from kcm_cli.machinery import codec
from kcm_cli.machinery.meta import Object, ObjectMeta, PartialObject
from kcm_cli.rest.client import Client
from kcm_cli.rest.ratelimit import Unlimited
from kcm_cli.rest.transport import Request, Response, Stream, Transport
from kcm_cli.runtime.informer import Scope
from kcm_cli.runtime.informers import SHOWN, Informers
from kcm_cli.runtime.object_errors import ObjectErrors
from kcm_cli.runtime.tasks import Tasks
from kcm_cli.runtime.troubles import STALLED_S
from tests.kit.world import World

pytestmark = pytest.mark.cluster(alone=True)


def informers(world: World, resync_s: float = 0.0) -> Informers:
    return Informers(world.client, world.clock, random.Random(1), resync_s=resync_s)


def running() -> Tasks:
    def failed(name: str, error: BaseException) -> None:
        pytest.fail(f"{name}: {error}")

    return Tasks(failed)


async def create_namespace(world: World, name: str) -> None:
    await world.create(NAMESPACES, {"metadata": {"name": name}})


async def test_one_cache_for_each_kind_and_scope(world: World):
    shared = informers(world)
    assert shared.get(NAMESPACES) is shared.get(NAMESPACES)
    assert shared.get(NAMESPACES, Scope(label_selector="a=b")) is not shared.get(NAMESPACES)
    assert len(shared.all()) == 2


async def test_a_cache_requested_after_the_start_is_filled_by_the_next_start(world: World):
    shared, tasks = informers(world), running()
    first = shared.get(NAMESPACES)
    shared.start(tasks)
    later = shared.get(NAMESPACES, Scope(field_selector="metadata.name=default"))
    await world.wait()
    assert first.synced.is_set() and not later.synced.is_set()
    shared.start(tasks)
    await world.wait()
    assert [one.name for one in later.store] == ["default"]
    await tasks.stop()


async def test_metadata_is_read_from_a_cache_of_full_objects_if_there_is_one(world: World):
    shared = informers(world)
    reduced = shared.metadata(NAMESPACES)
    assert reduced.scope.metadata_only
    assert shared.metadata(NAMESPACES) is reduced
    assert shared.metadata(NAMESPACES) is not shared.get(NAMESPACES)
    assert shared.metadata(NAMESPACES) is shared.get(NAMESPACES)


@pytest.mark.parametrize("whole", [False, True])
async def test_only_a_cache_of_metadata_ends_with_its_last_listener(world: World, whole):
    shared, tasks, added = informers(world), running(), list[str]()
    if whole:
        shared.get(NAMESPACES)
    cache = shared.metadata(NAMESPACES)

    def listen() -> Any:
        return cache.listen(on_add=lambda one: added.append(one.name))

    first, last = listen(), listen()
    shared.start(tasks)
    await world.wait()
    shared.release(cache, first)
    await create_namespace(world, "one")
    await world.wait()
    assert (added.count("one"), cache.store.get("one") is not None) == (1, True)
    shared.release(cache, last)
    await create_namespace(world, "two")
    await world.wait()
    assert (added.count("two"), cache.store.get("two") is not None) == (0, whole)
    assert shared.all() == ([cache] if whole else [])
    await tasks.stop()


@pytest.mark.parametrize("whole", [False, True])
async def test_objects_that_cannot_be_decoded_are_forgotten_with_their_cache(world: World, whole):
    errors = ObjectErrors()
    shared = Informers(world.client, world.clock, random.Random(1), object_errors=errors)
    cache = shared.metadata(NAMESPACES)
    listener = cache.listen()
    if whole:
        shared.get(NAMESPACES)
    errors.undecodable(NAMESPACES, Undecodable(ObjectMeta("odd"), "no object"))
    errors.undecodable(NODES, Undecodable(ObjectMeta("odd"), "no object"))
    shared.release(cache, listener)
    assert [f"core/v1/{kind} " in "".join(errors.warnings()) for kind in ("namespaces", "nodes")] == [whole, True]


async def test_a_resync_delivers_every_object_again(world: World):
    shared, tasks, updated = informers(world, resync_s=60.0), running(), list[str]()
    shared.get(NAMESPACES).listen(on_update=lambda old, new: updated.append(new.name) if old is new else None)
    shared.start(tasks)
    await world.wait(59)
    assert updated == []
    await world.wait(61 + 240)  # a period is one to two times as long
    assert 2 <= updated.count("default") <= 5
    assert updated.count("kube-system") == updated.count("default")
    await tasks.stop()


async def test_a_resync_sorts_nothing_and_leaves_out_what_is_deleted_meanwhile(world: World):
    shared, tasks, updated = informers(world), running(), list[str]()
    cache = shared.get(NAMESPACES)
    shared.start(tasks)
    await cache.synced.wait()
    for name in ("two", "one", "gone"):
        await create_namespace(world, name)
    await world.wait(1)

    def heard(old: Object, new: Object) -> None:
        updated.append(new.name)
        cache.store.pop("gone")

    cache.listen(on_update=heard)
    await cache.resync()
    assert updated[-2:] == ["two", "one"]
    await tasks.stop()


async def test_a_consistent_list_needs_no_cache(world: World):
    shared = informers(world)
    await create_namespace(world, "one")
    listed = await shared.list_now(NAMESPACES)
    assert "one" in [one.name for one in listed.items]
    assert shared.all() == []


async def test_listeners_added_or_removed_during_delivery(world: World):
    """A new listener gets the object once, from the store; a removed one gets no later change."""
    shared, tasks = informers(world), running()
    informer = shared.get(NAMESPACES, Scope(field_selector="metadata.name!=default"))
    shared.start(tasks)
    await informer.synced.wait()
    heard: dict[str, list[str]] = {"leaving": [], "new": []}

    def change(obj: Any) -> None:
        if obj.name == "a":
            informer.unlisten(leaving)
            informer.listen(on_add=lambda obj: heard["new"].append(obj.name))

    informer.listen(on_add=change)
    leaving = informer.listen(on_add=lambda obj: heard["leaving"].append(obj.name))
    await create_namespace(world, "a")
    await create_namespace(world, "b")
    await world.wait()
    assert (heard["new"].count("a"), heard["new"].count("b")) == (1, 1)
    assert "b" not in heard["leaving"]
    await tasks.stop()


async def test_informers_without_progress_are_listed(world: World):
    """Until they have some, or are released."""
    transport = Refusing(world.client._transport)
    client = Client(transport, limiter=Unlimited(), user_agent="test", clock=world.clock)
    shared, tasks = Informers(client, world.clock, random.Random(1)), running()
    kinds = [Resource(GVR("example.com", "v1", f"kind{number}"), "Kind", PartialObject) for number in range(12)]
    held = [shared.metadata(kind) for kind in kinds]
    listeners = [informer.listen() for informer in held]
    shared.get(NAMESPACES)
    shared.start(tasks)
    await world.wait(STALLED_S / 2)
    assert shared.warnings() == []
    await world.wait(STALLED_S)
    first, *_, last = shared.warnings()
    assert first.startswith("informer of core/v1/namespaces has made no progress for ")
    assert first.endswith("s: not for you")
    assert (len(shared.warnings()), last) == (SHOWN + 1, "and 3 more informers")
    transport.refuses = False
    for informer, listener in zip(held, listeners, strict=True):
        shared.release(informer, listener)
    await world.wait(2 * STALLED_S)
    assert shared.warnings() == []
    await tasks.stop()


class Refusing:
    """A transport whose server refuses all."""

    def __init__(self, inner: Transport) -> None:
        self._inner = inner
        self.refuses = True

    async def send(self, request: Request) -> Response:
        return self._refusal() if self.refuses else await self._inner.send(request)

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[Stream]:
        if self.refuses:
            answer = self._refusal()
            yield Stream(answer.status, answer.headers, _once(answer.body))
            return
        async with self._inner.stream(request) as stream:
            yield stream

    def _refusal(self) -> Response:
        doc = {"kind": "Status", "status": "Failure", "reason": "Forbidden", "message": "not for you", "code": 403}
        return Response(403, {"content-type": "application/json"}, codec.encode(doc))

    async def close(self) -> None: ...


async def _once(body: bytes) -> AsyncIterator[bytes]:
    yield body
