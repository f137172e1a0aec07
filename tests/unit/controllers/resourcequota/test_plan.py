"""How much of a quota is used: what it names, what counts for it, and when it is written."""

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcm_cli.api.core import PERSISTENT_VOLUME_CLAIMS, PODS, RESOURCE_QUOTAS, SERVICES, Pod, ResourceQuota
from kcm_cli.api.resource import Resource
from kcm_cli.controllers.resourcequota import plan
from kcm_cli.controllers.resourcequota.plan import Features, GroupResource
from kcm_cli.machinery import codec
from kcm_cli.machinery.quantity import Quantity, parse
from kcm_cli.planning.quota import pod_usage
from kcm_cli.planning.quota.charges import Charges, Totals
from kcm_cli.planning.quota.devices import DeviceClasses
from kcm_cli.planning.quota.scopes import matches, requirements

NOW = datetime(2026, 1, 1, tzinfo=UTC)
PODS_KIND, SERVICES_KIND = ("", "pods"), ("", "services")
NO_CLASSES = DeviceClasses()


def used_of(subject: ResourceQuota, pods: list[dict[str, Any]]) -> dict[str, Quantity]:
    """What pods use of a quota."""
    totals, charges = Totals(), Charges()
    for number, doc in enumerate(pods):
        profile, amounts = plan.measure(PODS_KIND, PODS.decode(codec.encode(doc)), NOW, Features())
        totals.put(str(number), charges.make(profile, amounts))
    asked, hard = requirements(subject), subject.spec.hard or {}
    found = totals.used(lambda profile: matches(profile, asked, pod_usage.SCOPES))
    return plan.usage(hard, [(frozenset(filter(pod_usage.covers, hard)), found)])


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
        pytest.param(["example.com/unknown"], set(), set(), id="an unknown resource"),
        pytest.param(["count/events", "count/events.events.k8s.io", "count/bindings"], set(), set(),
                     id="a resource that is never counted"),
    ],
)  # fmt: skip
def test_kinds(names: list[str], measured: set[GroupResource], counted: set[GroupResource]) -> None:
    assert plan.plan_kinds(names, NO_CLASSES) == (measured, counted)


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
    used = used_of(quota(hard, **spec), pods)
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
    scoped = bool(requirements(quota({}, **spec)))
    parts = [
        (frozenset(plan.counted_names(kind)), plan.count_of(kind, n, scoped=scoped)) for kind, n in counted.items()
    ]
    used = plan.usage(hard, parts)
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
                     {"pods": "1"}, id="usage without a limit is removed"),
        pytest.param({"pods": "5", "count/x.y": "1"}, {"hard": {"pods": "5", "count/x.y": "1"},
                     "used": {"pods": "1", "count/x.y": "7"}}, {"pods": "2"}, {"pods": "2", "count/x.y": "7"},
                     id="usage that is not counted now is kept"),
    ],
)  # fmt: skip
def test_the_written_object(
    hard: dict[str, str], status: dict[str, Any], used: dict[str, str], expected: dict[str, str] | None
) -> None:
    subject = quota(hard, status)
    found = plan.status(subject, {name: parse(value) for name, value in used.items()})
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


def given_to(cpu: str, allocated: str = "1") -> dict[str, Any]:
    resources, allocation = {"requests": {"cpu": cpu}}, {"cpu": allocated}
    return {"containerStatuses": [{"name": "c", "resources": resources, "allocatedResources": allocation}]}


def pending(reason: str) -> dict[str, Any]:
    return {"conditions": [{"type": "PodResizePending", "status": "True", "reason": reason}]}


