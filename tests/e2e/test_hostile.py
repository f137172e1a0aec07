"""A small ``make hostile``: a few works beside a few odd objects, behind a proxy that spoils what passes."""

from pathlib import Path

import pytest

from tests.hostile.run import AFTER, FAULTS, Options, on_sandbox
from tests.hostile.work import deployment, garbage, job, quota, service

pytestmark = pytest.mark.e2e


def test_ordinary_requests_succeed_beside_hostile_ones(tmp_path: Path) -> None:
    works = (deployment, garbage, job, quota, service)
    report = on_sandbox(tmp_path, Options(seed=3, objects=60, seconds=3.0, rounds=1, works=works))
    assert not report.failed
    assert report.undecodable
    assert len(report.accepted) > 25, "kinds"
    assert {"rewritten", "stream cut"} <= report.spoilt.keys()
    assert set(report.times[FAULTS]) == set(report.times[AFTER]) == {work.__name__ for work in works}
