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

from kcm_cli.api.batch import JOBS, Job, JobStatus
from kcm_cli.api.core import Condition, Pod
from kcm_cli.controllers.job.plan import Management, Tracking, counted, finished, plan, status
from kcm_cli.controllers.job.plan.indexes import parse
from kcm_cli.controllers.job.plan.pods import job_pods_of
from kcm_cli.controllers.job.plan.state import Snapshot
from kcm_cli.machinery import codec
from kcm_cli.machinery.times import format_time
from kcm_cli.planning.actions import Done, Failed, Outcome, edited
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
    scaled: bool = False

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
        assert self.scaled or status.succeeded >= before.succeeded
        assert len(self.job.status.conditions) <= len(status.conditions)
        self.job = msgspec.structs.replace(self.job, status=status)


class Troubled(World):
    """In this world pods are deleted, too, deletions are refused since a pod ends at that moment, the Job is suspended
    and scaled, and the clock is set back."""

    calm = False

    def live(self) -> None:
        for name, pod in list(self.pods.items()):
            if pod.deleting and not pod.metadata.finalizers and self.rng.random() < 0.5:
                del self.pods[name]
            elif not pod.deleting and self.rng.random() < 0.05:
                self.pods[name] = self._deleted(pod, pod.metadata.finalizers)
        super().live()
        if self.rng.random() < 0.1:
            self.now -= timedelta(minutes=15)
        if not self.calm:
            self._change_job()

    def settle(self) -> None: ...

    def calm_down(self) -> None:
        self.calm = True
        self._change(suspend=False)

    def _change_job(self) -> None:
        spec = self.job.spec
        if self.rng.random() < 0.1:
            self._change(suspend=not spec.suspend)
        if spec.completion_mode == "Indexed" and spec.completions == spec.parallelism and self.rng.random() < 0.1:
            number, self.scaled = self.rng.randint(0, 8), True
            self._change(completions=number, parallelism=number)

    def _change(self, **fields: object) -> None:
        doc = codec.decode_doc(codec.encode(edited(self.job, status_changes(self.job.status))))
        self.job = JOBS.decode(codec.encode({**doc, "spec": {**doc["spec"], **fields}}))

    def _carry_out(self, planned: Management) -> Outcome:
        outcome = super()._carry_out(msgspec.structs.replace(planned, deletions=()))
        done, failed = list(outcome.done), []
        for deletion in planned.deletions:
            pod = self.pods[deletion.name]
            if self.rng.random() < 0.15:
                self.pods[deletion.name] = self._with_phase(pod, self.rng.choice(("Succeeded", "Failed")))
                failed.append(Failed(deletion, RuntimeError("it has changed")))
            else:
                self.pods[deletion.name] = self._deleted(pod, () if planned.managed else pod.metadata.finalizers)
                done.append(Done(deletion))
        return Outcome(tuple(done), tuple(failed))

    def _release(self, tracking: Tracking) -> set[str]:
        chosen = [pod for pod in tracking.release if self.rng.random() < 0.8]
        for pod in chosen:
            metadata = msgspec.structs.replace(self.pods[pod.name].metadata, finalizers=())
            self.pods[pod.name] = msgspec.structs.replace(self.pods[pod.name], metadata=metadata)
        return {pod.uid for pod in chosen}

    def _deleted(self, pod: Pod, finalizers: tuple[str, ...]) -> Pod:
        since = format_time(self.now)
        metadata = msgspec.structs.replace(pod.metadata, deletion_timestamp=since, finalizers=finalizers)
        return msgspec.structs.replace(pod, metadata=metadata)


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


KINDS = [
    pytest.param({}, id="plain"),
    pytest.param({"completions": None}, id="work queue"),
    pytest.param({"completionMode": "Indexed"}, id="indexed"),
    pytest.param({"completionMode": "Indexed", "backoffLimitPerIndex": 0, "backoffLimit": 999}, id="no failure"),
    pytest.param({"completionMode": "Indexed", "backoffLimitPerIndex": 1, "backoffLimit": 999}, id="one failure"),
    pytest.param({"completionMode": "Indexed", "successPolicy": {"rules": [{"succeededCount": 2}]}}, id="policy"),
]


@pytest.mark.parametrize("spec", KINDS)
@pytest.mark.parametrize("seed", range(15))
def test_each_status_is_accepted_and_the_job_ends(
    seed: int, spec: dict[str, object], make_job: Callable[..., Job], make_pod: MakePod
) -> None:
    rng = random.Random(seed)
    parallelism, policy = rng.choice((1, 7)), rng.choice(("Failed", "TerminatingOrFailed"))
    full = {"completions": 7, "parallelism": parallelism, "podReplacementPolicy": policy, "backoffLimit": 4, **spec}
    world = Troubled(make_job(status={"startTime": None}, **full), make_pod, rng)
    for step in range(400):
        if is_finished(world.job):
            break
        if step == 150:
            world.calm_down()
        world.live()
        world.sync()
    assert is_finished(world.job)
