"""Autoscalers on a twin: load is constant, or set."""

from functools import cache
from typing import Any

import pytest

from kcm_cli.plan import Answer, Change, Metric, Options, PlanError, Scale, Snapshot, Target, plan
from kcm_cli.sandbox.usage.api import MetricsApi
from tests.kit.simulation import NAMESPACE, World
from tests.kit.workload import deployment
from tests.unit.plan.clusters import snapshot_of

USE = "sandbox.kcm.dev/cpu"


def autoscaler(**spec: Any) -> dict[str, Any]:
    target = {"type": "Utilization", "averageUtilization": 50}
    whole = {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
        "minReplicas": 2,
        "maxReplicas": 10,
        "metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": target}}],
        **spec,
    }
    metadata = {"name": "web", "namespace": NAMESPACE}
    return {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": metadata, "spec": whole}


@cache
def autoscaled() -> Snapshot:
    """A Deployment of 4 pods that use half of what they request, which is what their autoscaler wants."""

    async def story(world: World) -> None:
        world.server.api.aggregate(MetricsApi(world.server.store, world.clock))
        doc = deployment("web", 4)
        template = doc["spec"]["template"]
        template["metadata"]["annotations"] = {USE: "100m"}
        template["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "200m"}}
        await world.create("apps/v1/deployments", doc)
        await world.create("autoscaling/v2/horizontalpodautoscalers", autoscaler())
        await world.clock.sleep(400)

    return snapshot_of(story)


def planned(*changes: Change, horizon_s: float = 600.0) -> Answer:
    return plan(autoscaled(), changes, Options(horizon_s=horizon_s))


def scaled(answer: Answer) -> list[str]:
    return [one.detail for one in answer.timeline if one.what == "scaled"]


def given(percent: float | None = None, **more: Any) -> Metric:
    return Metric(NAMESPACE, "Deployment", "web", "cpu", percent, **more)


def test_constant_load_changes_nothing() -> None:
    assert planned().audit == ()


def test_more_load_adds_pods() -> None:
    answer = planned(given(120))  # 4 pods at 120 % are 10 at 48 %
    assert scaled(answer)[-1].endswith("to 10")
    (web,) = [one for one in answer.differences if str(one.about) == "Deployment sim/web"]
    assert ("spec.replicas", 4, 10) in [(field.path, field.before, field.after) for field in web.fields]


def test_a_little_more_load_adds_fewer_pods() -> None:
    assert scaled(planned(given(75))) == ["from 4 to 6"]


def test_less_load_removes_pods_after_stabilization() -> None:
    answer = planned(given(20))
    (down,) = [one for one in answer.timeline if one.what == "scaled"]
    assert down.detail == "from 4 to 2"
    assert 240 <= down.at_s <= 330  # the stabilisation window of five minutes


def test_a_quantity_is_per_pod() -> None:
    assert scaled(planned(given(value=150.0))) == ["from 4 to 6"]


def test_manual_scaling_is_reverted() -> None:
    answer = planned(Scale(Target("deploy", "web", NAMESPACE), 8))
    assert scaled(answer)[-1] == "from 8 to 4"


@pytest.mark.parametrize(
    ("metric", "text"),
    [
        (Metric(NAMESPACE, "Deployment", "other", "cpu", 5), "no HorizontalPodAutoscaler scales Deployment sim/other"),
        (Metric(NAMESPACE, "Deployment", "web", "memory", 5), "is not scaled by memory"),
    ],
)
def test_an_unused_metric_is_refused(metric: Metric, text: str) -> None:
    with pytest.raises(PlanError, match=text):
        planned(metric)
