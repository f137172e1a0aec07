"""What the ConfigMap of the root CA should hold; and the controller in a whole sandbox, on virtual time."""

import random
from functools import partial
from typing import Any

import pytest

from kcm_cli.api.core import CONFIG_MAPS, ConfigMap
from kcm_cli.api.well_known import ROOT_CA
from kcm_cli.component.metrics import Registry
from kcm_cli.component.service_account_config import ServiceAccountTokenConfig
from kcm_cli.controllers.namespace.config import NamespaceConfig
from kcm_cli.controllers.root_ca_certificate_publisher.plan import DESCRIPTION, TEXT, plan
from kcm_cli.machinery import codec
from kcm_cli.planning.actions import Create, Update
from kcm_cli.rest.errors import NotFound
from kcm_cli.rest.transport import Request
from tests.kit.controlling import Faulty, controllers, metric
from tests.kit.faults import Noting, Refusing
from tests.kit.root_ca import CA
from tests.kit.world import World, resource

pytestmark = pytest.mark.cluster(alone=True)

NAMESPACES = resource("namespaces", namespaced=False)


def config_map(data: dict[str, str] | None, **annotations: str) -> ConfigMap:
    metadata = {"name": ROOT_CA, "namespace": "ns", "annotations": annotations}
    return CONFIG_MAPS.decode(codec.encode({"metadata": metadata, "data": data}))


GOOD = {"ca.crt": CA}


@pytest.mark.parametrize(
    ("found", "right"),
    [
        pytest.param(config_map(GOOD, **{DESCRIPTION: TEXT}), True, id="unchanged"),
        pytest.param(config_map(GOOD, **{DESCRIPTION: "mine"}), True, id="any description will do"),
        pytest.param(config_map(GOOD, **{DESCRIPTION: ""}), False, id="an empty one will not"),
        pytest.param(config_map(GOOD), False, id="no description"),
        pytest.param(config_map({"ca.crt": "old"}, **{DESCRIPTION: TEXT}), False, id="another CA"),
        pytest.param(config_map(GOOD | {"more": "x"}, **{DESCRIPTION: TEXT}), False, id="more data"),
        pytest.param(config_map(None, **{DESCRIPTION: TEXT}), False, id="no data"),
    ],
)
def test_repairs(found: ConfigMap, right: bool) -> None:
    action = plan("ns", found, CA)
    assert (action is None) is right
    if not right:
        assert isinstance(action, Update)
        assert action.changes[("data",)] == GOOD
        assert action.changes[("metadata", "annotations")] == {**found.annotations, DESCRIPTION: TEXT}


def test_a_created_object_needs_no_repair() -> None:
    action = plan("ns", None, CA)
    assert isinstance(action, Create)
    assert plan("ns", CONFIG_MAPS.decode(codec.encode(action.body)), CA) is None


class Story:
    def __init__(self, world: World, tmp_path: Any) -> None:
        self.world = world
        (tmp_path / "ca").write_text(CA)
        self.config = ServiceAccountTokenConfig(root_ca_file=str(tmp_path / "ca"))

    def running(self, **options: Any) -> Any:
        names = ["root-ca-certificate-publisher-controller"]
        return controllers(self.world, self.config, names=names, **options)

    async def data(self, namespace: str) -> dict[str, str] | None:
        try:
            return (await self.world.get(CONFIG_MAPS, ROOT_CA, namespace)).get("data", {})  # type: ignore[no-any-return]
        except NotFound:
            return None


async def test_every_namespace_has_the_config_map_and_changes_are_reverted(world: World, tmp_path):
    story = Story(world, tmp_path)
    async with story.running():
        await world.create(NAMESPACES, {"metadata": {"name": "new"}})
        await world.wait(2)
        assert await story.data("new") == await story.data("default") == GOOD
        await world.patch(CONFIG_MAPS, ROOT_CA, {"data": {"ca.crt": "x", "more": "y"}}, "new")
        await world.wait(2)
        assert await story.data("new") == GOOD
        await world.client.delete(CONFIG_MAPS, "new", ROOT_CA)
        await world.wait(2)
        assert await story.data("new") == GOOD


