"""Whatever happens between and within syncs, every ended pod is counted exactly once, no counter goes back, and the API
server accepts each status.

A world of pods and one Job is driven by random events; a sync may break off after any of its writes. While the cache
lags behind what the sync before has removed there is none (``engine.own_writes``).
"""

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from kcm_cli.api.batch import Job, JobStatus
from kcm_cli.api.core import Condition, Pod
from kcm_cli.controllers.job.plan import Management, Tracking, counted, finished, plan, status
from kcm_cli.controllers.job.plan.indexes import parse
from kcm_cli.controllers.job.plan.pods import job_pods_of
from kcm_cli.controllers.job.plan.state import Snapshot
from kcm_cli.machinery import codec
from kcm_cli.planning.actions import Done, Outcome, edited
from kcm_cli.planning.jobs import is_finished
from kcm_cli.planning.status import status_changes
from kcm_cli.sandbox.apiserver.kinds.batch.job_status import validate_job_status

START = datetime(2026, 1, 2, 3, 0, tzinfo=UTC)
MakePod = Callable[..., Pod]


@dataclass
class World:
    """The pods as they are, the Job as it is, and the pods that ended and were not ignored, by how."""

    job: Job
    make_pod: MakePod
    rng: random.Random
    now: datetime = START
    pods: dict[str, Pod] = field(default_factory=dict)
    succeeded: set[str] = field(default_factory=set)
    failed: set[str] = field(default_factory=set)
    released: set[str] = field(default_factory=set)
    made: int = 0

    def live(self) -> None:
        """Some pods run, end or are deleted."""
        for name, pod in list(self.pods.items()):
            if pod.status.phase not in ("Pending", "Running") or self.rng.random() < 0.6:
                continue
            phase = self.rng.choice(("Succeeded", "Succeeded", "Failed", "Running"))
            self.pods[name] = self._with_phase(pod, phase)
            if phase in ("Succeeded", "Failed"):
                (self.succeeded if phase == "Succeeded" else self.failed).add(pod.uid)
        self.now += timedelta(seconds=self.rng.choice((1, 20, 700)))

    def sync(self) -> None:
        """One sync, that may break off."""
        snapshot = Snapshot(job=self.job, pods=job_pods_of(self.job, self.pods.values()))
        planned = plan(snapshot, self.now)
        tracking = status(planned, self._carry_out(planned), self.now)
        self._store(tracking.status)
        if self.rng.random() < 0.3:
            return
        gone = self._release(tracking)
        if self.rng.random() < 0.3:
            return
        new = counted(self.job.status, tracking.waiting - gone)
        self._store(finished(tracking, new, self.now) or new)

    def settle(self) -> None:
        """The cache is updated: ended pods without finalizers are deleted."""
        for name, pod in list(self.pods.items()):
            if pod.uid in self.released:
                del self.pods[name]
        self.released.clear()

    def _carry_out(self, planned: Management) -> Outcome:
        done = [Done(action) for action in (*planned.creations, *planned.deletions)]
        for creation in planned.creations:
            annotations = msgspec.json.decode(creation.body)["metadata"].get("annotations", {})
            self.made += 1
            name = f"p{self.made}"
            self.pods[name] = self.make_pod(name, "Pending", annotations=annotations)
        for deletion in planned.deletions:
            pod = self.pods.pop(deletion.name)
            if not planned.managed and pod.uid not in self.succeeded:
                self.failed.add(pod.uid)  # it is counted by the verdict
                self.pods[deletion.name] = self._with_phase(pod, "Failed")
        return Outcome(tuple(done))

    def _release(self, tracking: Tracking) -> set[str]:
        gone = {pod.uid for pod in tracking.release if self.rng.random() < 0.8}
        self.released |= gone
        return gone

    def _with_phase(self, pod: Pod, phase: str) -> Pod:
        conditions = (Condition("Ready", "True" if phase == "Running" else "False"),)
        status = msgspec.structs.replace(pod.status, phase=phase, conditions=conditions)
        return msgspec.structs.replace(pod, status=status)

    def _store(self, status: JobStatus) -> None:
        before = self.job.status
        docs = (edited(self.job, status_changes(one)) for one in (before, status))
        old, new = (codec.decode_doc(codec.encode(doc)) for doc in docs)
        assert not list(validate_job_status(new, old)), "the API server refuses this status"
        assert status.failed >= before.failed
        assert status.succeeded >= before.succeeded
        assert len(self.job.status.conditions) <= len(status.conditions)
        self.job = msgspec.structs.replace(self.job, status=status)


def run(world: World) -> World:
    for _ in range(200):
        if is_finished(world.job):
            return world
        world.live()
        if not world.released:
            world.sync()
        if world.rng.random() < 0.5:
            world.settle()
    raise AssertionError("the Job did not end")


@pytest.mark.parametrize("seed", range(60))
def test_each_pod_is_counted_once(seed: int, make_job: Callable[..., Job], make_pod: MakePod) -> None:
    rng = random.Random(seed)
    job = make_job(completions=rng.choice((1, 7, 20, None)), parallelism=rng.choice((1, 3, 30)), backoffLimit=4)
    world = run(World(job, make_pod, rng))
    assert world.job.status.succeeded == len(world.succeeded)
    assert world.job.status.failed == len(world.failed)


@pytest.mark.parametrize("seed", range(60))
def test_each_index_is_counted_once(seed: int, make_job: Callable[..., Job], make_pod: MakePod) -> None:
    rng = random.Random(seed)
    completions = rng.choice((1, 7, 20))
    limits = rng.choice(({"backoffLimit": 4}, {"backoffLimitPerIndex": 1, "backoffLimit": 999}))
    job = make_job(completionMode="Indexed", completions=completions, parallelism=rng.choice((1, 3, 30)), **limits)
    status = run(World(job, make_pod, rng)).job.status
    done = parse(status.completed_indexes, completions)
    lost = parse(status.failed_indexes or "", completions)
    assert status.succeeded == done.total
    assert done.overlap(lost) == 0
    if status.conditions[-1].type == "Complete":
        assert done.total == completions
    elif "backoffLimitPerIndex" in limits:
        assert done.total + lost.total == completions
