"""The token bucket: burst, refill, order, cancellation."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcm_cli.rest.ratelimit import DEFAULT_BURST, DEFAULT_QPS, TokenBucket, Unlimited, faster, limiter


def test_a_burst_passes_at_once_and_then_the_rate_applies():
    bucket = TokenBucket(10.0, 3)
    waits = [bucket.reserve(100.0) for _ in range(6)]
    assert waits == pytest.approx([0, 0, 0, 0.1, 0.2, 0.3])


def test_tokens_are_refilled_up_to_the_burst():
    bucket = TokenBucket(2.0, 2)
    assert [bucket.reserve(0.0) for _ in range(2)] == [0, 0]
    assert [bucket.reserve(60.0) for _ in range(3)] == pytest.approx([0, 0, 0.5])


def test_a_token_is_taken_only_if_available():
    bucket = TokenBucket(1.0, 1)
    assert bucket.try_take(0.0)
    assert not bucket.try_take(0.5)
    assert bucket.try_take(1.5)


def test_a_cancelled_reservation_returns_its_token():
    bucket = TokenBucket(1.0, 1)
    bucket.reserve(0.0)
    assert bucket.reserve(0.0) == pytest.approx(1.0)
    bucket.cancel(0.0)
    assert bucket.reserve(0.0) == pytest.approx(1.0)


def test_a_stopped_clock_refills_nothing():
    bucket = TokenBucket(1.0, 1)
    bucket.reserve(5.0)
    assert bucket.reserve(4.0) > 0


@pytest.mark.parametrize(
    ("qps", "burst", "kind"), [(-1, 5, Unlimited), (20.0, 30, TokenBucket)], ids=["no limit", "limited"]
)
def test_negative_qps_means_no_limit(qps, burst, kind):
    assert isinstance(limiter(qps, burst), kind)


def test_zero_means_the_default_of_client_go():
    made = limiter(0, 0)
    assert isinstance(made, TokenBucket)
    assert (made.qps, made.burst) == (DEFAULT_QPS, DEFAULT_BURST)


@pytest.mark.parametrize(("qps", "burst"), [(0, 1), (float("nan"), 1), (1, 0)], ids=["qps", "nan", "burst"])
def test_a_bucket_without_tokens_is_refused(qps, burst):
    with pytest.raises(ValueError, match="must be"):
        TokenBucket(qps, burst)


@given(
    qps=st.floats(0.5, 5000),
    burst=st.integers(1, 500),
    gaps=st.lists(st.floats(0, 2), min_size=1, max_size=200),
)
def test_no_more_than_burst_plus_rate_in_any_span(qps, burst, gaps):
    bucket, now, sends = TokenBucket(qps, burst), 0.0, []
    for gap in gaps:
        now += gap
        sends.append(now + bucket.reserve(now))
    assert sends == sorted(sends)
    for index, start in enumerate(sends):
        for later in range(index, len(sends)):
            allowed = burst + (sends[later] - start) * qps
            assert later - index + 1 <= allowed + 1e-6 * len(sends) + 1e-3


def test_a_faster_limiter_is_separate():
    known = TokenBucket(2.0, 3)
    made = faster(known, 20, 100)
    assert isinstance(made, TokenBucket)
    assert (made.qps, made.burst) == (40.0, 300)
    assert [made.reserve(0.0) for _ in range(300)] == [0.0] * 300
    assert known.reserve(0.0) == 0.0
    assert isinstance(faster(Unlimited(), 20, 100), Unlimited)
