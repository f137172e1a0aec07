"""Metrics of custom.metrics.k8s.io and external.metrics.k8s.io, on virtual time."""

import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from kcm_cli.api.apps import DEPLOYMENTS
from kcm_cli.api.autoscaling import HORIZONTAL_POD_AUTOSCALERS, TargetReference
from kcm_cli.api.resource import GVR, Resource
from kcm_cli.component.metrics import Registry
from kcm_cli.controllers.horizontal_pod_autoscaler.targets import Targets
from kcm_cli.engine.door import Door
from kcm_cli.machinery.meta import PartialObject
from kcm_cli.planning.actions import MERGE
from kcm_cli.rest.client import Client
from kcm_cli.rest.mapper import Mapper
from kcm_cli.rest.ratelimit import Unlimited
from kcm_cli.rest.transport import Around, Request, Response, Transport, TransportError
from tests.kit.faults import Rewriting
from tests.kit.widgets import CRDS
from tests.kit.world import PODS, World, resource
from tests.unit.controllers.horizontal_pod_autoscaler.adapter import Adapter
from tests.unit.controllers.horizontal_pod_autoscaler.story import CPU, Story

PREFIX = "horizontal_pod_autoscaler_controller_"
BOTH = ["v1beta2", "v1beta1"]
INGRESS = {"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "name": "front"}


def pods(average: str, **metric: Any) -> dict[str, Any]:
    target = {"type": "AverageValue", "averageValue": average}
    return {"type": "Pods", "pods": {"metric": {"name": "hits", **metric}, "target": target}}


def value(text: str) -> dict[str, str]:
    return {"type": "Value", "value": text}


def average(text: str) -> dict[str, str]:
    return {"type": "AverageValue", "averageValue": text}


def of_object(target: dict[str, str], about: dict[str, str] = INGRESS) -> dict[str, Any]:
    return {"type": "Object", "object": {"describedObject": about, "metric": {"name": "hits"}, "target": target}}


def external(target: dict[str, str], **metric: Any) -> dict[str, Any]:
    return {"type": "External", "external": {"metric": {"name": "queue", **metric}, "target": target}}


async def names(world: World) -> list[str]:
    listed = json.loads(await world.client.list_page(PODS, "default"))
    return sorted(pod["metadata"]["name"] for pod in listed["items"])


@pytest.mark.parametrize(
    ("versions", "asked"),
    [
        pytest.param(BOTH, "v1beta2", id="both"),
        pytest.param(["v1beta1", "v1beta2"], "v1beta1", id="the server's order"),
        pytest.param(["v2", "v1beta1"], "v1beta1", id="the first that is known"),
    ],
)
async def test_pods(world: World, versions, asked):
    story, adapter = Story(world), Adapter(world.server.transport(), custom=versions)
    async with story.running(transport=adapter):
        await story.deploy(2)
        await world.wait(10)
        first, second = await names(world)
        adapter.pods("hits", **{first: "15", second: "25"})
        await story.autoscale(pods("10", selector={"matchLabels": {"verb": "GET"}}))
        await world.wait(20)
        assert await story.replicas() == 4
        path, query = adapter.asked[0]
        assert path == f"{asked}/namespaces/default/pods/*/hits"
        assert query == {"labelSelector": "app=web", "metricLabelSelector": "verb=GET"}
        metric = {"name": "hits", "selector": {"matchLabels": {"verb": "GET"}}}
        assert await story.current() == [
            {"type": "Pods", "pods": {"metric": metric, "current": {"averageValue": "20"}}}
        ]
        assert await story.messages("SuccessfulRescale") == {"New size: 4; reason: pods metric hits above target"}


@pytest.mark.parametrize(
    ("target", "now", "size", "reason"),
    [
        pytest.param(value("100"), {"value": "250"}, 5, "Ingress metric hits", id="value"),
        pytest.param(average("60"), {"averageValue": "125"}, 5, "external metric hits(nil)", id="average"),
    ],
)
async def test_an_object(world: World, target, now, size, reason):
    story, adapter = Story(world), Adapter(world.server.transport(), custom=BOTH)
    adapter.value("namespaces/default/ingresses.networking.k8s.io/front/hits", "250")
    async with story.running(transport=adapter):
        await story.deploy(2)
        await world.wait(10)
        await story.autoscale(of_object(target))
        await world.wait(20)
        assert adapter.asked[0][1] == {}
        assert await story.replicas() == min(size, 4)
        text = f"New size: 4; reason: {reason} above target"
        assert await story.messages("SuccessfulRescale") == {text}
        expected = {"describedObject": INGRESS, "metric": {"name": "hits"}, "current": now}
        assert await story.current() == [{"type": "Object", "object": expected}]


async def test_the_namespace_itself(world: World):
    story, adapter = Story(world), Adapter(world.server.transport(), custom=BOTH)
    adapter.value("namespaces/default/metrics/hits", "30")
    async with story.running(transport=adapter):
        await story.deploy()
        await world.wait(10)
        about = {"apiVersion": "v1", "kind": "Namespace", "name": "elsewhere"}
        await story.autoscale(of_object(value("10"), about))
        await world.wait(20)
        assert await story.replicas() == 3


@pytest.mark.parametrize(
    ("target", "now"),
    [
        pytest.param(value("10"), {"value": "30"}, id="value"),
        pytest.param(average("10"), {"averageValue": "30"}, id="average"),
    ],
)
async def test_external(world: World, target, now):
    story, adapter = Story(world), Adapter(world.server.transport(), external=["v1beta1"])
    adapter.value("namespaces/default/queue", "10", "20")
    async with story.running(transport=adapter):
        await story.deploy()
        await world.wait(10)
        selector = {"matchLabels": {"name": "mail"}}
        await story.autoscale(external(target, selector=selector))
        await world.wait(20)
        assert await story.replicas() == 3
        assert adapter.asked[0] == ("v1beta1/namespaces/default/queue", {"labelSelector": "name=mail"})
        metric = {"name": "queue", "selector": selector}
        assert await story.current() == [{"type": "External", "external": {"metric": metric, "current": now}}]


async def serve_external(world: World, plural: str, **values: str) -> None:
    """Serve an external metric by the API server itself: custom objects in the form of the metric's values."""
    names = {"plural": plural, "kind": "ExternalMetricValue", "listKind": "ExternalMetricValueList"}
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1beta1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    group = "external.metrics.k8s.io"
    approved = {"api-approved.kubernetes.io": "unapproved, test"}
    spec = {"group": group, "scope": "Namespaced", "names": names, "versions": [version]}
    await world.create(CRDS, {"metadata": {"name": f"{plural}.{group}", "annotations": approved}, "spec": spec})
    await world.wait(2)
    for name, figure in values.items():
        body = {"apiVersion": f"{group}/v1beta1", "kind": names["kind"], "metadata": {"name": name}}
        shown = {"metricName": plural, "timestamp": "2026-01-01T00:00:00Z", "value": figure}
        await world.create(Resource(GVR(group, "v1beta1", plural), names["kind"], PartialObject), {**body, **shown})


@pytest.mark.parametrize(
    "metric", [external(average("10")), of_object(average("10"))], ids=["external metric", "object metric"]
)
async def test_the_surge_of_a_rollout_does_not_raise_the_size(world: World, metric):
    """kubernetes#138505: with 108 of a wanted 10 a pod, 10 pods are within the tolerance, and so are 12."""
    story, adapter = Story(world), Adapter(world.server.transport(), custom=BOTH)
    adapter.value("namespaces/default/ingresses.networking.k8s.io/front/hits", "108")
    async with story.running(transport=adapter):
        await serve_external(world, "queue", mail="60", news="48")
        await story.deploy(10)
        await world.wait(10)
        rolling = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 2, "maxUnavailable": 0}}
        never = {"metadata": {"annotations": {"sandbox.kcm.dev/ready-delay": "24h"}}}
        await world.patch(DEPLOYMENTS, "web", {"spec": {"strategy": rolling, "template": never}})
        await world.wait(10)
        assert (await world.get(DEPLOYMENTS, "web"))["status"]["replicas"] == 12
        await story.autoscale(metric, maxReplicas=40)
        assert await story.followed(120) == [10]
        (found,) = await story.current()
        assert found[metric["type"].lower()]["current"] == {"averageValue": "9"}
        assert (await story.condition("ScalingActive"))[:2] == ("True", "ValidMetricFound")


