"""Informers against a scripted server: initial lists, resumed watches, relists, and recreated objects."""

import asyncio
import itertools
import json
import logging
import random
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from kcm_cli.api.core import PODS, Pod
from kcm_cli.api.resource import Undecodable
from kcm_cli.component import virtual
from kcm_cli.component.clock import LoopClock
from kcm_cli.component.metrics import Registry
from kcm_cli.machinery.meta import ObjectMeta
from kcm_cli.planning.actions import Notice
from kcm_cli.rest.client import Client
from kcm_cli.rest.ratelimit import Unlimited
from kcm_cli.rest.transport import ConnectionLost, Request, Response, Stream, TransportError
from kcm_cli.runtime.informer import CHUNK, MOST_FAILURES, PATIENCE, WATCH_S, Informer
from kcm_cli.runtime.object_errors import BURST, MOST, PERIOD_S, ObjectErrors
from kcm_cli.runtime.turns import TURN_S, Turns
from kcm_cli.runtime.watch_limits import BOOKMARKS_S, INITIAL_S, LATE_S
from tests.kit.faults import Answering

JSON = {"content-type": "application/json"}
HOLD = "hold"
LOST = ConnectionLost("GET /pods: connection lost")


def pod(name: str, version: int, uid: str = "") -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": "ns", "uid": uid or f"uid-{name}", "resourceVersion": str(version)}}


def event(kind: str, doc: dict[str, Any]) -> dict[str, Any]:
    return {"type": kind, "object": doc}


def added(*args: Any) -> dict[str, Any]:
    return event("ADDED", pod(*args))


def modified(*args: Any) -> dict[str, Any]:
    return event("MODIFIED", pod(*args))


def deleted(*args: Any) -> dict[str, Any]:
    return event("DELETED", pod(*args))


def bookmark(version: int, *, last: bool = False) -> dict[str, Any]:
    meta: dict[str, Any] = {"resourceVersion": str(version)}
    if last:
        meta["annotations"] = {"k8s.io/initial-events-end": "true"}
    return event("BOOKMARK", {"metadata": meta})


def status(code: int, reason: str, **headers: str) -> Response:
    doc = {"kind": "Status", "status": "Failure", "message": reason, "reason": reason, "code": code}
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Response(code, {**JSON, **named}, json.dumps(doc).encode())


def expired() -> dict[str, Any]:
    return event("ERROR", json.loads(status(410, "Expired").body))


def page(version: int, *items: dict[str, Any], next_page: str = "") -> Response:
    meta = {"resourceVersion": str(version), "continue": next_page}
    return Response(200, JSON, json.dumps({"kind": "PodList", "metadata": meta, "items": list(items)}).encode())


@dataclass
class Server(Answering):
    """Answers watches with the next of ``watches`` (the last stays open) and lists with the next of ``pages``."""

    watches: list[Any]
    pages: list[Response] = field(default_factory=list)
    local: bool = False
    asked: list[dict[str, str]] = field(default_factory=list)
    at: list[float] = field(default_factory=list)

    async def send(self, request: Request) -> Response:
        self.asked.append({"verb": "list", **dict(request.query)})
        return self.pages.pop(0)

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[Stream]:
        self.asked.append({"verb": "watch", **dict(request.query)})
        self.at.append(asyncio.get_running_loop().time())
        step = self.watches.pop(0) if self.watches else [HOLD]
        if isinstance(step, TransportError):
            raise step
        if isinstance(step, Response):
            yield Stream(step.status, step.headers, _once(step.body))
        else:
            yield Stream(200, JSON, _lines(step))


async def _once(body: bytes) -> AsyncIterator[bytes]:
    yield body


async def _lines(steps: list[Any]) -> AsyncIterator[bytes]:
    for step in steps:
        if step is HOLD:
            await asyncio.Event().wait()
        if isinstance(step, TransportError):
            raise step
        if isinstance(step, float):
            await asyncio.sleep(step)
            continue
        await asyncio.sleep(2)
        if isinstance(step, bytes):
            yield step
            continue
        yield json.dumps(step, separators=(",", ":")).encode() + b"\n"


@dataclass
class Seen:
    """What an informer notified, and what it cached, after some virtual time."""

    notified: list[str]
    known: dict[str, str]
    synced: bool
    version: str
    handled: int
    """Changes in the informer's measure of its listeners' time; a complete set is one."""


