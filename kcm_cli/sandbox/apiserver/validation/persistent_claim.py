"""Persistent volume claims, by themselves and as templates in pods and StatefulSets.

Source: pkg/apis/core/validation/validation.go#ValidatePersistentVolumeClaim.
"""

from kcm_cli.machinery import names
from kcm_cli.machinery.quantity import ZERO, from_json
from kcm_cli.sandbox.apiserver.trees import keep
from kcm_cli.sandbox.apiserver.types import FieldError, Tree
from kcm_cli.sandbox.apiserver.validation import errors, go_print, labels, metadata, quantities

_MODES = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
_VOLUME_MODES = ("Block", "Filesystem")
_BETA_CLASS = "volume.beta.kubernetes.io/storage-class"
_RESIZES = (
    "ControllerResizeInProgress",
    "ControllerResizeInfeasible",
    "NodeResizeInProgress",
    "NodeResizeInfeasible",
    "NodeResizePending",
)
_SPEC_FIXED = (
    "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims"
)
_DEFAULT_GROUP = "must be 'PersistentVolumeClaim' when referencing the default apiGroup"


def access_modes(modes: list[str], path: str) -> list[FieldError]:
    """Known modes, of which one excludes the others."""
    found = [errors.not_supported(path, mode, _MODES) for mode in modes if mode not in _MODES]
    if "ReadWriteOncePod" in modes and any(mode in _MODES and mode != "ReadWriteOncePod" for mode in modes):
        found.append(errors.forbidden(path, "may not use ReadWriteOncePod with other access modes"))
    return found


def class_name(name: str | None, path: str) -> list[FieldError]:
    """The name of a class, if there is one."""
    return errors.invalid_each(path, name, names.dns1123_subdomain(name)) if name else []


def volume_mode(mode: str | None, path: str) -> list[FieldError]:
    """Files or a raw device."""
    return [] if mode is None or mode in _VOLUME_MODES else [errors.not_supported(path, mode, _VOLUME_MODES)]


def validate_claim_spec(
    spec: Tree, path: str, *, lenient_selector: bool = False, lenient_groups: bool = False
) -> list[FieldError]:
    """A claim's spec. What is lenient lets through what an older object already has."""
    modes = spec.get("accessModes") or []
    found: list[FieldError] = []
    if not modes:
        found.append(errors.required(f"{path}.accessModes", "at least 1 access mode is required"))
    found += labels.validate_selector(spec.get("selector"), f"{path}.selector", lenient_values=lenient_selector)
    found += access_modes(modes, f"{path}.accessModes")
    found += _size(spec, f"{path}.resources[storage]")
    found += class_name(spec.get("storageClassName"), f"{path}.storageClassName")
    found += volume_mode(spec.get("volumeMode"), f"{path}.volumeMode")
    found += _sources(spec, path, lenient_groups)
    return found + class_name(spec.get("volumeAttributesClassName"), f"{path}.volumeAttributesClassName")


def _size(spec: Tree, path: str) -> list[FieldError]:
    requested = ((spec.get("resources") or {}).get("requests") or {}).get("storage")
    return [errors.required(path)] if requested is None else quantities.positive(requested, path)


def _sources(spec: Tree, path: str, lenient_groups: bool) -> list[FieldError]:
    source, reference = spec.get("dataSource"), spec.get("dataSourceRef")
    found: list[FieldError] = []
    if source is not None:
        found += _source(source, f"{path}.dataSource", lenient_groups)
    if reference is not None:
        found += _source(reference, f"{path}.dataSourceRef", lenient_groups)
        namespace = reference.get("namespace")
        if namespace:
            found += errors.invalid_each(f"{path}.dataSourceRef.namespace", namespace, names.dns1123_label(namespace))
        if source is not None and namespace:
            detail = "may not be specified when dataSourceRef.namespace is specified"
            found.append(errors.invalid(path, {}, detail))
        elif source is not None and _differ(source, reference):
            found.append(errors.invalid(path, {}, "must match dataSourceRef"))
    return found


def _differ(source: Tree, reference: Tree) -> bool:
    return any(source.get(field) != reference.get(field) for field in ("apiGroup", "kind", "name"))


def _source(source: Tree, path: str, lenient_groups: bool) -> list[FieldError]:
    found = [errors.required(f"{path}.{field}") for field in ("name", "kind") if not source.get(field)]
    group, kind = source.get("apiGroup") or "", source.get("kind", "")
    if not group and kind != "PersistentVolumeClaim":
        found.append(errors.invalid(path, kind, _DEFAULT_GROUP))
    if group and not lenient_groups:
        found += errors.invalid_each(f"{path}.apiGroup", group, names.dns1123_subdomain(group))
    return found


def validate_claim(doc: Tree) -> list[FieldError]:
    found = metadata.validate_meta(doc["metadata"], True, metadata.subdomain)
    return found + validate_claim_spec(doc["spec"], "spec")