class Meanwhile(Around):
    """Waits for ``during`` while a metric is requested."""

    def __init__(self, inner: Transport, during: Callable[[], Awaitable[object]]) -> None:
        super().__init__(inner)
        self._during = during

    async def send(self, request: Request) -> Response:
        answer = await self._inner.send(request)
        if request.path.startswith("/apis/custom.metrics.k8s.io/"):
            await self._during()
        return answer


async def test_pods_that_appear_while_their_metrics_are_requested_count(world: World):
    """A pod without a metric counts as idle, so that three at twice the target and three more are enough."""
    story, adapter = Story(world), Adapter(world.server.transport(), custom=BOTH)

    async def grow() -> None:
        await world.patch(DEPLOYMENTS, "web", {"spec": {"replicas": 6}})
        await world.wait(5)

    async with story.running(transport=Meanwhile(adapter, grow)):
        await story.deploy(3)
        await world.wait(10)
        adapter.pods("hits", **dict.fromkeys(await names(world), "20"))
        await story.autoscale(pods("10"))
        await world.wait(25)
        assert await story.replicas() == 6
        assert await story.messages("SuccessfulRescale") == set()


NO_CUSTOM = "unable to fetch metrics from custom metrics API: no custom metrics API (custom.metrics.k8s.io) registered"


