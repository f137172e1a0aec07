"""The controller in a whole sandbox, on virtual time: usage follows the objects."""

import argparse
import asyncio
import json
import random
from typing import Any

import pytest

from kcm_cli.api.core import RESOURCE_QUOTAS
from kcm_cli.api.resource import GVR, Resource
from kcm_cli.component.metrics import Registry
from kcm_cli.controllers.resourcequota.config import ResourceQuotaConfig
from kcm_cli.controllers.resourcequota.monitors import Monitors
from kcm_cli.machinery.meta import Object
from kcm_cli.planning.actions import MERGE, STRATEGIC_MERGE
from kcm_cli.rest.errors import Forbidden
from kcm_cli.rest.transport import Request, Transport
from tests.bench import quota_steps
from tests.kit.controlling import Faulty, adds, controllers
from tests.kit.faults import Held, Noting, Refusing
from tests.kit.widgets import CRDS, WIDGETS, serve_widgets
from tests.kit.world import PODS, World, resource

CONFIG_MAPS = resource("configmaps")
SERVICES = resource("services")
CLAIMS = resource("persistentvolumeclaims")


class Story:
    """A quota ``q`` and its usage."""

    def __init__(self, world: World) -> None:
        self.world = world

    def running(self, transport: Transport | None = None, **options: Any) -> Any:
        names = ["resourcequota-controller"]
        return controllers(self.world, ResourceQuotaConfig(), names=names, transport=transport, **options)

    async def quota(self, hard: dict[str, str], **spec: Any) -> None:
        await self.world.create(RESOURCE_QUOTAS, {"metadata": {"name": "q"}, "spec": {"hard": hard, **spec}})

    async def used(self) -> dict[str, str]:
        status = (await self.world.get(RESOURCE_QUOTAS, "q")).get("status", {})
        return status.get("used", {})  # type: ignore[no-any-return]

    async def pod(self, name: str, cpu: str = "100m", **spec: Any) -> None:
        container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
        await self.world.pod(name, {"containers": [container], "terminationGracePeriodSeconds": 1, **spec})


@pytest.fixture
def story(world: World) -> Story:
    return Story(world)


async def test_lifecycle(world: World, story: Story):
    async with story.running():
        await story.pod("before")
        await story.quota({"pods": "3", "requests.cpu": "1", "count/pods": "9", "configmaps": "1"})
        await world.wait(5)
        assert await story.used() == {"pods": "1", "requests.cpu": "100m", "count/pods": "1", "configmaps": "0"}
        await story.pod("p", "200m")
        await world.create(CONFIG_MAPS, {"metadata": {"name": "c"}})
        await world.wait(5)
        assert await story.used() == {"pods": "2", "requests.cpu": "300m", "count/pods": "2", "configmaps": "1"}
        with pytest.raises(Forbidden, match="exceeded quota: q, requested: configmaps=1"):
            await world.create(CONFIG_MAPS, {"metadata": {"name": "d"}})
        await world.delete(CONFIG_MAPS, "c")
        await world.delete(PODS, "p")
        await world.wait(10)
        assert await story.used() == {"pods": "1", "requests.cpu": "100m", "count/pods": "1", "configmaps": "0"}


async def test_custom_resources_whose_version_is_no_longer_served_are_counted_in_another(world: World, story: Story):
    later = resource("widgets", "example.com", version="v2")
    await serve_widgets(world)
    async with story.running():
        await story.quota({"count/widgets.example.com": "3"})
        for name in ("a", "b"):
            body = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": name}}
            await world.create(WIDGETS, body)
        await world.wait(310)
        assert await story.used() == {"count/widgets.example.com": "2"}
        (version,) = (await world.get(CRDS, "widgets.example.com"))["spec"]["versions"]
        versions = [version | {"served": False, "storage": False}, version | {"name": "v2"}]
        await world.patch(CRDS, "widgets.example.com", {"spec": {"versions": versions}})
        await world.wait(60)
        await world.delete(later, "a")
        await world.wait(5)
        assert await story.used() == {"count/widgets.example.com": "1"}
        await world.delete(later, "b")
        await world.wait(5)
        assert await story.used() == {"count/widgets.example.com": "0"}


