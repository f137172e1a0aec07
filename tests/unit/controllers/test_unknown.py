"""An object that cannot be decoded exists: its dependents are kept until it is deleted."""

from typing import Any

import pytest

from kcm_cli.api.apps import DAEMON_SETS
from kcm_cli.api.resource import GVR
from kcm_cli.api.scheduling import POD_GROUPS
from kcm_cli.api.well_known import ZONE
from kcm_cli.controllers.daemonset.config import DaemonSetConfig
from kcm_cli.controllers.endpoints.config import EndpointsConfig
from kcm_cli.controllers.endpointslice.config import EndpointSliceConfig
from kcm_cli.controllers.endpointslice_mirroring.config import EndpointSliceMirroringConfig
from kcm_cli.controllers.ephemeral_volume.config import EphemeralVolumeConfig
from kcm_cli.controllers.podgroup_protection.controller import FINALIZER
from tests.kit.alpha import make, serve
from tests.kit.controlling import controllers
from tests.kit.faults import Noting
from tests.kit.world import NODES, PODS, World, resource
from tests.unit.controllers.persistentvolume_binder.storage import (
    CLAIMS,
    CONFIG,
    NAME,
    VOLUMES,
    make_claim,
    make_volume,
    phase,
)
from tests.unit.controllers.volumeattributesclass_protection import test_end_to_end as attributes

pytestmark = pytest.mark.cluster(nodes=0)

SERVICES, ENDPOINTS, ACCOUNTS = resource("services"), resource("endpoints"), resource("serviceaccounts")
SLICES = resource("endpointslices", "discovery.k8s.io")
ROLES = resource("clusterroles", "rbac.authorization.k8s.io", namespaced=False)
PORTS = {"ports": [{"port": 80}]}
SUBSETS = [{"addresses": [{"ip": "10.9.0.1"}], "ports": [{"port": 80}]}]


def spoil(world: World, kind: GVR, name: str, namespace: str = "default") -> None:
    """Make an object one that cannot be decoded."""
    found = (one.copy() for one in world.server.store.list(kind, namespace))
    (doc,) = (one for one in found if one["metadata"]["name"] == name)
    world.server.store.update(kind, namespace, name, {**doc, "metadata": {**doc["metadata"], "labels": [5]}})


def lose(world: World, kind: GVR, name: str) -> None:
    """Delete an object, whatever the server would make of it."""
    world.server.store.delete(kind, "default", name)


async def names(world: World, kind: Any) -> list[str]:
    return [one["metadata"]["name"] for one in await world.items(kind) if one["metadata"]["name"] != "kubernetes"]


async def test_endpoints_of_an_unknown_service_are_kept_until_it_is_deleted(world: World):
    async with controllers(world, EndpointsConfig(), names=["endpoints-controller"]):
        await world.create(SERVICES, {"metadata": {"name": "web"}, "spec": {**PORTS, "selector": {"app": "a"}}})
        await world.wait(5)
        assert await names(world, ENDPOINTS) == ["web"]
    spoil(world, SERVICES.gvr, "web")
    async with controllers(world, EndpointsConfig(), names=["endpoints-controller"]):
        await world.wait(60)
        assert await names(world, ENDPOINTS) == ["web"]
        lose(world, SERVICES.gvr, "web")
        await world.wait(5)
        assert await names(world, ENDPOINTS) == []


async def test_mirrored_slices_are_kept_while_service_or_endpoints_are_unknown(world: World):
    def mirroring() -> Any:
        return controllers(world, EndpointSliceMirroringConfig(), names=["endpointslice-mirroring-controller"])

    async with mirroring():
        for name in ("one", "two"):
            await world.create(SERVICES, {"metadata": {"name": name}, "spec": PORTS})
            await world.create(ENDPOINTS, {"metadata": {"name": name}, "subsets": SUBSETS})
        await world.wait(5)
        made = await names(world, SLICES)
        assert len(made) == 2
    spoil(world, SERVICES.gvr, "one")
    spoil(world, ENDPOINTS.gvr, "two")
    async with mirroring():
        await world.wait(60)
        assert await names(world, SLICES) == made
        lose(world, SERVICES.gvr, "one")
        lose(world, ENDPOINTS.gvr, "two")
        await world.wait(5)
        assert await names(world, SLICES) == []


@pytest.mark.cluster(nodes=1)
async def test_pods_of_an_unknown_node_stay_in_the_slices(world: World):
    def running() -> Any:
        return controllers(world, EndpointSliceConfig(), names=["endpointslice-controller"])

    async def endpoints() -> list[tuple[str, str]]:
        (slice_,) = [one for one in await world.items(SLICES) if "web" in one["metadata"]["name"]]
        return [(one["targetRef"]["name"], one["zone"]) for one in slice_["endpoints"]]

    await world.pod("p", {"labels": {"app": "a"}})
    await world.create(SERVICES, {"metadata": {"name": "web"}, "spec": {**PORTS, "selector": {"app": "a"}}})
    await world.wait(5)
    node = await world.node_of("p")
    async with running():
        await world.wait(5)
        before = await endpoints()
        assert before == [("p", (await world.get(NODES, node))["metadata"]["labels"][ZONE])]
    (doc,) = (one.copy() for one in world.server.store.list(NODES.gvr, ""))
    world.server.store.update(NODES.gvr, "", node, {**doc, "spec": {**doc["spec"], "taints": "none"}})
    async with running():
        await world.wait(30)
        assert await endpoints() == before


