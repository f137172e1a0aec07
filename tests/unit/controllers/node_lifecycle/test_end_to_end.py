"""The controller's loops in a whole sandbox, on virtual time, with failing writes and new zones."""

import itertools
import json
import random
from dataclasses import replace
from datetime import datetime, timedelta
from logging import ERROR, INFO
from typing import Any

import pytest

from kcm_cli.api.core import Node
from kcm_cli.api.well_known import LEASE_NAMESPACE
from kcm_cli.component.clock import LoopClock
from kcm_cli.component.generic_config import KubeCloudSharedConfig
from kcm_cli.component.logs import V2, fields_of
from kcm_cli.component.metrics import Registry
from kcm_cli.controllers.node_lifecycle import controller, plan
from kcm_cli.controllers.node_lifecycle.config import NodeLifecycleConfig
from kcm_cli.controllers.node_lifecycle.controller import NodeLifecycleController
from kcm_cli.controllers.node_lifecycle.health import NodeHealth
from kcm_cli.engine.context import ControllerContext
from kcm_cli.machinery.times import format_time
from kcm_cli.planning.actions import MERGE, STRATEGIC_MERGE
from kcm_cli.rest.transport import Request, Response, Transport
from kcm_cli.runtime.turns import Turns
from kcm_cli.sandbox.apiserver.security.certificates import Certificates
from kcm_cli.sandbox.nodes import commands
from tests.kit.controlling import controllers, metric
from tests.kit.faults import Held, Meanwhile, Noting, Refusing, Rewriting, refusal
from tests.kit.world import NODES, PODS, World, resource, running_world

pytestmark = pytest.mark.cluster(heartbeat_s=10.0)

UNREACHABLE = "node.kubernetes.io/unreachable"


def running(world: World, transport: Transport, **options: Any) -> Any:
    configs = (NodeLifecycleConfig(), KubeCloudSharedConfig())
    return controllers(world, *configs, names=["node-lifecycle-controller"], transport=transport, **options)


async def taints(world: World, name: str) -> set[tuple[str, str]]:
    spec = (await world.get(NODES, name))["spec"]
    return {(taint["key"], taint["effect"]) for taint in spec.get("taints", [])}


async def names(world: World) -> list[str]:
    nodes = await world.items(NODES)
    return sorted(node["metadata"]["name"] for node in nodes)


async def test_a_failed_removal_of_a_taint_does_not_stop_the_controller(world: World):
    name = (await names(world))[0]
    taint = {"key": UNREACHABLE, "effect": "NoExecute"}
    await world.patch(NODES, name, {"spec": {"taints": [taint]}})
    broken = [True]
    transport = Refusing(world.server.transport(), lambda request: broken[0] and request.method == "PATCH")
    async with running(world, transport):
        await world.wait(20)
        assert transport.refused
        assert (UNREACHABLE, "NoExecute") in await taints(world, name)
        broken[0] = False
        await world.wait(20)
        assert await taints(world, name) == set()


async def test_unchanged_nodes_are_looked_at_in_turns_of_the_loop(world: World, monkeypatch: pytest.MonkeyPatch):
    steps: list[str] = []
    unchanged, next_ = NodeHealth.unchanged, Turns.next

    def looked(self: NodeHealth, node: Node) -> Any:
        steps.append("node")
        return unchanged(self, node)

    async def turned(self: Turns) -> None:
        steps.append("turn")
        await next_(self)

    monkeypatch.setattr(NodeHealth, "unchanged", looked)
    monkeypatch.setattr(Turns, "next", turned)
    monkeypatch.setattr(Turns, "is_over", lambda self: True)
    async with running(world, world.server.transport()):
        await world.wait(20)
    pairs = set(itertools.pairwise(steps))
    assert ("node", "turn") in pairs
    assert ("node", "node") not in pairs


async def test_a_zone_can_be_added_while_a_node_is_tainted(world: World):
    name = (await names(world))[0]

    async def add() -> None:
        labels = {"topology.kubernetes.io/zone": "new"}
        await world.create(NODES, {"metadata": {"name": "late", "labels": labels}})
        await world.wait(30)

    transport = Meanwhile(world.server.transport(), "PATCH", f"/nodes/{name}", add, b"NoExecute")
    async with running(world, transport):
        await world.wait(10)
        await commands.fail(world.client, name)
        await world.wait(120)
        assert transport.happened
        assert (UNREACHABLE, "NoExecute") in await taints(world, name)


