"""PersistentVolume.

upstream: pkg/apis/core/v1/defaults.go, pkg/apis/core/validation,
pkg/registry/core/persistentvolume/strategy.go, pkg/printers/internalversion/printers.go
"""

from collections.abc import Mapping
from datetime import datetime
from functools import partial

from kcm_cli.api.well_known import BETA_STORAGE_CLASS
from kcm_cli.sandbox.apiserver.defaulting import fill, resources, volumes
from kcm_cli.sandbox.apiserver.kinds.core import common
from kcm_cli.sandbox.apiserver.kinds.core.common import CLASS_TEXT, class_of, modes_at, phase
from kcm_cli.sandbox.apiserver.registry.core import Kind
from kcm_cli.sandbox.apiserver.strategy.base import Context, Strategy
from kcm_cli.sandbox.apiserver.strategy.warnings import nodes, storage
from kcm_cli.sandbox.apiserver.tables.column import AGE, NAME, UNSET, Column, at, layout, of_field, wide
from kcm_cli.sandbox.apiserver.trees import each_at, places
from kcm_cli.sandbox.apiserver.types import Errors, Tree
from kcm_cli.sandbox.apiserver.validation import (
    errors,
    go_print,
    labels,
    persistent_claim,
    quantities,
    rules,
    scheduling,
)
from kcm_cli.sandbox.apiserver.validation.persistent_volume import (
    SOURCE_ORDER,
    validate_attributes_class,
    validate_modes,
    validate_sources,
)


def _check(doc: Tree, old: Tree | None) -> Errors:
    lenient = old is not None and _has_invalid_value(old["spec"].get("nodeAffinity"))
    yield from _spec(doc, lenient=lenient)
    if _MOUNT_OPTIONS not in (doc["metadata"].get("annotations") or ()):
        return
    if not any(kind in doc["spec"] for kind in SOURCE_ORDER if kind not in _NO_MOUNT_OPTIONS):
        detail = "may not specify mount options for this volume type"
        yield errors.forbidden(f"metadata.annotations.{_MOUNT_OPTIONS}", detail)


def _check_change(new: Tree, old: Tree) -> Errors:
    spec, known = new["spec"], old["spec"]
    yield from _spec(new, lenient=_has_invalid_value(known.get("nodeAffinity")))
    yield from _source_changed(spec, known)
    yield from errors.fixed("volumeMode", spec.get("volumeMode"), known.get("volumeMode"))
    affinity, before = spec.get("nodeAffinity"), known.get("nodeAffinity")
    if before is not None and _renamed(affinity) != _renamed(before):
        shown = None if affinity is None else go_print.internal("core.VolumeNodeAffinity", affinity)
        detail = f"{errors.IMMUTABLE}, except for updating from beta label to GA"
        yield errors.invalid("nodeAffinity", shown, detail)
    if known.get("volumeAttributesClassName") is not None and spec.get("volumeAttributesClassName") is None:
        yield errors.forbidden("spec.volumeAttributesClassName", "update from non-nil value to nil is forbidden")


_TERMS = "required.nodeSelectorTerms[]"
_NO_MOUNT_OPTIONS = frozenset(
    {"hostPath", "flocker", "fc", "flexVolume", "portworxVolume", "scaleIO", "local", "storageos", "csi"}
)
_MOUNT_OPTIONS = "volume.beta.kubernetes.io/mount-options"
_RENAMED = {
    "beta.kubernetes.io/arch": "kubernetes.io/arch",
    "beta.kubernetes.io/os": "kubernetes.io/os",
    "beta.kubernetes.io/instance-type": "node.kubernetes.io/instance-type",
    "failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone": "topology.kubernetes.io/zone",
}


def _source_changed(spec: Tree, known: Tree) -> Errors:
    after = {kind: spec[kind] for kind in SOURCE_ORDER if kind in spec}
    before = {kind: known[kind] for kind in SOURCE_ORDER if kind in known}
    secret = "controllerExpandSecretRef"
    if "csi" in before and "csi" in after and secret not in before["csi"] and secret in after["csi"]:
        after["csi"] = {key: value for key, value in after["csi"].items() if key != secret}
    if before == after:
        return []
    difference = go_print.diff("core.PersistentVolumeSource", before, after)
    detail = f"spec.persistentvolumesource is immutable after creation\n{difference}"
    return [errors.forbidden("spec.persistentvolumesource", detail)]


def _has_invalid_value(affinity: Tree | None) -> bool:
    return any(labels.value_messages(value) for value, _ in places(affinity, f"{_TERMS}.matchExpressions[].values[]"))


def _renamed(affinity: Tree | None) -> object:
    """An affinity with the current names of node labels, for comparison."""
    if affinity is None:
        return None
    return [
        (
            [
                {**item, "key": _RENAMED.get(item.get("key"), item.get("key"))}
                for item in term.get("matchExpressions") or ()
            ],
            term.get("matchFields") or [],
        )
        for term, _ in places(affinity, _TERMS)
    ]