@pytest.mark.parametrize(
    ("served", "metric", "reason", "text"),
    [
        pytest.param({}, pods("10"), "FailedGetPodsMetric", f"unable to get metric hits: {NO_CUSTOM}", id="no API"),
        pytest.param(
            {},
            of_object(value("10"), {**INGRESS, "kind": "Door"}),
            "FailedGetObjectMetric",
            f"unable to get metric hits: Door on default front/{NO_CUSTOM}",
            id="no API for an object",
        ),
        pytest.param(
            {"custom": ["v3"]},
            pods("10"),
            "FailedGetPodsMetric",
            "unable to get metric hits: unable to fetch metrics from custom metrics API: "
            "no known available metric versions found",
            id="no version that is known",
        ),
        pytest.param(
            {"custom": BOTH},
            of_object(value("10"), {**INGRESS, "kind": "Door"}),
            "FailedGetObjectMetric",
            "unable to get metric hits: Door on default front/unable to fetch metrics from custom metrics API: unable "
            'to map kind Door.networking.k8s.io to resource: no matches for kind "Door" in group "networking.k8s.io"',
            id="no such kind",
        ),
        pytest.param(
            {"custom": BOTH},
            pods("10"),
            "FailedGetPodsMetric",
            "unable to get metric hits: unable to fetch metrics from custom metrics API: no such metric",
            id="no such metric",
        ),
        pytest.param(
            {"external": ["v1beta1"]},
            external(value("10")),
            "FailedGetExternalMetric",
            "unable to get external metric default/queue/nil: "
            "unable to fetch metrics from external metrics API: no such metric",
            id="no such external metric",
        ),
        pytest.param(
            {},
            external(value("10")),
            "FailedGetExternalMetric",
            "unable to get external metric default/queue/nil: unable to fetch metrics from external metrics API: "
            "the server could not find the requested resource (get queue.external.metrics.k8s.io)",
            id="no external API",
        ),
    ],
)
async def test_unreadable_metrics_are_reported(world: World, served, metric, reason, text):
    story, adapter = Story(world), Adapter(world.server.transport(), **served)
    async with story.running(transport=adapter):
        await story.deploy()
        await world.wait(10)
        await story.autoscale(metric)
        await world.wait(20)
        about = f"the HPA was unable to compute the replica count: {text}"
        assert await story.condition("ScalingActive") == ("False", reason, about)
        assert await story.messages(reason) == {text}
        assert await story.current() == [{"type": ""}]