def validate_claim_update(new: Tree, old: Tree) -> list[FieldError]:
    found = metadata.validate_meta_update(new["metadata"], old["metadata"])
    found += metadata.validate_meta(new["metadata"], True, metadata.subdomain)
    spec, known = new["spec"], old["spec"]
    sources = (known.get("dataSource") or {}, known.get("dataSourceRef") or {})
    found += validate_claim_spec(
        spec,
        "spec",
        lenient_selector=bool(labels.validate_selector(known.get("selector"), "")),
        lenient_groups=any(source.get("apiGroup") is not None for source in sources),
    )
    found += _immutable_spec(new, old)
    found += _shrunk(new, old)
    if spec.get("volumeMode") != known.get("volumeMode"):
        found.append(errors.invalid("volumeMode", spec.get("volumeMode"), errors.IMMUTABLE))
    return found + _class_removed(new, old)


def _immutable_spec(new: Tree, old: Tree) -> list[FieldError]:
    spec, known = dict(new["spec"]), dict(old["spec"])
    if not known.get("volumeName"):
        keep(known, spec, "volumeName")
    found = _storage_class(new, old, spec)
    if (new.get("status") or {}).get("phase") == "Bound":
        resources = dict(spec.get("resources") or {})
        if "requests" in resources:
            resources["requests"] = dict(resources["requests"])
            resources["requests"]["storage"] = _requested(old)
            spec["resources"] = resources
        keep(spec, known, "volumeAttributesClassName")
    if spec != known:
        difference = go_print.diff("v1.PersistentVolumeClaimSpec", known, spec)
        found.append(errors.forbidden("spec", f"{_SPEC_FIXED}\n{difference}"))
    return found


def _storage_class(new: Tree, old: Tree, spec: Tree) -> list[FieldError]:
    """The class may move from the old annotation to its field, or be given where there was none."""
    before = (old["metadata"].get("annotations") or {}).get(_BETA_CLASS)
    after = (new["metadata"].get("annotations") or {}).get(_BETA_CLASS)
    name = new["spec"].get("storageClassName")
    unset = old["spec"].get("storageClassName") is None
    if before is not None and unset and name == before and after in (None, before):
        spec.pop("storageClassName", None)
        return []
    if unset and name is not None and before in (None, name):
        spec.pop("storageClassName", None)
    if (before or "") == (after or ""):
        return []
    return [errors.invalid(f"metadata.annotations.{_BETA_CLASS}", after or "", errors.IMMUTABLE)]


def _requested(doc: Tree) -> str:
    return str(((doc["spec"].get("resources") or {}).get("requests") or {}).get("storage", "0"))


def _shrunk(new: Tree, old: Tree) -> list[FieldError]:
    size = from_json(_requested(new))
    if size >= from_json(_requested(old)):
        return []
    capacity = ((old.get("status") or {}).get("capacity") or {}).get("storage")
    if size > (ZERO if capacity is None else from_json(capacity)):
        return []
    detail = "field can not be less than status.capacity"
    return [errors.forbidden("spec.resources.requests.storage", detail)]


def _class_removed(new: Tree, old: Tree) -> list[FieldError]:
    name = new["spec"].get("volumeAttributesClassName")
    current = (old.get("status") or {}).get("currentVolumeAttributesClassName")
    if name or current is None or name == old["spec"].get("volumeAttributesClassName"):
        return []
    what = "nil" if name is None else "empty string"
    detail = f"update to {what} is forbidden when status.currentVolumeAttributesClassName is not nil"
    return [errors.forbidden("spec.volumeAttributesClassName", detail)]


def validate_claim_status(new: Tree, old: Tree) -> list[FieldError]:
    found = metadata.validate_meta_update(new["metadata"], old["metadata"])
    if not new["metadata"].get("resourceVersion"):
        found.append(errors.required("resourceVersion"))
    if not new["spec"].get("accessModes"):
        found.append(errors.required("Spec.accessModes"))
    status = new.get("status") or {}
    for name, value in sorted((status.get("capacity") or {}).items()):
        found += quantities.basic(value, f"status.capacity[{name}]")
    for name, state in sorted((status.get("allocatedResourceStatuses") or {}).items()):
        found += _resource_key(name, "status.allocatedResourceStatuses")
        if state not in _RESIZES:
            found.append(errors.not_supported("status.allocatedResourceStatuses", name, _RESIZES))
    for name, value in sorted((status.get("allocatedResources") or {}).items()):
        wrong = _resource_key(name, "status.allocatedResources")
        found += wrong or quantities.basic(value, f"status.allocatedResources[{name}]")
    return found


def _resource_key(name: str, path: str) -> list[FieldError]:
    if messages := labels.key_messages(name):
        return errors.invalid_each(path, name, messages)
    if names.is_native_resource(name) and name != "storage":
        return [errors.not_supported(path, name, ["storage"])]
    return []
