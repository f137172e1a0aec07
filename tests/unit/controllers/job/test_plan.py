"""The creations and deletions of pods."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from kcm_cli.api.batch import Job
from kcm_cli.api.core import Pod
from kcm_cli.controllers.job.backoff import FRESH, Backoff
from kcm_cli.controllers.job.plan import Management, SyncAction, plan
from kcm_cli.controllers.job.plan.pods import completion_index, job_pods_of, name_prefix
from kcm_cli.controllers.job.plan.state import Snapshot

NOW = datetime(2026, 1, 2, 3, 0, 30, tzinfo=UTC)
JUST_NOW = "2026-01-02T03:00:28Z"
MakeJob = Callable[..., Job]
MakePod = Callable[..., Pod]
INDEXED = {"completionMode": "Indexed", "completions": 3, "parallelism": 3}


def planned(job: Job, *pods: Pod, satisfied: bool = True, backoff: Backoff = FRESH) -> Management:
    snapshot = Snapshot(job=job, pods=job_pods_of(job, pods), satisfied=satisfied, backoff=backoff)
    return plan(snapshot, NOW)


def is_idle(found: Management) -> bool:
    return not found.managed and not (found.finalizers or found.creations or found.deletions)


def deleted(found: Management) -> list[str]:
    return [deletion.name for deletion in found.deletions]


def created(found: Management) -> list[dict[str, Any]]:
    return [msgspec.json.decode(creation.body) for creation in found.creations]


def indexes(found: Management) -> list[str]:
    return [pod["metadata"]["labels"]["batch.kubernetes.io/job-completion-index"] for pod in created(found)]


@pytest.mark.parametrize(
    ("spec", "status", "running", "expected"),
    [
        pytest.param({"completions": 5, "parallelism": 3}, {}, 0, 3, id="up to the parallelism"),
        pytest.param({"completions": 2, "parallelism": 3}, {}, 0, 2, id="no more than completions"),
        pytest.param({"completions": 5, "parallelism": 3}, {"succeeded": 4}, 0, 1, id="no more than are left"),
        pytest.param({"completions": 5, "parallelism": 3}, {}, 2, 1, id="the rest"),
        pytest.param({"completions": 5, "parallelism": 3}, {}, 3, 0, id="none"),
        pytest.param({"completions": 5, "parallelism": 0}, {}, 0, 0, id="paused"),
        pytest.param({"completions": 900, "parallelism": 900}, {}, 0, 500, id="a sync's worth"),
        pytest.param({"completions": None, "parallelism": 3}, {}, 1, 2, id="work queue"),
        pytest.param({"completions": None, "parallelism": 3}, {"succeeded": 1}, 1, 0, id="work queue with a success"),
    ],
)
def test_missing_pods_are_created(
    spec: dict[str, Any], status: dict[str, Any], running: int, expected: int, make_job: MakeJob, make_pod: MakePod
) -> None:
    found = planned(make_job(status=status, **spec), *(make_pod(f"p{n}") for n in range(running)))
    assert len(found.creations) == expected
    assert not found.deletions
    assert found.action is (SyncAction.PODS_CREATED if expected else SyncAction.TRACKING)


def test_nothing_is_planned_on_an_old_cache(make_job: MakeJob) -> None:
    assert is_idle(planned(make_job(), satisfied=False))


def test_a_job_being_deleted_gets_no_pods(make_job: MakeJob) -> None:
    job = make_job(metadata={"deletionTimestamp": JUST_NOW, "finalizers": ["f"]})
    assert is_idle(planned(job))


@pytest.mark.parametrize(
    ("terminating", "spec", "expected"),
    [
        pytest.param(1, {}, 2, id="replaced at once"),
        pytest.param(1, {"podReplacementPolicy": "Failed"}, 1, id="replaced when they have ended"),
        pytest.param(1, {"podFailurePolicy": {"rules": []}}, 1, id="likewise under a failure policy"),
    ],
)
def test_terminating_pods(
    terminating: int, spec: dict[str, Any], expected: int, make_job: MakeJob, make_pod: MakePod
) -> None:
    job = make_job(completions=4, parallelism=2, **spec)
    # Deleted long ago, so that no backoff holds the replacement up.
    pods = [make_pod(f"p{n}", ready=True, deleting="2026-01-02T02:00:00Z") for n in range(terminating)]
    assert len(planned(job, *pods).creations) == expected


def test_surplus_pods_are_deleted_least_progress_first(make_job: MakeJob, make_pod: MakePod) -> None:
    job = make_job(completions=9, parallelism=1)
    pods = [
        make_pod("ready-long", ready=True, ended="2026-01-02T01:00:00Z"),
        make_pod("ready-short", ready=True, ended=JUST_NOW),
        make_pod("running"),
        make_pod("pending", "Pending"),
        make_pod("unassigned", "Pending", node=""),
    ]
    found = planned(job, *pods)
    assert deleted(found) == ["unassigned", "pending", "running", "ready-short"]
    assert [patch.name for patch in found.finalizers] == deleted(found)
    assert found.action is SyncAction.PODS_DELETED
    assert not found.creations


def test_ties_are_ordered_by_restarts_then_age(make_job: MakeJob, make_pod: MakePod) -> None:
    pods = [
        make_pod("old"),
        make_pod("young", created=JUST_NOW),
        make_pod("restarted", restarts=2),
    ]
    assert deleted(planned(make_job(completions=9, parallelism=0), *pods)) == ["restarted", "young", "old"]


def test_pods_of_a_suspended_job_are_deleted(make_job: MakeJob, make_pod: MakePod) -> None:
    found = planned(make_job(suspend=True, completions=2, parallelism=2), make_pod("a"), make_pod("b", finalizers=()))
    assert sorted(deleted(found)) == ["a", "b"]
    assert [patch.name for patch in found.finalizers] == ["a"]
    assert found.managed


def test_active_pods_of_a_finished_job_are_deleted_and_keep_their_finalizers(
    make_job: MakeJob, make_pod: MakePod
) -> None:
    found = planned(make_job(backoffLimit=0, completions=3), make_pod("a"), make_pod("b", "Failed"), make_pod("c"))
    assert sorted(deleted(found)) == ["a", "c"]
    assert not found.finalizers
    assert not found.managed
    assert found.deletions[0].uid == "uid-a"


@pytest.mark.parametrize(
    ("job_backoff", "wait_s"),
    [
        pytest.param(Backoff(1, NOW), 10, id="all of it"),
        pytest.param(Backoff(1, datetime(2026, 1, 2, 3, 0, 20, 500_000, tzinfo=UTC)), 1, id="never less than a batch"),
        pytest.param(Backoff(1, datetime(2026, 1, 2, 3, 0, 20, tzinfo=UTC)), None, id="over"),
    ],
)
def test_pods_wait_for_the_backoff(job_backoff: Backoff, wait_s: float | None, make_job: MakeJob) -> None:
    found = planned(make_job(), backoff=job_backoff)
    assert found.wait_s == wait_s
    assert bool(found.creations) == (wait_s is None)


def test_lowest_free_indexes_are_taken(make_job: MakeJob, make_pod: MakePod) -> None:
    job = make_job(
        status={"completedIndexes": "1,4", "succeeded": 2, "failedIndexes": "2"},
        completionMode="Indexed",
        completions=9,
        parallelism=4,
        backoffLimitPerIndex=0,
    )
    assert indexes(planned(job, make_pod("a", index=3))) == ["0", "5", "6"]


def test_indexes_of_terminating_pods_wait_if_only_failed_pods_are_replaced(
    make_job: MakeJob, make_pod: MakePod
) -> None:
    job = make_job(completionMode="Indexed", completions=4, parallelism=2, podReplacementPolicy="Failed")
    assert indexes(planned(job, make_pod("a", index=0, deleting=JUST_NOW))) == ["1"]


def test_pods_of_repeated_and_unknown_indexes_are_deleted(make_job: MakeJob, make_pod: MakePod) -> None:
    pods = [
        make_pod("ready", index=0, ready=True),
        make_pod("again", index=0),
        make_pod("one", index=1),
        make_pod("beyond", index=3),
        make_pod("none"),
    ]
    assert sorted(deleted(planned(make_job(**INDEXED), *pods))) == ["again", "beyond", "none"]


def test_surplus_pods_are_deleted_beside_repeated_indexes(make_job: MakeJob, make_pod: MakePod) -> None:
    pods = [make_pod("a", index=0), make_pod("b", index=1, ready=True), make_pod("c", index=1)]
    assert deleted(planned(make_job(**{**INDEXED, "parallelism": 1}), *pods)) == ["c", "a"]


def test_an_index_is_retried_after_its_backoff(make_job: MakeJob, make_pod: MakePod) -> None:
    job = make_job(**{**INDEXED, "backoffLimitPerIndex": 9})
    failures = {"batch.kubernetes.io/job-index-failure-count": "1"}
    recent = make_pod("a", "Failed", index=0, exit_code=1, ended=JUST_NOW)
    twice = make_pod("b", "Failed", index=1, exit_code=1, ended=JUST_NOW, annotations=failures)
    done = make_pod("c", "Succeeded", index=2)
    found = planned(job, recent, twice, done)
    assert (found.wait_s, found.creations) == (8, ())
    long_ago = make_pod("b", "Failed", index=1, exit_code=1, ended="2026-01-02T01:00:00Z", annotations=failures)
    found = planned(job, recent, long_ago, done)
    assert indexes(found) == ["1"]
    assert created(found)[0]["metadata"]["annotations"] == {
        "batch.kubernetes.io/job-completion-index": "1",
        "batch.kubernetes.io/job-index-failure-count": "2",
    }


def test_ignored_failures_of_an_index_are_counted_separately(make_job: MakeJob, make_pod: MakePod) -> None:
    policy = {"rules": [{"action": "Ignore", "onExitCodes": {"operator": "In", "values": [1]}}]}
    job = make_job(**{**INDEXED, "parallelism": 1, "backoffLimitPerIndex": 9, "podFailurePolicy": policy})
    pod = make_pod("a", "Failed", index=0, exit_code=1, ended="2026-01-02T01:00:00Z")
    assert created(planned(job, pod))[0]["metadata"]["annotations"] == {
        "batch.kubernetes.io/job-completion-index": "0",
        "batch.kubernetes.io/job-index-failure-count": "0",
        "batch.kubernetes.io/job-index-ignored-failure-count": "1",
    }


def test_a_pod_of_an_indexed_job(make_job: MakeJob) -> None:
    template = {
        "metadata": {"labels": {"app": "a"}, "finalizers": ["mine"]},
        "spec": {
            "restartPolicy": "Never",
            "initContainers": [{"name": "i", "env": [{"name": "JOB_COMPLETION_INDEX", "value": "own"}]}],
            "containers": [{"name": "c", "env": [{"name": "A", "value": "b"}]}],
        },
    }
    pod = created(planned(make_job(**{**INDEXED, "template": template})))[2]
    assert pod["metadata"] == {
        "generateName": "work-2-",
        "labels": {"app": "a", "batch.kubernetes.io/job-completion-index": "2"},
        "annotations": {"batch.kubernetes.io/job-completion-index": "2"},
        "finalizers": ["mine", "batch.kubernetes.io/job-tracking"],
        "ownerReferences": [
            {
                "apiVersion": "batch/v1",
                "kind": "Job",
                "name": "work",
                "uid": "job-uid",
                "controller": True,
                "blockOwnerDeletion": True,
            }
        ],
    }
    assert pod["spec"]["hostname"] == "work-2"
    path = "metadata.labels['batch.kubernetes.io/job-completion-index']"
    assert pod["spec"]["containers"][0]["env"] == [
        {"name": "A", "value": "b"},
        {"name": "JOB_COMPLETION_INDEX", "valueFrom": {"fieldRef": {"fieldPath": path}}},
    ]
    assert pod["spec"]["initContainers"][0]["env"] == [{"name": "JOB_COMPLETION_INDEX", "value": "own"}]


def test_a_pod_of_another_job(make_job: MakeJob) -> None:
    pod = created(planned(make_job()))[0]
    assert pod["metadata"]["generateName"] == "work-"
    assert pod["metadata"]["finalizers"] == ["batch.kubernetes.io/job-tracking"]
    assert pod["spec"] == {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}


@pytest.mark.parametrize(
    ("name", "index"),
    [("work-3-abcde", 3), ("work-03-abcde", 1), ("work-x-abcde", 1), ("other-3-abcde", 1), ("work-3", 1), ("a", 1)],
)
def test_the_index_of_a_pod_is_that_of_its_name(name: str, index: int, make_job: MakeJob, make_pod: MakePod) -> None:
    assert completion_index(make_job(**INDEXED), make_pod(name, index=1)) == index


def test_long_names_are_truncated_before_the_index() -> None:
    assert name_prefix("a" * 63, 12345) == "a" * 51 + "-12345-"
    assert name_prefix("work", 0) == "work-0-"
