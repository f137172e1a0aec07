"""Volumes of pods.

Source: pkg/apis/core/validation/validation.go#ValidateVolumes.
"""

from collections.abc import Callable, Mapping

from kcm_cli.machinery import names
from kcm_cli.machinery.quantity import from_json
from kcm_cli.machinery.quoting import quote
from kcm_cli.sandbox.apiserver.types import Errors, FieldError, Tree
from kcm_cli.sandbox.apiserver.validation import errors, file_paths, labels, metadata, volume_sources
from kcm_cli.sandbox.apiserver.validation.container_env import VOLUME_FIELDS, field_selector, resource_selector
from kcm_cli.sandbox.apiserver.validation.persistent_claim import validate_claim_spec
from kcm_cli.sandbox.apiserver.validation.volume_projections import validate_projected

_ORDER = (
    *("emptyDir", "hostPath", "gitRepo", "gcePersistentDisk", "awsElasticBlockStore", "secret", "nfs", "iscsi"),
    *("glusterfs", "flocker", "persistentVolumeClaim", "rbd", "cinder", "cephfs", "quobyte", "downwardAPI", "fc"),
    *("flexVolume", "configMap", "azureFile", "vsphereVolume", "photonPersistentDisk", "portworxVolume"),
    *("azureDisk", "storageos", "projected", "scaleIO", "csi", "ephemeral", "image"),
)
_SECOND = "may not specify more than 1 volume type"
_SECOND_PATHS = {"cephfs": "cephFS", "downwardAPI": "downwarAPI"}
"""Paths as upstream misspells them."""
_FIRST_PATHS = {"gcePersistentDisk": "persistentDisk"}


def validate_volumes(
    volumes: list[Tree], pod_name: str, path: str, *, is_pod: bool
) -> tuple[Mapping[str, Tree], list[FieldError]]:
    """The usable volumes by name, and what is wrong with the others."""
    usable: dict[str, Tree] = {}
    found: list[FieldError] = []
    created = set()
    if pod_name:
        created = {f"{pod_name}-{item.get('name', '')}" for item in volumes if item.get("ephemeral") is not None}
    for index, volume in enumerate(volumes):
        name, place = volume.get("name", ""), f"{path}[{index}]"
        wrong = [*_source(volume, pod_name, place, is_pod)]
        if not name:
            wrong.append(errors.required(f"{place}.name"))
        elif messages := names.dns1123_label(name):
            wrong += errors.invalid_each(f"{place}.name", name, messages)
        if name in usable:
            wrong.append(errors.duplicate(f"{place}.name", name))
        if wrong:
            found += wrong
        else:
            usable[name] = volume
        claim = (volume.get("persistentVolumeClaim") or {}).get("claimName")
        if claim in created:
            detail = "must not reference a PVC that gets created for an ephemeral volume"
            found.append(errors.invalid(f"{place}.persistentVolumeClaim.claimName", claim, detail))
    return usable, found


def _source(volume: Tree, pod_name: str, path: str, is_pod: bool) -> Errors:
    kinds = [kind for kind in volume if kind != "name"]
    if not kinds:
        yield errors.required(path, "must specify a volume type")
        return
    if len(kinds) > 1:
        kinds = [kind for kind in _ORDER if volume.get(kind) is not None]
    first = kinds[0]
    yield from _first(first, volume, pod_name, path, is_pod)
    for kind in kinds[1:]:
        yield errors.forbidden(f"{path}.{_SECOND_PATHS.get(kind, kind)}", _SECOND)


def _first(kind: str, volume: Tree, pod_name: str, path: str, is_pod: bool) -> Errors:
    source = volume[kind]
    place = f"{path}.{_FIRST_PATHS.get(kind, kind)}"
    if check := _CHECKS.get(kind):
        yield from check(source, place)
        return
    name = volume.get("name", "")
    if kind == "iscsi":
        yield from volume_sources.iscsi(source, place)
        length = len(f"{name}:{source.get('targetPortal', '')}")
        if source.get("initiatorName") is not None and length > volume_sources.PORTAL_MAX:
            yield errors.invalid(f"{path}.name", name, volume_sources.PORTAL_TOO_LONG)
        return
    if kind == "ephemeral":
        yield from _ephemeral(source, name, pod_name, path)
        return
    if kind == "image":
        yield from _image(source, place, is_pod)
        return


def _empty_dir(source: Tree, path: str) -> Errors:
    limit = source.get("sizeLimit")
    if limit is not None and from_json(limit).sign < 0:
        return [errors.forbidden(f"{path}.sizeLimit", "SizeLimit field must be a valid resource quantity")]
    return []


