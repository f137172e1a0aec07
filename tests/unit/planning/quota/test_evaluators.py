"""The usage of a quota by objects, by kind."""

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest

from kcm_cli.planning.quota.evaluators import EVALUATORS, object_count
from kcm_cli.planning.quota.scopes import Requirement

NOW = datetime(2026, 1, 1, tzinfo=UTC)
PODS, SERVICES = EVALUATORS["", "pods"], EVALUATORS["", "services"]
CLAIMS, RESOURCE_CLAIMS = EVALUATORS["", "persistentvolumeclaims"], EVALUATORS["resource.k8s.io", "resourceclaims"]
CLASS = ".storageclass.storage.k8s.io/"
DEVICES = ".deviceclass.resource.k8s.io/devices"


def used(evaluator: Any, doc: dict[str, Any]) -> dict[str, str]:
    return {name: str(amount) for name, amount in evaluator.usage(doc, NOW).items()}


def pod(phase: str = "Running", metadata: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": "p"} | (metadata or {}), "spec": {"containers": []} | spec, "status": {"phase": phase}}


def container(name: str = "c", **resources: dict[str, str]) -> dict[str, Any]:
    return {"name": name, "resources": resources}


ONE = {"count/pods": "1", "pods": "1"}


@pytest.mark.parametrize(
    ("doc", "expected"),
    [
        pytest.param(pod(), ONE, id="nothing requested"),
        pytest.param(pod("Failed"), {"count/pods": "1"}, id="over"),
        pytest.param(
            pod(metadata={"deletionTimestamp": "2025-12-31T23:59:00Z", "deletionGracePeriodSeconds": 30}),
            {"count/pods": "1"},
            id="should be over",
        ),
        pytest.param(
            pod(metadata={"deletionTimestamp": "2025-12-31T23:59:50Z", "deletionGracePeriodSeconds": 30}),
            ONE,
            id="on its way",
        ),
        pytest.param(
            pod(metadata={"deletionTimestamp": "2025-12-31T23:59:50Z"}), ONE, id="on its way, nobody says till"
        ),
        pytest.param(
            pod(containers=[container(requests={"cpu": "100m", "memory": "1Gi"}, limits={"cpu": "1"})]),
            ONE | {"cpu": "100m", "requests.cpu": "100m", "memory": "1Gi", "requests.memory": "1Gi", "limits.cpu": "1"},
            id="compute",
        ),
        pytest.param(
            pod(
                containers=[container("a", requests={"cpu": "1"}), container("b", requests={"cpu": "2"})],
                initContainers=[container("i", requests={"cpu": "5"})],
            ),
            ONE | {"cpu": "5", "requests.cpu": "5"},
            id="an init container that needs more",
        ),
        pytest.param(
            pod(containers=[container(requests={"cpu": "1"})], overhead={"cpu": "250m"}),
            ONE | {"cpu": "1250m", "requests.cpu": "1250m"},
            id="overhead",
        ),
        pytest.param(
            pod(containers=[container(requests={"cpu": "1"})], resources={"requests": {"cpu": "3"}}),
            ONE | {"cpu": "3", "requests.cpu": "3"},
            id="pod-level resources",
        ),
        pytest.param(
            pod(containers=[container(requests={"hugepages-2Mi": "4Mi", "example.com/gpu": "2"})]),
            ONE | {"hugepages-2Mi": "4Mi", "requests.hugepages-2Mi": "4Mi", "requests.example.com/gpu": "2"},
            id="huge pages and devices",
        ),
        pytest.param(
            pod(containers=[container(requests={"ephemeral-storage": "1Gi"}, limits={"ephemeral-storage": "2Gi"})]),
            ONE | {"ephemeral-storage": "1Gi", "requests.ephemeral-storage": "1Gi", "limits.ephemeral-storage": "2Gi"},
            id="local storage",
        ),
    ],
)
def test_pods(doc: dict[str, Any], expected: dict[str, str]) -> None:
    assert used(PODS, doc) == expected


@pytest.mark.parametrize(
    ("statuses", "cpu"),
    [
        pytest.param([{"resources": {"requests": {"cpu": "9"}}}], "1", id="without a name"),
        pytest.param([{"name": "x", "resources": {"requests": {"cpu": "9"}}}], "1", id="of no container"),
        pytest.param(
            [container(requests={"cpu": "9"}), container(requests={"cpu": "2"})], "2", id="the last one counts"
        ),
        pytest.param([container(requests={"cpu": "9"}), {"name": "c"}], "1", id="the last one says nothing"),
    ],
)
def test_odd_statuses_of_containers(statuses: list[dict[str, Any]], cpu: str) -> None:
    """The API server accepts statuses of any names."""
    doc = pod(containers=[container(requests={"cpu": "1"})])
    doc["status"]["containerStatuses"] = statuses
    assert used(PODS, doc)["cpu"] == cpu


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("pods", True),
        ("count/pods", True),
        ("cpu", True),
        ("requests.cpu", True),
        ("limits.memory", True),
        ("hugepages-1Gi", True),
        ("requests.hugepages-1Gi", True),
        ("requests.example.com/gpu", True),
        ("requests.storage", False),
        ("requests.kubernetes.io/x", False),
        ("example.com/gpu", False),
        ("requests.deviceclass.resource.kubernetes.io/gpu", True),
        ("services", False),
        ("limits.example.com/gpu", False),
    ],
)
def test_names_about_pods(name: str, expected: bool) -> None:
    assert PODS.covers(name) is expected