async def test_a_config_map_that_the_cache_never_showed_is_recreated(world: World, tmp_path):
    """As when a list takes the place of a watch: no event says that it is gone."""
    story, blind = Story(world, tmp_path), [False]
    refuses = Refusing(world.server.transport(), lambda sent: blind[0] and sent.path == "/api/v1/configmaps")
    async with story.running(transport=refuses):
        await world.wait(2)
        blind[0] = True
        await world.wait(600)
        await world.create(NAMESPACES, {"metadata": {"name": "new"}})
        await world.wait(2)
        await world.client.delete(CONFIG_MAPS, "new", ROOT_CA)
        assert await story.data("new") is None
        await world.wait(70)
        assert await story.data("new") == GOOD


async def test_a_namespace_that_is_deleted_is_left_alone(world: World, tmp_path):
    story, sent = Story(world, tmp_path), list[str]()

    def noted(request: Request) -> bool:
        if request.method == "POST":
            sent.append(request.path)
        return False

    async with story.running(transport=Refusing(world.server.transport(), noted)):
        await world.create(NAMESPACES, {"metadata": {"name": "old"}})
        await world.wait(100)
        sent.clear()
        await world.delete(NAMESPACES, "old")
        await world.client.delete(CONFIG_MAPS, "old", ROOT_CA)
        await world.wait(600)
        assert len(sent) == 1


async def test_nothing_is_created_in_a_namespace_that_was_gone_within_the_minute(world: World, tmp_path):
    story, noting = Story(world, tmp_path), Noting(world.server.transport())
    names = ["root-ca-certificate-publisher-controller", "namespace-controller"]
    async with controllers(world, story.config, NamespaceConfig(), names=names, transport=noting):
        await world.create(NAMESPACES, {"metadata": {"name": "young"}})
        await world.wait(5)
        assert await story.data("young") == GOOD
        await world.delete(NAMESPACES, "young")
        await world.wait(10)
        assert await world.is_deleted("young", NAMESPACES)
        noting.sent.clear()
        await world.wait(600)
        assert "/api/v1/namespaces/young/configmaps" not in noting.paths("POST")


async def test_without_a_file_the_ca_of_the_kubeconfig_is_published(world: World, tmp_path):
    story = Story(world, tmp_path)
    story.config = ServiceAccountTokenConfig()
    async with story.running(ca_data=CA.encode()):
        await world.wait(2)
        assert await story.data("default") == GOOD


async def test_a_changed_file_is_published(world: World, tmp_path):
    """And what is no certificate is not."""
    story = Story(world, tmp_path)
    async with story.running():
        await world.wait(2)
        (tmp_path / "ca").write_text("")
        await world.wait(70)
        assert await story.data("default") == GOOD
        (tmp_path / "ca").write_text(f"# new\n{CA}")
        await world.wait(70)
        assert await story.data("default") == {"ca.crt": f"# new\n{CA}"}


async def test_a_terminating_namespace_gets_none(world: World, tmp_path):
    story = Story(world, tmp_path)
    async with story.running():
        await world.create(NAMESPACES, {"metadata": {"name": "going"}})
        await world.wait(2)
        await world.delete(NAMESPACES, "going")
        await world.client.delete(CONFIG_MAPS, "going", ROOT_CA)
        await world.wait(30)
        assert await story.data("going") is None


async def test_failures_are_retried(world: World, tmp_path):
    story = Story(world, tmp_path)
    faulty = Faulty(world.server.transport(), random.Random(1), 0.5)
    async with story.running(transport=faulty):
        for number in range(10):
            await world.create(NAMESPACES, {"metadata": {"name": f"n{number}"}})
        await world.wait(60)
        assert faulty.faults
        assert all([await story.data(f"n{number}") == GOOD for number in range(10)])


@pytest.mark.cluster(nodes=3)
async def test_a_sync_without_a_response_is_not_a_success(world: World, tmp_path):
    story, metrics = Story(world, tmp_path), Registry()
    lost = [True]
    transport = Refusing(world.server.transport(), lambda r: lost[0] and r.method == "POST")
    async with story.running(transport=transport, metrics=metrics):
        await world.wait(1)
        total = partial(metric, metrics, "root_ca_cert_publisher_sync_total")
        assert total(code="500") > 0 == total(code="200")
        lost[0] = False
        await world.wait(30)
        assert total(code="200") > 0
