"""The snapshot of one StatefulSet."""

import msgspec

from kcm_cli.api.apps import StatefulSet
from kcm_cli.api.core import Pod
from kcm_cli.controllers.statefulset.plan.claims import Claims
from kcm_cli.machinery.codec import Doc


class Revision(msgspec.Struct, frozen=True):
    """The name of a revision, and its pod template."""

    name: str
    template: Doc


class Snapshot(msgspec.Struct, frozen=True):
    """A StatefulSet, the pods that it controls, its two revisions, and the claims of its namespace by name.

    collisions: status.collisionCount. waiting: uids of pods
    that their nodes rejected, and that may not be deleted yet.
    """

    set: StatefulSet
    pods: tuple[Pod, ...]
    current: Revision
    update: Revision
    claims: Claims
    collisions: int = 0
    waiting: frozenset[str] = frozenset()
