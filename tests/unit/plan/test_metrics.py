"""Autoscalers on a twin: load is constant, or set."""

import json
from datetime import UTC, datetime
from functools import cache
from typing import Any

import pytest

from kcm_cli.api.resource import GVR
from kcm_cli.component.clock import LoopClock
from kcm_cli.machinery import codec
from kcm_cli.plan import Answer, Change, Delete, Metric, Options, PlanError, Scale, Snapshot, Target, plan
from kcm_cli.plan.snapshot import Collection, Item
from kcm_cli.plan.twin.loading import Loaded
from kcm_cli.plan.twin.metrics import AUTOSCALERS, FrozenMetrics
from kcm_cli.rest.transport import Request
from kcm_cli.sandbox.apiserver.store import Store
from kcm_cli.sandbox.usage.api import MetricsApi
from kcm_cli.sandbox.views import PODS
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


def test_a_metric_of_an_autoscaler_that_the_plan_deletes_is_refused() -> None:
    with pytest.raises(PlanError, match="no HorizontalPodAutoscaler scales Deployment sim/web"):
        planned(Delete(Target("hpa", "web", NAMESPACE)), given(120))


def stored(*docs: dict[str, Any]) -> Store:
    """A twin's store with these objects of the namespace sim."""
    gvrs = {"Pod": PODS.gvr, "HorizontalPodAutoscaler": AUTOSCALERS, "ReplicaSet": GVR("apps", "v1", "replicasets")}
    found: dict[str, list[Item]] = {kind: [] for kind in gvrs}
    for doc in docs:
        name = doc["metadata"]["name"]
        found[doc["kind"]].append(Item(NAMESPACE, name, name, codec.encode(doc)))
    collections = {gvrs[kind]: Collection(gvrs[kind], kind, True, tuple(items)) for kind, items in found.items()}
    return Store(Loaded(Snapshot(datetime(2026, 1, 1, tzinfo=UTC), "", "", collections)))


def running(name: str, of: str) -> dict[str, Any]:
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": of, "uid": of, "controller": True}
    metadata = {"name": name, "namespace": NAMESPACE, "uid": name, "labels": {"app": of}, "ownerReferences": [owner]}
    spec = {"containers": [{"name": "c", "image": "i"}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": {"phase": "Running"}}


def loaded(of: str, **status: Any) -> dict[str, Any]:
    doc = autoscaler(scaleTargetRef={"kind": "ReplicaSet", "name": of})
    current = {"type": "Resource", "resource": {"name": "cpu", "current": {"averageValue": "100m"}}}
    doc["metadata"]["name"] = of
    return doc | {"status": {"currentReplicas": 2, "currentMetrics": [current], **status}}


async def test_autoscalers_of_a_namespace_share_one_look_at_its_pods(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a thousand pods each look takes a while, and fifty autoscalers ask four times a minute."""
    sets = [str(number) for number in range(5)]
    store = stored(*map(loaded, sets), *(running(f"{of}-{n}", of) for of in sets for n in (1, 2)))
    metrics, looks = FrozenMetrics(store, LoopClock(datetime(2026, 1, 1, tzinfo=UTC))), list[GVR]()
    whole = Store.list

    def counted(self: Store, gvr: GVR, *where: str) -> list[Any]:
        looks.append(gvr)
        return whole(self, gvr, *where)

    monkeypatch.setattr(Store, "list", counted)

    def used(of: str) -> list[tuple[str, str]]:
        path = f"/apis/metrics.k8s.io/v1beta1/namespaces/{NAMESPACE}/pods"
        answer = metrics.answer(Request("GET", path, (("labelSelector", f"app={of}"),)))
        assert answer is not None
        items = json.loads(answer.body)["items"]
        return [(one["metadata"]["name"], one["containers"][0]["usage"]["cpu"]) for one in items]

    assert [used(of) for of in sets] == [[(f"{of}-{n}", "100000000n") for n in (1, 2)] for of in sets]
    assert looks.count(PODS.gvr) == 1
    store.create(PODS.gvr, NAMESPACE, "3-3", running("3-3", "3"))
    assert used("3") == [(f"3-{n}", "66666667n") for n in (1, 2, 3)]
    store.delete(PODS.gvr, NAMESPACE, "3-1")
    assert used("3") == [(f"3-{n}", "100000000n") for n in (2, 3)]


@pytest.mark.parametrize(
    "status",
    [
        {"currentMetrics": [None, 7, {"type": 7}, {"type": "Resource", "resource": "x"}]},
        {"currentMetrics": {"a": 1}, "currentReplicas": "many"},
        {"currentReplicas": 10**400},
        {"currentMetrics": [{"type": "Resource", "resource": {"name": "cpu", "current": {"averageValue": "1e999"}}}]},
    ],
)
def test_an_odd_autoscaler_costs_the_others_nothing(status: dict[str, Any]) -> None:
    odd = [loaded("odd", **status), {**loaded("text"), "spec": "x", "status": ["y"]}, {**loaded("null"), "spec": None}]
    pods = [running(f"{of}-1", of) for of in ("odd", "web")] + [{**running("z", "web"), "spec": 7}]
    metrics = FrozenMetrics(stored(*odd, loaded("web"), *pods), LoopClock(datetime(2026, 1, 1, tzinfo=UTC)))
    answer = metrics.answer(Request("GET", f"/apis/metrics.k8s.io/v1beta1/namespaces/{NAMESPACE}/pods"))
    assert answer is not None and "web-1" in {one["metadata"]["name"] for one in json.loads(answer.body)["items"]}
    assert metrics.give(Metric(NAMESPACE, "ReplicaSet", "web", "cpu", value=200.0)) == ""
    assert "is not scaled by x" in metrics.give(Metric(NAMESPACE, "ReplicaSet", "web", "x", value=1.0))