def _spec(doc: Tree, *, lenient: bool) -> Errors:
    spec = doc["spec"]
    yield from _BEFORE_SOURCES[lenient](spec, "spec")
    has_affinity = spec.get("nodeAffinity") is not None
    yield from validate_sources(spec, doc["metadata"].get("name", ""), "spec", has_affinity=has_affinity)
    yield from _AFTER_SOURCES(spec, "spec")


def _capacity(capacity: Mapping[str, str], path: str) -> Errors:
    if not capacity:
        yield errors.required(path)
    if not capacity or "storage" not in capacity or len(capacity) > 1:
        yield errors.not_supported(path, errors.sorted_map(capacity), ["storage"])
    for name, amount in sorted((capacity or {}).items()):
        yield from common.basic(amount, f"{path}[{name}]")
        yield from quantities.positive(amount, f"{path}[{name}]")


def _node_affinity(lenient: bool) -> rules.Rule:
    required = scheduling.node_selector(lenient)
    return rules.fields(rules.present("required", required, detail="must specify required node constraints"))


_VOLUME = "core.v1.PersistentVolumeSpec"
_BEFORE_SOURCES = {
    lenient: rules.fields_of(
        _VOLUME,
        validate_modes,
        rules.always("capacity", _capacity, default=None),
        rules.maybe_one_of("persistentVolumeReclaimPolicy", zero=True),
        rules.optional("nodeAffinity", _node_affinity(lenient)),
    )
    for lenient in (False, True)
}
_AFTER_SOURCES = rules.fields_of(_VOLUME, *persistent_claim.CLASSES, validate_attributes_class)


def _defaults(doc: Tree) -> None:
    """Default a PersistentVolume."""
    spec = doc.setdefault("spec", {})
    fill.empty(spec, persistentVolumeReclaimPolicy="Retain")
    fill.absent(spec, volumeMode="Filesystem")
    resources.resource_list(spec.get("capacity"))
    volumes.persistent_source(spec)
    fill.empty(doc.setdefault("status", {}), phase="Pending")


_MOUNTS_TEXT = 'deprecated since v1.31; use "mountOptions" attribute instead'
_RECYCLE = (
    "spec.persistentVolumeReclaimPolicy: The Recycle reclaim policy is deprecated. "
    "Instead, the recommended approach is to use dynamic provisioning."
)
_DEPRECATED = ("cephfs", "photonPersistentDisk", "scaleIO", "storageos", "glusterfs", "rbd")


def of_volume(new: Tree, old: Tree | None) -> list[str]:
    """Warnings about a PersistentVolume."""
    spec, annotations = new["spec"], new["metadata"].get("annotations") or {}
    found = [
        f"metadata.annotations[{key}]: {text}"
        for key, text in ((BETA_STORAGE_CLASS, CLASS_TEXT), (_MOUNT_OPTIONS, _MOUNTS_TEXT))
        if key in annotations
    ]
    if spec.get("persistentVolumeReclaimPolicy") == "Recycle":
        found.append(_RECYCLE)
    found += each_at(nodes.of_term, new, f"spec.nodeAffinity.{_TERMS}")
    return found + [f"spec.{storage.DEPRECATED[kind]}" for kind in _DEPRECATED if spec.get(kind) is not None]


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


_field = partial(of_field, "PersistentVolume")


def _claim(doc: Tree, now: datetime) -> str:
    claim = (doc.get("spec") or {}).get("claimRef")
    return f"{claim.get('namespace', '')}/{claim.get('name', '')}" if claim else ""


KIND = Kind(
    "",
    "persistentvolumes",
    defaults=_defaults,
    strategy=Strategy(
        new_status={"phase": "Pending"},
        stamp=_stamp_volume,
        stamp_status=_stamp_volume_status,
        check=_check,
        check_change=_check_change,
        update_steps=("name", "rules", "name", "change"),
        check_status=common.needs_version,
        returns_object_on_delete=True,
        warn=of_volume,
    ),
    table=layout(
        NAME,
        Column("Capacity", *_field("spec.capacity.storage", "0")),
        Column("Access Modes", "PersistentVolumeSpec.accessModes", modes_at("spec.accessModes")),
        Column("Reclaim Policy", *_field("spec.persistentVolumeReclaimPolicy")),
        Column("Status", "PersistentVolumeStatus.phase", phase),
        Column("Claim", "PersistentVolumeSpec.claimRef", _claim),
        Column("StorageClass", "StorageClass of the pv", class_of),
        Column("VolumeAttributesClass", "VolumeAttributesClass of the pv", at("spec.volumeAttributesClassName", UNSET)),
        Column("Reason", *_field("status.reason")),
        AGE,
        wide("VolumeMode", *_field("spec.volumeMode", UNSET)),
    ),
)
