"""Revisions that differ from those of this controller, in a whole sandbox on virtual time."""

from typing import Any

from kcm_cli.api.apps import CONTROLLER_REVISIONS
from kcm_cli.api.core import PODS
from tests.kit.faults import Meanwhile
from tests.kit.world import World, resource
from tests.unit.controllers.daemonset.test_end_to_end import Story

REVISIONS = resource("controllerrevisions", "apps")
DAEMON_SETS = resource("daemonsets", "apps")
HASH = "controller-revision-hash"


async def revisions(world: World) -> dict[str, dict[str, Any]]:
    return {found["metadata"]["name"]: found for found in await world.items(CONTROLLER_REVISIONS)}


async def hashes(world: World) -> set[str]:
    return {pod["metadata"]["labels"][HASH] for pod in await world.items(PODS)}


def copied(found: dict[str, Any], name: str, **changes: Any) -> dict[str, Any]:
    """A revision with the same data under another name."""
    metadata = found["metadata"]
    labels = dict(changes.pop("labels", {**metadata["labels"], HASH: name}))
    kept = {"name": name, "labels": labels, "ownerReferences": metadata["ownerReferences"]}
    return {"metadata": kept, "data": found["data"], "revision": found["revision"]} | changes


async def test_a_revision_without_hash_is_labelled_by_its_name(world: World):
    story = Story(world)
    async with story.running():
        await story.make()
        await world.wait(30)
        await story.image("i:2")
        await world.wait(60)
    (old,) = [name for name, found in (await revisions(world)).items() if found["revision"] == 1]
    await world.patch(REVISIONS, old, {"metadata": {"labels": {HASH: None}}})
    async with story.running():
        await world.wait(30)
    found = await revisions(world)
    assert len(found) == 2
    assert found[old]["metadata"]["labels"][HASH] == old


async def test_of_duplicate_revisions_the_latest_is_kept_and_gets_all_pods(world: World):
    story = Story(world)
    async with story.running():
        await story.make()
        await world.wait(30)
    (first,) = (await revisions(world)).values()
    await world.create(REVISIONS, copied(first, "agent-twin", revision=7))
    before = {pod["metadata"]["uid"] for pod in await world.items(PODS)}
    async with story.running():
        await world.wait(30)
    assert list(await revisions(world)) == ["agent-twin"]
    assert await hashes(world) == {"agent-twin"}
    assert {pod["metadata"]["uid"] for pod in await world.items(PODS)} == before


async def test_a_pod_that_was_made_again_under_its_name_keeps_its_label(world: World):
    """One that is in the way of a pod that the cache still shows."""
    story = Story(world)
    async with story.running():
        await story.make()
        await world.wait(30)
    (first,) = (await revisions(world)).values()
    await world.create(REVISIONS, copied(first, "agent-twin", revision=7))
    name = (await world.items(PODS))[0]["metadata"]["name"]

    async def replace() -> None:
        await world.delete(PODS, name, grace_s=0)
        spec = {"containers": [{"name": "c", "image": "i"}]}
        await world.create(PODS, {"metadata": {"name": name, "labels": {HASH: "own"}}, "spec": spec})

    transport = Meanwhile(world.server.transport(), "PATCH", f"/pods/{name}", replace)
    async with story.running(transport=transport):
        await world.wait(60)
    assert transport.happened
    assert (await world.get(PODS, name))["metadata"]["labels"][HASH] == "own"
    assert list(await revisions(world)) == ["agent-twin"]


async def test_pods_of_another_revision_are_updated_though_the_current_one_has_a_duplicate(world: World):
    """kubernetes#111280"""
    story = Story(world)
    async with story.running():
        await story.make()
        await world.wait(30)
        (first,) = (await revisions(world)).values()
        await story.image("i:2")
        await world.wait(120)
        await world.create(REVISIONS, copied(first, "agent-twin"))
        await story.image("i:1")
        await world.wait(120)
        assert set((await story.images()).values()) == {"i:1"}
        assert len(await revisions(world)) == 2