async def test_a_deleted_tainted_node_leaves_no_state(world: World, monkeypatch):
    made: list[NodeLifecycleController] = []

    def make(context: ControllerContext) -> NodeLifecycleController:
        made.append(NodeLifecycleController(context))
        return made[-1]

    monkeypatch.setattr(controller, "CONTROLLER", replace(controller.CONTROLLER, make=make))
    name = (await names(world))[0]
    async with running(world, world.server.transport()):
        await world.wait(10)
        await commands.fail(world.client, name)
        await world.wait(120)
        assert (UNREACHABLE, "NoExecute") in await taints(world, name)
        await world.delete(NODES, name)
        await world.wait(20)
        assert name not in await names(world)
        state = vars(made[0])
        assert name not in vars(state["_health"])["_health"]
        assert not any(queue.remove(name) for queue in vars(state["_taints"])["_queues"].values())


@pytest.mark.parametrize("hours", [1, -1])
async def test_setting_the_wall_clock_makes_no_node_unknown(world: World, monkeypatch, hours):
    set_by = [timedelta()]
    now = LoopClock.now
    monkeypatch.setattr(LoopClock, "now", lambda self: now(self) + set_by[0])
    transport = Noting(world.server.transport())
    async with running(world, transport):
        await world.wait(33)
        set_by[0] = timedelta(hours=hours)
        await world.wait(20)
        assert not [one.body for one in transport.sent if one.method != "GET" and b"Unknown" in one.body]


async def tainted(world: World) -> list[str]:
    return [name for name in await names(world) if (UNREACHABLE, "NoExecute") in await taints(world, name)]


async def watched(world: World, seconds: int) -> dict[str, int]:
    """In which second each node was tainted."""
    found: dict[str, int] = {}
    for second in range(seconds):
        await world.wait(1)
        for name in await tainted(world):
            found.setdefault(name, second)
    return found


async def test_taints_that_another_client_removes_from_a_silent_node_are_added_again(world: World):
    name = (await names(world))[0]
    async with running(world, world.server.transport()):
        await world.wait(10)
        await commands.fail(world.client, name)
        await world.wait(120)
        assert await tainted(world) == [name]
        await world.patch(NODES, name, {"spec": {"taints": []}})
        await world.wait(20)
        assert await tainted(world) == [name]
        messages = [text for reason, text in await world.events(name) if reason == "NodeNotReady"]
        assert messages == [f"Node {name} status is now: NodeNotReady"]


async def test_labels_follow_the_node_although_its_taints_are_refused(world: World):
    name = (await names(world))[0]
    refused = [True]

    def refuses(request: Request) -> bool:
        return refused[0] and request.method == "PATCH" and b"NoSchedule" in request.body

    async with running(world, Refusing(world.server.transport(), refuses)):
        await world.wait(20)
        metadata = {"labels": {"kubernetes.io/os": "plan9"}}
        await world.patch(NODES, name, {"metadata": metadata, "spec": {"unschedulable": True}})
        await world.wait(5)
        assert (await world.get(NODES, name))["metadata"]["labels"]["beta.kubernetes.io/os"] == "plan9"
        assert await taints(world, name) == set()
        refused[0] = False
        await world.wait(60)
        assert await taints(world, name) == {("node.kubernetes.io/unschedulable", "NoSchedule")}


UNTAINTED = "Failed to taint NoSchedule on node, requeue it"
UNLABELLED = "Failed to reconcile labels for node, requeue it"


