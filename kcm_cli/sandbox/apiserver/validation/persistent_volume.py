"""Persistent volumes, by themselves and inline in volume attachments.

Source: pkg/apis/core/validation/validation.go#ValidatePersistentVolumeSpec, pkg/volume/validation.
"""

import posixpath

from kcm_cli.machinery import names
from kcm_cli.sandbox.apiserver.types import Errors, Tree
from kcm_cli.sandbox.apiserver.validation import (
    errors,
    file_paths,
    persistent_claim,
    volume_sources,
)

SOURCE_ORDER = (
    *("hostPath", "gcePersistentDisk", "awsElasticBlockStore", "glusterfs", "flocker", "nfs", "rbd", "quobyte"),
    *("cephfs", "iscsi", "cinder", "fc", "flexVolume", "azureFile", "vsphereVolume", "photonPersistentDisk"),
    *("portworxVolume", "azureDisk", "scaleIO", "local", "storageos", "csi"),
)
_FIRST_PATHS = {"gcePersistentDisk": "persistentDisk"}
_SECOND_PATHS = {"cephfs": "cephFS"}
_SECOND = "may not specify more than 1 volume type"
_CSI_SECRETS = (
    "controllerPublishSecretRef",
    "controllerExpandSecretRef",
    "nodePublishSecretRef",
    "nodeExpandSecretRef",
)
_ISCSI_FORM = "must be valid format"


def validate_modes(spec: Tree, path: str) -> Errors:
    modes = spec.get("accessModes") or []
    if not modes:
        yield errors.required(f"{path}.accessModes")
    yield from persistent_claim.access_modes(modes, f"{path}.accessModes")


def validate_sources(spec: Tree, name: str, path: str, *, has_affinity: bool) -> Errors:
    first = ""
    for kind in SOURCE_ORDER:
        source = spec.get(kind)
        if source is None:
            continue
        if first and kind != "flexVolume":
            yield errors.forbidden(f"{path}.{_SECOND_PATHS.get(kind, kind)}", _SECOND)
            continue
        first = first or kind
        yield from _source(kind, source, name, f"{path}.{_FIRST_PATHS.get(kind, kind)}")
        if kind == "local" and not has_affinity:
            yield errors.required(f"{path}.nodeAffinity", "Local volume requires node affinity")
    if not first:
        yield errors.required(path, "must specify a volume type")
    target = (spec.get("hostPath") or {}).get("path")
    if (
        target
        and posixpath.normpath(target).lstrip("/") == ""
        and spec.get("persistentVolumeReclaimPolicy") == "Recycle"
    ):
        detail = "may not be 'recycle' for a hostPath mount of '/'"
        yield errors.forbidden(f"{path}.persistentVolumeReclaimPolicy", detail)


def _source(kind: str, source: Tree, name: str, path: str) -> Errors:
    match kind:
        case "glusterfs":
            yield from volume_sources.COMMON[kind](source, path)
            yield from _endpoints_namespace(source, path)
        case "iscsi":
            yield from _iscsi(source, name, path)
        case "azureFile":
            yield from volume_sources.COMMON[kind](source, path)
            empty = source.get("secretNamespace") == ""
            if empty:
                yield errors.required(f"{path}.secretNamespace")
        case "local":
            target = source.get("path", "")
            if target:
                yield from file_paths.no_backsteps(target, f"{path}.path")
            else:
                yield errors.required(f"{path}.path")
        case "csi":
            yield from _csi(source, path)
        case _:
            yield from (volume_sources.PERSISTENT.get(kind) or volume_sources.COMMON[kind])(source, path)


def _endpoints_namespace(source: Tree, path: str) -> Errors:
    namespace = source.get("endpointsNamespace")
    if namespace is None:
        return []
    place = f"{path}.endpointsNamespace"
    if namespace == "":
        return [errors.invalid(place, namespace, "if the endpointnamespace is set, it must be a valid namespace name")]
    return errors.invalid_each(place, namespace, names.dns1123_label(namespace))


def _iscsi(source: Tree, name: str, path: str) -> Errors:
    found = [*volume_sources.iscsi(source, path, _ISCSI_FORM, named_secret=True)]
    portal = source.get("targetPortal", "")
    if source.get("initiatorName") is not None and len(f"{name}:{portal}") > volume_sources.PORTAL_MAX:
        error = errors.invalid(f"{path}.targetportal", portal, volume_sources.PORTAL_TOO_LONG)
        found.insert(0 if portal else 1, error)
    return found


def _csi(source: Tree, path: str) -> Errors:
    yield from volume_sources.csi_driver_name(source.get("driver", ""), f"{path}.driver")
    if not source.get("volumeHandle"):
        yield errors.required(f"{path}.volumeHandle")
    for field in _CSI_SECRETS:
        reference = source.get(field)
        if reference is not None:
            yield from _secret(reference, f"{path}.{field}")


def _secret(reference: Tree, path: str) -> Errors:
    for field, rule in (("name", names.dns1123_subdomain), ("namespace", names.dns1123_label)):
        value = reference.get(field, "")
        if value:
            yield from errors.invalid_each(f"{path}.{field}", value, rule(value))
        else:
            yield errors.required(f"{path}.{field}")


def validate_attributes_class(spec: Tree, path: str) -> Errors:
    name = spec.get("volumeAttributesClassName")
    if name is None:
        return
    place = f"{path}.volumeAttributesClassName"
    if not name:
        yield errors.required(place, "an empty string is disallowed")
    yield from persistent_claim.class_name(name, place)
    if spec.get("csi") is None:
        yield errors.required(f"{path}.csi", "has to be specified when using volumeAttributesClassName")
