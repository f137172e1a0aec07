"""Watches and lists in protobuf: what is decoded, what is refused, and who is asked for what."""

import asyncio
import random
import struct
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcm_cli.api.apps import DEPLOYMENTS
from kcm_cli.api.core import PODS
from kcm_cli.api.protobuf.encoding import to_protobuf, to_protobuf_frame
from kcm_cli.api.resource import GVR, Resource
from kcm_cli.component import virtual
from kcm_cli.component.clock import LoopClock
from kcm_cli.machinery import upb
from kcm_cli.machinery.envelope import MAGIC, MEDIA_TYPE
from kcm_cli.machinery.meta import PartialObject, SlimObject
from kcm_cli.machinery.protowire import packed
from kcm_cli.rest import errors
from kcm_cli.rest.client import Client
from kcm_cli.rest.errors import Expired, InternalError, NotFound
from kcm_cli.rest.listing import list_readable, read_page
from kcm_cli.rest.ratelimit import Unlimited
from kcm_cli.rest.transport import Request, Response, Stream, Unreadable
from kcm_cli.runtime.frames import FrameDecoder, decoder_of
from kcm_cli.runtime.informer import AnyInformer, Informer, Scope
from kcm_cli.runtime.object_errors import ObjectErrors
from kcm_cli.runtime.wire import LONGEST_EVENT, Bookmark, BrokenEvent, EventDecoder

JSON, PROTOBUF = {"content-type": "application/json"}, {"content-type": MEDIA_TYPE}
WATCH = {"content-type": f"{MEDIA_TYPE};stream=watch"}
META = {"name": "a", "namespace": "ns", "uid": "u", "resourceVersion": "5"}
END = {"resourceVersion": "9", "annotations": {"k8s.io/initial-events-end": "true"}}


def pod(name: str = "a", version: str = "5", **more: Any) -> dict[str, Any]:
    meta = {**META, "name": name, "uid": f"uid-{name}", "resourceVersion": version}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, **more}


def of(type_: str, doc: dict[str, Any]) -> bytes:
    return to_protobuf_frame({"type": type_, "object": doc})


def raw(type_: bytes, body: bytes) -> bytes:
    data = packed(1, type_) + packed(2, packed(1, body))
    return struct.pack(">I", len(data)) + data


def enveloped(data: bytes, kind: bytes = b"Pod", version: bytes = b"v1") -> bytes:
    return MAGIC + packed(1, packed(1, version) + packed(2, kind)) + packed(2, data)


ADDED = of("ADDED", pod(status={"phase": "Running"}))
MARK = of("BOOKMARK", {"apiVersion": "v1", "kind": "Pod", "metadata": END})
EXPIRED = {
    "kind": "Status",
    "apiVersion": "v1",
    "status": "Failure",
    "reason": "Expired",
    "code": 410,
    "message": "old",
}
BROKEN = packed(1, packed(1, b"a") + packed(3, b"ns") + packed(5, b"uid-a") + packed(6, b"6")) + packed(2, b"\xff\xff")


def read(data: bytes, size: int = 1 << 20, **options: Any) -> list[Any]:
    decoder = FrameDecoder(options.pop("resource", PODS), **options)
    return [event for at in range(0, len(data), size) for event in decoder.feed(data[at : at + size])]


@given(st.integers(1, 400))
def test_chunks_can_end_anywhere(size: int) -> None:
    change, mark, again = read(ADDED + MARK + ADDED, size)
    assert (change.type, change.object.key, change.object.status.phase) == ("ADDED", "ns/a", "Running")
    assert (mark, again) == (Bookmark("9", last=True), change)


def test_an_error_is_raised() -> None:
    with pytest.raises(Expired, match="old"):
        read(of("ERROR", EXPIRED))
    with pytest.raises(InternalError, match="cannot be read"):
        read(raw(b"ERROR", enveloped(b"", b"Pod")))


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(raw(b"ADDED", b"{}"), id="no prefix"),
        pytest.param(raw(b"ADDED", MAGIC + b"\xff"), id="no envelope"),
        pytest.param(raw(b"ADDED", MAGIC + packed(1, b"\xff")), id="no kind"),
        pytest.param(struct.pack(">I", 3) + b"\xff\xff\xff", id="no event"),
        pytest.param(struct.pack(">I", 0), id="empty"),
        pytest.param(raw(b"ADDED", enveloped(b"")), id="no name"),
        pytest.param(raw(b"ADDED", enveloped(BROKEN)), id="no object"),
    ],
)
def test_what_cannot_be_read_is_asked_for_again_before_it_is_skipped(data: bytes) -> None:
    with pytest.raises(Unreadable):
        read(data)
    skipped: list[str] = []
    *broken, whole = read(data + ADDED, lenient=True, skipped=skipped.append)
    assert whole.object.key == "ns/a"
    assert len(broken) + len(skipped) == 1
    assert all(isinstance(one, BrokenEvent) for one in broken)


