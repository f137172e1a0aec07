"""LimitRanger: defaults, bounds and ratios, and the texts of errors."""

from typing import Any

import pytest

from tests.kit.api import Answer, Api, pod

Tree = dict[str, Any]


async def limited(api: Api, **limit: Any) -> str:
    namespace = await api.namespace()
    limit.setdefault("type", "Container")
    path = f"/api/v1/namespaces/{namespace}/limitranges"
    await api.make(path, {"metadata": {"name": "l"}, "spec": {"limits": [limit]}})
    return namespace


def using(requests: Tree | None = None, limits: Tree | None = None, **spec: Any) -> Tree:
    made = pod(**spec)
    made["spec"]["containers"][0]["resources"] = {
        key: value for key, value in (("requests", requests), ("limits", limits)) if value
    }
    return made


@pytest.mark.parametrize(
    ("limit", "made", "resources", "note"),
    [
        pytest.param(
            {"default": {"cpu": "2", "memory": "1Gi"}, "defaultRequest": {"cpu": "1"}},
            using(),
            {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"cpu": "2", "memory": "1Gi"}},
            "LimitRanger plugin set: cpu, memory request for container c; cpu, memory limit for container c",
            id="both",
        ),
        pytest.param(
            {"default": {"cpu": "2"}, "defaultRequest": {"cpu": "1"}},
            using({"cpu": "500m"}),
            {"requests": {"cpu": "500m"}, "limits": {"cpu": "2"}},
            "LimitRanger plugin set: cpu limit for container c",
            id="what is set stays",
        ),
        pytest.param(
            {"max": {"cpu": "2"}},
            using({"cpu": "1"}, {"cpu": "1"}),
            {"requests": {"cpu": "1"}, "limits": {"cpu": "1"}},
            None,
            id="nothing to fill in",
        ),
        pytest.param(
            {"max": {"cpu": "2"}},
            using(),
            {"requests": {"cpu": "2"}, "limits": {"cpu": "2"}},
            "LimitRanger plugin set: cpu request for container c; cpu limit for container c",
            id="the most is the default",
        ),
    ],
)
async def test_defaults(api: Api, limit: Tree, made: Tree, resources: Tree, note: str | None) -> None:
    namespace = await limited(api, **limit)
    answer = await api.make(f"/api/v1/namespaces/{namespace}/pods", made)
    assert answer["spec"]["containers"][0]["resources"] == resources
    assert answer["metadata"].get("annotations", {}).get("kubernetes.io/limit-ranger") == note


@pytest.mark.parametrize(
    ("limit", "made", "why"),
    [
        pytest.param(
            {"min": {"cpu": "500m"}}, using({"cpu": "100m"}),
            "minimum cpu usage per Container is 500m, but request is 100m", id="too little",
        ),
        pytest.param(
            {"max": {"cpu": "1"}}, using({"cpu": "1"}, {"cpu": "2"}),
            "maximum cpu usage per Container is 1, but limit is 2", id="too much",
        ),
        pytest.param(
            {"max": {"cpu": "1"}, "min": {"memory": "1Gi"}}, using({"cpu": "2", "memory": "1"}, {"cpu": "2"}),
            "[minimum memory usage per Container is 1Gi, but request is 1, "
            "maximum cpu usage per Container is 1, but limit is 2]",
            id="several",
        ),
        pytest.param(
            {"maxLimitRequestRatio": {"cpu": "2"}}, using({"cpu": "1"}, {"cpu": "3"}),
            "cpu max limit to request ratio per Container is 2, but provided ratio is 3.000000", id="ratio",
        ),
        pytest.param(
            {"maxLimitRequestRatio": {"cpu": "2"}}, using(),
            "cpu max limit to request ratio per Container is 2, but no request is specified or request is 0",
            id="ratio of nothing",
        ),
        pytest.param(
            {"type": "Pod", "max": {"memory": "1Gi"}}, using(),
            "maximum memory usage per Pod is 1Gi.  No limit is specified", id="a pod without a limit",
        ),
        pytest.param(
            {"type": "Pod", "max": {"cpu": "1"}},
            using({"cpu": "1"}, {"cpu": "1"},
                  initContainers=[{"name": "i", "image": "i", "resources": {"limits": {"cpu": "1500m"}}}]),
            "maximum cpu usage per Pod is 1, but limit is 1500m", id="the largest init container counts",
        ),
    ],
)  # fmt: skip
async def test_bounds(api: Api, limit: Tree, made: Tree, why: str) -> None:
    namespace = await limited(api, **limit)
    answer = await api.post(f"/api/v1/namespaces/{namespace}/pods", made)
    assert (answer.status, answer.doc["reason"], answer.message) == (403, "Forbidden", f'pods "p" is forbidden: {why}')


