"""Jobs and CronJobs beyond their tables (``kinds/test_job.py``): immutable fields, consistent statuses, schedules."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcm_cli.sandbox.apiserver.kinds.batch import cronjob
from kcm_cli.sandbox.apiserver.kinds.batch.job_policies import IndexesError, count_indexes
from tests.unit.sandbox.apiserver.strategy import kit

_START, _END = "2026-01-01T00:00:00Z", "2026-01-01T00:01:00Z"


def test_a_template_is_fixed_while_the_job_runs_and_its_resources_are_free_while_it_is_suspended():
    running = kit.stored(kit.JOBS, kit.job())
    other = {"requests": {"cpu": "1"}}
    path = "spec__template__spec__containers__0__resources"
    found = kit.update_problems(kit.JOBS, running, kit.changed(running, **{path: other}))
    assert [text.partition(": ")[0] for text in found] == ["spec.template"]
    assert found[0].endswith(": field is immutable") and '"Requests":{"cpu":"1"}' in found[0]
    suspended = kit.stored(kit.JOBS, kit.job(suspend=True))
    assert kit.update_problems(kit.JOBS, suspended, kit.changed(suspended, **{path: other})) == []


@pytest.mark.parametrize(
    ("spec", "parallelism", "expected"),
    [
        pytest.param(3, 3, [], id="both"),
        pytest.param(
            3,
            2,
            ["spec.completions: Invalid value: 3: can only be modified in tandem with spec.parallelism"],
            id="one",
        ),
    ],
)
def test_indexed_jobs_grow_in_tandem(spec, parallelism, expected):
    old = kit.stored(kit.JOBS, kit.job(completionMode="Indexed", completions=2, parallelism=2))
    new = kit.changed(old, spec__completions=spec, spec__parallelism=parallelism)
    assert kit.update_problems(kit.JOBS, old, new) == expected


def _conditions(*names):
    return [{"type": name, "status": "True"} for name in names]


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        pytest.param(
            {"active": 1, "ready": 2}, ["status.ready: Invalid value: 2: cannot set more ready pods than active"]
        ),
        pytest.param(
            {"conditions": _conditions("Complete", "SuccessCriteriaMet"), "startTime": _START},
            ["status.completionTime: Required value: completionTime is required for Complete jobs"],
        ),
        pytest.param(
            {"conditions": _conditions("Failed"), "startTime": _START},
            [
                "status.conditions: Invalid value: cannot set Failed=True condition without the "
                "FailureTarget=true condition"
            ],
        ),
        pytest.param(
            {
                "conditions": _conditions("SuccessCriteriaMet", "Complete"),
                "startTime": _START,
                "completionTime": _END,
            },
            [],
        ),
        pytest.param({"failed": 0}, ["status.failed: Invalid value: 0: cannot decrease the failed counter"]),
    ],
    ids=["ready", "no-time", "no-target", "complete", "fewer-failed"],
)
def test_statuses(status, expected):
    old = kit.stored(kit.JOBS, kit.job())
    old["status"] = {"failed": 1} if "failed" in status else {}
    found = kit.rules(kit.JOBS).validate_status({**old, "status": status}, old)
    assert [f"{error.field}: {error.message}" for error in found] == expected


@pytest.mark.parametrize("schedule", ["*/5 1-5 1,15 jan-mar mon", "@hourly", "@every 5m"])
def test_schedules(schedule):
    assert cronjob.schedule_problem(schedule) == ""


@given(st.sets(st.integers(0, 200), min_size=1))
def test_indexes_are_counted_however_they_are_written(indexes):
    text = ",".join(str(index) for index in sorted(indexes))
    assert count_indexes(text, 201) == len(indexes)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param("3,2", "non-increasing order, previous: 3, current: 2", id="order"),
        pytest.param("9", 'too large index: "9"', id="large"),
        pytest.param("a", 'cannot convert string to integer for index: "a"', id="text"),
    ],
)
def test_bad_indexes(text, problem):
    with pytest.raises(IndexesError) as caught:
        count_indexes(text, 9)
    assert str(caught.value) == problem
