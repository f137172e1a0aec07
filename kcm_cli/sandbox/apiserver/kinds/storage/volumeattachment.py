"""VolumeAttachment.

Source: pkg/apis/storage/v1/defaults.go, pkg/apis/storage/validation,
pkg/registry/storage/volumeattachment/strategy.go, pkg/printers/internalversion/printers.go.
"""

from datetime import datetime

from kcm_cli.machinery import names
from kcm_cli.sandbox.apiserver.apply.resets import SPEC_AND_METADATA
from kcm_cli.sandbox.apiserver.defaulting import volumes
from kcm_cli.sandbox.apiserver.kinds.kind import Kind
from kcm_cli.sandbox.apiserver.kinds.storage.common import MESSAGE_MAX, METADATA_MAX
from kcm_cli.sandbox.apiserver.strategy import parts
from kcm_cli.sandbox.apiserver.strategy.base import Strategy
from kcm_cli.sandbox.apiserver.tables.column import AGE, NAME, Column, Layout, created, flag, name_of
from kcm_cli.sandbox.apiserver.types import Errors, Tree
from kcm_cli.sandbox.apiserver.validation import errors, go_print, metadata
from kcm_cli.sandbox.apiserver.validation.persistent_volume import (
    validate_attributes_class,
    validate_modes,
    validate_sources,
)
from kcm_cli.sandbox.apiserver.validation.volume_sources import csi_driver_name

_INLINE = "in the context of inline volumes"


def validate_inline_spec(spec: Tree, path: str) -> Errors:
    """The spec of a volume that is no object of its own."""
    if spec.get("claimRef") is not None:
        yield errors.forbidden(f"{path}.claimRef", f"may not be specified {_INLINE}")
    if spec.get("capacity"):
        yield errors.forbidden(f"{path}.capacity", f"may not be specified {_INLINE}")
    if spec.get("csi") is None:
        yield errors.required(f"{path}.csi", f"has to be specified {_INLINE}")
    yield from validate_modes(spec, path)
    if spec.get("persistentVolumeReclaimPolicy") not in (None, "", "Retain"):
        yield errors.forbidden(f"{path}.persistentVolumeReclaimPolicy", f"may only be Retain {_INLINE}")
    if spec.get("nodeAffinity") is not None:
        yield errors.forbidden(f"{path}.nodeAffinity", f"may not be specified {_INLINE}")
    yield from validate_sources(spec, "", path, has_affinity=False)
    if spec.get("storageClassName"):
        yield errors.forbidden(f"{path}.storageClassName", f"may not be specified {_INLINE}")
    if spec.get("volumeMode") not in (None, "Filesystem"):
        yield errors.forbidden(f"{path}.volumeMode", f"may not specify volumeMode other than Filesystem {_INLINE}")
    yield from validate_attributes_class(spec, path)


_ONE_SOURCE = "must specify exactly one of inlineVolumeSpec and persistentVolumeName"


def validate_attachment(doc: Tree) -> Errors:
    spec = doc["spec"]
    yield from metadata.validate_meta(doc["metadata"], False, metadata.subdomain)
    yield from csi_driver_name(spec.get("attacher", ""), "spec.attacher")
    source = spec.get("source") or {}
    yield from _attached(source, "spec.source")
    node = spec.get("nodeName", "")
    yield from errors.invalid_each("spec.nodeName", node, names.dns1123_subdomain(node))
    yield from _attachment_status(doc.get("status") or {})
    name = source.get("persistentVolumeName")
    if name is not None:
        path = "spec.source.persistentVolumeName"
        yield from errors.invalid_each(path, name, names.dns1123_subdomain(name))


def _attached(source: Tree, path: str) -> Errors:
    inline, name = source.get("inlineVolumeSpec"), source.get("persistentVolumeName")
    if inline is None and name is None:
        return [errors.required(path, _ONE_SOURCE)]
    if inline is not None and name is not None:
        return [errors.forbidden(path, _ONE_SOURCE)]
    if inline is not None:
        return validate_inline_spec(inline, f"{path}.inlineVolumeSpec")
    if name:
        return []
    return [errors.required(f"{path}.persistentVolumeName", "must specify non empty persistentVolumeName")]


def _attachment_status(status: Tree) -> Errors:
    entries = (status.get("attachmentMetadata") or {}).items()
    if sum(len(key.encode()) + len(value.encode()) for key, value in entries) > METADATA_MAX:
        yield errors.too_long("status.attachmentMetadata", METADATA_MAX)
    for field in ("attachError", "detachError"):
        error = status.get(field) or {}
        if len(error.get("message", "").encode()) > MESSAGE_MAX:
            # upstream: pkg/apis/storage/validation/validation.go#validateVolumeError (names the other limit)
            yield errors.too_long(f"status.{field}.message", METADATA_MAX)
        code = error.get("errorCode")
        if code is not None and code < 0:
            yield errors.invalid(f"status.{field}.errorCode", code, names.range_message(0, 2**31 - 1))


def validate_attachment_update(new: Tree, old: Tree) -> Errors:
    shown = go_print.internal("storage.VolumeAttachmentSpec", new["spec"])
    return [*validate_attachment(new), *errors.fixed("spec", new["spec"], old["spec"], shown)]


def _defaults(doc: Tree) -> None:
    inline = ((doc.get("spec") or {}).get("source") or {}).get("inlineVolumeSpec")
    if inline is not None:
        volumes.persistent_source(inline)


def _cells(doc: Tree, now: datetime) -> list[object]:
    spec, status = doc.get("spec") or {}, doc.get("status") or {}
    volume = (spec.get("source") or {}).get("persistentVolumeName") or ""
    attached = bool(status.get("attached"))
    return [name_of(doc), spec.get("attacher", ""), volume, spec.get("nodeName", ""), attached, created(doc, now)]


KIND = Kind(
    "storage.k8s.io",
    "volumeattachments",
    defaults=_defaults,
    strategy=Strategy(
        namespaced=False,
        on_create=parts.new_with_status({"attached": False}, generation=False),
        on_update=parts.keep_status,
        on_status=parts.strict_status_update,
        needs_version_on_update=True,
        returns_object_on_delete=True,
        check_create=validate_attachment,
        check_update=validate_attachment_update,
        check_status=validate_attachment_update,
    ),
    table=Layout(
        (
            NAME,
            Column("Attacher", "VolumeAttachmentSpec.attacher", format="name"),
            Column("PV", "VolumeAttachmentSource.persistentVolumeName"),
            Column("Node", "VolumeAttachmentSpec.nodeName"),
            flag("Attached", "VolumeAttachmentStatus.attached"),
            AGE,
        ),
        _cells,
    ),
    writable={"status": SPEC_AND_METADATA},
)
