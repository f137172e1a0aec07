"""The ring is bounded in bytes, whatever is put into it."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcm_cli.component.clock import LoopClock
from kcm_cli.runtime.cause_ring import OVERHEAD, CauseRing, Entry, Later, Saw, Sync, Wrote, identity, refusal
from kcm_cli.runtime.causes import DELAY, MOST, Causes, Change, Due, Tick, Work

CLOCK = LoopClock(datetime(2026, 1, 1, tzinfo=UTC))
TEXTS = st.text(max_size=2000)
WRITES = st.builds(
    Wrote,
    st.integers(0, 9),
    st.just(1.0),
    st.just(0.1),
    *[TEXTS] * 6,
    st.integers(0, 599),
    st.just("u"),
    st.just("1"),
    *[TEXTS] * 3,
)
CHANGES = st.builds(Change, *[TEXTS] * 6, st.just(1.0), st.booleans())


def work(ring: CauseRing, *causes: Change | Tick | Due, key: str = "n/a") -> Work:
    return Work(controller="c", queue="q", kind="Pod", key=key, at=1.0, causes=Causes(list(causes)), note=ring.note)


@given(st.lists(st.one_of(WRITES, st.lists(CHANGES, max_size=MOST)), max_size=20), st.integers(0, 20_000))
def test_it_never_takes_more_than_its_bytes(added: list[Wrote | list[Change]], most: int) -> None:
    ring = CauseRing(CLOCK, most)
    for one in added:
        if isinstance(one, Wrote):
            ring.put(one)
        else:
            ring.note(work(ring, *one))
        taken = ring.snapshot()
        assert sum(len(entry) + OVERHEAD for entry in taken.encoded) == ring.size <= most
        assert max((len(entry) for entry in taken.encoded), default=0) < 40_000
        assert len(list(taken.entries())) == len(ring) and taken.forgotten + len(ring) == taken.total


def test_a_part_of_a_uid_is_no_uid() -> None:
    assert (identity("1" * 64), identity("1" * 65)) == ("1" * 64, "")


def test_syncs_have_a_number_once_they_do_something() -> None:
    ring = CauseRing(CLOCK)
    first = work(ring, Change("ADDED", "", "Pod", "n/a", "u", "1", 1.0))
    second = work(ring, Due(DELAY, first))
    assert len(ring) == 0
    assert (second.noted(), second.noted()) == (2, 2)
    found: list[Entry] = list(ring.snapshot().entries())
    assert [entry.number for entry in found if isinstance(entry, Sync)] == [1, 2]
    assert isinstance(found[1], Sync) and found[1].causes == (Tick(DELAY, 1),)


def test_entries_are_read_from_a_number_on() -> None:
    ring = CauseRing(CLOCK, 3 * (OVERHEAD + 40))
    for number in range(10):
        ring.put(Later(number, 1.0, 2.0, "Forbidden"))
    taken = ring.snapshot()
    assert [entry.sync for entry in taken.entries(8) if isinstance(entry, Later)] == [8, 9]
    assert 0 < taken.forgotten < 10 and len(list(taken.entries(0))) == 10 - taken.forgotten
    assert list(taken.entries(99)) == []


@pytest.mark.parametrize(
    ("message", "text"),
    [
        ('pods "a" is forbidden: exceeded quota: small, requested: pods=1', "Forbidden: exceeded quota small"),
        (
            'admission webhook "deny.example.com" denied the request: it says 1234',
            "Forbidden: admission webhook deny.example.com",
        ),
        (
            "pods \"a\" is forbidden: ValidatingAdmissionPolicy 'p.example' with binding 'b' denied request: no",
            "Forbidden: ValidatingAdmissionPolicy p.example",
        ),
        (
            'admission webhook "w" denied the request: p is forbidden: exceeded quota: x,',
            "Forbidden: admission webhook w",
        ),
        ('pods "a" is forbidden: exceeded quota: the password 1234, requested', "Forbidden"),
        ("the password is 1234", "Forbidden"),
        ("", "Forbidden"),
    ],
)
def test_of_a_refusal_only_names_are_kept(message: str, text: str) -> None:
    assert refusal("Forbidden", message) == text


def test_the_end_of_an_object_is_recorded_once() -> None:
    ring = CauseRing(CLOCK)
    versions = [("MODIFIED", "1", False), ("MODIFIED", "2", True), ("MODIFIED", "3", True), ("DELETED", "4", True)]
    for _ in range(3):
        for type_, version, deleting in versions:
            ring.saw(Causes([Tick(DELAY), Change(type_, "", "Pod", "n/a", "u", version, 1.0, deleting)]))
    found = [entry.change.version for entry in ring.snapshot().entries() if isinstance(entry, Saw)]
    assert found == ["2", "4"] and len(ring) == 2


def test_ends_that_are_remembered_are_bounded() -> None:
    ring = CauseRing(CLOCK, 10_000)
    for number in range(10_000):
        ring.saw(Causes([Change("DELETED", "", "Pod", "n/a", str(number), "1", 1.0)]))
    assert len(ring._seen) <= 4096 and ring.size <= 10_000
