"""The scheduler in a whole sandbox, on virtual time."""

from typing import Any

import pytest

from kcm_cli.planning.actions import MERGE
from kcm_cli.sandbox.apiserver.entry.fault import Fault
from kcm_cli.sandbox.nodes import commands
from kcm_cli.sandbox.scheduler import scheduler
from kcm_cli.sandbox.scheduler.dynamic_resources import DynamicResources
from kcm_cli.sandbox.scheduler.podinfo import PodInfo
from kcm_cli.sandbox.scheduler.writes import Writes
from kcm_cli.sandbox.views import SimulatedPod
from tests.kit.world import NODES, PODS, World, resource

NAMESPACES = resource("namespaces", namespaced=False)
PRIORITIES = resource("priorityclasses", "scheduling.k8s.io", namespaced=False)

KINDS = (("storageclasses", "storage.k8s.io"), ("persistentvolumes", ""), ("persistentvolumeclaims", ""))


def cpu(amount: str) -> dict:
    return {"containers": [{"name": "c", "image": "nginx", "resources": {"requests": {"cpu": amount}}}]}


async def test_pods_are_bound_with_an_event(world: World):
    await world.pod("a")
    await world.wait()
    node = await world.node_of("a")
    assert node in ("node-1", "node-2", "node-3")
    assert ("Scheduled", f"Successfully assigned default/a to {node}") in await world.events("a")


async def test_a_pod_that_cannot_be_handled_costs_the_others_nothing(world: World, monkeypatch: pytest.MonkeyPatch):
    """Where it raises, in the decision or in its effects, it is tried again."""
    failures, decide, bind = ["a", "b"], scheduler.decide, Writes.bind

    def decides(info: PodInfo, *rest: Any, **more: Any) -> Any:
        if info.pod.name == "a" and "a" in failures:
            failures.remove("a")
            raise ValueError("odd")
        return decide(info, *rest, **more)

    async def binds(self: Writes, pod: SimulatedPod, node: str) -> None:
        if pod.name == "b" and "b" in failures:
            failures.remove("b")
            raise ValueError("odd")
        await bind(self, pod, node)

    monkeypatch.setattr(scheduler, "decide", decides)
    monkeypatch.setattr(Writes, "bind", binds)
    for name in "abc":
        await world.pod(name)
    await world.wait(1)
    assert failures == [] and await world.node_of("c")
    for name in "ab":
        assert (await world.condition(name, "PodScheduled"))["reason"] == "SchedulerError"
    await world.wait(15)
    assert all([await world.node_of(name) for name in "ab"])
    assert [record.fields["pod"] for record in world.raised] == ["default/a", "default/b"]  # type: ignore[attr-defined]
    world.raised.clear()


async def test_a_volume_for_a_pod_that_cannot_be_handled_is_free_again(world: World, monkeypatch: pytest.MonkeyPatch):
    """Also where the end of a failed binding raises, the others go on."""
    tried: list[str] = []

    async def raises(*given: Any) -> str:
        tried.append(type(given[0]).__name__)
        raise ValueError("odd")

    monkeypatch.setattr(Writes, "bind_volumes", raises)
    classes, volumes, claims = (resource(kind, group, namespaced=kind.endswith("claims")) for kind, group in KINDS)
    delayed = {"provisioner": "kubernetes.io/no-provisioner", "volumeBindingMode": "WaitForFirstConsumer"}
    await world.create(classes, {"metadata": {"name": "s"}, **delayed})
    wanted = {"storageClassName": "s", "accessModes": ["ReadWriteOnce"]}
    volume = {**wanted, "capacity": {"storage": "1Gi"}, "hostPath": {"path": "/v"}}
    await world.create(volumes, {"metadata": {"name": "v"}, "spec": volume})
    available = {"status": {"phase": "Available"}}
    await world.client.patch(volumes, "", "v", available, content_type=MERGE, subresource="status")
    claim = {**wanted, "resources": {"requests": {"storage": "1Gi"}}}
    await world.create(claims, {"metadata": {"name": "c"}, "spec": claim})
    await world.pod("a", {"volumes": [{"name": "c", "persistentVolumeClaim": {"claimName": "c"}}]})
    await world.wait(5)
    assert tried == ["Writes"] * 3
    monkeypatch.setattr(DynamicResources, "give_up", raises)
    await world.wait(15)
    assert tried[3:] == ["Writes", "DynamicResources"]
    await world.pod("b")
    await world.wait()
    assert await world.node_of("b")
    assert {record.fields["pod"] for record in world.raised} == {"default/a"}  # type: ignore[attr-defined]
    world.raised.clear()