def follow(
    server: Server,
    seconds: float = 120,
    check: Callable[[Informer[Pod]], None] = lambda informer: None,
    errors: ObjectErrors | None = None,
    fails_for: str = "",
    before: Callable[[Informer[Pod]], None] = lambda informer: None,
) -> Seen:
    """What an informer does in so many seconds; ``fails_for``: a first listener raises for this object."""

    async def main() -> Seen:
        clock = LoopClock()
        client = server.client(clock)
        informer = Informer(PODS, client, clock, random.Random(1), None, errors)
        notified: list[str] = []

        def fail(obj: Pod) -> None:
            if obj.name == fails_for:
                raise OverflowError("no such moment")

        informer.listen(on_add=fail, on_update=lambda old, new: fail(new), on_delete=fail)

        def tell(what: str, obj: Pod) -> None:
            notified.append(f"{what} {obj.name}@{obj.metadata.resource_version}")
            held = informer.store.get(obj.key)
            assert held is (None if what == "-" else obj), "the store is never behind"

        informer.listen(
            on_add=lambda obj: tell("+", obj),
            on_update=lambda old, new: tell("~", new),
            on_delete=lambda obj: tell("-", obj),
        )
        before(informer)
        task = asyncio.create_task(informer.run())
        await asyncio.sleep(seconds)
        assert not task.done()
        check(informer)
        task.cancel()
        known = {obj.name: obj.metadata.resource_version for obj in informer.store}
        return Seen(notified, known, informer.synced.is_set(), informer.last_version, informer.handling.count)

    return virtual.run(main())


def test_the_initial_list_is_watched_and_delivered_at_once() -> None:
    server = Server([[added("a", 1), added("b", 2), bookmark(5, last=True), modified("a", 6), deleted("b", 7), HOLD]])
    seen = follow(server)
    assert seen.notified == ["+ a@1", "+ b@2", "~ a@6", "- b@7"]
    assert (seen.known, seen.synced, seen.version) == ({"a": "6"}, True, "7")
    assert seen.handled == 3
    (asked,) = server.asked
    assert (asked["sendInitialEvents"], asked["resourceVersionMatch"]) == ("true", "NotOlderThan")


def test_in_process_no_bookmarks_are_requested() -> None:
    """They are most of what happens in a quiet cluster."""
    server = Server([[modified("a", 6), HOLD]], pages=[page(5, pod("a", 1))], local=True)
    seen = follow(server)
    assert seen.notified == ["+ a@1", "~ a@6"]
    assert [asked["verb"] for asked in server.asked] == ["list", "watch"]
    assert all("allowWatchBookmarks" not in asked for asked in server.asked)
    assert int(server.asked[1]["timeoutSeconds"]) > 3600


def test_nothing_is_delivered_before_the_initial_list_is_complete() -> None:
    seen = follow(Server([[added("a", 1), HOLD]]), seconds=INITIAL_S - 1)
    assert (seen.notified, seen.synced, seen.version) == ([], False, "")


def test_a_watch_that_breaks_before_the_list_is_complete_restarts() -> None:
    server = Server([[added("a", 1), LOST], [added("a", 1), bookmark(3, last=True), HOLD]])
    seen = follow(server)
    assert (seen.notified, seen.synced) == (["+ a@1"], True)
    assert all("sendInitialEvents" in asked for asked in server.asked)


def test_an_interrupted_watch_resumes_from_the_last_version() -> None:
    server = Server([[added("a", 1), bookmark(5, last=True), bookmark(9), LOST], [modified("a", 10), HOLD]])
    seen = follow(server)
    assert seen.notified == ["+ a@1", "~ a@10"]
    assert server.asked[1]["resourceVersion"] == "9"


@pytest.mark.parametrize("gone", [[expired()], status(410, "Gone")], ids=["event", "answer"])
def test_410_relists_and_delivers_deletions(gone: Any) -> None:
    first = [added("a", 1), added("b", 2), bookmark(5, last=True)]
    again = [added("b", 2), added("c", 8), bookmark(9, last=True), HOLD]
    server = Server([first, gone, again])
    seen = follow(server)
    assert seen.notified == ["+ a@1", "+ b@2", "- a@1", "+ c@8"]
    assert ["sendInitialEvents" in asked for asked in server.asked] == [True, False, True]


def test_410_on_the_initial_watch_list_keeps_watch_lists() -> None:
    server = Server([[added("a", 1), bookmark(5, last=True), expired()], [added("a", 7), bookmark(9, last=True), HOLD]])
    seen = follow(server)
    assert seen.notified == ["+ a@1", "~ a@7"]
    assert [asked["verb"] for asked in server.asked] == ["watch", "watch"]


def test_a_restarted_server_without_history_is_relisted_at_once() -> None:
    """It was away for so long that the waiting had grown to a minute."""
    first = [added("a", 1), bookmark(5, last=True), TransportError("cut")]
    server = Server([first, *[TransportError("refused")] * 8, [expired()], [bookmark(9, last=True), HOLD]])
    assert follow(server, 600).notified == ["+ a@1", "- a@1"]
    assert server.at[9] - server.at[8] > 29
    assert server.at[10] - server.at[9] < 5


def test_a_busy_server_gets_the_same_request_again() -> None:
    busy = status(429, "TooManyRequests", retry_after="5")
    server = Server([*[busy] * 12, [bookmark(5, last=True), HOLD]])
    assert follow(server, 300).synced
    assert {asked["verb"] for asked in server.asked} == {"watch"}