@pytest.mark.parametrize(
    ("parts", "answer", "level", "said"),
    [
        pytest.param((b"NoSchedule",), (500, "InternalError"), ERROR, {UNTAINTED}, id="taints"),
        pytest.param((b"beta.",), (500, "InternalError"), ERROR, {UNLABELLED}, id="labels"),
        pytest.param((b"NoSchedule", b"beta."), (500, "InternalError"), ERROR, {UNTAINTED, UNLABELLED}, id="both"),
        pytest.param((b"NoSchedule",), (409, "Conflict"), V2, {UNTAINTED}, id="taints of a node that has changed"),
    ],
)
async def test_each_write_that_fails_is_logged_as_what_it_is(
    world: World, caplog: pytest.LogCaptureFixture, parts, answer, level, said
):
    name, tries = (await names(world))[0], itertools.count()

    def refuses(request: Request) -> Response | None:
        hit = request.method == "PATCH" and any(part in request.body for part in parts) and next(tries) < 2 * len(parts)
        return refusal(*answer) if hit else None

    async with running(world, Rewriting(world.server.transport(), answer=refuses)):
        await world.wait(20)
        with caplog.at_level(V2):
            metadata = {"labels": {"kubernetes.io/os": "plan9"}}
            await world.patch(NODES, name, {"metadata": metadata, "spec": {"unschedulable": True}})
            await world.wait(20)
        assert await taints(world, name) == {("node.kubernetes.io/unschedulable", "NoSchedule")}
        assert (await world.get(NODES, name))["metadata"]["labels"]["beta.kubernetes.io/os"] == "plan9"
    lines = [record for record in caplog.records if record.levelno >= ERROR or "err" in fields_of(record)]
    lines = [record for record in lines if record.name.startswith("kcm_cli.") and record.name != "kcm_cli.engine.door"]
    assert sorted((line.levelno, line.message) for line in lines) == sorted([(level, text) for text in said] * 2)
    assert all((str(fields_of(line)["node"]), fields_of(line).keys()) == (name, {"node", "err"}) for line in lines)


@pytest.mark.parametrize("late", [False, True])
async def test_a_pod_that_cannot_be_marked_is_no_other_failure(world: World, caplog: pytest.LogCaptureFixture, late):
    """Of a node that falls silent, and bound to a node that is silent."""
    left = [3]

    def refuses(request: Request) -> bool:
        left[0] -= request.path.endswith("/pods/p/status") and request.method == "PUT"
        return request.path.endswith("/pods/p/status") and request.method == "PUT" and left[0] >= 0

    await world.pod("p", {"schedulerName": "another"} if late else {"nodeName": "node-1"})
    await world.wait(10)
    async with running(world, Refusing(world.server.transport(), refuses)):
        await world.wait(10)
        with caplog.at_level(INFO):
            await commands.fail(world.client, "node-1")
            await world.wait(60)
            if late:
                ready = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}
                await world.client.patch(
                    PODS, "default", "p", ready, content_type=STRATEGIC_MERGE, subresource="status"
                )
                await world.bind("p", "node-1")
            await world.wait(30)
        assert (await world.condition("p", "Ready"))["status"] == "False"
    text = "Unable to mark pod NotReady on node"
    whole = (INFO, text) if late else (ERROR, "Unable to mark all pods NotReady on node; queuing for retry")
    lines = [(record.levelno, record.message) for record in caplog.records if "err" in fields_of(record)]
    assert lines == [(INFO, "Failed to update status for pod"), whole] * 3


async def test_taints_and_labels_follow_the_node_at_once(world: World):
    name, cordoned = (await names(world))[0], ("node.kubernetes.io/unschedulable", "NoSchedule")
    async with running(world, world.server.transport()):
        await world.wait(10)
        metadata = {"labels": {"kubernetes.io/os": "plan9"}}
        await world.patch(NODES, name, {"spec": {"unschedulable": True}, "metadata": metadata})
        await world.wait(1)
        assert await taints(world, name) == {cordoned}
        assert (await world.get(NODES, name))["metadata"]["labels"]["beta.kubernetes.io/os"] == "plan9"
        await world.patch(NODES, name, {"spec": {"unschedulable": None}})
        await world.wait(1)
        assert await taints(world, name) == set()


@pytest.mark.parametrize("failed", [True, False])
async def test_a_pod_that_is_bound_to_a_silent_node_is_not_ready(world: World, failed):
    name = (await names(world))[0]
    async with running(world, world.server.transport()):
        await world.wait(10)
        if failed:
            await commands.fail(world.client, name)
        await world.wait(60)
        await world.pod("p", {"schedulerName": "another"})
        said = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}
        await world.client.patch(PODS, "default", "p", said, content_type=STRATEGIC_MERGE, subresource="status")
        await world.bind("p", name)
        await world.wait(5)
        assert (await world.condition("p", "Ready"))["status"] == str(not failed)


