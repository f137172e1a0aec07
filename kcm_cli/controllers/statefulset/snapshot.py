"""What the statefulset controller reads for one StatefulSet."""

from collections.abc import Mapping

import msgspec

from kcm_cli.api.apps import StatefulSet
from kcm_cli.api.core import PersistentVolumeClaim, Pod
from kcm_cli.machinery.codec import Doc


class Revision(msgspec.Struct, frozen=True):
    """A revision as the rules see it: its name, and the template that it puts in place."""

    name: str
    template: Doc


class Snapshot(msgspec.Struct, frozen=True):
    """A StatefulSet, the pods that it controls, its two revisions, and the claims of its pods by name.

    ``claims`` holds those of the existing and wanted pods, as far as they exist. ``collisions`` counts the names of
    revisions that were taken.
    """

    set: StatefulSet
    pods: tuple[Pod, ...]
    current: Revision
    update: Revision
    claims: Mapping[str, PersistentVolumeClaim]
    collisions: int = 0
