"""How much of a quota is used: what it names, what counts for it, and when it is written."""

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcm_cli.api.core import PODS, RESOURCE_QUOTAS, Pod, ResourceQuota
from kcm_cli.controllers.resourcequota import plan
from kcm_cli.controllers.resourcequota.monitors import document
from kcm_cli.controllers.resourcequota.snapshot import GroupResource, Snapshot
from kcm_cli.machinery import codec
from kcm_cli.machinery.quantity import parse
from kcm_cli.planning.quota import pod_usage

NOW = datetime(2026, 1, 1, tzinfo=UTC)
PODS_KIND, SERVICES_KIND = ("", "pods"), ("", "services")


def quota(hard: dict[str, str] | None = None, status: dict[str, Any] | None = None, **spec: Any) -> ResourceQuota:
    doc = {"metadata": {"name": "q", "namespace": "ns"}, "spec": {"hard": hard or {}, **spec}, "status": status or {}}
    return RESOURCE_QUOTAS.decode(codec.encode(doc))


def pod(cpu: str = "", phase: str = "Running", **spec: Any) -> dict[str, Any]:
    resources = {"requests": {"cpu": cpu}} if cpu else {}
    body = {"containers": [{"name": "c", "resources": resources}], **spec}
    return {"metadata": {"name": "p"}, "spec": body, "status": {"phase": phase}}


@pytest.mark.parametrize(
    ("names", "measured", "counted"),
    [
        pytest.param([], set(), set(), id="nothing"),
        pytest.param(["pods", "requests.cpu"], {PODS_KIND}, set(), id="pods"),
        pytest.param(["count/pods"], {PODS_KIND}, set(), id="pods, counted, are measured"),
        pytest.param(["services.nodeports"], {SERVICES_KIND}, set(), id="services"),
        pytest.param(["gold.storageclass.storage.k8s.io/requests.storage"], {("", "persistentvolumeclaims")}, set(),
                     id="claims of a class"),
        pytest.param(["configmaps", "secrets"], set(), {("", "configmaps"), ("", "secrets")}, id="plain names"),
        pytest.param(["count/configmaps"], set(), {("", "configmaps")}, id="the same, with count"),
        pytest.param(["count/deployments.apps"], set(), {("apps", "deployments")}, id="of a group"),
        pytest.param(["count/widgets.a.b.c"], set(), {("a.b.c", "widgets")}, id="of a group with dots"),
        pytest.param(["requests.example.com/gpu"], {PODS_KIND}, set(), id="extended resource"),
        pytest.param(["example.com/unknown"], set(), set(), id="what nobody knows"),
    ],
)  # fmt: skip
def test_kinds(names: list[str], measured: set[GroupResource], counted: set[GroupResource]) -> None:
    assert plan.kinds(quota(dict.fromkeys(names, "1"))) == (measured, counted)


CASES = [
    pytest.param({"pods": "5", "requests.cpu": "1"}, {}, [], {"pods": "0", "requests.cpu": "0"}, id="nothing there"),
    pytest.param({"pods": "5", "requests.cpu": "1"}, {}, [pod("100m"), pod("0.2"), pod()],
                 {"pods": "3", "requests.cpu": "300m"}, id="a sum"),
    pytest.param({"pods": "5"}, {}, [pod("1"), pod("1", "Succeeded"), pod("1", "Failed")], {"pods": "1"}, id="ended"),
    pytest.param({"count/pods": "5"}, {}, [pod("1"), pod("1", "Succeeded")], {"count/pods": "2"}, id="ended, counted"),
    pytest.param({"pods": "5"}, {"scopes": ["BestEffort"]}, [pod(), pod("1")], {"pods": "1"}, id="scope"),
    pytest.param({"pods": "5"}, {"scopes": ["NotBestEffort"]}, [pod(), pod("1")], {"pods": "1"}, id="the other scope"),
    pytest.param({"pods": "5"}, {"scopes": ["Terminating"]}, [pod(), pod(activeDeadlineSeconds=5)], {"pods": "1"},
                 id="with a deadline"),
    pytest.param({"pods": "5"}, {"scopes": ["BestEffort", "NotTerminating"]},
                 [pod(), pod("1"), pod(activeDeadlineSeconds=5)], {"pods": "1"}, id="in both scopes"),
    pytest.param({"pods": "5"}, {"scopeSelector": {"matchExpressions": [
        {"scopeName": "PriorityClass", "operator": "In", "values": ["high"]}]}},
                 [pod(), pod(priorityClassName="high"), pod(priorityClassName="low")], {"pods": "1"}, id="a selector"),
]  # fmt: skip


