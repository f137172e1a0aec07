"""What the deployment controller reads for one Deployment."""

from collections.abc import Mapping

import msgspec

from kcm_cli.api.apps import Deployment, ReplicaSet


class Snapshot(msgspec.Struct, frozen=True):
    """A Deployment, the ReplicaSets that it controls, and which of them still have pods that may run.

    ``running`` maps the uid of a ReplicaSet to the number of its pods in no final phase (terminating ones count).
    ``reports_terminating``: whether status.terminatingReplicas is kept.
    """

    deployment: Deployment
    replica_sets: tuple[ReplicaSet, ...]
    running: Mapping[str, int]
    reports_terminating: bool = True
