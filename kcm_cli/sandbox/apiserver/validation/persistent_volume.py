"""Persistent volumes, by themselves and inline in volume attachments.

Source: pkg/apis/core/validation/validation.go#ValidatePersistentVolumeSpec, pkg/volume/validation.
"""

import posixpath
from collections.abc import Mapping

from kcm_cli.machinery import names
from kcm_cli.sandbox.apiserver.types import FieldError, Tree
from kcm_cli.sandbox.apiserver.validation import (
    errors,
    file_paths,
    go_print,
    labels,
    metadata,
    persistent_claim,
    quantities,
    scheduling,
    volume_sources,
)

_ORDER = (
    *("hostPath", "gcePersistentDisk", "awsElasticBlockStore", "glusterfs", "flocker", "nfs", "rbd", "quobyte"),
    *("cephfs", "iscsi", "cinder", "fc", "flexVolume", "azureFile", "vsphereVolume", "photonPersistentDisk"),
    *("portworxVolume", "azureDisk", "scaleIO", "local", "storageos", "csi"),
)
_FIRST_PATHS = {"gcePersistentDisk": "persistentDisk"}
_SECOND_PATHS = {"cephfs": "cephFS"}
_SECOND = "may not specify more than 1 volume type"
_POLICIES = ("Delete", "Recycle", "Retain")
_CSI_SECRETS = (
    "controllerPublishSecretRef",
    "controllerExpandSecretRef",
    "nodePublishSecretRef",
    "nodeExpandSecretRef",
)
_NO_MOUNT_OPTIONS = frozenset(
    {"hostPath", "flocker", "fc", "flexVolume", "portworxVolume", "scaleIO", "local", "storageos", "csi"}
)
_MOUNT_OPTIONS = "volume.beta.kubernetes.io/mount-options"
_INLINE = "in the context of inline volumes"
_ISCSI_FORM = "must be valid format"
_RENAMED = {
    "beta.kubernetes.io/arch": "kubernetes.io/arch",
    "beta.kubernetes.io/os": "kubernetes.io/os",
    "beta.kubernetes.io/instance-type": "node.kubernetes.io/instance-type",
    "failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone": "topology.kubernetes.io/zone",
}


def validate_volume(doc: Tree) -> list[FieldError]:
    return _volume(doc, lenient=False) + _mount_options(doc)


def _volume(doc: Tree, *, lenient: bool) -> list[FieldError]:
    meta = doc["metadata"]
    found = metadata.validate_meta(meta, False, metadata.subdomain)
    return found + _spec(doc["spec"], meta.get("name", ""), "spec", lenient=lenient)


def _mount_options(doc: Tree) -> list[FieldError]:
    if _MOUNT_OPTIONS not in (doc["metadata"].get("annotations") or ()):
        return []
    if any(kind in doc["spec"] for kind in _ORDER if kind not in _NO_MOUNT_OPTIONS):
        return []
    detail = "may not specify mount options for this volume type"
    return [errors.forbidden(f"metadata.annotations.{_MOUNT_OPTIONS}", detail)]


def validate_volume_update(new: Tree, old: Tree) -> list[FieldError]:
    spec, known = new["spec"], old["spec"]
    lenient = _has_invalid_value(known.get("nodeAffinity"))
    found = _volume(new, lenient=lenient) + _mount_options(new) + _volume(new, lenient=lenient)
    found += _source_changed(spec, known)
    if spec.get("volumeMode") != known.get("volumeMode"):
        found.append(errors.invalid("volumeMode", spec.get("volumeMode"), errors.IMMUTABLE))
    affinity, before = spec.get("nodeAffinity"), known.get("nodeAffinity")
    if before is not None and _renamed(affinity) != _renamed(before):
        shown = None if affinity is None else go_print.internal("core.VolumeNodeAffinity", affinity)
        detail = f"{errors.IMMUTABLE}, except for updating from beta label to GA"
        found.append(errors.invalid("nodeAffinity", shown, detail))
    if known.get("volumeAttributesClassName") is not None and spec.get("volumeAttributesClassName") is None:
        detail = "update from non-nil value to nil is forbidden"
        found.append(errors.forbidden("spec.volumeAttributesClassName", detail))
    return found


