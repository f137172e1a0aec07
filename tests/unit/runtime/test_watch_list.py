"""WatchLists that do not end: the initial set is listed instead, and no change is lost.

upstream: kubernetes/kubernetes#140890
"""

import itertools
import json
import logging
from typing import Any

import pytest

from kcm_cli.component.metrics import Registry
from kcm_cli.rest.transport import ConnectionLost, Response, TransportError, Unreachable
from kcm_cli.runtime.informer import MOST_ENDLESS, PATIENCE, Informer
from kcm_cli.runtime.object_errors import ObjectErrors
from kcm_cli.runtime.troubles import STALLED_S
from kcm_cli.runtime.watch_limits import INITIAL_OBJECTS, INITIAL_S
from tests.unit.runtime.test_informer import (
    HOLD,
    LOST,
    Server,
    added,
    bookmark,
    deleted,
    event,
    expired,
    follow,
    modified,
    page,
    status,
)


def marked(*annotations: tuple[str, str], version: str = "5") -> dict[str, Any]:
    return event("BOOKMARK", {"metadata": {"resourceVersion": version, "annotations": dict(annotations)}})


def failure(code: int, reason: str) -> dict[str, Any]:
    return event("ERROR", json.loads(status(code, reason).body))


WRONG = (marked(("k8s.io/initial-events-end", "false")), marked(("initial-events-end", "true")), bookmark(5))
ENDLESS: dict[str, list[Any]] = {
    "it ends": [added("a", 1)],
    "it ends empty": [],
    "it is silent": [added("a", 1), HOLD],
    "it is silent from the start": [HOLD],
    "another annotation": [added("a", 1), WRONG[1], HOLD],
    "another value": [added("a", 1), WRONG[0], HOLD],
    "no annotation, again and again": [added("a", 1), *itertools.repeat(bookmark(5), 200), HOLD],
    "a bookmark that cannot be decoded": [added("a", 1), event("BOOKMARK", {"metadata": {"annotations": [1]}}), HOLD],
    "changes after a bookmark without annotation": [added("a", 1), bookmark(5), added("b", 8), HOLD],
    "an error": [added("a", 1), failure(500, "InternalError")],
    "an error without a reason": [added("a", 1), event("ERROR", {})],
    "a refusal": [added("a", 1), failure(422, "Invalid")],
}


@pytest.mark.parametrize("way", ENDLESS)
def test_a_list_follows_a_watch_list_that_does_not_end(way: str) -> None:
    changes = [modified("a", 10), deleted("b", 11), added("c", 12), HOLD]
    server = Server([ENDLESS[way], changes], [page(9, pod_of("a", 7), pod_of("b", 8))])
    seen = follow(server, seconds=INITIAL_S + 30)
    assert seen.notified == ["+ a@7", "+ b@8", "~ a@10", "- b@11", "+ c@12"]
    assert (seen.known, seen.synced, seen.version) == ({"a": "10", "c": "12"}, True, "12")
    assert [asked["verb"] for asked in server.asked] == ["watch", "list", "watch"]
    assert server.asked[2]["resourceVersion"] == "9", "nothing is lost between list and watch"
    assert server.at[1] - server.at[0] <= INITIAL_S + 7, "soon"


def pod_of(name: str, version: int) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": "ns", "uid": f"uid-{name}", "resourceVersion": str(version)}}


BROKEN: dict[str, Any] = {
    "it breaks": [added("a", 1), LOST],
    "it is expired": [added("a", 1), expired()],
    "no events": [added("a", 1), b"<html>\n"],
    "it is not answered": ConnectionLost("connection lost"),
}


@pytest.mark.parametrize("way", BROKEN)
def test_after_several_broken_watch_lists_a_list_follows(way: str) -> None:
    server = Server([*[BROKEN[way]] * PATIENCE, [added("c", 12), HOLD]], [page(9, pod_of("a", 7))])
    seen = follow(server)
    assert (seen.notified, seen.version) == (["+ a@7", "+ c@12"], "12")
    assert [asked["verb"] for asked in server.asked] == [*["watch"] * PATIENCE, "list", "watch"]
    pauses = [later - earlier for earlier, later in itertools.pairwise(server.at[:PATIENCE])]
    assert min(pauses) > 0.5, "not at once"


def test_a_server_that_cannot_be_reached_gets_no_lists_for_that() -> None:
    refused = [Unreachable("refused") for _ in range(8)]
    server = Server([*refused, [added("a", 1), bookmark(5, last=True), HOLD]])
    assert follow(server, 600).notified == ["+ a@1"]
    assert {asked["verb"] for asked in server.asked} == {"watch"}


