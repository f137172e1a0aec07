"""The usage of simulated pods."""

import pytest

from kcm_cli.machinery import codec
from kcm_cli.sandbox.nodes.usage import Holder, Usages, written
from kcm_cli.sandbox.views import PODS

MIB = 1 << 20


def pod(name: str = "p", phase: str = "Running", containers: tuple[str, ...] = ("c",), **annotations: str):
    running = {"running": {"startedAt": "2026-01-01T00:00:00Z"}}
    requests = {"requests": {"cpu": "200m", "memory": "100Mi"}}
    doc = {
        "metadata": {"name": name, "namespace": "default", "uid": name, "annotations": wishes(annotations)},
        "spec": {"containers": [{"name": c, "resources": requests} for c in containers]},
        "status": {"phase": phase, "containerStatuses": [{"name": c, "state": running} for c in containers]},
    }
    return PODS.decode(codec.encode(doc))


def wishes(annotations: dict[str, str]) -> dict[str, str]:
    return {f"sandbox.kcm.dev/{k.replace('__', '.').replace('_', '-')}": v for k, v in annotations.items()}


def measured(*pods, owner: dict[str, str] | None = None):
    above = (Holder("owner", wishes(owner)),) if owner else ()
    found = Usages((one, (Holder(one.uid, one.annotations), *above)) for one in pods)
    return [{name: written(figures) for name, figures in usage.containers.items()} for usage in found]


@pytest.mark.parametrize(
    ("annotations", "expected"),
    [
        pytest.param({}, {"cpu": "1000000n", "memory": "16384Ki"}, id="idle"),
        pytest.param({"cpu": "250m", "memory": "64Mi"}, {"cpu": "250000000n", "memory": "65536Ki"}, id="amounts"),
        pytest.param({"cpu": "80%", "memory": "50%"}, {"cpu": "160000000n", "memory": "51200Ki"}, id="shares"),
        pytest.param({"cpu": "0", "memory": "0"}, {"cpu": "0", "memory": "0"}, id="nothing"),
        pytest.param({"cpu": "much", "memory": "x%"}, {"cpu": "1000000n", "memory": "16384Ki"}, id="nonsense"),
        pytest.param({"cpu": "9" * 5000 + "%"}, {"cpu": "1000000n", "memory": "16384Ki"}, id="huge"),
        pytest.param({"cpu__c": "1", "cpu": "2"}, {"cpu": "1000000000n", "memory": "16384Ki"}, id="by container"),
        pytest.param({"cpu__d": "1"}, {"cpu": "1000000n", "memory": "16384Ki"}, id="other container"),
    ],
)
def test_one_container(annotations, expected):
    assert measured(pod(**annotations)) == [{"c": expected}]


def test_pods_that_do_not_run_are_not_measured():
    assert measured(pod(phase="Pending"), pod(phase="Succeeded")) == []


def test_a_total_is_shared():
    cpu = [m["c"]["cpu"] for m in measured(pod("a"), pod("b"), pod("c"), owner={"cpu_total": "3"})]
    assert cpu == ["1000000000n"] * 3
    (alone,) = measured(pod("a"), pod("b", phase="Pending"), owner={"cpu_total": "3"})
    assert alone["c"]["cpu"] == "3000000000n"


def test_a_pods_share_is_split_among_its_containers():
    (one,) = measured(pod(containers=("c", "d"), cpu_total="1001n"))
    assert [one[name]["cpu"] for name in ("c", "d")] == ["501n", "500n"]


def test_annotations_of_the_pod_precede_its_owners():
    (one,) = measured(pod(cpu="1m"), owner={"cpu": "5m", "memory": "1Mi"})
    assert one["c"] == {"cpu": "1000000n", "memory": "1024Ki"}