@pytest.mark.parametrize(("hard", "spec", "pods", "expected"), CASES)
def test_usage_of_pods(
    hard: dict[str, str], spec: dict[str, Any], pods: list[dict[str, Any]], expected: dict[str, str]
) -> None:
    used = plan.usage(Snapshot(quota(hard, **spec), {PODS_KIND: pods}, {}), NOW)
    assert {name: str(amount) for name, amount in used.items()} == expected


@pytest.mark.parametrize(
    ("hard", "spec", "counted", "expected"),
    [
        pytest.param(["configmaps"], {}, {("", "configmaps"): 2}, {"configmaps": "2"}, id="plain"),
        pytest.param(["count/configmaps"], {}, {("", "configmaps"): 2}, {"count/configmaps": "2"}, id="count"),
        pytest.param(["configmaps", "count/configmaps"], {}, {("", "configmaps"): 2},
                     {"configmaps": "2", "count/configmaps": "2"}, id="both"),
        pytest.param(["count/jobs.batch"], {}, {("batch", "jobs"): 3}, {"count/jobs.batch": "3"}, id="of a group"),
        pytest.param(["count/jobs.batch"], {}, {}, {}, id="not served"),
        pytest.param(["count/configmaps"], {"scopes": ["BestEffort"]}, {("", "configmaps"): 2},
                     {"count/configmaps": "0"}, id="in no scope, so none"),
    ],
)  # fmt: skip
def test_counts(
    hard: list[str], spec: dict[str, Any], counted: dict[GroupResource, int], expected: dict[str, str]
) -> None:
    used = plan.usage(Snapshot(quota(dict.fromkeys(hard, "9"), **spec), {}, counted), NOW)
    assert {name: str(amount) for name, amount in used.items()} == expected


@pytest.mark.parametrize(
    ("hard", "status", "used", "expected"),
    [
        pytest.param({"pods": "5"}, {}, {"pods": "0"}, {"pods": "0"}, id="the first time"),
        pytest.param({"pods": "5"}, {"hard": {"pods": "5"}, "used": {"pods": "1"}}, {"pods": "1"}, None, id="same"),
        pytest.param({"pods": "5"}, {"hard": {"pods": "5"}, "used": {"pods": "1"}}, {"pods": "2"}, {"pods": "2"},
                     id="more"),
        pytest.param({"pods": "6"}, {"hard": {"pods": "5"}, "used": {"pods": "1"}}, {"pods": "1"}, {"pods": "1"},
                     id="another limit"),
        pytest.param({"cpu": "1"}, {"hard": {"cpu": "1"}, "used": {"cpu": "500m"}}, {"cpu": "0.5"}, None,
                     id="the same amount, written otherwise"),
        pytest.param({"pods": "5"}, {"hard": {"pods": "5"}, "used": {"pods": "1", "cpu": "1"}}, {"pods": "1"},
                     {"pods": "1"}, id="what is not limited any more goes"),
        pytest.param({"pods": "5", "count/x.y": "1"}, {"hard": {"pods": "5", "count/x.y": "1"},
                     "used": {"pods": "1", "count/x.y": "7"}}, {"pods": "2"}, {"pods": "2", "count/x.y": "7"},
                     id="what nobody counts now stays"),
    ],
)  # fmt: skip
def test_what_is_written(
    hard: dict[str, str], status: dict[str, Any], used: dict[str, str], expected: dict[str, str] | None
) -> None:
    subject = quota(hard, status)
    found = plan.new_status(subject, {name: parse(value) for name, value in used.items()})
    if expected is None:
        assert found is None
    else:
        assert found is not None and found.hard == hard
        assert {name: parse(value) for name, value in (found.used or {}).items()} == {
            name: parse(value) for name, value in expected.items()
        }


# -- when a pod frees something


def typed(doc: dict[str, Any], metadata: dict[str, Any] | None = None, **status: Any) -> Pod:
    full = doc | {"metadata": doc["metadata"] | (metadata or {}), "status": doc["status"] | status}
    return PODS.decode(codec.encode(full))


def given_to(cpu: str) -> dict[str, Any]:
    return {"containerStatuses": [{"name": "c", "resources": {"requests": {"cpu": cpu}}}]}


