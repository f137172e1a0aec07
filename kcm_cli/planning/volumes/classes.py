"""The StorageClass of a volume or claim, and the default class.

upstream: staging/src/k8s.io/component-helpers/storage/volume/helpers.go, pkg/volume/util/storageclass.go
"""

from collections.abc import Iterable, Mapping

from kcm_cli.api.core import PersistentVolumeClaim
from kcm_cli.api.storage import PersistentVolume, StorageClass
from kcm_cli.api.well_known import BETA_STORAGE_CLASS
from kcm_cli.planning.volumes.names import WAIT_FOR_FIRST_CONSUMER

DEFAULT = "storageclass.kubernetes.io/is-default-class"
BETA_DEFAULT = "storageclass.beta.kubernetes.io/is-default-class"


def class_of_claim(claim: PersistentVolumeClaim) -> str:
    """Empty for none."""
    return claim.annotations.get(BETA_STORAGE_CLASS, claim.spec.storage_class_name or "")


def class_of_volume(volume: PersistentVolume) -> str:
    """Empty for none."""
    return volume.annotations.get(BETA_STORAGE_CLASS, volume.spec.storage_class_name)


def says_class(claim: PersistentVolumeClaim) -> bool:
    """Whether the claim sets a class, which may be the empty one."""
    return BETA_STORAGE_CLASS in claim.annotations or claim.spec.storage_class_name is not None


def waits_for_consumer(class_: StorageClass | None) -> bool:
    return class_ is not None and class_.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER


def allows(class_: StorageClass, labels: Mapping[str, str]) -> bool:
    """Whether volumes of a class may be where a node with these labels is."""
    terms = class_.allowed_topologies
    return not terms or any(
        all(labels.get(item.key) in item.values for item in term.match_label_expressions) for term in terms
    )


def default_class(classes: Iterable[StorageClass]) -> StorageClass | None:
    """The newest of the classes that are marked as the default; of several with one creation time the first by name."""
    marked = [class_ for class_ in classes if _is_default(class_)]
    if not marked:
        return None
    youngest = max(class_.metadata.creation_timestamp or "" for class_ in marked)
    return min((c for c in marked if (c.metadata.creation_timestamp or "") == youngest), key=lambda c: c.name)


def _is_default(class_: StorageClass) -> bool:
    return "true" in (class_.annotations.get(DEFAULT), class_.annotations.get(BETA_DEFAULT))
