"""The controller on a live metrics API: figures come from annotations, time is virtual."""

import asyncio
import random
from collections import Counter
from datetime import timedelta
from typing import Any

import pytest

from kcm_cli.api.apps import DEPLOYMENTS, REPLICA_SETS
from kcm_cli.api.autoscaling import HORIZONTAL_POD_AUTOSCALERS
from kcm_cli.api.core import PODS
from kcm_cli.component.clock import LoopClock
from kcm_cli.component.metrics import Registry
from kcm_cli.controllers.horizontal_pod_autoscaler import controller
from kcm_cli.controllers.horizontal_pod_autoscaler.config import HorizontalPodAutoscalerConfig
from kcm_cli.machinery.labels import parse
from kcm_cli.rest.transport import Around, Request, Response, TransportError
from tests.kit.controlling import Faulty
from tests.kit.faults import Meanwhile, Refusing, Rewriting
from tests.kit.world import World
from tests.unit.controllers.horizontal_pod_autoscaler.story import Story, container

BY_UTILIZATION = "cpu resource utilization (percentage of request)"


def pods_per(value: int, seconds: int, **more: Any) -> dict[str, Any]:
    """Scaling rules of one policy."""
    return {"policies": [{"type": "Pods", "value": value, "periodSeconds": seconds}], **more}


async def test_scales_up_with_load_and_down_after_stabilization(world: World):
    story = Story(world)
    async with story.running():
        await story.deploy(cpu_total="400m")
        await world.wait(10)
        await story.autoscale()
        assert await story.followed(120) == [1, 4, 8]  # no more than double, or four, at once
        used = {"name": "cpu", "current": {"averageUtilization": 50, "averageValue": "50m"}}
        assert await story.current() == [{"type": "Resource", "resource": used}]
        assert (await story.condition("ScalingLimited"))[:2] == ("False", "DesiredWithinRange")
        assert (await story.condition("ScalingActive"))[:2] == ("True", "ValidMetricFound")
        assert await story.messages("SuccessfulRescale") == {
            f"New size: 4; reason: {BY_UTILIZATION} above target",
            f"New size: 8; reason: {BY_UTILIZATION} above target",
        }
        await story.load(cpu_total="80m")
        assert await story.followed(270) == [8]
        assert (await story.condition("AbleToScale"))[:2] == ("True", "ScaleDownStabilized")
        assert await story.followed(60) == [8, 2]
        assert "New size: 2; reason: All metrics below target" in await story.messages("SuccessfulRescale")
        await world.wait(30)
        assert (await story.condition("AbleToScale"))[:2] == ("True", "ReadyForNewScale")
        status = await story.status()
        assert (status["currentReplicas"], status["desiredReplicas"]) == (2, 2)


@pytest.mark.parametrize("seconds", [3600, -45])
async def test_setting_the_wall_clock_changes_no_window(world: World, monkeypatch, seconds):
    """Set forward, nothing is forgotten; set back, nothing counts for longer."""
    set_by = [timedelta()]
    now = LoopClock.now
    monkeypatch.setattr(LoopClock, "now", lambda self: now(self) + set_by[0])
    story = Story(world)
    async with story.running():
        await story.deploy(cpu_total="160m")
        await world.wait(10)
        down = pods_per(1, 60, stabilizationWindowSeconds=120)
        await story.autoscale(behavior={"scaleUp": pods_per(3, 15), "scaleDown": down})
        assert await story.followed(45) == [1, 4]
        await story.load(cpu_total="40m")
        await world.wait(30)
        set_by[0] = timedelta(seconds=seconds)
        assert await story.followed(65) == [4]
        assert await story.followed(20) == [4, 3]
        set_by[0] = timedelta()
        assert await story.followed(40) == [3]
        assert await story.followed(20) == [3, 2]


async def test_limits_are_reported_as_a_condition(world: World):
    story = Story(world)
    async with story.running():
        await story.deploy(cpu_total="4")
        await story.autoscale(minReplicas=2, maxReplicas=5)
        assert await story.followed(90) == [1, 2, 4, 5]
        messages = await story.messages("SuccessfulRescale")
        assert "New size: 2; reason: Current number of replicas below Spec.MinReplicas" in messages
        text = "the desired replica count is more than the maximum replica count"
        assert await story.condition("ScalingLimited") == ("True", "TooManyReplicas", text)
        await world.patch(HORIZONTAL_POD_AUTOSCALERS, "web", {"spec": {"maxReplicas": 3}})
        assert await story.followed(30) == [5, 3]
        messages = await story.messages("SuccessfulRescale")
        assert "New size: 3; reason: Current number of replicas above Spec.MaxReplicas" in messages