def test_without_watch_lists_lists_are_paginated() -> None:
    refused = status(422, "Invalid")
    pages = [page(7, pod("a", 1), next_page="more"), page(7, pod("b", 2)), page(9, pod("b", 2))]
    server = Server([refused, [added("c", 8)], status(410, "Expired"), [HOLD]], pages)
    seen = follow(server)
    assert seen.notified == ["+ a@1", "+ b@2", "+ c@8", "- a@1", "- c@8"]
    assert [asked["verb"] for asked in server.asked] == ["watch", "list", "list", "watch", "watch", "list", "watch"]
    assert (server.asked[1]["resourceVersion"], server.asked[2]["continue"]) == ("0", "more")


def test_a_recreated_object_is_another_object() -> None:
    first = [added("a", 1, "old"), bookmark(5, last=True), modified("a", 6, "new"), expired()]
    server = Server([first, [added("a", 9, "newest"), bookmark(9, last=True), HOLD]])
    assert follow(server).notified == ["+ a@1", "- a@1", "+ a@6", "- a@6", "+ a@9"]


def test_known_versions_are_not_delivered_again() -> None:
    server = Server([[added("a", 1), bookmark(5, last=True), expired()], [added("a", 1), bookmark(9, last=True), HOLD]])
    assert follow(server).notified == ["+ a@1"]


BROKEN: dict[str, Any] = {"metadata": {**pod("b", 6)["metadata"]}, "spec": "none"}


def test_an_object_that_cannot_be_decoded_is_unknown_and_others_are_served() -> None:
    first = [added("a", 1), event("ADDED", BROKEN), bookmark(6, last=True)]
    server = Server([[*first, event("MODIFIED", BROKEN), modified("a", 7), HOLD]])

    def check(informer: Informer[Pod]) -> None:
        assert informer.store.get("ns/b") is None
        assert [one.key for one in informer.store.unseen("ns")] == ["ns/b"]

    seen = follow(server, check=check)
    assert (seen.notified, seen.version) == (["+ a@1", "~ a@7"], "7")
    assert len(server.asked) == 1


def test_it_is_served_again_once_it_can_be_decoded() -> None:
    server = Server([[event("ADDED", BROKEN), bookmark(6, last=True), modified("b", 8), HOLD]])
    seen = follow(server, check=lambda informer: _none_unknown(informer))
    assert seen.notified == ["+ b@8"]


def test_an_object_that_becomes_undecodable_is_kept_as_it_was() -> None:
    """Nothing else is safe: no controller may act on the absence of what is there."""
    steps = [added("b", 1), bookmark(5, last=True), event("MODIFIED", BROKEN), event("DELETED", BROKEN), HOLD]
    assert follow(Server([steps[:3] + [HOLD]])).notified == ["+ b@1"]
    assert follow(Server([steps]), check=lambda informer: _none_unknown(informer)).notified == ["+ b@1", "- b@1"]


def test_listeners_can_request_objects_that_cannot_be_decoded() -> None:
    notified: list[str] = []
    other = {**BROKEN, "metadata": {**BROKEN["metadata"], "uid": "other"}}

    def check(informer: Informer[Pod]) -> None:
        informer.listen(on_unknown=lambda obj: notified.append(f"listening {obj.key}"))

    def hear(informer: Informer[Pod]) -> None:
        informer.listen(
            on_unknown=lambda obj: notified.append(f"? {obj.metadata.uid}"),
            on_unknown_delete=lambda obj: notified.append(f"- {obj.metadata.uid}"),
        )

    first = [event("ADDED", BROKEN), bookmark(6, last=True), event("MODIFIED", BROKEN), event("ADDED", other)]
    uid = BROKEN["metadata"]["uid"]
    follow(Server([[*first, HOLD]]), before=hear, check=check)
    assert notified == [f"? {uid}", f"? {uid}", f"- {uid}", "? other", "listening ns/b"]
    notified.clear()
    follow(Server([[event("ADDED", BROKEN), bookmark(6, last=True), event("DELETED", BROKEN), HOLD]]), before=hear)
    assert notified == [f"? {uid}", f"- {uid}"]
    notified.clear()
    gone = [[event("ADDED", BROKEN), bookmark(6, last=True), expired()], [bookmark(9, last=True), HOLD]]
    follow(Server(gone), before=hear)
    assert notified == [f"? {uid}", f"- {uid}"]


def test_an_object_with_another_uid_deletes_the_cached_one() -> None:
    other = {**BROKEN, "metadata": {**BROKEN["metadata"], "uid": "other"}}
    assert follow(Server([[added("b", 1), bookmark(5, last=True), event("ADDED", other), HOLD]])).notified == [
        "+ b@1",
        "- b@1",
    ]


