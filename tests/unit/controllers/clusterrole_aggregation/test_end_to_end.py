"""The controller in a whole sandbox, on virtual time: rules follow the selected roles."""

import random
from typing import Any

import pytest

from kcm_cli.rest.transport import Request, Transport
from tests.kit.controlling import Faulty, controllers
from tests.kit.faults import Refusing
from tests.kit.world import World, resource

pytestmark = pytest.mark.cluster(alone=True)

ROLES = resource("clusterroles", "rbac.authorization.k8s.io", namespaced=False)
CHOSEN = {"example.com/part": "true"}


def rule(verb: str) -> dict[str, Any]:
    return {"apiGroups": [""], "resources": ["pods"], "verbs": [verb]}


class Story:
    """An aggregated ClusterRole ``all`` and its parts."""

    def __init__(self, world: World) -> None:
        self.world = world

    def running(self, transport: Transport | None = None) -> Any:
        return controllers(self.world, names=["clusterrole-aggregation-controller"], transport=transport)

    async def all(self, name: str = "all", labels: dict[str, str] | None = None) -> None:
        aggregation = {"clusterRoleSelectors": [{"matchLabels": labels or CHOSEN}]}
        await self.world.create(ROLES, {"metadata": {"name": name}, "aggregationRule": aggregation, "rules": []})

    async def part(self, name: str, *verbs: str, labels: dict[str, str] | None = None) -> None:
        metadata = {"name": name, "labels": CHOSEN if labels is None else labels}
        await self.world.create(ROLES, {"metadata": metadata, "rules": [rule(verb) for verb in verbs]})

    async def verbs(self, name: str = "all") -> list[str]:
        return [one["verbs"][0] for one in (await self.world.get(ROLES, name)).get("rules") or ()]


@pytest.fixture
def story(world: World) -> Story:
    return Story(world)


async def test_aggregated_rules_follow_the_selected_roles(world: World, story: Story):
    async with story.running():
        await story.all()
        await story.part("b", "list", "get")
        await story.part("a", "get")
        await story.part("c", "delete", labels={})
        await world.wait(2)
        assert await story.verbs() == ["get", "list"]
        await world.patch(ROLES, "c", {"metadata": {"labels": CHOSEN}})
        await world.wait(2)
        assert await story.verbs() == ["get", "list", "delete"]
        await world.delete(ROLES, "b")
        await world.wait(2)
        assert await story.verbs() == ["get", "delete"]
        await world.patch(ROLES, "a", {"rules": [rule("watch")]})
        await world.wait(2)
        assert await story.verbs() == ["watch", "delete"]


async def test_rules_written_by_another_client_are_reverted(world: World, story: Story):
    async with story.running():
        await story.all()
        await story.part("a", "get")
        await world.wait(2)
        await world.patch(ROLES, "all", {"rules": [rule("steal")]})
        await world.wait(2)
        assert await story.verbs() == ["get"]


async def test_an_aggregated_role_may_be_part_of_another(world: World, story: Story):
    async with story.running():
        await story.all()
        await story.all("above", {"example.com/above": "true"})
        await world.patch(ROLES, "all", {"metadata": {"labels": {"example.com/above": "true"} | CHOSEN}})
        await story.part("a", "get")
        await world.wait(2)
        assert await story.verbs("above") == ["get"] == await story.verbs()


async def test_roles_that_are_parts_of_each_other_lose_the_rules_of_a_deleted_part(world: World, story: Story):
    """Each had them from the other one."""
    one, other = {"example.com/one": "true"}, {"example.com/other": "true"}
    async with story.running():
        await story.all("one", other)
        await story.all("other", one)
        await world.patch(ROLES, "one", {"metadata": {"labels": one}})
        await world.patch(ROLES, "other", {"metadata": {"labels": other}})
        await story.part("a", "get", labels=one)
        await story.part("b", "list", labels=other)
        await world.wait(2)
        assert set(await story.verbs("one")) == {"get", "list"} == set(await story.verbs("other"))
        await world.delete(ROLES, "a")
        await world.wait(2)
        assert await story.verbs("one") == ["list"] == await story.verbs("other")


async def test_a_role_that_is_not_aggregated_any_more_keeps_its_rules(world: World, story: Story):
    async with story.running():
        await story.all()
        await story.part("a", "get")
        await world.wait(2)
        await world.patch(ROLES, "all", {"aggregationRule": None})
        await story.part("b", "list")
        await world.wait(2)
        assert await story.verbs() == ["get"]


async def test_the_controller_owns_only_the_rules(world: World, story: Story):
    async with story.running():
        await story.all()
        await story.part("a", "get")
        await world.wait(2)
        managers = (await world.get(ROLES, "all"))["metadata"]["managedFields"]
        (own,) = [one for one in managers if one["manager"] == "clusterrole-aggregation-controller"]
        assert own["operation"] == "Apply"
        assert own["fieldsV1"] == {"f:rules": {}}


@pytest.mark.parametrize("again", [False, True])
async def test_a_role_that_was_deleted_meanwhile_is_not_created_again(world: World, story: Story, again):
    """One that its user creates again has its rules."""
    deleted = list[str]()

    async def before(request: Request) -> None:
        if not deleted and request.method == "PATCH":
            deleted.append(request.path)
            await world.delete(ROLES, "all")
            if again:
                await story.all()

    async with story.running(Refusing(world.server.transport(), lambda request: False, before)):
        await story.part("a", "get")
        await story.all()
        await world.wait(2)
        assert deleted
        assert await world.is_deleted("all", ROLES) != again
        if again:
            assert await story.verbs() == ["get"]


@pytest.mark.parametrize("seed", range(2))
async def test_lost_requests_and_answers(world: World, story: Story, seed):
    faulty = Faulty(world.server.transport(), random.Random(seed), 0.5)
    async with story.running(faulty):
        await story.all()
        verbs = ["create", "delete", "get", "list", "patch", "update", "watch"]
        for verb in verbs:
            await story.part(verb, verb)
        await world.wait(60)
        assert faulty.faults
        assert await story.verbs() == verbs
