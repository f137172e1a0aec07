"""The informers of a manager against an API server: shared by kind and scope, resynced, released."""

import random
from typing import Any

import pytest

from kcm_cli.api.core import NAMESPACES
from kcm_cli.runtime.informer import Scope
from kcm_cli.runtime.informers import Informers
from kcm_cli.runtime.tasks import Tasks
from tests.unit.sandbox.nodes.world import World


def informers(world: World, resync_s: float = 0.0) -> Informers:
    return Informers(world.client, world.clock, random.Random(1), resync_s=resync_s)


def running() -> Tasks:
    def failed(name: str, error: BaseException) -> None:
        pytest.fail(f"{name}: {error}")

    return Tasks(failed)


async def create_namespace(world: World, name: str) -> None:
    await world.create(NAMESPACES, {"metadata": {"name": name}})


def test_one_cache_for_each_kind_and_scope(play):
    async def life(world: World) -> None:
        shared = informers(world)
        assert shared.get(NAMESPACES) is shared.get(NAMESPACES)
        assert shared.get(NAMESPACES, Scope(label_selector="a=b")) is not shared.get(NAMESPACES)
        assert len(shared.all()) == 2

    play(life, alone=True)


def test_a_cache_requested_after_the_start_is_filled_by_the_next_start(play):
    async def life(world: World) -> None:
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

    play(life, alone=True)


def test_metadata_is_read_from_a_cache_of_full_objects_if_there_is_one(play):
    async def life(world: World) -> None:
        shared = informers(world)
        reduced = shared.metadata(NAMESPACES)
        assert reduced.scope.metadata_only
        assert shared.metadata(NAMESPACES) is reduced
        assert shared.metadata(NAMESPACES) is not shared.get(NAMESPACES)
        assert shared.metadata(NAMESPACES) is shared.get(NAMESPACES)

    play(life, alone=True)


@pytest.mark.parametrize("whole", [False, True])
def test_only_a_cache_of_metadata_ends_with_its_last_listener(play, whole):
    async def life(world: World) -> None:
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

    play(life, alone=True)


def test_a_resync_delivers_every_object_again(play):
    async def life(world: World) -> None:
        shared, tasks, updated = informers(world, resync_s=60.0), running(), list[str]()
        shared.get(NAMESPACES).listen(on_update=lambda old, new: updated.append(new.name) if old is new else None)
        shared.start(tasks)
        await world.wait(59)
        assert updated == []
        await world.wait(61 + 240)  # a period is one to two times as long
        assert 2 <= updated.count("default") <= 5
        assert updated.count("kube-system") == updated.count("default")
        await tasks.stop()

    play(life, alone=True)


def test_a_consistent_list_needs_no_cache(play):
    async def life(world: World) -> None:
        shared = informers(world)
        await create_namespace(world, "one")
        listed = await shared.list_now(NAMESPACES)
        assert "one" in [one.name for one in listed.items]
        assert shared.all() == []

    play(life, alone=True)


def test_listeners_added_or_removed_during_delivery(play):
    """A new listener gets the object once, from the store; a removed one gets no later change."""

    async def life(world: World) -> None:
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

    play(life, alone=True)
