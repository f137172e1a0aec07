"""Sequences of Events, and what client-go v1.36 writes of them.

The sequences and the writes in sequences.json are data that a Go program recorded from client-go's EventCorrelator
(tools/record): ``about`` is the object, its field, the type, the reason and the message; ``lost`` says that all Events
were deleted from the server before this one; a write is its verb, the index of the Event whose name it carries, count,
first and last time, message, and whether it names a reporter.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from kcm_cli.planning.actions import EventRef, Notice
from kcm_cli.runtime.events.correlate import CACHE, Correlator, Decision, Emitted, Source
from kcm_cli.runtime.events.counted import event_doc

SEQUENCES = json.loads((Path(__file__).parent / "sequences.json").read_text())
SOURCE = Source("c")


def emitted(index: int, name: str, field: str, type_: str, reason: str, message: str, at: float = 0.0) -> Emitted:
    ref = EventRef("v1", "Pod", "ns", name, "u", field_path=field)
    return Emitted(SOURCE, Notice(ref, type_, reason, message), f"e{index}", str(at))


@pytest.mark.parametrize("sequence", SEQUENCES, ids=lambda sequence: str(sequence["name"]))
def test_writes_equal_those_of_client_go(sequence: dict[str, Any]) -> None:
    correlator, stored = Correlator(), set[str]()
    for index, event in enumerate(sequence["events"]):
        given = emitted(index, *event["about"], at=event["at"])
        decision = correlator.decide(given, event["at"])
        if event.get("lost"):
            stored.clear()
        writes = [] if decision is None else as_writes(given, decision, stored)
        assert writes == event.get("writes", []), index


def as_writes(event: Emitted, decision: Decision, stored: set[str]) -> list[list[object]]:
    """What CountedEvents sends to a server that has these Events."""
    doc: dict[str, Any] = event_doc(event, decision)
    first, last = float(doc["firstTimestamp"]), float(doc["lastTimestamp"])
    body = [doc["count"], first, last, doc["message"], bool(doc["reportingComponent"])]
    index = int(decision.name[1:])
    verbs = ["create"] if decision.count == 1 else ["patch"]
    if decision.count > 1 and decision.name not in stored:
        verbs.append("create")
    stored.add(decision.name)
    return [[verb, index, *body] for verb in verbs]


def test_the_nine_messages_of_a_full_group_keep_their_own_count() -> None:
    """client-go forgets one message at random each time; whichever it is, the others stay apart."""
    correlator = Correlator()
    for index in range(10):
        correlator.decide(emitted(index, "a", "", "Normal", "R", f"m{index}"), float(index))
    again = correlator.decide(emitted(10, "a", "", "Normal", "R", "m3"), 10.0)
    assert again is not None and (again.name, again.count, again.combined) == ("e3", 2, False)


def test_sources_are_counted_separately() -> None:
    correlator = Correlator()
    first = emitted(0, "a", "", "Normal", "R", "m")
    other = Emitted(Source("c", "node"), first.notice, "e1", "1")
    assert [(d.count if (d := correlator.decide(e, 0.0)) else 0) for e in (first, other)] == [1, 1]


def test_the_least_recently_used_entry_is_evicted() -> None:
    correlator = Correlator()
    for index in range(CACHE + 1):
        correlator.decide(emitted(index, f"a{index}", "", "Normal", "R", "m"), 0.0)
    known, forgotten = (correlator.decide(emitted(9, f"a{i}", "", "Normal", "R", "m"), 1.0) for i in (CACHE, 0))
    assert known is not None and known.count == 2
    assert forgotten is not None and forgotten.count == 1
