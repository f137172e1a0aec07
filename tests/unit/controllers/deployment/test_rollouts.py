"""Whole rollouts on the plan alone: step after step on random clusters, and proportional scaling in tables."""

import random
from collections.abc import Callable
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kcm_cli.api.apps import (
    Deployment,
    DeploymentSpec,
    DeploymentStatus,
    DeploymentStrategy,
    ReplicaSet,
    ReplicaSetSpec,
    ReplicaSetStatus,
    RollingUpdateDeployment,
)
from kcm_cli.controllers.deployment.plan import plan, spec
from kcm_cli.controllers.deployment.plan.revisions import annotated
from kcm_cli.controllers.deployment.plan.rollout import Snapshot
from kcm_cli.machinery.labels import LabelSelector
from kcm_cli.machinery.meta import ObjectMeta
from kcm_cli.planning.actions import Create, Delete, Update
from tests.kit.growth import grows_linearly
from tests.unit.controllers.deployment.test_plan import NOW, deployment, planned, replica_set, sizes, template


@dataclass
class Running:
    """A ReplicaSet in a cluster: what is asked for, and its pods, some of them available."""

    name: str
    image: str
    size: int
    annotations: dict[str, str]
    pods: int = 0
    available: int = 0

    def shown(self) -> ReplicaSet:
        status = ReplicaSetStatus(
            replicas=self.pods,
            ready_replicas=self.available,
            available_replicas=self.available,
            terminating_replicas=0,
            observed_generation=1,
        )
        meta = ObjectMeta(
            name=self.name,
            namespace="ns",
            uid=self.name,
            generation=1,
            annotations=dict(self.annotations),
            creation_timestamp=f"2025-12-31T00:{len(self.name):02}:00Z",
        )
        return ReplicaSet(
            metadata=meta, spec=ReplicaSetSpec(replicas=self.size, template=template(self.image)), status=status
        )

    def follow(self, rng: random.Random, *, healthy: bool) -> None:
        """The ReplicaSet controller takes pods that are not available first; some of the others become available."""
        if self.pods > self.size:
            self.pods = self.size
            self.available = min(self.available, self.size)
        else:
            self.pods += rng.randint(0, self.size - self.pods)
        if healthy:
            self.available += rng.randint(0, self.pods - self.available)


class Cluster:
    """A Deployment's ReplicaSets, changed by its plans and followed by their pods."""

    def __init__(self, desired: int, update: RollingUpdateDeployment, seed: int) -> None:
        self.rng = random.Random(seed)
        self.desired = desired
        self.update = update
        self.sets: dict[str, Running] = {}
        self.image = "v0"
        self.broken: set[str] = set()

    def deployment(self) -> Deployment:
        fields = DeploymentSpec(
            replicas=self.desired,
            selector=LabelSelector(match_labels={"app": "web"}),
            strategy=DeploymentStrategy("RollingUpdate", self.update),
            template=template(self.image),
            revision_history_limit=10,
            progress_deadline_seconds=600,
        )
        total = sum(one.pods for one in self.sets.values())
        meta = ObjectMeta(name="web", namespace="ns", uid="d", generation=2)
        return Deployment(metadata=meta, spec=fields, status=DeploymentStatus(replicas=total))

    def step(self) -> bool:
        """One sync; whether it wrote anything."""
        snapshot = Snapshot(self.deployment(), tuple(one.shown() for one in self.sets.values()), {})
        made = plan(snapshot, NOW).stages
        for stage in made:
            for action in stage.actions:
                if isinstance(action, Create):
                    body = action.body
                    name = body["metadata"]["name"]
                    self.sets[name] = Running(
                        name, self.image, body["spec"]["replicas"], dict(body["metadata"]["annotations"])
                    )
                elif isinstance(action, Update) and isinstance(action.obj, ReplicaSet):
                    one = self.sets[action.obj.name]
                    one.size = action.changes.get(("spec", "replicas"), one.size)
                    one.annotations = dict(action.changes.get(("metadata", "annotations"), one.annotations))
                elif isinstance(action, Delete):
                    del self.sets[action.name]
        return made

    def settle(self) -> None:
        for one in self.sets.values():
            one.follow(self.rng, healthy=one.image not in self.broken)

    def asked(self) -> int:
        return sum(one.size for one in self.sets.values())

    def available(self) -> int:
        return sum(one.available for one in self.sets.values())

    def run(self, steps: int = 400) -> None:
        """Until the rollout is done, checking the budget after each step."""
        for _ in range(steps):
            before = self.asked()
            floor = min(self.available(), self.desired - spec.max_unavailable(self.deployment()))
            moved = self.step()
            assert self.asked() <= max(before, self.desired + spec.max_surge(self.deployment()))
            self.settle()
            assert self.available() >= floor
            if not moved and self.done():
                return
        raise AssertionError(f"not done: {self.sets}")

    def done(self) -> bool:
        return all(
            one.size == one.available == (self.desired if one.image == self.image else 0) for one in self.sets.values()
        )