@pytest.mark.parametrize(
    ("failing", "expected"),
    [
        pytest.param(2, 2, id="some: one after the other", marks=pytest.mark.cluster(nodes=5)),
        pytest.param(3, 0, id="more than half of a small zone: none", marks=pytest.mark.cluster(nodes=5)),
        pytest.param(4, 0, id="all: none", marks=pytest.mark.cluster(nodes=4)),
    ],
)
async def test_eviction_rates_of_zones(world: World, failing, expected):
    for name in await names(world):
        await world.patch(NODES, name, {"metadata": {"labels": {"topology.kubernetes.io/zone": "one"}}})
    async with running(world, world.server.transport()):
        await world.wait(10)
        for name in (await names(world))[:failing]:
            await commands.fail(world.client, name)
        times = sorted((await watched(world, 150)).values())
        assert len(times) == expected
        assert all(after - before >= 9 for before, after in itertools.pairwise(times))
        assert all(before >= 40 for before in times)


async def test_the_recovery_from_a_full_disruption_resets_grace_periods(world: World):
    async with running(world, world.server.transport()):
        await world.wait(10)
        everyone = await names(world)
        for name in everyone:
            await commands.fail(world.client, name)
        await world.wait(120)
        assert await tainted(world) == []
        await commands.recover(world.client, everyone[0])
        times = await watched(world, 120)
        assert set(times) == set(everyone[1:])
        assert min(times.values()) >= 10


@pytest.mark.parametrize("slow", [pytest.param("/pods/", id="pods"), pytest.param("/nodes/", id="taints")])
async def test_nothing_is_evicted_from_nodes_that_all_fall_silent_while_the_server_is_slow(world: World, slow):
    """The taint of the first node is written, or under way, when the last node is found silent."""
    delayed = []

    async def before(request: Request) -> None:
        if request.method in ("PUT", "PATCH") and slow in request.path and delayed:
            delayed.append(request.path)
            await world.wait(3)

    for name in ("p", "q", "r"):
        await world.pod(name)
    await world.wait(10)
    async with running(world, Refusing(world.server.transport(), lambda request: False, before)):
        await world.wait(10)
        delayed.append("")
        for name in await names(world):
            await commands.fail(world.client, name)
        await world.wait(150)
        assert len(delayed) > 1
        assert await tainted(world) == []


async def test_pods_of_a_silent_node_are_not_ready_also_if_it_cannot_be_tainted(world: World):
    await world.pod("p")
    await world.wait(10)
    name = await world.node_of("p")
    transport = Refusing(world.server.transport(), lambda r: r.method == "PATCH" and r.path.endswith(name))
    async with running(world, transport):
        await world.wait(10)
        taint = {"key": "node.kubernetes.io/not-ready", "effect": "NoExecute"}
        await world.patch(NODES, name, {"spec": {"taints": [taint]}})
        await commands.fail(world.client, name)
        await world.wait(60)
        assert transport.refused
        assert (await world.condition("p", "Ready"))["status"] == "False"
        assert ("NodeNotReady", "Node is not ready") in await world.events("p")


async def test_pods_of_a_silent_node_are_not_ready_also_after_a_restart_of_the_manager(world: World):
    await world.pod("p", {"nodeName": "node-1", "terminationGracePeriodSeconds": 1})
    await world.wait(10)
    forbidden = Refusing(world.server.transport(), lambda request: request.path.endswith("/pods/p/status"))
    async with running(world, forbidden):
        await commands.fail(world.client, "node-1")
        while not forbidden.refused:
            await world.wait(1)
    ready = [c for c in (await world.get(NODES, "node-1"))["status"]["conditions"] if c["type"] == "Ready"]
    assert [c["status"] for c in ready] == ["Unknown"]
    assert (await world.condition("p", "Ready"))["status"] == "True"
    async with running(world, world.server.transport()):
        await world.wait(10)
        assert (await world.condition("p", "Ready"))["status"] == "False"


async def test_pods_of_a_node_that_reported_not_ready_are_not_ready_when_it_falls_silent(world: World):
    await world.pod("p", {"nodeName": "node-1", "terminationGracePeriodSeconds": 1})
    await world.wait(10)
    async with running(world, world.server.transport()):
        await world.wait(10)
        await commands.fail(world.client, "node-1")
        condition = {"type": "Ready", "status": "False", "lastHeartbeatTime": format_time(world.clock.now())}
        said = {"status": {"conditions": [condition]}}
        await world.client.patch(NODES, "", "node-1", said, content_type=STRATEGIC_MERGE, subresource="status")
        await world.wait(10)
        assert (await world.condition("p", "Ready"))["status"] == "True"
        await world.wait(110)
        ready = [c for c in (await world.get(NODES, "node-1"))["status"]["conditions"] if c["type"] == "Ready"]
        assert [c["status"] for c in ready] == ["Unknown"]
        assert (await world.condition("p", "Ready"))["status"] == "False"


