"""From metrics to replicas: each rule once."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from kcm_cli.api.core import PODS, Condition, Container, Pod, PodSpec, PodStatus, ResourceRequirements
from kcm_cli.controllers.horizontal_pod_autoscaler.plan import calculator
from kcm_cli.controllers.horizontal_pod_autoscaler.plan.calculator import Result, Scope, Timing, Tolerances, requests
from kcm_cli.controllers.horizontal_pod_autoscaler.plan.snapshot import Sample, Uncomputable
from kcm_cli.machinery import codec
from kcm_cli.machinery.meta import ObjectMeta
from kcm_cli.machinery.times import format_time

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
TIMING = Timing(NOW, 120, 10)
OLD = 3600


def pod(name: str, *, phase: str = "Running", ready: str = "True", age: int = OLD, changed: int = OLD - 60) -> Pod:
    """A pod that started ``age`` seconds ago and whose readiness changed ``changed`` seconds ago."""
    condition = Condition("Ready", ready, last_transition_time=_ago(changed))
    asks = ResourceRequirements(requests={"cpu": "1"})
    spec = PodSpec(containers=(Container("c", resources=asks),))
    status = PodStatus(phase=phase, start_time=_ago(age), conditions=(condition,))
    return Pod(metadata=ObjectMeta(name=name, namespace="ns"), spec=spec, status=status)


def _ago(seconds: int) -> str:
    return format_time(NOW - timedelta(seconds=seconds))


def scope(*pods: Pod, current: int | None = None) -> Scope:
    return Scope(len(pods) if current is None else current, pods, Tolerances(0.1, 0.1), TIMING)


def samples(*values: int | None, window: int = 30) -> dict[str, Sample]:
    at = NOW - timedelta(seconds=5)
    return {
        f"p{n}": Sample(value, at, timedelta(seconds=window)) for n, value in enumerate(values) if value is not None
    }


def utilized(where: Scope, used: dict[str, Sample], target: int) -> calculator.Result:
    return calculator.by_utilization(
        where, used, lambda: requests(where.pods, "cpu", "", pod_level=True), target, "cpu"
    )


THREE = (pod("p0"), pod("p1"), pod("p2"))


@pytest.mark.parametrize(
    ("pods", "values", "target", "replicas"),
    [
        pytest.param(THREE, (300, 500, 700), 30, 5, id="up"),
        pytest.param(THREE, (100, 300, 500), 50, 2, id="down"),
        pytest.param(THREE, (300, 500, 700, 9000), 30, 5, id="a sample of no pod"),
        pytest.param(THREE, (510, 520, 530), 50, 3, id="within tolerance"),
        pytest.param(THREE, (300, 500, None), 30, 3, id="missing counts as idle when up"),
        pytest.param(THREE, (100, 100, None), 50, 3, id="missing counts as full when down"),
        pytest.param((*THREE[:2], pod("p2", phase="Pending")), (900, 900, None), 30, 6, id="pending idle when up"),
        pytest.param((*THREE[:2], pod("p2", phase="Failed")), (600, 600, 600), 30, 4, id="failed ignored"),
        pytest.param((*THREE[:2], pod("p2", ready="False", age=60)), (100, 100, 900), 50, 1, id="young unready"),
    ],
)
def test_by_utilization(pods: tuple[Pod, ...], values: tuple[int | None, ...], target: int, replicas: int) -> None:
    assert utilized(scope(*pods), samples(*values), target).replicas == replicas


def test_the_status_has_usage_and_percentage() -> None:
    result = utilized(scope(*THREE), samples(300, 500, 700), 30)
    assert (result.usage, result.utilization) == (500, 50)


def test_proposals_beyond_32_bits_are_the_largest() -> None:
    assert calculator.by_average(scope(*THREE), samples(5 * 10**12, 5 * 10**12, 5 * 10**12), 1000).replicas == 2**31 - 1


@pytest.mark.parametrize(
    ("kwargs", "window", "ready"),
    [
        pytest.param({}, 30, 1, id="old"),
        pytest.param({"ready": "False"}, 30, 1, id="was ready once"),
        pytest.param({"ready": "False", "changed": OLD - 5}, 30, 0, id="never ready"),
        pytest.param({"age": 100, "changed": 90}, 30, 1, id="young, measured since"),
        pytest.param({"age": 100, "changed": 20}, 30, 0, id="young, window began before"),
    ],
)
def test_cpu_of_young_pods(kwargs: dict[str, int], window: int, ready: int) -> None:
    groups = calculator.group([pod("p0", **kwargs)], samples(1, window=window), "cpu", TIMING)
    assert (groups.ready, len(groups.unready)) == (ready, 1 - ready)


@pytest.mark.parametrize("pod_level", [True, False])
def test_invalid_requests_are_reported(pod_level: bool) -> None:
    """As those that are missing, they fail one metric: others of the autoscaler count."""
    resources = {"requests": {"cpu": "much"}}
    spec = {"containers": [{"name": "c", "image": "i", "resources": resources}]} | (
        {"resources": resources} if pod_level else {}
    )
    odd = PODS.decode(codec.encode({"metadata": {"name": "odd"}, "spec": spec}))
    with pytest.raises(Uncomputable, match="unreadable request for cpu in Pod odd: "):
        requests([odd], "cpu", "", pod_level=pod_level)


def test_errors() -> None:
    with pytest.raises(Uncomputable, match="no pods returned by selector"):
        utilized(scope(), samples(1), 50)
    with pytest.raises(Uncomputable, match="did not receive metrics"):
        utilized(scope(pod("p0")), {}, 50)
    with pytest.raises(Uncomputable, match="missing request for memory in container c of Pod p0"):
        requests([pod("p0")], "memory", "", pod_level=True)
    with pytest.raises(Uncomputable, match="container x not found in Pod p0"):
        requests([pod("p0")], "cpu", "x", pod_level=True)


def test_by_average() -> None:
    assert calculator.by_average(scope(*THREE), samples(10_000, 20_000, 30_000), 15_000).replicas == 4
    assert calculator.by_average(scope(*THREE), samples(10_000, 10_000, None), 20_000).replicas == 2


def test_by_one_value() -> None:
    assert calculator.by_value(scope(*THREE), 20_000, 10_000).replicas == 6
    assert calculator.by_value(scope(*THREE), 10_500, 10_000).replicas == 3
    assert calculator.by_value(scope(current=0), 15_000, 10_000).replicas == 2
    shared = calculator.by_value_per_pod(3, 3, 8_600, 2_150, Tolerances(0.1, 0.1))
    assert (shared.replicas, shared.usage) == (4, 2867)


@pytest.mark.parametrize(
    ("current", "present", "usage", "replicas"),
    [
        pytest.param(10, 12, 108_000, 10, id="a rollout with a surge, within the tolerance"),
        pytest.param(10, 8, 84_000, 10, id="fewer than wanted, within the tolerance"),
        pytest.param(10, 12, 150_000, 15, id="a rollout with a surge, above the target"),
        pytest.param(10, 12, 60_000, 6, id="a rollout with a surge, below the target"),
        pytest.param(10, 0, 30_000, 3, id="no pods yet"),
    ],
)
def test_a_value_per_pod_within_the_tolerance_keeps_the_size_of_the_spec(
    current: int, present: int, usage: int, replicas: int
) -> None:
    found = calculator.by_value_per_pod(current, present, usage, 10_000, Tolerances(0.1, 0.1))
    assert found.replicas == replicas


@pytest.mark.parametrize("phase", ["Succeeded", "Failed", "deleting"])
@pytest.mark.parametrize("values", [(90, 90, 90), (30, 30, 30), (90, 90, None)])
def test_pods_that_are_over_do_not_change_the_result(phase: str, values: tuple[int | None, ...]) -> None:
    """They need no requests and no samples. A sample that is left over does not count."""
    running = (pod("p0"), pod("p1"), pod("p2"))
    over = tuple(replace(pod(f"over{number}"), spec=PodSpec()) for number in range(6))
    if phase == "deleting":
        over = tuple(replace(each, metadata=replace(each.metadata, deletion_timestamp=_ago(1))) for each in over)
    else:
        over = tuple(replace(each, status=replace(each.status, phase=phase)) for each in over)
    used = samples(*values)
    expected = utilized(scope(*running), used, 50)
    assert utilized(scope(*running, *over, current=3), used | {"over0": used["p0"]}, 50) == expected
    expected = calculator.by_average(scope(*running), used, 50)
    assert calculator.by_average(scope(*running, *over, current=3), used | {"over0": used["p0"]}, 50) == expected


@given(st.lists(st.integers(0, 10_000), min_size=1, max_size=8), st.integers(1, 200), st.integers(1, 9))
def test_never_up_while_the_usage_is_below_the_target(values: list[int], target: int, current: int) -> None:
    """Also if there are more pods than wanted, as in a rollout with a surge."""
    pods = tuple(pod(f"p{n}") for n in range(len(values)))
    result = utilized(scope(*pods, current=current), samples(*values), target)
    assert result.utilization is not None
    if result.utilization <= target:
        assert result.replicas <= current
    else:
        assert result.replicas >= min(current, len(pods))


@pytest.mark.parametrize(
    ("ready", "usage", "replicas"),
    [
        pytest.param(1, 20_000, 2, id="above the target, few are ready"),
        pytest.param(2, 20_000, 4, id="above the target, enough are ready"),
        pytest.param(4, 8_500, 3, id="below the target, more are ready than wanted"),
        pytest.param(4, 5_000, 2, id="below the target"),
        pytest.param(0, 5_000, 0, id="below the target, no pod is ready"),
    ],
)
def test_one_value_never_raises_the_size_below_its_target(ready: int, usage: int, replicas: int) -> None:
    pods = tuple(pod(f"p{n}", ready=str(n < ready)) for n in range(4))
    assert calculator.by_value(scope(*pods, current=3), usage, 10_000).replicas == replicas


def test_one_value_is_shared_with_pods_that_are_being_deleted_as_long_as_they_are_ready() -> None:
    """As documented. In a drain they serve until they end, and the pods in their place are not ready yet."""
    pods = [pod(f"p{n}", ready=str(n < 10)) for n in range(16)]
    pods[:6] = [replace(p, metadata=replace(p.metadata, deletion_timestamp=_ago(1))) for p in pods[:6]]
    assert calculator.by_value(scope(*pods, current=10), 13_000, 10_000).replicas == 13


@pytest.mark.parametrize("value", [10**12, 2**40, 2**53, 2**62])
def test_a_huge_usage_is_a_huge_percentage(value: int) -> None:
    """And not one that wraps around, which may be small or negative."""
    found = utilized(scope(*THREE), samples(value, value, value), 50)
    assert found.utilization == min(value // 10, 2**31 - 1)
    assert found.replicas > 3


def test_the_overhead_of_a_pod_is_no_request() -> None:
    """With requests of the pod as with those of its containers: what is measured does not include it."""
    found = replace(pod("p0"), spec=replace(pod("p0").spec, overhead={"cpu": "500m", "memory": "1Gi"}))
    assert requests([found], "cpu", "", pod_level=True) == {"p0": 1000}
    own = ResourceRequirements(requests={"cpu": "2"})
    whole = replace(found, spec=replace(found.spec, resources=own))
    assert requests([whole], "cpu", "", pod_level=True) == {"p0": 2000}
    with pytest.raises(Uncomputable, match="missing pod-level request for memory"):
        requests([whole], "memory", "", pod_level=True)


@pytest.mark.parametrize(
    ("status", "requested"),
    [
        pytest.param({"conditions": [{"type": "PodResizeInProgress", "status": "True"}]}, 1000, id="in progress"),
        pytest.param(
            {"conditions": [{"type": "PodResizePending", "status": "True", "reason": "Infeasible"}]}, 1000, id="refused"
        ),
        pytest.param({"observedGeneration": 1}, 1000, id="not seen by the node"),
        pytest.param({"conditions": [{"type": "PodResizePending", "status": "False"}]}, 4000, id="over"),
        pytest.param({}, 4000, id="none"),
    ],
)
def test_while_a_pod_is_resized_its_present_requests_count(status: dict, requested: int) -> None:
    """As long as its containers have one CPU, they use no fourth of what they asked for."""

    def container(name: str, cpu: str) -> dict:
        return {"name": name, "image": "i", "resources": {"requests": {"cpu": cpu}}}

    spec = {
        "containers": [container("c", "3")],
        "initContainers": [container("s", "1") | {"restartPolicy": "Always"}],
    }
    known = {
        "containerStatuses": [container("c", "500m")],
        "initContainerStatuses": [container("s", "500m")],
    }
    doc = {"metadata": {"name": "p0", "generation": 2}, "spec": spec, "status": known | status}
    assert requests([PODS.decode(codec.encode(doc))], "cpu", "", pod_level=True) == {"p0": requested}
    assert requests([PODS.decode(codec.encode(doc))], "cpu", "s", pod_level=True) == {"p0": min(requested // 2, 1000)}


@pytest.mark.parametrize(
    ("status", "cpu", "memory"),
    [
        pytest.param({"conditions": [{"type": "PodResizePending", "status": "True"}]}, 1000, 3000, id="pending"),
        pytest.param({"conditions": [{"type": "PodResizeInProgress", "status": "True"}]}, 1000, 3000, id="in progress"),
        pytest.param({"observedGeneration": 1}, 1000, 3000, id="not seen"),
        pytest.param({"observedGeneration": 2}, 4000, 3000, id="none"),
    ],
)
def test_while_a_pod_as_a_whole_is_resized_its_present_requests_count(status: dict, cpu: int, memory: int) -> None:
    """Of a resource that it does not request as a whole, the requests of its containers count."""
    spec = {
        "resources": {"requests": {"cpu": "4"}},
        "containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "1", "memory": "3"}}}],
    }
    known = {"resources": {"requests": {"cpu": "1", "memory": "2"}}}
    doc = {"metadata": {"name": "p0", "generation": 2}, "spec": spec, "status": known | status}
    pods = [PODS.decode(codec.encode(doc))]
    assert requests(pods, "cpu", "", pod_level=True) == {"p0": cpu}
    assert requests(pods, "memory", "", pod_level=True) == {"p0": memory}


def test_while_a_pod_is_resized_what_its_status_lacks_is_that_of_its_spec() -> None:
    resizing = Condition("PodResizePending", "True")
    found = replace(pod("p0"), status=replace(pod("p0").status, conditions=(resizing,)))
    assert requests([found], "cpu", "", pod_level=True) == {"p0": 1000}


def test_a_negative_sum_proposes_zero() -> None:
    usage = calculator.total([-5000, 1000])
    assert calculator.by_value_per_pod(4, 4, usage, 10_000, Tolerances(0.1, 0.1)) == Result(0, -1000)
