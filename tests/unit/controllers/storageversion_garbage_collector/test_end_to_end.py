"""The controller in a whole sandbox, on virtual time: entries are removed with their servers."""

import random
from typing import Any

import pytest
from msgspec.structs import replace

from kcm_cli.planning.actions import MERGE
from kcm_cli.rest.transport import Request, Response, Transport
from tests.kit.controlling import Faulty, controllers
from tests.kit.faults import Refusing, Rewriting
from tests.kit.own_group import serve
from tests.kit.world import World, resource

pytestmark = pytest.mark.cluster(alone=True)

GROUP = "internal.apiserver.k8s.io"
VERSIONS = resource("storageversions", GROUP, "v1alpha1", namespaced=False)
LEASES = resource("leases", "coordination.k8s.io")
SYSTEM = "kube-system"


def running(world: World, transport: Transport | None = None) -> Any:
    return controllers(world, names=["storageversion-garbage-collector-controller"], transport=transport)


async def prepare(world: World) -> None:
    await serve(world, "storageversions", "StorageVersion", GROUP, "v1alpha1")
    for name in ("a", "b"):
        labels = {"apiserver.kubernetes.io/identity": "kube-apiserver"}
        await world.create(LEASES, {"metadata": {"name": name, "labels": labels}, "spec": {}}, SYSTEM)
    await world.create(LEASES, {"metadata": {"name": "other"}, "spec": {}}, SYSTEM)


async def add(world: World, name: str, *servers: str) -> None:
    metadata = {"name": name, "labels": {"mine": "kept"}}
    kind = {"apiVersion": f"{GROUP}/v1alpha1", "kind": "StorageVersion"}
    await world.create(VERSIONS, {**kind, "metadata": metadata, "spec": {"also": "kept"}})
    entries = [{"apiServerID": one, "encodingVersion": "v1", "servedVersions": ["v1"]} for one in servers]
    await world.client.patch(
        VERSIONS, "", name, {"status": {"storageVersions": entries}}, content_type=MERGE, subresource="status"
    )


async def servers(world: World) -> dict[str, list[str]]:
    found = await world.items(VERSIONS)
    assert all(item["spec"] == {"also": "kept"} and item["metadata"]["labels"] == {"mine": "kept"} for item in found)
    return {
        item["metadata"]["name"]: [one["apiServerID"] for one in item["status"]["storageVersions"]] for item in found
    }


@pytest.mark.cluster(nodes=3)
async def test_an_object_that_cannot_be_decoded_does_not_affect_others(world: World):
    def spoilt(request: Request, response: Response) -> Response:
        return replace(response, body=response.body.replace(b'"odd"', b"7"))

    await prepare(world)
    await add(world, "x", "a", "b")
    await add(world, "z", "odd")
    async with running(world, Rewriting(world.server.transport(), spoilt)):
        await world.wait(5)
        await world.client.delete(LEASES, SYSTEM, "a")
        await world.wait(5)
        assert (await servers(world))["x"] == ["b"]


async def test_entries_are_removed_with_the_lease_of_their_server(world: World):
    await prepare(world)
    await add(world, "x", "a", "b")
    await add(world, "y", "b")
    async with running(world):
        await world.wait(5)
        assert await servers(world) == {"x": ["a", "b"], "y": ["b"]}
        await world.client.delete(LEASES, SYSTEM, "b")
        await world.wait(5)
        assert await servers(world) == {"x": ["a"]}
        assert (await world.get(VERSIONS, "x"))["status"]["commonEncodingVersion"] == "v1"


async def test_entries_without_a_server_are_removed(world: World):
    await prepare(world)
    await add(world, "at-start", "a", "gone")
    async with running(world):
        await add(world, "later", "other", "b")
        await add(world, "nobody", "gone")
        await world.wait(5)
        assert await servers(world) == {"at-start": ["a"], "later": ["b"]}


async def test_a_stale_cache_without_the_lease_removes_nothing(world: World):
    await prepare(world)

    def refuses(request: Request) -> bool:
        watching = dict(request.query).get("watch") == "true" or request.path.endswith("/leases")
        return watching and "leases" in request.path and world.clock.monotonic() > 100

    async with running(world, Refusing(world.server.transport(), refuses)):
        await world.wait(700)
        labels = {"apiserver.kubernetes.io/identity": "kube-apiserver"}
        await world.create(LEASES, {"metadata": {"name": "new", "labels": labels}, "spec": {}}, SYSTEM)
        await add(world, "x", "new")
        await world.wait(5)
        assert await servers(world) == {"x": ["new"]}


async def test_a_recreated_lease_keeps_its_entries(world: World):
    await prepare(world)
    await add(world, "x", "a")
    labels = {"apiserver.kubernetes.io/identity": "kube-apiserver"}
    made = [False]

    async def before(request: Request) -> None:
        if request.path.endswith("/leases/a") and not made[0]:
            made[0] = True
            await world.create(LEASES, {"metadata": {"name": "a", "labels": labels}, "spec": {}}, SYSTEM)

    async with running(world, Refusing(world.server.transport(), lambda request: False, before)):
        await world.client.delete(LEASES, SYSTEM, "a")
        await world.wait(5)
        assert (made, await servers(world)) == ([True], {"x": ["a"]})


@pytest.mark.parametrize("seed", range(2))
async def test_lost_requests_and_answers(world: World, seed):
    await prepare(world)
    for number in range(5):
        await add(world, f"v{number}", *("ab" if number % 2 else "b"))
    faulty = Faulty(world.server.transport(), random.Random(seed), 0.5)
    async with running(world, faulty):
        await world.wait(1)
        await world.client.delete(LEASES, SYSTEM, "b")
        await world.wait(120)
        assert faulty.faults
        assert await servers(world) == {"v1": ["a"], "v3": ["a"]}