def test_a_server_whose_watch_lists_do_not_end_is_asked_for_lists_only() -> None:
    cycle = [[added("a", 1)], [expired()]]
    server = Server([*cycle * MOST_ENDLESS, [HOLD]], [page(9, pod_of("a", 7))] * (MOST_ENDLESS + 1))
    assert follow(server, 200).notified == ["+ a@7"]
    kinds = ["watch list" if "sendInitialEvents" in asked else asked["verb"] for asked in server.asked]
    assert kinds == [*["watch list", "list", "watch"] * MOST_ENDLESS, "list", "watch"]


def test_a_watch_list_that_ends_well_is_used_again() -> None:
    good = [added("a", 7), bookmark(9, last=True), expired()]
    server = Server(
        [[added("a", 1)], [expired()], good, [added("a", 7)], [expired()], [*good[:2], HOLD]], [page(9)] * 2
    )
    assert follow(server, 600).notified == ["+ a@7", "- a@7", "+ a@7"]
    assert sum("sendInitialEvents" in asked for asked in server.asked) == 4


def test_watch_lists_and_watches_that_always_end_at_once_back_off() -> None:
    server = Server([[] for _ in range(1000)], [page(9)] * 1000)
    follow(server, 60)
    assert 3 <= len(server.asked) <= 12


def test_a_long_watch_list_is_not_silent() -> None:
    """A hundred objects every four seconds, and an end after several minutes."""
    lines = [
        b"".join(json.dumps(added(f"p{n}-{m}", n + 1)).encode() + b"\n" for m in range(2 * INITIAL_OBJECTS))
        for n in range(60)
    ]
    server = Server([[*lines, bookmark(200, last=True), HOLD]])
    seen = follow(server, 140)
    assert (len(seen.known), len(server.asked)) == (60 * 2 * INITIAL_OBJECTS, 1)


def test_changes_do_not_keep_a_watch_list_open_that_does_not_end() -> None:
    changes = [modified("a", number) for number in range(10, 100)]
    server = Server([[added("a", 1), *changes, HOLD], [HOLD]], [page(9, pod_of("a", 7))])
    assert follow(server, 2 * INITIAL_S).notified == ["+ a@7"]


# -- reports


def test_an_informer_without_progress_is_reported_until_it_has_some(caplog: pytest.LogCaptureFixture) -> None:
    registry = Registry()
    refused = [status(403, "Forbidden")] * 9
    server = Server([[added("a", 1), bookmark(5, last=True), LOST], *refused, [bookmark(9), HOLD]])
    errors = ObjectErrors(registry)
    states: list[tuple[bool, bytes]] = []

    def stalled(informer: Informer[Any]) -> None:
        trouble = informer.trouble()
        states.append((trouble is not None, registry.expose()))

    follow(server, 100, stalled, errors)
    follow(Server([[added("a", 1), bookmark(5, last=True), LOST], *refused, [bookmark(9), HOLD]]), 600, stalled, errors)
    (before, shown), (after, shown_after) = states
    assert (before, after) == (True, False)
    assert b'kcm_informer_stalled{resource="pods"} 1' in shown
    assert b"kcm_informer_stalled{" not in shown_after
    stalls = [record for record in caplog.records if record.message.startswith("Informer makes no progress")]
    assert len(stalls) == 2, "once in each life"
    assert all(record.fields["since_s"] >= STALLED_S for record in stalls)  # type: ignore[attr-defined]


def levels(caplog: pytest.LogCaptureFixture, *steps: Any, pages: list[Response] | None = None) -> list[tuple[int, str]]:
    """What was logged, and how loudly, before the last step."""
    with caplog.at_level(1, "kcm_cli.runtime"):
        follow(Server([*steps, [bookmark(99, last=True), HOLD]], pages or []), 100)
    ends = ("Failed to watch", "Watch closed", "Watch failed")
    return [(record.levelno, record.message) for record in caplog.records if record.message.startswith(ends)]


def test_refused_lists_are_errors(caplog: pytest.LogCaptureFixture) -> None:
    assert levels(caplog, status(403, "Forbidden")) == [(logging.ERROR, "Failed to watch")]
    (record,) = [record for record in caplog.records if record.levelno == logging.ERROR]
    fields = record.fields  # type: ignore[attr-defined]
    assert (fields["reflector"], fields["type"]) == ("core/v1/pods", "*v1.Pod")
    assert fields["err"] == "failed to list *v1.Pod: Forbidden"


QUIET: dict[str, Any] = {
    "too old": status(410, "Expired"),
    "expired": [expired()],
    "cannot be reached": TransportError,
    "busy": status(429, "TooManyRequests"),
    "broken": [LOST],
}


@pytest.mark.parametrize("way", QUIET)
def test_watches_that_end_when_a_server_restarts_are_no_errors(caplog: pytest.LogCaptureFixture, way: str) -> None:
    step = Unreachable("refused") if QUIET[way] is TransportError else QUIET[way]
    found = levels(caplog, [added("a", 1), bookmark(5, last=True)], step)
    assert len(found) == 1
    assert found[0][0] < logging.INFO