async def test_container_metrics_count_only_that_container(world: World):
    story = Story(world)
    async with story.running():
        both = container("app"), container("proxy")
        await story.deploy(1, *both, **{"cpu.app": "150m", "cpu.proxy": "1m"})
        target = {"type": "Utilization", "averageUtilization": 50}
        source = {"name": "cpu", "container": "app", "target": target}
        await story.autoscale({"type": "ContainerResource", "containerResource": source}, maxReplicas=3)
        assert await story.followed(60) == [1, 3]
        current = {"averageUtilization": 150, "averageValue": "150m"}
        expected = {"name": "cpu", "container": "app", "current": current}
        assert await story.current() == [{"type": "ContainerResource", "containerResource": expected}]
        reason = "cpu container resource utilization (percentage of request) above target"
        assert await story.messages("SuccessfulRescale") == {f"New size: 3; reason: {reason}"}


async def test_memory_by_average_value(world: World):
    story = Story(world)
    async with story.running():
        await story.deploy(memory_total="300Mi")
        target = {"type": "AverageValue", "averageValue": "100Mi"}
        await story.autoscale({"type": "Resource", "resource": {"name": "memory", "target": target}})
        assert await story.followed(60) == [1, 3]
        assert await story.current() == [
            {"type": "Resource", "resource": {"name": "memory", "current": {"averageValue": "100Mi"}}}
        ]


async def test_policies_limit_the_rate(world: World):
    story = Story(world)
    async with story.running():
        await story.deploy(cpu_total="400m")
        await story.autoscale(behavior={"scaleUp": pods_per(1, 60), "scaleDown": {"selectPolicy": "Disabled"}})
        assert await story.followed(30) == [1, 2]
        text = "the desired replica count is increasing faster than the maximum scale rate"
        await world.wait(15)
        assert await story.condition("ScalingLimited") == ("True", "ScaleUpLimit", text)
        assert await story.followed(60) == [2, 3]
        await story.load(cpu_total="10m")
        assert await story.followed(600, 15) == [3]  # scaling down is off
        down = pods_per(1, 60, selectPolicy="Max", stabilizationWindowSeconds=0)
        await world.patch(HORIZONTAL_POD_AUTOSCALERS, "web", {"spec": {"behavior": {"scaleDown": down}}})
        assert await story.followed(45) == [3, 2]
        assert (await story.condition("ScalingLimited"))[:2] == ("True", "ScaleDownLimit")
        assert await story.followed(60) == [2, 1]


async def test_a_peak_shorter_than_the_scale_up_window_is_ignored(world: World):
    story = Story(world)
    async with story.running():
        await story.deploy(cpu_total="40m")
        await story.autoscale(behavior={"scaleUp": {"stabilizationWindowSeconds": 120}})
        await world.wait(30)
        await story.load(cpu_total="200m")
        assert await story.followed(90) == [1]
        text = "recent recommendations were lower than current one, applying the lowest recent recommendation"
        assert await story.condition("AbleToScale") == ("True", "ScaleUpStabilized", text)
        await story.load(cpu_total="40m")
        assert await story.followed(180, 15) == [1]
        await story.load(cpu_total="200m")
        assert await story.followed(180, 15) == [1, 4]


async def test_without_a_metrics_api_nothing_is_scaled_until_there_is_one(world: World):
    story = Story(world, metrics_server=False)
    async with story.running():
        await story.deploy(cpu_total="200m")
        await story.autoscale()
        assert await story.followed(60) == [1]
        text = (
            "failed to get cpu utilization: unable to get metrics for resource cpu: unable to fetch metrics from "
            "resource metrics API: the server could not find the requested resource (get pods.metrics.k8s.io)"
        )
        about = f"the HPA was unable to compute the replica count: {text}"
        assert await story.condition("ScalingActive") == ("False", "FailedGetResourceMetric", about)
        assert await story.messages("FailedGetResourceMetric") == {text}
        first = "invalid metrics (1 invalid out of 1), first error is: failed to get cpu resource metric value: "
        assert await story.messages("FailedComputeMetricsReplicas") == {first + text}
        story.install_metrics_server()
        assert await story.followed(30) == [1, 4]
        assert (await story.condition("ScalingActive"))[:2] == ("True", "ValidMetricFound")