def test_a_list_with_an_undecodable_object_serves_the_others() -> None:
    server = Server([status(422, "Invalid"), [HOLD]], [page(7, pod("a", 1), BROKEN, pod("c", 2))])
    assert follow(server).notified == ["+ a@1", "+ c@2"]


def test_undecodable_objects_are_counted_for_each_version_and_reported_once(caplog: pytest.LogCaptureFixture) -> None:
    registry, said = Registry(), []
    newer = {**BROKEN, "metadata": {**BROKEN["metadata"], "resourceVersion": "8"}}
    changes = [event("MODIFIED", BROKEN), event("MODIFIED", newer), expired()]
    again = [event("ADDED", newer), bookmark(9, last=True), HOLD]
    server = Server([[event("ADDED", BROKEN), bookmark(6, last=True), *changes], again])
    errors = ObjectErrors(registry, said.append)

    def check(informer: Informer[Pod]) -> None:
        assert errors.warnings() == ["1 objects of core/v1/pods cannot be decoded: ns/b"]

    follow(server, check=check, errors=errors)
    assert b'kcm_undecodable_objects_total{resource="pods"} 2' in registry.expose()
    assert len([record for record in caplog.records if "cannot be decoded" in record.message]) == 1
    assert [(notice.ref.kind, notice.ref.namespace, notice.ref.name, notice.reason) for notice in said] == [
        ("Pod", "ns", "b", "Undecodable")
    ]


def test_reports_of_undecodable_objects_are_limited() -> None:
    said: list[Notice] = []
    moment = 0.0
    errors = ObjectErrors(emit=said.append, now=lambda: moment)
    for second in range(100):
        moment = float(second)
        for number in range(10):
            name = f"p{second}-{number}"
            errors.undecodable(PODS, Undecodable(ObjectMeta(name=name, namespace="ns", uid=name), "why"))
            errors.decoded(PODS, f"ns/{name}")
            errors.undecodable(PODS, Undecodable(ObjectMeta(name=name, namespace="ns", uid=name), "why"))
    assert BURST < len(said) <= BURST + 100 / PERIOD_S
    assert len({notice.ref.name for notice in said}) == len(said)


def test_unexpected_watch_events_are_skipped_counted_and_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    """A Service with a pod's name is not a pod."""
    registry = Registry()
    service = {"kind": "Service", "apiVersion": "v1", **pod("a", 9)}
    odd = [event("MODIFIED", service), event("DELETED", service), event("NEWS", pod("a", 9))]
    marks = [bookmark(6), event("BOOKMARK", {"metadata": {}}), event("BOOKMARK", service)]
    server = Server([[added("a", 1), bookmark(5, last=True), *odd, *odd, *marks, deleted("b", 7), HOLD]])
    seen = follow(server, errors=ObjectErrors(registry))
    assert (seen.notified, seen.known, seen.version) == (["+ a@1"], {"a": "1"}, "7")
    assert b'kcm_undecodable_objects_total{resource="pods"} 7' in registry.expose()
    assert [record.fields["err"] for record in caplog.records] == [  # type: ignore[attr-defined]
        'an object of another kind: "Service" ("v1")',
        'an event of type "NEWS"',
    ]
    assert len(server.asked) == 1


def test_a_list_with_objects_of_another_kind_is_requested_again_and_then_used() -> None:
    """Until then the object in its place may exist."""
    mixed = page(7, pod("a", 1), {"kind": "Service", "apiVersion": "v1", **pod("b", 2)})
    server = Server([status(422, "Invalid")], [mixed] * (PATIENCE + 1))
    seen = follow(server)
    assert (seen.notified, seen.synced, seen.version) == (["+ a@1"], True, "7")
    assert [asked["verb"] for asked in server.asked].count("list") == PATIENCE + 1


def test_a_list_with_repeated_continue_tokens_is_given_up() -> None:
    circle = [page(7, pod("a", 1), next_page=token) for token in ("x", "y", "x", "y")]
    server = Server([status(422, "Invalid"), [HOLD]], [*circle[:3], page(8, pod("a", 1))])
    seen = follow(server)
    assert (seen.notified, seen.version) == (["+ a@1"], "8")
    assert [asked["verb"] for asked in server.asked] == ["watch", *["list"] * 4, "watch"]


def test_a_list_without_a_version_is_watched_from_any_version() -> None:
    """It is not listed again and again."""
    unversioned = Response(200, JSON, json.dumps({"kind": "PodList", "items": [pod("a", 1)]}).encode())
    server = Server([status(422, "Invalid"), [modified("a", 4), HOLD]], [unversioned])
    seen = follow(server)
    assert (seen.notified, seen.synced) == (["+ a@1", "~ a@4"], True)
    assert server.asked[-1]["resourceVersion"] == "0"
    assert len(server.asked) == 3