async def test_failed_updates_of_pods_are_retried_also_if_the_kubelet_reports_not_ready(world: World):
    await world.pod("p", {"nodeName": "node-1", "terminationGracePeriodSeconds": 1})
    await world.wait(10)
    broken = [True]
    transport = Refusing(world.server.transport(), lambda r: broken[0] and r.path.endswith("/pods/p/status"))
    async with running(world, transport):
        await world.wait(10)
        await commands.fail(world.client, "node-1")
        while not transport.refused:
            await world.wait(1)
        condition = {"type": "Ready", "status": "False", "lastHeartbeatTime": format_time(world.clock.now())}
        said = {"status": {"conditions": [condition]}}
        await world.client.patch(NODES, "", "node-1", said, content_type=STRATEGIC_MERGE, subresource="status")
        await world.wait(10)
        broken[0] = False
        await world.wait(10)
        assert (await world.condition("p", "Ready"))["status"] == "False"


async def test_concurrent_changes_of_a_pod_are_not_overwritten(world: World):
    """The cache is stale: the pod has another status. It is marked once the cache is current."""
    await world.pod("p")
    await world.wait(10)
    name = await world.node_of("p")
    held = Held(world.server.transport(), world.clock, "/api/v1/pods")
    async with running(world, held):
        await world.wait(10)
        held.hold()
        await commands.fail(world.client, name)
        condition = {"type": "Ready", "status": "Unknown", "reason": "Mine"}
        said = {"status": {"conditions": [condition]}}
        await world.client.patch(PODS, "default", "p", said, content_type=STRATEGIC_MERGE, subresource="status")
        await world.wait(70)
        assert (await world.condition("p", "Ready"))["status"] == "Unknown"
        assert ("NodeNotReady", "Node is not ready") in await world.events("p")
        held.release()
        await world.wait(10)
        assert (await world.condition("p", "Ready"))["status"] == "False"


LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
NODE_LEASES = resource("leases", "coordination.k8s.io")


@pytest.mark.parametrize("listed", [True, False])
async def test_nodes_whose_renewals_the_cache_does_not_show_stay_ready(world: World, listed):
    """The watch of Leases hangs. Without a list the cache decides, as upstream's: all nodes seem to be silent."""
    lists, written, hangs = list[str](), set[str](), [False]

    def refuses(request: Request) -> bool:
        if request.method == "PUT" and request.path.endswith("/status"):
            written.add(request.path.split("/")[-2])
        wanted = hangs[0] and request.path == LEASES and request.method == "GET"
        lists.extend([request.path] * wanted)
        return wanted and not listed

    held = Held(Refusing(world.server.transport(), refuses), world.clock, LEASES)
    async with running(world, held):
        await world.wait(20)
        held.hold()
        hangs[0] = True
        await world.wait(120)
        silent, *others = await names(world)
        assert written == (set() if listed else {silent, *others})
        if listed:
            assert 1 <= len(lists) <= 4  # once in a pass in which a grace period ends
            await commands.fail(world.client, silent)
            await world.wait(130)
            assert written == {silent}


@pytest.mark.parametrize("steps", [1, -1])
async def test_a_node_whose_clock_was_set_back_stays_ready(world: World, steps):
    """Its renewals are earlier than those before, whether its clock runs or is set back again and again."""
    name, written = (await names(world))[0], list[str]()

    def sees(request: Request) -> bool:
        written.extend([request.path] * (request.method == "PUT" and request.path.endswith("/status")))
        return False

    async with running(world, Refusing(world.server.transport(), sees)):
        await world.wait(20)
        await commands.fail(world.client, name)
        for step in range(12):
            renewed = world.clock.now() - timedelta(hours=1) + steps * timedelta(seconds=step)
            spec = {"renewTime": renewed.strftime("%Y-%m-%dT%H:%M:%S.000000Z")}
            await world.patch(NODE_LEASES, name, {"spec": spec}, LEASE_NAMESPACE)
            await world.wait(10)
        assert written == []
        await world.wait(60)
        assert len(written) == 1


