"""The controller in a whole sandbox, on virtual time: objects are rewritten, one migration per resource at a time."""

import json
import random
from typing import Any

import pytest

from kcm_cli.rest.transport import Request, Response, Transport
from tests.kit.controlling import Faulty, controllers
from tests.kit.faults import Refusing, Rewriting, refusal
from tests.kit.own_group import serve
from tests.kit.widgets import CRDS, WIDGETS, serve_widgets
from tests.kit.world import World, resource

pytestmark = pytest.mark.cluster(alone=True)

GROUP = "storagemigration.k8s.io"
MIGRATIONS = resource("storageversionmigrations", GROUP, "v1beta1", namespaced=False)
SECRETS = resource("secrets")


def running(world: World, transport: Transport | None = None) -> Any:
    return controllers(world, names=["storage-version-migrator-controller"], transport=transport)


async def prepare(world: World, count: int = 3) -> None:
    await serve(world, "storageversionmigrations", "StorageVersionMigration", GROUP, "v1beta1")
    for number in range(count):
        await world.create(SECRETS, {"metadata": {"name": f"s{number}"}})


async def migrate(world: World, name: str = "m", plural: str = "secrets", group: str = "") -> None:
    kind = {"apiVersion": f"{GROUP}/v1beta1", "kind": "StorageVersionMigration"}
    spec = {"resource": {"group": group, "resource": plural}}
    await world.create(MIGRATIONS, {**kind, "metadata": {"name": name, "labels": {"mine": "kept"}}, "spec": spec})


async def conditions(world: World, name: str = "m") -> dict[str, tuple[str, str]]:
    found = await world.get(MIGRATIONS, name)
    assert found["metadata"]["labels"] == {"mine": "kept"}
    return {one["type"]: (one["status"], one["message"]) for one in found.get("status", {}).get("conditions", [])}


DONE = {"Running": ("False", "Migration completed"), "Succeeded": ("True", "")}


class Applied:
    """Counts applies to Secrets."""

    def __init__(self, world: World) -> None:
        self.names: list[str] = []
        self.transport = Refusing(world.server.transport(), self._note)

    def _note(self, request: Request) -> bool:
        if request.method == "PATCH" and "/secrets/" in request.path:
            self.names.append(request.path.rpartition("/")[2])
        return False


async def test_every_object_is_applied_once_unchanged(world: World):
    await prepare(world)
    before = await world.get(SECRETS, "s1")
    applied = Applied(world)
    async with running(world, applied.transport):
        await migrate(world)
        await world.wait(5)
        assert await conditions(world) == DONE
        assert sorted(applied.names) == ["s0", "s1", "s2"]
        assert await world.get(SECRETS, "s1") == before


async def test_objects_written_since_are_skipped(world: World):
    await prepare(world)
    applied = Applied(world)

    async def before(request: Request) -> None:
        """Between the version that is noted (a list of one) and the list of all."""
        if request.path == "/api/v1/secrets" and ("limit", "500") in request.query:
            await world.patch(SECRETS, "s1", {"metadata": {"labels": {"a": "b"}}})

    async with running(world, Refusing(applied.transport, lambda request: False, before)):
        await migrate(world)
        await world.wait(5)
        assert await conditions(world) == DONE
        assert sorted(applied.names) == ["s0", "s2"]


async def test_migrations_of_a_resource_run_one_at_a_time_oldest_first(world: World):
    await prepare(world)
    blind = [True]

    def refuses(request: Request) -> bool:
        return blind[0] and request.method == "PATCH" and "/secrets/" in request.path

    async with running(world, Refusing(world.server.transport(), refuses)):
        await migrate(world, "z-first")
        await world.wait(2)
        await migrate(world, "a-second")
        await migrate(world, "other", plural="configmaps")
        await world.wait(5)
        assert set(await conditions(world, "z-first")) == {"Running"}
        assert await conditions(world, "a-second") == {}
        assert await conditions(world, "other") == DONE
        blind[0] = False
        await world.wait(30)
        assert await conditions(world, "z-first") == await conditions(world, "a-second") == DONE