@pytest.mark.cluster(nodes=1)
async def test_a_daemon_pod_that_waits_for_an_unknown_node_is_kept(world: World):
    """The scheduler may bind it at any time."""

    def running() -> Any:
        return controllers(world, DaemonSetConfig(), names=["daemonset-controller"])

    asked = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1000"}}}
    template = {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [asked]}}
    spec = {"selector": {"matchLabels": {"app": "a"}}, "template": template}
    await world.create(DAEMON_SETS, {"metadata": {"name": "agent"}, "spec": spec})
    async with running():
        await world.wait(5)
        (before,) = await world.items(PODS)
        assert "nodeName" not in before["spec"]
    (node,) = (one.copy() for one in world.server.store.list(NODES.gvr, ""))
    world.server.store.update(NODES.gvr, "", node["metadata"]["name"], {**node, "spec": {"taints": "none"}})
    async with running():
        await world.wait(30)
        assert [pod["metadata"]["uid"] for pod in await world.items(PODS)] == [before["metadata"]["uid"]]


async def test_rules_of_an_unknown_role_stay_aggregated(world: World):
    def aggregating() -> Any:
        return controllers(world, names=["clusterrole-aggregation-controller"])

    async def verbs() -> list[str]:
        return [rule["verbs"][0] for rule in (await world.get(ROLES, "all"))["rules"]]

    def role(name: str, verb: str) -> dict[str, Any]:
        rule = {"apiGroups": [""], "resources": ["pods"], "verbs": [verb]}
        return {"metadata": {"name": name, "labels": {"part": "yes"}}, "rules": [rule]}

    async with aggregating():
        selectors = {"clusterRoleSelectors": [{"matchLabels": {"part": "yes"}}]}
        await world.create(ROLES, {"metadata": {"name": "all"}, "aggregationRule": selectors})
        await world.create(ROLES, role("a", "get"))
        await world.create(ROLES, role("b", "list"))
        await world.wait(2)
        assert await verbs() == ["get", "list"]
    spoil(world, ROLES.gvr, "a", "")
    async with aggregating():
        await world.create(ROLES, role("c", "watch"))
        await world.wait(2)
        assert sorted(await verbs()) == ["get", "list", "watch"]
        world.server.store.delete(ROLES.gvr, "", "a")
        await world.wait(2)
        assert await verbs() == ["list", "watch"]


async def test_a_class_is_kept_while_a_volume_is_unknown(world: World):
    await attributes.make(world, "gold")
    await attributes.volume(world, "v", "gold")
    spoil(world, VOLUMES.gvr, "v", "")
    async with controllers(world, names=[attributes.NAME]):
        await world.wait(2)
        await world.delete(attributes.CLASSES, "gold")
        await world.wait(200)
        assert not await world.is_deleted("gold", attributes.CLASSES)
        world.server.store.delete(VOLUMES.gvr, "", "v")
        await world.wait(70)
        assert await world.is_deleted("gold", attributes.CLASSES)


async def test_a_group_is_kept_while_a_pod_is_unknown(world: World):
    await serve(world, POD_GROUPS, status={})
    await make(world, POD_GROUPS, {"metadata": {"name": "g", "finalizers": [FINALIZER]}, "spec": {"mine": 1}})
    await world.pod("p")
    spoil(world, PODS.gvr, "p")
    gates = [("", "GenericWorkload=true")]
    async with controllers(world, names=["podgroup-protection-controller"], gates=gates):
        await world.delete(POD_GROUPS, "g")
        await world.wait(200)
        assert not await world.is_deleted("g", POD_GROUPS)
        lose(world, PODS.gvr, "p")
        await world.wait(70)
        assert await world.is_deleted("g", POD_GROUPS)


async def test_the_unknown_claim_of_an_ephemeral_volume_is_neither_made_nor_reported(world: World):
    def running() -> Any:
        return controllers(world, EphemeralVolumeConfig(), names=["ephemeral-volume-controller"])

    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    ephemeral = {"volumeClaimTemplate": {"spec": spec}}
    async with running():
        await world.pod("p", {"volumes": [{"name": "v", "ephemeral": ephemeral}]})
        await world.wait(5)
        assert await names(world, CLAIMS) == ["p-v"]
    spoil(world, CLAIMS.gvr, "p-v")
    async with running():
        await world.wait(60)
        assert "FailedBinding" not in str(await world.events("p"))
        lose(world, CLAIMS.gvr, "p-v")
        await world.wait(70)
        assert await names(world, CLAIMS) == ["p-v"]


async def test_the_unknown_default_account_is_not_created_again_and_again(world: World):
    spoil(world, ACCOUNTS.gvr, "default")
    noting = Noting(world.server.transport())
    async with controllers(world, names=["serviceaccount-controller"], transport=noting):
        await world.wait(600)
        assert "/api/v1/namespaces/default/serviceaccounts" not in noting.paths("POST")
        lose(world, ACCOUNTS.gvr, "default")
        await world.wait(70)
        assert await names(world, ACCOUNTS) == ["default"]


async def test_a_claim_is_not_lost_while_its_volume_is_unknown(world: World):
    async with controllers(world, CONFIG, names=[NAME]):
        await make_volume(world, "v")
        await make_claim(world, "c")
        await world.wait(30)
        assert await phase(world, CLAIMS, "c") == "Bound"
    spoil(world, VOLUMES.gvr, "v", "")
    async with controllers(world, CONFIG, names=[NAME]):
        await world.wait(120)
        assert await phase(world, CLAIMS, "c") == "Bound"
        world.server.store.delete(VOLUMES.gvr, "", "v")
        await world.wait(60)
        assert await phase(world, CLAIMS, "c") == "Lost"
