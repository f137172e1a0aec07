"""ResourceQuota: what is counted and what fits, also for many concurrent writers."""

import asyncio
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kcm_cli.machinery import quantity
from tests.kit.api import Answer, Api, pod

Tree = dict[str, Any]


async def quota(
    api: Api, namespace: str, hard: Tree, *, used: Tree | None = None, name: str = "q", **spec: Any
) -> None:
    """A quota as its controller has counted it."""
    path = f"/api/v1/namespaces/{namespace}/resourcequotas"
    made = await api.make(path, {"metadata": {"name": name}, "spec": {"hard": hard, **spec}})
    made["status"] = {"hard": hard, "used": {**dict.fromkeys(hard, "0"), **(used or {})}}
    assert (await api.put(f"{path}/{name}/status", made)).status == 200


async def used(api: Api, namespace: str, name: str = "q") -> Tree:
    found: Tree = (await api.get(f"/api/v1/namespaces/{namespace}/resourcequotas/{name}")).doc["status"]["used"]
    return found


def with_resources(name: str = "p", *, requests: Tree | None = None, limits: Tree | None = None, **spec: Any) -> Tree:
    made = pod(name, **spec)
    made["spec"]["containers"][0]["resources"] = {"requests": requests or {}, "limits": limits or {}}
    return made


async def test_a_thousand_writers_together_stay_within_the_quota(api: Api) -> None:
    namespace = await api.namespace(account=False)
    await quota(api, namespace, {"configmaps": "100", "count/configmaps": "120"})

    async def everybody() -> list[Answer]:
        path = f"/api/v1/namespaces/{namespace}/configmaps"
        return await asyncio.gather(*(api.call("POST", path, {"metadata": {"name": f"c{n}"}}) for n in range(1000)))

    answers = await everybody()
    assert [answer.status for answer in answers].count(201) == 100
    refused = next(answer for answer in answers if answer.status != 201)
    assert refused.message == (
        f'configmaps "{refused.doc["details"]["name"]}" is forbidden: exceeded quota: q, requested: configmaps=1, '
        "used: configmaps=100, limited: configmaps=100"
    )
    assert len((await api.get(f"/api/v1/namespaces/{namespace}/configmaps")).doc["items"]) == 100
    assert await used(api, namespace) == {"configmaps": "100", "count/configmaps": "100"}


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.integers(1, 400), max_size=25), st.integers(0, 2000))
async def test_the_quota_is_used_up_exactly(api: Api, amounts: list[int], there: int) -> None:
    namespace = await api.namespace()
    await quota(api, namespace, {"requests.cpu": f"{there}m"})

    async def everybody() -> list[Answer]:
        path = f"/api/v1/namespaces/{namespace}/pods"
        made = [with_resources(f"p{n}", requests={"cpu": f"{amount}m"}) for n, amount in enumerate(amounts)]
        return await asyncio.gather(*(api.call("POST", path, each) for each in made))

    fits = [answer.status == 201 for answer in await everybody()]
    given_away = sum(amount for amount, made in zip(amounts, fits, strict=True) if made)
    assert quantity.parse((await used(api, namespace))["requests.cpu"]) == quantity.parse(f"{given_away}m")
    assert given_away <= there
    assert all(amount + given_away > there for amount, made in zip(amounts, fits, strict=True) if not made)


async def test_writers_of_pods_share_their_amounts_exactly(api: Api) -> None:
    namespace = await api.namespace()
    await quota(api, namespace, {"requests.cpu": "1", "pods": "100"})

    async def everybody() -> list[Answer]:
        path = f"/api/v1/namespaces/{namespace}/pods"
        made = [with_resources(f"p{n}", requests={"cpu": "70m"}) for n in range(40)]
        return await asyncio.gather(*(api.call("POST", path, each) for each in made))

    assert [answer.status for answer in await everybody()].count(201) == 14
    assert await used(api, namespace) == {"requests.cpu": "980m", "pods": "14"}


@pytest.mark.parametrize(
    ("hard", "made", "why"),
    [
        pytest.param(
            {"requests.cpu": "1", "limits.memory": "1Gi"},
            with_resources(requests={"cpu": "1"}),
            "failed quota: q: must specify limits.memory for: c",
            id="what is limited is required",
        ),
        pytest.param(
            {"cpu": "1"},
            with_resources(requests={"cpu": "1500m"}),
            "exceeded quota: q, requested: cpu=1500m, used: cpu=0, limited: cpu=1",
            id="cpu is the request",
        ),
        pytest.param(
            {"pods": "0", "count/pods": "0"},
            pod(),
            "exceeded quota: q, requested: count/pods=1,pods=1, used: count/pods=0,pods=0, "
            "limited: count/pods=0,pods=0",
            id="several at once",
        ),
        pytest.param(
            {"requests.example.com/gpu": "1"},
            with_resources(requests={"example.com/gpu": "2"}, limits={"example.com/gpu": "2"}),
            "exceeded quota: q, requested: requests.example.com/gpu=2, used: requests.example.com/gpu=0, "
            "limited: requests.example.com/gpu=1",
            id="extended resources",
        ),
    ],
)
async def test_pods_that_do_not_fit(api: Api, hard: Tree, made: Tree, why: str) -> None:
    namespace = await api.namespace()
    await quota(api, namespace, hard)
    answer = await api.post(f"/api/v1/namespaces/{namespace}/pods", made)
    assert (answer.status, answer.doc["reason"]) == (403, "Forbidden")
    assert answer.message == f'pods "p" is forbidden: {why}'


