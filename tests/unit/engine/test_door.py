"""Writes through the door are named, and counted once."""

import asyncio
import json
import logging
from collections.abc import Coroutine, Mapping
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcm_cli.api.apps import CONTROLLER_REVISIONS
from kcm_cli.api.core import EVENTS, PODS, SECRETS, Pod
from kcm_cli.api.resource import GVR, Resource
from kcm_cli.component import logs
from kcm_cli.component.clock import LoopClock
from kcm_cli.component.logs import V1, V2, V4, fields_of
from kcm_cli.component.logs_config import LogsConfig
from kcm_cli.component.metrics import Registry
from kcm_cli.component.tracing_config import ALL
from kcm_cli.engine.door import Door, count_writes, identity_in, write_of
from kcm_cli.machinery import codec
from kcm_cli.machinery.codec import Doc
from kcm_cli.machinery.kref import KRef
from kcm_cli.machinery.protowire import packed
from kcm_cli.rest.client import Client
from kcm_cli.rest.errors import ApiError
from kcm_cli.rest.ratelimit import Unlimited
from kcm_cli.rest.transport import Request, RequestError, Response, TransportError
from kcm_cli.runtime.cause_ring import CauseRing, Sync, Wrote
from kcm_cli.runtime.causes import Causes, Work, set_working, unrecorded
from kcm_cli.runtime.spans import Span, Spans
from tests.kit.controlling import metric
from tests.kit.faults import Answering

pytestmark = pytest.mark.real_time

POD = b'{"metadata": {"name": "a", "namespace": "n", "uid": "u"}}'


class Server(Answering):
    """Answers with a pod; the first answers are those given."""

    def __init__(self, *first: Response) -> None:
        self.first = list(first)
        self.requests: list[Request] = []

    async def send(self, request: Request) -> Response:
        self.requests.append(request)
        return self.first.pop(0) if self.first else Response(200, {}, POD)


@pytest.mark.parametrize(
    ("method", "path", "expected"),
    [
        ("POST", "/api/v1/namespaces/n/pods", ("create", "", "pods", "n", "")),
        ("DELETE", "/api/v1/namespaces/n/pods/a", ("delete", "", "pods", "n", "a")),
        ("DELETE", "/api/v1/namespaces/n/pods", ("deletecollection", "", "pods", "n", "")),
        ("PATCH", "/api/v1/namespaces/n/pods/a/status", ("patch", "", "pods/status", "n", "a")),
        ("PUT", "/apis/apps/v1/namespaces/n/deployments/a", ("update", "apps", "deployments", "n", "a")),
        ("PUT", "/apis/apps/v1/namespaces/n/deployments/a/status", ("update", "apps", "deployments/status", "n", "a")),
        ("PUT", "/api/v1/namespaces/a/finalize", ("update", "", "namespaces/finalize", "", "a")),
        ("PUT", "/api/v1/namespaces/a/status", ("update", "", "namespaces/status", "", "a")),
        ("DELETE", "/api/v1/namespaces/a", ("delete", "", "namespaces", "", "a")),
        ("POST", "/api/v1/nodes", ("create", "", "nodes", "", "")),
        ("PATCH", "/apis/x.test/v1/things/a", ("patch", "x.test", "things", "", "a")),
        ("POST", "/apis", ("create", "", "", "", "")),
    ],
)
def test_a_write_is_named_after_its_request(method: str, path: str, expected: tuple[str, ...]) -> None:
    found = write_of("c", Request(method, path))
    assert (found.verb, found.group, found.resource, found.namespace, found.name) == expected


def plain(server: Server) -> Client:
    return Client(server, limiter=Unlimited(), user_agent="c", clock=LoopClock())


def door(server: Server, registry: Registry, **options: object) -> Door:
    return Door(server.client(), "replicaset-controller", count_writes(registry), **options)  # type: ignore[arg-type]


async def test_writes_are_counted_once_and_reads_are_not() -> None:
    registry, server = Registry(), Server(Response(429, {"retry-after": "0"}, b""))
    ours = door(server, registry)
    await ours.create(PODS, "n", POD)
    await ours.get(PODS, "n", "a")
    await ours.faster(2.0, 1).delete(PODS, "n", "a")
    assert [request.method for request in server.requests] == ["POST", "POST", "GET", "DELETE"]
    counted = "kcm_controller_writes_total"
    labels = {"controller": "replicaset-controller", "resource": "pods"}
    assert metric(registry, counted, verb="create", **labels) == 1
    assert metric(registry, counted, verb="delete", **labels) == 1
    assert metric(registry, counted) == 2


