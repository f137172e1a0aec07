"""The desired replicas of an autoscaler's target, and the status."""

from datetime import UTC, datetime
from typing import Any

import pytest

from kcm_cli.api.autoscaling import HORIZONTAL_POD_AUTOSCALERS, HorizontalPodAutoscaler, Scale, ScaleSpec, ScaleStatus
from kcm_cli.controllers.horizontal_pod_autoscaler.config import HorizontalPodAutoscalerConfig
from kcm_cli.controllers.horizontal_pod_autoscaler.plan import Rescale, plan, status
from kcm_cli.controllers.horizontal_pod_autoscaler.plan.snapshot import Features, Reading, Snapshot, Uncomputable
from kcm_cli.machinery import codec

NOW = datetime(2026, 1, 2, 3, 0, tzinfo=UTC)
NO_METRICS = Uncomputable("no metrics returned from external metrics API")


def external(name: str, value: str = "10") -> dict[str, Any]:
    target = {"type": "AverageValue", "averageValue": value}
    return {"type": "External", "external": {"metric": {"name": name}, "target": target}}


def autoscaler(*metrics: dict[str, Any], **spec: Any) -> HorizontalPodAutoscaler:
    ref = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    whole = {"scaleTargetRef": ref, "minReplicas": 2, "maxReplicas": 10, "metrics": list(metrics), **spec}
    doc = {"metadata": {"name": "hpa", "namespace": "ns", "uid": "u"}, "spec": whole, "status": {"desiredReplicas": 3}}
    return HORIZONTAL_POD_AUTOSCALERS.decode(codec.encode(doc))


def planned(hpa: HorizontalPodAutoscaler, replicas: int, *values: int | Uncomputable, **extra: Any) -> Rescale:
    """``values``: what the APIs return for the metrics, in thousandths."""
    readings = tuple(Reading(None, one) if isinstance(one, Uncomputable) else Reading((one,)) for one in values)
    scale = Scale(
        spec=ScaleSpec(replicas), status=ScaleStatus(replicas, target_selector=extra.pop("selector", "app=web"))
    )
    shown: dict[str, Any] = {"scale": scale, "autoscalers": ("hpa",), "readings": readings} | extra
    config, features = HorizontalPodAutoscalerConfig(), Features(tolerance=True, to_zero=False, pod_level=True)
    return plan(Snapshot(hpa, config, features, None, **shown), NOW, 0.0)


def conditions(found: Rescale) -> dict[str, tuple[str, str]]:
    return {one.type: (one.status, one.reason) for one in found.status.conditions}


def events(found: Rescale) -> list[str]:
    return [notice.reason for notice in found.notices]


@pytest.mark.parametrize(
    ("replicas", "values", "expected", "reason"),
    [
        pytest.param(1, (), 2, "Current number of replicas below Spec.MinReplicas", id="below the minimum"),
        pytest.param(12, (), 10, "Current number of replicas above Spec.MaxReplicas", id="above the maximum"),
        pytest.param(0, (), 0, "", id="switched off"),
        pytest.param(4, (60_000, 10_000), 6, "external metric a(nil) above target", id="the highest metric"),
        pytest.param(4, (990_000, 0), 8, "external metric a(nil) above target", id="no more than twice as many"),
        pytest.param(4, (20_000, 10_000), 4, "All metrics below target", id="not down before it is stable"),
        pytest.param(4, (60_000, NO_METRICS), 6, "external metric a(nil) above target", id="one metric is enough"),
    ],
)
def test_desired_replicas(replicas: int, values: tuple[int | Uncomputable, ...], expected: int, reason: str) -> None:
    found = planned(autoscaler(external("a"), external("b")), replicas, *values)
    assert (found.replicas, found.reason, found.settled) == (expected, reason, False)


def test_an_unreadable_metric_prevents_scaling_down() -> None:
    found = planned(autoscaler(external("a"), external("b")), 4, 20_000, NO_METRICS)
    assert (found.replicas, found.settled) == (4, True)
    assert events(found) == ["FailedGetExternalMetric", "FailedComputeMetricsReplicas"]
    assert conditions(found)["ScalingActive"] == ("False", "FailedGetExternalMetric")
    assert (found.status.current_replicas, found.status.desired_replicas) == (4, 3)
    assert [metric["type"] for metric in found.status.current_metrics or ()] == ["External", ""]
    assert "Deployment/ns/web: invalid metrics (1 invalid out of 2), first error is: " in str(found.failure)


@pytest.mark.parametrize(
    ("extra", "event", "reason"),
    [
        pytest.param({"selector": ""}, "SelectorRequired", "InvalidSelector", id="none"),
        pytest.param({"selector": "a in"}, "InvalidSelector", "InvalidSelector", id="unreadable"),
        pytest.param({"autoscalers": ("x", "hpa")}, "AmbiguousSelector", "AmbiguousSelector", id="another's pods"),
    ],
)
def test_selectors(extra: dict[str, Any], event: str, reason: str) -> None:
    found = planned(autoscaler(external("a")), 4, **extra)
    assert events(found) == [event, "FailedComputeMetricsReplicas"]
    assert conditions(found)["ScalingActive"] == ("False", reason)
    assert found.settled


def test_an_invalid_scale() -> None:
    found = planned(autoscaler(external("a")), 4, scale=None, unreadable="no such thing", by_spec=True)
    assert status(found, "", NOW, 0.0) is found
    assert (conditions(found), events(found)) == ({"AbleToScale": ("False", "FailedGetScale")}, ["FailedGetScale"])
    assert found.status.desired_replicas == 3
    assert found.failure is not None and found.failure.by_spec


def test_the_status_after_scaling() -> None:
    found = status(planned(autoscaler(external("a")), 4, 60_000), "", NOW, 0.0)
    assert events(found) == ["SuccessfulRescale"]
    assert conditions(found)["AbleToScale"] == ("True", "SucceededRescale")
    assert (found.status.current_replicas, found.status.desired_replicas) == (4, 6)
    assert found.status.last_scale_time == "2026-01-02T03:00:00Z"


def test_the_status_after_a_failure() -> None:
    found = status(planned(autoscaler(external("a")), 4, 60_000), "Conflict", NOW, 0.0)
    assert events(found) == ["FailedRescale"]
    assert conditions(found)["AbleToScale"] == ("False", "FailedUpdateScale")
    assert (found.status.desired_replicas, found.status.last_scale_time, found.settled) == (3, None, True)
    assert str(found.failure) == "failed to rescale Deployment/ns/web: Conflict"