def test_a_watch_from_any_version_that_breaks_is_opened_from_any_version_again() -> None:
    """It begins with what there is, in any order: what has not come yet may be older than what has."""
    doc = {"kind": "PodList", "items": [pod("a", 1), pod("b", 2)]}
    unversioned = Response(200, JSON, json.dumps(doc).encode())
    changed = added("b", 9), added("a", 4)
    server = Server([status(422, "Invalid"), [changed[0], LOST], [*changed, bookmark(9), LOST], [HOLD]], [unversioned])
    seen = follow(server)
    assert seen.notified == ["+ a@1", "+ b@2", "~ b@9", "~ a@4"]
    assert [asked.get("resourceVersion") for asked in server.asked[2:]] == ["0", "0", "9"]


def test_a_watch_from_any_version_is_followed_by_a_list() -> None:
    """What was deleted before such a watch began is in none of its events."""
    lists = [{"kind": "PodList", "items": [pod(name, 1) for name in names]} for names in ("ab", "a")]
    unversioned = [Response(200, JSON, json.dumps(doc).encode()) for doc in lists]
    server = Server([status(422, "Invalid"), [added("a", 1)], [HOLD]], unversioned)
    seen = follow(server)
    assert seen.notified == ["+ a@1", "+ b@1", "- b@1"]
    assert [asked["verb"] for asked in server.asked] == ["watch", "list", "watch", "list", "watch"]


def test_a_watch_is_closed_after_its_timeout() -> None:
    server = Server([[added("a", 1), bookmark(5, last=True), HOLD], [modified("a", 6), HOLD]])
    seen = follow(server, seconds=2 * WATCH_S + LATE_S + 30)
    assert seen.notified == ["+ a@1", "~ a@6"]
    first, second = server.asked
    assert second["resourceVersion"] == "5"
    waited_s = server.at[1] - server.at[0]
    assert int(first["timeoutSeconds"]) + LATE_S <= waited_s <= int(first["timeoutSeconds"]) + LATE_S + 30


def test_a_watch_whose_server_falls_silent_is_opened_again(caplog: pytest.LogCaptureFixture) -> None:
    """A load balancer may keep the connection of a server that is gone (kubernetes#65012, #107266, nolar/kopf#1267)."""
    watches = [[added("a", 1), bookmark(5, last=True), bookmark(6), modified("a", 7), HOLD], [modified("a", 8), HOLD]]
    server = Server(watches)
    assert follow(server, seconds=BOOKMARKS_S + 30).notified == ["+ a@1", "~ a@7", "~ a@8"]
    assert server.asked[1]["resourceVersion"] == "7"
    assert BOOKMARKS_S < server.at[1] - server.at[0] < BOOKMARKS_S + 20
    assert [record for record in caplog.records if record.levelno >= logging.INFO] == []


@pytest.mark.parametrize(
    "steps",
    [
        pytest.param([350.0], id="no bookmarks"),
        pytest.param([100.0, bookmark(6), 190.0], id="rare ones"),
        pytest.param([bookmark(6), *[60.0, bookmark(7)] * 5], id="nothing else"),
        pytest.param([bookmark(6), *[100.0, modified("a", 7)] * 3], id="changes"),
    ],
)
def test_a_watch_whose_server_is_heard_or_has_never_sent_bookmarks_stays_open(steps: list[Any]) -> None:
    server = Server([[added("a", 1), bookmark(5, last=True), *steps, HOLD]])
    follow(server, seconds=WATCH_S)
    assert len(server.asked) == 1


def test_a_listener_that_fails_does_not_affect_others() -> None:
    registry = Registry()
    server = Server([[added("a", 1), added("b", 2), bookmark(5, last=True), modified("a", 6), HOLD]])

    def check(informer: Informer[Pod]) -> None:
        late: list[str] = []

        def late_one(obj: Pod) -> None:
            late.append(obj.name)
            raise OverflowError("no such moment")

        informer.listen(on_add=late_one)
        assert late == ["a", "b"]

    seen = follow(server, check=check, errors=ObjectErrors(registry), fails_for="a")
    assert seen.notified == ["+ a@1", "+ b@2", "~ a@6"]
    assert b'kcm_listener_errors_total{resource="pods"} 4' in registry.expose()


SPOILT = b'{"type":"ADDED","object":{"metadata":{"name":"s","namespace":"ns","uid":"\xff","resourceVersion":"6"}}}\n'


@pytest.mark.parametrize(
    "junk", [b"<html>\n", SPOILT, b'{"type": "ADDED", "object": {"met\n'], ids=["HTML", "utf-8", "cut"]
)
def test_an_invalid_watch_event_resumes_the_watch(junk: bytes) -> None:
    server = Server([[added("a", 1), bookmark(5, last=True), junk], [modified("a", 7), HOLD]])
    assert follow(server).notified == ["+ a@1", "~ a@7"]
    assert server.asked[1]["resourceVersion"] == "5"