@pytest.mark.parametrize("versions", [["v1beta1"], BOTH])
async def test_an_adapter_that_is_installed_later(world: World, versions):
    story, adapter = Story(world), Adapter(world.server.transport())
    adapter.value("namespaces/default/metrics/hits", "20")
    async with story.running(transport=adapter):
        await story.deploy()
        about = {"apiVersion": "v1", "kind": "Namespace", "name": "default"}
        await story.autoscale(of_object(value("10"), about))
        await world.wait(60)
        assert await story.replicas() == 1
        adapter.versions["custom.metrics.k8s.io"] = versions
        await world.wait(60)
        assert await story.replicas() > 1


async def test_a_failed_metric_prevents_only_scaling_down(world: World):
    story, adapter = Story(world), Adapter(world.server.transport(), external=["v1beta1"])
    async with story.running(transport=adapter):
        await story.deploy(2, cpu_total="30m")
        down = {"scaleDown": {"stabilizationWindowSeconds": 0}}
        await story.autoscale(CPU, external(value("10")), behavior=down)
        await world.wait(40)
        assert await story.replicas() == 2
        assert (await story.condition("ScalingActive"))[:2] == ("False", "FailedGetExternalMetric")
        assert [metric["type"] for metric in await story.current()] == ["Resource", ""]
        await story.load(cpu_total="150m")
        await world.wait(20)
        assert await story.replicas() == 3
        adapter.value("namespaces/default/queue", "20")
        await story.load(cpu_total="30m")
        for _ in range(30):  # one look, whenever it is
            await world.wait(1)
            if await story.replicas() != 3:
                break
        assert await story.replicas() == 6  # the higher one counts
        adapter.value("namespaces/default/queue", "1")
        await world.wait(40)
        assert await story.replicas() == 1


async def test_metrics_of_the_controller(world: World):
    story, adapter = Story(world), Adapter(world.server.transport())
    registry = Registry()
    async with story.running(transport=adapter, metrics=registry):
        await story.deploy(cpu_total="150m")
        await world.wait(10)
        await story.autoscale(CPU, external(value("10")))
        await world.wait(20)
        assert await story.replicas() == 3
        exposed = registry.expose().decode()
        await world.delete(HORIZONTAL_POD_AUTOSCALERS, "web")
        await world.wait(20)
        assert f"{PREFIX}num_horizontal_pod_autoscalers 0" in registry.expose().decode()
    for line in (
        'reconciliations_total{action="scale_up",error="internal"} 1',
        'metric_computation_total{action="scale_up",error="none",metric_type="Resource"} 1',
        'metric_computation_total{action="none",error="internal",metric_type="External"} 1',
        'desired_replicas{hpa_name="web",namespace="default"} 3',
        "num_horizontal_pod_autoscalers 1",
    ):
        assert PREFIX + line in exposed


def allow_zero(world: World) -> None:
    """Into the store: the sandbox's API server is one without the gate."""
    store, gvr = world.server.store, HORIZONTAL_POD_AUTOSCALERS.gvr
    stored = store.get(gvr, "default", "web")
    assert stored is not None
    doc = json.loads(stored.data)
    doc["spec"]["minReplicas"] = 0
    store.update(gvr, "default", "web", doc)