DELETED = {"deletionTimestamp": "2025-12-31T23:59:00Z", "deletionGracePeriodSeconds": 30}


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        pytest.param(typed(pod("1")), typed(pod("1")), False, id="same"),
        pytest.param(typed(pod("1", "Pending")), typed(pod("1")), False, id="started"),
        pytest.param(typed(pod("1")), typed(pod("1", "Succeeded")), True, id="succeeded"),
        pytest.param(typed(pod("1")), typed(pod("1", "Failed")), True, id="failed"),
        pytest.param(typed(pod("1", "Failed")), typed(pod("1", "Failed")), False, id="failed before"),
        pytest.param(typed(pod("1")), typed(pod("2")), True, id="resize requested"),
        pytest.param(typed(pod("1"), **given_to("2")), typed(pod("1"), **given_to("1")), True, id="resize done"),
        pytest.param(typed(pod("1"), **given_to("1", "2")), typed(pod("1"), **given_to("1")), True, id="less allotted"),
        pytest.param(typed(pod("9")), typed(pod("9"), **pending("Infeasible")), True, id="its node refuses a resize"),
        pytest.param(typed(pod("9")), typed(pod("9"), **pending("Deferred")), False, id="its node defers a resize"),
        pytest.param(typed(pod("1")), typed(pod("1", activeDeadlineSeconds=9)), True, id="given a deadline"),
        pytest.param(typed(pod("1")), typed(pod("1"), DELETED), True, id="its deletion is overdue"),
        pytest.param(typed(pod("1")), typed(pod("1"), DELETED | {"deletionGracePeriodSeconds": 90}), False,
                     id="it is being deleted"),
    ],
)  # fmt: skip
def test_changes_that_release(old: Pod, new: Pod, expected: bool) -> None:
    assert plan.frees(old, new, NOW) is expected


def changed(resource: Resource[Any], old: dict[str, Any], new: dict[str, Any]) -> bool:
    one, other = (resource.decode(codec.encode({"metadata": {"name": "x"}, **doc})) for doc in (old, new))
    return plan.frees(one, other, NOW)


def test_services_release_usage_by_type_and_node_ports() -> None:
    def service(type_: str, ports: int = 1, fixed: int = 0, **spec: Any) -> dict[str, Any]:
        listed = [{"port": n + 1} | ({"nodePort": 30000 + n} if n < fixed else {}) for n in range(ports)]
        return {"spec": {"type": type_, "ports": listed, **spec}}

    assert not changed(SERVICES, service("ClusterIP"), service("ExternalName"))
    assert not changed(SERVICES, service("ClusterIP", 3), service("ClusterIP", 1))
    assert not changed(SERVICES, service("NodePort", 2), service("NodePort", 2, 2))
    assert changed(SERVICES, service("NodePort"), service("ClusterIP"))
    assert changed(SERVICES, service("LoadBalancer"), service("NodePort"))
    assert changed(SERVICES, service("NodePort", 3), service("NodePort", 1))
    none = {"allocateLoadBalancerNodePorts": False}
    assert changed(SERVICES, service("LoadBalancer", 2), service("LoadBalancer", 2, **none))
    assert changed(SERVICES, service("LoadBalancer", 2, 2, **none), service("LoadBalancer", 2, 1, **none))


def test_claims_release_usage_by_size_and_class() -> None:
    def claim(size: str = "1Gi", **status: Any) -> dict[str, Any]:
        return {"spec": {"resources": {"requests": {"storage": size}}}, "status": status}

    assert not changed(PERSISTENT_VOLUME_CLAIMS, claim(), claim(phase="Bound"))
    assert changed(PERSISTENT_VOLUME_CLAIMS, claim("2Gi"), claim("1Gi"))
    assert changed(PERSISTENT_VOLUME_CLAIMS, claim(allocatedResources={"storage": "2Gi"}), claim())
    assert changed(PERSISTENT_VOLUME_CLAIMS, claim(currentVolumeAttributesClassName="a"), claim())


@pytest.mark.parametrize(
    ("hard", "status", "expected"),
    [
        pytest.param({"pods": "1"}, {}, True, id="never counted"),
        pytest.param({"pods": "1"}, {"hard": {"pods": "1"}, "used": {"pods": "0"}}, False, id="counted"),
        pytest.param({"cpu": "1"}, {"hard": {"cpu": "1000m"}, "used": {"cpu": "0"}}, False, id="written otherwise"),
        pytest.param({"pods": "2"}, {"hard": {"pods": "1"}, "used": {"pods": "0"}}, True, id="another limit"),
        pytest.param({"pods": "1", "services": "1"}, {"hard": {"pods": "1", "services": "1"}, "used": {"pods": "0"}},
                     True, id="one was never counted"),
        pytest.param({"a/b": "1"}, {"hard": {"a/b": "1"}, "used": {}}, False, id="an uncountable resource"),
    ],
)  # fmt: skip
def test_quotas_that_are_urgent(hard: dict[str, str], status: dict[str, Any], expected: bool) -> None:
    assert plan.is_urgent(quota(hard, status), NO_CLASSES) is expected