def test_an_object_that_breaks_every_watch_is_skipped_by_a_list() -> None:
    first = [added("a", 1), bookmark(5, last=True), SPOILT]
    item = SPOILT[len(b'{"type":"ADDED","object":') : -2]
    listed = page(7, pod("a", 1), pod("c", 7)).body.replace(b'"items": [', b'"items": [' + item + b", ")
    server = Server([first, [SPOILT], [SPOILT], [HOLD]], [Response(200, JSON, listed)])
    assert follow(server).notified == ["+ a@1", "+ c@7"]
    assert [asked["verb"] for asked in server.asked] == ["watch"] * 3 + ["list", "watch"]
    assert "resourceVersion" not in server.asked[3], "with what the server has now"


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{}",
        b"null",
        b"<html>",
        b'{"kind": "Pod"}',
        b'{"kind": "PodList", "items": [',
        b'{"kind": "ConfigMapList", "apiVersion": "v1", "metadata": {"resourceVersion": "8"}, "items": null}',
    ],
)
def test_a_response_that_is_not_a_list_keeps_the_cache(body: bytes) -> None:
    refused = [status(422, "Invalid")]
    server = Server(
        [*refused, [expired()], [HOLD]], [page(7, pod("a", 1)), Response(200, JSON, body), page(9, pod("a", 1))]
    )
    assert follow(server).notified == ["+ a@1"]
    assert len(server.asked) == 6


def test_after_410_the_list_is_consistent() -> None:
    server = Server([status(422, "Invalid"), [expired()], [HOLD]], [page(7), page(9)])
    follow(server)
    versions = [asked.get("resourceVersion", "") for asked in server.asked if asked["verb"] == "list"]
    assert versions == ["0", ""]


