"""Annotations of autoscaling/v1 without meaning change nothing."""

from typing import Any

import pytest

from kcm_cli.sandbox.apiserver.kinds.autoscaling import v1 as autoscaling_v1

PREFIX = "autoscaling.alpha.kubernetes.io/"
VALUES = ("true", "1", '"a"', "null", "[1]", "x", "[[", '{"scaleUp":1}', '[{"type":1}]', '{"scaleUp":{"policies":[1]}}')
METRIC = '[{"type":"Resource","resource":{"name":"cpu","targetAverageValue":"x"}}]'


def converted(**annotations: str) -> Any:
    meta = {"name": "h", "annotations": {PREFIX + name.replace("_", "-"): text for name, text in annotations.items()}}
    spec = {"scaleTargetRef": {"kind": "D", "name": "d"}, "maxReplicas": 5}
    return autoscaling_v1.to_v2({"metadata": meta, "spec": spec})


@pytest.mark.parametrize("name", ["metrics", "current_metrics", "conditions", "behavior"])
@pytest.mark.parametrize("text", [*VALUES, METRIC])
def test_what_has_no_form_says_nothing(name: str, text: str) -> None:
    if (name, text) != ("conditions", METRIC):
        assert converted(**{name: text}) == converted()


def test_what_has_its_form_counts() -> None:
    doc = converted(
        metrics='[{"type":"Pods","pods":{"metricName":"m","targetAverageValue":"1","selector":null}},{"type":"Resource","resource":{"name":"memory","targetAverageUtilization":5}}]',
        behavior='{"ScaleUp":{"Policies":[{"Type":"Pods","Value":1,"PeriodSeconds":5}],"Tolerance":"10m"},"ScaleDown":null}',
        conditions='[{"type":"AbleToScale","status":"True","lastTransitionTime":"2030-01-01T00:00:00Z"}]',
    )
    assert [metric["type"] for metric in doc["spec"]["metrics"]] == ["Pods", "Resource"]
    assert doc["spec"]["behavior"]["scaleUp"]["tolerance"] == "10m"
    assert doc["status"]["conditions"][0]["type"] == "AbleToScale"
