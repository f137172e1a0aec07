from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from kcm_cli.api.batch import JOBS, Job
from kcm_cli.controllers.ttl_after_finished.plan import FinishTimeUnknown, expires, plan
from kcm_cli.machinery import codec
from kcm_cli.machinery.times import parse_time

ENDED = "2026-01-01T03:00:00Z"


def job(end: str = "Complete", *, ttl: int | None = 60, since: str | None = ENDED, **metadata: Any) -> Job:
    condition = {"type": end, "status": "True"} | ({} if since is None else {"lastTransitionTime": since})
    doc = {
        "metadata": {"name": "work", "namespace": "ns", **metadata},
        "spec": {} if ttl is None else {"ttlSecondsAfterFinished": ttl},
        "status": {"conditions": [{"type": "SuccessCriteriaMet", "status": "True"}, *([condition] if end else [])]},
    }
    return JOBS.decode(codec.encode(doc))


@pytest.mark.parametrize(
    ("found", "minute"),
    [
        pytest.param(job(), 1, id="complete"),
        pytest.param(job("Failed"), 1, id="failed"),
        pytest.param(job(ttl=0), 0, id="at once"),
        pytest.param(job(""), None, id="running"),
        pytest.param(job(ttl=None), None, id="for ever"),
        pytest.param(job(deletionTimestamp=ENDED), None, id="being deleted"),
    ],
)
def test_expiry(found: Job, minute: int | None) -> None:
    assert plan(found, parse_time(ENDED)) == (None if minute is None else 60.0 * minute)
    assert plan(found, parse_time(ENDED) + timedelta(minutes=2)) == (None if minute is None else 60.0 * minute - 120.0)
    assert expires(found) == (minute is not None)


@pytest.mark.parametrize("ttl", [2**31 - 1, 2**63 - 1])
@pytest.mark.parametrize("since", [ENDED, "9999-12-31T23:59:59Z"])
def test_a_time_beyond_the_calendar_is_limited(ttl: int, since: str) -> None:
    expected = float(ttl) if since == ENDED and ttl < 2**32 else None
    found = plan(job(ttl=ttl, since=since), parse_time(ENDED))
    two_centuries_s = (datetime(2300, 1, 1, tzinfo=UTC) - parse_time(ENDED)).total_seconds()
    assert found == expected if expected else found is not None and found > two_centuries_s


def test_a_job_without_a_completion_time() -> None:
    with pytest.raises(FinishTimeUnknown, match="unable to find the time when the Job ns/work finished"):
        plan(job(since=None), parse_time(ENDED))