@pytest.mark.parametrize(
    ("size", "why"),
    [
        pytest.param("5Gi", None, id="within"),
        pytest.param("1Mi", "minimum storage usage per PersistentVolumeClaim is 1Gi, but request is 1Mi", id="small"),
        pytest.param("1Ti", "maximum storage usage per PersistentVolumeClaim is 10Gi, but request is 1Ti", id="large"),
    ],
)
async def test_claims(api: Api, size: str, why: str | None) -> None:
    namespace = await limited(api, type="PersistentVolumeClaim", min={"storage": "1Gi"}, max={"storage": "10Gi"})
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}}
    path = f"/api/v1/namespaces/{namespace}/persistentvolumeclaims"
    answer = await api.post(path, {"metadata": {"name": "c"}, "spec": spec})
    assert answer.status == (403 if why else 201)
    if why:
        assert answer.message == f'persistentvolumeclaims "c" is forbidden: {why}'


async def test_a_claim_that_a_new_limit_does_not_allow_may_be_updated(api: Api) -> None:
    namespace = await api.namespace()
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    path = f"/api/v1/namespaces/{namespace}/persistentvolumeclaims"
    await api.make(path, {"metadata": {"name": "c", "finalizers": ["a.b/c"]}, "spec": spec})
    limits = [{"type": "PersistentVolumeClaim", "min": {"storage": "2Gi"}, "max": {"storage": "3Gi"}}]
    limit_ranges = f"/api/v1/namespaces/{namespace}/limitranges"
    await api.make(limit_ranges, {"metadata": {"name": "l"}, "spec": {"limits": limits}})
    assert (await api.merge(f"{path}/c", {"metadata": {"finalizers": None, "labels": {"a": "b"}}})).status == 200
    await api.json("PUT", f"{path}/c/status", await bound(api, f"{path}/c"))
    answer = await api.merge(f"{path}/c", {"spec": {"resources": {"requests": {"storage": "4Gi"}}}})
    assert (answer.status, answer.message) == (
        403,
        'persistentvolumeclaims "c" is forbidden: maximum storage usage per PersistentVolumeClaim is 3Gi, but request '
        "is 4Gi",
    )


async def bound(api: Api, path: str) -> Tree:
    claim: Tree = await api.json("GET", path)
    return {**claim, "status": {"phase": "Bound", "capacity": {"storage": "1Gi"}}}


async def test_a_resize_is_judged_by_what_it_changes(api: Api) -> None:
    namespace = await api.namespace()
    await api.make(f"/api/v1/namespaces/{namespace}/pods", using({"cpu": "100m", "memory": "1Gi"}))
    limits = [{"type": "Container", "min": {"memory": "2Gi", "cpu": "200m"}}]
    limit_ranges = f"/api/v1/namespaces/{namespace}/limitranges"
    await api.make(limit_ranges, {"metadata": {"name": "l"}, "spec": {"limits": limits}})
    path, strategic = f"/api/v1/namespaces/{namespace}/pods/p/resize", "application/strategic-merge-patch+json"

    async def resized(cpu: str) -> Answer:
        containers = [{"name": "c", "resources": {"requests": {"cpu": cpu}, "limits": {"cpu": cpu}}}]
        return await api.call("PATCH", path, {"spec": {"containers": containers}}, content_type=strategic)

    assert "minimum cpu usage per Container is 200m, but request is 150m" in (await resized("150m")).message
    assert (await resized("300m")).status == 200


@pytest.mark.parametrize(
    ("limit", "request_", "most", "why"),
    [
        (
            {"min": {"memory": "1e17"}},
            "99999999999999999500m",
            "1e17",
            "minimum memory usage per Container is 100e15, but request is 99999999999999999500m",
        ),
        (
            {"maxLimitRequestRatio": {"memory": "2"}},
            "1",
            "1e30",
            "memory max limit to request ratio per Container is 2, but provided ratio is "
            "1000000000000000000000000000000.000000",
        ),
        ({"maxLimitRequestRatio": {"memory": "1"}}, "1e20", "1e20", ""),
    ],
    ids=["half a byte", "a large ratio", "the same large numbers"],
)
async def test_quantities_are_compared_exactly(api: Api, limit: Tree, request_: str, most: str, why: str) -> None:
    namespace = await limited(api, type="Container", **limit)
    name = next(iter(*limit.values()))
    answer = await api.post(f"/api/v1/namespaces/{namespace}/pods", using({name: request_}, {name: most}))
    assert (answer.status, answer.message) == ((403, f'pods "p" is forbidden: {why}') if why else (201, ""))


async def test_updates_of_pods_are_not_judged(api: Api) -> None:
    namespace = await api.namespace()
    await api.make(f"/api/v1/namespaces/{namespace}/pods", pod())
    limits = [{"type": "Pod", "max": {"cpu": "1"}}]
    await api.make(
        f"/api/v1/namespaces/{namespace}/limitranges", {"metadata": {"name": "l"}, "spec": {"limits": limits}}
    )
    assert (
        await api.merge(f"/api/v1/namespaces/{namespace}/pods/p", {"metadata": {"labels": {"a": "b"}}})
    ).status == 200
