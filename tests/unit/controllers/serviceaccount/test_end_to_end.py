"""The controller in a whole sandbox, on virtual time: every active namespace has its account."""

import random

import pytest

from kcm_cli.rest.transport import Request, Response, Transport
from tests.kit.controlling import Faulty, controllers
from tests.kit.faults import Refusing, Rewriting, refusal
from tests.kit.world import World, resource

pytestmark = pytest.mark.cluster(alone=True)

NAMESPACES = resource("namespaces", namespaced=False)
ACCOUNTS = resource("serviceaccounts")


def running(world: World, transport: Transport | None = None):
    return controllers(world, names=["serviceaccount-controller"], transport=transport)


async def has(world: World, namespace: str, name: str = "default") -> bool:
    return not await world.is_deleted(name, ACCOUNTS, namespace)


async def test_a_new_namespace_gets_its_account_which_is_recreated(world: World):
    await world.create(NAMESPACES, {"metadata": {"name": "old"}})
    async with running(world):
        await world.create(NAMESPACES, {"metadata": {"name": "new"}})
        await world.wait(2)
        assert await has(world, "old") and await has(world, "new")
        await world.client.delete(ACCOUNTS, "new", "default")
        await world.wait(2)
        assert await has(world, "new")


async def test_an_account_that_the_cache_never_showed_is_recreated(world: World):
    """As when a list takes the place of a watch: no event says that it is gone."""
    blind = [False]
    refuses = Refusing(world.server.transport(), lambda sent: blind[0] and sent.path == "/api/v1/serviceaccounts")
    async with running(world, refuses):
        await world.wait(2)
        blind[0] = True
        await world.wait(600)
        await world.create(NAMESPACES, {"metadata": {"name": "new"}})
        await world.wait(2)
        await world.client.delete(ACCOUNTS, "new", "default")
        await world.wait(70)
        assert await has(world, "new")


async def test_other_deleted_accounts_are_not_recreated(world: World):
    async with running(world):
        await world.create(ACCOUNTS, {"metadata": {"name": "mine"}})
        await world.wait(2)
        await world.delete(ACCOUNTS, "mine")
        await world.wait(2)
        assert not await has(world, "default", "mine")


async def test_a_terminating_namespace_gets_none(world: World):
    async with running(world):
        await world.create(NAMESPACES, {"metadata": {"name": "going"}})
        await world.wait(2)
        await world.delete(NAMESPACES, "going")
        namespace = await world.get(NAMESPACES, "going")
        assert namespace["status"]["phase"] == "Terminating"
        await world.client.delete(ACCOUNTS, "going", "default")
        await world.wait(30)
        assert not await has(world, "going")


@pytest.mark.parametrize(
    ("reason", "causes", "tries"),
    [
        pytest.param("AlreadyExists", [], 1, id="there already"),
        pytest.param("Forbidden", [{"reason": "NamespaceTerminating"}], 1, id="terminating"),
        pytest.param("Forbidden", [], 5, id="refused"),
    ],
)
async def test_errors_that_are_retried(world: World, reason, causes, tries):
    asked = []

    def answer(request: Request) -> Response | None:
        if request.method == "POST" and request.path.endswith("/namespaces/new/serviceaccounts"):
            asked.append(request.path)
            return refusal(409 if reason == "AlreadyExists" else 403, reason, causes=causes)
        return None

    async with running(world, Rewriting(world.server.transport(), answer=answer)):
        await world.create(NAMESPACES, {"metadata": {"name": "new"}})
        await world.wait(60)
        assert len(asked) == 1 if tries == 1 else len(asked) >= tries


async def test_failures_are_retried(world: World):
    faulty = Faulty(world.server.transport(), random.Random(1), 0.5)
    async with running(world, Refusing(faulty, lambda request: False)):
        for number in range(10):
            await world.create(NAMESPACES, {"metadata": {"name": f"n{number}"}})
        await world.wait(60)
        assert faulty.faults
        assert all([await has(world, f"n{number}") for number in range(10)])