async def test_unknown_conditions_reported_by_a_node_are_kept(world: World):
    conditions = [{"type": "Ready", "status": "Unknown"}, {"type": "DiskPressure", "status": "False"}]
    await world.create(NODES, {"metadata": {"name": "odd"}})
    body = {"status": {"conditions": conditions}}
    await world.client.patch(NODES, "", "odd", body, content_type=MERGE, subresource="status")
    async with running(world, world.server.transport()):
        await world.wait(120)
        found = {c["type"]: c["status"] for c in (await world.get(NODES, "odd"))["status"]["conditions"]}
        assert found == {"Ready": "Unknown", "DiskPressure": "False"}


async def test_a_node_that_never_posted_a_status_becomes_unknown(world: World):
    await world.create(NODES, {"metadata": {"name": "mute", "annotations": {"sandbox.kcm.dev/ignore": "true"}}})
    async with running(world, world.server.transport()):
        await world.wait(50)
        assert not (await world.get(NODES, "mute")).get("status", {}).get("conditions")
        await world.wait(30)
        found = (await world.get(NODES, "mute"))["status"]["conditions"]
        assert {(c["type"], c["status"], c["reason"]) for c in found} == {
            (type_, "Unknown", "NodeStatusNeverUpdated")
            for type_ in ("Ready", "MemoryPressure", "DiskPressure", "PIDPressure")
        }


async def test_a_node_that_fails_for_an_hour_and_its_evictions(world: World):
    """Both controllers with their ordinary times: unknown after 50 s, evicted 300 s later, nothing more in an hour."""
    for number in range(6):
        await world.pod(f"p{number}", {"terminationGracePeriodSeconds": 1})
    await world.wait(5)
    placed = {f"p{number}": await world.node_of(f"p{number}") for number in range(6)}
    failed = placed["p0"]
    on_it = {name for name, node in placed.items() if node == failed}
    config = (NodeLifecycleConfig(), KubeCloudSharedConfig())
    both = ["node-lifecycle-controller", "taint-eviction-controller"]
    async with controllers(world, *config, names=both):
        await world.wait(10)
        await commands.fail(world.client, failed)
        await world.wait(120)
        assert (UNREACHABLE, "NoExecute") in await taints(world, failed)
        pods = {pod["metadata"]["name"]: pod["metadata"] for pod in await world.items(PODS)}
        assert not any("deletionTimestamp" in meta for meta in pods.values())
        await world.wait(3600 - 130)
        pods = {pod["metadata"]["name"]: pod["metadata"] for pod in await world.items(PODS)}
        assert {name for name in placed if "deletionTimestamp" in pods.get(name, {"deletionTimestamp": ""})} == on_it


def writes_health(request: Request, name: str = "") -> bool:
    return request.method == "PUT" and request.path.endswith(f"{name}/status") and "/nodes/" in request.path


async def silent(world: World) -> list[str]:
    """The nodes whose Ready condition is unknown."""
    return [
        node["metadata"]["name"]
        for node in await world.items(NODES)
        if any(c["type"] == "Ready" and c["status"] == "Unknown" for c in node["status"].get("conditions", []))
    ]


@pytest.mark.parametrize(("failures", "passes"), [(4, 1), (5, 2)])
async def test_health_is_written_at_the_fifth_attempt_of_a_pass(world: World, failures, passes):
    name, times = (await names(world))[0], []

    def refuse(request: Request) -> Response | None:
        if not writes_health(request, name):
            return None
        times.append(world.clock.monotonic())
        return refusal(500, "InternalError") if len(times) <= failures else None

    async with running(world, Rewriting(world.server.transport(), answer=refuse)):
        await world.wait(10)
        await commands.fail(world.client, name)
        await world.wait(70)
        assert await silent(world) == [name]
        assert len(times) == failures + 1
        assert (times[-1] - times[0] < 1) == (passes == 1)


async def test_a_node_whose_health_cannot_be_written_is_in_no_zone(world: World):
    name, metrics = (await names(world))[0], Registry()
    transport = Refusing(world.server.transport(), lambda request: writes_health(request, name))
    async with running(world, transport, metrics=metrics):
        await world.wait(10)
        assert metric(metrics, "node_collector_zone_size") == 3
        await commands.fail(world.client, name)
        await world.wait(60)
        assert transport.refused
        assert metric(metrics, "node_collector_zone_size") == 2


