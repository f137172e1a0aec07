"""What the daemonset controller reads for one DaemonSet."""

from collections.abc import Mapping

import msgspec

from kcm_cli.api.apps import DaemonSet
from kcm_cli.api.core import Pod


class Fit(msgspec.Struct, frozen=True):
    """Whether a node gets a daemon pod, and whether it may keep one that it has."""

    runs: bool
    keeps: bool


class Snapshot(msgspec.Struct, frozen=True):
    """A DaemonSet, what it means for each node, and its pods by the node that they are on or made for.

    ``hash`` names the revision of the template. ``backoff`` has the nodes on which a failed pod may not be deleted
    yet, with the seconds to wait. ``pods`` leaves out those that have ended and are being deleted.
    """

    daemon_set: DaemonSet
    fits: Mapping[str, Fit]
    pods: Mapping[str, tuple[Pod, ...]]
    hash: str
    backoff: Mapping[str, float]
