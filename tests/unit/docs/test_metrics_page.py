"""docs/metrics.md has each metric of kube-controller-manager, as it is there."""

from collections.abc import Callable
from typing import Any

from tests.generate.metrics import metrics
from tests.unit.manager.test_metric_names import UNUSED


def test_upstreams_metrics_are_as_recorded(reference: Callable[[str], list[dict[str, Any]]]) -> None:
    facts = [fact for fact in reference("metrics.json") if fact["owner"] not in UNUSED]
    wanted = {fact["name"]: (fact["type"], set(fact["labels"]), fact["stability"]) for fact in facts}
    found = {metric.name: (metric.type, set(metric.labels), metric.stability) for metric in metrics()}
    assert {name: found.get(str(name)) for name in wanted} == wanted


def test_each_of_kcms_own_has_a_help() -> None:
    own = [metric for metric in metrics() if metric.name.startswith("kcm_")]
    assert len(own) >= 6 and all(metric.help for metric in own)


def test_a_name_that_upstream_lacks_begins_with_kcm(reference: Callable[[str], list[dict[str, Any]]]) -> None:
    known = {fact["name"] for fact in reference("metrics.json")}
    own = [one.name for one in metrics() if one.name not in known]
    assert [name for name in own if not name.startswith(("kcm_", "process_", "python_"))] == []
