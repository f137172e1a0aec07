"""Persistent volume claims, by themselves and as templates in pods and StatefulSets.

Source: pkg/apis/core/validation/validation.go#ValidatePersistentVolumeClaim.
"""

from kcm_cli.machinery import names
from kcm_cli.sandbox.apiserver.types import Errors, Tree
from kcm_cli.sandbox.apiserver.validation import errors, labels, quantities

_MODES = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
_VOLUME_MODES = ("Block", "Filesystem")
_DEFAULT_GROUP = "must be 'PersistentVolumeClaim' when referencing the default apiGroup"


def access_modes(modes: list[str], path: str) -> Errors:
    """Known modes, of which one excludes the others."""
    yield from (errors.not_supported(path, mode, _MODES) for mode in modes if mode not in _MODES)
    if "ReadWriteOncePod" in modes and any(mode in _MODES and mode != "ReadWriteOncePod" for mode in modes):
        yield errors.forbidden(path, "may not use ReadWriteOncePod with other access modes")


def class_name(name: str | None, path: str) -> Errors:
    """The name of a class, if there is one."""
    return errors.invalid_each(path, name, names.dns1123_subdomain(name)) if name else []


def volume_mode(mode: str | None, path: str) -> Errors:
    """Files or a raw device."""
    return [] if mode is None or mode in _VOLUME_MODES else [errors.not_supported(path, mode, _VOLUME_MODES)]


def validate_claim_spec(
    spec: Tree, path: str, *, lenient_selector: bool = False, lenient_groups: bool = False
) -> Errors:
    """A claim's spec. What is lenient lets through what an older object already has."""
    modes = spec.get("accessModes") or []
    if not modes:
        yield errors.required(f"{path}.accessModes", "at least 1 access mode is required")
    yield from labels.validate_selector(spec.get("selector"), f"{path}.selector", lenient_values=lenient_selector)
    yield from access_modes(modes, f"{path}.accessModes")
    yield from _size(spec, f"{path}.resources[storage]")
    yield from class_name(spec.get("storageClassName"), f"{path}.storageClassName")
    yield from volume_mode(spec.get("volumeMode"), f"{path}.volumeMode")
    yield from _sources(spec, path, lenient_groups)
    yield from class_name(spec.get("volumeAttributesClassName"), f"{path}.volumeAttributesClassName")


def _size(spec: Tree, path: str) -> Errors:
    requested = ((spec.get("resources") or {}).get("requests") or {}).get("storage")
    return [errors.required(path)] if requested is None else quantities.positive(requested, path)


def _sources(spec: Tree, path: str, lenient_groups: bool) -> Errors:
    source, reference = spec.get("dataSource"), spec.get("dataSourceRef")
    if source is not None:
        yield from _source(source, f"{path}.dataSource", lenient_groups)
    if reference is not None:
        yield from _source(reference, f"{path}.dataSourceRef", lenient_groups)
        namespace = reference.get("namespace")
        if namespace:
            yield from errors.invalid_each(f"{path}.dataSourceRef.namespace", namespace, names.dns1123_label(namespace))
        if source is not None and namespace:
            yield errors.invalid(path, {}, "may not be specified when dataSourceRef.namespace is specified")
        elif source is not None and _differ(source, reference):
            yield errors.invalid(path, {}, "must match dataSourceRef")


def _differ(source: Tree, reference: Tree) -> bool:
    return any(source.get(field) != reference.get(field) for field in ("apiGroup", "kind", "name"))


def _source(source: Tree, path: str, lenient_groups: bool) -> Errors:
    yield from (errors.required(f"{path}.{field}") for field in ("name", "kind") if not source.get(field))
    group, kind = source.get("apiGroup") or "", source.get("kind", "")
    if not group and kind != "PersistentVolumeClaim":
        yield errors.invalid(path, kind, _DEFAULT_GROUP)
    if group and not lenient_groups:
        yield from errors.invalid_each(f"{path}.apiGroup", group, names.dns1123_subdomain(group))
