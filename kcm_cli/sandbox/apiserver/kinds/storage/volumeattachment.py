"""VolumeAttachment.

upstream: pkg/apis/storage/v1/defaults.go, pkg/apis/storage/validation,
pkg/registry/storage/volumeattachment/strategy.go, pkg/printers/internalversion/printers.go
"""

from kcm_cli.sandbox.apiserver.defaulting import volumes
from kcm_cli.sandbox.apiserver.kinds.storage.common import MESSAGE_MAX, METADATA_MAX
from kcm_cli.sandbox.apiserver.registry.core import Kind
from kcm_cli.sandbox.apiserver.strategy.base import Strategy, by
from kcm_cli.sandbox.apiserver.tables.column import AGE, NAME, Column, at, flag, layout, of_field
from kcm_cli.sandbox.apiserver.types import Errors, Tree
from kcm_cli.sandbox.apiserver.validation import errors, go_print, metadata, rules
from kcm_cli.sandbox.apiserver.validation.persistent_volume import (
    validate_attributes_class,
    validate_modes,
    validate_sources,
)
from kcm_cli.sandbox.apiserver.validation.volume_sources import CSI_DRIVER

_INLINE = "in the context of inline volumes"


_ONE_SOURCE = "must specify exactly one of inlineVolumeSpec and persistentVolumeName"


def _sources(spec: Tree, path: str) -> Errors:
    return validate_sources(spec, "", path, has_affinity=False)


def _only(allowed: str, detail: str) -> rules.Rule:
    return lambda value, path: () if value == allowed else [errors.forbidden(path, detail)]


_NOT_INLINE = f"may not be specified {_INLINE}"
_INLINE_SPEC = rules.fields(
    rules.forbidden("claimRef", _NOT_INLINE, zero=False),
    rules.forbidden("capacity", _NOT_INLINE),
    rules.present("csi", detail=f"has to be specified {_INLINE}"),
    validate_modes,
    rules.nonempty("persistentVolumeReclaimPolicy", _only("Retain", f"may only be Retain {_INLINE}")),
    rules.forbidden("nodeAffinity", _NOT_INLINE, zero=False),
    _sources,
    rules.forbidden("storageClassName", _NOT_INLINE),
    rules.optional("volumeMode", _only("Filesystem", f"may not specify volumeMode other than Filesystem {_INLINE}")),
    validate_attributes_class,
)
"""The inline spec of a volume."""


def _attached(source: Tree, path: str) -> Errors:
    inline, name = source.get("inlineVolumeSpec"), source.get("persistentVolumeName")
    if inline is None and name is None:
        yield errors.required(path, _ONE_SOURCE)
    elif inline is not None and name is not None:
        yield errors.forbidden(path, _ONE_SOURCE)
    else:
        yield from _source(source, path)


def _message(message: str, path: str) -> Errors:
    if len(message.encode()) > MESSAGE_MAX:
        yield errors.too_long(path, MESSAGE_MAX)


def _named(source: Tree, path: str) -> Errors:
    name = source.get("persistentVolumeName")
    return () if name is None else rules.SUBDOMAIN(name, f"{path}.persistentVolumeName")


_PERSISTENT = rules.fields(rules.required("persistentVolumeName", detail="must specify non empty persistentVolumeName"))
_ERROR = rules.fields(rules.optional("message", _message), rules.optional("errorCode", rules.between(0, 2**31 - 1)))


def _source(source: Tree, path: str) -> Errors:
    inline = source.get("inlineVolumeSpec")
    return _PERSISTENT(source, path) if inline is None else _INLINE_SPEC(inline, f"{path}.inlineVolumeSpec")


_ATTACHMENT = rules.fields(
    rules.always(
        "spec",
        rules.fields(
            rules.required("attacher", CSI_DRIVER),
            rules.always("source", _attached, default={}),
            rules.always("nodeName", rules.SUBDOMAIN),
        ),
    ),
    rules.optional(
        "status",
        rules.fields(
            rules.optional("attachmentMetadata", rules.max_size(METADATA_MAX)),
            rules.optional("attachError", _ERROR),
            rules.optional("detachError", _ERROR),
        ),
    ),
    rules.always("spec", rules.fields(rules.always("source", _named, default={}))),
)


def _check_change(new: Tree, old: Tree) -> Errors:
    shown = go_print.internal("storage.VolumeAttachmentSpec", new["spec"])
    return errors.fixed("spec", new["spec"], old["spec"], shown)


def _check_status(new: Tree, old: Tree) -> Errors:
    yield from metadata.validate_meta(new["metadata"], False, metadata.subdomain)
    yield from _ATTACHMENT(new, "")
    yield from _check_change(new, old)


def _defaults(doc: Tree) -> None:
    inline = ((doc.get("spec") or {}).get("source") or {}).get("inlineVolumeSpec")
    if inline is not None:
        volumes.persistent_source(inline)


KIND = Kind(
    "storage.k8s.io",
    "volumeattachments",
    defaults=_defaults,
    strategy=Strategy(
        new_status={"attached": False},
        status_keeps_metadata=True,
        needs_version_on_update=True,
        returns_object_on_delete=True,
        check=by(_ATTACHMENT),
        check_change=_check_change,
        update_steps=("name", "rules", "change"),
        check_status=_check_status,
    ),
    table=layout(
        NAME,
        Column("Attacher", *of_field("VolumeAttachment", "spec.attacher"), format="name"),
        Column("PV", "VolumeAttachmentSource.persistentVolumeName", at("spec.source.persistentVolumeName")),
        Column("Node", *of_field("VolumeAttachment", "spec.nodeName")),
        flag("Attached", *of_field("VolumeAttachment", "status.attached", False)),
        AGE,
    ),
)
