"""What one decision about a claim is made from."""

from dataclasses import dataclass

from kcm_cli.api.core import PersistentVolumeClaim
from kcm_cli.api.storage import PersistentVolume


@dataclass(frozen=True, slots=True)
class Snapshot:
    """volume: the one that the claim names or, for a claim that names none, the best that there is for it.
    delayed: the claim waits for a pod. default: the name of the default class, for a claim that says nothing of
    classes. waiting_pods: those that use the claim and have no node. attributes_classes: there are such."""

    claim: PersistentVolumeClaim
    volume: PersistentVolume | None = None
    delayed: bool = False
    default: str = ""
    waiting_pods: tuple[str, ...] = ()
    attributes_classes: bool = True