async def test_an_unserved_kind_is_not_discovered_at_every_change(world: World, story: Story):
    transport = Noting(world.server.transport())

    def discoveries() -> int:
        return len([one for one in transport.sent if one.path in ("/api", "/apis")])

    async with story.running(transport):
        await story.quota(
            {"pods": "9", "count/nothing.example.com": "3", "requests.deviceclass.resource.k8s.io/x": "1"}
        )
        await world.wait(10)
        before = discoveries()
        for number in range(20):
            await story.pod(f"p{number % 5}")
            await world.wait(1)
            await world.delete(PODS, f"p{number % 5}", grace_s=0)
            await world.wait(2)
        assert (await story.used())["pods"] == "0"
        assert discoveries() - before <= 2 * 2 * 3  # two documents, two looks for a kind, three half minutes


async def test_pods_that_cannot_be_decoded_are_still_charged(world: World):
    """Their usage is unknown to a manager that never decoded them; it is not lowered."""
    story, store = Story(world), world.server.store
    hard = {"pods": "5", "requests.cpu": "1", "count/pods": "9", "configmaps": "5"}
    async with story.running():
        await story.quota(hard)
        await world.wait(2)
        for name in ("a", "b"):
            await story.pod(name)
        await world.create(CONFIG_MAPS, {"metadata": {"name": "c"}})
        await world.wait(5)
        full = {"pods": "2", "requests.cpu": "200m", "count/pods": "2", "configmaps": "1"}
        assert await story.used() == full
        spoil(store, PODS.gvr, "a")
        await world.wait(400)
        assert await story.used() == full
    spoil(store, CONFIG_MAPS.gvr, "c")
    async with story.running():
        await world.delete(PODS, "b")
        await world.wait(400)
        assert await story.used() == full
        store.delete(PODS.gvr, "default", "a")
        await world.wait(10)
        assert await story.used() == {"pods": "0", "requests.cpu": "0", "count/pods": "0", "configmaps": "1"}


def spoil(store: Any, kind: GVR, name: str) -> None:
    """Make an object one that cannot be decoded."""
    (doc,) = (one.copy() for one in store.list(kind, "default") if one.copy()["metadata"]["name"] == name)
    odd = {**doc, "spec": "none"} if "spec" in doc else {**doc, "metadata": {**doc["metadata"], "labels": [5]}}
    store.update(kind, "default", name, odd)


async def test_ended_pods_release_their_usage(world: World, story: Story):
    async with story.running():
        await story.quota({"pods": "3", "requests.cpu": "1", "count/pods": "9"})
        await world.wait(2)
        annotations = {"sandbox.kcm.dev/run-time": "10s"}
        spec = {
            "containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}],
            "restartPolicy": "Never",
        }
        await world.create(PODS, {"metadata": {"name": "p", "annotations": annotations}, "spec": spec})
        await world.wait(4)
        assert (await story.used())["pods"] == "1"
        await world.wait(30)
        assert (await world.status("p"))["phase"] == "Succeeded"
        assert await story.used() == {"pods": "0", "requests.cpu": "0", "count/pods": "1"}


async def test_changed_limits(world: World, story: Story):
    async with story.running():
        await story.pod("p")
        await story.quota({"pods": "3"})
        await world.wait(5)
        await world.patch(RESOURCE_QUOTAS, "q", {"spec": {"hard": {"pods": None, "requests.cpu": "2"}}})
        await world.wait(5)
        assert await story.used() == {"requests.cpu": "100m"}
        found = await world.get(RESOURCE_QUOTAS, "q")
        assert found["status"]["hard"] == {"requests.cpu": "2"}


async def test_a_pod_given_a_deadline_changes_its_scope(world: World, story: Story):
    async with story.running():
        await story.pod("p")
        await story.quota({"pods": "3"}, scopes=["NotTerminating"])
        await world.wait(5)
        assert await story.used() == {"pods": "1"}
        await world.patch(PODS, "p", {"spec": {"activeDeadlineSeconds": 5000}})
        await world.wait(5)
        assert await story.used() == {"pods": "0"}