async def test_writes_of_custom_resources_are_one_series() -> None:
    """Definitions come and go, the series stay."""
    server, registry = Server(), Registry()
    ours = door(server, registry)
    for number in range(20):
        resource = Resource(GVR("example.com", "v1", f"things{number}"), "Thing", Pod)
        await ours.delete(resource, "n", "a")
    await ours.delete(PODS, "n", "a")
    counted = "kcm_controller_writes_total"
    assert metric(registry, counted, resource="custom") == 20
    assert metric(registry, counted, resource="pods") == 1
    assert registry.expose().decode().count(counted + "{") == 2


REVISION = b'{"metadata":{"name":"a","namespace":"n"},"data":{"b":1},"revision":1}'
EXACT = REVISION.replace(b'{"b":1}', b'{"b": 1}')
STORED = b"k8s\x00" + packed(2, packed(2, packed(1, b'{"b": 1}')))


def refused(reason: str = "Invalid", code: int = 422) -> Response:
    return Response(code, {}, json.dumps({"kind": "Status", "reason": reason, "code": code}).encode())


@pytest.mark.parametrize(
    ("answers", "sent"),
    [
        pytest.param([refused(), Response(200, {}, STORED)], [REVISION, b"", EXACT], id="stored with spaces"),
        pytest.param([refused(), Response(200, {}, REVISION)], [REVISION, b""], id="no protobuf"),
        pytest.param([refused(), refused("Forbidden", 403)], [REVISION, b""], id="may not be read"),
        pytest.param([refused("Conflict", 409)], [REVISION], id="another error"),
    ],
)
async def test_a_refused_update_is_repeated_with_the_stored_bytes(answers: list[Response], sent: list[bytes]) -> None:
    server = Server(*answers)
    errors = []
    own = door(server, Registry())
    try:
        await own.update(CONTROLLER_REVISIONS, "n", "a", codec.decode_doc(REVISION))
    except ApiError as error:
        errors.append(error.status)
    assert [request.body or b"" for request in server.requests] == sent
    assert errors == ([] if EXACT in sent else [answers[0].status])


Fields = Mapping[str, object]


def logged(door: Door, write: Coroutine[object, object, object], *, kind: str = "", key: str = "") -> None:
    """Make one write, while an object is synced; its failure is expected."""

    async def main() -> None:
        set_working(Work(controller="c", queue="q", kind=kind, key=key, at=0.0, causes=Causes(), note=unrecorded))
        with suppress(RequestError):
            await write

    asyncio.run(main())


def lines_of(caplog: pytest.LogCaptureFixture) -> list[tuple[int, str, Fields]]:
    return [(record.levelno, record.message, fields_of(record)) for record in caplog.records]


BY = {"logger": "replicaset-controller"}


@pytest.mark.parametrize(
    ("write", "answer", "message", "fields"),
    [
        pytest.param(
            lambda d: d.create(PODS, "n", {}, reason="too few replicas"),
            Response(201, {}, POD),
            "Wrote object",
            {"verb": "create", "kind": "Pod", "owner": "ReplicaSet n/r", "reason": "too few replicas", "code": 201},
            id="created: the name is the server's",
        ),
        pytest.param(
            lambda d: d.delete(PODS, "n", "a", reason="owner is gone", owner="ReplicaSet n/old"),
            Response(200, {}, POD),
            "Wrote object",
            {"verb": "delete", "kind": "Pod", "owner": "ReplicaSet n/old", "reason": "owner is gone", "code": 200},
            id="deleted for another owner",
        ),
        pytest.param(
            lambda d: d.update(PODS, "n", "a", {}, subresource="status"),
            Response(200, {}, POD),
            "Wrote object",
            {
                "verb": "update",
                "kind": "Pod",
                "subresource": "status",
                "owner": "ReplicaSet n/r",
                "reason": "status changed",
                "code": 200,
            },
            id="status",
        ),
        pytest.param(
            lambda d: d.patch(PODS, "n", "a", {}, reason="released"),
            Response(409, {}, b'{"kind": "Status", "status": "Failure", "reason": "Conflict", "message": "secret"}'),
            "Write was refused",
            {
                "verb": "patch",
                "kind": "Pod",
                "owner": "ReplicaSet n/r",
                "reason": "released",
                "code": 409,
                "err": "Conflict",
            },
            id="refused: the server's text is left out",
        ),
    ],
)
def test_a_write_is_logged(
    caplog: pytest.LogCaptureFixture, write: Any, answer: Response, message: str, fields: Fields
) -> None:
    caplog.set_level(V2, "kcm_cli.engine.door")
    made = Door(plain(Server(answer)), "replicaset-controller")
    logged(made, write(made), kind="ReplicaSet", key="n/r")
    expected = {**BY, "object": KRef("a", "n"), **fields}
    assert lines_of(caplog) == [(V2, message, expected)]


