"""PodDisruptionBudgets: defaults, and refused values with their causes, as a v1.36 server answers."""

import asyncio
from typing import Any

from tests.kit.api import Api
from tests.kit.kinds import Kind, Row

PODS = "/api/v1/namespaces/default/pods"
POD_DISRUPTION_BUDGETS = Kind(
    "/apis/policy/v1/namespaces/default/poddisruptionbudgets",
    {"spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "a"}}}},
)
DEFAULTS: dict[str, Any] = {
    "spec.minAvailable": 1,
}
REFUSED: list[Row] = [
    ("spec.minAvailable", -1, "Invalid value: -1: must be greater than or equal to 0"),
    ("spec.minAvailable", "x", 'Invalid value: "x": a valid percent string must be a numeric string followed by …'),
    ("spec.minAvailable", "101%", 'Invalid value: "101%": must not be greater than 100%'),
    ("spec.maxUnavailable", 1, 'spec: Invalid value: {"MinAvailable":1,"Selector":{"matchLabels":{"app":"a"}},"M…'),
    (
        "spec.selector",
        {"matchLabels": {"a b": "c"}},
        ".matchLabels: Invalid value: \"a b\": name part must consist of alphanumeric characters, '-', '_' or …",
    ),
    ("spec.unhealthyPodEvictionPolicy", "Never", 'Unsupported value: "Never": supported values: "AlwaysAllow", "…'),
]


async def test_table(api: Api) -> None:
    await POD_DISRUPTION_BUDGETS.check(api, DEFAULTS, REFUSED, [])


async def unready_pod(api: Api) -> Any:
    """A running pod that is not ready, whose budget lets such pods be evicted."""
    pod = {"metadata": {"name": "p"}, "spec": {"nodeName": "n", "containers": [{"name": "c", "image": "i"}]}}
    await api.make(PODS, pod)
    spec = {"maxUnavailable": 0, "selector": {}, "unhealthyPodEvictionPolicy": "AlwaysAllow"}
    await api.make(POD_DISRUPTION_BUDGETS.path, {"metadata": {"name": "b"}, "spec": spec})
    return (await api.merge(f"{PODS}/p/status", {"status": {"phase": "Running"}})).doc


async def test_an_eviction_that_a_change_of_an_unready_pod_overtakes_is_to_be_repeated(api: Api) -> None:
    await unready_pod(api)

    async def ready() -> None:
        await asyncio.sleep(0.01)  # between the look at the budget and the deletion
        conditions = [{"type": "Ready", "status": "True"}]
        await api.merge(f"{PODS}/p/status", {"status": {"conditions": conditions}})

    answer, _ = await asyncio.gather(api.post(f"{PODS}/p/eviction", {"metadata": {"name": "p"}}), ready())
    assert (answer.status, answer.doc["reason"]) == (429, "TooManyRequests")
    assert answer.headers["retry-after"] == "10" == str(answer.doc["details"]["retryAfterSeconds"])
    assert answer.causes == [
        {
            "reason": "DisruptionBudget",
            "message": "The disruption budget b is still being processed by the server.",
        }
    ]
    assert "deletionTimestamp" not in (await api.get(f"{PODS}/p")).doc["metadata"]


async def test_an_unready_pod_is_evicted_in_the_version_that_was_judged(api: Api) -> None:
    version = int((await unready_pod(api))["metadata"]["resourceVersion"])
    preconditions = {"resourceVersion": str(version - 1)}  # upstream replaces it, too
    body = {"metadata": {"name": "p"}, "deleteOptions": {"preconditions": preconditions}}
    assert (await api.post(f"{PODS}/p/eviction", body)).status == 201


async def test_an_eviction_owns_what_it_counts(api: Api) -> None:
    pod = {"metadata": {"name": "p"}, "spec": {"nodeName": "n", "containers": [{"name": "c", "image": "i"}]}}
    await api.make(PODS, pod)
    await api.merge(f"{PODS}/p/status", {"status": {"phase": "Running"}})
    await api.make(
        POD_DISRUPTION_BUDGETS.path, {"metadata": {"name": "b"}, "spec": {"maxUnavailable": 1, "selector": {}}}
    )
    path = f"{POD_DISRUPTION_BUDGETS.path}/b"
    await api.merge(f"{path}/status", {"status": {"disruptionsAllowed": 2, "observedGeneration": 1}})
    body = {"metadata": {"name": "p"}, "deleteOptions": {"preconditions": {"resourceVersion": ""}}}
    assert (await api.post(f"{PODS}/p/eviction", body)).status == 201
    budget = (await api.get(path)).doc
    assert budget["status"]["disruptionsAllowed"] == 1
    owned = {one["manager"]: one["fieldsV1"].get("f:status") for one in budget["metadata"]["managedFields"]}
    assert owned["kube-apiserver"].keys() == {"f:disruptionsAllowed", "f:disruptedPods"}
