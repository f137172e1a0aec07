"""Patches of the scale subresource, as recorded from a kube-apiserver."""

from typing import Any

import pytest

from tests.kit.api import Api

SETS = "/apis/apps/v1/namespaces/default/replicasets"
SCALE = f"{SETS}/s/scale"
APPLY = {"query": {"fieldManager": "m", "force": "true"}, "headers": {"content-type": "application/apply-patch+yaml"}}
STRATEGIC = {"headers": {"content-type": "application/strategic-merge-patch+json"}}
TYPE = {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "s"}}
UNTYPED = "failed to create typed patch object (/s; autoscaling/v1, Kind=Scale): "


async def make(api: Api) -> None:
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    spec = {"replicas": 2, "selector": {"matchLabels": {"a": "b"}}, "template": template}
    await api.json("POST", SETS, {"metadata": {"name": "s"}, "spec": spec}, status=201)


@pytest.mark.parametrize(
    ("options", "body", "replicas"),
    [
        (APPLY, {**TYPE, "spec": {"replicas": 3}}, 3),
        (APPLY, {**TYPE, "spec": {"replicas": 4.0}}, 4),
        (APPLY, TYPE, 2),
        (STRATEGIC, {"spec": {"replicas": 5.0}}, 5),
    ],
)
async def test_scales(api: Api, options: Any, body: Any, replicas: int) -> None:
    await make(api)
    made = await api.json("PATCH", SCALE, body, **options)
    assert repr(made["spec"]["replicas"]) == str(replicas)
    assert (await api.json("GET", f"{SETS}/s"))["spec"]["replicas"] == replicas


NEGATIVE = 'Scale.autoscaling "s" is invalid: spec.replicas: Invalid value: '


@pytest.mark.parametrize(
    ("options", "body", "status", "message"),
    [
        (APPLY, {"spec": "1h"}, 400, "invalid object type: /, Kind="),
        (
            APPLY,
            {**TYPE, "spec": {"replicas": "x"}},
            500,
            UNTYPED + ".spec.replicas: expected numeric (int or float), got string",
        ),
        (APPLY, {**TYPE, "foo": 1}, 500, UNTYPED + ".foo: field not declared in schema"),
        (
            APPLY,
            {**TYPE, "metadata": {"name": "q"}},
            400,
            "the name of the object (q) does not match the name on the URL (s)",
        ),
        (
            APPLY,
            {**TYPE, "spec": {"replicas": 2**31}},
            422,
            f"{NEGATIVE}-2147483648: must be greater than or equal to 0",
        ),
        (STRATEGIC, {"spec": {"replicas": 2**31}}, 422, f"{NEGATIVE}-2147483648: must be greater than or equal to 0"),
        (STRATEGIC, {"spec": {"replicas": 1.5}}, 422, "cannot convert float64 to int32"),
        (STRATEGIC, {"spec": {"replicas": "x"}}, 422, "unrecognized type: int32"),
    ],
)
async def test_refuses(api: Api, options: Any, body: Any, status: int, message: str) -> None:
    await make(api)
    answer = await api.json("PATCH", SCALE, body, status=status, **options)
    assert answer["message"].endswith(message)
    assert (await api.json("GET", f"{SETS}/s"))["spec"]["replicas"] == 2