async def test_pods_that_are_not_ready_count_as_idle_when_scaling_up(world: World):
    story = Story(world, HorizontalPodAutoscalerConfig())
    async with story.running():
        await story.deploy(cpu="100m", ready_delay="200s")
        await story.autoscale(maxReplicas=4)
        assert await story.followed(150) == [1]
        text = "failed to get cpu utilization: did not receive metrics for targeted pods (pods might be unready)"
        assert await story.messages("FailedGetResourceMetric") == {text}
        assert await story.followed(90) == [1, 2]  # the first is ready and uses twice what it should
        assert await story.followed(120) == [2]  # the second is not: taken for idle, it makes the average right
        assert await story.followed(120) == [2, 4]


async def test_autoscalers_of_the_same_pods_are_ambiguous(world: World):
    story = Story(world)
    async with story.running():
        await story.deploy(cpu_total="50m")
        await story.autoscale()
        await story.autoscale(name="other")
        await world.wait(40)
        text = "pods by selector app=web are controlled by multiple HPAs: [default/other default/web]"
        assert await story.condition("ScalingActive") == ("False", "AmbiguousSelector", text)
        assert await story.condition("ScalingActive", "other") == ("False", "AmbiguousSelector", text)
        assert await story.messages("AmbiguousSelector") == {text}
        await world.delete(HORIZONTAL_POD_AUTOSCALERS, "other")
        await world.wait(20)
        assert (await story.condition("ScalingActive"))[:2] == ("True", "ValidMetricFound")


@pytest.mark.parametrize("meanwhile", [False, True], ids=["between syncs", "during a sync"])
async def test_an_autoscaler_of_another_target_selects_no_pods_of_the_former_one(world: World, meanwhile):
    """Some switch an autoscaler off by the name of a target that does not exist, or has no replicas."""
    other = {"kind": "Deployment", "apiVersion": "apps/v1", "name": "nowhere"}

    async def turn() -> None:
        await world.patch(HORIZONTAL_POD_AUTOSCALERS, "web", {"spec": {"scaleTargetRef": other}})
        await world.wait(1)

    story = Story(world)
    transport = Meanwhile(world.server.transport(), "GET", "/deployments/web/scale" if meanwhile else "-", turn)
    async with story.running(transport=transport):
        await story.deploy(cpu_total="100m")
        await world.wait(10)
        await story.autoscale()
        await world.wait(40)
        if not meanwhile:
            assert (await story.condition("ScalingActive"))[:2] == ("True", "ValidMetricFound")
            await turn()
        assert transport.happened is meanwhile
        await story.autoscale(name="second")
        await world.wait(40)
        assert (await story.condition("AbleToScale"))[:2] == ("False", "FailedGetScale")
        assert (await story.condition("ScalingActive", "second"))[:2] == ("True", "ValidMetricFound")


async def test_an_autoscaler_whose_target_is_gone_selects_no_pods(world: World):
    """A target of another name has the pods now, and an autoscaler of its own."""
    story = Story(world)
    async with story.running():
        await story.deploy(cpu_total="100m")
        await world.wait(10)
        await story.autoscale()
        await world.wait(40)
        assert (await story.condition("ScalingActive"))[:2] == ("True", "ValidMetricFound")
        await world.delete(DEPLOYMENTS, "web")
        await story.deploy(name="new", app="web", cpu_total="100m")
        await world.wait(40)
        assert (await story.condition("AbleToScale"))[:2] == ("False", "FailedGetScale")
        target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "new"}
        await story.autoscale(name="second", scaleTargetRef=target)
        await world.wait(40)
        assert (await story.condition("ScalingActive", "second"))[:2] == ("True", "ValidMetricFound")


async def test_a_target_created_later(world: World):
    story = Story(world)
    async with story.running():
        await story.autoscale()
        await world.wait(20)
        text = 'deployments.apps "web" not found'
        about = f"the HPA controller was unable to get the target's current scale: {text}"
        assert await story.condition("AbleToScale") == ("False", "FailedGetScale", about)
        assert await story.messages("FailedGetScale") == {text}
        await story.deploy(cpu_total="100m")
        assert await story.followed(45) == [1, 2]


