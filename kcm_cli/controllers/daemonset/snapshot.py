"""The snapshot of one DaemonSet."""

from collections.abc import Mapping

import msgspec

from kcm_cli.api.apps import DaemonSet
from kcm_cli.api.core import Pod


class Fit(msgspec.Struct, frozen=True):
    """Whether a node should have a daemon pod (``runs``), and whether it may keep an existing one (``keeps``)."""

    runs: bool
    keeps: bool


class Snapshot(msgspec.Struct, frozen=True):
    """A DaemonSet, the fit of each node, and its pods by node.

    hash: the hash of the current revision. backoff: nodes on which a failed pod may not be deleted yet, with the
    seconds to wait. pods: without terminal pods that are being deleted.
    """

    daemon_set: DaemonSet
    fits: Mapping[str, Fit]
    pods: Mapping[str, tuple[Pod, ...]]
    hash: str
    backoff: Mapping[str, float]
