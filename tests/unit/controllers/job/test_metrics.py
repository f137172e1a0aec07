"""What the metrics of Jobs show of a status that was written."""

import pytest

from kcm_cli.component.metrics import Registry
from kcm_cli.controllers.job.metrics import JobMetrics

PODS = "job_controller_job_pods_finished_total"
INDEXES = "job_controller_job_finished_indexes_total"


@pytest.mark.parametrize(
    ("spec", "before", "after", "shown"),
    [
        pytest.param(
            {},
            {},
            {"active": 1},
            {f'{PODS}{{completion_mode="NonIndexed",result="{result}"}} 0' for result in ("failed", "succeeded")},
            id="nothing has ended",
        ),
        pytest.param(
            {"completionMode": "Indexed", "completions": 2},
            {"succeeded": 1, "completedIndexes": "0"},
            {"succeeded": 2, "completedIndexes": "0,1", "failed": 1},
            {
                f'{PODS}{{completion_mode="Indexed",result="failed"}} 1',
                f'{PODS}{{completion_mode="Indexed",result="succeeded"}} 1',
                f'{INDEXES}{{backoffLimit="global",status="succeeded"}} 1',
            },
            id="an index",
        ),
        pytest.param(
            {"completionMode": "Indexed", "completions": 1},
            {"succeeded": 2, "completedIndexes": "0,1"},
            {"succeeded": 1, "completedIndexes": "0"},
            {
                f'{PODS}{{completion_mode="Indexed",result="failed"}} 0',
                f'{PODS}{{completion_mode="Indexed",result="succeeded"}} 0',
                f'{INDEXES}{{backoffLimit="global",status="succeeded"}} 0',
            },
            id="fewer completions",
        ),
    ],
)
def test_pods_and_indexes_that_ended_with_a_status(make_job, spec, before, after, shown):
    registry = Registry()
    metrics = JobMetrics(registry)
    metrics.status_written(make_job(**spec), make_job(before, **spec).status, make_job(after, **spec).status)
    lines = registry.expose().decode().splitlines()
    assert {line for line in lines if line.startswith((PODS, INDEXES))} == shown
