"""When the usage of a quota may be lowered."""

import pytest

from kcm_cli.api.core import ResourceQuota
from kcm_cli.controllers.resourcequota.pace import PACE_S, REQUEST_S, Pace
from kcm_cli.machinery.meta import ObjectMeta


class At:
    """A clock that shows a given time."""

    def __init__(self) -> None:
        self.seconds = 1000.0

    def monotonic(self) -> float:
        return self.seconds


@pytest.fixture
def clock():
    return At()


@pytest.fixture
def pace(clock):
    return Pace(clock)


def meta(version, namespace="ns"):
    return ObjectMeta(name="q", namespace=namespace, resource_version=str(version))


def test_a_quota_that_was_never_recounted_or_charged_may_be_lowered_at_once(pace):
    assert pace.recount_s("ns/q") < 0
    assert pace.lowering_s("ns/q") < 0


@pytest.mark.parametrize(("passed", "recount", "lowering"), [(0, PACE_S, REQUEST_S), (1.5, -0.5, 58.5), (61, -60, -1)])
def test_recounts_and_charges_make_it_wait(pace, clock, passed, recount, lowering):
    pace.recounted("ns/q")
    pace.charged("ns/q")
    clock.seconds += passed
    assert (pace.recount_s("ns/q"), pace.lowering_s("ns/q")) == (recount, lowering)
    assert pace.recount_s("ns/other") < 0
    pace.forget("ns/q")
    assert (pace.recount_s("ns/q"), pace.lowering_s("ns/q")) == (float("-inf"), float("-inf"))


def test_a_quota_is_behind_the_last_release_of_its_namespace(pace):
    pace.released(meta(9))
    pace.released(meta(7))
    behind = [pace.is_behind(ResourceQuota(metadata=meta(version))) for version in (8, 9, 10)]
    assert behind == [True, False, False]
    assert not pace.is_behind(ResourceQuota(metadata=meta(1, "other")))
    pace.forget_namespace("ns")
    assert not pace.is_behind(ResourceQuota(metadata=meta(1)))
