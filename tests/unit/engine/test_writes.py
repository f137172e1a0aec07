"""Writes that are computed again after a conflict."""

import asyncio
import json

import pytest

from kcm_cli.api.core import NAMESPACES, Namespace
from kcm_cli.component.clock import LoopClock
from kcm_cli.engine import writes
from kcm_cli.machinery import codec
from kcm_cli.planning.actions import ABSENT, edited
from kcm_cli.rest.errors import Conflict, Forbidden, NotFound
from kcm_cli.rest.transport import Request, Response
from tests.kit.faults import Answering
from tests.kit.world import EPOCH

pytestmark = pytest.mark.real_time


def document(uid: str) -> bytes:
    metadata = {"name": "n", "uid": uid, "resourceVersion": "1"}
    return json.dumps({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}).encode()


class Server(Answering):
    """Refuses every update with a conflict; holds an object with this uid."""

    def __init__(self, uid: str) -> None:
        self.uid = uid
        self.puts = 0

    async def send(self, request: Request) -> Response:
        if request.method == "GET":
            return Response(200, {}, document(self.uid))
        self.puts += 1
        status = {"kind": "Status", "reason": "Conflict", "code": 409, "message": "moved on"}
        return Response(409, {}, json.dumps(status).encode())


async def test_another_object_of_the_same_name_is_not_written():
    server = Server("second")
    client = server.client(LoopClock(EPOCH))
    first: Namespace = NAMESPACES.decode(document("first"))
    with pytest.raises(NotFound, match="uid first"):
        await writes.retry_on_conflict(client, NAMESPACES, first, lambda one: {("metadata", "labels"): {"a": "b"}})
    assert server.puts == 1


REASONS = {409: "Conflict", 403: "Forbidden"}


class Scripted(Answering):
    """Answers updates with these codes, reads with an object of this uid and version 2."""

    def __init__(self, uid: str, *codes: int) -> None:
        self._uid = uid
        self._codes = list(codes)
        self.versions: list[str] = []

    async def send(self, request: Request) -> Response:
        if request.method == "GET":
            metadata = {"name": "n", "uid": self._uid, "resourceVersion": "2"}
            return Response(200, {}, json.dumps({"metadata": metadata, "spec": {"newer": "field"}}).encode())
        sent = json.loads(request.body)
        self.versions.append(sent["metadata"]["resourceVersion"])
        code = self._codes.pop(0)
        status = {"kind": "Status", "reason": REASONS.get(code), "code": code, "message": "moved on"}
        return Response(code, {}, json.dumps(sent if code == 200 else status).encode())


def put(server: Scripted, retries: writes.Retries = writes.ONCE_MORE) -> object:
    async def work() -> object:
        client = server.client(LoopClock(EPOCH))
        first: Namespace = NAMESPACES.decode(document("first"))
        return await writes.put_status(client, NAMESPACES, first, {("status", "phase"): "Terminating"}, retries)

    return asyncio.run(work())


@pytest.mark.parametrize("code", [409, 403])
def test_a_status_is_written_once_more_after_any_error(code):
    server = Scripted("first", code, 200)
    written = put(server)
    assert json.loads(written.raw)["spec"] == {"newer": "field"}  # type: ignore[attr-defined]
    assert server.versions == ["1", "2"]


def test_a_status_is_not_written_a_third_time():
    server = Scripted("first", 409, 409)
    with pytest.raises(Conflict):
        put(server)
    assert server.versions == ["1", "2"]


def test_only_conflicts_are_retried_four_times_if_requested():
    server = Scripted("first", 409, 409, 409, 409, 200)
    assert put(server, writes.ON_CONFLICT) is not None
    assert server.versions == ["1", "2", "2", "2", "2"]
    with pytest.raises(Conflict):
        put(Scripted("first", *[409] * 5), writes.ON_CONFLICT)
    forbidden = Scripted("first", 403)
    with pytest.raises(Forbidden):
        put(forbidden, writes.ON_CONFLICT)
    assert forbidden.versions == ["1"]


def test_the_status_of_another_object_of_the_name_is_not_written():
    server = Scripted("second", 409)
    with pytest.raises(NotFound, match="uid first"):
        put(server)
    assert server.versions == ["1"]


@pytest.mark.parametrize(
    ("data", "changes", "sent"),
    [
        pytest.param(
            rb'{"data":{"b":"\u003c\u00e9 1","a":1.0e3},"metadata":{"name":"r","labels":{"a":"1"}},"revision":1}',
            {("revision",): 2, ("metadata", "labels", "a"): ABSENT},
            rb'{"data":{"b":"\u003c\u00e9 1","a":1.0e3},"metadata":{"name":"r","labels":{}},"revision":2}',
            id="beside the changes",
        ),
        pytest.param(
            rb'{"status":{"allocation":{"raw":"\u0026"},"reservedFor":[{"uid":"a"}]},"metadata":{}}',
            {("status", "reservedFor"): [], ("status", "new", "field"): 1, ("metadata", "finalizers"): ABSENT},
            rb'{"status":{"allocation":{"raw":"\u0026"},"reservedFor":[],"new":{"field":1}},"metadata":{}}',
            id="beside the changes in the same object",
        ),
        pytest.param(
            rb'{"status":null,"metadata":{"labels":null}}',
            {("status", "phase"): "x", ("metadata", "labels", "a"): ABSENT},
            rb'{"status":{"phase":"x"},"metadata":{"labels":null}}',
            id="null",
        ),
        pytest.param(
            rb'{"spec":{"a":{"b":1}}}',
            {("spec", "a"): {"c": 2}, ("spec", "a", "d"): 3},
            rb'{"spec":{"a":{"c":2,"d":3}}}',
            id="a value and a field in it",
        ),
    ],
)
def test_an_update_keeps_the_bytes_that_it_does_not_change(data, changes, sent):
    """kube-apiserver compares the data of ControllerRevisions and the parameters of claims byte for byte."""
    obj: Namespace = NAMESPACES.decode(data)
    assert codec.encode(edited(obj, changes)) == sent
