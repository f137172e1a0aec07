import pytest

from kcm_cli.runtime.leader.record import Claim, Held, Observation, Record, decide, observe, released

MINE = Record("me", 15, "now", "now")


def theirs(holder: str = "you", **fields: object) -> Record:
    return Record(**{"holder": holder, "duration_s": 10, "acquire_time": "a", "renew_time": "r", **fields})


@pytest.mark.parametrize(
    ("record", "age_s", "expected"),
    [
        pytest.param(theirs(), 9.9, Held("you"), id="held"),
        pytest.param(
            theirs(), 10.0, Claim(Record("me", 15, "now", "now", 1), renews=False), id="expired after its own duration"
        ),
        pytest.param(
            theirs("", transitions=4), 0.0, Claim(Record("me", 15, "now", "now", 5), renews=False), id="released"
        ),
        pytest.param(
            theirs("me", transitions=4),
            99.0,
            Claim(Record("me", 15, "a", "now", 4), renews=True),
            id="our own, however old",
        ),
    ],
)
def test_decision(record: Record, age_s: float, expected: Held | Claim) -> None:
    assert decide(Observation(record, 100.0), MINE, 100.0 + age_s) == expected


def test_an_unchanged_record_keeps_the_time_it_was_first_seen() -> None:
    first = observe(None, theirs(), 1.0)
    assert observe(first, theirs(), 7.0).at == 1.0
    assert observe(first, theirs(renew_time="later"), 7.0).at == 7.0


def test_release_leaves_no_holder_and_keeps_the_count() -> None:
    assert released(theirs("me", transitions=3), "t") == Record("", 1, "t", "t", 3)
