"""Persistent volume claims, by themselves and as templates in pods and StatefulSets.

Source: pkg/apis/core/validation/validation.go#ValidatePersistentVolumeClaim.
"""

from kcm_cli.machinery import names
from kcm_cli.sandbox.apiserver.types import FieldError, Tree
from kcm_cli.sandbox.apiserver.validation import errors, labels, quantities

_MODES = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
_VOLUME_MODES = ("Block", "Filesystem")
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