@pytest.mark.cluster(nodes=5)
async def test_a_silent_node_counts_in_its_zone_also_if_its_pods_cannot_be_written(world: World):
    """Three of five: the zone is unhealthy, and none is tainted, as if the pods' status could be written."""
    for number in range(5):
        await world.pod(f"p{number}")
    await world.wait(10)
    transport = Refusing(world.server.transport(), lambda request: request.method == "PUT" and "/pods/" in request.path)
    for name in await names(world):
        await world.patch(NODES, name, {"metadata": {"labels": {"topology.kubernetes.io/zone": "one"}}})
    async with running(world, transport):
        await world.wait(10)
        for name in (await names(world))[:3]:
            await commands.fail(world.client, name)
        assert await watched(world, 100) == {}
        assert transport.refused


async def test_an_error_of_one_node_does_not_affect_the_others(world: World, monkeypatch):
    status = plan.status
    odd, other, *_ = await names(world)

    def odd_one(node: Node, now: datetime) -> Any:
        if node.name == odd:
            raise ValueError("odd")
        return status(node, now)

    monkeypatch.setattr(plan, "status", odd_one)
    async with running(world, world.server.transport()):
        await world.wait(10)
        for name in (odd, other):
            await commands.fail(world.client, name)
        await world.wait(70)
        assert await silent(world) == [other]


@pytest.mark.parametrize("separate", [True, False])
async def test_taints_evict_in_this_controller_if_the_gate_of_theirs_is_off(world: World, separate):
    await world.pod("p", {"terminationGracePeriodSeconds": 1})
    await world.wait(10)
    gates = [("", f"SeparateTaintEvictionController={str(separate).lower()}")]
    async with running(world, world.server.transport(), gates=gates, emulated="1.33"):
        await world.wait(5)
        taint = {"key": "k", "effect": "NoExecute"}
        await world.patch(NODES, await world.node_of("p"), {"spec": {"taints": [taint]}})
        await world.wait(20)
        assert await world.is_deleted("p") != separate
        sources = {
            event["source"]["component"]
            for event in await world.items(resource("events"))
            if event["reason"] == "TaintManagerEviction"
        }
        assert sources == (set() if separate else {"taint-eviction-controller"})


def timeless(doc: Any) -> Any:
    """A document without times and versions."""
    if isinstance(doc, dict):
        return {key: timeless(value) for key, value in doc.items() if key not in ("timeAdded", "resourceVersion")}
    return [timeless(one) for one in doc] if isinstance(doc, list) else doc


async def happen(world: World, rng: random.Random, name: str) -> None:
    """Something happens to a node."""
    taints = [{"key": rng.choice([UNREACHABLE, "own"]), "effect": "NoExecute"}]
    labels = {"topology.kubernetes.io/zone": rng.choice("ab"), plan.EXCLUDED: rng.choice(["", None])}
    status = {"status": {"conditions": [{"type": "Ready", "status": rng.choice(["True", "False", "Unknown"])}]}}
    match rng.choice(["fail", "recover", "taints", "labels", "status", "nothing"]):
        case "fail":
            await commands.fail(world.client, name)
        case "recover":
            await commands.recover(world.client, name)
        case "taints":
            await world.patch(NODES, name, {"spec": {"taints": rng.choice([taints, None])}})
        case "labels":
            await world.patch(NODES, name, {"metadata": {"labels": labels}})
        case "status":
            await world.client.patch(NODES, "", name, status, subresource="status")


async def written(certificates: Certificates, seed: int) -> list[tuple[str, str, Any]]:
    """What the controller writes to nodes during a random life of them, without times."""
    async with running_world(certificates, heartbeat_s=10.0) as world:
        rng, known = random.Random(seed), await names(world)
        transport = Noting(world.server.transport())
        async with running(world, transport):
            await world.wait(20)
            for _ in range(25):
                await happen(world, rng, rng.choice(known))
                await world.wait(rng.choice([1, 7, 30]))
    writes = [one for one in transport.sent if one.method != "GET" and "/nodes/" in one.path]
    return [(one.method, one.path, timeless(json.loads(one.body))) for one in writes]


@pytest.mark.parametrize("seed", range(6))
async def test_leaving_out_checks_of_unchanged_nodes_changes_no_write(certificates, monkeypatch, seed):
    found = await written(certificates, seed)
    monkeypatch.setattr(NodeHealth, "unchanged", lambda self, node: None)
    assert found
    assert await written(certificates, seed) == found