@pytest.mark.parametrize(
    ("spec", "node_ports", "balancers"),
    [
        pytest.param({"type": "ClusterIP", "ports": [{}, {}]}, "0", "0", id="ClusterIP"),
        pytest.param({"ports": [{}]}, "0", "0", id="no type"),
        pytest.param({"type": "ExternalName"}, "0", "0", id="ExternalName"),
        pytest.param({"type": "NodePort", "ports": [{}, {}]}, "2", "0", id="NodePort"),
        pytest.param({"type": "LoadBalancer", "ports": [{}, {}]}, "2", "1", id="LoadBalancer"),
        pytest.param(
            {"type": "LoadBalancer", "ports": [{}, {}], "allocateLoadBalancerNodePorts": True},
            "2",
            "1",
            id="LoadBalancer, with node ports",
        ),
        pytest.param(
            {"type": "LoadBalancer", "ports": [{"nodePort": 30000}, {}], "allocateLoadBalancerNodePorts": False},
            "1",
            "1",
            id="LoadBalancer, only those that are named",
        ),
    ],
)
def test_services(spec: dict[str, Any], node_ports: str, balancers: str) -> None:
    expected = {"services": "1", "count/services": "1"}
    expected |= {"services.nodeports": node_ports, "services.loadbalancers": balancers}
    assert used(SERVICES, {"metadata": {}, "spec": spec}) == expected


def claim(
    size: str | None = "1Gi", status: dict[str, Any] | None = None, note: str = "", **spec: Any
) -> dict[str, Any]:
    resources = {} if size is None else {"resources": {"requests": {"storage": size}}}
    annotations = {"volume.beta.kubernetes.io/storage-class": note} if note else {}
    return {"metadata": {"annotations": annotations}, "spec": resources | spec, "status": status or {}}


COUNTED = {"persistentvolumeclaims": "1", "count/persistentvolumeclaims": "1"}


