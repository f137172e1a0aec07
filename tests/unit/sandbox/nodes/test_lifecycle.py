"""Pods on simulated nodes, as clients see them, on virtual time."""

import asyncio
import random
from datetime import datetime, timedelta
from itertools import chain

import pytest

from kcm_cli.api.resource import GVR
from kcm_cli.api.well_known import LEASE_NAMESPACE
from kcm_cli.machinery.times import parse_time
from kcm_cli.planning.actions import MERGE, STRATEGIC_MERGE
from kcm_cli.sandbox import snapshots
from kcm_cli.sandbox.apiserver.entry.fault import Fault
from kcm_cli.sandbox.apiserver.store import Event
from kcm_cli.sandbox.nodes import commands, shape
from kcm_cli.sandbox.nodes.agents import Agent, NodeOptions
from kcm_cli.sandbox.views import NODE_LEASES, SimulatedNode
from tests.kit.world import EPOCH, NODES, PODS, World, resource, simulated

pytestmark = pytest.mark.cluster(nodes=1)

FIELDS = ("capacity", "allocatable")
SEVENTH = {"name": "c", "image": "i", "imageID": "", "ready": True, "restartCount": 7}
LONG = [{"name": "LONG", "value": "x" * 5000}]
LEASES = resource("leases", "coordination.k8s.io")


async def test_a_pod_runs_and_becomes_ready(world: World):
    await world.pod("a")
    await world.wait()
    status = await world.status("a")
    assert status["phase"] == "Running"
    assert status["podIP"].startswith("10.244.")
    assert status["podIPs"] == [{"ip": status["podIP"]}]
    assert status["hostIPs"] == [{"ip": status["hostIP"]}]
    assert {c["type"]: c["status"] for c in status["conditions"]} == {
        "PodReadyToStartContainers": "True",
        "Initialized": "True",
        "Ready": "True",
        "ContainersReady": "True",
        "PodScheduled": "True",
    }
    (container,) = status["containerStatuses"]
    assert container["ready"] and container["started"] and container["restartCount"] == 0
    assert container["image"] == "docker.io/library/nginx:latest"


async def test_start_and_ready_delays(world: World):
    await world.pod("a", start_delay="10s", ready_delay="20s")
    await world.wait(5)
    status = await world.status("a")
    assert status["phase"] == "Pending"
    assert status["containerStatuses"][0]["state"] == {"waiting": {"reason": "ContainerCreating"}}
    assert (await world.condition("a", "PodReadyToStartContainers"))["status"] == "False"
    await world.wait(10)
    assert (await world.status("a"))["phase"] == "Running"
    assert await world.condition("a", "Ready") | {"lastTransitionTime": ""} == {
        "type": "Ready",
        "status": "False",
        "reason": "ContainersNotReady",
        "message": "containers with unready status: [c]",
        "observedGeneration": 1,
        "lastProbeTime": None,
        "lastTransitionTime": "",
    }
    await world.wait(20)
    assert (await world.condition("a", "Ready"))["status"] == "True"


@pytest.mark.parametrize(
    ("policy", "code", "phase"),
    [
        ("Never", "0", "Succeeded"),
        ("Never", "3", "Failed"),
        ("OnFailure", "0", "Succeeded"),
        ("OnFailure", "3", "Running"),
    ],
)
async def test_how_a_pod_ends(world: World, policy, code, phase):
    await world.pod("a", {"restartPolicy": policy}, run_time="30s", exit_code=code)
    await world.wait(20)
    assert (await world.status("a"))["phase"] == "Running"
    await world.wait(20)
    assert (await world.status("a"))["phase"] == phase


async def test_a_crashing_container_backs_off_longer_and_longer(world: World):
    await world.pod("a", exit_code="1")
    await world.wait(5)
    (container,) = (await world.status("a"))["containerStatuses"]
    assert container["restartCount"] == 1
    assert container["state"]["waiting"]["reason"] == "CrashLoopBackOff"
    assert container["state"]["waiting"]["message"].startswith("back-off 10s restarting failed container=c pod=a_")
    assert container["lastState"]["terminated"]["exitCode"] == 1
    assert (await world.status("a"))["phase"] == "Running"
    counts = []
    for seconds in (10, 20, 40, 80):
        await world.wait(seconds + 1)
        counts.append((await world.status("a"))["containerStatuses"][0]["restartCount"])
    assert counts == [2, 3, 4, 5]


async def test_a_number_of_failing_runs_before_a_successful_one(world: World):
    await world.pod("a", restarts="2", run_time="1s")
    await world.wait(60)
    status = await world.status("a")
    assert status["containerStatuses"][0]["restartCount"] == 2
    assert (await world.condition("a", "Ready"))["status"] == "True"


async def test_init_containers_run_one_after_the_other(world: World):
    spec = {"initContainers": [{"name": "i", "image": "x"}, {"name": "j", "image": "x"}]}
    await world.create(
        PODS,
        {
            "metadata": {
                "name": "a",
                "annotations": {"sandbox.kcm.dev/run-time.i": "10s", "sandbox.kcm.dev/run-time.j": "10s"},
            },
            "spec": {**spec, "containers": [{"name": "c", "image": "x"}]},
        },
    )
    await world.wait(5)
    status = await world.status("a")
    assert status["phase"] == "Pending"
    assert [next(iter(s["state"])) for s in status["initContainerStatuses"]] == ["running", "waiting"]
    assert status["containerStatuses"][0]["state"] == {"waiting": {"reason": "PodInitializing"}}
    initialized = await world.condition("a", "Initialized")
    assert initialized["message"] == "containers with incomplete status: [i j]"
    await world.wait(10)
    assert (await world.condition("a", "Initialized"))["message"] == "containers with incomplete status: [j]"
    await world.wait(10)
    assert (await world.status("a"))["phase"] == "Running"


async def test_deletion_waits_for_the_containers_and_reports_their_end(world: World):
    await world.pod("a", stop_time="10s")
    await world.wait()
    await world.delete(PODS, "a")
    await world.wait(5)
    assert (await world.status("a"))["phase"] == "Running"
    await world.wait(6)
    assert await world.is_deleted("a")


