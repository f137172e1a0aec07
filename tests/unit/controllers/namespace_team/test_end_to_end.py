"""The controller in a sandbox, on virtual time."""

from kcm_cli.controllers.namespace_team.config import NamespaceTeamConfig
from kcm_cli.controllers.namespace_team.plan import LABEL
from tests.kit.controlling import controllers
from tests.kit.world import World, resource

NAMESPACES = resource("namespaces", namespaced=False)


async def test_a_namespace_without_a_team_gets_the_default_one(world: World) -> None:
    await world.create(NAMESPACES, {"metadata": {"name": "old", "labels": {LABEL: "mine"}}})
    async with controllers(world, NamespaceTeamConfig(team="ours"), names=["namespace-team-controller"]):
        await world.create(NAMESPACES, {"metadata": {"name": "new"}})
        await world.wait(1)
        assert (await world.get(NAMESPACES, "new"))["metadata"]["labels"][LABEL] == "ours"
        assert (await world.get(NAMESPACES, "old"))["metadata"]["labels"][LABEL] == "mine"
