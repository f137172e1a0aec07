"""The causes as JSON: what is written is read, and only what was asked for."""

from datetime import UTC, datetime

import msgspec
import pytest

from kcm_cli.component.clock import LoopClock
from kcm_cli.runtime.cause_document import About, CausesDocument, document
from kcm_cli.runtime.cause_ring import CauseRing, Later, Wrote
from kcm_cli.runtime.causes import PASS, RESYNC, Causes, Change, Tick, Work


def ring() -> CauseRing:
    made = CauseRing(LoopClock(datetime(2026, 1, 1, tzinfo=UTC)))
    made.shift = 0.0
    change = Change("MODIFIED", "apps", "Deployment", "n/web", "u", "1", 10.0)
    for key, cause, at in (("n/web", change, 10.0), ("", Tick(PASS), 20.0), ("n/other", Tick(RESYNC), 30.0)):
        made.note(
            Work(controller="c", queue="q", kind="ReplicaSet", key=key, at=at, causes=Causes([cause]), note=made.note)
        )
    made.put(Wrote(1, 11.0, 0.1, "c", "create", "", "pods", "Pod", "n/a", 201, "p", "2", "too few"))
    made.saw(Causes([Change("DELETED", "", "Pod", "n/z", "z", "9", 5.0)]))
    made.put(Later(1, 12.0, 5.0, "Forbidden"))
    made.put(Wrote(2, 21.0, 0.1, "c", "delete", "", "pods", "", "m/b", 404))
    return made


@pytest.mark.parametrize(
    ("about", "entries"),
    [
        (About(), ["sync 1", "sync 2", "sync 3", "write 1", "saw 0", "later 1", "write 2"]),
        (About(kind="deployment"), ["sync 1", "later 1"]),
        (About(kind="pod", name="a"), ["sync 1", "write 1", "later 1"]),
        (About(kind="Pods", name="b", namespace="m"), ["sync 2", "write 2"]),
        (About(namespace="elsewhere"), []),
        (About(since=21.0), ["sync 3", "write 2"]),
        (About(kind="pod", name="z"), ["saw 0"]),
        (About(after=5), ["later 1", "write 2"]),
    ],
)
def test_what_is_asked_for(about: About, entries: list[str]) -> None:
    answer = msgspec.json.decode(document(ring().snapshot(), about, 40.0), type=CausesDocument)
    found = []
    for entry in answer.entries:
        word = {"SyncDocument": "sync", "WroteDocument": "write", "LaterDocument": "later", "SawDocument": "saw"}[
            type(entry).__name__
        ]
        found.append(f"{word} {getattr(entry, 'number', getattr(entry, 'sync', 0))}")
    assert found == entries
    assert (answer.now, answer.total, answer.forgotten) == (40.0, 7, 0)


def test_times_are_unix_times_that_no_step_of_the_wall_clock_moves() -> None:
    made = ring()
    made.shift = 1000.0
    answer = msgspec.json.decode(document(made.snapshot(), About(since=1021.0), 1040.0), type=CausesDocument)
    assert [entry.at for entry in answer.entries] == [1030.0, 1021.0]
