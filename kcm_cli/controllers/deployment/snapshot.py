"""The snapshot of one Deployment."""

from collections.abc import Mapping

import msgspec

from kcm_cli.api.apps import Deployment, ReplicaSet


class Snapshot(msgspec.Struct, frozen=True):
    """A Deployment, the ReplicaSets that it controls, and the number of their pods.

    running: the number of pods that have not ended, including terminating ones, by uid of the ReplicaSet.
    reports_terminating: whether status.terminatingReplicas is set.
    """

    deployment: Deployment
    replica_sets: tuple[ReplicaSet, ...]
    running: Mapping[str, int]
    reports_terminating: bool = True
