"""Requests of verbs, and views, retries and errors for responses."""

import asyncio
import json
import logging
from contextlib import asynccontextmanager

import pytest

from kcm_cli.api.apps import DEPLOYMENTS
from kcm_cli.api.authorization import SUBJECT_ACCESS_REVIEWS
from kcm_cli.api.core import NODES, PODS
from kcm_cli.component.clock import LoopClock
from kcm_cli.planning.actions import JSON_PATCH
from kcm_cli.rest import errors
from kcm_cli.rest.client import MAX_RETRIES
from kcm_cli.rest.ratelimit import TokenBucket
from kcm_cli.rest.request_parts import InvalidName
from kcm_cli.rest.transport import ConnectionLost, Request, Response, Stream, TimedOut, Unreachable, Unreadable

POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "namespace": "ns", "uid": "u"}}


class Counted:
    """Metrics as a list."""

    def __init__(self):
        self.seen = []

    def answered(self, method, code, sent, *, attempt):
        self.seen.append(("answered", method, code, sent, attempt))

    def finished(self, method, duration_s, received):
        self.seen.append(("finished", method, duration_s, received))

    def throttled(self, method, waited_s):
        self.seen.append(("throttled", method, waited_s))


CALLS = {
    "get": (lambda c: c.get(PODS, "ns", "a"), "GET", "/api/v1/namespaces/ns/pods/a", (), b""),
    "get cluster-scoped": (lambda c: c.get(NODES, "", "a"), "GET", "/api/v1/nodes/a", (), b""),
    "get subresource": (
        lambda c: c.get(PODS, "ns", "a", subresource="status", resource_version="0"),
        "GET",
        "/api/v1/namespaces/ns/pods/a/status",
        (("resourceVersion", "0"),),
        b"",
    ),
    "list": (
        lambda c: c.list_page(PODS, "ns", limit=5, continue_="t", label_selector="a=b"),
        "GET",
        "/api/v1/namespaces/ns/pods",
        (("limit", "5"), ("continue", "t"), ("labelSelector", "a=b")),
        b"",
    ),
    "list all": (lambda c: c.list_page(DEPLOYMENTS), "GET", "/apis/apps/v1/deployments", (), b""),
    "create": (lambda c: c.create(PODS, "ns", {"a": 1}), "POST", "/api/v1/namespaces/ns/pods", (), b'{"a":1}'),
    "create encoded, managed": (
        lambda c: c.create(PODS, "ns", b"{}", field_manager="m"),
        "POST",
        "/api/v1/namespaces/ns/pods",
        (("fieldManager", "m"),),
        b"{}",
    ),
    "create in subresource": (
        lambda c: c.create(PODS, "ns", b"{}", name="a", subresource="eviction"),
        "POST",
        "/api/v1/namespaces/ns/pods/a/eviction",
        (),
        b"{}",
    ),
    "update status": (
        lambda c: c.update(DEPLOYMENTS, "ns", "a", {}, subresource="status"),
        "PUT",
        "/apis/apps/v1/namespaces/ns/deployments/a/status",
        (),
        b"{}",
    ),
    "patch": (
        lambda c: c.patch(PODS, "ns", "a", [{"op": "test"}], content_type=JSON_PATCH),
        "PATCH",
        "/api/v1/namespaces/ns/pods/a",
        (),
        b'[{"op":"test"}]',
    ),
}


@pytest.mark.parametrize("case", CALLS.values(), ids=CALLS.keys())
async def test_verbs_become_requests(script, answer, case):
    call, method, path, query, body = case
    transport = script(answer(200, POD))
    await call(transport.client())
    (sent,) = transport.asked
    assert (sent.method, sent.path, sent.query, sent.body) == (method, path, query, body)
    assert sent.headers["user-agent"] == "kcm/test"
    assert ("content-type" in sent.headers) == bool(body)


async def test_content_type_is_that_of_the_patch(script, answer):
    transport = script(answer(200, POD))
    await transport.client().patch(PODS, "ns", "a", [], content_type=JSON_PATCH)
    assert transport.asked[0].headers["content-type"] == JSON_PATCH


async def test_responses_are_decoded_to_views(script, answer):
    pod = await script(answer(201, POD)).client().create(PODS, "ns", b"{}")
    assert (pod.name, pod.uid) == ("a", "u")