async def test_to_zero_and_back(world: World):
    story, adapter = Story(world), Adapter(world.server.transport(), external=["v1beta1"])
    adapter.value("namespaces/default/queue", "0")
    async with story.running(transport=adapter, gates=[("", "HPAScaleToZero=true")]):
        await story.deploy()
        down = {"scaleDown": {"stabilizationWindowSeconds": 0}}
        await story.autoscale(external(average("10")), behavior=down)
        allow_zero(world)
        await world.wait(40)
        assert await story.replicas() == 0
        text = "the HPA controller scaled the workload to zero"
        assert await story.condition("ScaledToZero") == ("True", "ScaledToZero", text)
        adapter.value("namespaces/default/queue", "30")
        await world.wait(40)
        assert await story.replicas() == 3
        assert (await story.condition("ScaledToZero"))[:2] == ("False", "NotScaledToZero")
        adapter.value("namespaces/default/queue", "0")
        await world.wait(40)
        assert await story.replicas() == 0
        await world.patch(HORIZONTAL_POD_AUTOSCALERS, "web", {"spec": {"minReplicas": 2}})
        await world.wait(20)
        assert await story.replicas() == 2
        assert "New size: 2; reason: Current number of replicas below Spec.MinReplicas" in (
            await story.messages("SuccessfulRescale")
        )


async def test_a_change_to_zero_whose_answer_is_lost_is_done(world: World):
    """A scale of zero has no ``replicas``."""
    lost: list[Request] = []

    def lose(request: Request, answer: Response) -> Response:
        if request.method == "PUT" and request.path.endswith("/scale"):
            lost.append(request)
            raise TransportError("the connection was lost")
        return answer

    adapter = Adapter(Rewriting(world.server.transport(), lose), external=["v1beta1"])
    story = Story(world)
    adapter.value("namespaces/default/queue", "0")
    async with story.running(transport=adapter, gates=[("", "HPAScaleToZero=true")]):
        await story.deploy()
        await story.autoscale(external(average("10")), behavior={"scaleDown": {"stabilizationWindowSeconds": 0}})
        allow_zero(world)
        await world.wait(40)
        assert await story.replicas() == 0 and len(lost) == 1
        assert len(await story.messages("SuccessfulRescale")) == 1
        assert not await story.messages("FailedRescale")
        assert (await story.condition("ScaledToZero"))[:2] == ("True", "ScaledToZero")


WIDGETS = resource("widgets", "example.com")
CRD = resource("customresourcedefinitions", "apiextensions.k8s.io", namespaced=False)


