"""PersistentVolumes, and inline specs of them in VolumeAttachments.

upstream: pkg/apis/core/validation/validation.go#ValidatePersistentVolumeSpec, pkg/volume/validation
"""

import posixpath

from kcm_cli.sandbox.apiserver.types import Errors, Tree
from kcm_cli.sandbox.apiserver.validation import errors, file_paths, rules, volume_sources
from kcm_cli.sandbox.apiserver.validation.persistent_claim import access_modes
from kcm_cli.sandbox.apiserver.validation.volume_sources import COMMON, PATHS, PERSISTENT, SECOND

SOURCE_ORDER = (
    *("hostPath", "gcePersistentDisk", "awsElasticBlockStore", "glusterfs", "flocker", "nfs", "rbd", "quobyte"),
    *("cephfs", "iscsi", "cinder", "fc", "flexVolume", "azureFile", "vsphereVolume", "photonPersistentDisk"),
    *("portworxVolume", "azureDisk", "scaleIO", "local", "storageos", "csi"),
)
_SECOND_PATHS = {"cephfs": "cephFS"}
_CSI_SECRETS = (
    "controllerPublishSecretRef",
    "controllerExpandSecretRef",
    "nodePublishSecretRef",
    "nodeExpandSecretRef",
)

validate_modes = rules.fields(rules.required("accessModes"), rules.optional("accessModes", access_modes))


def validate_sources(spec: Tree, name: str, path: str, *, has_affinity: bool) -> Errors:
    """A volume has one source, and flexVolume beside it is not noticed, as upstream. name: of the PersistentVolume."""
    first = ""
    for kind in SOURCE_ORDER:
        source = spec.get(kind)
        if source is None:
            continue
        if first and kind != "flexVolume":
            yield errors.forbidden(f"{path}.{_SECOND_PATHS.get(kind, kind)}", SECOND)
            continue
        first = first or kind
        place = f"{path}.{PATHS.get(kind, kind)}"
        yield from _iscsi(source, name, place) if kind == "iscsi" else _SOURCES[kind](source, place)
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


_endpoints_namespace = rules.unless(
    rules.must(bool, "if the endpointnamespace is set, it must be a valid namespace name"), rules.LABEL
)


def _iscsi(source: Tree, name: str, path: str) -> Errors:
    found = [*volume_sources.persistent_iscsi(source, path)]
    portal = source.get("targetPortal", "")
    if source.get("initiatorName") is not None and len(f"{name}:{portal}") > volume_sources.PORTAL_MAX:
        error = errors.invalid(f"{path}.targetportal", portal, volume_sources.PORTAL_TOO_LONG)
        found.insert(0 if portal else 1, error)
    return found


_SECRET = rules.fields(rules.required("name", rules.SUBDOMAIN), rules.required("namespace", rules.LABEL))
_SOURCES: dict[str, rules.Rule] = {
    **COMMON,
    **PERSISTENT,
    "glusterfs": rules.fields(COMMON["glusterfs"], rules.optional("endpointsNamespace", _endpoints_namespace)),
    "azureFile": rules.fields(COMMON["azureFile"], rules.optional("secretNamespace", rules.given())),
    "local": rules.fields(rules.required("path", file_paths.no_backsteps)),
    "csi": rules.fields(
        rules.required("driver", volume_sources.CSI_DRIVER),
        rules.required("volumeHandle"),
        *(rules.optional(field, _SECRET) for field in _CSI_SECRETS),
    ),
}


def _needs_csi(spec: Tree, path: str) -> Errors:
    if spec.get("volumeAttributesClassName") is not None and spec.get("csi") is None:
        yield errors.required(f"{path}.csi", "has to be specified when using volumeAttributesClassName")


_class_name = rules.unless(rules.given("an empty string is disallowed"), rules.SUBDOMAIN)
validate_attributes_class = rules.fields(rules.optional("volumeAttributesClassName", _class_name), _needs_csi)
