"""The writer of Events, with lost answers, errors and invalid responses."""

import asyncio
import json
import logging
import random
from collections.abc import Callable
from typing import Any

import pytest

from kcm_cli.component import virtual
from kcm_cli.component.clock import LoopClock
from kcm_cli.planning.actions import EventRef, Notice
from kcm_cli.rest.transport import Request, Response, TransportError
from kcm_cli.runtime.events import EventNames, EventWriter
from kcm_cli.runtime.events.recorder import QUEUE
from tests.kit.faults import Answering

POD = EventRef("v1", "Pod", "ns", "web", "u")
ROLE = EventRef("rbac.authorization.k8s.io/v1", "ClusterRole", "", "system:admin", "u")


class Server(Answering):
    """Keeps Events by name; ``trouble`` may answer first, or raise once a request has been carried out."""

    def __init__(self, trouble: Callable[[int, bool], Response | None]) -> None:
        self.events: dict[str, dict[str, Any]] = {}
        self.seen: list[str] = []
        self._trouble = trouble

    async def send(self, request: Request) -> Response:
        number = len(self.seen)
        self.seen.append(request.method)
        refused = self._trouble(number, False)
        if refused is not None:
            return refused
        body = json.loads(request.body or b"{}")
        name = body["metadata"]["name"] if request.method == "POST" else request.path.rpartition("/")[2]
        if (name in self.events) == (request.method == "POST"):
            code, reason = (409, "AlreadyExists") if request.method == "POST" else (404, "NotFound")
            return answer(code, {"kind": "Status", "code": code, "reason": reason, "message": reason})
        event = self.events.setdefault(name, {})
        event.update(body)
        self._trouble(number, True)
        return answer(200, event)


def answer(status: int, doc: dict[str, Any]) -> Response:
    return Response(status, {"content-type": "application/json"}, json.dumps(doc).encode())


def played(trouble: Callable[[int, bool], Response | None], *notices: Notice) -> Server:
    """What a server has after these notices and ten virtual minutes."""
    server = Server(trouble)

    async def play() -> None:
        clock = LoopClock()
        client = server.client(clock)
        writer = EventWriter(client, EventNames(clock), clock, random.Random(1))
        task = asyncio.create_task(writer.run())
        recorder = writer.recorder("c")
        for notice in notices:
            recorder.emit(notice)
        await clock.sleep(600.0)
        assert not task.done()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    virtual.run(play())
    return server


def fine(number: int, carried_out: bool) -> Response | None:
    return None


def lost(number: int, carried_out: bool) -> Response | None:
    if carried_out and number == 0:
        raise TransportError("the answer was lost")
    return None


def html(number: int, carried_out: bool) -> Response | None:
    return Response(200, {"content-type": "application/json"}, b"<html>") if number == 0 and not carried_out else None


def forbidden(number: int, carried_out: bool) -> Response | None:
    return answer(403, {"kind": "Status", "code": 403, "reason": "Forbidden", "message": "no"}) if number == 0 else None


def down(number: int, carried_out: bool) -> Response | None:
    raise TransportError("nobody listens")


NOTICE = Notice(POD, "Normal", "R", "m")


def test_a_repeated_event_raises_the_count() -> None:
    server = played(fine, NOTICE, NOTICE, NOTICE)
    assert [event["count"] for event in server.events.values()] == [3]
    assert server.seen == ["POST", "PATCH", "PATCH"]


def test_a_lost_answer_creates_no_second_event() -> None:
    server = played(lost, NOTICE)
    assert server.seen == ["POST", "POST"]
    assert len(server.events) == 1


def test_an_invalid_response_is_retried() -> None:
    assert len(played(html, NOTICE).events) == 1


def test_an_unwritable_event_does_not_affect_the_next(caplog: pytest.LogCaptureFixture) -> None:
    def broken(number: int, carried_out: bool) -> Response | None:
        if number == 0:
            raise RuntimeError("a bug")
        return None

    server = played(broken, NOTICE, Notice(POD, "Normal", "Other", "m"))
    assert [event["reason"] for event in server.events.values()] == ["Other"]
    assert "a bug" in caplog.text


def test_refused_events_are_counted_and_not_retried() -> None:
    server = played(forbidden, NOTICE, NOTICE)
    assert server.seen == ["POST", "PATCH", "POST"]
    assert [event["count"] for event in server.events.values()] == [2]


def test_retries_end_if_the_server_is_down(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR):
        server = played(down, NOTICE)
    assert len(server.seen) == 12
    assert caplog.records[-1].message == "Unable to write event (retry limit exceeded!)"


def test_events_of_rbac_objects_have_valid_names() -> None:
    (name,) = played(fine, Notice(ROLE, "Warning", "R", "m")).events
    assert ":" not in name


def test_long_messages_are_not_truncated() -> None:
    (event,) = played(fine, Notice(POD, "Normal", "R", "x" * 3000)).events.values()
    assert len(event["message"]) == 3000


async def test_a_flush_waits_for_queued_events() -> None:
    server = Server(fine)

    async def play() -> None:
        clock = LoopClock()
        writer = EventWriter(
            server.client(clock),
            EventNames(clock),
            clock,
            random.Random(1),
        )
        recorder = writer.recorder("c")
        recorder.emit(NOTICE)
        task = asyncio.create_task(writer.run())
        assert server.events == {}
        await writer.flush()
        assert len(server.events) == 1
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    await play()


def test_events_beyond_the_queue_are_dropped_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR):
        server = played(fine, *[Notice(POD, "Normal", f"R{number}", "m") for number in range(QUEUE + 3)])
    assert caplog.text.count("too many queued events") == 3
    assert server.seen != []


async def test_a_writer_without_events_costs_one_task() -> None:
    async def play() -> int:
        clock = LoopClock()
        client = Server(fine).client(clock)
        task = asyncio.create_task(EventWriter(client, EventNames(clock), clock, random.Random(1)).run())
        before = len(asyncio.all_tasks())
        await clock.sleep(1.0)
        tasks = len(asyncio.all_tasks()) - before
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        return tasks

    assert await play() == 0
