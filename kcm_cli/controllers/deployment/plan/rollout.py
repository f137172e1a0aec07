"""A Deployment and its ReplicaSets while the plan is made.

Each rule returns the rollout with what it changes. The differences of a ``Target`` from its object become one update
per ReplicaSet.
"""

from collections.abc import Iterable, Mapping

import msgspec
from msgspec.structs import replace

from kcm_cli.api.apps import Deployment, DeploymentStatus, ReplicaSet
from kcm_cli.controllers.deployment.plan import spec
from kcm_cli.machinery.codec import Doc
from kcm_cli.planning.actions import Path, Plan, Value
from kcm_cli.planning.replicas import replicas_of


class Snapshot(msgspec.Struct, frozen=True):
    """A Deployment, the ReplicaSets that it controls, and the number of their pods.

    running: the number of pods that have not ended, including terminating ones, by uid of the ReplicaSet.
    reports_terminating: whether status.terminatingReplicas is set.
    """

    deployment: Deployment
    replica_sets: tuple[ReplicaSet, ...]
    running: Mapping[str, int]
    reports_terminating: bool = True


class Target(msgspec.Struct, frozen=True, eq=False):
    """The desired state of a ReplicaSet.

    scaled_from: the size before it was scaled; None if it was not. template: the template of one that is to be created.
    """

    replica_set: ReplicaSet
    replicas: int
    annotations: Mapping[str, str]
    min_ready_seconds: int
    scaled_from: int | None = None
    template: Doc | None = None

    @property
    def name(self) -> str:
        return self.replica_set.name

    @property
    def available(self) -> int:
        return self.replica_set.status.available_replicas

    @property
    def new(self) -> bool:
        return self.template is not None

    def changes(self) -> Mapping[Path, Value]:
        """The changes to write; empty if there are none."""
        current = self.replica_set
        changes: dict[Path, Value] = {}
        if self.annotations != current.annotations:
            changes[("metadata", "annotations")] = self.annotations
        if self.replicas != replicas_of(current):
            changes[("spec", "replicas")] = self.replicas
        if self.min_ready_seconds != current.spec.min_ready_seconds:
            changes[("spec", "minReadySeconds")] = self.min_ready_seconds
        return changes


def target_of(replica_set: ReplicaSet) -> Target:
    spec_ = replica_set.spec
    return Target(replica_set, replicas_of(replica_set), replica_set.annotations, spec_.min_ready_seconds)


class Rollout(msgspec.Struct, frozen=True, eq=False):
    """The decision about a Deployment: its ReplicaSets as they are to be, and the writes.

    status: before the writes. annotations: the Deployment's annotations. progresses: whether more pods are progress,
    and the deadline applies (not while paused or being deleted, and not while scaling, unless a rollout begins with
    it). rolls_back: the Deployment's template is replaced by an earlier one.
    """

    snapshot: Snapshot
    new: Target | None
    old: tuple[Target, ...]
    status: DeploymentStatus
    annotations: Mapping[str, str]
    progresses: bool = False
    rolls_back: bool = False
    stages: Plan = ()

    def all(self) -> tuple[Target, ...]:
        """The old ReplicaSets, then the new one."""
        return (*self.old, self.new) if self.new is not None else self.old

    def scaled(self, sizes: Mapping[str, int]) -> "Rollout":
        """The rollout with these sizes, by name, and the annotations about sizes on the same ReplicaSets."""
        if not sizes:
            return self
        new = None if self.new is None else self._scaled(self.new, sizes)
        return replace(self, new=new, old=tuple(self._scaled(target, sizes) for target in self.old))

    def _scaled(self, target: Target, sizes: Mapping[str, int]) -> Target:
        size, before = sizes.get(target.name), target.scaled_from
        if size is None:
            return target
        if size != target.replicas and before is None:
            before = target.replicas
        annotations = {**target.annotations, **about_sizes(self.snapshot.deployment)}
        return replace(target, replicas=size, scaled_from=before, annotations=annotations)


def about_sizes(deployment: Deployment) -> dict[str, str]:
    """Annotations with the Deployment's replicas and maximum, for proportional scaling."""
    return {
        spec.DESIRED_REPLICAS: str(replicas_of(deployment)),
        spec.MAX_REPLICAS: str(spec.most_pods(deployment)),
    }


def replicas_in(targets: Iterable[Target]) -> int:
    return sum(target.replicas for target in targets)


def active(targets: Iterable[Target]) -> list[Target]:
    """The ReplicaSets with a size above 0."""
    return [target for target in targets if target.replicas > 0]


def by_age(targets: Iterable[Target]) -> list[Target]:
    """The ReplicaSets, the oldest first; equal ones by name."""
    return sorted(targets, key=lambda t: (t.replica_set.metadata.creation_timestamp or "", t.name))
