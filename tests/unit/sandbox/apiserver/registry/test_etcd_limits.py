"""Objects that are too large for etcd. The sizes were recorded of kube-apiserver v1.36 with etcd."""

import asyncio
import copy
from typing import Any

import pytest

from kcm_cli.machinery import codec
from kcm_cli.sandbox.apiserver.registry.etcd_limits import TooLarge, limit, smaller
from kcm_cli.sandbox.apiserver.store import Stored
from kcm_cli.sandbox.apiserver.store.stored import Recent
from kcm_cli.sandbox.apiserver.types import ApiError
from tests.kit.api import CONFIG_MAPS, Answer, Api
from tests.kit.widgets import definition

Tree = dict[str, Any]
WIDGETS = "/apis/example.com/v1/namespaces/default/widgets"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
TOO_LARGE = "etcdserver: request is too large"
CREATED = {
    "apiVersion": "bfkcdddb.test/v1",
    "kind": "Big",
    "metadata": {
        "creationTimestamp": "2026-11-30T09:26:08Z",
        "generation": 1,
        "name": "bb",
        "namespace": "ns-kcdddb",
        "uid": "89014fb9-c94d-4f74-914d-d5270399a7cc",
    },
}
UPDATED = copy.deepcopy(CREATED)
UPDATED["metadata"] |= {"name": "up", "generation": 14}  # type: ignore[operator]


def kept(doc: Tree, size: int, revision: int) -> str:
    """The error for an object with a text of this size, or the kept text's size."""
    sent = {**doc, "metadata": {**doc["metadata"], "resourceVersion": "1"}, "spec": {"x": "a" * size}}
    check = limit(f"/registry/bfkcdddb.test/bigs/ns-kcdddb/{doc['metadata']['name']}", revision)
    try:
        check(Stored("ns-kcdddb", "x", revision + 1, codec.encode(sent), Recent(1), sent))
    except TooLarge as error:
        with pytest.raises(ApiError) as raised:
            smaller(sent, error, applied=False)
        assert raised.value.code == 500 and "reason" not in raised.value.status
        return str(raised.value)
    return str(size)


@pytest.mark.parametrize(("doc", "most", "revision"), [(CREATED, 1572528, 0), (UPDATED, 1572479, 1969)])
def test_the_largest_objects(doc: Tree, most: int, revision: int) -> None:
    assert kept(doc, most, revision) == str(most)
    assert kept(doc, most + 1, revision) == TOO_LARGE


def test_beyond_the_size_of_a_message_the_error_is_that_of_the_client() -> None:
    doc = {**CREATED, "metadata": {**CREATED["metadata"], "name": "a"}}  # type: ignore[dict-item]
    why = "trying to send message larger than max (2600319 vs. 2097152)"
    assert kept(doc, 2_600_000, 0) == f"rpc error: code = ResourceExhausted desc = {why}"


@pytest.fixture
async def widgets(api: Api) -> Api:
    await api.make(DEFINITIONS, definition("widgets", "Widget"))
    while (await api.get(WIDGETS)).status != 200:
        await asyncio.sleep(0)
    return api


async def write(api: Api, how: str, size: int) -> Answer:
    spec = {"x": "a" * size}
    body = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": spec}
    if how == "create":
        return await api.post(WIDGETS, body)
    if how == "apply":
        headers = {"content-type": "application/apply-patch+yaml"}
        return await api.call("PATCH", f"{WIDGETS}/w?fieldManager=m", body, headers=headers)
    return await api.merge(f"{WIDGETS}/w", {"spec": spec})


@pytest.mark.parametrize("how", ["create", "merge", "apply"])
async def test_an_object_that_is_too_large_is_refused(widgets: Api, how: str) -> None:
    if how == "merge":
        await write(widgets, "create", 1)
    answer = await write(widgets, how, 1_573_000)
    assert (answer.status, answer.message) == (500, TOO_LARGE)
    assert len((await widgets.get(WIDGETS)).doc["items"]) == (how == "merge")


@pytest.mark.parametrize(("how", "status"), [("create", 201), ("merge", 200), ("apply", 500)])
async def test_managed_fields_are_given_up_where_they_make_an_object_too_large(
    widgets: Api, how: str, status: int
) -> None:
    if how == "merge":
        await write(widgets, "create", 1)
    answer = await write(widgets, how, 1_572_440)
    assert answer.status == status
    assert "managedFields" not in answer.doc["metadata"]
    assert (await write(widgets, "merge", 1)).status == (404 if how == "apply" else 200)


async def test_built_in_kinds_are_measured_in_protobuf(api: Api) -> None:
    """Of quotes, JSON is twice as long."""
    made = await api.post(CONFIG_MAPS, {"metadata": {"name": "c"}, "data": {"a": '"' * 900_000}})
    assert made.status == 201 and len(made.body) > 1_800_000
    assert "managedFields" in made.doc["metadata"]


async def test_a_dry_run_is_not_limited(api: Api) -> None:
    notes = {"metadata": {"name": "c"}, "data": {"a": "b" * 1_000_000}}
    assert (await api.post(CONFIG_MAPS, notes, query={"dryRun": "All"})).status == 201