amounts = st.one_of(st.integers(0, 4), st.sampled_from(["0%", "10%", "25%", "50%", "100%"]))
updates = st.builds(RollingUpdateDeployment, max_surge=amounts, max_unavailable=amounts)


@settings(max_examples=50)
@given(st.integers(0, 12), updates, st.integers(1, 3), st.integers(0, 999))
def test_a_rollout_ends_and_always_keeps_its_budget(
    desired: int, update: RollingUpdateDeployment, rollouts: int, seed: int
) -> None:
    """Never more than maxSurge added, never more than maxUnavailable missing, at any speed of pods."""
    cluster = Cluster(desired, update, seed)
    cluster.run()
    for number in range(rollouts):
        cluster.image = f"v{number + 1}"
        cluster.run()
    assert cluster.asked() == desired


@settings(max_examples=50)
@given(st.integers(1, 12), updates, st.integers(0, 20), st.integers(0, 999))
def test_a_replaced_rollout_keeps_its_budget(
    desired: int, update: RollingUpdateDeployment, steps: int, seed: int
) -> None:
    cluster = Cluster(desired, update, seed)
    cluster.run()
    cluster.image = "v1"
    for _ in range(steps % 7):
        cluster.step()
        cluster.settle()
    cluster.image = "v2"
    cluster.run()
    cluster.image = "v0"
    cluster.run()
    assert cluster.asked() == desired


@settings(max_examples=50)
@given(st.integers(1, 12), updates, st.integers(0, 999))
def test_a_broken_image_keeps_max_unavailable_and_can_be_rolled_back(
    desired: int, update: RollingUpdateDeployment, seed: int
) -> None:
    cluster = Cluster(desired, update, seed)
    cluster.run()
    cluster.image = "bad"
    cluster.broken = {"bad"}
    for _ in range(30):
        cluster.step()
        cluster.settle()
        assert cluster.available() >= desired - spec.max_unavailable(cluster.deployment())
    cluster.image = "v0"
    cluster.run()


@settings(max_examples=50)
@given(st.integers(0, 12), st.integers(0, 12), updates, st.integers(0, 5), st.integers(0, 999))
def test_scaling_during_a_rollout_ends_at_the_new_size(
    desired: int, then: int, update: RollingUpdateDeployment, steps: int, seed: int
) -> None:
    cluster = Cluster(desired, update, seed)
    cluster.run()
    cluster.image = "v1"
    for _ in range(steps):
        cluster.step()
        cluster.settle()
    cluster.desired = then
    for _ in range(60):
        cluster.step()
        cluster.settle()
    assert cluster.done()


# -- scaling in tables


def surged(desired: int, **changes: object) -> Deployment:
    strategy = DeploymentStrategy("RollingUpdate", RollingUpdateDeployment(max_surge=3, max_unavailable=2))
    return deployment(desired, strategy=strategy, **changes)


def noted(
    name: str, image: str, size: int, desired: object, most: object, revision: int = 1, **more: int
) -> ReplicaSet:
    return replica_set(name, image, size, revision=revision, desired=desired, most=most, **more)


SCALING = [
    pytest.param(surged(5), [noted("old", "v1", 0, 10, 13), noted("older", "v0", 0, 10, 13)],
                 {"new": 5}, id="no active one: a rollout makes the new one"),
    pytest.param(surged(5, paused=True), [noted("old", "v1", 0, 10, 13, 2), noted("older", "v0", 0, 10, 13)],
                 {"old": 5}, id="paused, no active one: the latest"),
    pytest.param(surged(5, paused=True), [noted("new", "v2", 0, 10, 13), noted("old", "v0", 0, 10, 13, 2)],
                 {"new": 5}, id="paused, no active one: the new one, however old"),
    pytest.param(surged(5, paused=True), [], {}, id="paused, none at all"),
    pytest.param(surged(5, paused=True), [noted("new", "v2", 5, 5, 8), noted("old", "v1", 3, 9, 12)],
                 {"old": 0}, id="the new one has all: the others go"),
    pytest.param(surged(5, paused=True), [noted("new", "v2", 5, 7, 8), noted("old", "v1", 3, 5, 8)],
                 {"new": 5, "old": 3}, id="a new one that was meant for another size has not all"),
    pytest.param(deployment(5, strategy=DeploymentStrategy("Recreate"), paused=True),
                 [noted("new", "v2", 4, 7, 7), noted("old", "v1", 3, 7, 7)], {}, id="Recreate has no proportions"),
    pytest.param(deployment(5, strategy=DeploymentStrategy("Recreate")),
                 [noted("new", "v2", 4, 7, 7), noted("old", "v1", 3, 7, 7)], {"old": 0}, id="Recreate: old ones go"),
    pytest.param(surged(10, paused=True), [noted("new", "v2", 3, 5, 8, 2), noted("old", "v1", 3, 5, 8)],
                 {"new": 8, "old": 5}, id="of two equal ones the newer gets the remainder"),
    pytest.param(surged(4, paused=True), [noted("new", "v2", 5, 7, 10, 2), noted("old", "v1", 5, 7, 10)],
                 {"new": 4, "old": 3}, id="of two equal ones the older loses the remainder"),
    pytest.param(surged(10, paused=True, status=DeploymentStatus(replicas=8)),
                 [noted("new", "v2", 4, "x", "x"), noted("old", "v1", 4, "x", "-3")],
                 {"new": 6, "old": 7}, id="a tampered annotation: by what runs"),
    pytest.param(surged(10, paused=True), [noted("new", "v2", 4, 8, 0), noted("old", "v1", 4, 8, 99999999999)],
                 {"new": 4, "old": 9}, id="nothing to go by: the largest takes all"),
]  # fmt: skip


