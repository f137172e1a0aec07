"""The bundle of the API servers' CA; and the controller in a whole sandbox, on virtual time."""

import random
from typing import Any

import pytest

from kcm_cli.api.certificates import CLUSTER_TRUST_BUNDLES, CLUSTER_TRUST_BUNDLES_ALPHA, ClusterTrustBundle
from kcm_cli.component.metrics import Registry
from kcm_cli.component.service_account_config import ServiceAccountTokenConfig
from kcm_cli.controllers.kube_apiserver_serving_clustertrustbundle_publisher.plan import SIGNER, bundle_name, plan
from kcm_cli.machinery import codec
from kcm_cli.planning.actions import Create, Delete, Update
from tests.kit.alpha import make, serve_selectable
from tests.kit.controlling import Faulty, controllers
from tests.kit.root_ca import CA
from tests.kit.trust_bundles import OURS, THEIRS, Renaming
from tests.kit.world import World

NAME = "kube-apiserver-serving-clustertrustbundle-publisher-controller"


def bundle(name: str, trust_bundle: str) -> ClusterTrustBundle:
    spec = {"signerName": SIGNER, "trustBundle": trust_bundle}
    return CLUSTER_TRUST_BUNDLES.decode(codec.encode({"metadata": {"name": name, "uid": f"{name}-uid"}, "spec": spec}))


RIGHT = bundle_name("ca")


def test_the_name_has_the_hash_of_the_content() -> None:
    assert bundle_name("ca") == "kubernetes.io:kube-apiserver-serving:6959097001d10501ac7d54c0"
    assert bundle_name("other") != bundle_name("ca")


@pytest.mark.parametrize(
    ("found", "kinds"),
    [
        pytest.param([], [Create], id="none"),
        pytest.param([bundle(RIGHT, "ca")], [], id="right"),
        pytest.param([bundle(RIGHT, "changed")], [Update], id="changed"),
        pytest.param([bundle(RIGHT, "ca"), bundle("old", "x")], [Delete], id="an old one"),
        pytest.param([bundle("old", "x")], [Create, Delete], id="only an old one"),
    ],
)
def test_the_written_object(found: list[ClusterTrustBundle], kinds: list[type]) -> None:
    stages = plan(CLUSTER_TRUST_BUNDLES, found, "ca")
    assert [type(action) for stage in stages for action in stage.actions] == kinds


@pytest.mark.parametrize("kind", [CLUSTER_TRUST_BUNDLES, CLUSTER_TRUST_BUNDLES_ALPHA], ids=["beta", "alpha"])
async def test_the_bundle_is_restored_also_with_lost_answers(world: World, tmp_path, kind):
    (tmp_path / "ca").write_text(CA)
    config = ServiceAccountTokenConfig(root_ca_file=str(tmp_path / "ca"))
    await serve_selectable(world, kind, "signerName")
    old = {"metadata": {"name": f"{THEIRS}old"}}
    await make(world, kind, old | {"spec": {"signerName": SIGNER, "trustBundle": "old"}})
    await make(world, kind, {"metadata": {"name": "mine"}, "spec": {"signerName": "example.com/mine"}})
    name, registry = bundle_name(CA).replace(OURS, THEIRS), Registry()
    transport = Faulty(Renaming(world.server.transport()), random.Random(5), 0.8)
    served = frozenset({f"{kind.api_version}/{kind.plural}"})
    options: dict[str, Any] = {"transport": transport, "metrics": registry, "served": served}
    async with controllers(world, config, names=[NAME], **options):
        await world.wait(10)
        names = {found["metadata"]["name"] for found in await world.items(kind)}
        assert names == {"mine", name}
        await world.patch(kind, name, {"spec": {"trustBundle": "spoilt"}})
        await world.wait(10)
        assert (await world.get(kind, name))["spec"]["trustBundle"] == CA
        await world.delete(kind, name)
        await world.wait(10)
        assert (await world.get(kind, name))["spec"]["signerName"] == SIGNER
        assert transport.faults
        shown = registry.expose().decode()
        assert 'clustertrustbundle_publisher_sync_total{code="200"}' in shown
        assert 'clustertrustbundle_publisher_sync_total{code="500"}' in shown


async def test_a_changed_file_is_published_in_a_new_bundle(world: World, tmp_path):
    (tmp_path / "ca").write_text(CA)
    config, kind = ServiceAccountTokenConfig(root_ca_file=str(tmp_path / "ca")), CLUSTER_TRUST_BUNDLES
    await serve_selectable(world, kind, "signerName")
    transport = Renaming(world.server.transport())
    async with controllers(world, config, names=[NAME], transport=transport):
        await world.wait(10)
        (tmp_path / "ca").write_text(f"# new\n{CA}")
        await world.wait(70)
        (found,) = await world.items(kind)
        assert found["metadata"]["name"] == bundle_name(f"# new\n{CA}").replace(OURS, THEIRS)
        assert found["spec"]["trustBundle"] == f"# new\n{CA}"


async def test_without_a_ca_nothing_is_published(world: World):
    await serve_selectable(world, CLUSTER_TRUST_BUNDLES, "signerName")
    async with controllers(world, ServiceAccountTokenConfig(), names=[NAME]):
        await world.wait(10)
        assert await world.items(CLUSTER_TRUST_BUNDLES) == []
