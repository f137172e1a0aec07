"""LimitRanger: defaults, bounds and ratios, and the texts of errors."""

from typing import Any

import pytest

from tests.kit.api import Api, pod

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