def test_a_broken_object_is_known_by_its_key() -> None:
    (event,) = read(raw(b"MODIFIED", enveloped(BROKEN)), lenient=True)
    assert (event.type, event.object.key, event.object.metadata.uid) == ("MODIFIED", "ns/a", "uid-a")


def test_the_length_of_an_event_is_limited() -> None:
    with pytest.raises(Unreadable, match="longer than"):
        read(struct.pack(">I", LONGEST_EVENT + 1))


def test_objects_of_other_kinds_and_unknown_types_are_skipped() -> None:
    skipped: list[str] = []
    service = {"apiVersion": "v1", "kind": "Service", "metadata": META}
    (event,) = read(of("ADDED", service) + of("MOVED", pod()) + ADDED, skipped=skipped.append)
    assert event.object.key == "ns/a"
    assert skipped == ['an object of another kind: "Service" ("v1")', 'an event of type "MOVED"']


def test_metadata_is_of_either_kind() -> None:
    widgets: Resource[Any] = Resource(GVR("example.com", "v1", "widgets"), "Widget", SlimObject)
    partial = {"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata", "metadata": META}
    skipped: list[str] = []
    found = read(of("ADDED", partial) + ADDED, resource=widgets, metadata_only=True, skipped=skipped.append)
    assert [event.object.key for event in found] == ["ns/a"]
    assert len(skipped) == 1
    (own,) = read(raw(b"ADDED", enveloped(packed(1, packed(1, b"b")), b"Widget")), resource=widgets, metadata_only=True)
    assert own.object.key == "b"


def test_the_answer_says_which_form_it_has() -> None:
    assert isinstance(decoder_of(WATCH, PODS), FrameDecoder)
    for headers in ({}, JSON, {"content-type": "application/json;stream=watch"}):
        assert isinstance(decoder_of(headers, PODS), EventDecoder)