def test_a_lost_answer_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    class Lost(Server):
        async def send(self, request: Request) -> Response:
            raise TransportError("lost")

    caplog.set_level(V2, "kcm_cli.engine.door")
    made = Door(plain(Lost()), "replicaset-controller")
    logged(made, made.delete(PODS, "n", "a", reason="surplus"))
    fields = {"verb": "delete", "kind": "Pod", "object": KRef("a", "n"), "reason": "surplus", "err": "lost"}
    assert lines_of(caplog) == [(V2, "Write was not answered", {**BY, **fields})]


def test_an_object_is_not_its_own_owner(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(V2, "kcm_cli.engine.door")
    made = Door(plain(Server()), "c")
    logged(made, made.patch(PODS, "n", "a", {}, reason="x"), kind="Pod", key="n/a")
    ((_, _, fields),) = lines_of(caplog)
    assert "owner" not in fields


@pytest.mark.parametrize(("level", "count"), [(V2, 0), (V4, 1)])
def test_events_and_reviews_are_logged_at_four(caplog: pytest.LogCaptureFixture, level: int, count: int) -> None:
    caplog.set_level(level, "kcm_cli.engine.door")
    made = Door(plain(Server()), "c")
    logged(made, made.call(Request("POST", "/apis/events.k8s.io/v1/namespaces/n/events")))
    assert len(caplog.records) == count


def test_nothing_is_logged_below_two(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(V1, "kcm_cli.engine.door")
    made = Door(plain(Server()), "c")
    logged(made, made.patch(PODS, "n", "a", {}))
    assert not caplog.records


@pytest.mark.parametrize("format_", ["text", "json"])
def test_no_value_of_a_secret_is_logged(format_: str, capsys: pytest.CaptureFixture[str]) -> None:
    """At no verbosity: neither what is sent and answered, nor the text of a refusal."""
    root, ours = logging.getLogger(), logging.getLogger("kcm_cli")
    before, levels = root.handlers[:], (root.level, ours.level)
    logs.setup(LogsConfig(format=format_, verbosity=5))
    try:
        doc: Doc = {"metadata": {"name": "a"}, "data": {"token": "aHVudGVyMg=="}, "stringData": {"token": "hunter2"}}
        body = codec.encode(doc)
        refusal = b'{"kind": "Status", "status": "Failure", "reason": "Invalid", "message": "data: hunter2 is odd"}'
        for answer in (Response(201, {}, body), Response(422, {}, refusal)):
            made = Door(plain(Server(answer)), "c")
            logged(made, made.create(SECRETS, "n", doc, reason="token is missing"))
    finally:
        root.handlers[:] = before
        root.setLevel(levels[0])
        ours.setLevel(levels[1])
    text = capsys.readouterr().err
    assert text.count("token is missing") == 2
    assert "hunter2" not in text
    assert "aHVudGVyMg" not in text


QUOTA = 'pods "a" is forbidden: exceeded quota: small, requested: pods=1, used: pods=2, limited: pods=2'


def forbidden(message: str) -> Response:
    status = {"kind": "Status", "reason": "Forbidden", "message": message, "code": 403}
    return Response(403, {}, json.dumps(status).encode())


@pytest.mark.parametrize(
    ("answer", "recorded"),
    [
        pytest.param(
            Response(201, {}, b'{"metadata": {"name": "a", "namespace": "n", "uid": "u", "resourceVersion": "7"}}'),
            ("n/a", 201, "u", "7", ""),
            id="created: name, uid and version are the server's",
        ),
        pytest.param(Response(201, {}, b"no JSON"), ("n/", 201, "", "", ""), id="unreadable"),
        pytest.param(
            forbidden(QUOTA),
            ("n/", 403, "", "", "Forbidden: exceeded quota small"),
            id="refused by a quota",
        ),
        pytest.param(
            forbidden("password: 1234"),
            ("n/", 403, "", "", "Forbidden"),
            id="texts of refusals are not kept",
        ),
    ],
)
async def test_a_write_is_recorded_with_its_answer(answer: Response, recorded: tuple[object, ...]) -> None:
    ring = CauseRing(LoopClock())
    client = Server(answer).client()
    door = Door(client, "replicaset-controller", ring=ring)
    work = Work(controller="c", queue="q", kind="ReplicaSet", key="n/r", at=1.0, causes=Causes(), note=ring.note)
    set_working(work)
    with suppress(RequestError):
        await door.create(PODS, "n", {}, reason="too few replicas")
    sync, wrote = ring.snapshot().entries()
    assert isinstance(sync, Sync) and (sync.number, sync.key) == (1, "n/r")
    assert isinstance(wrote, Wrote) and (wrote.sync, wrote.reason) == (1, "too few replicas")
    assert (wrote.verb, wrote.kind, wrote.owner) == ("create", "Pod", "ReplicaSet n/r")
    assert (wrote.key, wrote.code, wrote.uid, wrote.version, wrote.refusal) == recorded


async def test_the_uid_of_a_deletion_is_that_of_the_status() -> None:
    ring = CauseRing(LoopClock())
    status = Response(200, {}, b'{"kind": "Status", "metadata": {}, "details": {"name": "a", "uid": "gone"}}')
    client = Server(status).client()
    await Door(client, "c", ring=ring).delete(PODS, "n", "a")
    (wrote,) = ring.snapshot().entries()
    assert isinstance(wrote, Wrote) and (wrote.key, wrote.uid, wrote.sync) == ("n/a", "gone", 0)


async def test_a_write_that_is_cancelled_is_recorded() -> None:
    class Silent(Server):
        async def send(self, request: Request) -> Response:
            await asyncio.Event().wait()
            raise AssertionError

    ring = CauseRing(LoopClock())
    client = Client(Silent(), limiter=Unlimited(), user_agent="t", clock=LoopClock())
    task = asyncio.ensure_future(Door(client, "c", ring=ring).create(PODS, "n", {"metadata": {"generateName": "a-"}}))
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait([task])
    (wrote,) = ring.snapshot().entries()
    assert isinstance(wrote, Wrote) and (wrote.key, wrote.code, wrote.refusal) == ("n/a-", 0, "CancelledError")


async def test_requests_of_a_traced_sync_have_its_context() -> None:
    ring, made = CauseRing(LoopClock()), list[Span]()
    ring.spans = Spans("one", ALL, 0.0, made.append)
    server = Server()
    door = Door(server.client(), "c", ring=ring)
    work = Work(controller="c", queue="q", kind="ReplicaSet", key="n/r", at=1.0, causes=Causes(), note=ring.note)
    set_working(work)
    await door.get(PODS, "n", "a")
    await door.create(PODS, "n", {}, reason="too few replicas")
    await door.get(PODS, "n", "a")
    await door.create(EVENTS, "n", {})
    before, create, read, event = (request.headers.get("traceparent") for request in server.requests)
    (write,) = made
    assert before is None  # a sync that does nothing has no span
    assert create == write.context.traceparent and write.parent is not None
    assert read == event == write.parent.traceparent
    assert write.attributes["kcm.reason"] == "too few replicas"


GO = (
    b'{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","generateName":"a-","namespace":"n","uid":"u",'
    b'"resourceVersion":"7","labels":{"uid":"x"}}}'
)


@pytest.mark.parametrize(
    ("body", "found"),
    [
        (GO, ("a", "u", "7")),
        (GO.replace(b'"kind":"Pod","apiVersion":"v1"', b'"apiVersion":"v1","kind":"Pod"'), ("a", "u", "7")),
        (GO.replace(b'"generateName":"a-","namespace":"n",', b""), ("a", "u", "7")),
        (GO.replace(b'"a"', b'"\\u0061"'), None),
        (GO.replace(b'"uid":"u",', b""), None),
        (GO.replace(b'"uid":"u",', b'"labels":{"uid":"x"},"uid":"u",'), None),
        (GO.replace(b'"kind":"Pod"', b'"spec":{"metadata":{"name":"b","uid":"c","resourceVersion":"8"}}'), None),
        (GO.replace(b'"name":"a"', b'"name":"' + b"a" * 4096 + b'"'), None),
        (b'{"kind":"Status","apiVersion":"v1","metadata":{},"details":{"uid":"u"}}', None),
        (b"", None),
        (b"k8s\x00\n", None),
    ],
)
def test_the_identity_is_read_from_the_beginning_of_an_answer(body: bytes, found: tuple[str, str, str] | None) -> None:
    assert identity_in(body) == found


METADATA = st.dictionaries(
    st.sampled_from(["name", "generateName", "namespace", "uid", "resourceVersion", "labels", "creationTimestamp"]),
    st.text(max_size=5) | st.just({"uid": "x"}),
)


@given(METADATA, st.booleans())
def test_it_is_what_decoding_says(metadata: dict[str, object], kind_first: bool) -> None:
    head = {"kind": "Pod", "apiVersion": "v1"} if kind_first else {"apiVersion": "v1", "kind": "Pod"}
    body = codec.encode({**head, "metadata": metadata, "spec": {"metadata": {"name": "b"}}})
    found = identity_in(body)
    assert found is None or found == tuple(metadata[name] for name in ("name", "uid", "resourceVersion"))