def test_invalid_quantities_do_not_affect_others() -> None:
    bad = {"requests": {"cpu": "1", "memory": "lots"}}
    docs = [pod("2"), {**pod(), "spec": {"containers": [{"name": "c", "resources": bad}], "overhead": {"cpu": "?"}}}]
    found = used_of(quota({"pods": "9", "requests.cpu": "9", "requests.memory": "9"}), docs)
    assert {name: str(amount) for name, amount in found.items()} == {
        "pods": "2", "requests.cpu": "3", "requests.memory": "0"}  # fmt: skip
    undated = {**pod("4"), "metadata": {"name": "p", "deletionTimestamp": "?", "deletionGracePeriodSeconds": 3}}
    assert used_of(quota({"requests.cpu": "9"}), [undated]) == {"requests.cpu": parse("4")}
    assert plan.status(quota({"cpu": "x"}, {"hard": {"cpu": "x"}, "used": {"cpu": "y"}}), {"cpu": parse("1")})


def test_kinds_charged_to_the_same_name_add_up() -> None:
    name = "requests.example.com/gpu"
    parts = [(frozenset({name}), {name: parse("2")}), (frozenset({name}), {name: parse("3"), "other": parse("1")})]
    assert plan.usage([name], parts) == {name: parse("5")}


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


@given(documents)
def test_a_cached_pod_has_all_fields_that_its_usage_reads(doc: dict[str, Any]) -> None:
    """The view that the cache holds drops most of a pod, and nothing that a quota counts."""
    cached = PODS.decode(codec.encode(doc))
    expected = pod_usage.profile(doc), pod_usage.usage(doc, NOW)
    assert plan.measure(PODS_KIND, cached, NOW, Features()) == expected


@given(st.lists(documents, max_size=4), st.lists(documents, max_size=4))
def test_usage_adds_up(some: list[dict[str, Any]], others: list[dict[str, Any]]) -> None:
    subject = quota(dict.fromkeys(["pods", "count/pods", "requests.cpu", "limits.memory", "hugepages-2Mi"], "9"))

    def used(pods: list[dict[str, Any]]) -> dict[str, Any]:
        return used_of(subject, pods)

    both, first, second = used(some + others), used(some), used(others)
    assert both == {name: first[name] + second[name] for name in both}
    assert both == used(others + some)


@pytest.mark.parametrize(
    ("gate", "expected"),
    [
        ({}, {"requests.cpu": "5", "requests.storage": "3"}),
        ({"pod_level_resources": False}, {"requests.cpu": "2", "requests.storage": "3"}),
        ({"pod_level_resources": False, "given_to_pods": False}, {"requests.cpu": "1", "requests.storage": "3"}),
        ({"given_to_claims": False}, {"requests.cpu": "5", "requests.storage": "1"}),
    ],
)
def test_resources_that_gates_leave_out(gate: dict[str, bool], expected: dict[str, str]) -> None:
    both = pod("1", resources={"requests": {"cpu": "5"}})
    both["status"] |= given_to("2")
    claim = {"metadata": {}, "spec": {"resources": {"requests": {"storage": "1"}}}}
    claim["status"] = {"allocatedResources": {"storage": "3"}}
    found: dict[str, Quantity] = {}
    for resource, doc in ((PODS, both), (PERSISTENT_VOLUME_CLAIMS, claim)):
        obj = resource.decode(codec.encode(doc))
        found |= plan.measure(("", resource.plural), obj, NOW, Features(**gate))[1]
    assert {name: str(found[name]) for name in expected} == expected
