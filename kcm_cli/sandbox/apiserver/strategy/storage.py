"""Strategies of claims, volumes and the kinds of storage.k8s.io.

Source: pkg/registry/core/{persistentvolume,persistentvolumeclaim}/strategy.go, pkg/registry/storage/*/strategy.go,
pkg/api/persistentvolumeclaim/util.go.
"""

from kcm_cli.sandbox.apiserver.strategy import parts
from kcm_cli.sandbox.apiserver.strategy.base import Context, Strategy
from kcm_cli.sandbox.apiserver.strategy.warnings import storage as warned
from kcm_cli.sandbox.apiserver.types import Tree
from kcm_cli.sandbox.apiserver.validation import persistent_claim, persistent_volume, storage_classes, storage_csi

_SNAPSHOTS = "snapshot.storage.k8s.io"


def _stamp_volume(new: Tree, old: Tree | None, context: Context) -> None:
    if old is None:
        new["status"]["lastPhaseTransitionTime"] = context.now or new["metadata"]["creationTimestamp"]


def _stamp_volume_status(new: Tree, old: Tree | None, context: Context) -> None:
    status, known = new.setdefault("status", {}), (old or {}).get("status") or {}
    moment, before = status.get("lastPhaseTransitionTime"), known.get("lastPhaseTransitionTime")
    if status.get("phase") == known.get("phase"):
        if moment is None and before is not None:
            status["lastPhaseTransitionTime"] = before
    elif (moment is None or moment == before) and context.now:
        status["lastPhaseTransitionTime"] = context.now


def _new_claim(doc: Tree) -> None:
    doc["status"] = {"phase": "Pending"}
    spec = doc["spec"]
    _drop_foreign_namespace(spec, {})
    if spec.get("dataSourceRef") is None and not _known_source(spec.get("dataSource")):
        spec.pop("dataSource", None)
    normalize_sources(spec)


def _claim_update(new: Tree, old: Tree) -> None:
    parts.keep_status(new, old)
    spec, known = new["spec"], old["spec"]
    _drop_foreign_namespace(spec, known)
    in_use = known.get("dataSource") is not None or known.get("dataSourceRef") is not None
    if not in_use and spec.get("dataSourceRef") is None and not _known_source(spec.get("dataSource")):
        spec.pop("dataSource", None)
    normalize_sources(spec)


def _drop_foreign_namespace(spec: Tree, known: Tree) -> None:
    """Sources in other namespaces are off by default (gate CrossNamespaceVolumeDataSource)."""
    reference = spec.get("dataSourceRef")
    if reference is not None and reference.get("namespace") and known.get("dataSourceRef") is None:
        del spec["dataSourceRef"]


def _known_source(source: Tree | None) -> bool:
    if source is None:
        return False
    kind, group = source.get("kind"), source.get("apiGroup") or ""
    return (kind, group) in (("PersistentVolumeClaim", ""), ("VolumeSnapshot", _SNAPSHOTS))


def normalize_sources(spec: Tree) -> None:
    """Bring ``dataSource`` and ``dataSourceRef`` in line where a client gave one of them."""
    source, reference = spec.get("dataSource"), spec.get("dataSourceRef")
    if source is not None and reference is None:
        spec["dataSourceRef"] = _copied(source)
    elif reference is not None and source is None and not reference.get("namespace"):
        spec["dataSource"] = _copied(reference)


def _copied(source: Tree) -> Tree:
    return {"apiGroup": source.get("apiGroup"), "kind": source.get("kind", ""), "name": source.get("name", "")}


PERSISTENT_VOLUME = Strategy(
    namespaced=False,
    on_create=parts.new_with_status({"phase": "Pending"}, generation=False),
    on_update=parts.keep_status,
    on_status=parts.status_update,
    stamp=_stamp_volume,
    stamp_status=_stamp_volume_status,
    check_create=persistent_volume.validate_volume,
    check_update=persistent_volume.validate_volume_update,
    check_status=persistent_volume.validate_volume_status,
    returns_object_on_delete=True,
    warn=warned.of_volume,
)
PERSISTENT_VOLUME_CLAIM = Strategy(
    on_create=_new_claim,
    on_update=_claim_update,
    on_status=parts.status_update,
    check_create=persistent_claim.validate_claim,
    check_update=persistent_claim.validate_claim_update,
    check_status=persistent_claim.validate_claim_status,
    completes_on_read=lambda doc: True,  # the phase of a claim without one is Pending
    returns_object_on_delete=True,
    warn=warned.of_claim,
)
_GATED_OF_DRIVER = "preventPodSchedulingIfMissing"  # by VolumeLimitScaling


def _drop_gated_of_driver(doc: Tree) -> None:
    doc["spec"].pop(_GATED_OF_DRIVER, None)


def _driver_update(new: Tree, old: Tree) -> None:
    if old["spec"].get(_GATED_OF_DRIVER) is None:
        _drop_gated_of_driver(new)
    parts.bump_if_spec_changed(new, old)


STORAGE_CLASS = Strategy(
    namespaced=False,
    returns_object_on_delete=True,
    check_create=storage_classes.validate_storage_class,
    check_update=storage_classes.validate_storage_class_update,
    warn=warned.of_storage_class,
)
CSI_DRIVER = Strategy(
    namespaced=False,
    on_create=_drop_gated_of_driver,
    on_update=_driver_update,
    needs_version_on_update=True,
    returns_object_on_delete=True,
    check_create=storage_csi.validate_driver,
    check_update=storage_csi.validate_driver_update,
    warn=warned.of_driver,
)
CSI_NODE = Strategy(
    namespaced=False,
    needs_version_on_update=True,
    returns_object_on_delete=True,
    check_create=storage_csi.validate_node,
    check_update=storage_csi.validate_node_update,
)
CSI_STORAGE_CAPACITY = Strategy(
    needs_version_on_update=True,
    check_create=storage_csi.validate_capacity,
    check_update=storage_csi.validate_capacity_update,
    warn=warned.of_capacity,
)
VOLUME_ATTACHMENT = Strategy(
    namespaced=False,
    on_create=parts.new_with_status({"attached": False}, generation=False),
    on_update=parts.keep_status,
    on_status=parts.strict_status_update,
    needs_version_on_update=True,
    returns_object_on_delete=True,
    check_create=storage_csi.validate_attachment,
    check_update=storage_csi.validate_attachment_update,
    check_status=storage_csi.validate_attachment_update,
)
VOLUME_ATTRIBUTES_CLASS = Strategy(
    namespaced=False,
    returns_object_on_delete=True,
    check_create=storage_classes.validate_attributes_class,
    check_update=storage_classes.validate_attributes_class_update,
)