async def test_a_pod_without_its_claim_preempts_no_pod(world: World):
    volume = {"name": "data", "persistentVolumeClaim": {"claimName": "none"}}
    await world.pod("a", {"volumes": [volume]})
    await world.wait()
    scheduled = await world.condition("a", "PodScheduled")
    assert scheduled["message"] == ('0/3 nodes are available: persistentvolumeclaim "none" not found. not found')


async def test_an_unschedulable_pod_has_a_condition_and_is_bound_later(world: World):
    await world.pod("a", {"nodeSelector": {"disk": "ssd"}})
    await world.wait()
    scheduled = await world.condition("a", "PodScheduled")
    text = (
        "0/3 nodes are available: 3 node(s) didn't match Pod's node affinity/selector. "
        "no new claims to deallocate, "
        "preemption: 0/3 nodes are available: 3 Preemption is not helpful for scheduling."
    )
    assert (scheduled["status"], scheduled["reason"], scheduled["message"]) == ("False", "Unschedulable", text)
    assert await world.events("a") == [("FailedScheduling", text)]
    await world.patch(NODES, "node-2", {"metadata": {"labels": {"disk": "ssd"}}})
    await world.wait(3)
    assert await world.node_of("a") == "node-2"


@pytest.mark.cluster(nodes=0)
async def test_without_nodes_pods_wait_for_one(world: World):
    await world.pod("a")
    await world.wait()
    assert (await world.condition("a", "PodScheduled"))["message"] == "no nodes available to schedule pods"
    await commands.add_some(world.client, 1)
    await world.wait(5)
    assert (await world.status("a"))["phase"] == "Running"


async def test_gated_pods_wait_for_their_gates(world: World):
    await world.pod("a", {"schedulingGates": [{"name": "x/y"}]})
    await world.wait()
    assert await world.node_of("a") == ""
    await world.patch(PODS, "a", {"spec": {"schedulingGates": []}})
    await world.wait()
    assert await world.node_of("a")


async def test_other_schedulers_pods_are_left_alone(world: World):
    await world.pod("a", {"schedulerName": "other"})
    await world.wait(60)
    assert await world.node_of("a") == ""


@pytest.mark.cluster(nodes=1)
async def test_a_pod_preempts_one_of_lower_priority(world: World):
    await world.create(PRIORITIES, {"metadata": {"name": "high"}, "value": 1000})
    await world.pod("low", {**cpu("30"), "terminationGracePeriodSeconds": 20}, stop_time="10s")
    await world.wait()
    await world.pod("high", {**cpu("30"), "priorityClassName": "high"})
    await world.wait()
    low = await world.condition("low", "DisruptionTarget")
    assert [entry["type"] for entry in (await world.get(PODS, "low"))["status"]["conditions"]][-1] == low["type"]
    assert (low["status"], low["reason"]) == ("True", "PreemptionByScheduler")
    assert (await world.status("high"))["nominatedNodeName"] == "node-1"
    await world.pod("late", cpu("5"))
    await world.wait(5)
    assert await world.node_of("late") == "", "the place is promised"
    await world.wait(20)
    assert await world.node_of("high") == "node-1"
    assert await world.is_deleted("low")
    reasons = [reason for reason, _ in await world.events("low")]
    assert "Preempted" in reasons


