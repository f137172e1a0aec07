"""The controller in a whole sandbox, on virtual time; the test stands in for the driver and the scheduler."""

import asyncio
import json
from typing import Any

import pytest

from kcm_cli.api.core import Pod
from kcm_cli.api.devices import DEVICE_TAINT_RULES, RESOURCE_CLAIMS, ResourceClaim
from kcm_cli.component.metrics import Registry
from kcm_cli.controllers.device_taint_eviction import controller, plan
from kcm_cli.controllers.device_taint_eviction.config import DeviceTaintEvictionConfig
from kcm_cli.controllers.device_taint_eviction.taints import Taints
from kcm_cli.machinery.times import format_time
from kcm_cli.planning.actions import MERGE
from kcm_cli.rest.transport import Request
from tests.kit.alpha import make, serve
from tests.kit.controlling import controllers, metric
from tests.kit.devices import DRIVER, SLICES, allocate, by_name, claim_spec, from_template, make_claim
from tests.kit.faults import Held, Noting, Refusing
from tests.kit.world import PODS, World

RULES = [("", "DRADeviceTaintRules=true")]
NAME = "device-taint-eviction-controller"
EVICTED = ("DeviceTaintManagerEviction", "Marking for deletion")


def running(world: World, **options: Any) -> Any:
    return controllers(world, DeviceTaintEvictionConfig(), names=[NAME], **options)


async def publish(world: World, *tainted: str) -> None:
    """Two devices; those that are named have a NoExecute taint from now on."""
    taint = {"key": "broken", "effect": "NoExecute"}
    devices = [{"name": name} | ({"taints": [taint]} if name in tainted else {}) for name in ("d0", "d1")]
    pool = {"name": "p", "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": DRIVER, "pool": pool, "nodeName": "node-1", "devices": devices}
    if await world.is_deleted("s", SLICES):
        await world.create(SLICES, {"metadata": {"name": "s"}, "spec": spec})
    else:
        doc = await world.get(SLICES, "s")
        await world.client.update(SLICES, "", "s", doc | {"spec": spec})


async def use(world: World, pod: str, device: str = "d0", **result: Any) -> None:
    """A running pod with a claim of its name."""
    await make_claim(world, pod)
    await world.pod(pod, by_name(pod) | {"nodeName": "node-1", "terminationGracePeriodSeconds": 1})
    await allocate(world, pod, pod, device=device, **result)


async def marked(world: World, pod: str) -> int:
    """How often it was said that a pod is deleted, or not."""
    return len([event for event in await world.events(pod) if event[0] == EVICTED[0]])


def rule(effect: str = "NoExecute", time: str = "2026-01-01T00:00:00Z", name: str = "r") -> dict[str, Any]:
    taint = {"key": "k", "effect": effect, "timeAdded": time}
    return {"metadata": {"name": name}, "spec": {"deviceSelector": {"driver": DRIVER}, "taint": taint}}


async def reported(world: World) -> tuple[str, str, str]:
    doc = await world.get(DEVICE_TAINT_RULES, "r", "")
    (found,) = doc.get("status", {}).get("conditions", [{}])
    return found.get("status", ""), found.get("reason", ""), found.get("message", "")


async def test_the_pod_of_a_tainted_device_is_evicted(world: World):
    registry = Registry()
    conditions: list[dict[str, Any]] = []

    async def keep(request: Request) -> None:
        if request.method == "PATCH" and request.path.endswith("/pods/p/status"):
            conditions.extend(json.loads(request.body)["status"]["conditions"])

    await publish(world)
    await use(world, "p", "d0")
    await use(world, "q", "d1")
    transport = Refusing(world.server.transport(), lambda request: False, keep)
    async with running(world, metrics=registry, transport=transport):
        await world.wait(5)
        await publish(world, "d0")
        await world.wait(5)
        assert await world.is_deleted("p") and not await world.is_deleted("q")
        text = "Device Taint manager: deleting due to NoExecute taint"
        (found,) = conditions
        assert (found["reason"], found["message"]) == ("DeletionByDeviceTaintManager", text)
        assert (found["type"], found["status"]) == ("DisruptionTarget", "True")
        assert "observedGeneration" not in found
        assert EVICTED in await world.events("p") and not await marked(world, "q")
        shown = registry.expose().decode()
        assert "device_taint_eviction_controller_pod_deletions_total 1" in shown
        assert "device_taint_eviction_controller_pod_deletion_duration_seconds_count 1" in shown
    assert metric(registry, "workqueue_retries_total", name=NAME) == 0