@pytest.mark.parametrize(
    ("scopes", "made", "counts"),
    [
        pytest.param(["BestEffort"], pod(), True, id="best effort"),
        pytest.param(["BestEffort"], with_resources(requests={"cpu": "1"}), False, id="burstable is no best effort"),
        pytest.param(["NotBestEffort"], with_resources(requests={"cpu": "1"}), True, id="not best effort"),
        pytest.param(["Terminating"], pod(activeDeadlineSeconds=5), True, id="terminating"),
        pytest.param(["Terminating"], pod(), False, id="endless"),
        pytest.param(["NotTerminating"], pod(), True, id="not terminating"),
        pytest.param(["Terminating", "BestEffort"], pod(activeDeadlineSeconds=5), True, id="both"),
    ],
)
async def test_scopes(api: Api, scopes: list[str], made: Tree, counts: bool) -> None:
    namespace = await api.namespace()
    await quota(api, namespace, {"pods": "1"}, scopes=scopes)
    await api.make(f"/api/v1/namespaces/{namespace}/pods", made)
    assert (await used(api, namespace))["pods"] == ("1" if counts else "0")


@pytest.mark.parametrize(
    ("operator", "values", "counts"),
    [
        pytest.param("In", ["high"], True, id="in"),
        pytest.param("NotIn", ["high"], False, id="not in"),
        pytest.param("Exists", None, True, id="exists"),
        pytest.param("DoesNotExist", None, False, id="does not exist"),
    ],
)
async def test_priority_class_scopes(api: Api, operator: str, values: list[str] | None, counts: bool) -> None:
    if (await api.get("/apis/scheduling.k8s.io/v1/priorityclasses/high")).status == 404:
        await api.make("/apis/scheduling.k8s.io/v1/priorityclasses", {"metadata": {"name": "high"}, "value": 5})
    namespace = await api.namespace()
    expression = {"scopeName": "PriorityClass", "operator": operator, **({"values": values} if values else {})}
    await quota(api, namespace, {"pods": "5"}, scopeSelector={"matchExpressions": [expression]})
    await api.make(f"/api/v1/namespaces/{namespace}/pods", pod(priorityClassName="high"))
    assert (await used(api, namespace))["pods"] == ("1" if counts else "0")


@pytest.mark.parametrize(
    ("hard", "plural", "made", "expected"),
    [
        pytest.param(
            {"services": "5", "services.nodeports": "5", "services.loadbalancers": "5"},
            "services",
            {"spec": {"type": "LoadBalancer", "ports": [{"port": 1}, {"port": 2, "name": "b"}]}},
            {"services": "1", "services.nodeports": "2", "services.loadbalancers": "1"},
            id="load balancer",
        ),
        pytest.param(
            {"requests.storage": "5Gi", "gold.storageclass.storage.k8s.io/requests.storage": "5Gi"},
            "persistentvolumeclaims",
            {
                "spec": {
                    "accessModes": ["ReadWriteOnce"],
                    "storageClassName": "gold",
                    "resources": {"requests": {"storage": "1Gi"}},
                }
            },
            {"requests.storage": "1Gi", "gold.storageclass.storage.k8s.io/requests.storage": "1Gi"},
            id="claims by class",
        ),
        pytest.param({"secrets": "2"}, "secrets", {}, {"secrets": "1"}, id="secrets"),
    ],
)
async def test_what_objects_use(api: Api, hard: Tree, plural: str, made: Tree, expected: Tree) -> None:
    namespace = await api.namespace()
    await quota(api, namespace, hard)
    for entry in made.get("spec", {}).get("ports", ()):
        entry.setdefault("name", "a")
    await api.make(f"/api/v1/namespaces/{namespace}/{plural}", {"metadata": {"name": "o"}, **made})
    assert await used(api, namespace) == expected


async def test_an_update_is_charged_with_what_it_adds(api: Api) -> None:
    namespace = await api.namespace()
    await quota(api, namespace, {"services.nodeports": "1", "services": "2"})
    path = f"/api/v1/namespaces/{namespace}/services"
    await api.make(path, {"metadata": {"name": "s"}, "spec": {"ports": [{"port": 1, "name": "a"}]}})
    assert await used(api, namespace) == {"services.nodeports": "0", "services": "1"}
    assert (await api.merge(f"{path}/s", {"spec": {"type": "NodePort"}})).status == 200
    assert await used(api, namespace) == {"services.nodeports": "1", "services": "1"}
    more = {"spec": {"ports": [{"port": 1, "name": "a"}, {"port": 2, "name": "b"}]}}
    assert (await api.merge(f"{path}/s", more)).status == 403


async def test_a_quota_that_was_never_counted_refuses(api: Api) -> None:
    namespace = await api.namespace(account=False)
    path = f"/api/v1/namespaces/{namespace}/resourcequotas"
    await api.make(path, {"metadata": {"name": "q"}, "spec": {"hard": {"configmaps": "5"}}})
    made = (await api.get(f"{path}/q")).doc
    made["status"] = {"hard": {"configmaps": "5"}}
    await api.put(f"{path}/q/status", made)
    answer = await api.post(f"/api/v1/namespaces/{namespace}/configmaps", {"metadata": {"name": "c"}})
    assert answer.message == 'configmaps "c" is forbidden: status unknown for quota: q, resources: configmaps'


async def test_a_dry_run_is_not_charged(api: Api) -> None:
    namespace = await api.namespace(account=False)
    await quota(api, namespace, {"configmaps": "1"})
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    assert (await api.post(f"{path}?dryRun=All", {"metadata": {"name": "c"}})).status == 201
    assert await used(api, namespace) == {"configmaps": "0"}


async def test_events_are_never_counted(api: Api) -> None:
    namespace = await api.namespace(account=False)
    await quota(api, namespace, {"count/events": "0"})
    event = {"metadata": {"name": "e"}, "involvedObject": {"namespace": namespace}}
    assert (await api.post(f"/api/v1/namespaces/{namespace}/events", event)).status == 201