async def test_pods_that_name_other_namespaces_count_in_their_scope(world: World, story: Story):
    term = {"topologyKey": "z", "namespaces": ["other"], "labelSelector": {"matchLabels": {"a": "b"}}}
    await story.pod("far", affinity={"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}})
    await story.pod("near")
    async with story.running():
        await story.quota({"pods": "3"}, scopes=["CrossNamespacePodAffinity"])
        await world.wait(5)
        assert await story.used() == {"pods": "1"}


async def test_usage_of_services_and_claims(world: World, story: Story):
    gold = "gold.storageclass.storage.k8s.io/requests.storage"
    async with story.running():
        await story.quota({"services": "9", "services.nodeports": "3", "requests.storage": "9Gi", gold: "5Gi"})
        for name, kind in (("a", "ClusterIP"), ("b", "NodePort")):
            spec = {"type": kind, "ports": [{"port": 80}]}
            await world.create(SERVICES, {"metadata": {"name": name}, "spec": spec})
        for name, storage_class in (("a", "gold"), ("b", "silver")):
            resources = {"requests": {"storage": "1Gi"}}
            spec = {"accessModes": ["ReadWriteOnce"], "resources": resources, "storageClassName": storage_class}
            await world.create(CLAIMS, {"metadata": {"name": name}, "spec": spec})
        await world.wait(5)
        expected = {"services": "3", "services.nodeports": "1", "requests.storage": "2Gi", gold: "1Gi"}
        assert await story.used() == expected
        await world.patch(SERVICES, "b", {"spec": {"type": "ClusterIP", "ports": [{"port": 80, "nodePort": None}]}})
        await world.patch(CLAIMS, "a", {"metadata": {"finalizers": None}})
        await world.delete(CLAIMS, "a")
        await world.wait(10)
        expected = {"services": "3", "services.nodeports": "0", "requests.storage": "1Gi", gold: "0"}
        assert await story.used() == expected


async def test_a_service_with_fewer_node_ports_releases_them_at_once(world: World, story: Story):
    async with story.running():
        await story.quota({"services.nodeports": "4"})
        await world.wait(5)
        spec = {"type": "NodePort", "ports": [{"name": f"p{number}", "port": 80 + number} for number in range(4)]}
        await world.create(SERVICES, {"metadata": {"name": "s"}, "spec": spec})
        await world.wait(5)
        assert await story.used() == {"services.nodeports": "4"}
        ports = (await world.get(SERVICES, "s"))["spec"]["ports"][:1]
        await world.patch(SERVICES, "s", {"spec": {"ports": ports}})
        await world.wait(5)
        assert await story.used() == {"services.nodeports": "1"}


async def test_a_kind_that_is_served_later(world: World, story: Story):
    async with story.running():
        await story.quota({"pods": "3", "count/widgets.example.com": "3"})
        await world.wait(5)
        assert await story.used() == {"pods": "0"}
        await serve_widgets(world, wait_s=2)
        assert await story.used() == {"pods": "0", "count/widgets.example.com": "0"}
        for name in ("a", "b"):
            body = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": name}}
            await world.create(WIDGETS, body)
        await world.wait(5)
        assert await story.used() == {"pods": "0", "count/widgets.example.com": "2"}
        await world.delete(WIDGETS, "a")
        await world.wait(5)
        assert await story.used() == {"pods": "0", "count/widgets.example.com": "1"}


def followed() -> bool:
    """Whether an informer of Widgets runs."""
    return any(task.get_name() == "informer example.com/v1/widgets" for task in asyncio.all_tasks())


async def test_a_kind_is_watched_only_while_it_is_served(world: World, story: Story):
    body = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a"}}
    await serve_widgets(world)
    async with story.running():
        await story.quota({"count/widgets.example.com": "3"})
        await world.create(WIDGETS, body)
        await world.wait(310)
        assert await story.used() == {"count/widgets.example.com": "1"}
        assert followed()
        await world.delete(CRDS, "widgets.example.com")
        await world.wait(40)
        assert not followed()
        assert await story.used() == {"count/widgets.example.com": "0"}
        await serve_widgets(world)
        await world.create(WIDGETS, body)
        await world.wait(40)
        assert followed()
        assert await story.used() == {"count/widgets.example.com": "1"}
        await world.delete(WIDGETS, "a")
        await world.wait(5)
        assert await story.used() == {"count/widgets.example.com": "0"}


async def test_a_kind_that_no_quota_counts_is_not_watched(world: World, story: Story):
    await serve_widgets(world)
    async with story.running():
        await story.quota({"count/widgets.example.com": "3"})
        await world.wait(910)
        assert followed()
        await world.delete(RESOURCE_QUOTAS, "q")
        await world.wait(610)
        assert not followed()
        await story.quota({"count/widgets.example.com": "3"})
        await world.wait(5)
        assert followed()
        assert await story.used() == {"count/widgets.example.com": "0"}


async def test_a_kind_that_cannot_be_listed_does_not_affect_others(world: World, story: Story):
    broken = [True]
    transport = Refusing(world.server.transport(), lambda r: broken[0] and r.path == "/api/v1/configmaps")
    await story.pod("p")
    await world.create(CONFIG_MAPS, {"metadata": {"name": "c"}})
    async with story.running(transport):
        await story.quota({"pods": "3", "configmaps": "3"})
        await world.wait(20)
        assert await story.used() == {}
        await world.wait(20)
        assert await story.used() == {"pods": "1"}
        broken[0] = False
        await world.wait(60)
        assert await story.used() == {"pods": "1", "configmaps": "1"}


@pytest.mark.parametrize("seed", range(3))
async def test_lost_requests_and_answers(world: World, story: Story, seed):
    rng = random.Random(seed)
    faulty = Faulty(world.server.transport(), rng, 0.5)
    async with story.running(faulty):
        await story.quota({"pods": "9", "requests.cpu": "9"})
        for number in range(6):
            await world.wait(rng.random() * 5)
            await story.pod(f"p{number}")
        for number in range(3):
            await world.wait(rng.random() * 5)
            await world.delete(PODS, f"p{number}")
        await world.wait(120)
        assert faulty.faults
        assert await story.used() == {"pods": "3", "requests.cpu": "300m"}


async def test_a_charge_observed_after_the_deletion_of_its_object(world: World, story: Story):
    """The quota looked right when the deletion came: its charge was still on the way."""
    held = Held(world.server.transport(), world.clock, "/api/v1/resourcequotas")
    async with story.running(held):
        await story.quota({"configmaps": "3"})
        await world.wait(5)
        held.hold()
        await world.create(CONFIG_MAPS, {"metadata": {"name": "c"}})
        await world.wait(2)
        assert await story.used() == {"configmaps": "1"}
        await world.delete(CONFIG_MAPS, "c")
        await world.wait(3)
        held.release()
        await world.wait(10)
        assert await story.used() == {"configmaps": "0"}


async def test_deletions_before_the_first_status_of_a_quota_is_cached(world: World, story: Story):
    """As where the watch of quotas ends between a quota's creation and its status, for a while."""
    held = Held(
        world.server.transport(), world.clock, "/api/v1/resourcequotas", lambda request: request.method == "PUT"
    )
    async with story.running(held):
        await story.quota({"configmaps": "3"})
        await world.wait(5)
        await world.create(CONFIG_MAPS, {"metadata": {"name": "c"}})
        assert await story.used() == {"configmaps": "1"}
        await world.delete(CONFIG_MAPS, "c")
        await world.wait(5)
        assert await story.used() == {"configmaps": "1"}
        held.release()
        await world.wait(10)
        assert await story.used() == {"configmaps": "0"}


@pytest.mark.parametrize("kind", ["configmaps", "services"])
async def test_an_object_observed_after_its_quota_was_counted(world: World, story: Story, kind):
    """Admission has charged it, and a look at a cache without it took the charge away."""
    held = Held(world.server.transport(), world.clock, f"/api/v1/{kind}")
    async with story.running(held):
        await story.quota({kind: "5"})
        await world.wait(5)
        before = int((await story.used())[kind])
        held.hold()
        await world.create(resource(kind), {"metadata": {"name": "o"}, "spec": {"ports": [{"port": 80}]}})
        await world.wait(2)
        assert await story.used() == {kind: str(before + 1)}
        await world.patch(RESOURCE_QUOTAS, "q", {"spec": {"hard": {kind: "6"}}})
        await world.wait(3)
        assert await story.used() == {kind: str(before)}
        held.release()
        await world.wait(5)
        assert await story.used() == {kind: str(before + 1)}


async def test_a_charge_removed_by_a_write_before_its_object_is_observed(world: World, story: Story):
    """Admission charges first. What it charges for others that have not come yet is left alone."""

    async def charged(amount: int) -> None:
        status = {"status": {"used": {"configmaps": str(amount)}}}
        await world.client.patch(RESOURCE_QUOTAS, "default", "q", status, content_type=MERGE, subresource="status")

    async with story.running():
        await story.quota({"configmaps": "5"})
        await world.wait(30)
        for name, seen in (("a", 0), ("b", 5)):
            await world.create(CONFIG_MAPS, {"metadata": {"name": name}})
            await charged(seen)
            await world.wait(5)
            assert await story.used() == {"configmaps": str(max(seen, 1))}


async def test_a_charge_observed_after_its_object_removes_no_other(world: World, story: Story):
    """The quota looks too low when the object appears. By the time it is counted, others have been charged."""
    objects = Held(world.server.transport(), world.clock, "/api/v1/configmaps")
    quotas = Held(objects, world.clock, "/api/v1/resourcequotas")
    async with story.running(quotas):
        await story.quota({"configmaps": "5"})
        await world.wait(5)
        quotas.hold()
        await world.create(CONFIG_MAPS, {"metadata": {"name": "a"}})
        await world.wait(0.2)
        objects.hold()
        await world.create(CONFIG_MAPS, {"metadata": {"name": "b"}})
        await world.wait(2)
        quotas.release()
        await world.wait(10)
        assert await story.used() == {"configmaps": "2"}
        objects.release()
        await world.wait(10)
        assert await story.used() == {"configmaps": "2"}
        await world.delete(CONFIG_MAPS, "a")
        await world.wait(10)
        assert await story.used() == {"configmaps": "1"}


CHANGES = "resource_quota_controller_resource_changes"
DEVICE_CLASSES = Resource(GVR("resource.k8s.io", "v1", "deviceclasses"), "DeviceClass", Object, namespaced=False)
DEVICE_CLAIMS = Resource(GVR("resource.k8s.io", "v1", "resourceclaims"), "ResourceClaim", Object)
IMPLICIT = "requests.deviceclass.resource.kubernetes.io/gpu"
EXTENDED = "requests.example.com/gpu"


async def device_claim(world: World, name: str, count: int, **metadata: Any) -> None:
    exactly = {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": count}
    spec = {"devices": {"requests": [{"name": "r", "exactly": exactly}]}}
    await world.create(DEVICE_CLAIMS, {"metadata": {"name": name, **metadata}, "spec": spec})


async def test_claims_of_devices_are_charged_to_extended_resources(world: World, story: Story):
    await world.create(
        DEVICE_CLASSES, {"metadata": {"name": "gpu"}, "spec": {"extendedResourceName": "example.com/gpu"}}
    )
    await device_claim(world, "before", 2)
    async with story.running():
        await story.quota({EXTENDED: "6", IMPLICIT: "6", "pods": "9"})
        await world.wait(5)
        assert await story.used() == {EXTENDED: "2", IMPLICIT: "2", "pods": "0"}
        await device_claim(world, "after", 3)  # charged by admission
        await world.wait(305)  # and counted again, to the same
        assert await story.used() == {EXTENDED: "5", IMPLICIT: "5", "pods": "0"}
        with pytest.raises(Forbidden, match="exceeded quota: q"):
            await device_claim(world, "much", 2)
        pod = {
            "name": "c",
            "image": "i",
            "resources": {key: {"example.com/gpu": "1"} for key in ("requests", "limits")},
        }
        spec = {"schedulerName": "other", "terminationGracePeriodSeconds": 1}  # the default one makes its own claim
        await world.pod("p", {"containers": [pod], **spec})
        await world.wait(305)
        assert await story.used() == {EXTENDED: "6", IMPLICIT: "5", "pods": "1"}
        owner = {
            "apiVersion": "v1",
            "kind": "Pod",
            "name": "p",
            "uid": (await world.get(PODS, "p"))["metadata"]["uid"],
        }
        await device_claim(
            world,
            "of-p",
            1,
            annotations={"resource.kubernetes.io/extended-resource-claim": "true"},
            ownerReferences=[owner | {"controller": True}],
        )  # the pod has paid for the extended resource, not for the one of the class by itself
        await world.wait(305)
        assert await story.used() == {EXTENDED: "6", IMPLICIT: "6", "pods": "1"}
        await world.delete(DEVICE_CLAIMS, "after")
        await world.wait(5)
        assert await story.used() == {EXTENDED: "3", IMPLICIT: "3", "pods": "1"}


async def test_without_the_gate_claims_are_charged_by_class_only(world: World, story: Story):
    by_class = "gpu.deviceclass.resource.k8s.io/devices"
    await world.create(
        DEVICE_CLASSES, {"metadata": {"name": "gpu"}, "spec": {"extendedResourceName": "example.com/gpu"}}
    )
    await device_claim(world, "c", 2)
    async with story.running(gates=[("", "DRAExtendedResource=false")]):
        await story.quota({EXTENDED: "6", by_class: "6"})
        await world.wait(5)
        assert await story.used() == {EXTENDED: "0", by_class: "2"}


async def test_events_are_not_watched(world: World, story: Story):
    transport = Noting(world.server.transport())
    async with story.running(transport):
        await story.quota({"pods": "3", "count/events": "3", "count/events.events.k8s.io": "3"})
        await world.wait(5)
        assert await story.used() == {"pods": "0"}
        assert not [one.path for one in transport.sent if one.path.endswith("/events")]


async def test_only_affected_quotas_are_recounted(world: World):
    story, metrics = Story(world), Registry()

    async with story.running(metrics=metrics):
        await story.quota({"pods": "9"})
        await world.create(RESOURCE_QUOTAS, {"metadata": {"name": "s"}, "spec": {"hard": {"services": "9"}}})
        await world.wait(5)
        assert adds(metrics, "resourcequota_priority") >= 2  # again while their kinds were being listed
        ports = [{"port": 80}]
        await world.create(SERVICES, {"metadata": {"name": "a"}, "spec": {"type": "NodePort", "ports": ports}})
        await world.patch(SERVICES, "a", {"metadata": {"labels": {"a": "b"}}})
        await world.wait(5)
        assert (
            adds(metrics, "resource_quota_controller_resource_changes") == adds(metrics, "resourcequota_primary") == 0
        )
        await world.patch(SERVICES, "a", {"spec": {"type": "ClusterIP", "ports": [{"port": 80, "nodePort": None}]}})
        await world.wait(5)
        assert (
            adds(metrics, "resource_quota_controller_resource_changes") == adds(metrics, "resourcequota_primary") == 1
        )


async def test_frequent_releases_of_a_quota_are_batched(world: World, story: Story):
    transport = Noting(world.server.transport())
    async with story.running(transport):
        for number in range(30):
            await world.create(CONFIG_MAPS, {"metadata": {"name": f"c{number}"}})
        await story.quota({"configmaps": "90"})
        await world.wait(5)
        assert len(transport.paths("PUT")) == 1
        for number in range(20):
            await world.delete(CONFIG_MAPS, f"c{number}")
            await world.wait(0.05)
        await world.wait(2)
        assert await story.used() == {"configmaps": "10"}
        assert 2 <= len(transport.paths("PUT")) <= 5


async def test_the_state_of_a_namespace_is_dropped_with_its_last_quota(world: World, story: Story):
    async with story.running():
        await story.pod("p")
        await story.quota({"pods": "9"})
        await world.wait(5)
        await world.delete(RESOURCE_QUOTAS, "q")
        await story.pod("p2")
        await world.wait(5)
        await story.quota({"pods": "9"})
        await world.wait(5)
        assert await story.used() == {"pods": "2"}


async def test_a_quota_that_is_recreated_while_it_is_counted_is_written_once(world: World, monkeypatch):
    """The totals of a namespace are dropped with its last quota: a sync of the former one must not use them."""
    story, measure = Story(world), Monitors.measure
    recreated, noting = [0], Noting(world.server.transport())

    async def slowly(monitors: Monitors, kinds: Any, namespace: str) -> None:
        await measure(monitors, kinds, namespace)
        if not recreated[0]:
            recreated[0] = 1
            await world.delete(RESOURCE_QUOTAS, "q")
            await story.quota({"pods": "9"})
            await world.wait(0.5)

    monkeypatch.setattr(Monitors, "measure", slowly)
    async with story.running(noting):
        for number in range(3):
            await story.pod(f"p{number}")
        await story.quota({"pods": "9"})
        await world.wait(5)
        written = [json.loads(one.body)["status"]["used"] for one in noting.sent if one.method == "PUT"]
        assert (recreated, written) == ([1], [{"pods": "3"}])


async def test_a_write_that_conflicts_with_admission_is_retried_after_the_next_charge(world: World, story: Story):
    overtaken = [0]

    async def charged(request: Request) -> None:
        """Between the controller's look and its write, another pod is admitted."""
        if request.method == "PUT" and overtaken[0] < 3 and await story.used():
            overtaken[0] += 1
            await story.pod(f"between-{overtaken[0]}")

    transport = Refusing(world.server.transport(), lambda request: False, charged)
    async with story.running(transport):
        await story.pod("gone")
        await story.quota({"pods": "90", "requests.cpu": "9"})
        await world.wait(5)
        await world.client.delete(PODS, "default", "gone", grace_s=0)
        await world.wait(20)
        assert overtaken[0] == 3
        assert await story.used() == {"pods": "3", "requests.cpu": "300m"}


async def test_releases_are_kept_when_a_write_fails(world: World, story: Story):
    failing = [0]

    def fails(request: Request) -> bool:
        failing[0] -= request.method == "PUT"
        return request.method == "PUT" and failing[0] >= 0

    transport = Refusing(world.server.transport(), fails)
    async with story.running(transport):
        await world.create(CONFIG_MAPS, {"metadata": {"name": "gone"}})
        await story.quota({"configmaps": "9"})
        await world.wait(5)
        failing[0] = 1
        await world.delete(CONFIG_MAPS, "gone")
        await world.wait(60)
        assert (transport.refused, await story.used()) == (1, {"configmaps": "0"})


async def test_a_resync_while_a_quota_is_written_counts_it_again(world: World, story: Story):
    slow: list[float] = []

    async def delayed(request: Request) -> None:
        if request.method == "PUT" and slow:
            await world.wait(slow.pop())

    transport = Refusing(world.server.transport(), lambda request: False, delayed)
    async with story.running(transport):
        await world.wait(290)
        await story.quota({"configmaps": "5", "secrets": "5"})
        await world.wait(2)
        await world.create(CONFIG_MAPS, {"metadata": {"name": "appears"}})
        wrong = {"status": {"used": {"configmaps": "0", "secrets": "4"}}}
        await world.client.patch(RESOURCE_QUOTAS, "default", "q", wrong, content_type=MERGE, subresource="status")
        slow.append(20)
        await world.wait(40)
        assert not slow
        assert await story.used() == {"configmaps": "1", "secrets": "0"}


async def test_a_changed_limit_lowers_a_usage_that_is_too_high(world: World, story: Story):
    async with story.running():
        await story.quota({"configmaps": "5"})
        await world.wait(5)
        wrong = {"status": {"used": {"configmaps": "4"}}}
        await world.client.patch(RESOURCE_QUOTAS, "default", "q", wrong, content_type=MERGE, subresource="status")
        await world.patch(RESOURCE_QUOTAS, "q", {"spec": {"hard": {"configmaps": "6"}}})
        await world.wait(5)
        assert await story.used() == {"configmaps": "0"}


@pytest.mark.cluster(alone=True)
async def test_a_quota_that_is_created_while_pods_change(world: World, story: Story):
    """The pods are measured step by step. Changes in between affect no usage, and no pod is left out."""
    names = [f"p{number}" for number in range(500)]

    async def relabelled(some: list[str]) -> None:
        for name in some:
            await world.patch(PODS, name, {"metadata": {"labels": {"a": "b"}}})

    async with story.running():
        await asyncio.gather(*(story.pod(name) for name in names))
        await world.create(RESOURCE_QUOTAS, {"metadata": {"name": "other"}, "spec": {"hard": {"pods": "900"}}})
        await world.wait(5)
        await world.delete(RESOURCE_QUOTAS, "other")
        await world.wait(5)
        changes = [asyncio.create_task(relabelled(names[first::20])) for first in range(20)]
        await story.quota({"pods": "900"})
        await asyncio.gather(*changes)
        await world.wait(5)
        assert await story.used() == {"pods": "500"}


async def test_a_charge_for_an_object_that_was_not_created_is_removed(world: World, story: Story):
    """As for a creation that fails since the name is taken. A minute later no such request can be under way."""
    async with story.running():
        await story.quota({"configmaps": "5"})
        await world.wait(5)
        charged = {"status": {"used": {"configmaps": "2"}}}
        await world.client.patch(RESOURCE_QUOTAS, "default", "q", charged, content_type=MERGE, subresource="status")
        await world.wait(50)
        assert await story.used() == {"configmaps": "2"}
        await world.wait(20)
        assert await story.used() == {"configmaps": "0"}


async def test_the_bench_ends_with_correct_quotas():
    options = argparse.Namespace(pods=20, churn=50.0, seconds=0.2, admission=True)
    line = await quota_steps.measure(options, 2, quota_steps.Steps())
    assert line["changes"] == 10


@pytest.mark.cluster(alone=True)
async def test_a_resize_that_the_node_refuses_is_not_charged(world: World, story: Story):
    async def reports(status: dict[str, Any]) -> None:
        await world.client.patch(PODS, "default", "p", {"status": status}, content_type=MERGE, subresource="status")

    async with story.running():
        await story.pod("p", "1")
        await story.quota({"requests.cpu": "9"})
        given = {"name": "c", "resources": {"requests": {"cpu": "1"}}, "allocatedResources": {"cpu": "1"}}
        await reports({"phase": "Running", "containerStatuses": [given]})
        await world.wait(5)
        larger = {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "8"}}}]}}
        await world.client.patch(PODS, "default", "p", larger, content_type=STRATEGIC_MERGE, subresource="resize")
        await world.wait(5)
        assert await story.used() == {"requests.cpu": "8"}
        await reports({"conditions": [{"type": "PodResizePending", "status": "True", "reason": "Infeasible"}]})
        await world.wait(3)
        assert await story.used() == {"requests.cpu": "1"}


@pytest.mark.cluster(alone=True)
async def test_pods_whose_deletion_is_overdue_are_not_charged(world: World, story: Story):
    """Their node is lost, and nothing about them changes any more."""
    async with story.running():
        await story.quota({"requests.cpu": "9"})
        for name, grace_s in (("first", 10), ("second", 20), ("stays", 10)):
            await story.pod(name, "1", terminationGracePeriodSeconds=grace_s, nodeName="lost")
        await world.wait(5)
        assert await story.used() == {"requests.cpu": "3"}
        for name in ("second", "first"):
            await world.delete(PODS, name)
        await world.wait(19)
        assert await story.used() == {"requests.cpu": "3"}
        await world.wait(4)
        assert await story.used() == {"requests.cpu": "2"}
        await world.wait(20)
        assert await story.used() == {"requests.cpu": "1"}