@pytest.mark.parametrize(("subject", "sets", "expected"), SCALING)
def test_scaling(subject: Deployment, sets: list[ReplicaSet], expected: dict[str, int]) -> None:
    before = {one.name: one.spec.replicas for one in sets}
    found = sizes(planned(subject, *sets))
    assert {name: size for name, size in expected.items() if size != before.get(name)} == found


# -- revisions


@pytest.mark.parametrize(
    ("known", "revision", "expected"),
    [
        pytest.param({}, 3, {spec.REVISION: "3"}, id="the first"),
        pytest.param({spec.REVISION: "1"}, 3, {spec.REVISION: "3", spec.REVISION_HISTORY: "1"}, id="used again"),
        pytest.param({spec.REVISION: "2", spec.REVISION_HISTORY: "1"}, 3,
                     {spec.REVISION: "3", spec.REVISION_HISTORY: "1,2"}, id="and again"),
        pytest.param({spec.REVISION: "3"}, 3, {spec.REVISION: "3"}, id="the same"),
        pytest.param({spec.REVISION: "4"}, 3, {spec.REVISION: "4"}, id="never back"),
        pytest.param({spec.REVISION: "x"}, 3, {spec.REVISION: "x"}, id="an invalid number is kept"),
        pytest.param({spec.REVISION: "3"}, 2**63, {spec.REVISION: "3"}, id="not beyond 64 bits"),
    ],
)  # fmt: skip
def test_revisions(known: dict[str, str], revision: int, expected: dict[str, str]) -> None:
    assert annotated(known, deployment(), revision) == expected


def test_the_oldest_revision_history_is_truncated() -> None:
    known = {spec.REVISION: "9999", spec.REVISION_HISTORY: ",".join(str(n) for n in range(1000, 1400))}
    history = annotated(known, deployment(), 10000)[spec.REVISION_HISTORY]
    assert len(history) <= spec.HISTORY_LIMIT
    assert history.endswith(",1399,9999") and not history.startswith("1000,")
    monstrous = {spec.REVISION: "5", spec.REVISION_HISTORY: "1" * 3000}
    assert annotated(monstrous, deployment(), 6)[spec.REVISION_HISTORY] == "5"


@pytest.mark.parametrize(
    ("before", "history", "expected"),
    [
        pytest.param("5", "1" * 1998, "1" * 1998 + ",5", id="all of the room"),
        pytest.param("5", "1" * 1999, "5", id="one character too long"),
        pytest.param("5", "2," + "1" * 1998, "1" * 1998 + ",5", id="but for the oldest"),
        pytest.param("5", "22," + "1" * 1999 + ",3", "3,5", id="but for the two oldest"),
        pytest.param("5", ",1,2", "5", id="begins with an empty one"),
        pytest.param("5".zfill(2000), "1,2", "5".zfill(2000), id="a revision that takes all of the room"),
        pytest.param("5".zfill(2001), "1,2", "1,2", id="a revision that has no room"),
    ],
)
def test_the_length_of_the_revision_history(before: str, history: str, expected: str) -> None:
    known = {spec.REVISION: before, spec.REVISION_HISTORY: history}
    assert annotated(known, deployment(), 6)[spec.REVISION_HISTORY] == expected


def test_a_long_revision_history_takes_linear_time() -> None:
    """A ReplicaSet's annotations are 256 KiB at most, and its users write them."""

    def prepare(size: int) -> Callable[[], object]:
        known = {spec.REVISION: "5", spec.REVISION_HISTORY: ",".join("1" * size)}
        return lambda: annotated(known, deployment(), 6)

    assert grows_linearly(prepare, 2000)