async def test_a_target_with_zero_replicas_is_not_scaled(world: World):
    story = Story(world)
    async with story.running():
        await story.deploy(0, cpu_total="200m")
        await story.autoscale(minReplicas=2)
        assert await story.followed(60) == [0]
        text = "scaling is disabled since the replica count of the target is zero"
        assert await story.condition("ScalingActive") == ("False", "ScalingDisabled", text)
        await world.patch(DEPLOYMENTS, "web", {"spec": {"replicas": 1}})
        assert await story.followed(60) == [1, 2, 4]


@pytest.mark.parametrize(("gate", "size"), [("true", 1), ("false", 2)])
async def test_tolerance_per_direction(world: World, gate, size):
    story = Story(world)
    async with story.running(gates=[("", f"HPAConfigurableTolerance={gate}")]):
        await story.deploy(cpu_total="65m")
        rules = {"tolerance": "0.5", "stabilizationWindowSeconds": 0}
        await story.autoscale(behavior={"scaleUp": rules})
        await world.wait(40)
        assert await story.replicas() == size


async def test_a_size_is_not_given_to_another_target_of_the_name(world: World):
    story = Story(world)

    async def replace() -> None:
        await world.delete(DEPLOYMENTS, "web")
        await story.deploy(7, cpu_total="350m")

    transport = Meanwhile(world.server.transport(), "PUT", "/deployments/web/scale", replace)
    async with story.running(transport=transport):
        await story.deploy(1, cpu_total="150m")
        await world.wait(20)
        await story.autoscale()
        while not transport.happened:
            await world.wait(1)
        assert await story.followed(10, step=1) == [7]


async def test_a_recreated_autoscaler_has_no_history(world: World):
    story = Story(world)
    async with story.running():
        await story.deploy(cpu_total="200m")
        await story.autoscale()
        assert await story.followed(60) == [1, 4]
        await story.load(cpu_total="10m")
        await world.delete(HORIZONTAL_POD_AUTOSCALERS, "web")
        await story.autoscale(maxReplicas=3)
        assert await story.followed(60) == [4, 3]
        await world.wait(200)
        assert await story.followed(100) == [3, 1]  # 300 s after it was made, not after the other's peak


async def test_another_target_is_not_scaled_to_the_size_of_the_former_one(world: World):
    story = Story(world)
    async with story.running():
        await story.deploy(6, cpu_total="300m")
        await story.deploy(1, name="api", cpu_total="40m")
        await story.autoscale()
        await world.wait(60)
        target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "api"}
        await world.patch(HORIZONTAL_POD_AUTOSCALERS, "web", {"spec": {"scaleTargetRef": target}})
        await world.wait(90)
        assert (await story.condition("ScalingActive"))[:2] == ("True", "ValidMetricFound")
        assert (await world.get(DEPLOYMENTS, "api"))["spec"]["replicas"] == 1


async def test_a_recreated_target_is_not_scaled_to_the_size_of_the_former_one(world: World):
    story = Story(world)
    async with story.running():
        await story.deploy(6, cpu_total="300m")
        await story.autoscale()
        await world.wait(60)
        for kind in (DEPLOYMENTS, REPLICA_SETS, PODS):
            for one in await world.items(kind):
                await world.delete(kind, one["metadata"]["name"], grace_s=0)
        await story.deploy(1, cpu_total="40m")
        assert await story.followed(90) == [1]
        assert (await story.condition("ScalingActive"))[:2] == ("True", "ValidMetricFound")


async def test_a_target_that_could_not_be_read_keeps_its_history(world: World):
    story, broken = Story(world), [False]
    transport = Refusing(world.server.transport(), lambda request: broken[0] and request.path.endswith("/scale"))
    async with story.running(transport=transport):
        await story.deploy(cpu_total="200m")
        await story.autoscale()
        assert await story.followed(60) == [1, 4]
        await story.load(cpu_total="10m")
        broken[0] = True
        await world.wait(30)
        broken[0] = False
        assert transport.refused
        assert await story.followed(150) == [4]
        assert await story.followed(150) == [4, 1]