DELETES = {
    "plain": ({}, {"kind": "DeleteOptions", "apiVersion": "v1"}),
    "uid": ({"uid": "u"}, {"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": {"uid": "u"}}),
    "all": (
        {"uid": "u", "resource_version": "7", "propagation": "Orphan", "grace_s": 0},
        {
            "kind": "DeleteOptions",
            "apiVersion": "v1",
            "gracePeriodSeconds": 0,
            "preconditions": {"uid": "u", "resourceVersion": "7"},
            "propagationPolicy": "Orphan",
        },
    ),
}


@pytest.mark.parametrize(("options", "body"), DELETES.values(), ids=DELETES.keys())
async def test_delete_options(script, answer, options, body):
    transport = script(answer(200, {"kind": "Status", "status": "Success"}))
    await transport.client().delete(PODS, "ns", "a", **options)
    assert json.loads(transport.asked[0].body) == body


async def test_metadata_only_is_requested_in_the_accept_header(script, answer):
    transport = script(answer(200, POD))
    client = transport.client()
    await client.get(PODS, "ns", "a", metadata_only=True)
    await client.list_page(PODS, "ns", metadata_only=True)
    one, many = (request.headers["accept"] for request in transport.asked)
    assert "as=PartialObjectMetadata;" in one
    assert "as=PartialObjectMetadataList;" in many


@pytest.mark.parametrize(
    "call",
    [
        lambda c: c.get(PODS, "", "a"),
        lambda c: c.get(PODS, "ns", ""),
        lambda c: c.create(PODS, "", b"{}"),
        lambda c: c.delete(PODS, "", "a"),
        lambda c: c.update(NODES, "", "", b"{}"),
    ],
    ids=["get without namespace", "get without name", "create", "delete", "update"],
)
async def test_paths_that_would_hit_a_collection_are_refused(script, answer, call):
    transport = script(answer(200, POD))
    with pytest.raises(ValueError, match="empty"):
        await call(transport.client())
    assert transport.asked == []


@pytest.mark.parametrize(
    ("namespace", "name", "message"),
    [
        pytest.param("ns", "a/b", "invalid resource name \"a/b\": [may not contain '/']", id="two segments"),
        pytest.param("ns", "..", "invalid resource name \"..\": [may not be '..']", id="up"),
        pytest.param("ns", "a%2fb", "invalid resource name \"a%2fb\": [may not contain '%']", id="encoded"),
        pytest.param("a/b", "x", "invalid namespace \"a/b\": [may not contain '/']", id="namespace"),
    ],
)
@pytest.mark.parametrize(
    "call",
    [
        lambda c, namespace, name: c.get(PODS, namespace, name),
        lambda c, namespace, name: c.delete(PODS, namespace, name),
        lambda c, namespace, name: c.create(PODS, namespace, b"{}", name=name, subresource="eviction"),
        lambda c, namespace, name: c.patch(PODS, namespace, name, b"{}"),
    ],
    ids=["get", "delete", "create", "patch"],
)
async def test_names_that_change_the_path_are_refused(script, answer, call, namespace, name, message):
    transport = script(answer(200, POD))
    with pytest.raises(InvalidName) as refused:
        await call(transport.client(), namespace, name)
    assert str(refused.value) == message
    assert transport.asked == []


@pytest.mark.parametrize("doc", [{}, {"kind": "Status", "status": "Success"}, {"metadata": {"name": "b"}}])
async def test_a_document_other_than_the_requested_one_is_unreadable(script, answer, doc):
    """A scale of {} would be one of no replicas."""
    with pytest.raises(Unreadable):
        await script(answer(200, doc)).client().get_doc(DEPLOYMENTS, "ns", "a", subresource="scale")


@pytest.mark.parametrize(("namespace", "name"), [("", "x"), ("ns", "")])
async def test_a_reference_without_a_name_or_namespace_is_an_error_of_one_object(script, answer, namespace, name):
    """Other clients write such references into a status: this is not logged with a traceback."""
    with pytest.raises(InvalidName, match="empty"):
        await script(answer(200, POD)).client().get(PODS, namespace, name)


async def test_retry_after_is_honoured_and_counted(script, answer, failure):
    transport = script(
        failure(429, "TooManyRequests", retry_after="2"),
        failure(503, "ServiceUnavailable", retry_after="1"),
        answer(201, POD),
    )
    await transport.client().create(PODS, "ns", b"{}")
    assert transport.times == [0, 2, 3]


async def test_retries_end(script, failure):
    transport = script(failure(429, "TooManyRequests", retry_after="1"))
    with pytest.raises(errors.TooManyRequests):
        await transport.client().create(PODS, "ns", b"{}")
    assert len(transport.asked) == MAX_RETRIES + 1