def _source_changed(spec: Tree, known: Tree) -> list[FieldError]:
    after = {kind: spec[kind] for kind in _ORDER if kind in spec}
    before = {kind: known[kind] for kind in _ORDER if kind in known}
    secret = "controllerExpandSecretRef"
    if "csi" in before and "csi" in after and secret not in before["csi"] and secret in after["csi"]:
        after["csi"] = {key: value for key, value in after["csi"].items() if key != secret}
    if before == after:
        return []
    difference = go_print.diff("core.PersistentVolumeSource", before, after)
    detail = f"spec.persistentvolumesource is immutable after creation\n{difference}"
    return [errors.forbidden("spec.persistentvolumesource", detail)]


def _terms(affinity: Tree | None) -> list[Tree]:
    return ((affinity or {}).get("required") or {}).get("nodeSelectorTerms") or []


def _has_invalid_value(affinity: Tree | None) -> bool:
    return any(
        labels.value_messages(value)
        for term in _terms(affinity)
        for item in term.get("matchExpressions") or ()
        for value in item.get("values") or ()
    )


def _renamed(affinity: Tree | None) -> object:
    """An affinity with today's names of node labels, for comparison."""
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
        for term in _terms(affinity)
    ]


def validate_volume_status(new: Tree, old: Tree) -> list[FieldError]:
    found = metadata.validate_meta_update(new["metadata"], old["metadata"])
    if not new["metadata"].get("resourceVersion"):
        found.append(errors.required("resourceVersion"))
    return found


def validate_inline_spec(spec: Tree, path: str) -> list[FieldError]:
    """The spec of a volume that is no object of its own."""
    found: list[FieldError] = []
    if spec.get("claimRef") is not None:
        found.append(errors.forbidden(f"{path}.claimRef", f"may not be specified {_INLINE}"))
    if spec.get("capacity"):
        found.append(errors.forbidden(f"{path}.capacity", f"may not be specified {_INLINE}"))
    if spec.get("csi") is None:
        found.append(errors.required(f"{path}.csi", f"has to be specified {_INLINE}"))
    found += _modes(spec, path)
    if spec.get("persistentVolumeReclaimPolicy") not in (None, "", "Retain"):
        detail = f"may only be Retain {_INLINE}"
        found.append(errors.forbidden(f"{path}.persistentVolumeReclaimPolicy", detail))
    if spec.get("nodeAffinity") is not None:
        found.append(errors.forbidden(f"{path}.nodeAffinity", f"may not be specified {_INLINE}"))
    found += _sources(spec, "", path, has_affinity=False)
    if spec.get("storageClassName"):
        found.append(errors.forbidden(f"{path}.storageClassName", f"may not be specified {_INLINE}"))
    if spec.get("volumeMode") not in (None, "Filesystem"):
        detail = f"may not specify volumeMode other than Filesystem {_INLINE}"
        found.append(errors.forbidden(f"{path}.volumeMode", detail))
    return found + _attributes_class(spec, path)


def _spec(spec: Tree, name: str, path: str, *, lenient: bool) -> list[FieldError]:
    found = _modes(spec, path) + _capacity(spec.get("capacity"), f"{path}.capacity")
    policy = spec.get("persistentVolumeReclaimPolicy")
    if policy and policy not in _POLICIES:
        found.append(errors.not_supported(f"{path}.persistentVolumeReclaimPolicy", policy, _POLICIES))
    affinity = spec.get("nodeAffinity")
    if affinity is not None:
        found += _node_affinity(affinity, f"{path}.nodeAffinity", lenient)
    found += _sources(spec, name, path, has_affinity=affinity is not None)
    found += persistent_claim.class_name(spec.get("storageClassName"), f"{path}.storageClassName")
    found += persistent_claim.volume_mode(spec.get("volumeMode"), f"{path}.volumeMode")
    return found + _attributes_class(spec, path)


def _modes(spec: Tree, path: str) -> list[FieldError]:
    modes = spec.get("accessModes") or []
    found = [] if modes else [errors.required(f"{path}.accessModes")]
    return found + persistent_claim.access_modes(modes, f"{path}.accessModes")


def _capacity(capacity: Mapping[str, str] | None, path: str) -> list[FieldError]:
    found = [] if capacity else [errors.required(path)]
    if not capacity or "storage" not in capacity or len(capacity) > 1:
        found.append(errors.not_supported(path, errors.sorted_map(capacity), ["storage"]))
    for name, value in sorted((capacity or {}).items()):
        found += quantities.basic(value, f"{path}[{name}]") + quantities.positive(value, f"{path}[{name}]")
    return found


