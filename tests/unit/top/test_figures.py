"""Figures of a manager, and what happened between two readings."""

import pytest

from kcm_cli.machinery.errors import FormatError
from kcm_cli.top.figures import Figures, between, read

TEXT = """\
# HELP workqueue_depth [ALPHA] Current depth of workqueue
# TYPE workqueue_depth gauge
workqueue_depth{name="deployment"} %(depth)s
workqueue_depth{name="job"} 0
# TYPE workqueue_retries_total counter
workqueue_retries_total{name="deployment"} %(retries)s
# TYPE workqueue_longest_running_processor_seconds gauge
workqueue_longest_running_processor_seconds{name="deployment"} 2.5
# TYPE workqueue_queue_duration_seconds histogram
workqueue_queue_duration_seconds_bucket{name="deployment",le="1e-08"} 0
workqueue_queue_duration_seconds_bucket{name="deployment",le="+Inf"} %(done)s
workqueue_queue_duration_seconds_sum{name="deployment"} %(waited)s
workqueue_queue_duration_seconds_count{name="deployment"} %(done)s
# TYPE workqueue_work_duration_seconds histogram
workqueue_work_duration_seconds_sum{name="deployment"} %(worked)s
workqueue_work_duration_seconds_count{name="deployment"} %(done)s
# TYPE rest_client_requests_total counter
rest_client_requests_total{code="200",host="h",method="GET"} 100
rest_client_requests_total{code="201",host="h",method="POST"} %(posts)s
rest_client_requests_total{code="409",host="h",method="PUT"} %(conflicts)s
# TYPE leader_election_master_status gauge
leader_election_master_status{name="kube-controller-manager"} 1
# TYPE process_cpu_seconds_total counter
process_cpu_seconds_total %(cpu)s
# TYPE process_start_time_seconds gauge
process_start_time_seconds %(started)s
# TYPE process_resident_memory_bytes gauge
process_resident_memory_bytes 1.048576e+08
# TYPE kubernetes_build_info gauge
kubernetes_build_info{git_version="v1.36.2",major="1"} 1
# TYPE kcm_controller_writes_total counter
kcm_controller_writes_total{controller="deployment-controller",verb="update",resource="deployments"} %(posts)s
# TYPE kcm_controller_longest_turn_seconds gauge
kcm_controller_longest_turn_seconds{controller="deployment-controller"} 0.02
# TYPE go_goroutines gauge
go_goroutines not-a-number
"""
FIRST = {
    "depth": 7,
    "retries": 1,
    "waited": 1,
    "done": 10,
    "worked": 1,
    "posts": 4,
    "conflicts": 0,
    "cpu": 1,
    "started": 50,
}
LATER = FIRST | {"retries": 3, "waited": 3, "done": 20, "worked": 2, "posts": 14, "conflicts": 2, "cpu": 2}
OWNERS = {"deployment": "deployment-controller", "job": "job-controller"}


def figures(at: float, **changed: float) -> Figures:
    return read(TEXT % (FIRST | changed), at)


def test_what_happened_between_two_readings() -> None:
    view = between(figures(0), figures(2, **LATER), OWNERS, 1050)
    assert (view.version, view.leads, view.uptime_s, view.cpu, view.memory) == ("v1.36.2", True, 1000, 0.5, 100 << 20)
    assert (view.requests, view.errors, view.writes) == (6, 1, {"create": 5, "update": 1})
    deployment, job = view.rows
    assert (deployment.waiting, deployment.rate, deployment.retries, deployment.oldest_s) == (7, 5, 1, 2.5)
    assert (deployment.wait_s, deployment.work_share, deployment.done) == (0.2, 0.5, 20)
    assert (deployment.controller, deployment.writes, deployment.longest_s) == (
        "deployment-controller",
        {"update": 5},
        0.02,
    )
    assert (job.rate, job.wait_s, job.writes) == (0, None, None)


def test_a_manager_that_was_started_anew_counts_from_its_start() -> None:
    view = between(figures(0, **LATER), figures(1, started=99), OWNERS, 100)
    assert (view.uptime_s, view.cpu, view.rows[0].rate) == (1, 1, 10)


def test_without_election_and_without_what_only_kcm_counts() -> None:
    lines = [line for line in (TEXT % FIRST).splitlines() if "leader_" not in line and "kcm_" not in line]
    found = read("\n".join(lines), 0)
    (deployment, _) = between(found, found, {}, 0).rows
    assert (found.leads, deployment.writes, deployment.longest_s, deployment.controller) == (None, None, None, "")


@pytest.mark.parametrize(
    "text",
    ["", "<html>", 'workqueue_depth{nom="x"} 1', 'workqueue_depth{name="x"} much', 'workqueue_depth{name="x', "up 1"],
)
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(FormatError, match="no metrics of a controller manager"):
        read(text, 0)


@pytest.mark.parametrize("value", ["NaN", "+Inf", "-Inf", "1e999"])
@pytest.mark.parametrize("name", ['workqueue_depth{name="job"}', "process_resident_memory_bytes"])
def test_figures_that_are_no_numbers_are_one_error(name: str, value: str) -> None:
    with pytest.raises(FormatError, match="is (nan|-?inf)"):
        read(f'workqueue_depth{{name="a"}} 1\n{name} {value}\n', 0.0)