@pytest.mark.parametrize(
    ("code", "reason", "headers"),
    [
        (429, "TooManyRequests", {}),
        (500, "InternalError", {}),
        (409, "Conflict", {"retry_after": "1"}),
        (404, "NotFound", {"retry_after": "1"}),
    ],
    ids=["429 without Retry-After", "500 without Retry-After", "409", "404"],
)
async def test_other_errors_are_not_retried(script, failure, code, reason, headers):
    transport = script(failure(code, reason, **headers))
    with pytest.raises(errors.ApiError):
        await transport.client().create(PODS, "ns", b"{}")
    assert len(transport.asked) == 1


@pytest.mark.parametrize("code", [301, 302, 303, 307, 308])
async def test_a_redirect_is_an_error(script, answer, code):
    """It may lead to another server, which is not to get the credentials. kubernetes#93129"""
    transport = script(answer(code, POD, location="https://elsewhere/"))
    with pytest.raises(errors.ApiError) as raised:
        await transport.client().get(PODS, "ns", "a")
    assert (raised.value.status, len(transport.asked)) == (code, 1)


async def test_an_optional_object_may_be_missing(script, answer):
    missing = {"kind": "Status", "reason": "NotFound", "code": 404, "message": 'pods "a" not found'}
    client = script(answer(200, POD), answer(404, missing), answer(403, {**missing, "reason": "Forbidden"})).client()
    assert (await client.find(PODS, "ns", "a")).uid == "u"
    assert await client.find(PODS, "ns", "a") is None
    with pytest.raises(errors.Forbidden):
        await client.find(PODS, "ns", "a")


async def test_a_get_is_retried_when_the_connection_breaks(script, answer):
    transport = script(ConnectionLost("reset"), answer(200, POD))
    await transport.client().get(PODS, "ns", "a")
    assert transport.times == [0, 1]


@pytest.mark.parametrize("error", [ConnectionLost("reset"), TimedOut("late"), Unreachable("refused")])
async def test_a_write_is_never_retried_automatically(script, answer, error):
    transport = script(error, answer(200, POD))
    with pytest.raises(type(error)):
        await transport.client().create(PODS, "ns", b"{}")
    assert len(transport.asked) == 1


async def test_a_refused_connection_is_an_error_at_once(script, answer):
    transport = script(Unreachable("refused"), answer(200, POD))
    with pytest.raises(Unreachable):
        await transport.client().get(PODS, "ns", "a")


async def test_requests_wait_for_the_rate_limit(script, answer):
    transport = script(lambda request: answer(200, {"metadata": {"name": request.path[-1]}}))
    client = transport.client(TokenBucket(10.0, 2))
    await asyncio.gather(*(client.get(PODS, "ns", str(number)) for number in range(5)))
    assert transport.times == pytest.approx([0, 0, 0.1, 0.2, 0.3])
    assert [request.path[-1] for request in transport.asked] == list("01234")


async def test_a_cancelled_wait_does_not_use_its_token(script, answer):
    transport = script(lambda request: answer(200, {"metadata": {"name": request.path[-1]}}))
    client = transport.client(TokenBucket(1.0, 1))
    await client.get(PODS, "ns", "a")
    waiting = asyncio.create_task(client.get(PODS, "ns", "b"))
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    await client.get(PODS, "ns", "c")
    assert transport.times == pytest.approx([0, 1])


async def test_retries_are_rate_limited(script, answer, failure):
    transport = script(failure(429, "TooManyRequests", retry_after="0"), answer(200, POD))
    await transport.client(TokenBucket(0.5, 1)).get(PODS, "ns", "a")
    assert transport.times == [0, 2]


async def test_a_watch_is_not_limited(script, answer):
    transport = script(answer(200, {}))
    client = transport.client(TokenBucket(0.001, 1))
    for _ in range(3):
        async with client.watch(PODS, query=(("resourceVersion", "5"),), field_selector="x=y") as stream:
            assert [chunk async for chunk in stream.chunks] == [b"{}"]
    assert transport.times == [0, 0, 0]
    expected = (("watch", "true"), ("fieldSelector", "x=y"), ("resourceVersion", "5"))
    assert transport.asked[0].query == expected


async def test_a_watch_that_is_refused_raises_on_entry(script, failure):
    with pytest.raises(errors.Expired):
        async with script(failure(410, "Expired")).client().watch(PODS):
            pytest.fail("entered")


