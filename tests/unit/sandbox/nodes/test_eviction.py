"""Nodes under pressure: which pods their kubelets reject and evict."""

import pytest

from kcm_cli.machinery import codec
from kcm_cli.sandbox.nodes.eviction import CRITICAL, message, refuses, victim
from kcm_cli.sandbox.nodes.usage import Usage
from kcm_cli.sandbox.views import PODS as POD
from kcm_cli.sandbox.views import SimulatedPod
from tests.kit.world import NODES, PODS, World, resource

pytestmark = pytest.mark.cluster(nodes=1)

PRESSURE = "sandbox.kcm.dev/pressure"
TOLERATES = [{"key": "node.kubernetes.io/memory-pressure", "operator": "Exists", "effect": "NoSchedule"}]
MI = 1 << 20


def pod(name: str = "p", asked: str = "", *, qos: str = "BestEffort", **spec: object) -> SimulatedPod:
    requests = {"memory": asked} if asked else {}
    doc = {
        "metadata": {"name": name, "namespace": "default", "uid": name},
        "spec": {"containers": [{"name": "c", "resources": {"requests": requests}}], **spec},
        "status": {"phase": "Running", "qosClass": qos},
    }
    return POD.decode(codec.encode(doc))


def used(each: SimulatedPod, memory: int) -> Usage:
    return Usage(each, {"c": {"cpu": 0, "memory": memory * MI}})


@pytest.mark.parametrize(
    ("found", "pressures", "refused"),
    [
        pytest.param(pod(), (), False, id="no pressure"),
        pytest.param(pod(), ("MemoryPressure",), True, id="requests nothing"),
        pytest.param(pod(qos="Burstable"), ("MemoryPressure",), False, id="requests some"),
        pytest.param(pod(tolerations=TOLERATES), ("MemoryPressure",), False, id="tolerates it"),
        pytest.param(pod(tolerations=TOLERATES), ("MemoryPressure", "DiskPressure"), True, id="disk, too"),
        pytest.param(pod(qos="Guaranteed"), ("PIDPressure",), True, id="process ids"),
        pytest.param(pod(priority=CRITICAL), ("DiskPressure",), False, id="critical"),
    ],
)
def test_pods_that_a_node_under_pressure_rejects(found, pressures, refused):
    rejection = refuses(found, pressures)
    assert (rejection is not None) is refused
    if rejection is not None:
        assert (rejection.reason, rejection.message) == (
            "Evicted",
            f"The node had condition: [{' '.join(pressures)}]. ",
        )


@pytest.mark.parametrize(
    ("running", "resource", "name"),
    [
        pytest.param([used(pod("a", "1Gi"), 16), used(pod("b", priority=5), 16)], "memory", "b", id="beyond request"),
        pytest.param([used(pod("a", priority=5), 99), used(pod("b"), 16)], "memory", "b", id="less important"),
        pytest.param([used(pod("a", "1Gi"), 1040), used(pod("b"), 17)], "memory", "b", id="further beyond"),
        pytest.param([used(pod("a", priority=5), 99), used(pod("b", "1Gi"), 0)], "pids", "b", id="memory is no matter"),
        pytest.param([used(pod("a", priority=CRITICAL), 99)], "memory", None, id="critical"),
        pytest.param([], "memory", None, id="none"),
    ],
)
def test_who_is_evicted_first(running, resource, name):
    found = victim(running, resource)
    assert (found.pod.name if found is not None else None) == name


def test_messages_of_evictions():
    low = "The node was low on resource: "
    more = "has larger consumption of memory. "
    assert message(used(pod(), 16), "memory") == f"{low}memory. Container c was using 16Mi, request is 0, {more}"
    bit = "Container c was using 9Mi, request is 8Mi, "
    assert message(used(pod(asked="8Mi"), 9), "memory") == f"{low}memory. {bit}{more}"
    assert message(used(pod(asked="1Gi"), 16), "memory") == f"{low}memory. "
    assert message(used(pod(), 16), "ephemeral-storage") == f"{low}ephemeral-storage. "


async def press(world: World, what: str | None) -> None:
    await world.patch(NODES, "node-1", {"metadata": {"annotations": {PRESSURE: what}}})


async def memory_pressure(world: World) -> list[tuple[str, str]]:
    conditions = (await world.get(NODES, "node-1"))["status"]["conditions"]
    return [(c["status"], c["reason"]) for c in conditions if c["type"] == "MemoryPressure"]


async def test_a_node_evicts_pods_while_memory_is_short(world: World):
    asks = {"containers": [{"name": "c", "image": "nginx", "resources": {"requests": {"memory": "1Gi"}}}]}
    await world.pod("modest", asks)
    await world.pod("greedy", asks, memory="2Gi")
    await world.wait(5)
    await press(world, "memory")
    await world.wait(5)
    status = await world.status("greedy")
    text = "The node was low on resource: memory. Container c was using 2Gi, request is 1Gi, "
    text += "has larger consumption of memory. "
    assert (status["phase"], status["reason"], status["message"]) == ("Failed", "Evicted", text)
    target = await world.condition("greedy", "DisruptionTarget")
    assert (target["status"], target["reason"], target["message"]) == ("True", "TerminationByKubelet", text)
    assert ("Evicted", text) in await world.events("greedy")
    assert ("EvictionThresholdMet", "Attempting to reclaim memory") in await world.events("node-1")
    assert await memory_pressure(world) == [("True", "KubeletHasInsufficientMemory")]
    assert (await world.status("modest"))["phase"] == "Running"
    await press(world, None)
    await world.wait(30)
    assert await memory_pressure(world) == [("False", "KubeletHasSufficientMemory")]
    assert (await world.status("modest"))["phase"] == "Running"
    events = [e for e in await world.items(resource("events")) if e["involvedObject"]["name"] == "node-1"]
    counts = {each["reason"]: each["count"] for each in events}
    assert (counts["NodeHasInsufficientMemory"], counts["NodeHasSufficientMemory"]) == (1, 2)


async def test_a_pod_bound_to_a_node_under_pressure(world: World):
    await press(world, "disk")
    await world.wait(5)
    await world.pod("p")
    await world.wait(5)
    status = await world.status("p")
    text = "Pod was rejected: The node had condition: [DiskPressure]. "
    assert (status["phase"], status["reason"], status["message"]) == ("Failed", "Evicted", text)


async def test_pods_are_evicted_one_after_the_other(world: World):
    for name in ("a", "b"):
        await world.pod(name)
    await world.wait(5)
    await press(world, "pid")
    await world.wait(5)
    phases = [(await world.status(name))["phase"] for name in ("a", "b")]
    assert phases == ["Failed", "Running"]
    await world.wait(10)
    assert (await world.status("b"))["phase"] == "Failed"
    assert len(await world.items(PODS)) == 2