def _files(field: str) -> Callable[[Tree, str], Errors]:
    def check(source: Tree, path: str) -> Errors:
        if not source.get(field):
            yield errors.required(f"{path}.{field}")
        yield from file_paths.mode(source.get("defaultMode"), f"{path}.defaultMode")
        for index, item in enumerate(source.get("items") or ()):
            yield from key_to_path(item, f"{path}.items[{index}]")

    return check


def key_to_path(item: Tree, path: str) -> Errors:
    """One key and the file that it becomes."""
    yield from (errors.required(f"{path}.{field}") for field in ("key", "path") if not item.get(field))
    yield from file_paths.not_reserved(item.get("path", ""), f"{path}.path")
    yield from file_paths.mode(item.get("mode"), f"{path}.mode")


def _claim(source: Tree, path: str) -> Errors:
    return [] if source.get("claimName") else [errors.required(f"{path}.claimName")]


def _downward(source: Tree, path: str) -> Errors:
    yield from file_paths.mode(source.get("defaultMode"), f"{path}.defaultMode")
    for item in source.get("items") or ():
        yield from downward_file(item, path)


def downward_file(item: Tree, path: str) -> Errors:
    """One fact about the pod and the file that it becomes."""
    if not item.get("path"):
        yield errors.required(f"{path}.path")
    yield from file_paths.not_reserved(item.get("path", ""), f"{path}.path")
    field, resource = item.get("fieldRef"), item.get("resourceFieldRef")
    if field is not None:
        yield from field_selector(field, VOLUME_FIELDS, f"{path}.fieldRef")
        if resource is not None:
            yield errors.invalid(path, "resource", "fieldRef and resourceFieldRef can not be specified simultaneously")
    elif resource is not None:
        yield from resource_selector(resource, f"{path}.resourceFieldRef", volume=True)
    else:
        yield errors.required(path, "one of fieldRef and resourceFieldRef is required")
    yield from file_paths.mode(item.get("mode"), f"{path}.mode")


def _projected(source: Tree, path: str) -> Errors:
    return validate_projected(source, path, key_to_path, downward_file)


def _csi(source: Tree, path: str) -> Errors:
    yield from volume_sources.csi_driver_name(source.get("driver", ""), f"{path}.driver")
    secret = source.get("nodePublishSecretRef")
    if secret is None:
        return
    name = secret.get("name", "")
    if not name:
        yield errors.required(f"{path}.nodePublishSecretRef.name")
        return
    yield from errors.invalid_each(f"{path}.name", name, names.dns1123_subdomain(name))


def _ephemeral(source: Tree, name: str, pod_name: str, path: str) -> Errors:
    place = f"{path}.ephemeral.volumeClaimTemplate"
    template = source.get("volumeClaimTemplate")
    if template is None:
        yield errors.required(place)
    else:
        yield from _template_meta(template.get("metadata") or {}, f"{place}.metadata")
        yield from validate_claim_spec(template.get("spec") or {}, f"{place}.spec")
    if pod_name and name:
        claim = f"{pod_name}-{name}"
        details = [f"PVC name {quote(claim)}: {message}" for message in names.dns1123_subdomain(claim)]
        yield from errors.invalid_each(f"{path}.name", name, details)


def _template_meta(meta: Tree, path: str) -> Errors:
    yield from labels.validate_annotations(meta.get("annotations"), f"{path}.annotations")
    yield from labels.validate_labels(meta.get("labels"), f"{path}.labels")
    for field, value in meta.items():
        if field not in ("annotations", "labels") and value:
            yield errors.forbidden(f"{path}.{metadata.go_field(field)}", "cannot be set")


def _image(source: Tree, path: str, is_pod: bool) -> Errors:
    if is_pod and not source.get("reference"):
        yield errors.required(f"{path}.reference")
    policy = source.get("pullPolicy", "")
    if not policy:
        yield errors.required(f"{path}.pullPolicy")
    elif policy not in ("Always", "IfNotPresent", "Never"):
        choices = ["Always", "IfNotPresent", "Never"]
        yield errors.not_supported(f"{path}.pullPolicy", policy, choices)


_CHECKS: Mapping[str, Callable[[Tree, str], Errors]] = {
    **volume_sources.COMMON,
    "emptyDir": _empty_dir,
    "secret": _files("secretName"),
    "configMap": _files("name"),
    "persistentVolumeClaim": _claim,
    "downwardAPI": _downward,
    "projected": _projected,
    "csi": _csi,
}
