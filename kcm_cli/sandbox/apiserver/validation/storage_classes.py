"""StorageClasses and VolumeAttributesClasses.

Source: pkg/apis/storage/validation/validation.go.
"""

from collections.abc import Mapping

from kcm_cli.sandbox.apiserver.types import FieldError, Tree
from kcm_cli.sandbox.apiserver.validation import errors, labels, metadata

_COUNT_MAX, _SIZE_MAX = 512, 256 * 1024
_POLICIES = ("Delete", "Retain")
_MODES = ("Immediate", "WaitForFirstConsumer")


def validate_storage_class(doc: Tree) -> list[FieldError]:
    found = metadata.validate_meta(doc["metadata"], False, metadata.subdomain)
    found += _driver(doc.get("provisioner", ""), "provisioner")
    found += _parameters(doc.get("parameters") or {}, "parameters")
    policy, mode = doc.get("reclaimPolicy"), doc.get("volumeBindingMode")
    if policy and policy not in _POLICIES:
        found.append(errors.not_supported("reclaimPolicy", policy, _POLICIES))
    if mode is None:
        found.append(errors.required("volumeBindingMode"))
    elif mode not in _MODES:
        found.append(errors.not_supported("volumeBindingMode", mode, _MODES))
    return found + _topologies(doc.get("allowedTopologies") or [], "allowedTopologies")


def validate_storage_class_update(new: Tree, old: Tree) -> list[FieldError]:
    found = validate_storage_class(new) + metadata.validate_meta_update(new["metadata"], old["metadata"])
    parameters = errors.sorted_map(new.get("parameters"))
    found += errors.fixed("parameters", parameters, errors.sorted_map(old.get("parameters")))
    found += errors.fixed("provisioner", new.get("provisioner", ""), old.get("provisioner", ""))
    for field in ("reclaimPolicy", "volumeBindingMode"):
        found += errors.fixed(field, new.get(field), old.get(field))
    return found


def validate_attributes_class(doc: Tree) -> list[FieldError]:
    found = metadata.validate_meta(doc["metadata"], False, metadata.subdomain)
    found += _driver(doc.get("driverName", ""), "driverName")
    parameters = doc.get("parameters") or {}
    found += _parameters(parameters, "parameters")
    if not parameters:
        found.append(errors.required("parameters", "must contain at least one key/value pair"))
    return found


def validate_attributes_class_update(new: Tree, old: Tree) -> list[FieldError]:
    found = metadata.validate_meta_update(new["metadata"], old["metadata"])
    for field in ("driverName", "parameters"):
        if new.get(field) != old.get(field):
            found.append(errors.forbidden(field, f"updates to {field} are forbidden."))
    return found + validate_attributes_class(new)


def _driver(name: str, path: str) -> list[FieldError]:
    if not name:
        return [errors.required(path)]
    return labels.validate_key(name.lower(), path)


def _parameters(parameters: Mapping[str, str], path: str) -> list[FieldError]:
    if len(parameters) > _COUNT_MAX:
        return [errors.too_long(path, _COUNT_MAX)]
    found = [errors.invalid(path, "", "field can not be empty.")] if "" in parameters else []
    size = sum(len(key.encode()) + len(value.encode()) for key, value in parameters.items())
    if size > _SIZE_MAX:
        found.append(errors.too_long(path, _SIZE_MAX))
    return found


def _topologies(terms: list[Tree], path: str) -> list[FieldError]:
    found: list[FieldError] = []
    # upstream: pkg/apis/storage/validation/validation.go#validateAllowedTopologies (starts with empty entries)
    seen: list[dict[str, set[str]]] = [{} for _ in terms]
    for index, term in enumerate(terms):
        place = f"{path}[{index}].matchLabelExpressions"
        values: dict[str, set[str]] = {}
        for number, item in enumerate(term.get("matchLabelExpressions") or ()):
            found += _topology(item, values, f"{place}[{number}]")
        found += [errors.duplicate(place, "") for other in seen if other == values]
        seen.append(values)
    return found


def _topology(item: Tree, seen: dict[str, set[str]], path: str) -> list[FieldError]:
    key, values = item.get("key", ""), item.get("values") or []
    found = [] if values else [errors.required(f"{path}.values")]
    for index, value in enumerate(values):
        if value in values[:index]:
            found.append(errors.duplicate(f"{path}.values[{index}]", value))
    found += labels.validate_key(key, f"{path}.key")
    if key in seen:
        found.append(errors.duplicate(f"{path}.key", key))
    seen[key] = set(values)
    return found