def test_protobuf_that_nobody_can_read_is_unreadable(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the package is not there, and a proxy answers in protobuf all the same."""
    monkeypatch.setattr(upb, "available", lambda: False)
    decoder = decoder_of(WATCH, PODS)
    with pytest.raises(Unreadable):
        list(decoder.feed(ADDED + b"\n"))
    with pytest.raises(Unreadable, match="protobuf"):
        read_page(listed(ITEM), "Pod")


# -- lists


def listed(*items: bytes, kind: bytes = b"PodList", version: bytes = b"9", more: bytes = b"") -> bytes:
    meta = packed(1, packed(2, version) + packed(3, more))
    return enveloped(meta + b"".join(packed(2, item) for item in items), kind)


ITEM = packed(1, packed(1, b"b") + packed(3, b"ns") + packed(5, b"uid-b") + packed(6, b"6"))


def test_a_list_has_its_items_and_versions() -> None:
    page = read_page(listed(ITEM, BROKEN, more=b"next"), "Pod")
    assert (page.resource_version, page.next_page, len(page.items)) == ("9", "next", 2)


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(listed(ITEM)[:-3], id="cut"),
        pytest.param(listed(ITEM, kind=b"ServiceList"), id="another kind"),
        pytest.param(enveloped(ITEM), id="no list"),
        pytest.param(listed(version=b"\xff"), id="no utf-8"),
        pytest.param(MAGIC, id="empty"),
    ],
)
def test_what_is_no_list_of_the_kind_is_refused(body: bytes) -> None:
    with pytest.raises(Unreadable):
        read_page(body, "Pod")


# -- who is asked for what


class Server:
    """Answers each request with what a function makes of it."""

    def __init__(self, respond: Callable[[Request], Response]) -> None:
        self.accepted: list[str] = []
        self._respond = respond

    def _answer(self, request: Request) -> Response:
        self.accepted.append(request.headers["accept"])
        return self._respond(request)

    async def send(self, request: Request) -> Response:
        return self._answer(request)

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[Stream]:
        answer = self._answer(request)

        async def chunks() -> AsyncIterator[bytes]:
            yield answer.body
            if answer.status == 200:
                await asyncio.Event().wait()

        yield Stream(answer.status, answer.headers, chunks())

    async def close(self) -> None: ...

    def client(self, *, protobuf: bool = True) -> Client:
        return Client(self, limiter=Unlimited(), user_agent="test", clock=LoopClock(), protobuf=protobuf)


WIDGETS = Resource(GVR("example.com", "v1", "widgets"), "Widget", PartialObject)
META_LIST = "as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
_JSON = "application/json"


@pytest.mark.parametrize(
    ("resource", "metadata_only", "protobuf", "accept"),
    [
        pytest.param(PODS, False, True, f"{MEDIA_TYPE},{_JSON}", id="protobuf"),
        pytest.param(PODS, False, False, _JSON, id="json is wanted"),
        pytest.param(DEPLOYMENTS, False, True, _JSON, id="updated"),
        pytest.param(WIDGETS, False, True, _JSON, id="custom"),
        pytest.param(
            WIDGETS, True, True, f"{MEDIA_TYPE};{META_LIST},{_JSON};{META_LIST},{_JSON}", id="metadata of all kinds"
        ),
        pytest.param(WIDGETS, True, False, f"{_JSON};{META_LIST},{_JSON}", id="metadata in json"),
    ],
)
def test_lists_are_asked_for_in_protobuf_where_they_can_be_read(
    resource: Resource[Any], metadata_only: bool, protobuf: bool, accept: str
) -> None:
    server = Server(lambda request: Response(200, JSON, b""))
    virtual.run(server.client(protobuf=protobuf).list_page(resource, metadata_only=metadata_only))
    assert server.accepted == [accept]


def refusing(status: int, reason: str) -> Callable[[Request], Response]:
    doc = b'{"kind":"Status","status":"Failure","reason":"%s","code":%d}' % (reason.encode(), status)

    def respond(request: Request) -> Response:
        if MEDIA_TYPE in request.headers["accept"]:
            return Response(status, JSON, doc)
        return Response(200, JSON, b'{"kind":"PodList","metadata":{"resourceVersion":"7"},"items":[]}')

    return respond


@pytest.mark.parametrize(("status", "reason"), [(406, "NotAcceptable"), (415, "UnsupportedMediaType")])
def test_a_server_that_refuses_protobuf_is_asked_for_json_from_then_on(status: int, reason: str) -> None:
    server = Server(refusing(status, reason))

    async def main() -> None:
        client = server.client()
        for _ in range(2):
            assert (await list_readable(client, PODS)).resource_version == "7"
        async with client.watch(PODS) as stream:
            assert stream.headers == JSON
        async with server.client().watch(PODS) as stream:
            assert stream.headers == JSON

    virtual.run(main())
    first, plain = f"{MEDIA_TYPE},{_JSON}", _JSON
    assert server.accepted == [first, plain, plain, plain, first, plain]


def test_a_refusal_in_protobuf_is_read() -> None:
    doc = {
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "reason": "NotFound",
        "message": "no",
        "code": 404,
    }
    details = {"name": "a", "kind": "pods", "causes": [{"reason": "x", "message": "y"}]}
    body = to_protobuf({**doc, "details": details})
    server = Server(lambda request: Response(404, PROTOBUF, body))
    with pytest.raises(NotFound, match="no") as caught:
        virtual.run(server.client().list_page(PODS))
    assert caught.value.has_cause("x")
    found = errors.from_response(Response(500, PROTOBUF, body[:-20]))
    assert isinstance(found, InternalError)


# -- an informer


class Seen:
    """What an informer has after a minute."""

    def __init__(self, respond: Callable[[Request], Response]) -> None:
        self.server = Server(respond)
        self.odd: list[str] = []

        async def main() -> None:
            clock = LoopClock()
            reported = ObjectErrors(now=clock.monotonic)
            informer: AnyInformer = Informer(PODS, self.server.client(), clock, random.Random(1), Scope(), reported)
            task = asyncio.create_task(informer.run())
            await asyncio.sleep(60)
            assert not task.done()
            task.cancel()
            self.names = sorted(one.name for one in informer.store)
            self.unknown = sorted(informer.store.unknown())
            self.synced = informer.synced.is_set()

        virtual.run(main())


def test_an_informer_fills_its_cache_by_a_watch_in_protobuf() -> None:
    later = of("ADDED", pod("c", "10")) + of("DELETED", pod("b", "11"))
    body = ADDED + of("ADDED", pod("b")) + MARK + later
    seen = Seen(lambda request: Response(200, WATCH, body))
    assert (seen.names, seen.unknown, seen.synced) == (["a", "c"], [], True)


def test_objects_that_cannot_be_read_are_unknown_and_the_others_are_not_affected() -> None:
    body = raw(b"ADDED", enveloped(BROKEN)) + of("ADDED", pod("b")) + MARK

    def respond(request: Request) -> Response:
        if ("watch", "true") in request.query and ("sendInitialEvents", "true") not in request.query:
            return Response(200, WATCH, of("ADDED", pod("c", "10")))
        if ("watch", "true") in request.query:
            return Response(200, WATCH, body)
        return Response(200, PROTOBUF, listed(BROKEN, ITEM))

    seen = Seen(respond)
    assert (seen.names, seen.unknown, seen.synced) == (["b", "c"], ["ns/a"], True)


def test_a_proxy_may_answer_in_json() -> None:
    page = b'{"kind":"PodList","metadata":{"resourceVersion":"7"},"items":[{"metadata":{"name":"a","uid":"u"}}]}'
    line = b'{"type":"ADDED","object":{"kind":"Pod","apiVersion":"v1","metadata":{"name":"b","resourceVersion":"8"}}}\n'

    def respond(request: Request) -> Response:
        if ("sendInitialEvents", "true") in request.query:
            return Response(400, JSON, b"{}")
        return Response(200, JSON, line if ("watch", "true") in request.query else page)

    seen = Seen(respond)
    assert seen.names == ["a", "b"]
    assert all(MEDIA_TYPE in accepted for accepted in seen.server.accepted)