def test_a_version_ahead_of_the_server_relists() -> None:
    """etcd was restored from a backup."""
    cause = {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
    doc = {"kind": "Status", "status": "Failure", "reason": "Timeout", "code": 504, "details": {"causes": [cause]}}
    too_large = Response(504, JSON, json.dumps(doc).encode())
    server = Server(
        [[added("a", 90), bookmark(99, last=True)], too_large, [added("a", 3), bookmark(5, last=True), HOLD]]
    )
    assert follow(server).version == "5"


async def test_a_large_list_yields_to_the_event_loop() -> None:
    """Others have their turn while thousands of objects are taken over."""
    many = [pod(f"p{n}", n + 1) for n in range(1000)]
    turns = 0
    clock = LoopClock()
    client = Client(
        Server([status(422, "Invalid"), [HOLD]], [page(2000, *many)]),
        limiter=Unlimited(),
        user_agent="t",
        clock=clock,
    )
    informer = Informer(PODS, client, clock, random.Random(1))
    held: list[int] = []
    informer.listen(on_add=lambda obj: held.append(turns))
    task = asyncio.create_task(informer.run())
    while not informer.synced.is_set():
        turns += 1
        await asyncio.sleep(0)
    task.cancel()
    assert len(held) == 1000
    assert max(held.count(turn) for turn in set(held)) <= CHUNK


@pytest.mark.parametrize("resynced", [False, True])
def test_slow_listeners_give_the_loop_back_when_a_turn_is_over(
    monkeypatch: pytest.MonkeyPatch, *, resynced: bool
) -> None:
    """Both while a complete set is taken over and while it is delivered again; each object once, in order."""
    names, told = [f"p{number:02}" for number in range(60)], list[tuple[str, int]]()
    now, turn = 0.0, 0
    monkeypatch.setattr(time, "perf_counter", lambda: now)

    def slow(obj: Pod) -> None:
        nonlocal now
        now += TURN_S * 0.4
        told.append((obj.name, turn))

    async def main() -> None:
        nonlocal turn
        server = Server([[HOLD]], [page(2000, *(pod(name, 1) for name in names))], local=True)
        clock = LoopClock()
        client = server.client(clock)
        informer = Informer(PODS, client, clock, random.Random(1))
        if resynced:
            informer.listen(on_update=lambda _, new: slow(new))
        else:
            informer.listen(on_add=slow)
        task = resync = asyncio.create_task(informer.run())
        while len(told) < len(names):
            assert not task.done()
            if resynced and resync is task and informer.synced.is_set():
                resync = asyncio.create_task(informer.resync())
            turn += 1
            await asyncio.sleep(0)
        task.cancel()

    asyncio.run(main())
    assert [name for name, _ in told] == names
    assert max(Counter(at for _, at in told).values()) == 3


@pytest.mark.parametrize("local", [False, True])
def test_the_events_of_a_watch_are_paced_here_unless_the_server_is_in_this_process(
    monkeypatch: pytest.MonkeyPatch, *, local: bool
) -> None:
    """A server in this process paces them itself (``sandbox.apiserver.registry.watching``)."""
    waited: list[None] = []

    async def later(turns: Turns) -> None:
        waited.append(None)

    server = Server([[bookmark(1, last=True), HOLD]], [page(1)], local=local)
    server.watches[0][1:1] = [added(name, version) for version, name in enumerate("abc", 2)]
    monkeypatch.setattr(Turns, "is_over", lambda self: True)
    monkeypatch.setattr(Turns, "next", later)
    assert follow(server).notified == ["+ a@2", "+ b@3", "+ c@4"]
    assert len(waited) == (0 if local else 4)


def _none_unknown(informer: Informer[Pod]) -> None:
    assert not informer.store.unknown()


def test_objects_deleted_during_the_initial_list_are_not_in_it() -> None:
    server = Server([[added("a", 1), added("b", 2), deleted("a", 3), bookmark(5, last=True), HOLD]])
    assert follow(server).notified == ["+ b@2"]


def test_watches_that_end_without_events_back_off() -> None:
    server = Server([[added("a", 1), bookmark(5, last=True)], *([] for _ in range(50))])
    follow(server, seconds=60)
    pauses = [after - before for before, after in itertools.pairwise(server.at[1:])]
    assert 3 < len(pauses) < 20
    assert pauses[-1] > pauses[0]


def test_a_deletion_without_a_name_restarts_the_watch() -> None:
    """The watch starts over from where it was."""
    nameless = event("DELETED", {"kind": "Pod", "metadata": {"labels": 7, "resourceVersion": "6"}})
    server = Server([[added("a", 1), bookmark(5, last=True), nameless], [deleted("a", 7), HOLD]])
    assert follow(server).notified == ["+ a@1", "- a@7"]
    assert server.asked[1]["resourceVersion"] == "5"


def test_a_list_with_invalid_json_is_requested_again() -> None:
    item = SPOILT[len(b'{"type":"ADDED","object":') : -2]
    spoilt = page(7, pod("a", 1)).body.replace(b'"items": [', b'"items": [' + item + b", ")
    server = Server([status(400, "BadRequest")], [Response(200, JSON, spoilt), page(8, pod("a", 1), pod("s", 6))])
    assert follow(server).notified == ["+ a@1", "+ s@6"]
    assert [asked["verb"] for asked in server.asked][:3] == ["watch", "list", "list"]


def test_remembered_undecodable_versions_are_limited() -> None:
    registry = Registry()
    errors = ObjectErrors(registry)
    for number in range(MOST + 1):
        meta = ObjectMeta(name=f"p{number}", namespace="ns", uid=f"u{number}", resource_version="1")
        errors.undecodable(PODS, Undecodable(meta, "why"))
    counted = f'kcm_undecodable_objects_total{{resource="pods"}} {MOST + 1}'.encode()
    assert counted in registry.expose()
    again = ObjectMeta(name="p0", namespace="ns", uid="u0", resource_version="1")
    errors.undecodable(PODS, Undecodable(again, "why"))
    assert counted not in registry.expose(), "the first was forgotten, and is counted again"


def internal_error() -> dict[str, Any]:
    return event("ERROR", json.loads(status(500, "InternalError").body))


REFUSALS: dict[str, Any] = {
    "an event": [internal_error()],
    "an event after a bookmark": [bookmark(5), internal_error()],
    "an answer": status(500, "InternalError"),
    "another answer": status(400, "BadRequest"),
}


@pytest.mark.parametrize("way", REFUSALS)
def test_a_version_that_the_server_fails_to_watch_is_listed_anew(way: str) -> None:
    """client-go lists again after the first such error; kcm first goes on from where it was."""
    first = [added("a", 1), bookmark(5, last=True)]
    again = [added("c", 8), bookmark(9, last=True), HOLD]
    server = Server([first, *[REFUSALS[way]] * PATIENCE, again])
    assert follow(server).notified == ["+ a@1", "- a@1", "+ c@8"]
    assert [asked.get("resourceVersion", "") for asked in server.asked] == ["", *["5"] * PATIENCE, ""]


@pytest.mark.parametrize(
    "outage",
    [
        status(503, "ServiceUnavailable"),
        status(504, "Timeout"),
        status(502, ""),
        status(403, "Forbidden"),
        status(429, "TooManyRequests"),
        LOST,
    ],
    ids=["503", "504", "502", "403", "429", "lost"],
)
def test_an_outage_does_not_make_a_list_necessary(outage: Any) -> None:
    first = [added("a", 1), bookmark(5, last=True)]
    server = Server([first, *[outage] * 2 * PATIENCE, [modified("a", 6), HOLD]])
    assert follow(server, 300).notified == ["+ a@1", "~ a@6"]
    assert {asked.get("resourceVersion") for asked in server.asked[1:]} == {"5"}


@pytest.mark.parametrize(
    "answer",
    [status(403, "Forbidden"), status(404, "NotFound"), status(502, ""), status(503, "ServiceUnavailable")],
    ids=["403", "404", "502", "503"],
)
def test_where_only_watches_fail_lists_show_the_changes(answer: Any) -> None:
    """As with a role that lacks the verb watch, or behind a proxy that does not pass streams."""
    lists = [page(number, pod("a", number)) for number in range(7, 60)]
    server = Server([[added("a", 1), bookmark(5, last=True)], *[answer] * 1000], lists)
    seen = follow(server, 1200).notified
    assert seen[:4] == ["+ a@1", "~ a@7", "~ a@8", "~ a@9"]
    verbs = [asked["verb"] for asked in server.asked]
    assert verbs.index("list") == 1 + MOST_FAILURES
    assert 5 <= verbs.count("list") <= 25


def test_a_kind_that_may_be_listed_and_not_watched_is_listed() -> None:
    server = Server([status(403, "Forbidden")] * 1000, [page(number, pod("a", number)) for number in range(7, 60)])
    assert follow(server, 60).notified[:1] == ["+ a@7"]


def test_lists_between_failing_watches_end_with_the_first_working_watch() -> None:
    first, works = [added("a", 1), bookmark(5, last=True)], [modified("a", 9), HOLD]
    server = Server([first, *[status(403, "Forbidden")] * MOST_FAILURES, works], [page(8, pod("a", 8))])
    assert follow(server, 1200).notified == ["+ a@1", "~ a@8", "~ a@9"]
    assert [asked["verb"] for asked in server.asked].count("list") == 1


@pytest.mark.parametrize(
    "answer",
    [status(403, "Forbidden"), status(429, "TooManyRequests"), status(500, "InternalError"), status(504, "Timeout")],
    ids=["403", "429", "500", "504"],
)
def test_where_no_list_works_watches_are_tried_between_lists(answer: Any) -> None:
    """As with a role that lacks the verb list, or with more objects than a server can list after an outage."""
    first, works = [added("a", 1), bookmark(5, last=True)], [modified("a", 9), HOLD]
    failures = [status(503, "ServiceUnavailable")] * (MOST_FAILURES + 4)
    server = Server([first, *failures, works], [answer] * 1000)
    assert follow(server, 2400).notified == ["+ a@1", "~ a@9"]
    verbs = [verb for verb, _ in itertools.groupby(asked["verb"] for asked in server.asked)]
    assert verbs == ["watch", *["list", "watch"] * 5]


def test_an_outage_after_a_refusal_does_not_make_a_list_necessary() -> None:
    first = [added("a", 1), bookmark(5, last=True), expired()]
    again = [added("a", 1), bookmark(7, last=True), LOST]
    server = Server([first, again, *[LOST] * PATIENCE, [modified("a", 8), HOLD]])
    assert follow(server, 300).notified == ["+ a@1", "~ a@8"]
    assert {asked.get("resourceVersion") for asked in server.asked[2:]} == {"7"}


def test_errors_between_changes_do_not_add_up() -> None:
    first = [added("a", 1), bookmark(5, last=True), internal_error()]
    changes = [[modified("a", version), internal_error()] for version in (6, 7, 8)]
    server = Server([first, *changes, [modified("a", 9), HOLD]])
    assert follow(server, 300).notified == ["+ a@1", "~ a@6", "~ a@7", "~ a@8", "~ a@9"]


@pytest.mark.parametrize(
    "answer",
    [status(500, "InternalError"), status(410, "Expired"), [expired()], [b"oops\n"]],
    ids=["500", "410", "an event of 410", "not JSON"],
)
def test_a_kind_that_cannot_be_watched_is_listed_less_and_less_often(answer: Any) -> None:
    """As by client-go: once or twice a minute at last."""
    server = Server([status(422, "Invalid"), *[answer] * 1000], [page(9, pod("a", 1))] * 1000)
    follow(server, 600)
    lists = sum(asked["verb"] == "list" for asked in server.asked)
    assert 5 <= lists <= 25


def test_a_version_that_has_expired_after_a_working_watch_is_listed_at_once() -> None:
    """Whatever the delays were before."""
    works = [bookmark(9), expired()]
    server = Server([status(422, "Invalid"), *[status(410, "Expired")] * 6, works, [HOLD]], [page(8)] * 9)
    follow(server, 290)
    assert len(server.at) == 9
    assert server.at[-1] - server.at[-2] < 10


def test_an_expired_continue_token_is_followed_by_one_list_of_all() -> None:
    pages = [page(7, pod("a", 1), next_page="more"), status(410, "Expired"), page(8, pod("b", 2), pod("c", 3))]
    server = Server([status(422, "Invalid"), [HOLD]], pages)
    seen = follow(server)
    assert (seen.notified, seen.version) == (["+ b@2", "+ c@3"], "8")
    assert [asked["verb"] for asked in server.asked] == ["watch", *["list"] * 3, "watch"]
    assert "continue" not in server.asked[3] and "limit" not in server.asked[3]
    assert server.asked[3]["resourceVersion"] == "0"
