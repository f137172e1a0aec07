"""Conversion between versions: objects are the same after a round trip through the storage version."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcm_cli.sandbox.apiserver.kinds import KINDS
from kcm_cli.sandbox.apiserver.registry.catalog import Catalog, Served

CATALOG = Catalog(KINDS)


def served(group: str, version: str, plural: str) -> Served:
    found = CATALOG.find(group, version, plural)
    assert found is not None
    return found


OLD_SCALER = served("autoscaling", "v1", "horizontalpodautoscalers")
NEW_EVENT = served("events.k8s.io", "v1", "events")
CPU = {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 70}}}
DEFAULT_METRIC = {
    "type": "Resource",
    "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}},
}
MEMORY = {"type": "Resource", "resource": {"name": "memory", "target": {"type": "AverageValue", "averageValue": "1Gi"}}}
BEHAVIOR = {"scaleDown": {"stabilizationWindowSeconds": 5}}


def scaler(api_version: str, **spec: Any) -> dict[str, Any]:
    meta = {"name": "h", "annotations": {"mine": "kept"}}
    return {"kind": "HorizontalPodAutoscaler", "apiVersion": api_version, "metadata": meta, "spec": spec, "status": {}}


def test_a_resource_with_one_form_stays_the_same_object() -> None:
    doc = {"metadata": {"name": "p"}}
    pods = served("", "v1", "pods")
    assert pods.to_storage(doc) is doc
    assert pods.from_storage(doc) is doc


def test_a_cpu_target_becomes_a_metric_and_back() -> None:
    stored = OLD_SCALER.to_storage(scaler("autoscaling/v1", maxReplicas=3, targetCPUUtilizationPercentage=70))
    assert stored["apiVersion"] == "autoscaling/v2"
    assert stored["spec"] == {"maxReplicas": 3, "metrics": [CPU]}
    shown = OLD_SCALER.from_storage(stored)
    assert shown["spec"] == {"maxReplicas": 3, "targetCPUUtilizationPercentage": 70}
    assert shown["metadata"]["annotations"] == {"mine": "kept"}


@given(
    st.lists(st.sampled_from([CPU, MEMORY]), max_size=2, unique_by=lambda metric: metric["resource"]["name"]),
    st.booleans(),
)
def test_fields_that_the_old_version_lacks_are_kept_in_annotations(
    metrics: list[dict[str, Any]], behaves: bool
) -> None:
    others_first = sorted(metrics, key=lambda metric: metric["resource"]["name"], reverse=True)
    spec: dict[str, Any] = {"maxReplicas": 3, "metrics": others_first or [DEFAULT_METRIC]}
    if behaves:
        spec["behavior"] = BEHAVIOR
    stored = scaler("autoscaling/v2", **spec)
    shown = OLD_SCALER.from_storage(stored)
    assert not {"metrics", "behavior"} & shown["spec"].keys()
    again = OLD_SCALER.to_storage(shown)
    assert again["spec"] == spec
    assert again["metadata"] == stored["metadata"]


def test_conversion_does_not_change_its_argument() -> None:
    stored = scaler("autoscaling/v2", maxReplicas=3, metrics=[CPU, MEMORY], behavior=BEHAVIOR)
    before = repr(stored)
    OLD_SCALER.from_storage(stored)
    assert repr(stored) == before


def test_an_annotation_that_is_no_json_is_dropped() -> None:
    doc = scaler("autoscaling/v1", maxReplicas=1)
    doc["metadata"]["annotations"]["autoscaling.alpha.kubernetes.io/metrics"] = "{"
    assert OLD_SCALER.to_storage(doc)["spec"]["metrics"] == [DEFAULT_METRIC]


SELECTED = {"name": "m", "selector": {"matchLabels": {"a": "b"}}}
SERVICE = {"kind": "Service", "name": "s", "apiVersion": "v1"}


@pytest.mark.parametrize(
    ("metric", "older"),
    [
        (
            {
                "type": "Resource",
                "resource": {"name": "memory", "target": {"type": "AverageValue", "averageValue": "1"}},
            },
            {"type": "Resource", "resource": {"name": "memory", "targetAverageValue": "1"}},
        ),
        (
            {"type": "Pods", "pods": {"metric": SELECTED, "target": {"type": "AverageValue", "averageValue": "5"}}},
            {
                "type": "Pods",
                "pods": {"metricName": "m", "targetAverageValue": "5", "selector": {"matchLabels": {"a": "b"}}},
            },
        ),
        (
            {
                "type": "Object",
                "object": {
                    "describedObject": SERVICE,
                    "metric": {"name": "m"},
                    "target": {"type": "Value", "value": "5"},
                },
            },
            {"type": "Object", "object": {"target": SERVICE, "metricName": "m", "targetValue": "5"}},
        ),
        (
            {
                "type": "External",
                "external": {"metric": {"name": "m"}, "target": {"type": "AverageValue", "averageValue": "5"}},
            },
            {"type": "External", "external": {"metricName": "m", "targetAverageValue": "5"}},
        ),
        (
            {
                "type": "ContainerResource",
                "containerResource": {
                    "name": "cpu",
                    "container": "c",
                    "target": {"type": "Utilization", "averageUtilization": 1},
                },
            },
            {
                "type": "ContainerResource",
                "containerResource": {"name": "cpu", "targetAverageUtilization": 1, "container": "c"},
            },
        ),
    ],
    ids=lambda metric: str(metric["type"]),
)
def test_an_annotation_has_metrics_in_the_form_of_the_first_beta(metric: dict[str, Any], older: dict[str, Any]) -> None:
    stored = scaler("autoscaling/v2", maxReplicas=3, metrics=[metric])
    shown = OLD_SCALER.from_storage(stored)
    annotation = shown["metadata"]["annotations"]["autoscaling.alpha.kubernetes.io/metrics"]
    assert json.loads(annotation) == [older]
    assert list(json.loads(annotation)[0][shown_source(metric)]) == list(older[shown_source(metric)])
    assert OLD_SCALER.to_storage(shown)["spec"]["metrics"] == [metric]


def shown_source(metric: dict[str, Any]) -> str:
    return next(key for key in metric if key != "type")


def test_a_behavior_is_annotated_in_the_internal_form() -> None:
    behavior = {"scaleUp": {"stabilizationWindowSeconds": 3, "selectPolicy": "Max"}}
    shown = OLD_SCALER.from_storage(scaler("autoscaling/v2", maxReplicas=3, behavior=behavior))
    text = shown["metadata"]["annotations"]["autoscaling.alpha.kubernetes.io/behavior"]
    rules = {"StabilizationWindowSeconds": 3, "SelectPolicy": "Max", "Policies": None, "Tolerance": None}
    assert json.loads(text) == {"ScaleUp": rules, "ScaleDown": None}
    assert OLD_SCALER.to_storage(shown)["spec"]["behavior"] == behavior


def test_current_metrics_of_the_status_are_all_annotated() -> None:
    current = {"type": "Resource", "resource": {"name": "cpu", "current": {"averageUtilization": 5}}}
    stored = scaler("autoscaling/v2", maxReplicas=3)
    stored["status"] = {"currentMetrics": [current]}
    shown = OLD_SCALER.from_storage(stored)
    assert shown["status"]["currentCPUUtilizationPercentage"] == 5
    text = shown["metadata"]["annotations"]["autoscaling.alpha.kubernetes.io/current-metrics"]
    cpu = {"name": "cpu", "currentAverageUtilization": 5, "currentAverageValue": "0"}
    assert json.loads(text) == [{"type": "Resource", "resource": cpu}]


@pytest.mark.parametrize("field", ["regarding", "note", "reportingController", "deprecatedCount", "action", "type"])
def test_an_event_is_converted_back(field: str) -> None:
    event = {
        "kind": "Event",
        "apiVersion": "events.k8s.io/v1",
        "metadata": {"name": "e"},
        "regarding": {"kind": "Pod", "name": "p"},
        "note": "said",
        "reportingController": "c",
        "deprecatedCount": 3,
        "action": "Bind",
        "type": "Normal",
    }
    stored = NEW_EVENT.to_storage(event)
    assert (stored["apiVersion"], stored["involvedObject"], stored["message"]) == ("v1", event["regarding"], "said")
    assert (stored["reportingComponent"], stored["count"]) == ("c", 3)
    assert NEW_EVENT.from_storage(stored)[field] == event[field]
