"""The ReplicaSets of a Deployment while the plan is made.

Rules change a ``Target``. Its differences from the object become one update per ReplicaSet.
"""

from collections.abc import Mapping

import msgspec

from kcm_cli.api.apps import REPLICA_SETS, Deployment, DeploymentStatus, ReplicaSet
from kcm_cli.controllers.deployment.plan import names, spec
from kcm_cli.machinery.codec import Doc
from kcm_cli.planning.actions import Create, Notice, Path, Stage, Update, Value


class Snapshot(msgspec.Struct, frozen=True):
    """A Deployment, the ReplicaSets that it controls, and the number of their pods.

    running: the number of pods that have not ended, including terminating ones, by uid of the ReplicaSet.
    reports_terminating: whether status.terminatingReplicas is set.
    """

    deployment: Deployment
    replica_sets: tuple[ReplicaSet, ...]
    running: Mapping[str, int]
    reports_terminating: bool = True


class Target(msgspec.Struct, eq=False):
    """The desired state of a ReplicaSet. ``body`` is set for one that is to be created."""

    replica_set: ReplicaSet
    replicas: int
    annotations: dict[str, str]
    min_ready_seconds: int
    scaled: tuple[int, int] | None = None
    body: Doc | None = None

    @property
    def name(self) -> str:
        return self.replica_set.name

    @property
    def available(self) -> int:
        return self.replica_set.status.available_replicas

    @property
    def new(self) -> bool:
        return self.body is not None

    def changes(self) -> Mapping[Path, Value]:
        """The changes to write; empty if there are none."""
        current = self.replica_set
        changes: dict[Path, Value] = {}
        if self.annotations != current.annotations:
            changes[("metadata", "annotations")] = self.annotations
        if self.replicas != spec.size_of(current):
            changes[("spec", "replicas")] = self.replicas
        if self.min_ready_seconds != current.spec.min_ready_seconds:
            changes[("spec", "minReadySeconds")] = self.min_ready_seconds
        return changes


def target_of(replica_set: ReplicaSet) -> Target:
    return Target(
        replica_set,
        spec.size_of(replica_set),
        dict(replica_set.annotations),
        replica_set.spec.min_ready_seconds,
    )


class Rollout(msgspec.Struct, eq=False):
    """The state of a decision: the desired ReplicaSets, and the status before the writes.

    progresses: whether the progress deadline applies (not while paused, scaling or being deleted). counts_later:
    whether only the next sync takes the counts as progress. annotations: the Deployment's annotations.
    """

    snapshot: Snapshot
    new: Target | None
    old: list[Target]
    status: DeploymentStatus
    annotations: dict[str, str]
    progresses: bool = False
    counts_later: bool = False
    cleanup: bool = False
    deletions: list[ReplicaSet] = msgspec.field(default_factory=list)
    rollback: Mapping[Path, Value] | None = None
    rolled_back: Notice | None = None

    def all(self) -> list[Target]:
        """The old ReplicaSets, then the new one."""
        return [*self.old, self.new] if self.new is not None else list(self.old)

    def scale(self, target: Target, replicas: int) -> bool:
        """Set the size, and the annotations about sizes. Returns whether the size changed."""
        if target.replicas == replicas:
            return False
        before = target.scaled[0] if target.scaled is not None else target.replicas
        target.scaled = (before, replicas)
        target.replicas = replicas
        self.annotate(target)
        return True

    def annotate(self, target: Target) -> None:
        """Write the Deployment's replicas and maximum into annotations, for proportional scaling."""
        deployment = self.snapshot.deployment
        desired = spec.replicas_of(deployment)
        target.annotations[names.DESIRED_REPLICAS] = str(desired)
        target.annotations[names.MAX_REPLICAS] = str(spec.most_pods(deployment))


def replicas_in(targets: list[Target]) -> int:
    return sum(target.replicas for target in targets)


def active(targets: list[Target]) -> list[Target]:
    """The ReplicaSets with a size above 0."""
    return [target for target in targets if target.replicas > 0]


def by_age(targets: list[Target]) -> list[Target]:
    """The ReplicaSets, the oldest first; equal ones by name."""
    return sorted(targets, key=lambda t: (t.replica_set.metadata.creation_timestamp or "", t.name))


def creation(rollout: Rollout, target: Target, scaled: Notice | None) -> Stage:
    """The stage that creates the new ReplicaSet."""
    assert target.body is not None
    namespace = rollout.snapshot.deployment.namespace
    create = Create(REPLICA_SETS, namespace, target.body, done=scaled, reason="no ReplicaSet has the template")
    return Stage((create,))


def _why_updated(target: Target) -> str:
    if target.scaled is None:
        return "annotations changed"
    before, after = target.scaled
    return f"scaled from {before} to {after}"


def updates(targets: list[Target], notices: Mapping[str, Notice]) -> Stage:
    """A stage with one update for each changed ReplicaSet, and its scaling Event."""
    pairs = ((target, target.changes()) for target in targets if not target.new)
    return Stage(
        tuple(
            Update(
                REPLICA_SETS, target.replica_set, changes, done=notices.get(target.name), reason=_why_updated(target)
            )
            for target, changes in pairs
            if changes
        )
    )