@pytest.mark.parametrize(
    ("doc", "expected"),
    [
        pytest.param(claim(None), COUNTED, id="no size"),
        pytest.param(claim(), COUNTED | {"requests.storage": "1Gi"}, id="no class"),
        pytest.param(claim(storageClassName=""), COUNTED | {"requests.storage": "1Gi"}, id="the empty class"),
        pytest.param(
            claim(storageClassName="gold"),
            COUNTED
            | {
                "requests.storage": "1Gi",
                f"gold{CLASS}requests.storage": "1Gi",
                f"gold{CLASS}persistentvolumeclaims": "1",
            },
            id="a class",
        ),
        pytest.param(
            claim(storageClassName="gold", note="old"),
            COUNTED
            | {
                "requests.storage": "1Gi",
                f"old{CLASS}requests.storage": "1Gi",
                f"old{CLASS}persistentvolumeclaims": "1",
            },
            id="the annotation takes precedence",
        ),
        pytest.param(claim("1500m"), COUNTED | {"requests.storage": "2"}, id="rounded up"),
        pytest.param(
            claim(status={"allocatedResources": {"storage": "3Gi"}}),
            COUNTED | {"requests.storage": "3Gi"},
            id="has been given more",
        ),
        pytest.param(
            claim("5Gi", status={"allocatedResources": {"storage": "3Gi"}}),
            COUNTED | {"requests.storage": "5Gi"},
            id="requests more",
        ),
    ],
)
def test_claims(doc: dict[str, Any], expected: dict[str, str]) -> None:
    assert used(CLAIMS, doc) == expected


def scope(operator: str, *values: str, name: str = "VolumeAttributesClass") -> Requirement:
    return Requirement(name, operator, values)


FAST = claim(volumeAttributesClassName="fast")
MOVING = claim(volumeAttributesClassName="fast", status={"currentVolumeAttributesClassName": "slow"})


@pytest.mark.parametrize(
    ("doc", "requirement", "expected"),
    [
        pytest.param(FAST, scope("Exists"), True, id="there is one"),
        pytest.param(claim(), scope("Exists"), False, id="there is none"),
        pytest.param(claim(), scope("DoesNotExist"), True, id="there is to be none"),
        pytest.param(FAST, scope("In", "fast"), True, id="in"),
        pytest.param(FAST, scope("In", "slow"), False, id="not in"),
        pytest.param(MOVING, scope("In", "slow"), True, id="the current class counts"),
        pytest.param(
            claim(status={"modifyVolumeStatus": {"targetVolumeAttributesClassName": "slow"}}),
            scope("In", "slow"),
            True,
            id="what it is changed to counts",
        ),
        pytest.param(claim(), scope("NotIn", "slow"), True, id="none is not in"),
        pytest.param(FAST, scope("In", "fast", name="BestEffort"), False, id="another scope"),
    ],
)
def test_claims_in_scope(doc: dict[str, Any], requirement: Requirement, expected: bool) -> None:
    assert CLAIMS.in_scope(doc, [requirement]) is expected


def request(name: str = "gpu", **fields: Any) -> dict[str, Any]:
    return {"exactly": {"deviceClassName": name} | fields}


@pytest.mark.parametrize(
    ("requests", "expected"),
    [
        pytest.param([], {}, id="none"),
        pytest.param([request()], {"gpu": "1"}, id="one"),
        pytest.param([request(count=3)], {"gpu": "3"}, id="three"),
        pytest.param([request(count=3), request(count=2)], {"gpu": "5"}, id="a sum"),
        pytest.param([request(allocationMode="All")], {"gpu": "32"}, id="all count as many as there can be"),
        pytest.param([request(allocationMode="Other")], {"gpu": "0"}, id="an unknown resource"),
        pytest.param(
            [
                {
                    "firstAvailable": [
                        {"deviceClassName": "gpu", "count": 2},
                        {"deviceClassName": "gpu", "count": 4},
                        {"deviceClassName": "tpu"},
                    ]
                }
            ],
            {"gpu": "4", "tpu": "1"},
            id="of alternatives the most of each class",
        ),
    ],
)
def test_resource_claims(requests: list[dict[str, Any]], expected: dict[str, str]) -> None:
    found = used(RESOURCE_CLAIMS, {"metadata": {}, "spec": {"devices": {"requests": requests}}})
    assert found == {"count/resourceclaims.resource.k8s.io": "1"} | {
        name + DEVICES: count for name, count in expected.items()
    }


