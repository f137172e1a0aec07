"""Volumes of pods.

upstream: pkg/apis/core/validation/validation.go#ValidateVolumes
"""

from collections.abc import Mapping

from kcm_cli.machinery import names
from kcm_cli.machinery.quantity import from_json
from kcm_cli.machinery.quoting import quote
from kcm_cli.sandbox.apiserver.types import Errors, FieldError, Tree
from kcm_cli.sandbox.apiserver.validation import errors, labels, rules, volume_sources
from kcm_cli.sandbox.apiserver.validation.persistent_claim import validate_claim_spec
from kcm_cli.sandbox.apiserver.validation.volume_projections import (
    DEFAULT_MODE,
    KEYS,
    downward_file,
    validate_projected,
)

_ORDER = (
    *("emptyDir", "hostPath", "gitRepo", "gcePersistentDisk", "awsElasticBlockStore", "secret", "nfs", "iscsi"),
    *("glusterfs", "flocker", "persistentVolumeClaim", "rbd", "cinder", "cephfs", "quobyte", "downwardAPI", "fc"),
    *("flexVolume", "configMap", "azureFile", "vsphereVolume", "photonPersistentDisk", "portworxVolume"),
    *("azureDisk", "storageos", "projected", "scaleIO", "csi", "ephemeral", "image"),
)
_SECOND_PATHS = {"cephfs": "cephFS", "downwardAPI": "downwarAPI"}
"""Paths as upstream misspells them."""


def validate_volumes(volumes: list[Tree], pod_name: str, path: str) -> tuple[Mapping[str, Tree], list[FieldError]]:
    """The valid volumes by name, and the errors of the others."""
    usable: dict[str, Tree] = {}
    found: list[FieldError] = []
    created = set()
    if pod_name:
        created = {f"{pod_name}-{item.get('name', '')}" for item in volumes if item.get("ephemeral") is not None}
    for index, volume in enumerate(volumes):
        name, place = volume.get("name", ""), f"{path}[{index}]"
        wrong = [*_source(volume, pod_name, place), *_NAMED(volume, place)]
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


def _source(volume: Tree, pod_name: str, path: str) -> Errors:
    kinds = [kind for kind in volume if kind != "name"]
    if not kinds:
        return [errors.required(path, "must specify a volume type")]
    if len(kinds) > 1:
        kinds = [kind for kind in _ORDER if volume.get(kind) is not None]
    others = [errors.forbidden(f"{path}.{_SECOND_PATHS.get(kind, kind)}", volume_sources.SECOND) for kind in kinds[1:]]
    return [*_first(kinds[0], volume, pod_name, path), *others]


def _first(kind: str, volume: Tree, pod_name: str, path: str) -> Errors:
    source, name = volume[kind], volume.get("name", "")
    if check := _CHECKS.get(kind):
        yield from check(source, f"{path}.{volume_sources.PATHS.get(kind, kind)}")
    if kind == "iscsi":
        length = len(f"{name}:{source.get('targetPortal', '')}")
        if source.get("initiatorName") is not None and length > volume_sources.PORTAL_MAX:
            yield errors.invalid(f"{path}.name", name, volume_sources.PORTAL_TOO_LONG)
    if kind == "ephemeral" and pod_name and name:
        claim = f"{pod_name}-{name}"
        details = [f"PVC name {quote(claim)}: {message}" for message in names.dns1123_subdomain(claim)]
        yield from errors.invalid_each(f"{path}.name", name, details)


def _size_limit(limit: str, path: str) -> Errors:
    if from_json(limit).sign < 0:
        yield errors.forbidden(path, "SizeLimit field must be a valid resource quantity")


def _downward(items: list[Tree], path: str) -> Errors:
    # upstream: pkg/apis/core/validation/validation.go#validateDownwardAPIVolumeSource (paths without the list)
    for item in items:
        yield from downward_file(item, path.removesuffix(".items"))


def _publish_secret(source: Tree, path: str) -> Errors:
    name = (source.get("nodePublishSecretRef") or {}).get("name", "")
    # upstream: pkg/apis/core/validation/validation.go#validateCSIVolumeSource (a wrong name is one of the source's)
    return rules.SUBDOMAIN(name, f"{path}.name") if name else ()


def template_meta(meta: Tree, path: str) -> Errors:
    """Check that metadata of a template has only labels and annotations."""
    yield from labels.validate_annotations(meta.get("annotations"), f"{path}.annotations")
    yield from labels.validate_labels(meta.get("labels"), f"{path}.labels")
    for field, value in meta.items():
        if field not in ("annotations", "labels") and (value or (field == "deletionGracePeriodSeconds" and value == 0)):
            # upstream makes the path from the name in the Go struct
            yield errors.forbidden(f"{path}.{'uID' if field == 'uid' else field}", "cannot be set")


_TEMPLATE = rules.fields(
    rules.optional("metadata", template_meta), rules.always("spec", validate_claim_spec, default={})
)
_NAMED = rules.fields(rules.required("name", rules.LABEL))
_CHECKS: Mapping[str, rules.Rule] = {
    **volume_sources.COMMON,
    "iscsi": volume_sources.iscsi,
    "emptyDir": rules.fields(rules.optional("sizeLimit", _size_limit)),
    "secret": rules.fields(rules.required("secretName"), DEFAULT_MODE, KEYS),
    "configMap": rules.fields(rules.required("name"), DEFAULT_MODE, KEYS),
    "persistentVolumeClaim": rules.fields(rules.required("claimName")),
    "downwardAPI": rules.fields(DEFAULT_MODE, rules.optional("items", _downward)),
    "projected": rules.seldom_changing(validate_projected),  # each pod has one with its token
    "csi": rules.fields(
        rules.required("driver", volume_sources.CSI_DRIVER),
        rules.optional("nodePublishSecretRef", rules.fields(rules.required("name"))),
        _publish_secret,
    ),
    "ephemeral": rules.fields(rules.present("volumeClaimTemplate", _TEMPLATE)),
    "image": rules.fields_of("core.v1.ImageVolumeSource", rules.required("reference"), rules.one_of("pullPolicy")),
}
