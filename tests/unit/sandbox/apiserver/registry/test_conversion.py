"""The second forms of resources: what goes through the stored form comes back as it was."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcm_cli.sandbox.apiserver.registry.catalog import Catalog, Served
from kcm_cli.sandbox.apiserver.registry.conversion import from_storage, to_storage

CATALOG = Catalog()


def served(group: str, version: str, plural: str) -> Served:
    found = CATALOG.find(group, version, plural)
    assert found is not None
    return found


OLD_SCALER = served("autoscaling", "v1", "horizontalpodautoscalers")
NEW_EVENT = served("events.k8s.io", "v1", "events")
CPU = {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 70}}}
MEMORY = {"type": "Resource", "resource": {"name": "memory", "target": {"type": "AverageValue", "averageValue": "1Gi"}}}
BEHAVIOR = {"scaleDown": {"stabilizationWindowSeconds": 5}}


def scaler(api_version: str, **spec: Any) -> dict[str, Any]:
    meta = {"name": "h", "annotations": {"mine": "kept"}}
    return {"kind": "HorizontalPodAutoscaler", "apiVersion": api_version, "metadata": meta, "spec": spec, "status": {}}


def test_a_resource_with_one_form_stays_the_same_object() -> None:
    doc = {"metadata": {"name": "p"}}
    pods = served("", "v1", "pods")
    assert to_storage(pods, doc) is doc
    assert from_storage(pods, doc) is doc


def test_a_cpu_target_becomes_a_metric_and_back() -> None:
    stored = to_storage(OLD_SCALER, scaler("autoscaling/v1", maxReplicas=3, targetCPUUtilizationPercentage=70))
    assert stored["apiVersion"] == "autoscaling/v2"
    assert stored["spec"] == {"maxReplicas": 3, "metrics": [CPU]}
    shown = from_storage(OLD_SCALER, stored)
    assert shown["spec"] == {"maxReplicas": 3, "targetCPUUtilizationPercentage": 70}
    assert shown["metadata"]["annotations"] == {"mine": "kept"}


@given(
    st.lists(st.sampled_from([CPU, MEMORY]), max_size=2, unique_by=lambda metric: metric["resource"]["name"]),
    st.booleans(),
)
def test_what_the_old_form_has_no_fields_for_survives_in_annotations(
    metrics: list[dict[str, Any]], behaves: bool
) -> None:
    metrics = sorted(metrics, key=lambda metric: metric["resource"]["name"])
    spec: dict[str, Any] = {"maxReplicas": 3}
    if metrics:
        spec["metrics"] = metrics
    if behaves:
        spec["behavior"] = BEHAVIOR
    stored = scaler("autoscaling/v2", **spec)
    shown = from_storage(OLD_SCALER, stored)
    assert not {"metrics", "behavior"} & shown["spec"].keys()
    again = to_storage(OLD_SCALER, shown)
    assert again["spec"] == spec
    assert again["metadata"] == stored["metadata"]


def test_converting_changes_nothing_that_was_given() -> None:
    stored = scaler("autoscaling/v2", maxReplicas=3, metrics=[CPU, MEMORY], behavior=BEHAVIOR)
    before = repr(stored)
    from_storage(OLD_SCALER, stored)
    assert repr(stored) == before


def test_an_annotation_that_is_no_json_is_dropped() -> None:
    doc = scaler("autoscaling/v1", maxReplicas=1)
    doc["metadata"]["annotations"]["autoscaling.alpha.kubernetes.io/metrics"] = "{"
    assert "metrics" not in to_storage(OLD_SCALER, doc)["spec"]


@pytest.mark.parametrize("field", ["regarding", "note", "reportingController", "deprecatedCount", "action", "type"])
def test_an_event_comes_back(field: str) -> None:
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
    stored = to_storage(NEW_EVENT, event)
    assert (stored["apiVersion"], stored["involvedObject"], stored["message"]) == ("v1", event["regarding"], "said")
    assert (stored["reportingComponent"], stored["count"]) == ("c", 3)
    assert from_storage(NEW_EVENT, stored)[field] == event[field]