def write(operation: str, subresource: str = "", obj: Any = None, old: Any = None) -> Any:
    return SimpleNamespace(operation=operation, subresource=subresource, obj=obj, old=old)


LIMITED = pod(activeDeadlineSeconds=5)


@pytest.mark.parametrize(
    ("evaluator", "attrs", "expected"),
    [
        pytest.param(PODS, write("CREATE"), True, id="pod created"),
        pytest.param(PODS, write("CREATE", "eviction"), False, id="pod evicted"),
        pytest.param(PODS, write("UPDATE", "", pod(), pod()), False, id="pod changed"),
        pytest.param(PODS, write("UPDATE", "", LIMITED, pod()), True, id="pod given a deadline"),
        pytest.param(PODS, write("UPDATE", "resize"), True, id="pod resized"),
        pytest.param(PODS, write("DELETE"), False, id="pod deleted"),
        pytest.param(SERVICES, write("UPDATE"), True, id="service changed"),
        pytest.param(SERVICES, write("UPDATE", "status"), False, id="service's status"),
        pytest.param(CLAIMS, write("UPDATE"), True, id="claim changed"),
        pytest.param(CLAIMS, write("UPDATE", "status", claim(), claim()), False, id="claim's status"),
        pytest.param(CLAIMS, write("UPDATE", "status", MOVING, FAST), True, id="claim has another class"),
        pytest.param(RESOURCE_CLAIMS, write("CREATE"), True, id="resource claim created"),
        pytest.param(object_count("", "secrets"), write("CREATE"), True, id="secret created"),
        pytest.param(object_count("", "secrets"), write("UPDATE"), False, id="secret changed"),
    ],
)
def test_writes_that_count(evaluator: Any, attrs: Any, expected: bool) -> None:
    assert evaluator.counts(attrs) is expected


@pytest.mark.parametrize(
    ("group", "plural", "expected"),
    [
        ("", "secrets", {"secrets": "1", "count/secrets": "1"}),
        ("", "endpoints", {"count/endpoints": "1"}),
        ("batch", "jobs", {"count/jobs.batch": "1"}),
    ],
)
def test_resources_that_are_only_counted(group: str, plural: str, expected: dict[str, str]) -> None:
    evaluator = object_count(group, plural)
    assert used(evaluator, {}) == expected
    assert all(evaluator.covers(name) for name in expected) and not evaluator.covers("pods")
    assert not evaluator.in_scope({}, [scope("Exists")])
    assert evaluator.problem({}, ["pods"]) == ""


FULL = container("full", requests={"cpu": "1", "memory": "1"}, limits={"cpu": "1", "memory": "1"})


@pytest.mark.parametrize(
    ("doc", "names", "expected"),
    [
        pytest.param(pod(containers=[container()]), ["pods"], "", id="nothing is required"),
        pytest.param(pod(containers=[FULL]), ["cpu", "limits.memory"], "", id="everything is set"),
        pytest.param(
            pod(containers=[FULL, container("b"), container("a")]),
            ["requests.cpu", "limits.memory"],
            "must specify limits.memory for: a,b; requests.cpu for: a,b",
            id="by name",
        ),
        pytest.param(
            pod(containers=[FULL], initContainers=[container("i")]),
            ["cpu"],
            "must specify cpu for: i",
            id="init containers too",
        ),
        pytest.param(
            pod(containers=[container()], resources={"limits": {"cpu": "1"}}),
            ["cpu"],
            "",
            id="pod-level resources",
        ),
    ],
)
def test_problems_of_missing_resources(doc: dict[str, Any], names: list[str], expected: str) -> None:
    assert PODS.problem(doc, names) == expected