async def test_a_restored_template_gets_a_higher_revision(world: World):
    story = Story(world)
    async with story.running():
        await story.make()
        await world.wait(30)
        await story.image("i:2")
        await world.wait(60)
        await story.image("i:1")
        await world.wait(60)
        found = await revisions(world)
        assert sorted(one["revision"] for one in found.values()) == [2, 3]
        assert set((await story.images()).values()) == {"i:1"}


async def test_a_name_collision_is_counted_and_another_name_is_used(world: World):
    story = Story(world)
    async with story.running():
        await story.make()
        await world.wait(30)
    ((name, first),) = (await revisions(world)).items()
    await world.delete(DAEMON_SETS, "agent", propagation="Orphan")
    await world.patch(DAEMON_SETS, "agent", {"metadata": {"finalizers": None}})
    await world.delete(REVISIONS, name)
    for pod in await world.items(PODS):
        await world.delete(PODS, pod["metadata"]["name"], grace_s=0)
    other = {"metadata": {"name": name}, "data": {"spec": {"template": {"other": True}}}, "revision": 1}
    await world.create(REVISIONS, other)
    async with story.running():
        await story.make()
        await world.wait(60)
        assert (await story.status())["collisionCount"] == 1
        found = await revisions(world)
        assert len(found) == 2 and name in found
        (made,) = [one for key, one in found.items() if key != name]
        assert made["data"] == first["data"]
        assert (await story.status())["numberAvailable"] == 3


async def test_a_collision_is_not_counted_for_another_daemonset_of_the_name(world: World):
    story = Story(world)
    async with story.running():
        await story.make()
        await world.wait(30)
    (name,) = await revisions(world)
    await world.delete(DAEMON_SETS, "agent", propagation="Orphan")
    await world.patch(DAEMON_SETS, "agent", {"metadata": {"finalizers": None}})
    await world.delete(REVISIONS, name)
    await world.create(REVISIONS, {"metadata": {"name": name}, "data": {"other": True}, "revision": 1})

    async def replace() -> None:
        await world.delete(DAEMON_SETS, "agent")
        labels = {"app": "agent"}
        pod = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "i:2"}]}}
        await story.make(selector={"matchLabels": labels}, template=pod)

    transport = Meanwhile(world.server.transport(), "GET", "/daemonsets/agent", replace)
    async with story.running(transport=transport):
        await story.make()
        await world.wait(60)
        assert transport.happened
        assert (await story.status())["numberAvailable"] == 3
        assert not (await story.status()).get("collisionCount")


async def test_a_daemonset_that_is_made_again_has_a_revision_of_its_own(world: World):
    """And not that of the former one, which the garbage collector deletes: nothing could be rolled back."""
    story = Story(world)
    async with story.running():
        await story.make()
        await world.wait(30)
        await world.delete(DAEMON_SETS, "agent", propagation="Background")
        await story.make()
        await world.wait(30)
        uid = (await world.get(DAEMON_SETS, "agent"))["metadata"]["uid"]
        owners = [found["metadata"]["ownerReferences"][0]["uid"] for found in (await revisions(world)).values()]
        assert owners.count(uid) == 1
        assert (await story.status())["updatedNumberScheduled"] == 3


async def test_history_is_limited_except_for_revisions_of_pods(world: World):
    story = Story(world)
    async with story.running():
        await story.make(revisionHistoryLimit=1, updateStrategy={"type": "OnDelete"})
        await world.wait(30)
        for number in (2, 3, 4):
            await story.image(f"i:{number}")
            await world.wait(30)
        assert sorted(one["revision"] for one in (await revisions(world)).values()) == [1, 4]
        assert set((await story.images()).values()) == {"i:1"}
        for pod in await world.items(PODS):
            await world.delete(PODS, pod["metadata"]["name"])
        await world.wait(60)
        assert set((await story.images()).values()) == {"i:4"}
        await story.image("i:5")
        await world.wait(30)
        assert sorted(one["revision"] for one in (await revisions(world)).values()) == [4, 5]