async def test_failed_writes_do_not_change_the_result(world: World):
    story = Story(world)
    transport = Faulty(world.server.transport(), random.Random(7), 0.4)
    async with story.running(transport=transport):
        await story.deploy(cpu_total="400m")
        await story.autoscale()
        sizes = await story.followed(300)
        assert sizes == sorted(sizes) and sizes[-1] == 8
        await story.load(cpu_total="80m")
        sizes = await story.followed(600)
        assert sizes == [8, 2]
    assert transport.faults > 5


@pytest.mark.parametrize("status", [None, 504], ids=["no answer", "a gateway's answer"])
async def test_a_change_of_size_whose_answer_is_lost_is_done(world: World, status):
    """Otherwise the policies would not count it, and permit the next one at once."""
    lost: list[Request] = []

    def lose(request: Request, answer: Response) -> Response:
        if lost or request.method != "PUT" or not request.path.endswith("/scale"):
            return answer
        lost.append(request)
        if status is None:
            raise TransportError("the connection was lost")
        return Response(status, {}, b"upstream timed out")

    story = Story(world)
    async with story.running(transport=Rewriting(world.server.transport(), lose)):
        await story.deploy(cpu_total="400m")
        await story.autoscale(behavior={"scaleUp": pods_per(1, 60)})
        assert await story.followed(60) == [1, 2]
        assert lost
        assert len(await story.messages("SuccessfulRescale")) == 1
        assert not await story.messages("FailedRescale")
        assert (await story.status())["lastScaleTime"]


async def test_a_change_of_size_that_never_arrived_is_no_change(world: World):
    story, broken = Story(world), [True]
    transport = Refusing(world.server.transport(), lambda request: broken[0] and request.method == "PUT")
    async with story.running(transport=transport):
        await story.deploy(cpu_total="400m")
        await story.autoscale(behavior={"scaleUp": pods_per(1, 60)})
        await world.wait(35)
        assert transport.refused
        broken[0] = False
        assert await story.followed(30) == [1, 2]


class Counting(Around):
    """A transport that notes when which path was read."""

    def __init__(self, world: World) -> None:
        self._world = world
        super().__init__(world.server.transport())
        self.reads: Counter[str] = Counter()
        self.writes: Counter[str] = Counter()

    async def send(self, request: Any) -> Any:
        (self.reads if request.method == "GET" else self.writes)[request.path] += 1
        return await self._inner.send(request)


async def test_an_autoscaler_syncs_once_a_period_and_is_written_on_changes(world: World):
    story, transport = Story(world), Counting(world)
    async with story.running(transport=transport):
        for number in range(20):
            name = f"w{number}"
            await story.deploy(name=name, cpu="50m")
            target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": name}
            await story.autoscale(name=name, scaleTargetRef=target)
        await world.wait(40)
        transport.reads.clear()
        transport.writes.clear()
        await world.wait(150)
        scales = {path: count for path, count in transport.reads.items() if path.endswith("/scale")}
        assert len(scales) == 20 and set(scales.values()) == {10}
        assert not any("horizontalpodautoscalers" in path for path in transport.writes)


async def test_a_deleted_autoscaler_has_no_metrics(world: World):
    story, metrics = Story(world), Registry()
    gauge = "\nhorizontal_pod_autoscaler_controller_desired_replicas{"
    async with story.running(metrics=metrics):
        await story.deploy(cpu_total="50m")
        await story.autoscale()
        await world.wait(60)
        assert gauge in metrics.expose().decode()
        await world.delete(HORIZONTAL_POD_AUTOSCALERS, "web")
        await world.wait(30)
        assert gauge not in metrics.expose().decode()


@pytest.mark.real_time
async def test_many_autoscalers_and_pods_yield_to_the_event_loop():
    pods = [PODS.decode(b'{"metadata":{"name":"p","labels":{"app":"a"}}}')] * 1000
    selectors = {f"h{number}": parse(f"app={'a' if number == 7 else number}") for number in range(100)}
    turns = [0]

    async def turn() -> None:
        while True:
            turns[0] += 1
            await asyncio.sleep(0)

    turning = asyncio.create_task(turn())
    assert await controller._choosing(selectors, pods) == ["h7"]
    turning.cancel()
    assert turns[0] >= 100 * 1000 // controller.AT_ONCE