DELETED = {"deletionTimestamp": "2025-12-31T23:59:00Z", "deletionGracePeriodSeconds": 30}


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        pytest.param(typed(pod("1")), typed(pod("1")), False, id="same"),
        pytest.param(typed(pod("1", "Pending")), typed(pod("1")), False, id="started"),
        pytest.param(typed(pod("1")), typed(pod("1", "Succeeded")), True, id="succeeded"),
        pytest.param(typed(pod("1")), typed(pod("1", "Failed")), True, id="failed"),
        pytest.param(typed(pod("1", "Failed")), typed(pod("1", "Failed")), False, id="failed before"),
        pytest.param(typed(pod("1")), typed(pod("2")), True, id="resize asked for"),
        pytest.param(typed(pod("1"), **given_to("2")), typed(pod("1"), **given_to("1")), True, id="resize done"),
        pytest.param(typed(pod("1")), typed(pod("1", activeDeadlineSeconds=9)), True, id="given a deadline"),
        pytest.param(typed(pod("1")), typed(pod("1"), DELETED), True, id="its deletion is overdue"),
        pytest.param(typed(pod("1")), typed(pod("1"), DELETED | {"deletionGracePeriodSeconds": 90}), False,
                     id="it is being deleted"),
    ],
)  # fmt: skip
def test_what_frees(old: Pod, new: Pod, expected: bool) -> None:
    assert plan.frees(old, new, NOW) is expected


# -- properties

amounts = st.dictionaries(st.sampled_from(["cpu", "memory", "example.com/gpu", "hugepages-2Mi"]),
                          st.sampled_from(["1", "250m", "64Mi", "2"]), max_size=3)  # fmt: skip
resources = st.fixed_dictionaries({}, optional={"requests": amounts, "limits": amounts})
terms = st.fixed_dictionaries(
    {"topologyKey": st.just("z")},
    optional={"namespaces": st.just(["other"]), "namespaceSelector": st.just({}), "labelSelector": st.just({})},
)
affinities = st.fixed_dictionaries(
    {},
    optional={
        kind: st.fixed_dictionaries(
            {},
            optional={
                "requiredDuringSchedulingIgnoredDuringExecution": st.lists(terms, max_size=2),
                "preferredDuringSchedulingIgnoredDuringExecution": st.lists(
                    st.builds(lambda term: {"weight": 1, "podAffinityTerm": term}, terms), max_size=2
                ),
            },
        )
        for kind in ("podAffinity", "podAntiAffinity")
    },
)
containers = st.lists(
    st.tuples(resources, st.sampled_from([None, "Always"])), min_size=1, max_size=3
).map(lambda found: [
    {"name": f"c{n}", "resources": each} | ({"restartPolicy": policy} if policy else {})
    for n, (each, policy) in enumerate(found)
])  # fmt: skip
documents = st.builds(
    lambda main, init, optional, phase, given, deleting: {
        "metadata": {"name": "p", **(DELETED if deleting else {})},
        "spec": {"containers": [{k: v for k, v in c.items() if k != "restartPolicy"} for c in main],
                 "initContainers": [c | {"name": "i" + c["name"]} for c in init], **optional},
        "status": {"phase": phase, "containerStatuses": [
            {"name": c["name"], "resources": given, "allocatedResources": given.get("requests", {})} for c in main]},
    },
    containers,
    containers,
    st.fixed_dictionaries(
        {},
        optional={
            "activeDeadlineSeconds": st.integers(1, 9),
            "priorityClassName": st.sampled_from(["high", "low"]),
            "overhead": amounts,
            "resources": resources,
            "affinity": affinities,
        },
    ),
    st.sampled_from(["Pending", "Running", "Failed"]),
    resources,
    st.booleans(),
)  # fmt: skip
SCOPES = ["Terminating", "NotTerminating", "BestEffort", "NotBestEffort", "PriorityClass", "CrossNamespacePodAffinity"]


@given(documents)
def test_a_cached_pod_has_all_that_its_measure_reads(doc: dict[str, Any]) -> None:
    """The view that the cache holds drops most of a pod, and nothing that a quota counts."""
    cached = document(PODS.decode(codec.encode(doc)))
    assert pod_usage.usage(cached, NOW) == pod_usage.usage(doc, NOW)
    for scope in SCOPES:
        requirement = {"scopeName": scope, "operator": "Exists"}
        assert pod_usage.in_scope(cached, requirement) == pod_usage.in_scope(doc, requirement), scope


@given(st.lists(documents, max_size=4), st.lists(documents, max_size=4))
def test_usage_adds_up(some: list[dict[str, Any]], others: list[dict[str, Any]]) -> None:
    subject = quota(dict.fromkeys(["pods", "count/pods", "requests.cpu", "limits.memory", "hugepages-2Mi"], "9"))

    def used(pods: list[dict[str, Any]]) -> dict[str, Any]:
        return plan.usage(Snapshot(subject, {PODS_KIND: pods}, {}), NOW)

    both, first, second = used(some + others), used(some), used(others)
    assert both == {name: first[name] + second[name] for name in both}
    assert both == used(others + some)