@pytest.mark.cluster(nodes=1)
async def test_a_pod_keeps_its_nomination_while_victims_terminate(world: World):
    for name, value in (("mid", 500), ("high", 1000)):
        await world.create(PRIORITIES, {"metadata": {"name": name}, "value": value})
    await world.pod("low", {**cpu("30"), "terminationGracePeriodSeconds": 90}, stop_time="90s")
    await world.wait()
    for name in ("mid", "high"):
        await world.pod(name, {**cpu("30"), "priorityClassName": name})
        await world.wait(5)
    assert [(await world.status(name))["nominatedNodeName"] for name in ("mid", "high")] == ["node-1", "node-1"]
    await world.wait(90)
    assert await world.node_of("high") == "node-1"


@pytest.mark.cluster(nodes=1)
async def test_a_pod_counts_with_its_new_labels_where_it_is_nominated(world: World):
    def apart(app: str) -> dict:
        term = {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": "kubernetes.io/hostname"}
        return {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}

    port = {"containers": [{"name": "c", "image": "nginx", "ports": [{"containerPort": 80, "hostPort": 80}]}]}
    await world.create(PRIORITIES, {"metadata": {"name": "high"}, "value": 1000})
    await world.pod("low", {**port, "terminationGracePeriodSeconds": 90}, stop_time="90s")
    await world.wait()
    await world.pod("high", {**port, "priorityClassName": "high", "labels": {"app": "a"}})
    await world.wait(5)
    await world.patch(PODS, "high", {"metadata": {"labels": {"app": "b"}}})
    for app in ("a", "b"):
        await world.pod(f"beside-{app}", apart(app))
    await world.wait()
    assert [await world.node_of(f"beside-{app}") for app in ("a", "b")] == ["node-1", ""]


@pytest.mark.cluster(nodes=1)
async def test_the_room_of_a_former_nomination_is_free(world: World):
    await world.create(PRIORITIES, {"metadata": {"name": "high"}, "value": 1000})
    await world.pod("low", {**cpu("20"), "terminationGracePeriodSeconds": 90}, stop_time="90s")
    await world.wait()
    await world.pod("high", {**cpu("30"), "priorityClassName": "high"})
    await world.pod("late", cpu("5"))
    await world.wait(15)
    assert await world.node_of("late") == ""
    body = {"status": {"nominatedNodeName": None}}
    await world.client.patch(PODS, "default", "high", body, content_type=MERGE, subresource="status")
    await world.wait(5)
    assert await world.node_of("late") == "node-1"


@pytest.mark.cluster(nodes=1)
async def test_the_end_of_a_nomination_wakes_pods_of_no_higher_priority(world: World):
    async def attempts(world: World, name: str) -> int:
        """Up to 2: further ones are aggregated."""
        events = await world.items(resource("events", "events.k8s.io"))
        own = [each for each in events if each["regarding"]["name"] == name]
        return sum((each.get("series") or {"count": 1})["count"] for each in own)

    for name, value in (("high", 1000), ("higher", 2000)):
        await world.create(PRIORITIES, {"metadata": {"name": name}, "value": value})
    await world.pod("low", {**cpu("20"), "terminationGracePeriodSeconds": 200}, stop_time="200s")
    await world.wait()
    await world.pod("high", {**cpu("30"), "priorityClassName": "high"})
    await world.pod("late", cpu("40"))
    await world.pod("huge", {**cpu("40"), "priorityClassName": "higher"})
    await world.wait(15)
    assert [await attempts(world, name) for name in ("late", "huge")] == [1, 1]
    body = {"status": {"nominatedNodeName": None}}
    await world.client.patch(PODS, "default", "high", body, content_type=MERGE, subresource="status")
    await world.wait(5)
    assert [await attempts(world, name) for name in ("late", "huge")] == [2, 1]


def beside(kind: str) -> dict:
    """A spec that has to be near (podAffinity) or away from (podAntiAffinity) pods a in namespaces with x: y."""
    selectors = {"labelSelector": {"matchLabels": {"app": "a"}}, "namespaceSelector": {"matchLabels": {"x": "y"}}}
    term = {"topologyKey": "kubernetes.io/hostname", **selectors}
    return {"affinity": {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}


async def in_team(world: World, name: str, spec: dict, **labels: str) -> None:
    """A pod in the namespace team, which is made with these labels if it is not there."""
    if await world.is_deleted("team", NAMESPACES):
        await world.create(NAMESPACES, {"metadata": {"name": "team", "labels": labels}})
        await world.create(resource("serviceaccounts"), {"metadata": {"name": "default"}}, "team")
    body = {"containers": [{"name": "c", "image": "nginx"}], **spec}
    await world.create(PODS, {"metadata": {"name": name, "labels": {"app": name}}, "spec": body}, "team")


@pytest.mark.cluster(nodes=1)
@pytest.mark.parametrize(
    ("kind", "before", "after"),
    [("podAffinity", {}, {"x": "y"}), ("podAntiAffinity", {"x": "y"}, {"x": None})],
)
async def test_other_labels_of_a_namespace_help_pods_that_select_it(world: World, kind, before, after):
    await in_team(world, "a", {}, **before)
    await world.wait(5)
    await world.pod("b", beside(kind))
    await world.wait(15)
    assert await world.node_of("b") == ""
    await world.patch(NAMESPACES, "team", {"metadata": {"labels": {"other": "label"}}})
    await world.wait(15)
    assert await world.node_of("b") == ""
    await world.patch(NAMESPACES, "team", {"metadata": {"labels": after}})
    await world.wait(2)
    assert await world.node_of("b") == "node-1"


@pytest.mark.cluster(nodes=1)
async def test_other_labels_of_its_namespace_help_a_pod_that_others_keep_away(world: World):
    await world.pod("b", beside("podAntiAffinity"))
    await world.wait(5)
    await in_team(world, "a", {}, x="y")
    await world.wait(15)
    assert not (await world.get(PODS, "a", "team"))["spec"].get("nodeName")
    await world.patch(NAMESPACES, "team", {"metadata": {"labels": {"x": "z"}}})
    await world.wait(2)
    assert (await world.get(PODS, "a", "team"))["spec"].get("nodeName") == "node-1"


async def test_a_pod_waits_for_storage(world: World):
    storage = [resource(kind, "storage.k8s.io", namespaced=False) for kind in ("csidrivers", "storageclasses")]
    await world.create(storage[0], {"metadata": {"name": "x"}, "spec": {"storageCapacity": True}})
    delayed = {"provisioner": "x", "volumeBindingMode": "WaitForFirstConsumer"}
    await world.create(storage[1], {"metadata": {"name": "s"}, **delayed})
    asked = {"resources": {"requests": {"storage": "1Gi"}}, "accessModes": ["ReadWriteOnce"]}
    claims = resource("persistentvolumeclaims")
    await world.create(claims, {"metadata": {"name": "c"}, "spec": {"storageClassName": "s", **asked}})
    await world.pod("a", {"volumes": [{"name": "c", "persistentVolumeClaim": {"claimName": "c"}}]})
    await world.wait(15)
    message = (await world.condition("a", "PodScheduled"))["message"]
    assert message.startswith("0/3 nodes are available: 3 node(s) did not have enough free storage.")
    capacities = resource("csistoragecapacities", "storage.k8s.io")
    topology = {"matchLabels": {"kubernetes.io/hostname": "node-2"}}
    room = {"storageClassName": "s", "capacity": "2Gi", "nodeTopology": topology}
    await world.create(capacities, {"metadata": {"name": "room"}, **room})
    await world.wait(5)
    annotations = (await world.get(claims, "c"))["metadata"]["annotations"]
    assert annotations["volume.kubernetes.io/selected-node"] == "node-2"


async def test_no_node_gets_more_than_it_has(world: World):
    for number in range(12):
        await world.pod(f"p{number}", cpu("10"))
    await world.wait(5)
    nodes = [await world.node_of(f"p{number}") for number in range(12)]
    assert sorted(nodes) == [""] * 3 + ["node-1"] * 3 + ["node-2"] * 3 + ["node-3"] * 3
    for number in (i for i, node in enumerate(nodes) if node == "node-1"):
        await world.delete(PODS, f"p{number}")
    await world.wait(15)
    assert all([await world.node_of(f"p{number}") for number, node in enumerate(nodes) if not node])


@pytest.mark.cluster(nodes=1)
async def test_ended_pods_release_their_resources(world: World):
    await world.pod("a", {**cpu("30"), "restartPolicy": "Never"}, run_time="20s")
    await world.wait()
    await world.pod("b", cpu("30"))
    await world.wait(10)
    assert await world.node_of("b") == ""
    await world.wait(20)
    assert await world.node_of("b") == "node-1"


def near(app: str) -> dict:
    term = {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": "kubernetes.io/hostname"}
    return {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


async def test_a_pod_that_waits_for_another_follows_it(world: World):
    await world.pod("b", {"affinity": near("a")})
    await world.wait(30)
    assert await world.node_of("b") == ""
    await world.pod("a", {"labels": {"app": "a"}})
    await world.wait(2)
    assert await world.node_of("b") == await world.node_of("a") != ""


@pytest.mark.cluster(nodes=1)
async def test_pods_are_not_retried_after_changes_that_cannot_help(world: World):
    await world.pod("a", {"nodeSelector": {"disk": "ssd"}})
    await world.wait(5)
    emitted = await world.events("a")
    await world.patch(NODES, "node-1", {"metadata": {"labels": {"disk": "hdd"}}})
    await world.wait(30)
    assert await world.events("a") == emitted
    await world.patch(NODES, "node-1", {"metadata": {"labels": {"disk": "ssd"}}})
    await world.wait(1)
    assert await world.node_of("a") == "node-1"


async def test_a_refused_binding_is_tried_less_and_less_often(world: World):
    refused = world.server.api.faults.add(Fault("refuse", verbs=("create",), resources=("pods/binding",)))
    await world.pod("a")
    await world.wait(40)
    assert len(refused.happened) == 7  # after 0, 1, 3, 7, 15, 25 and 35 s


@pytest.mark.cluster(nodes=1)
async def test_a_pod_that_could_not_be_bound_leaves_the_room_of_its_successor(world: World):
    world.server.api.faults.add(Fault("delay", verbs=("create",), resources=("pods/binding",), delay_s=5))
    await world.pod("a", cpu("20"))
    await world.wait(2)
    await world.delete(PODS, "a")
    await world.pod("a", cpu("20"))
    await world.wait(3.5)  # the first one's binding was refused, the second one's is under way
    assert await world.node_of("a") == ""
    await world.pod("b", cpu("20"))
    await world.wait(20)
    assert [await world.node_of(name) for name in ("a", "b")] == ["node-1", ""]


@pytest.mark.cluster(nodes=1)
async def test_a_nomination_that_cannot_be_cleared_stops_no_one(world: World):
    for name, value in (("mid", 500), ("high", 1000)):
        await world.create(PRIORITIES, {"metadata": {"name": name}, "value": value})
    for name in ("low", "lower"):
        await world.pod(name, {**cpu("15"), "terminationGracePeriodSeconds": 90}, stop_time="90s")
    await world.wait()
    await world.pod("mid", {**cpu("10"), "priorityClassName": "mid"})
    await world.wait()
    assert (await world.status("mid"))["nominatedNodeName"] == "node-1"
    refused = world.server.api.faults.add(Fault("refuse", verbs=("patch",), resources=("pods/status",), name="mid"))
    await world.pod("high", {**cpu("30"), "priorityClassName": "high"})
    await world.wait(100)
    assert refused.happened
    assert await world.node_of("high") == "node-1"