async def test_former_stored_versions_are_removed_from_the_definition(world: World):
    await prepare(world, 0)
    await serve_widgets(world)
    kind = {"apiVersion": "example.com/v1", "kind": "Widget"}
    await world.create(WIDGETS, {**kind, "metadata": {"name": "w"}, "spec": {"any": "thing"}})
    async with running(world):
        await migrate(world, plural="widgets", group="example.com")
        await world.wait(5)
        assert await conditions(world) == DONE
        status = (await world.get(CRDS, "widgets.example.com"))["status"]
        (found,) = (one for one in status["conditions"] if one["type"] == "StorageMigrating")
        text = "The migration has succeeded and the stored versions have been updated"
        assert (found["status"], found["reason"], found["message"]) == (
            "False",
            "MigrationSucceeded",
            text,
        )
        assert status["storedVersions"] == ["v1"]
        assert (await world.get(WIDGETS, "w"))["spec"] == {"any": "thing"}


async def test_a_missing_resource_fails_after_a_minute(world: World):
    await prepare(world, 0)
    async with running(world):
        await migrate(world, plural="things", group="nowhere.example.com")
        await world.wait(50)
        assert set(await conditions(world)) == {"Running"}
        await world.wait(60)
        assert await conditions(world) == {
            "Running": ("False", "Migration completed"),
            "Failed": ("True", "resource does not exist in discovery"),
        }


async def test_a_resource_that_cannot_be_written_fails(world: World):
    await prepare(world, 0)
    async with running(world):
        await migrate(world, plural="componentstatuses")
        await world.wait(5)
        text = 'resource "/v1, Resource=componentstatuses" does not support discovery operations: [update patch list]'
        assert (await conditions(world))["Failed"] == ("True", text)


@pytest.mark.parametrize(
    ("status", "reason", "failed"),
    [
        (403, "Forbidden", "migration encountered unhandled error: nothing doing"),
        (409, "Conflict", None),
        (500, "InternalError", ""),
        (429, "TooManyRequests", ""),
    ],
)
async def test_refusals(world: World, status, reason, failed):
    """Temporary errors are retried; a conflict means that another client has written the object."""
    await prepare(world)
    blind = [True]

    def answer(request: Request) -> Any:
        hit = blind[0] and request.method == "PATCH" and request.path.endswith("/secrets/s1")
        return refusal(status, reason, "nothing doing") if hit else None

    async with running(world, Rewriting(world.server.transport(), answer=answer)):
        await migrate(world)
        await world.wait(5)
        found = await conditions(world)
        if failed is None:
            assert found == DONE
        elif failed:
            assert found["Failed"] == ("True", failed)
        else:
            assert set(found) == {"Running"}
            blind[0] = False
            await world.wait(60)
            assert await conditions(world) == DONE


@pytest.mark.parametrize("seed", range(2))
async def test_lost_requests_and_answers(world: World, seed):
    await prepare(world)
    faulty = Faulty(world.server.transport(), random.Random(seed), 0.4)
    async with running(world, faulty):
        await migrate(world, "one")
        await migrate(world, "two")
        await world.wait(300)
        assert faulty.faults
        assert await conditions(world, "one") == await conditions(world, "two") == DONE


@pytest.mark.parametrize(
    ("of_list", "failed"),
    [
        (
            True,
            "latest resourceVersion for /v1, Resource=secrets is not valid: resource version is not well formed: x7",
        ),
        (False, "migration encountered unhandled error: resource version is not well formed: x7"),
    ],
)
async def test_non_numeric_resource_versions(world: World, of_list, failed):
    """As an aggregated one may have them: upstream gives the migration up."""
    await prepare(world)

    def edit(request: Request, response: Response) -> Response:
        if request.method != "GET" or request.path != "/api/v1/secrets":
            return response
        doc = json.loads(response.body)
        for one in [doc] if of_list else doc["items"]:
            one["metadata"]["resourceVersion"] = "x7"
        return Response(response.status, response.headers, json.dumps(doc).encode())

    async with running(world, Rewriting(world.server.transport(), edit)):
        await migrate(world)
        await world.wait(5)
        assert (await conditions(world))["Failed"] == ("True", failed)