async def test_a_deleted_pod_exists_for_a_moment_after_its_last_status(world: World):
    await world.pod("a")
    await world.pod("b", {"containers": [{"name": "c", "image": "x", "command": ["false"]}], "restartPolicy": "Never"})
    await world.wait(2)
    await world.delete(PODS, "a")
    await world.wait(0.2)
    status = await world.status("a")
    assert status["phase"] == "Succeeded"
    assert status["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 0
    await world.wait(0.2)
    assert await world.is_deleted("a")
    await world.delete(PODS, "b")  # it had ended before
    assert await world.is_deleted("b")


async def test_a_terminating_pod_that_a_snapshot_restores_keeps_running(world: World):
    await world.pod("a", {"restartPolicy": "Never"}, run_time="20s")
    await world.wait(2)
    store = world.server.api.core.store
    before = snapshots.take(store)
    await world.delete(PODS, "a")
    await world.wait(0.1)
    assert (await world.status("a"))["phase"] == "Succeeded"
    snapshots.restore(store, before)
    await world.wait(2)
    assert (await world.status("a"))["phase"] == "Running"
    await world.wait(20)
    assert (await world.status("a"))["phase"] == "Succeeded"
    assert not await world.is_deleted("a")


async def test_no_restart_of_containers_of_a_deleted_pod_is_reported(world: World):
    failing = {"image": "x", "command": ["sh", "-c", "sleep 2; exit 3"]}
    await world.pod("a", {"containers": [{"name": "c", **failing}]})
    await world.pod("b", {"initContainers": [{"name": "c", **failing}], "containers": [{"name": "d", "image": "x"}]})
    await world.wait(6)
    fields = ("containerStatuses", "initContainerStatuses")
    for name, field in zip("ab", fields, strict=True):
        status = await world.status(name)
        assert status[field][0]["state"]["waiting"]["reason"] == "CrashLoopBackOff"
        await world.delete(PODS, name)
        await world.wait(0.1)
        status = await world.status(name)
        (container,) = status[field]
        assert (status["phase"], container["restartCount"]) == ("Failed", 1)
        runs = [container[each]["terminated"]["finishedAt"] for each in ("lastState", "state")]
        assert parse_time(runs[1]) - parse_time(runs[0]) == timedelta(seconds=2)


async def test_a_new_pod_of_the_name_of_one_that_has_ended_runs(world: World):
    await world.pod("a")
    await world.wait(2)
    await world.delete(PODS, "a")
    await world.wait(0.1)
    await world.delete(PODS, "a", grace_s=0)
    await world.pod("a")
    await world.wait(1)
    assert (await world.status("a"))["phase"] == "Running"
    await world.delete(PODS, "a")
    await world.wait(0.2)
    assert not await world.is_deleted("a")
    await world.wait(0.2)
    assert await world.is_deleted("a")


async def test_containers_that_do_not_stop_are_killed_after_the_grace_period(world: World):
    await world.pod("a", {"terminationGracePeriodSeconds": 20}, stop_time="never")
    await world.create(
        PODS,
        {
            "metadata": {"name": "b", "finalizers": ["x/y"]},
            "spec": {"terminationGracePeriodSeconds": 5, "containers": [{"name": "c", "image": "x"}]},
        },
    )
    await world.patch(PODS, "b", {"metadata": {"annotations": {"sandbox.kcm.dev/stop-time": "never"}}})
    await world.wait()
    await world.delete(PODS, "a")
    await world.delete(PODS, "b")
    await world.wait(15)
    assert not await world.is_deleted("a")
    status = await world.status("b")
    assert status["phase"] == "Failed"
    assert status["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 137
    await world.wait(6)
    assert await world.is_deleted("a")


@pytest.mark.parametrize(
    ("images", "reasons"),
    [(("I", "x"), ["ContainerStatusUnknown", "PodInitializing"]), (("x", "I"), ["Completed", "InvalidImageName"])],
)
async def test_the_first_init_container_of_a_pod_that_ends_is_lost_if_it_never_ran(world: World, images, reasons):
    inits = [{"name": f"i{at}", "image": image} for at, image in enumerate(images)]
    await world.pod("a", {"activeDeadlineSeconds": 30, "initContainers": inits})
    await world.wait(40)
    status = await world.status("a")
    assert (status["phase"], status["reason"]) == ("Failed", "DeadlineExceeded")
    shown = [status[key] for key in ("initContainerStatuses", "containerStatuses")]
    found = [next(iter(each["state"].values()))["reason"] for each in chain(*shown)]
    assert found == [*reasons, "PodInitializing"]


async def test_a_pod_that_exceeds_its_deadline_fails(world: World):
    await world.pod("a", {"activeDeadlineSeconds": 30})
    await world.wait(29)
    assert (await world.status("a"))["phase"] == "Running"
    await world.wait(3)
    status = await world.status("a")
    assert (status["phase"], status["reason"]) == ("Failed", "DeadlineExceeded")
    assert (await world.condition("a", "Ready"))["reason"] == "PodFailed"
    emitted = await world.events("a")
    assert ("DeadlineExceeded", "Pod was active on the node longer than the specified deadline") in emitted
    assert ("Killing", "Stopping container c") in emitted


async def test_readiness_gates_delay_readiness(world: World):
    await world.pod("a", {"readinessGates": [{"conditionType": "x/ready"}]})
    await world.wait()
    ready = await world.condition("a", "Ready")
    assert ready["message"] == 'corresponding condition of pod readiness gate "x/ready" does not exist.'
    body = {"status": {"conditions": [{"type": "x/ready", "status": "True"}]}}
    await world.client.patch(PODS, "default", "a", body, subresource="status")
    await world.wait()
    assert (await world.condition("a", "Ready"))["status"] == "True"
    assert (await world.condition("a", "x/ready"))["status"] == "True"


async def test_an_annotation_makes_a_running_pod_unready(world: World):
    await world.pod("a")
    await world.wait()
    await world.patch(PODS, "a", {"metadata": {"annotations": {"sandbox.kcm.dev/ready-delay": "never"}}})
    await world.wait()
    assert (await world.condition("a", "Ready"))["status"] == "False"


async def test_nothing_happens_on_a_failed_node_until_it_recovers(world: World):
    await world.pod("a", run_time="30s", exit_code="1")
    await world.wait()
    await commands.fail(world.client, "node-1")
    await world.wait()
    lease = await world.client.get_doc(LEASES, "kube-node-lease", "node-1")
    await world.delete(PODS, "a", grace_s=1)
    await world.wait(100)
    assert not await world.is_deleted("a")
    assert (await world.client.get_doc(LEASES, "kube-node-lease", "node-1"))["spec"] == lease["spec"]
    await commands.recover(world.client, "node-1")
    await world.wait(2)
    assert await world.is_deleted("a")
    assert (await world.client.get_doc(LEASES, "kube-node-lease", "node-1"))["spec"] != lease["spec"]


async def test_a_kubelet_has_the_last_word_on_its_pods(world: World):
    await world.pod("a")
    await world.wait(5)
    ready = await world.condition("a", "Ready")
    await world.patch(NODES, "node-1", {"metadata": {"annotations": {"sandbox.kcm.dev/failed": "true"}}})
    await world.wait(1)
    said = {"status": {"conditions": [{"type": "Ready", "status": "False", "reason": "NodeLost"}]}}
    await world.client.patch(PODS, "default", "a", said, content_type=STRATEGIC_MERGE, subresource="status")
    await world.wait(30)
    assert (await world.condition("a", "Ready"))["status"] == "False"
    await world.patch(NODES, "node-1", {"metadata": {"annotations": {"sandbox.kcm.dev/failed": None}}})
    await world.wait(1)
    assert await world.condition("a", "Ready") == ready


async def test_a_status_that_met_a_conflict_is_reported_again(world: World):
    await world.pod("a", {"restartPolicy": "Never"}, run_time="5s")
    await world.wait(2)
    world.server.api.faults.add(Fault("conflict", resources=("pods/status",), times=1))
    await world.wait(10)
    assert (await world.status("a"))["phase"] == "Succeeded"


@pytest.mark.parametrize("delay", ["0s", "1h"])
@pytest.mark.parametrize(
    "said",
    [
        {"phase": "Pending", "allocatedResources": {"cpu": "1"}},
        {"resources": {"requests": {"cpu": "1"}}},
        {"podIP": "10.0.0.1", "podIPs": [{"ip": "10.0.0.1"}]},
        {"hostIP": "10.0.0.1", "hostIPs": [{"ip": "10.0.0.1"}]},
        {"containerStatuses": None},
        {"containerStatuses": [SEVENTH]},
        {"initContainerStatuses": [SEVENTH], "ephemeralContainerStatuses": [SEVENTH]},
    ],
)
async def test_what_another_client_says_of_a_pod_does_not_last(world: World, said, delay):
    await world.pod("a", start_delay=delay)
    await world.wait(5)
    before = await world.status("a")
    await world.client.patch(PODS, "default", "a", {"status": said}, content_type=MERGE, subresource="status")
    await world.wait(10)
    assert await world.status("a") == before


async def test_a_condition_that_holds_again_has_no_reason(world: World):
    await world.pod("a", ready_delay="5s")
    await world.wait(2)
    assert (await world.condition("a", "Ready"))["reason"] == "ContainersNotReady"
    await world.wait(5)
    ready = await world.condition("a", "Ready")
    assert (ready["status"], ready.get("reason"), ready.get("message")) == ("True", None, None)


@pytest.mark.parametrize("rejected", [False, True])
async def test_a_pod_that_has_ended_does_not_run_again(world: World, monkeypatch, rejected):
    """An event about something else comes before the cache shows the end."""
    kubelets = world.cluster.nodes._kubelets
    write, get, seen = kubelets._client.patch, kubelets._pods.store.get, kubelets._seen
    behind = {}

    async def patch(*args, **options):
        if args[3].get("status", {}).get("phase") != "Failed":
            return await write(*args, **options)
        behind["default/a"] = get("default/a")
        answer = await write(*args, **options)
        kubelets._queue.add("default/a")
        return answer

    monkeypatch.setattr(kubelets._client, "patch", patch)
    monkeypatch.setattr(kubelets._pods.store, "get", lambda key: behind.get(key) or get(key))
    monkeypatch.setattr(kubelets, "_seen", lambda pod: None if pod.key in behind else seen(pod))
    if rejected:
        await world.pod("big", {"nodeName": "node-1", **asks("30")})
        await world.wait(2)
        await world.pod("a", {"nodeName": "node-1", **asks("30")})
        await world.wait(0.1)
        await world.delete(PODS, "big", grace_s=0)
        await world.wait(0.1)
        kubelets._queue.add("default/a")
    else:
        await world.pod("a", {"restartPolicy": "Never"})
        await world.wait(2)
        world.cluster.nodes.kill_container("default/a")
    await world.wait(3)
    assert behind.pop("default/a").status.phase != "Failed"
    status = await world.status("a")
    assert status["phase"] == "Failed"
    await world.patch(PODS, "a", {"metadata": {"labels": {"x": "y"}}})
    await world.wait(1)
    assert await world.status("a") == status
    assert not kubelets._ended
    await world.delete(PODS, "a")
    await world.wait(1)
    assert await world.is_deleted("a")


async def test_only_readiness_is_probed_while_a_pod_is_stopping(world: World):
    """kubernetes#107473, #52817."""
    probe = {"httpGet": {"port": 80}, "periodSeconds": 5, "failureThreshold": 2}
    script = ["sh", "-c", "trap 'sleep 20; exit 3' TERM; sleep infinity & wait"]
    for name, more in (("a", {}), ("b", {"command": script})):
        container = {"name": "c", "image": "x", "livenessProbe": probe, **more}
        spec = {"terminationGracePeriodSeconds": 60, "containers": [container]}
        annotations = {"sandbox.kcm.dev/failing-probes": "liveness"}
        if not more:
            annotations["sandbox.kcm.dev/stop-time"] = "20s"
        metadata = {"name": name, "finalizers": ["x/y"], "annotations": annotations}
        await world.create(PODS, {"metadata": metadata, "spec": spec})
    await world.wait(2)
    for name in "ab":
        await world.delete(PODS, name)
    await world.wait(18)
    for name in "ab":
        assert (await world.status(name))["phase"] == "Running"
        assert [reason for reason, _ in await world.events(name)].count("Unhealthy") == 1, "before"
    await world.wait(4)
    for name, code in (("a", 0), ("b", 3)):
        (container,) = (await world.status(name))["containerStatuses"]
        assert container["state"]["terminated"]["exitCode"] == code


async def test_nothing_is_kept_of_a_rejected_pod_that_is_deleted_meanwhile(world: World, monkeypatch):
    kubelets = world.cluster.nodes._kubelets
    write = kubelets._client.patch

    async def patch(*args, **options):
        world.server.store.delete(PODS.gvr, "default", "a")
        await world.wait(0.1)
        return await write(*args, **options)

    monkeypatch.setattr(kubelets._client, "patch", patch)
    await world.pod("a", {"nodeName": "node-1", **asks("99")})
    await world.wait(1)
    assert await world.is_deleted("a")
    assert not kubelets._ended


@pytest.mark.parametrize(("deleted_s", "started"), [(5, False), (15, True)])
async def test_a_container_that_is_stopped_before_it_has_started_up_does_not(world: World, deleted_s, started):
    probe = {"httpGet": {"port": 80}, "initialDelaySeconds": 10}
    await world.pod("a", {"containers": [{"name": "c", "image": "x", "startupProbe": probe}]}, stop_time="25s")
    await world.wait(deleted_s)
    await world.delete(PODS, "a")
    await world.wait(20)
    status = await world.status("a")
    assert status["phase"] == "Running"
    (container,) = status["containerStatuses"]
    assert (container["started"], container["ready"]) == (started, started)
    assert (await world.condition("a", "Ready"))["status"] == str(started)


@pytest.mark.cluster(nodes=3)
async def test_nodes_are_added_and_removed(world: World):
    assert await commands.add_some(world.client, 1) == ["node-4"]
    await world.create(NODES, {"metadata": {"name": "mine", "annotations": {"sandbox.kcm.dev/simulated": "true"}}})
    await world.wait()
    for name in ("node-1", "node-4", "mine"):
        node = await world.get(NODES, name)
        assert {c["type"]: c["status"] for c in node["status"]["conditions"]}["Ready"] == "True", name
        assert node["status"]["capacity"]["pods"] == "110"
        assert node["metadata"]["labels"]["kubernetes.io/hostname"] == name
        assert node["spec"]["podCIDR"]
        assert not node["spec"].get("taints")
    await commands.remove(world.client, "mine")
    await world.wait(30)


@pytest.mark.cluster(nodes=0)
@pytest.mark.parametrize(
    "doc",
    [
        {"status": {"images": [{"names": ["foo", "bar/"], "sizeBytes": 1}, {"names": ["@"]}, {"names": []}, {}]}},
        {"status": {"conditions": [{"type": "Ready", "status": "True"}, {"type": "PIDPressure", "status": "False"}]}},
        {"status": {"addresses": [{}, {"type": "InternalIP"}, {"address": "10.0.0.1"}], "capacity": {"cpu": "1e3"}}},
        {"spec": {"podCIDR": "10.1.2.0/30", "podCIDRs": ["10.1.2.0/30"]}},
        {"spec": {"podCIDR": "10.1.2.1/32", "podCIDRs": ["10.1.2.1/32", "fd00::/64"]}},
        {"spec": {"podCIDR": "fd00::/64", "podCIDRs": ["fd00::/64"]}},
        {"spec": {"podCIDR": "0.0.0.0/0", "podCIDRs": ["0.0.0.0/0"]}},
    ],
)
async def test_whatever_another_client_says_of_its_node_it_is_ready(world: World, doc: dict):
    await world.pod("a", {"nodeName": "mine"})
    await world.create(
        NODES, {"metadata": {"name": "mine", "annotations": {"sandbox.kcm.dev/simulated": "true"}}, **doc}
    )
    await world.wait(5)
    node = await world.get(NODES, "mine")
    assert {c["type"]: c["status"] for c in node["status"]["conditions"]}["Ready"] == "True"
    assert all(c["lastTransitionTime"] for c in node["status"]["conditions"])
    assert (await world.status("a"))["phase"] == "Running"
    assert await world.node_of("a") == "mine" and (await world.status("a"))["podIP"]


async def test_the_pods_of_a_node_that_is_added_again_keep_their_place(world: World):
    large = asks("20")
    await world.pod("a", {**large, "nodeName": "node-1"})
    await world.pod("b", {"nodeName": "node-1", "hostNetwork": True})
    await world.wait()
    before = {name: (await world.status(name))["podIP"] for name in "ab"}
    await commands.remove(world.client, "node-1")
    await world.wait()
    await commands.add(world.client, "node-1")
    for name in "cd":
        await world.pod(name, {"nodeName": "node-1"})
    await world.pod("e", {**large, "nodeName": "node-1"})
    await world.wait(2)
    assert {name: (await world.status(name))["podIP"] for name in "ab"} == before
    assert len({(await world.status(name))["podIP"] for name in "abcd"}) == 4
    assert (await world.status("e"))["reason"] == "OutOfcpu"
    await world.delete(PODS, "a")
    await world.wait()
    await world.pod("f", {**large, "nodeName": "node-1"})
    await world.wait()
    assert (await world.status("f"))["phase"] == "Running"


async def test_the_pods_of_a_node_that_is_added_again_have_its_new_address(world: World):
    await world.pod("a", {"nodeName": "node-1"})
    await world.wait()
    await commands.remove(world.client, "node-1")
    for name in ("other", "node-1"):  # the first one gets the address
        await commands.add(world.client, name)
        await world.wait()
    addresses = (await world.get(NODES, "node-1"))["status"]["addresses"]
    host = next(each["address"] for each in addresses if each["type"] == "InternalIP")
    status = await world.status("a")
    assert (status["hostIP"], status["hostIPs"]) == (host, [{"ip": host}])
    await world.delete(PODS, "a")
    await world.wait(5)
    assert await world.is_deleted("a")


async def test_a_node_that_is_added_again_goes_on_with_a_deferred_resize(world: World):
    await world.pod("a", asks("10"))
    await world.pod("b", asks("20"))
    await world.wait()
    await resize(world, "a", "15")
    await world.wait()
    assert (await world.condition("a", "PodResizePending"))["reason"] == "Deferred"
    await commands.remove(world.client, "node-1")
    await world.wait()
    await commands.add(world.client, "node-1")
    await world.wait()
    await world.delete(PODS, "b")
    await world.wait(5)
    assert await world.condition("a", "PodResizePending") == {}
    assert (await world.status("a"))["containerStatuses"][0]["resources"]["requests"] == {"cpu": "15"}


@pytest.mark.cluster(alone=True)
async def test_a_restarted_kubelet_gives_no_address_twice(world: World):
    await world.create(NODES, shape.node_doc("node-1", 1))
    for name in "abcd":  # "a" was waiting for a volume
        await world.pod(name, {"nodeName": "node-1"})
    for number, name in enumerate("bcd", 2):
        address, phase = f"10.244.1.{number}", "Succeeded" if name == "d" else "Running"
        status = {"phase": phase, "podIP": address, "podIPs": [{"ip": address}], "startTime": "2026-01-01T00:00:00Z"}
        await world.client.patch(PODS, "default", name, {"status": status}, content_type=MERGE, subresource="status")
    cluster = simulated(world.server.transport(), world.clock, random.Random(1), NodeOptions(1))
    async with cluster.running():
        await world.wait()
        assert [(await world.status(name))["podIP"] for name in "abc"] == [f"10.244.1.{one}" for one in (4, 2, 3)]


async def test_a_pod_that_is_bound_before_its_node_comes_runs(world: World):
    zoned = {"topology.kubernetes.io/region": "sandbox", "kubernetes.io/hostname": "late"}
    await world.pod("a", {"nodeName": "late", "nodeSelector": zoned})
    await world.pod("b", {**asks("40"), "nodeName": "late"})
    await world.wait()
    await commands.add(world.client, "late")
    await world.wait()
    assert (await world.status("a"))["phase"] == "Running"
    assert (await world.status("b"))["reason"] == "OutOfcpu"


@pytest.mark.cluster(ranged=False)
async def test_pods_wait_for_the_addresses_of_their_node(world: World):
    await world.pod("a", {"nodeName": "node-1"})
    await world.wait()
    assert (await world.status("a"))["phase"] == "Pending"
    await world.patch(NODES, "node-1", {"spec": {"podCIDR": "10.244.7.0/24", "podCIDRs": ["10.244.7.0/24"]}})
    await world.wait()
    assert (await world.status("a"))["podIP"].startswith("10.244.7.")


async def test_pods_without_a_free_address_wait(world: World):
    names = [f"p{number}" for number in range(3)]
    for name in names:
        await world.pod(name)
    await world.wait()
    assert len({(await world.status(name))["podIP"] for name in names}) == 3


async def test_a_kubelet_rejects_what_its_node_has_no_room_for(world: World):
    spec = {
        "nodeName": "node-1",
        "containers": [{"name": "c", "image": "x", "resources": {"requests": {"cpu": "20"}}}],
    }
    await world.pod("a", dict(spec))
    await world.wait()
    await world.pod("b", dict(spec))
    await world.wait()
    status = await world.status("b")
    assert (status["phase"], status["reason"]) == ("Failed", "OutOfcpu")
    assert status["message"] == (
        "Pod was rejected: Node didn't have enough resource: cpu, requested: 20000, used: 20000, capacity: 32000"
    )
    assert (await world.status("a"))["phase"] == "Running"


@pytest.mark.parametrize(
    ("spec", "reason", "message"),
    [
        ({"os": {"name": "windows"}}, "PodOSNotSupported", "Failed to admit pod as the OS field doesn't match node OS"),
        (
            {"labels": {"kubernetes.io/os": "windows"}},
            "PodOSSelectorNodeLabelDoesNotMatch",
            "Failed to admit pod as the `kubernetes.io/os` label doesn't match node label",
        ),
        (
            {"securityContext": {"sysctls": [{"name": "kernel/msgmax", "value": "1"}]}},
            "SysctlForbidden",
            'forbidden sysctl: "kernel.msgmax" not allowlisted',
        ),
        ({"securityContext": {"sysctls": [{"name": "net/ipv4/tcp_syncookies", "value": "1"}]}}, "", ""),
    ],
)
async def test_a_kubelet_rejects_what_its_node_cannot_do(world: World, spec, reason, message):
    await world.pod("a", {**spec, "nodeName": "node-1"})
    await world.wait()
    status = await world.status("a")
    if reason:
        assert (status["phase"], status["reason"]) == ("Failed", reason)
        assert status["message"] == f"Pod was rejected: {message}"
    else:
        assert status["phase"] == "Running"


@pytest.mark.parametrize(
    ("script", "more", "message"),
    [
        ("printf DONE > /dev/termination-log", {}, "DONE"),
        ("echo a > /dev/own; echo b > /dev/termination-log", {"terminationMessagePath": "/dev/own"}, "a\n"),
        ("echo log; exit 1", {}, None),
        ("echo log; exit 1", {"terminationMessagePolicy": "FallbackToLogsOnError"}, "log\n"),
        (
            r"for i in $(seq 99); do printf 'x\r'; done; exit 1",
            {"terminationMessagePolicy": "FallbackToLogsOnError"},
            "x\r" * 99,
        ),
        ("echo log", {"terminationMessagePolicy": "FallbackToLogsOnError"}, None),
        (
            "echo log; printf DONE > /dev/termination-log; exit 1",
            {"terminationMessagePolicy": "FallbackToLogsOnError"},
            "DONE",
        ),
        ('echo "$LONG" > /dev/termination-log', {"env": LONG}, "x" * 4096),
        ('echo "$LONG"; exit 1', {"env": LONG, "terminationMessagePolicy": "FallbackToLogsOnError"}, "x" * 2047 + "\n"),
    ],
)
async def test_termination_messages(world: World, script, more, message):
    await world.pod("a", {"restartPolicy": "Never", **command("sh", "-c", script, **more)})
    await world.wait(2)
    (container,) = (await world.status("a"))["containerStatuses"]
    assert container["state"]["terminated"].get("message") == message


async def test_the_termination_messages_of_many_containers_are_shorter(world: World):
    """So that the status of a pod stays small: 12 KiB for all."""
    script = 'printf "%s" "$LONG" > /dev/termination-log'
    one = {**command("sh", "-c", script, env=LONG)["containers"][0]}
    await world.pod("a", {"restartPolicy": "Never", "containers": [{**one, "name": f"c{n}"} for n in range(7)]})
    await world.wait(5)
    found = [each["state"]["terminated"]["message"] for each in (await world.status("a"))["containerStatuses"]]
    assert found == ["x" * (12 * 1024 // 7)] * 7


@pytest.mark.parametrize(
    ("words", "more", "phase"),
    [
        (["sh"], {}, "Succeeded"),
        (["/bin/bash"], {}, "Succeeded"),
        (["cat"], {}, "Succeeded"),
        (["sh", "-c", "cat; exit 3"], {}, "Failed"),
        (["cat"], {"stdin": True}, "Running"),
        (["cat"], {"tty": True}, "Running"),
        (["sh"], {"stdin": True, "tty": True}, "Running"),
    ],
)
async def test_a_program_without_an_input_reads_its_end(world: World, words, more, phase):
    await world.pod("a", {"restartPolicy": "Never", **command(*words, **more)})
    await world.wait(5)
    assert (await world.status("a"))["phase"] == phase


async def test_a_new_image_restarts_the_container_at_once(world: World):
    await world.pod("a")
    await world.wait(5)
    await world.client.patch(PODS, "default", "a", {"spec": {"containers": [{"name": "c", "image": "nginx:2"}]}})
    await world.wait()
    (container,) = (await world.status("a"))["containerStatuses"]
    assert (container["restartCount"], container["image"]) == (1, "docker.io/library/nginx:2")
    assert container["ready"]
    assert ("Killing", "Container c definition changed, will be restarted") in await world.events("a")


async def test_a_new_image_of_an_init_container_restarts_sidecars_only(world: World):
    inits = [{"name": "s", "image": "s:1", "restartPolicy": "Always"}, {"name": "i", "image": "i:1"}]
    await world.pod("a", {"initContainers": inits}, **{"run-time.i": "60s"})
    await world.wait(5)
    changes = {"spec": {"initContainers": [{"name": each["name"], "image": "n:2"} for each in inits]}}
    await world.client.patch(PODS, "default", "a", changes)
    await world.wait()
    assert [each["restartCount"] for each in (await world.status("a"))["initContainerStatuses"]] == [1, 0]
    texts = [text for reason, text in await world.events("a") if reason == "Killing"]
    assert texts == ["Init container s definition changed"]


@pytest.mark.parametrize("resizes", [False, True])
async def test_a_changed_container_does_not_wait_for_its_backoff(world: World, resizes):
    await world.pod("a", asks("1") | {"restartPolicy": "OnFailure"}, exit_code="1", run_time="1s")
    await world.wait(300)
    (container,) = (await world.status("a"))["containerStatuses"]
    count = container["restartCount"]
    assert container["state"]["waiting"]["message"].startswith("back-off 2m40s")
    if resizes:
        await resize(world, "a", "2")
    else:
        await world.client.patch(PODS, "default", "a", {"spec": {"containers": [{"name": "c", "image": "nginx:2"}]}})
    await world.wait(0.5)
    (container,) = (await world.status("a"))["containerStatuses"]
    assert (container["restartCount"], list(container["state"])) == (count + 1, ["running"])
    await world.wait(2)
    (container,) = (await world.status("a"))["containerStatuses"]
    assert container["state"]["waiting"]["message"].startswith("back-off 10s")


async def test_events_of_kubelets(world: World):
    await world.pod("a", exit_code="1")
    await world.wait(5)
    emitted = await world.events("a")
    assert ("Started", "Container started") in emitted
    assert [reason for reason, _ in emitted].count("BackOff") == 1


@pytest.mark.cluster(heartbeat_s=10)
async def test_images_are_pulled_once_and_listed_by_the_node(world: World):
    image = "registry.example.com/app:1"
    for name in ("a", "b"):
        await world.pod(name, {"containers": [{"name": "c", "image": image}]})
        await world.wait(1)
    reasons = {name: [reason for reason, _ in await world.events(name)] for name in ("a", "b")}
    assert reasons["a"] == ["Scheduled", "Pulling", "Pulled", "Created", "Started"]
    assert reasons["b"] == ["Scheduled", "Pulled", "Created", "Started"]
    text = f'Container image "{image}" already present on machine and can be accessed by the pod'
    assert ("Pulled", text) in await world.events("b")
    await world.wait(11)
    status = (await world.get(NODES, "node-1"))["status"]
    (emitted,) = status["images"]
    assert {parse_time(each["lastHeartbeatTime"]) > EPOCH + timedelta(seconds=5) for each in status["conditions"]} == {
        True
    }
    assert emitted["names"][1] == image
    assert emitted["names"][0].startswith("registry.example.com/app@sha256:")
    assert any(f"Image size: {emitted['sizeBytes']} bytes." in message for _, message in await world.events("a"))


async def test_an_init_container_counts_as_started_while_it_runs(world: World):
    init = {"name": "i", "image": "i", "command": ["sleep", "5"]}
    await world.pod("a", {"initContainers": [init]})
    await world.wait(2)
    (status,) = (await world.status("a"))["initContainerStatuses"]
    assert (status["started"], status["ready"]) == (True, False) and "running" in status["state"]
    await world.wait(6)
    (status,) = (await world.status("a"))["initContainerStatuses"]
    assert (status["started"], status["ready"]) == (False, True)


async def test_an_ephemeral_container_runs_with_the_others(world: World):
    await world.pod("a", ready_delay="never")
    await world.wait(5)
    debug = {"name": "debug", "image": "busybox", "terminationMessagePolicy": "File", "imagePullPolicy": "Always"}
    await world.client.patch(
        PODS,
        "default",
        "a",
        {"spec": {"ephemeralContainers": [debug]}},
        content_type=STRATEGIC_MERGE,
        subresource="ephemeralcontainers",
    )
    await world.wait(5)
    (status,) = (await world.status("a"))["ephemeralContainerStatuses"]
    assert status["state"]["running"]["startedAt"] == "2026-01-01T00:00:06Z"
    assert (status["ready"], status["restartCount"], "started" in status) == (False, 0, False)
    assert (await world.condition("a", "ContainersReady"))["message"] == "containers with unready status: [c]"
    assert ("Started", "Container started") in await world.events("a")
    await world.delete(PODS, "a")
    await world.wait(1)
    assert await world.is_deleted("a")


def asks(cpu: str, **more) -> dict:
    return {"containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}, **more}]}


async def resize(world: World, name: str, cpu: str) -> None:
    body = {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": cpu}}}]}}
    await world.client.patch(PODS, "default", name, body, content_type=STRATEGIC_MERGE, subresource="resize")


async def test_a_pod_is_resized_in_place(world: World):
    await world.pod("a", asks("1"))
    await world.wait(1)
    await resize(world, "a", "3")
    await world.wait(1)
    status = await world.status("a")
    (container,) = status["containerStatuses"]
    assert container["allocatedResources"] == container["resources"]["requests"] == {"cpu": "3"}
    assert (container["restartCount"], status["allocatedResources"]) == (0, {"cpu": "3"})
    text = '{"containers":[{"name":"c","resources":{"requests":{"cpu":"3"}}}],"generation":2}'
    emitted = await world.events("a")
    assert ("ResizeStarted", f"Pod resize started: {text}") in emitted
    assert ("ResizeCompleted", f"Pod resize completed: {text}") in emitted


async def test_a_reverted_resize_is_no_longer_deferred(world: World):
    for name in ("a", "b"):
        await world.pod(name, asks("16"))
    await world.wait(1)
    await resize(world, "a", "20")
    await world.wait(1)
    assert (await world.condition("a", "PodResizePending"))["reason"] == "Deferred"
    await resize(world, "a", "16")
    await world.wait(1)
    assert await world.condition("a", "PodResizePending") == {}
    assert (await world.status("a"))["observedGeneration"] == 3


async def test_a_container_that_cannot_be_resized_in_place_is_restarted(world: World):
    await world.pod("a", asks("1", resizePolicy=[{"resourceName": "cpu", "restartPolicy": "RestartContainer"}]))
    await world.wait(1)
    await resize(world, "a", "2")
    await world.wait(1)
    (container,) = (await world.status("a"))["containerStatuses"]
    assert container["restartCount"] == 1
    assert "running" in container["state"]
    assert ("Killing", "Container c resize requires restart") in await world.events("a")


async def test_a_resize_waits_until_there_is_room(world: World):
    for name in ("a", "b"):
        await world.pod(name, asks("16"))
    await world.wait(1)
    await resize(world, "a", "20")
    await world.wait(1)
    condition = await world.condition("a", "PodResizePending")
    message = "Node didn't have enough resource: cpu, requested: 20000, used: 16000, capacity: 32000"
    assert (condition["status"], condition["reason"], condition["message"]) == ("True", "Deferred", message)
    (container,) = (await world.status("a"))["containerStatuses"]
    assert container["allocatedResources"] == {"cpu": "16"}
    (text,) = [text for reason, text in await world.events("a") if reason == "ResizeDeferred"]
    assert text.startswith('Pod resize OutOfcpu: {"containers":[{"name":"c"') and "Node didn't have enough" in text
    await world.delete(PODS, "b")
    await world.wait(1)
    assert await world.condition("a", "PodResizePending") == {}
    (container,) = (await world.status("a"))["containerStatuses"]
    assert container["allocatedResources"] == {"cpu": "20"}


async def test_a_resize_of_a_pod_as_a_whole_that_waits_does_so_after_a_restart(world: World):
    for name in ("a", "b"):
        await world.pod(name, {"resources": {"requests": {"cpu": "16"}}})
    await world.wait()
    body = {"spec": {"resources": {"requests": {"cpu": "20"}}}}
    await world.client.patch(PODS, "default", "a", body, content_type=MERGE, subresource="resize")
    await world.wait()
    assert (await world.condition("a", "PodResizePending"))["reason"] == "Deferred"
    version = int((await world.get(PODS, "a"))["metadata"]["resourceVersion"])
    world.cluster.nodes.restored({"default/a": version})
    await world.patch(PODS, "a", {"metadata": {"annotations": {"example.com/a": "b"}}})
    await world.wait(200)
    assert (await world.condition("a", "PodResizePending"))["reason"] == "Deferred"
    assert (await world.status("a"))["allocatedResources"] == {"cpu": "16"}
    await world.delete(PODS, "b")
    await world.wait()
    assert await world.condition("a", "PodResizePending") == {}
    assert (await world.status("a"))["allocatedResources"] == {"cpu": "20"}


async def test_the_pod_with_the_highest_priority_is_resized_first(world: World):
    classes = resource("priorityclasses", "scheduling.k8s.io", namespaced=False)
    await world.create(classes, {"metadata": {"name": "high"}, "value": 9})
    names = {"a": {}, "b": {"priorityClassName": "high"}, "c": {}, "d": {}}
    for name, more in names.items():
        await world.pod(name, {**asks("8"), **more})
    await world.wait(1)
    for name in ("c", "b", "a"):
        await resize(world, name, "12")
        await world.wait(1)
    await world.delete(PODS, "d")
    await world.wait(2)
    got = {name: (await world.status(name))["containerStatuses"][0]["allocatedResources"]["cpu"] for name in "abc"}
    assert got == {"a": "8", "b": "12", "c": "12"}
    await resize(world, "c", "4")
    await world.wait(1)
    assert (await world.status("a"))["containerStatuses"][0]["allocatedResources"]["cpu"] == "12"


async def test_resources_and_users_of_containers_are_reported(world: World):
    spec = {
        "containers": [
            {"name": "a", "image": "i", "resources": {"requests": {"cpu": "100m", "ephemeral-storage": "1Gi"}}},
            {
                "name": "b",
                "image": "i",
                "resources": {"requests": {"cpu": "200m", "memory": "1Gi"}, "limits": {"memory": "2Gi"}},
                "securityContext": {"runAsUser": 7},
            },
        ],
        "initContainers": [{"name": "i", "image": "i", "resources": {"requests": {"cpu": "1"}}}],
        "securityContext": {"runAsUser": 5, "runAsGroup": 6, "fsGroup": 9, "supplementalGroups": [8]},
    }
    await world.pod("p", spec)
    await world.wait(1)
    status = await world.status("p")
    assert status["allocatedResources"] == {"cpu": "1", "memory": "1Gi", "ephemeral-storage": "1Gi"}
    assert status["resources"] == {"requests": {"cpu": "1", "memory": "1Gi"}}
    users = {each["name"]: each["user"]["linux"] for each in status["containerStatuses"]}
    assert users["a"] == {"uid": 5, "gid": 6, "supplementalGroups": [6, 8, 9]}
    assert users["b"]["uid"] == 7


async def test_events_of_nodes(world: World):
    await world.patch(NODES, "node-1", {"spec": {"unschedulable": True}})
    await world.wait(1)
    await world.patch(NODES, "node-1", {"spec": {"unschedulable": None}})
    await world.wait(1)
    found = [event for event in await world.items(resource("events")) if event["involvedObject"]["kind"] == "Node"]
    assert [event["reason"] for event in found] == [
        "Starting",
        "NodeHasSufficientMemory",
        "NodeHasNoDiskPressure",
        "NodeHasSufficientPID",
        "NodeReady",
        "NodeNotSchedulable",
        "NodeSchedulable",
    ]
    assert found[0]["involvedObject"] == {"kind": "Node", "name": "node-1", "uid": "node-1"}
    assert found[4]["message"] == "Node node-1 status is now: NodeReady"


async def test_the_usage_of_pods_causes_no_pressure(world: World):
    await world.pod("a", {"containers": [{"name": "c", "image": "i"}]}, memory="300Gi")
    await world.wait(120)
    node = await world.get(NODES, await world.node_of("a"))
    pressure = {c["type"]: c["status"] for c in node["status"]["conditions"] if c["type"].endswith("Pressure")}
    assert pressure == {"MemoryPressure": "False", "DiskPressure": "False", "PIDPressure": "False"}
    assert (await world.status("a"))["phase"] == "Running"


async def test_the_capacity_annotation_sets_the_capacity(world: World):
    text = "cpu=2, pods=3,example.com/gpu=4,x=?,memory=-1,example.com/half=0.5"
    size = {"sandbox.kcm.dev/simulated": "true", "sandbox.kcm.dev/capacity": text}
    await world.create(NODES, {"metadata": {"name": "small", "annotations": size}})
    await world.wait()
    capacity = (await world.get(NODES, "small"))["status"]["capacity"]
    assert (capacity["cpu"], capacity["pods"], capacity["example.com/gpu"]) == ("2", "3", "4")
    assert "x" not in capacity and capacity["memory"] == "256Gi"


@pytest.mark.cluster(heartbeat_s=10)
async def test_resources_that_clients_add_are_allocatable(world: World):
    async def sizes() -> list[dict]:
        status = (await world.get(NODES, "node-1"))["status"]
        return [
            {name: size for name, size in status[field].items() if "/" in name or name == "odd"} for field in FIELDS
        ]

    async def ask(text: str | None) -> None:
        patch: dict = {"metadata": {"annotations": {"sandbox.kcm.dev/capacity": text}}}
        await world.client.patch(NODES, "", "node-1", patch, content_type=MERGE)
        await world.wait()

    more = {"status": {"capacity": {"example.com/dongle": "1000"}}}
    await world.client.patch(NODES, "", "node-1", more, content_type=MERGE, subresource="status")
    await world.wait()
    assert await sizes() == [{"example.com/dongle": "1k"}] * 2
    await ask("cpu=8000m,example.com/gpu=2")
    assert await sizes() == [{"example.com/dongle": "1k", "example.com/gpu": "2"}] * 2
    more = {"status": {"capacity": {"odd": "1"}}}
    await world.client.patch(NODES, "", "node-1", more, content_type=MERGE, subresource="status")
    await world.wait()
    version = (await world.get(NODES, "node-1"))["metadata"]["resourceVersion"]
    await world.wait(60)
    assert (await world.get(NODES, "node-1"))["metadata"]["resourceVersion"] == version, "nothing to report"
    await ask(None)
    assert await sizes() == [{"example.com/dongle": "1k", "odd": "1"}] * 2
    less: dict = {"status": {"capacity": {"example.com/dongle": None, "odd": None}}}
    await world.client.patch(NODES, "", "node-1", less, content_type=MERGE, subresource="status")
    await world.wait()
    assert await sizes() == [{}, {}]


async def test_an_invalid_annotation_is_reported_and_ignored(world: World):
    await world.pod("a", start_delay="soon")
    await world.wait()
    assert (await world.status("a"))["phase"] == "Running"
    text = 'sandbox.kcm.dev/start-delay: time: invalid duration "soon"'
    assert ("InvalidAnnotation", text) in await world.events("a")


async def test_an_annotation_that_becomes_invalid_is_reported_once(world: World):
    await world.pod("a")
    await world.wait()
    for name, value in (("run-time", "later"), ("run-time", "later"), ("ready-delay", "1s"), ("run-time", "now")):
        await world.patch(PODS, "a", {"metadata": {"annotations": {f"sandbox.kcm.dev/{name}": value}}})
        await world.wait()
    assert (await world.status("a"))["phase"] == "Running"
    emitted = [text for reason, text in await world.events("a") if reason == "InvalidAnnotation"]
    assert [text.rpartition(" ")[2] for text in emitted] == ['"later"', '"now"']


def command(*words: str, **more: object) -> dict:
    return {"containers": [{"name": "c", "image": "busybox", "command": list(words), **more}]}


@pytest.mark.parametrize(
    ("policy", "script", "phase", "code"),
    [
        ("Never", "sleep 5; exit 3", "Failed", 3),
        ("Never", "sleep 5", "Succeeded", 0),
        ("OnFailure", "sleep 5 || exit 1", "Succeeded", 0),
    ],
)
async def test_a_command_decides_when_and_how_a_container_ends(world: World, policy, script, phase, code):
    await world.pod("a", {"restartPolicy": policy, **command("sh", "-c", script)})
    await world.wait(4)
    assert (await world.status("a"))["phase"] == "Running"
    await world.wait(3)
    status = await world.status("a")
    assert (status["phase"], status["containerStatuses"][0]["state"]["terminated"]["exitCode"]) == (phase, code)


async def test_a_command_that_fails_is_restarted_with_a_backoff(world: World):
    env = [{"name": "CODE", "value": "7"}]
    for name, policy in (("a", "Always"), ("b", "OnFailure")):
        await world.pod(name, {"restartPolicy": policy, **command("sh", args=["-c", "exit $(CODE)"], env=env)})
    await world.wait(5)
    for name in ("a", "b"):
        (container,) = (await world.status(name))["containerStatuses"]
        assert container["state"]["waiting"]["reason"] == "CrashLoopBackOff"
        assert (container["restartCount"], container["lastState"]["terminated"]["exitCode"]) == (1, 7)


def waiting(status: dict) -> dict:
    return status["containerStatuses"][0]["state"]["waiting"]


SECRETS, CONFIG_MAPS = resource("secrets"), resource("configmaps")


async def test_a_missing_secret_or_key_prevents_a_container_from_starting(world: World):
    ref = {"secretKeyRef": {"name": "s", "key": "k"}}
    await world.pod("a", command("serve", env=[{"name": "A", "valueFrom": ref}]))
    await world.pod("b", command("serve", envFrom=[{"configMapRef": {"name": "m"}}]))
    await world.pod("c", command("serve", envFrom=[{"secretRef": {"name": "s", "optional": True}}]))
    await world.wait(5)
    reason = "CreateContainerConfigError"
    assert waiting(await world.status("a")) == {"reason": reason, "message": 'secret "s" not found'}
    assert waiting(await world.status("b")) == {"reason": reason, "message": 'configmap "m" not found'}
    assert [(await world.status(name))["phase"] for name in "abc"] == ["Pending", "Pending", "Running"]
    assert ("Failed", 'Error: secret "s" not found') in await world.events("a")
    await world.create(SECRETS, {"metadata": {"name": "s"}})
    await world.create(CONFIG_MAPS, {"metadata": {"name": "m"}})
    await world.wait(2)
    assert waiting(await world.status("a"))["message"] == "couldn't find key k in Secret default/s"
    assert (await world.status("b"))["phase"] == "Running"
    await world.patch(SECRETS, "s", {"stringData": {"k": "v"}})
    await world.wait(2)
    status = await world.status("a")
    assert (status["phase"], status["containerStatuses"][0]["restartCount"]) == ("Running", 0)


async def test_waiting_pods_are_looked_at_for_what_they_refer_to(world: World, monkeypatch):
    """300 that wait for a Secret took 24 ms for each change of a ConfigMap."""
    part = {"sources": [{"configMap": {"name": "a"}}, {"secret": {"name": "b"}}]}
    volumes = {
        "c": {"configMap": {"name": "c"}},
        "d": {"secret": {"secretName": "d"}},
        "e": {"projected": part},
        "f": {"persistentVolumeClaim": {"claimName": "f"}},
    }
    for name, volume in volumes.items():
        await world.pod(name, {"nodeName": "node-1", "volumes": [{"name": "v", **volume}]})
    refs = [{"configMapRef": {"name": "g"}}, {"secretRef": {"name": "h"}}]
    await world.pod("g", {"containers": [{"name": "c", "image": "x", "envFrom": refs}]})
    ref = {"valueFrom": {"secretKeyRef": {"name": "i", "key": "k"}}}
    await world.pod("i", {"containers": [{"name": "c", "image": "x", "env": [{"name": "I", **ref}]}]})
    await world.wait(200)  # until they are tried again rarely
    kubelets, looked = world.cluster.nodes._kubelets, []
    play = kubelets._play

    async def noted(key, pod, life):
        looked.append(pod.name)
        await play(key, pod, life)

    monkeypatch.setattr(kubelets, "_play", noted)
    expected = {"a": "e", "c": "c", "g": "g", "x": ""}
    for name, pod in expected.items():
        looked.clear()
        await world.create(CONFIG_MAPS, {"metadata": {"name": name}})
        await world.wait(0.01)
        assert "".join(sorted(set(looked))) == pod, name
    for name, pod in {"b": "e", "d": "d", "h": "g", "i": "i", "c": "", "f": ""}.items():
        looked.clear()
        await world.create(SECRETS, {"metadata": {"name": name}})
        await world.wait(0.01)
        assert "".join(sorted(set(looked))) == pod, name
    looked.clear()
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    await world.create(resource("persistentvolumeclaims"), {"metadata": {"name": "f"}, "spec": claim})
    await world.wait(0.01)
    assert looked == ["f"]
    for name in volumes:
        await world.delete(PODS, name)
    await world.delete(PODS, "i")
    await world.wait(1)
    assert not kubelets._awaited and not kubelets._waiting


async def test_a_volume_of_a_missing_object_prevents_a_pod_from_starting(world: World):
    secret = {"name": "v", "secret": {"secretName": "s", "items": [{"key": "k", "path": "k"}]}}
    await world.pod("a", {"volumes": [secret]})
    await world.pod("b", {"volumes": [{"name": "v", "projected": {"sources": [{"configMap": {"name": "m"}}]}}]})
    await world.wait(5)
    for name, problem in (("a", 'secret "s" not found'), ("b", 'configmap "m" not found')):
        status = await world.status(name)
        assert (status["phase"], waiting(status)) == ("Pending", {"reason": "ContainerCreating"})
        assert ("FailedMount", f'MountVolume.SetUp failed for volume "v" : {problem}') in await world.events(name)
    both = [{"configMap": {"name": "m"}}, {"secret": {"name": "s"}}]
    await world.pod("c", {"volumes": [{"name": "w", "projected": {"sources": both}}, {**secret, "name": "u"}]})
    await world.wait(2)
    for volume, problem in (
        ("w", '[configmap "m" not found, secret "s" not found]'),
        ("u", 'secret "s" not found'),
    ):
        text = f'MountVolume.SetUp failed for volume "{volume}" : {problem}'
        assert ("FailedMount", text) in await world.events("c")
    await world.delete(PODS, "c")
    await world.create(SECRETS, {"metadata": {"name": "s"}})
    await world.create(CONFIG_MAPS, {"metadata": {"name": "m"}})
    await world.wait(5)
    assert (await world.status("b"))["phase"] == "Running"
    text = 'MountVolume.SetUp failed for volume "v" : references non-existent secret key: k'
    assert ("FailedMount", text) in await world.events("a")
    await world.patch(SECRETS, "s", {"stringData": {"k": "v"}})
    await world.wait(2)
    assert (await world.status("a"))["phase"] == "Running"


async def test_a_command_finds_what_it_has_waited_for(world):
    script = '[ "$(cat /v/mode)" = "$MODE" ] && exit 3; exit 4'
    container = {"name": "c", "image": "i", "command": ["sh", "-c", script]}
    container["volumeMounts"] = [{"name": "v", "mountPath": "/v"}]
    container["env"] = [{"name": "MODE", "valueFrom": {"configMapKeyRef": {"name": "m", "key": "mode"}}}]
    volumes = [{"name": "v", "configMap": {"name": "m"}}]
    await world.pod("a", {"containers": [container], "volumes": volumes, "restartPolicy": "Never"})
    await world.wait(10)
    assert (await world.status("a"))["phase"] == "Pending"
    await world.create(resource("configmaps"), {"metadata": {"name": "m"}, "data": {"mode": "fail fast"}})
    await world.wait(5)
    (ended,) = (await world.status("a"))["containerStatuses"]
    assert ended["state"]["terminated"]["exitCode"] == 3


async def test_a_container_that_is_restarted_finds_what_its_volumes_hold_then(world):
    container = {"name": "c", "image": "i"}
    container["command"] = ["sh", "-c", '[ "$(cat /v/mode)" = good ] || exit 1; sleep 1000']
    container["volumeMounts"] = [{"name": "v", "mountPath": "/v"}]
    beside = {**container, "name": "d", "command": ["sh", "-c", '[ "$(cat /v/mode)" = bad ] || exit 1; sleep 1000']}
    await world.create(CONFIG_MAPS, {"metadata": {"name": "m"}, "data": {"mode": "bad"}})
    volumes = [{"name": "v", "configMap": {"name": "m"}}]
    await world.pod("a", {"containers": [container, beside], "volumes": volumes})
    await world.wait(20)
    crashing, running = (await world.status("a"))["containerStatuses"]
    assert (crashing["restartCount"], running["restartCount"]) == (2, 0)
    await world.patch(CONFIG_MAPS, "m", {"data": {"mode": "good"}})
    await world.wait(100)
    good, running = (await world.status("a"))["containerStatuses"]
    assert (good["restartCount"], good["ready"]) == (3, True)
    assert (running["restartCount"], running["ready"]) == (0, True)  # it has looked before


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("", "missing value for PART"),
        ("/tmp", "error SubPath `a//tmp` must not be an absolute path"),
        ("..", "unable to provision SubPath `a/..`: must not contain '..'"),
    ],
)
async def test_a_part_of_a_volume_that_cannot_be_mounted(world, value, message):
    container = {"name": "c", "image": "i", "env": [{"name": "PART", "value": value}]}
    expression = "$(PART)" if value == "/tmp" else "a/$(PART)"
    container["volumeMounts"] = [{"name": "v", "mountPath": "/v", "subPathExpr": expression}]
    await world.pod("a", {"containers": [container], "volumes": [{"name": "v", "emptyDir": {}}]})
    await world.wait(5)
    reason = {"reason": "CreateContainerConfigError", "message": message.replace("a//tmp", "/tmp")}
    assert waiting(await world.status("a")) == reason


async def test_a_command_finds_what_init_containers_have_left(world):
    init = {"name": "i", "image": "i", "command": ["sh", "-c", "mkdir -p /w/d; echo x > /w/d/x"]}
    init["volumeMounts"] = [{"name": "v", "mountPath": "/w"}]
    container = {"name": "c", "image": "i", "command": ["sh", "-c", "[ -s /d/x ] && exit 3; exit 4"]}
    container["volumeMounts"] = [{"name": "v", "mountPath": "/d", "subPath": "d"}]
    spec = {"initContainers": [init], "containers": [container], "volumes": [{"name": "v", "emptyDir": {}}]}
    await world.pod("a", {**spec, "restartPolicy": "Never"})
    await world.wait(5)
    (ended,) = (await world.status("a"))["containerStatuses"]
    assert ended["state"]["terminated"]["exitCode"] == 3


@pytest.mark.parametrize("first", [["fetch-page"], None])
async def test_files_of_unknown_init_containers_are_unknown(world, first):
    """They may have written any files, or none."""
    mounts = [{"name": "v", "mountPath": "/w"}]
    init = {"name": "i", "image": "i", "volumeMounts": mounts, **({"command": first} if first else {})}
    script = "[ -f /w/page ] || exit 4; sleep 5"
    container = {"name": "c", "image": "i", "command": ["sh", "-c", script], "volumeMounts": mounts}
    spec = {"initContainers": [init], "containers": [container], "volumes": [{"name": "v", "emptyDir": {}}]}
    await world.pod("a", {**spec, "restartPolicy": "Never"})
    await world.wait(3)
    assert (await world.status("a"))["phase"] == "Running"


async def test_an_image_that_cannot_be_pulled_backs_off(world: World):
    world.cluster.nodes.fail_image("*/broken:*")
    await world.pod("a", {"containers": [{"name": "c", "image": "example.com/broken:1"}]})
    await world.pod("b", pull_error="no such host")
    await world.pod("c")
    await world.wait(1)
    assert waiting(await world.status("b")) == {"reason": "ErrImagePull", "message": "no such host"}
    assert waiting(await world.status("a"))["message"].startswith("rpc error: code = NotFound desc = failed to pull")
    await world.wait(4)
    back = {"reason": "ImagePullBackOff", "message": 'Back-off pulling image "nginx": ErrImagePull: no such host'}
    assert waiting(await world.status("b")) == back
    assert (await world.status("c"))["phase"] == "Running"
    emitted = await world.events("b")
    for event in (
        ("Pulling", 'Pulling image "nginx"'),
        ("Failed", 'Failed to pull image "nginx": no such host'),
        ("Failed", "Error: ErrImagePull"),
        ("BackOff", 'Back-off pulling image "nginx"'),
        ("Failed", "Error: ImagePullBackOff"),
    ):
        assert event in emitted
    await world.wait(6)
    assert waiting(await world.status("b"))["reason"] == "ErrImagePull"
    await world.wait(2)
    assert waiting(await world.status("b"))["reason"] == "ImagePullBackOff"
    await world.client.patch(PODS, "default", "a", {"spec": {"containers": [{"name": "c", "image": "good:1"}]}})
    await world.patch(PODS, "b", {"metadata": {"annotations": {"sandbox.kcm.dev/pull-error": None}}})
    await world.wait(2)
    assert [(await world.status(name))["phase"] for name in "ab"] == ["Running", "Running"]


async def test_an_image_that_is_never_pulled(world: World):
    world.cluster.nodes.fail_image("broken:*")
    for name, image in (("a", "fine:1"), ("b", "broken:1")):
        await world.pod(name, {"containers": [{"name": "c", "image": image, "imagePullPolicy": "Never"}]})
    await world.wait(1)
    reasons = [reason for reason, _ in await world.events("a")]
    assert (await world.status("a"))["phase"] == "Running"
    assert "Pulled" in reasons and "Pulling" not in reasons
    message = 'Container image "broken:1" is not present with pull policy of Never'
    assert waiting(await world.status("b")) == {"reason": "ErrImageNeverPull", "message": message}
    emitted = await world.events("b")
    assert ("ErrImageNeverPull", message) in emitted and ("Failed", "Error: ErrImageNeverPull") in emitted


async def test_missing_pull_secrets_are_reported(world: World):
    await world.create(resource("secrets"), {"metadata": {"name": "there"}})
    await world.pod(
        "a",
        {
            "containers": [{"name": "c", "image": "x"}],
            "imagePullSecrets": [{"name": "x"}, {"name": "there"}, {"name": "y"}],
        },
    )
    await world.wait(1)
    assert (await world.status("a"))["phase"] == "Running"
    text = "Unable to retrieve some image pull secrets (x, y); attempting to pull the image may not succeed."
    assert ("FailedToRetrieveImagePullSecret", text) in await world.events("a")


async def test_a_resolver_with_more_than_it_may_have_is_reported(world: World):
    servers, searches = ["1.1.1.1", "1.1.1.2", "1.1.1.3"], [f"d{number}" for number in range(30)]
    await world.pod("a", {"dnsConfig": {"nameservers": servers, "searches": searches}})
    await world.pod("b", {"dnsPolicy": "None", "dnsConfig": {"nameservers": servers, "searches": searches}})
    await world.wait(5)
    found = [message for reason, message in await world.events("a") if reason == "DNSConfigForming"]
    cluster = "default.svc.cluster.local svc.cluster.local cluster.local"
    assert found == [
        "Nameserver limits were exceeded, some nameservers have been omitted, the applied nameserver line is: "
        "10.0.0.10 1.1.1.1 1.1.1.2",
        "Search Line limits were exceeded, some search paths have been omitted, the applied search line is: "
        f"{cluster} {' '.join(searches[:29])}",
    ]
    assert "DNSConfigForming" not in dict(await world.events("b"))


async def test_a_pod_whose_host_name_is_too_long_with_its_domain_does_not_start(world: World):
    named = {"setHostnameAsFQDN": True, "subdomain": "s" * 20, "hostname": "h" * 20}
    await world.pod("a", dict(named))
    await world.pod("b", {**named, "hostname": "h"})
    await world.pod("c", {**named, "hostNetwork": True})
    await world.wait(60)
    (container,) = (await world.status("a"))["containerStatuses"]
    assert container["state"] == {"waiting": {"reason": "ContainerCreating"}}
    assert (await world.condition("a", "PodReadyToStartContainers"))["status"] == "False"
    why = (
        f"FQDN {'h' * 20}.{'s' * 20}.default.svc.cluster.local is too long "
        "(64 characters is the max, 67 characters requested)"
    )
    text = f"Failed to create pod sandbox: failed to construct FQDN from pod hostname and cluster domain, {why}"
    events = [e for e in await world.items(resource("events")) if e["reason"] == "FailedCreatePodSandBox"]
    assert [e["message"] for e in events] == [text] and 3 < events[0]["count"] < 8
    for name in "bc":
        assert (await world.status(name))["phase"] == "Running"
    await world.delete(PODS, "a")
    await world.wait(5)
    assert await world.is_deleted("a")


async def test_an_image_can_be_pulled_again_and_one_on_the_node_need_not(world: World):
    spec = {"containers": [{"name": "c", "image": "app:1"}]}
    world.cluster.nodes.fail_image("app:*", "denied")
    await world.pod("a", dict(spec))
    await world.wait(5)
    assert waiting(await world.status("a"))["reason"] == "ImagePullBackOff"
    world.cluster.nodes.restore_image("app:*")
    await world.wait(1)
    assert (await world.status("a"))["phase"] == "Running"
    world.cluster.nodes.fail_image("app:*", "denied")
    await world.pod("b", dict(spec))
    await world.wait(2)
    assert (await world.status("b"))["phase"] == "Running"


async def test_invalid_image_names(world: World):
    await world.pod("a", {"containers": [{"name": "c", "image": "Not//Valid"}]})
    await world.wait(2)
    text = 'Failed to apply default image tag "Not//Valid": couldn\'t parse image name "Not//Valid": '
    message = f"{text}invalid reference format"
    assert waiting(await world.status("a")) == {"reason": "InvalidImageName", "message": message}
    assert ("InspectFailed", message) in await world.events("a")


async def test_annotations_win_over_commands(world: World):
    await world.pod("a", {"restartPolicy": "Never", **command("false")}, exit_code="0", run_time="10s")
    await world.pod("b", {"restartPolicy": "Never", **command("false")}, run_time="10s")
    await world.wait(8)
    assert [(await world.status(name))["phase"] for name in ("a", "b")] == ["Running", "Running"]
    await world.wait(4)
    assert [(await world.status(name))["phase"] for name in ("a", "b")] == ["Succeeded", "Failed"]


async def test_what_a_run_leaves_in_an_emptydir_the_next_one_finds(world: World):
    script = "if [[ -r /data/x ]]; then exit 0; else touch /data/x; exit 1; fi"
    spec = command("sh", "-c", script, volumeMounts=[{"name": "data", "mountPath": "/data"}])
    volumes = [{"name": "data", "emptyDir": {}}]
    await world.pod("a", {"restartPolicy": "OnFailure", "volumes": volumes, **spec})
    await world.wait(5)
    status = await world.status("a")
    assert (status["phase"], status["containerStatuses"][0]["restartCount"]) == ("Succeeded", 1)


@pytest.mark.cluster(nodes=2)
async def test_what_a_pod_leaves_in_a_folder_of_its_node_the_next_pod_there_finds(world: World):
    script = "if [[ -r /data/x ]]; then exit 0; else touch /data/x; exit 42; fi"
    spec = command("sh", "-c", script, volumeMounts=[{"name": "data", "mountPath": "/data/"}])
    folder = {"name": "data", "hostPath": {"path": "/tmp/kept", "type": "DirectoryOrCreate"}}
    other = {"name": "data", "hostPath": {"path": "/tmp/kep", "type": "DirectoryOrCreate"}}
    codes = []
    for name, node, volume in (("a", "1", folder), ("b", "1", folder), ("c", "2", folder), ("d", "1", other)):
        placed = {"restartPolicy": "Never", "volumes": [volume], "nodeName": f"node-{node}", **spec}
        await world.pod(name, placed)
        await world.wait(1)
        await world.patch(PODS, name, {"metadata": {"annotations": {"sandbox.kcm.dev/stop-time": "1s"}}})
        await world.wait(2)
        codes.append((await world.status(name))["containerStatuses"][0]["state"]["terminated"]["exitCode"])
    assert codes == [42, 0, 42, 42]


async def test_unknown_commands_end_in_pods_of_jobs_only(world: World):
    await world.pod("a", {"restartPolicy": "Never", **command("/agnhost", "pause")})
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "u", "controller": True}
    spec = {"restartPolicy": "Never", **command("/migrate")}
    await world.create(PODS, {"metadata": {"name": "b", "ownerReferences": [owner]}, "spec": spec})
    spec = {"restartPolicy": "Never", "containers": [{"name": "c", "image": "registry.k8s.io/pause:3.10"}]}
    await world.create(PODS, {"metadata": {"name": "c", "ownerReferences": [owner]}, "spec": spec})
    await world.wait(5)
    assert [(await world.status(name))["phase"] for name in "abc"] == ["Running", "Succeeded", "Running"]


async def test_an_annotation_does_not_rewrite_the_past_of_a_running_pod(world: World):
    await world.pod("a")
    await world.wait(100)
    wish = {"sandbox.kcm.dev/exit-code": "1", "sandbox.kcm.dev/run-time": "3s"}
    await world.patch(PODS, "a", {"metadata": {"annotations": wish}})
    await world.wait(2)
    (container,) = (await world.status("a"))["containerStatuses"]
    assert (container["restartCount"], container["ready"]) == (0, True)
    await world.wait(2)
    (container,) = (await world.status("a"))["containerStatuses"]
    assert container["restartCount"] == 1
    assert container["lastState"]["terminated"]["exitCode"] == 1
    ended = datetime.fromisoformat(container["lastState"]["terminated"]["finishedAt"])
    assert 103 <= (ended - EPOCH).total_seconds() <= 106


async def test_a_delay_that_ends_early_ends_now(world: World):
    await world.pod("a", start_delay="never")
    await world.wait(100)
    await world.patch(PODS, "a", {"metadata": {"annotations": {"sandbox.kcm.dev/start-delay": None}}})
    await world.wait(1)
    (container,) = (await world.status("a"))["containerStatuses"]
    started = datetime.fromisoformat(container["state"]["running"]["startedAt"])
    assert (started - EPOCH).total_seconds() >= 100


async def test_a_container_is_killed_by_a_test(world: World):
    await world.pod("a")
    await world.wait(50)
    with pytest.raises(LookupError, match="no container x"):
        world.cluster.nodes.kill_container("default/a", "x")
    with pytest.raises(LookupError, match="default/b does not run"):
        world.cluster.nodes.kill_container("default/b")
    world.cluster.nodes.kill_container("default/a", reason="OOMKilled")
    await world.wait(1)
    (container,) = (await world.status("a"))["containerStatuses"]
    assert container["restartCount"] == 1
    last = container["lastState"]["terminated"]
    assert (last["exitCode"], last["reason"]) == (137, "OOMKilled")
    assert (datetime.fromisoformat(last["finishedAt"]) - EPOCH).total_seconds() >= 50


async def test_probes_that_an_annotation_makes_fail(world: World):
    probe = {"httpGet": {"port": 80}, "periodSeconds": 5, "failureThreshold": 2}
    for kind in ("liveness", "startup", "readiness"):
        spec = {"containers": [{"name": "c", "image": "x", f"{kind}Probe": probe}]}
        await world.pod(kind, spec, failing_probes=kind)
    await world.wait(8)
    (container,) = (await world.status("readiness"))["containerStatuses"]
    assert (container["started"], container["ready"], container["restartCount"]) == (True, False, 0)
    (container,) = (await world.status("startup"))["containerStatuses"]
    assert (container["started"], container["ready"], container["restartCount"]) == (False, False, 0)
    (container,) = (await world.status("liveness"))["containerStatuses"]
    assert (container["ready"], container["restartCount"]) == (True, 0)
    await world.wait(4)
    for kind in ("liveness", "startup"):
        (container,) = (await world.status(kind))["containerStatuses"]
        assert container["restartCount"] == 1
        assert ("Killing", f"Container c failed {kind} probe, will be restarted") in await world.events(kind)
    wish = {"metadata": {"annotations": {"sandbox.kcm.dev/failing-probes": None}}}
    await world.patch(PODS, "readiness", wish)
    await world.wait(1)
    assert (await world.condition("readiness", "Ready"))["status"] == "True"


async def test_what_a_failed_probe_leads_to_is_reported(world: World):
    probe = {"httpGet": {"port": 80}, "periodSeconds": 5, "failureThreshold": 1}
    container = {"name": "c", "image": "x", "livenessProbe": probe}
    await world.pod("never", {"restartPolicy": "Never", "containers": [container]}, failing_probes="liveness")
    sidecar = {"name": "s", "image": "x", "restartPolicy": "Always", "startupProbe": probe}
    await world.pod("sidecar", {"initContainers": [sidecar]}, **{"failing-probes.s": "startup"})
    await world.pod("killed", {"containers": [container]}, failing_probes="liveness")
    await world.wait(2)
    world.cluster.nodes.kill_container("default/killed")
    await world.wait(2)

    async def killings(name: str) -> list[str]:
        return [message for reason, message in await world.events(name) if reason == "Killing"]

    assert await killings("killed") == []
    await world.wait(2)
    assert await killings("never") == ["Container c failed liveness probe"]
    assert await killings("sidecar") == ["Init container s failed startup probe"]


async def test_the_probes_of_a_later_run_read_what_it_finds(world: World):
    """kubernetes#132826: a sidecar does not start up at first."""
    mount = {"volumeMounts": [{"name": "d", "mountPath": "/d"}]}
    script = "if test -f /d/again; then touch /tmp/ok; fi; touch /d/again; sleep 1000"
    sidecar = {
        **{"name": "s", "image": "x", "restartPolicy": "Always", "command": ["sh", "-c", script], **mount},
        "startupProbe": {"exec": {"command": ["cat", "/tmp/ok"]}, "periodSeconds": 1, "failureThreshold": 3},
    }
    main = {"name": "m", "image": "x", "startupProbe": {"exec": {"command": ["true"]}}}
    volumes = [{"name": "d", "emptyDir": {}}]
    spec = {"restartPolicy": "Never", "initContainers": [sidecar], "containers": [main], "volumes": volumes}
    await world.pod("a", spec)
    await world.wait(2)
    assert (await world.status("a"))["initContainerStatuses"][0]["restartCount"] == 0
    await world.wait(3)
    status = await world.status("a")
    assert status["initContainerStatuses"][0]["restartCount"] == 1
    assert status["phase"] == "Running"
    assert (await world.condition("a", "Ready"))["status"] == "True"


async def test_a_later_run_may_be_ready_sooner(world: World):
    script = "if ! test -f /d/made; then sleep 20; touch /d/made; fi; touch /tmp/ready; sleep 1000"
    container = {
        **{"name": "c", "image": "x", "command": ["sh", "-c", script]},
        "volumeMounts": [{"name": "d", "mountPath": "/d"}],
        "readinessProbe": {"exec": {"command": ["cat", "/tmp/ready"]}, "periodSeconds": 1},
    }
    await world.pod("a", {"containers": [container], "volumes": [{"name": "d", "emptyDir": {}}]})
    await world.wait(10)
    assert (await world.condition("a", "Ready"))["status"] == "False"
    await world.wait(15)
    assert (await world.condition("a", "Ready"))["status"] == "True"
    world.cluster.nodes.kill_container("default/a")
    await world.wait(5)
    status = await world.status("a")
    assert (status["containerStatuses"][0]["restartCount"], status["containerStatuses"][0]["ready"]) == (1, True)


async def test_other_probes_wait_for_the_startup_probe(world: World):
    probe = {"httpGet": {"port": 80}, "periodSeconds": 5, "failureThreshold": 2}
    slow = {**probe, "initialDelaySeconds": 60}
    container = {"name": "c", "image": "x", "startupProbe": slow, "livenessProbe": probe}
    await world.pod("a", {"containers": [container]}, failing_probes="liveness")
    await world.pod("b", {"containers": [container]}, failing_probes="liveness,startup")
    await world.wait(65)
    assert (await world.status("a"))["containerStatuses"][0]["restartCount"] == 0
    await world.wait(6)
    assert (await world.status("a"))["containerStatuses"][0]["restartCount"] == 1
    assert ("Killing", "Container c failed startup probe, will be restarted") in await world.events("b")
    assert not any("iveness" in text for _, text in await world.events("b"))


async def test_containers_that_outlive_the_others_are_killed(world: World):
    sidecar = {"name": "s", "image": "x", "restartPolicy": "Always"}
    script = {"name": "c", "image": "x", "command": ["sleep", "5"]}
    await world.pod("a", {"restartPolicy": "Never", "initContainers": [sidecar], "containers": [script]})
    await world.wait(8)
    assert (await world.status("a"))["phase"] == "Succeeded"
    killings = [text for reason, text in await world.events("a") if reason == "Killing"]
    assert killings == ["Stopping container s"]


RULE = {"labels": {"sandbox.kcm.dev/rule": "pods"}}


async def test_a_rule_holds_for_the_pods_that_it_selects(world: World):
    rule = {
        "metadata": {"name": "crash", **RULE},
        "data": {"selector": "app=bad", "run-time": "5s", "exit-code": "3"},
    }
    await world.create(resource("configmaps"), rule)
    await world.wait()
    await world.pod("bad", {"labels": {"app": "bad"}, "restartPolicy": "Never"})
    await world.pod("good", {"labels": {"app": "good"}, "restartPolicy": "Never"})
    await world.wait(10)
    assert (await world.status("bad"))["phase"] == "Failed"
    assert (await world.status("bad"))["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 3
    assert (await world.status("good"))["phase"] == "Running"


async def test_the_pods_of_a_changed_rule_are_read_in_turns(world: World, monkeypatch):
    """10,000 take a second."""
    for name in "abc":
        await world.pod(name)
    await world.wait(2)
    kubelets, read = world.cluster.nodes._kubelets, []
    script = kubelets._script

    def counted(pod, *args):
        read.append(pod.name)
        return script(pod, *args)

    monkeypatch.setattr(kubelets, "_script", counted)
    kubelets.rules_changed("")
    assert not read
    await world.wait(0)
    assert sorted(read) == ["a", "b", "c"]


async def test_failed_probes_are_reported(world: World):
    def probe(*command: str, **more: int) -> dict:
        return {"exec": {"command": [*command]}, **more}

    ready = probe("sh", "-c", "echo not yet; exit 1", initialDelaySeconds=3)
    slow = probe("sleep", "5", timeoutSeconds=2, failureThreshold=30)
    script = {"command": ["sh", "-c", "touch /tmp/h; sleep 15; rm /tmp/h; sleep 600"]}
    alive = probe("cat", "/tmp/h", periodSeconds=5, failureThreshold=2)
    await world.pod("a", {"containers": [{"name": "c", "image": "x", "readinessProbe": ready}]})
    await world.pod("b", {"containers": [{"name": "c", "image": "x", "startupProbe": slow}]})
    await world.pod("c", {"containers": [{"name": "c", "image": "x", "livenessProbe": alive, **script}]})
    simulated = {"containers": [{"name": "c", "image": "x", "readinessProbe": {"tcpSocket": {"port": 1}}}]}
    await world.pod("d", simulated, failing_probes="readiness")

    async def emitted(name: str) -> list[str]:
        return [message for reason, message in await world.events(name) if reason == "Unhealthy"]

    await world.wait(2)
    assert await emitted("a") == []
    assert await emitted("b") == ['Startup probe failed: command timed out: "sleep 5" timed out after 2s']
    assert await emitted("d") == ["Readiness probe failed: simulated failure"]
    await world.wait(2)
    assert await emitted("a") == ["Readiness probe failed: not yet\n"]
    await world.wait(20)
    assert await emitted("c") == ["Liveness probe failed: cat: /tmp/h: No such file or directory\n"]


async def test_a_later_rule_does_not_change_the_past_of_a_pod(world: World):
    await world.pod("a", {"labels": {"app": "a"}, "restartPolicy": "Never"})
    await world.wait(100)
    rule = {"metadata": {"name": "oom", **RULE}, "data": {"run-time": "5s", "exit-code": "137"}}
    rule["data"]["exit-reason"] = "OOMKilled"
    await world.create(resource("configmaps"), rule, "kube-system")
    await world.wait(4)
    assert (await world.status("a"))["phase"] == "Running"
    await world.wait(4)
    (container,) = (await world.status("a"))["containerStatuses"]
    assert container["restartCount"] == 0
    assert container["state"]["terminated"]["reason"] == "OOMKilled"


@pytest.mark.cluster(heartbeat_s=10)
@pytest.mark.parametrize(("nodes", "interval_s"), [(3, 10.0), (1000, 10.0), (2500, 25.0), (6000, 35.0)])
async def test_many_nodes_share_their_heartbeats(world: World, nodes, interval_s):
    agents = world.cluster.nodes._agents
    agents._agents = {f"n{number}": None for number in range(nodes)}  # type: ignore[misc]
    assert agents._interval_s() == interval_s
    pause_s = agents._pause_s()
    assert 0.92 * interval_s <= pause_s <= interval_s
    if interval_s > 10:  # those of a second come together
        assert (agents._clock.monotonic() + pause_s) % 1 == pytest.approx(0, abs=1e-6)
    agents._agents = {}


@pytest.mark.cluster(nodes=0, heartbeat_s=0.5)
async def test_frequent_heartbeats_of_some_nodes_leave_pauses(world: World):
    agents = world.cluster.nodes._agents
    agents._agents = {f"n{number}": None for number in range(60)}  # type: ignore[misc]
    for _ in range(10):
        assert 0.55 < agents._pause_s() <= 0.6
        await world.wait(0.1)


@pytest.mark.cluster(heartbeat_s=10)
@pytest.mark.parametrize(("few", "requests"), [(3, True), (2, False)])
@pytest.mark.cluster(nodes=3)
async def test_more_than_a_few_nodes_renew_without_requests(world: World, monkeypatch, few, requests):
    monkeypatch.setattr("kcm_cli.sandbox.nodes.agents._FEW", few)
    renewed: list[str] = []

    class Renewing:
        def renew(self, node: str, renew_time: str, now: str) -> bool:
            renewed.append(node)
            return True

    world.cluster.nodes._agents._renewals = Renewing()
    await world.wait(25)
    assert set(renewed) == (set() if requests else {"node-1", "node-2", "node-3"})


@pytest.mark.cluster(heartbeat_s=10, nodes=12)
async def test_late_answers_to_status_reports_do_not_let_leases_expire(world: World, monkeypatch):
    agents = world.cluster.nodes._agents
    report = agents._report

    async def late(agent: Agent, node: SimulatedNode) -> None:
        await world.wait(30)
        await report(agent, node)

    monkeypatch.setattr(agents, "_report", late)
    for agent in agents._agents.values():
        agent.reported_at = float("-inf")
    await world.wait(60)
    leases = await world.items(NODE_LEASES, LEASE_NAMESPACE)
    oldest = min(datetime.fromisoformat(lease["spec"]["renewTime"]) for lease in leases)
    assert len(leases) == 12 and (world.clock.now() - oldest).total_seconds() < 12


@pytest.mark.cluster(nodes=0)
async def test_a_node_whose_lease_cannot_be_created_is_ready(world: World):
    world.server.api.faults.add(Fault("refuse", verbs=("create",), resources=("leases",)))
    await commands.add(world.client, "a")
    await world.wait(5)
    node = await world.get(NODES, "a")
    assert {c["type"]: c["status"] for c in node["status"].get("conditions", ())}.get("Ready") == "True"
    assert node["metadata"]["labels"]["kubernetes.io/hostname"] == "a" and not node["spec"].get("taints")
    assert await world.items(NODE_LEASES, LEASE_NAMESPACE) == []


@pytest.mark.cluster(nodes=0)
async def test_nodes_that_lose_their_kubelet_are_not_waited_for(world: World, monkeypatch):
    """For example, if a webhook removes the annotation."""
    monkeypatch.setattr("kcm_cli.sandbox.nodes.agents._MOST_NEW", 1)
    agents = world.cluster.nodes._agents
    agents.expect("plain")
    await world.create(NODES, {"metadata": {"name": "plain"}})
    await asyncio.wait_for(agents.few_unreported(), 5)


@pytest.mark.cluster(nodes=0)
async def test_nodes_are_created_no_faster_than_their_kubelets_report(world: World, monkeypatch):
    monkeypatch.setattr("kcm_cli.sandbox.nodes.agents._MOST_NEW", 5)
    ready: dict[str, bool] = {}
    silent: list[int] = []

    def seen(gvr: GVR, event: Event) -> None:
        if gvr == NODES.gvr:
            ready[event.stored.name] = b'"reason":"KubeletReady"' in event.stored.data
            silent.append(list(ready.values()).count(False))

    world.server.store.observers.append(seen)
    await world.cluster.nodes.ensure(40)
    await world.wait()
    assert len(ready) == 40 and all(ready.values())
    assert max(silent) <= 6


@pytest.mark.parametrize(
    ("probe", "fails"),
    [
        (["false"], True),
        (["sh", "-c", "[ $(MODE) = on ] && exit 3"], True),
        (["sleep", "2"], True),
        (["true"], False),
        (["sh", "-c", "[ $(MODE) = off ] && exit 3; exit 0"], False),
        (["pg_isready"], False),
        (["test", "-f", "/ready"], False),
        (["sh", "-c", "cd /tmp && test -f ready"], False),
        (["sh", "-c", "curl localhost || exit 1"], False),
        (["sh", "-c", '[ "$STATE" = on ]'], False),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
async def test_probes_whose_command_always_fails(world: World, probe, fails):
    action = {"exec": {"command": probe}, "periodSeconds": 1, "failureThreshold": 2}
    env = [{"name": "MODE", "value": "on"}]
    for name, field in (("ready", "readinessProbe"), ("alive", "livenessProbe"), ("started", "startupProbe")):
        container = {"name": "c", "image": "nginx", "env": env, field: action}
        await world.pod(name, {"containers": [container]})
    await world.wait(20)
    counts = {}
    for name in ("ready", "alive", "started"):
        (container,) = (await world.status(name))["containerStatuses"]
        counts[name] = container["ready"], container["restartCount"] > 0
    expected = {"ready": (False, False), "alive": (counts["alive"][0], True), "started": (False, True)}
    assert counts == (expected if fails else dict.fromkeys(counts, (True, False)))


async def test_probes_read_the_files_of_the_container(world: World):
    def pod(script: str, **probes: dict) -> dict:
        made = {}
        for name, probe in probes.items():
            command = {"exec": {"command": probe.pop("command")}}
            made[f"{name}Probe"] = {"failureThreshold": 1, "periodSeconds": 10, **command, **probe}
        return {"containers": [{"name": "c", "image": "x", "command": ["sh", "-c", script], **made}]}

    healthy = {"command": ["cat", "/tmp/health"], "initialDelaySeconds": 15}
    script = "echo ok >/tmp/health; sleep 10; rm -rf /tmp/health; sleep 600"
    await world.pod("dies", pod(script, liveness=dict(healthy)))
    await world.pod("lives", pod("echo ok >/tmp/health; sleep 600", liveness=dict(healthy)))
    started = {"command": ["cat", "/tmp/up"], "initialDelaySeconds": 5}
    script = "sleep 12; echo ok > /tmp/up; sleep 600"
    await world.pod(
        "late",
        pod(
            script,
            startup={**started, "failureThreshold": 9},
            liveness={"command": ["false"], "initialDelaySeconds": 20},
        ),
    )
    script = "sleep 7; touch /tmp/ready; sleep 10; rm /tmp/ready; sleep 10; touch /tmp/ready; sleep 600"
    await world.pod("turns", pod(script, readiness={"command": ["test", "-f", "/tmp/ready"], "periodSeconds": 1}))
    seen = {name: [] for name in ("dies", "lives", "late", "turns")}
    for _ in range(32):
        await world.wait(1)
        for name, found in seen.items():
            (container,) = (await world.status(name))["containerStatuses"]
            found.append((container["restartCount"], container["ready"], container["started"]))
    assert [count for count, _, _ in seen["dies"]] == [0] * 14 + [1] * 15 + [2] * 3
    assert {count for count, _, _ in seen["lives"]} == {0}
    assert [started for _, _, started in seen["late"]].index(True) in (14, 15)
    assert [count for count, _, _ in seen["late"]] == [0] * 19 + [1] * 13
    assert [ready for _, ready, _ in seen["turns"]] == [False] * 6 + [True] * 10 + [False] * 10 + [True] * 6


async def test_a_program_that_has_ended_is_not_stopped(world: World):
    """A container runs for at least a second, and keeps its exit code."""
    for name, command in (("false", ["false"]), ("sleeps", ["sleep", "60"])):
        container = {"name": "c", "image": "x", "command": command}
        spec = {"restartPolicy": "Never", "terminationGracePeriodSeconds": 1, "containers": [container]}
        await world.create(PODS, {"metadata": {"name": name, "finalizers": ["x/y"]}, "spec": spec})
    await world.wait(0.5)
    codes = {}
    for name in ("false", "sleeps"):
        await world.delete(PODS, name)
    await world.wait(3)
    for name in ("false", "sleeps"):
        (container,) = (await world.status(name))["containerStatuses"]
        codes[name] = container["state"]["terminated"]["exitCode"]
    assert codes == {"false": 1, "sleeps": 0}


async def test_a_rule_restarts_all_containers_of_a_pod(world: World):
    exits = {"operator": "In", "values": [42]}
    rule = {"action": "RestartAllContainers", "exitCodes": exits}
    script = "if [ -f /mnt/done ]; then sleep 10000; else touch /mnt/done; sleep 10; exit 42; fi"
    source = {"name": "source", "image": "x", "command": ["sh", "-c", script], "restartPolicyRules": [rule]}
    source |= {"restartPolicy": "Never", "volumeMounts": [{"name": "w", "mountPath": "/mnt"}]}
    probe = {"exec": {"command": ["true"]}, "initialDelaySeconds": 4}
    spec = {
        "restartPolicy": "Never",
        "volumes": [{"name": "w", "emptyDir": {}}],
        "initContainers": [
            {"name": "init", "image": "x", "command": ["sleep", "5"]},
            {"name": "sidecar", "image": "x", "restartPolicy": "Always", "startupProbe": probe},
        ],
        "containers": [source, {"name": "other", "image": "x", "command": ["sleep", "9999"]}],
    }
    await world.pod("a", spec)
    await world.wait(14)
    assert (await world.condition("a", "AllContainersRestarting"))["status"] == "False"
    initialized = await world.condition("a", "Initialized")
    assert initialized["status"] == "True"
    await world.wait(5.5)
    status = await world.status("a")
    condition = await world.condition("a", "AllContainersRestarting")
    assert (condition["status"], condition["reason"]) == ("True", "RestartAllContainersStarted")
    assert "observedGeneration" not in condition
    every = [*status["initContainerStatuses"], *status["containerStatuses"]]
    removed = {"exitCode": 137, "reason": "RestartingAllContainers", "startedAt": None, "finishedAt": None}
    for each in every:
        assert each["state"]["waiting"]["reason"] == "RestartingAllContainers"
        last = each["lastState"]["terminated"]
        assert {key: last[key] for key in removed} == removed and "containerID" not in last
        assert each["restartCount"] == 1 and "containerID" not in each
    assert status["phase"] == "Running"
    await world.wait(2)
    status = await world.status("a")
    assert status["phase"] == "Pending"
    assert "running" in status["initContainerStatuses"][0]["state"]
    assert (await world.condition("a", "AllContainersRestarting"))["status"] == "False"
    assert await world.condition("a", "Initialized") == initialized  # as it has been since then
    await world.wait(5)
    status = await world.status("a")
    assert (status["phase"], status["initContainerStatuses"][1]["started"]) == ("Pending", False)
    assert await world.condition("a", "Initialized") == initialized
    await world.wait(60)
    status = await world.status("a")
    every = [*status["initContainerStatuses"], *status["containerStatuses"]]
    assert status["phase"] == "Running"
    assert [each["restartCount"] for each in every] == [1] * 4
    assert {each["lastState"]["terminated"]["reason"] for each in every} == {"RestartingAllContainers"}
    assert all(each["ready"] for each in every)


async def test_hooks_that_are_commands_delay_the_end(world: World):
    hook = {"preStop": {"exec": {"command": ["sh", "-c", "sleep 10"]}}}
    await world.pod("a", {"containers": [{"name": "c", "image": "x", "lifecycle": hook}]})
    await world.wait()
    await world.delete(PODS, "a")
    await world.wait(9)
    assert (await world.status("a"))["phase"] == "Running"
    await world.wait(2)
    assert await world.is_deleted("a")


async def test_a_hook_that_exceeds_the_grace_period_is_abandoned(world: World):
    hook = {"preStop": {"exec": {"command": ["sleep", "60"]}}}
    spec = {"containers": [{"name": "c", "image": "x", "lifecycle": hook}], "terminationGracePeriodSeconds": 20}
    await world.create(PODS, {"metadata": {"name": "a", "finalizers": ["x/y"]}, "spec": spec})
    await world.wait()
    await world.delete(PODS, "a")
    await world.wait(19)
    assert (await world.status("a"))["phase"] == "Running"
    await world.wait(2)
    assert (await world.status("a"))["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 0


async def test_a_container_is_reported_as_running_after_its_hook(world: World):
    hook = {"postStart": {"exec": {"command": ["sh", "-c", "sleep 5"]}}}
    spec = {"containers": [{"name": "c", "image": "x", "lifecycle": hook}, {"name": "d", "image": "x"}]}
    await world.pod("a", spec)
    await world.wait(4)
    status = await world.status("a")
    states = [each["state"] for each in status["containerStatuses"]]
    assert (status["phase"], states) == ("Pending", [{"waiting": {"reason": "ContainerCreating"}}] * 2)
    await world.wait(3)
    status = await world.status("a")
    first, second = (each["state"]["running"]["startedAt"] for each in status["containerStatuses"])
    assert (status["phase"], parse_time(second) - parse_time(first)) == ("Running", timedelta(seconds=5))
    assert (await world.condition("a", "Ready"))["status"] == "True"


@pytest.mark.parametrize(
    ("hook", "error"),
    [
        (
            {"exec": {"command": ["sh", "-c", "echo no >&2; exit 3"]}},
            'Exec lifecycle hook ([sh -c echo no >&2; exit 3]) for Container "c" in Pod "a_default(UID)" failed - '
            "error: command 'sh -c echo no >&2; exit 3' exited with 3: no\n, message: \"no\\n\"",
        ),
        (
            {"tcpSocket": {"port": 1}},
            "Cannot run handler: invalid handler: &LifecycleHandler{Exec:nil,HTTPGet:nil,"
            "TCPSocket:&TCPSocketAction{Port:{0 1 },Host:,},Sleep:nil,}",
        ),
    ],
)
async def test_hooks_that_fail(world: World, hook, error):
    await world.pod("a", {"containers": [{"name": "c", "image": "x", "lifecycle": {"postStart": hook}}]})
    await world.pod("b", {"containers": [{"name": "c", "image": "x", "lifecycle": {"preStop": hook}}]})
    await world.wait(3)
    (container,) = (await world.status("a"))["containerStatuses"]
    uid = (await world.get(PODS, "a"))["metadata"]["uid"]
    waits = {"reason": "PostStartHookError", "message": error.replace("UID", uid)}
    assert container["state"]["waiting"] == waits
    assert container["lastState"]["terminated"]["exitCode"] == 0
    await world.wait(10 + 20 + 40 + 50)
    assert waiting(await world.status("a"))["reason"] == "PostStartHookError"
    await world.wait(15)
    assert waiting(await world.status("a"))["reason"] == "CrashLoopBackOff"
    assert ("FailedPostStartHook", "PostStartHook failed") in await world.events("a")
    await world.delete(PODS, "b")
    await world.wait(1)
    assert ("FailedPreStopHook", "PreStopHook failed") in await world.events("b")


async def test_a_command_reads_files_of_its_hook(world: World):
    hook = {"postStart": {"exec": {"command": ["touch", "/tmp/go"]}}}
    script = "until [ -f /tmp/go ]; do sleep 1; done; exit 3"
    container = {"name": "c", "image": "x", "command": ["sh", "-c", script], "lifecycle": hook}
    await world.pod("a", {"containers": [container], "restartPolicy": "Never"})
    await world.wait(4)
    assert (await world.status("a"))["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 3


@pytest.mark.parametrize(
    ("script", "ends_s", "code"),
    [
        ("_term() {\n sleep 5\n exit 143\n}\ntrap _term TERM\nwhile true; do sleep 1; done", (5, 7), 143),
        ("trap 'sleep 60' TERM; while true; do sleep 1; done", (10, 11), 137),
        ("trap 'exit 3' TERM; sleep infinity & wait", (0, 1), 3),
    ],
)
async def test_a_trap_decides_how_a_container_ends(world: World, script, ends_s, code):
    spec = {
        "containers": [{"name": "c", "image": "x", "command": ["sh", "-c", script]}],
        "terminationGracePeriodSeconds": 10,
    }
    await world.create(PODS, {"metadata": {"name": "a", "finalizers": ["x/y"]}, "spec": spec})
    await world.wait(2.5)
    await world.delete(PODS, "a")
    await world.wait(ends_s[0])
    assert (await world.status("a"))["phase"] == "Running" or ends_s[0] == 0
    await world.wait(ends_s[1] - ends_s[0] + 0.1)
    status = await world.status("a")
    assert status["containerStatuses"][0]["state"]["terminated"]["exitCode"] == code


@pytest.mark.parametrize(("threshold", "unready_s"), [(1, 0), (3, 4)])
async def test_a_trap_makes_a_container_unready(world: World, threshold, unready_s):
    """kubernetes#110309, #105780."""
    script = """
        _term() { rm -f /tmp/ready ; sleep 30; exit 0; }
        trap _term SIGTERM
        touch /tmp/ready
        while true; do echo hello; sleep 10; done
    """
    probe = {"exec": {"command": ["cat", "/tmp/ready"]}, "initialDelaySeconds": 5, "periodSeconds": 2}
    container = {"name": "c", "image": "bash", "command": ["bash", "-c", script]}
    spec = {
        "containers": [{**container, "readinessProbe": {**probe, "failureThreshold": threshold}}],
        "terminationGracePeriodSeconds": 60,
        "restartPolicy": "Never",
    }
    await world.create(PODS, {"metadata": {"name": "a", "finalizers": ["x/y"]}, "spec": spec})
    await world.wait(8)
    await world.delete(PODS, "a")
    await world.wait(1)  # the shell waits for sleep until then
    assert (await world.condition("a", "Ready"))["status"] == "True"
    await world.wait(unready_s)
    assert (await world.condition("a", "Ready"))["status"] == "True"
    await world.wait(2)
    assert (await world.status("a"))["phase"] == "Running"
    assert (await world.condition("a", "Ready"))["reason"] == "ContainersNotReady"
    await world.wait(40)
    assert (await world.status("a"))["phase"] == "Succeeded"


async def test_a_pod_past_its_deadline_is_not_ready_while_it_stops(world: World):
    await world.pod("a", {"activeDeadlineSeconds": 5}, stop_time="10s")
    await world.wait(7)
    assert (await world.status("a"))["phase"] == "Running"
    assert (await world.condition("a", "Ready"))["reason"] == "PodFailed"
    await world.wait(10)
    assert (await world.status("a"))["reason"] == "DeadlineExceeded"


async def test_a_container_with_run_as_non_root_and_user_0_waits(world: World):
    root = {"name": "c", "image": "x", "securityContext": {"runAsUser": 0}}
    other = {"name": "d", "image": "x", "securityContext": {"runAsUser": 0, "runAsNonRoot": False}}
    await world.pod("a", {"securityContext": {"runAsNonRoot": True, "runAsUser": 1000}, "containers": [root, other]})
    await world.wait()
    pod = await world.get(PODS, "a")
    waits, runs = pod["status"]["containerStatuses"]
    where = f'pod: "a_default({pod["metadata"]["uid"]})", container: c'
    message = f"container's runAsUser breaks non-root policy ({where})"
    assert waits["state"] == {"waiting": {"reason": "CreateContainerConfigError", "message": message}}
    assert "running" in runs["state"]


async def test_programs_read_their_addresses_and_users(world: World):
    fields = {"HOST": "status.hostIP", "POD": "status.podIP", "ALL": "status.podIPs"}
    env = [{"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}} for name, path in fields.items()]
    same = '[[ "${HOST:?}" == "${POD:?none}" ]] || exit 3'
    all_of_it = 'test "$ALL" = "$POD" && grep -q "$POD" /etc/hosts || exit 4'
    scripts = (
        ("near", same, 3),
        ("host", same, 0),
        ("all", all_of_it, 0),
        ("again", f"sleep 2; {all_of_it}; exit 5", 5),
        ("user", "test $(id -u) -eq 65534", 0),
    )
    for name, script, code in scripts:
        container = {"name": "c", "image": "x", "command": ["sh", "-c", script], "env": env}
        container["securityContext"] = {"runAsUser": 65534}
        spec = {"restartPolicy": "Never", "hostNetwork": name == "host", "containers": [container]}
        await world.pod(name, spec)
        await world.wait(3)
        (found,) = (await world.status(name))["containerStatuses"]
        assert found["state"]["terminated"]["exitCode"] == code, name


async def test_a_volume_whose_image_cannot_be_pulled(world: World):
    world.cluster.nodes.fail_image("*/data:*")
    volumes = [
        {"name": "v", "image": {"reference": "example.com/data:1"}},
        {"name": "w", "image": {"reference": "example.com/more:1"}},
        {"name": "x", "image": {"reference": "example.com/Wrong"}},
    ]
    containers = [
        {"name": name, "image": "i", "volumeMounts": [{"name": volume, "mountPath": "/v"}]}
        for name, volume in (("a", "v"), ("b", "w"), ("c", "x"))
    ]
    await world.pod("a", {"containers": containers, "volumes": volumes})
    await world.wait(5)
    first, second, third = (await world.status("a"))["containerStatuses"]
    assert first["state"]["waiting"]["reason"] == "ImagePullBackOff"
    assert first["state"]["waiting"]["message"].startswith('Back-off pulling image "example.com/data:1": ErrImagePull')
    assert "running" in second["state"] and third["state"]["waiting"]["reason"] == "InvalidImageName"
    events = await world.events("a")
    assert ("Pulling", 'Pulling image "example.com/more:1"') in events
    assert not any(reason == "Pulled" and "data:1" in text for reason, text in events)
    world.cluster.nodes.restore_images()
    await world.wait(60)
    assert "running" in (await world.status("a"))["containerStatuses"][0]["state"]


async def test_limits_that_not_all_containers_have_are_reported_until_the_pod_runs(world: World):
    limited = {"name": "a", "image": "nginx", "resources": {"limits": {"cpu": "1"}}}
    await world.pod("p", {"containers": [limited, {"name": "b", "image": "nginx"}]}, start_delay="5s")
    await world.wait(3)
    assert (await world.status("p"))["resources"]["limits"] == {"cpu": "1"}
    await world.wait(10)
    status = await world.status("p")
    assert status["phase"] == "Running"
    assert "limits" not in status["resources"]