def _node_affinity(affinity: Tree, path: str, lenient: bool) -> list[FieldError]:
    required = affinity.get("required")
    if required is None:
        return [errors.required(f"{path}.required", "must specify required node constraints")]
    return scheduling.validate_node_selector(required, f"{path}.required", lenient=lenient)


def _sources(spec: Tree, name: str, path: str, *, has_affinity: bool) -> list[FieldError]:
    found: list[FieldError] = []
    first = ""
    for kind in _ORDER:
        source = spec.get(kind)
        if source is None:
            continue
        if first and kind != "flexVolume":
            found.append(errors.forbidden(f"{path}.{_SECOND_PATHS.get(kind, kind)}", _SECOND))
            continue
        first = first or kind
        found += _source(kind, source, name, f"{path}.{_FIRST_PATHS.get(kind, kind)}")
        if kind == "local" and not has_affinity:
            found.append(errors.required(f"{path}.nodeAffinity", "Local volume requires node affinity"))
    if not first:
        found.append(errors.required(path, "must specify a volume type"))
    target = (spec.get("hostPath") or {}).get("path")
    if (
        target
        and posixpath.normpath(target).lstrip("/") == ""
        and spec.get("persistentVolumeReclaimPolicy") == "Recycle"
    ):
        detail = "may not be 'recycle' for a hostPath mount of '/'"
        found.append(errors.forbidden(f"{path}.persistentVolumeReclaimPolicy", detail))
    return found


def _source(kind: str, source: Tree, name: str, path: str) -> list[FieldError]:
    match kind:
        case "glusterfs":
            return volume_sources.COMMON[kind](source, path) + _endpoints_namespace(source, path)
        case "iscsi":
            return _iscsi(source, name, path)
        case "azureFile":
            found = volume_sources.COMMON[kind](source, path)
            empty = source.get("secretNamespace") == ""
            return [*found, errors.required(f"{path}.secretNamespace")] if empty else found
        case "local":
            target = source.get("path", "")
            return file_paths.no_backsteps(target, f"{path}.path") if target else [errors.required(f"{path}.path")]
        case "csi":
            return _csi(source, path)
        case _:
            return (volume_sources.PERSISTENT.get(kind) or volume_sources.COMMON[kind])(source, path)


def _endpoints_namespace(source: Tree, path: str) -> list[FieldError]:
    namespace = source.get("endpointsNamespace")
    if namespace is None:
        return []
    place = f"{path}.endpointsNamespace"
    if namespace == "":
        detail = "if the endpointnamespace is set, it must be a valid namespace name"
        return [errors.invalid(place, namespace, detail)]
    return errors.invalid_each(place, namespace, names.dns1123_label(namespace))


def _iscsi(source: Tree, name: str, path: str) -> list[FieldError]:
    found = volume_sources.iscsi(source, path, _ISCSI_FORM, named_secret=True)
    portal = source.get("targetPortal", "")
    if source.get("initiatorName") is not None and len(f"{name}:{portal}") > volume_sources.PORTAL_MAX:
        error = errors.invalid(f"{path}.targetportal", portal, volume_sources.PORTAL_TOO_LONG)
        found.insert(0 if portal else 1, error)
    return found


def _csi(source: Tree, path: str) -> list[FieldError]:
    found = volume_sources.csi_driver_name(source.get("driver", ""), f"{path}.driver")
    if not source.get("volumeHandle"):
        found.append(errors.required(f"{path}.volumeHandle"))
    for field in _CSI_SECRETS:
        reference = source.get(field)
        if reference is not None:
            found += _secret(reference, f"{path}.{field}")
    return found


def _secret(reference: Tree, path: str) -> list[FieldError]:
    found: list[FieldError] = []
    for field, rule in (("name", names.dns1123_subdomain), ("namespace", names.dns1123_label)):
        value = reference.get(field, "")
        if value:
            found += errors.invalid_each(f"{path}.{field}", value, rule(value))
        else:
            found.append(errors.required(f"{path}.{field}"))
    return found


def _attributes_class(spec: Tree, path: str) -> list[FieldError]:
    name = spec.get("volumeAttributesClassName")
    if name is None:
        return []
    place = f"{path}.volumeAttributesClassName"
    found = [] if name else [errors.required(place, "an empty string is disallowed")]
    found += persistent_claim.class_name(name, place)
    if spec.get("csi") is None:
        detail = "has to be specified when using volumeAttributesClassName"
        found.append(errors.required(f"{path}.csi", detail))
    return found