async def test_the_refusal_of_a_watch_may_not_go_on_for_ever(script, failure, monkeypatch):
    transport = script(failure(503, "ServiceUnavailable"))

    async def endless():
        while True:
            await asyncio.sleep(10)
            yield b" "

    @asynccontextmanager
    async def stream(request):
        yield Stream(503, {}, endless())

    monkeypatch.setattr(transport, "stream", stream)
    with pytest.raises(TimedOut):
        async with transport.client().watch(PODS):
            pytest.fail("entered")
    assert LoopClock().monotonic() < 120


async def test_a_throttled_watch_is_retried(script, answer, failure):
    transport = script(failure(429, "TooManyRequests", retry_after="4"), answer(200, {}))
    async with transport.client().watch(PODS) as stream:
        assert stream.status == 200
    assert transport.times == [0, 4]


async def test_metrics_count_attempts_and_requests(script, answer, failure):
    transport, counted = script(failure(503, "ServiceUnavailable", retry_after="1"), answer(201, POD)), Counted()
    client = transport.client()
    client._metrics = counted
    await client.create(PODS, "ns", b"12345")
    size = len(json.dumps(POD))
    assert counted.seen == [
        ("throttled", "POST", 0.0),
        ("answered", "POST", "503", 5, 0),
        ("throttled", "POST", 0.0),
        ("answered", "POST", "201", 5, 1),
        ("finished", "POST", 1.0, size),
    ]


async def test_metrics_count_the_attempts_of_a_watch_but_no_size(script, answer, failure):
    transport, counted = script(failure(429, "TooManyRequests", retry_after="1"), answer(200, {})), Counted()
    client = transport.client()
    client._metrics = counted
    async with client.watch(PODS):
        pass
    assert counted.seen == [("answered", "GET", "429", None, 0), ("answered", "GET", "200", None, 1)]


async def test_long_waits_are_logged_but_not_each(script, answer, caplog):
    transport = script(answer(200, POD))
    with caplog.at_level(logging.INFO):
        client = transport.client(TokenBucket(1.0, 1))
        await asyncio.gather(*(client.get(PODS, "ns", "a") for _ in range(20)))
    delays = [record.fields["delay_s"] for record in caplog.records]
    assert delays == [2.0, 12.0]


async def test_raw_requests_keep_their_headers(script, answer):
    transport = script(answer(200, {}))
    request = Request("GET", "/healthz", headers={"accept": "text/plain"})
    await transport.client().call(request)
    assert transport.asked[0].headers == {"accept": "text/plain", "user-agent": "kcm/test"}


ANSWERS = [
    b"",
    b"ok",
    b"<html>",
    b"null",
    b"[]",
    b"{}",
    b'{"metadata": null}',
    b'{"metadata": {"name": "a"',
    b'{"metadata": {"name": "\xff"}}',
]
VERBS = {
    "get": lambda client: client.get(PODS, "ns", "a"),
    "status": lambda client: client.get(PODS, "ns", "a", subresource="status"),
    "create": lambda client: client.create(PODS, "ns", {}),
    "update": lambda client: client.update(PODS, "ns", "a", {}),
    "patch": lambda client: client.patch(PODS, "ns", "a", {}),
}


@pytest.mark.parametrize("verb", VERBS.values(), ids=VERBS)
@pytest.mark.parametrize("body", ANSWERS)
async def test_a_200_without_the_object_is_unreadable(script, body, verb):
    with pytest.raises(Unreadable):
        await verb(script(Response(200, {}, body)).client())


@pytest.mark.parametrize("body", [b"", b"<html>", b"[]"])
async def test_a_deletion_with_an_invalid_response_is_uncertain(script, body):
    with pytest.raises(Unreadable):
        await script(Response(200, {}, body)).client().delete(PODS, "ns", "a")


async def test_an_object_other_than_the_requested_one_is_unreadable(script, answer):
    with pytest.raises(Unreadable, match="named b"):
        await script(answer(200, POD)).client().get(PODS, "ns", "b")


async def test_a_review_has_no_name_but_its_kind(script, answer):
    body = {"kind": "SubjectAccessReview", "metadata": {"creationTimestamp": None}, "status": {"allowed": True}}
    made = script(answer(201, body), answer(201, {"status": {"allowed": True}})).client()
    assert (await made.create(SUBJECT_ACCESS_REVIEWS, "", {})).status.allowed
    with pytest.raises(Unreadable, match="it is no SubjectAccessReview"):
        await made.create(SUBJECT_ACCESS_REVIEWS, "", {})