TOLERATION = {"operator": "Exists", "effect": "NoExecute", "key": "broken"}


@pytest.mark.parametrize(
    ("seconds", "gone"), [pytest.param(None, False, id="for ever"), pytest.param(60, True, id="for a time")]
)
async def test_pods_with_tolerations_are_not_evicted(world: World, seconds, gone):
    toleration = TOLERATION | ({} if seconds is None else {"tolerationSeconds": seconds})
    await publish(world)
    await use(world, "p", tolerations=[toleration])
    async with running(world):
        await publish(world, "d0")
        await world.wait(55)
        assert not await world.is_deleted("p")
        await world.wait(15)
        assert await world.is_deleted("p") is gone


async def test_a_taint_removed_in_time_evicts_nothing(world: World):
    await publish(world)
    await use(world, "p", tolerations=[TOLERATION | {"tolerationSeconds": 60}])
    async with running(world):
        await publish(world, "d0")
        await world.wait(30)
        await publish(world)
        await world.wait(60)
        assert not await world.is_deleted("p")
        assert ("DeviceTaintManagerEviction", "Cancelling deletion") in await world.events("p")


@pytest.mark.parametrize("tolerations", [[], [{"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 20}]])
@pytest.mark.parametrize("by_rule", [False, True], ids=["published", "rule"])
async def test_a_pod_stays_if_its_device_has_lost_the_taint_that_the_cache_shows(world: World, by_rule, tolerations):
    """As one that gets a device which has just been repaired. With the next taint the pod leaves."""
    await serve(world, DEVICE_TAINT_RULES, status={})
    kind = DEVICE_TAINT_RULES if by_rule else SLICES

    async def taint() -> None:
        if by_rule:
            await make(world, kind, rule(time=format_time(world.clock.now())))
        else:
            await publish(world, "d0")

    async def mend() -> None:
        await (world.delete(kind, "r") if by_rule else publish(world))

    await publish(world)
    await taint()
    held = Held(world.server.transport(), world.clock, kind.gvr.path(""))
    async with running(world, gates=RULES, transport=held):
        await world.wait(5)
        held.hold()
        await mend()
        await use(world, "p", tolerations=tolerations)
        await world.wait(60)
        assert not await world.is_deleted("p") and not await marked(world, "p")
        held.release()
        await world.wait(10)
        assert ("DeviceTaintManagerEviction", "Cancelling deletion") in await world.events("p")
        await taint()
        await world.wait(30)
        assert await world.is_deleted("p")


async def test_pods_that_leave_a_device_together_share_a_look_at_its_taint(world: World):
    noting = Noting(world.server.transport())
    await publish(world)
    for number in range(20):
        await use(world, f"p{number}")
    async with running(world, transport=noting):
        await world.wait(5)
        await publish(world, "d0")
        await world.wait(10)
        assert not await world.items(PODS)
        assert 1 <= len([path for path in noting.paths("GET") if path.endswith("/resourceslices/s")]) <= 8


async def test_the_deletion_of_a_pod_that_has_begun_is_not_said_to_be_cancelled(world: World):
    await publish(world, "d0")
    await use(world, "p")
    await world.patch(PODS, "p", {"metadata": {"finalizers": ["example.com/wait"]}})
    async with running(world):
        await world.wait(5)
        assert await marked(world, "p") == 1
        for tainted in ("d1",), ("d0",), ():
            await publish(world, *tainted)
            await world.wait(5)
        assert await marked(world, "p") == 1 and not await world.is_deleted("p")


async def test_a_failed_deletion_is_retried(world: World):
    await publish(world, "d0")
    await use(world, "p")
    broken = [True]
    transport = Refusing(world.server.transport(), lambda request: broken[0] and request.method == "DELETE")
    async with running(world, transport=transport):
        await world.wait(10)
        assert transport.refused > 1 and not await world.is_deleted("p")
        broken[0] = False
        await world.wait(60)
        assert await world.is_deleted("p")


async def test_a_new_pod_of_the_evicted_ones_name_is_kept(world: World):
    await publish(world)
    await use(world, "p", tolerations=[TOLERATION | {"tolerationSeconds": 30}])
    metrics = Registry()
    async with running(world, metrics=metrics):
        await publish(world, "d0")
        await world.wait(10)
        await world.delete(PODS, "p", grace_s=0)
        await world.pod("p", {"nodeName": "node-1"})
        await world.wait(60)
        assert not await world.is_deleted("p") and not await marked(world, "p")
    assert metric(metrics, "device_taint_eviction_controller_pod_deletions_total") == 0


async def test_a_pod_that_is_bound_later_is_evicted(world: World):
    await publish(world, "d0")
    await make_claim(world, "p")
    await world.pod("p", by_name("p") | {"schedulerName": "another", "terminationGracePeriodSeconds": 1})
    await allocate(world, "p", "p")
    async with running(world):
        await world.wait(5)
        assert not await world.is_deleted("p")
        await world.bind("p", "node-1")
        await world.wait(5)
        assert await world.is_deleted("p")


async def test_a_pod_whose_generated_claim_is_recorded_later_is_evicted(world: World):
    await publish(world, "d0")
    spec = {"nodeName": "node-1", "terminationGracePeriodSeconds": 1}
    await world.pod("p", from_template() | spec)
    uid = (await world.get(PODS, "p"))["metadata"]["uid"]
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": uid, "controller": True}
    await world.create(RESOURCE_CLAIMS, {"metadata": {"name": "c", "ownerReferences": [owner]}, "spec": claim_spec()})
    await allocate(world, "c", "p")
    async with running(world):
        await world.wait(5)
        assert not await world.is_deleted("p")
        recorded = {"status": {"resourceClaimStatuses": [{"name": "e", "resourceClaimName": "c"}]}}
        await world.client.patch(PODS, "default", "p", recorded, subresource="status", content_type=MERGE)
        await world.wait(5)
        assert await world.is_deleted("p")


async def test_a_pod_whose_extended_resources_are_on_a_tainted_device_is_evicted(world: World):
    """Its claim was created by the scheduler, and is named in its status only."""
    await publish(world, "d0")
    gpus = {"requests": {"example.com/gpu": "1"}, "limits": {"example.com/gpu": "1"}}
    container = {"name": "c", "image": "i", "resources": gpus}
    spec = {"nodeName": "node-1", "terminationGracePeriodSeconds": 1, "containers": [container]}
    await world.pod("p", spec)
    await world.pod("other", spec)
    uid = (await world.get(PODS, "p"))["metadata"]["uid"]
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": uid, "controller": True}
    await world.create(RESOURCE_CLAIMS, {"metadata": {"name": "c", "ownerReferences": [owner]}, "spec": claim_spec()})
    await allocate(world, "c", "p")
    async with running(world):
        await world.wait(5)
        assert not await world.is_deleted("p")
        for name in ("other", "p"):
            mapping = {"containerName": "c", "requestName": "r", "resourceName": "example.com/gpu"}
            extended = {"resourceClaimName": "c", "requestMappings": [mapping]}
            recorded = {"status": {"extendedResourceClaimStatus": extended}}
            await world.client.patch(PODS, "default", name, recorded, subresource="status", content_type=MERGE)
        await world.wait(5)
        assert await world.is_deleted("p")
        assert not await world.is_deleted("other")


@pytest.mark.parametrize("enabled", [True, False])
async def test_pods_of_a_group_that_has_reserved_a_claim_are_evicted_with_the_gate(world: World, enabled):
    """The sandbox drops the field by which pods join a group, as a default API server does: the test stores it."""
    await publish(world)
    await use(world, "p")
    claim = await world.get(RESOURCE_CLAIMS, "p")
    group = {"apiGroup": "scheduling.k8s.io", "resource": "podgroups", "name": "g", "uid": "u"}
    claim["status"]["reservedFor"] = [group]
    await world.client.update(RESOURCE_CLAIMS, "default", "p", claim, subresource="status")
    pod = await world.get(PODS, "p")
    pod["spec"]["schedulingGroup"] = {"podGroupName": "g"}
    world.server.store.update(PODS.gvr, "default", "p", pod)
    gates = [("", "GenericWorkload=true"), ("", "DRAWorkloadResourceClaims=true")] if enabled else []
    async with running(world, gates=gates):
        await world.wait(5)
        await publish(world, "d0")
        await world.wait(5)
        assert await world.is_deleted("p") is enabled


async def test_a_user_that_is_unknown_does_not_affect_others(world: World):
    await publish(world)
    await use(world, "p")
    claim = await world.get(RESOURCE_CLAIMS, "p")
    claim["status"]["reservedFor"].insert(0, {"resource": "pods", "name": "gone", "uid": "u"})
    await world.client.update(RESOURCE_CLAIMS, "default", "p", claim, subresource="status")
    async with running(world):
        await world.wait(5)
        await publish(world, "d0")
        await world.wait(5)
        assert await world.is_deleted("p")


async def test_a_claim_that_is_not_reserved_any_longer_cancels_the_eviction(world: World):
    await publish(world, "d0")
    await use(world, "p", tolerations=[TOLERATION | {"tolerationSeconds": 60}])
    async with running(world):
        await world.wait(5)
        claim = await world.get(RESOURCE_CLAIMS, "p")
        del claim["status"]["reservedFor"]
        await world.client.update(RESOURCE_CLAIMS, "default", "p", claim, subresource="status")
        await world.wait(80)
        assert not await world.is_deleted("p")
        assert ("DeviceTaintManagerEviction", "Cancelling deletion") in await world.events("p")


@pytest.mark.parametrize("spec", [{"taint": {"effect": "NoSchedule"}}, {"deviceSelector": {"driver": "another"}}, None])
async def test_a_rule_that_is_changed_or_deleted_cancels_evictions(world: World, spec):
    await serve(world, DEVICE_TAINT_RULES, status={})
    await publish(world)
    await use(world, "p", tolerations=[{"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 60}])
    async with running(world, gates=RULES):
        await make(world, DEVICE_TAINT_RULES, rule(time="2026-01-01T00:00:30Z"))
        await world.wait(20)
        if spec is None:
            await world.delete(DEVICE_TAINT_RULES, "r")
        else:
            await world.patch(DEVICE_TAINT_RULES, "r", {"spec": spec}, "")
        await world.wait(120)
        assert not await world.is_deleted("p")
        assert ("DeviceTaintManagerEviction", "Cancelling deletion") in await world.events("p")


async def test_a_rule_costs_looking_at_the_claims_it_selects_and_their_pods_only(world: World, monkeypatch):
    await serve(world, DEVICE_TAINT_RULES, status={})
    await publish(world)
    for name in ("p", "q"):
        await use(world, name, "d0" if name == "p" else "d1")
    looked: list[str] = []
    planned: set[str] = set()
    eviction_of, plan_pod = Taints.eviction_of, plan.plan

    def look(self: Taints, claim: ResourceClaim, *only: Any) -> Any:
        looked.append(claim.name)
        return eviction_of(self, claim, *only)

    def look_at_pod(pod: Pod, *args: Any, **options: Any) -> Any:
        planned.add(pod.name)
        return plan_pod(pod, *args, **options)

    async with running(world, gates=RULES):
        await world.wait(5)
        monkeypatch.setattr(Taints, "eviction_of", look)
        monkeypatch.setattr(plan, "plan", look_at_pod)
        for selector in {"device": "d1"}, {"driver": DRIVER, "pool": "p", "device": "d1"}, {"pool": "another"}:
            document = rule(time="2027-01-01T00:00:00Z")
            document["spec"]["deviceSelector"] = selector
            await make(world, DEVICE_TAINT_RULES, document)
            await world.wait(5)
            assert (await reported(world))[1] == (
                "NotStarted" if "another" in selector.values() else "PodsPendingEviction"
            )
            await world.delete(DEVICE_TAINT_RULES, "r")
            await world.wait(5)
            assert looked == ([] if "another" in selector.values() else ["q", "q"])
            looked.clear()
        assert planned == {"q"}


async def test_a_rule_for_all_devices_does_not_hold_the_loop(world: World, monkeypatch):
    await serve(world, DEVICE_TAINT_RULES, status={})
    await publish(world)
    for number in range(120):
        await make_claim(world, f"c{number}")
        await allocate(world, f"c{number}")
    turns, eviction_of = [0], Taints.eviction_of
    looked: list[int] = []

    async def count() -> None:
        for turns[0] in range(1, 50):
            await asyncio.sleep(0)

    counting: list[asyncio.Task[None]] = []

    def look(self: Taints, claim: ResourceClaim, *only: Any) -> Any:
        if not looked:
            counting.append(asyncio.create_task(count()))
        looked.append(turns[0])
        return eviction_of(self, claim, *only)

    async with running(world, gates=RULES):
        await world.wait(5)
        monkeypatch.setattr(Taints, "eviction_of", look)
        for effect in "NoExecute", "None":
            document = rule(effect, time="2027-01-01T00:00:00Z")
            document["spec"]["deviceSelector"] = {}
            await make(world, DEVICE_TAINT_RULES, document)
            await world.wait(5)
            assert len(looked) == 120
            assert max(looked) > 1
            await world.delete(DEVICE_TAINT_RULES, "r")
            await world.wait(5)
            looked.clear()


async def test_no_pod_is_evicted_while_claims_are_compared_with_changed_taints(world: World, monkeypatch):
    await serve(world, DEVICE_TAINT_RULES, status={})
    await publish(world)
    await use(world, "p", tolerations=[{"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 30}])
    compare = controller.for_each

    async def slowly(*args: Any, **options: Any) -> None:
        await world.wait(10)
        await compare(*args, **options)

    async with running(world, gates=RULES):
        await make(world, DEVICE_TAINT_RULES, rule(time=format_time(world.clock.now())))
        await world.wait(25)
        monkeypatch.setattr(controller, "for_each", slowly)
        await world.delete(DEVICE_TAINT_RULES, "r")
        await world.wait(60)
        assert not await world.is_deleted("p")
        assert ("DeviceTaintManagerEviction", "Cancelling deletion") in await world.events("p")


async def test_the_status_of_a_rule_is_written_at_most_every_ten_seconds(world: World):
    await serve(world, DEVICE_TAINT_RULES, status={})
    await publish(world)
    written: list[float] = []

    async def keep(request: Request) -> None:
        if request.method == "PATCH" and request.path.endswith("/devicetaintrules/r/status"):
            written.append(world.clock.monotonic())

    for second in range(6):
        await use(world, f"p{second}", f"d{second % 2}")
    transport = Refusing(world.server.transport(), lambda request: False, keep)
    async with running(world, gates=RULES, transport=transport):
        started = world.clock.monotonic()
        await make(world, DEVICE_TAINT_RULES, rule(time="2027-01-01T00:00:00Z"))
        await world.wait(5)
        assert [round(at - started) for at in written] == [0]
        await world.delete(PODS, "p0", grace_s=0)
        claim = await world.get(RESOURCE_CLAIMS, "p1")
        del claim["status"]["reservedFor"]
        await world.client.update(RESOURCE_CLAIMS, "default", "p1", claim, subresource="status")
        await world.wait(60)
        assert await reported(world) == (
            "True",
            "PodsPendingEviction",
            "4 pods need to be evicted in 1 namespace.",
        )
        assert [round(at - started) for at in written] == [0, 10]
        await world.patch(DEVICE_TAINT_RULES, "r", {"spec": {"taint": {"effect": "NoSchedule"}}}, "")
        await world.wait(2)
        await world.patch(DEVICE_TAINT_RULES, "r", {"spec": {"taint": {"effect": "NoExecute"}}}, "")
        await world.wait(2)
        assert [round(at - started) for at in written] == [0, 10, 65, 67]


async def test_the_status_of_a_rule_does_not_wait_for_the_clock_of_a_former_leader(world: World):
    await serve(world, DEVICE_TAINT_RULES, status={})
    await publish(world)
    await use(world, "p")
    await make(world, DEVICE_TAINT_RULES, rule(time="2027-01-01T00:00:00Z"))
    generation = (await world.get(DEVICE_TAINT_RULES, "r", ""))["metadata"]["generation"]
    said = {"type": plan.IN_PROGRESS, "status": "False", "reason": "NotStarted", "message": ""}
    said |= {"lastTransitionTime": "2027-01-01T00:00:00Z", "observedGeneration": generation}
    status = {"status": {"conditions": [said]}}
    await world.client.patch(DEVICE_TAINT_RULES, "", "r", status, subresource="status", content_type=MERGE)
    async with running(world, gates=RULES):
        await world.wait(15)
        assert (await reported(world))[:2] == ("True", "PodsPendingEviction")


async def test_a_rule_evicts_and_reports_its_progress(world: World):
    await serve(world, DEVICE_TAINT_RULES, status={})
    await publish(world)
    await use(world, "p")
    await use(world, "q", "d1", tolerations=[{"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}])
    async with running(world, gates=RULES):
        await make(world, DEVICE_TAINT_RULES, rule(time="2026-01-01T00:01:00Z"))
        await world.wait(2)
        assert await reported(world) == (
            "True",
            "PodsPendingEviction",
            "2 pods need to be evicted in 1 namespace.",
        )
        await world.wait(70)
        assert await world.is_deleted("p")
        text = "1 pod needs to be evicted in 1 namespace. 1 pod evicted since starting the controller."
        assert await reported(world) == ("True", "PodsPendingEviction", text)
        await world.wait(320)
        assert await world.is_deleted("q")
        text = "2 pods evicted since starting the controller."
        assert await reported(world) == ("False", "Completed", text)


async def test_a_rule_with_effect_none_reports_what_it_would_evict(world: World):
    await serve(world, DEVICE_TAINT_RULES, status={})
    await publish(world)
    await use(world, "p")
    async with running(world, gates=RULES):
        await make(world, DEVICE_TAINT_RULES, rule("None"))
        await world.wait(5)
        status, reason, text = await reported(world)
        assert (status, reason) == ("False", "NoEffect")
        what = "2 published devices selected. 1 allocated device selected. 1 pod would be evicted in 1 namespace "
        assert text.startswith(what)
        assert not await world.is_deleted("p")
        await world.patch(DEVICE_TAINT_RULES, "r", {"spec": rule("NoExecute")["spec"]}, "")
        await world.wait(30)
        assert await world.is_deleted("p")


async def test_rules_do_nothing_without_their_gate(world: World):
    await serve(world, DEVICE_TAINT_RULES, status={})
    await publish(world)
    await use(world, "p")
    async with running(world):
        await make(world, DEVICE_TAINT_RULES, rule())
        await world.wait(30)
        assert not await world.is_deleted("p")
        assert await reported(world) == ("", "", "")