def definition(scope: str) -> dict[str, Any]:
    scale = {
        "specReplicasPath": ".spec.size",
        "statusReplicasPath": ".status.size",
        "labelSelectorPath": ".status.selector",
    }
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
        "subresources": {"status": {}, "scale": scale},
    }
    named = {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"}
    spec = {"group": "example.com", "scope": scope, "names": named, "versions": [version]}
    return {"metadata": {"name": "widgets.example.com"}, "spec": spec}


TO_WIDGET: dict[str, Any] = {"apiVersion": "example.com/v1", "kind": "Widget", "name": "w"}
WIDGET = {
    "apiVersion": "example.com/v1",
    "kind": "Widget",
    "metadata": {"name": "w"},
    "spec": {"size": 1},
    "status": {"size": 1, "selector": "app=w"},
}


async def make_widget(world: World, kind: Any) -> None:
    namespace = "default" if kind.namespaced else ""
    await world.create(kind, WIDGET)
    status = {"status": WIDGET["status"]}
    await world.client.patch(kind, namespace, "w", status, content_type=MERGE, subresource="status")


async def test_a_custom_resource_with_a_scale(world: World):
    story, adapter = Story(world), Adapter(world.server.transport(), external=["v1beta1"])
    adapter.value("namespaces/default/queue", "30")
    async with story.running(transport=adapter):
        await story.autoscale(external(average("10")), scaleTargetRef=TO_WIDGET)
        await world.wait(20)
        text = 'no matches for kind "Widget" in group "example.com"'
        assert await story.messages("FailedGetScale") == {text}
        await world.create(CRD, definition("Namespaced"))
        await world.wait(5)
        await make_widget(world, WIDGETS)
        await world.wait(40)
        assert (await world.get(WIDGETS, "w"))["spec"]["size"] == 3
        await world.delete(CRD, "widgets.example.com")
        await world.wait(60)
        assert (await story.condition("AbleToScale"))[:2] == ("False", "FailedGetScale")
        await world.create(CRD, definition("Namespaced"))
        await world.wait(5)
        await make_widget(world, WIDGETS)
        await world.wait(60)
        assert (await world.get(WIDGETS, "w"))["spec"]["size"] == 3


UNREADABLE = (
    "received an object from a /scale endpoint which was not convertible to autoscaling Scale: "
    "failed to parse target selector: "
)


@pytest.mark.parametrize(
    ("selector", "reason", "text"),
    [
        ("app!=x", "FailedGetScale", f'{UNREADABLE}"!=" is not a valid label selector operator'),
        (
            "app in (x",
            "FailedGetScale",
            f'{UNREADABLE}couldn\'t parse the selector string "app in (x": '
            "unable to parse requirement: found '', expected: ',' or ')'",
        ),
        (" ", "SelectorRequired", "selector is required"),
    ],
)
async def test_a_custom_resource_with_an_invalid_selector(world: World, selector, reason, text):
    story, adapter = Story(world), Adapter(world.server.transport(), external=["v1beta1"])
    adapter.value("namespaces/default/queue", "30")
    async with story.running(transport=adapter):
        await world.create(CRD, definition("Namespaced"))
        await world.wait(5)
        await make_widget(world, WIDGETS)
        status = {"status": {"selector": selector}}
        await world.client.patch(WIDGETS, "default", "w", status, content_type=MERGE, subresource="status")
        await story.autoscale(external(average("10")), scaleTargetRef=TO_WIDGET)
        await world.wait(20)
        assert await story.messages(reason) == {text}
        assert (await world.get(WIDGETS, "w"))["spec"]["size"] == 1


async def test_cluster_scoped_targets_are_not_found(world: World):
    story, adapter = Story(world), Adapter(world.server.transport(), external=["v1beta1"])
    adapter.value("namespaces/default/queue", "30")
    widgets = resource("widgets", "example.com", namespaced=False)
    async with story.running(transport=adapter):
        await world.create(CRD, definition("Cluster"))
        await world.wait(5)
        await make_widget(world, widgets)
        await story.autoscale(external(average("10")), scaleTargetRef=TO_WIDGET)
        await world.wait(60)
        assert (await world.get(widgets, "w"))["spec"]["size"] == 1
        text = "the server could not find the requested resource (get widgets w)"
        assert await story.messages("FailedGetScale") == {text}


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        pytest.param({"selector": {"app": "w", "a": "b"}}, "a=b,app=w", id="labels"),
        pytest.param({"selector": {"app": "w"}, "targetSelector": "app in (w,v)"}, "app in (v,w)", id="text first"),
        pytest.param({"selector": {}}, "", id="none"),
    ],
)
async def test_a_scale_of_an_older_form(world: World, status, expected):
    def shown(request: Request, answer: Response) -> Response:
        if not request.path.endswith("/scale"):
            return answer
        doc = json.loads(answer.body) | {"apiVersion": "extensions/v1beta1"}
        return Response(answer.status, answer.headers, json.dumps(doc | {"status": {"replicas": 1} | status}).encode())

    await world.create(CRD, definition("Namespaced"))
    await world.wait(5)
    await make_widget(world, WIDGETS)
    client = Client(Rewriting(world.server.transport(), shown), limiter=Unlimited(), user_agent="t", clock=world.clock)
    targets = Targets(Door(client, "horizontal-pod-autoscaler-controller"), world.clock, Mapper(client, world.clock))
    ref = TargetReference(kind="Widget", name="w", api_version="example.com/v1")
    found = await targets.read("default", ref)
    assert (found.scale.spec.replicas, found.scale.status.target_selector) == (1, expected)
