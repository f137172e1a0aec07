"""Environment variables of containers, and what they and volumes take from the pod itself.

Source: pkg/apis/core/validation/validation.go#ValidateEnv, #ValidateEnvFrom, #validateObjectFieldSelector.
"""

import re

from kcm_cli.machinery import names
from kcm_cli.machinery.quantity import from_json
from kcm_cli.sandbox.apiserver.types import Errors, Tree
from kcm_cli.sandbox.apiserver.validation import errors, file_paths, metadata

ENV_FIELDS = (
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
)
VOLUME_FIELDS = (
    "metadata.annotations",
    "metadata.labels",
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
)
_FIELDS = frozenset(
    {*ENV_FIELDS, *VOLUME_FIELDS, "spec.schedulerName", "spec.restartPolicy", "spec.host", "status.phase"}
)
_RESOURCES = tuple(
    f"{kind}.{name}" for kind in ("limits", "requests") for name in ("cpu", "ephemeral-storage", "memory")
)
_HUGE = ("limits.hugepages-", "requests.hugepages-")
_SIZES = "1, 1k, 1M, 1G, 1T, 1P, 1E, 1Ki, 1Mi, 1Gi, 1Ti, 1Pi, 1Ei"
_BYTE_DIVISORS = frozenset(_SIZES.split(", "))
_SOURCES = "`fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"
_subscript = re.compile(r"(.+?)\['(.*)'\]", re.DOTALL).fullmatch


def validate_env(variables: list[Tree], path: str) -> Errors:
    """Variables one by one."""
    for index, variable in enumerate(variables):
        name = variable.get("name", "")
        if not name:
            yield errors.required(f"{path}[{index}].name")
        elif not (name.isascii() and name.isidentifier()):
            yield from errors.invalid_each(f"{path}[{index}].name", name, names.relaxed_env_var_name(name))
        source = variable.get("valueFrom")
        if source is not None:
            yield from _source(variable, source, f"{path}[{index}].valueFrom")


def _source(variable: Tree, source: Tree, path: str) -> Errors:
    count = 0
    for kind, check in _CHECKS.items():
        reference = source.get(kind)
        if reference is not None:
            count += 1
            yield from check(reference, f"{path}.{kind}")
    if not count:
        yield errors.invalid(path, "", f"must specify one of: {_SOURCES}")
    elif variable.get("value"):
        yield errors.invalid(path, "", "may not be specified when `value` is not empty")
    elif count > 1:
        yield errors.invalid(path, "", "may not have more than one field specified at a time")


def _env_field(reference: Tree, path: str) -> Errors:
    return field_selector(reference, ENV_FIELDS, path)


def field_selector(reference: Tree, allowed: tuple[str, ...], path: str) -> Errors:
    """A field of the pod, or one label or annotation of it."""
    version, field = reference.get("apiVersion", ""), reference.get("fieldPath", "")
    if not version:
        return [errors.required(f"{path}.apiVersion")]
    if not field:
        return [errors.required(f"{path}.fieldPath")]
    subscripted = _subscript(field)
    base, key = (subscripted[1], subscripted[2]) if subscripted else (field, None)
    if problem := _unconvertible(version, field, base, subscripted=key is not None):
        return [errors.invalid(f"{path}.fieldPath", field, f"error converting fieldPath: {problem}")]
    if key is not None:
        return _subscripted(base, key, path)
    base = "spec.nodeName" if base == "spec.host" else base
    if base not in allowed:
        return [errors.not_supported(f"{path}.fieldPath", base, allowed)]
    return []


def _unconvertible(version: str, field: str, base: str, *, subscripted: bool) -> str:
    if version != "v1":
        return f"unsupported pod version: {version}"
    if subscripted and base not in ("metadata.annotations", "metadata.labels"):
        return f"field label does not support subscript: {field}"
    return "" if subscripted or field in _FIELDS else f"field label not supported: {field}"


def _subscripted(base: str, key: str, path: str) -> Errors:
    lowered = key.lower() if base == "metadata.annotations" else key
    return errors.invalid_each(path, lowered, names.qualified_name(lowered))


def _env_resource(reference: Tree, path: str) -> Errors:
    return resource_selector(reference, path, volume=False)


def resource_selector(reference: Tree, path: str, *, volume: bool) -> Errors:
    """A container's limit or request."""
    resource = reference.get("resource", "")
    if volume and not reference.get("containerName"):
        yield errors.required(f"{path}.containerName")
    elif not resource:
        yield errors.required(f"{path}.resource")
    elif resource not in _RESOURCES and not resource.startswith(_HUGE):
        yield errors.not_supported(f"{path}.resource", resource, _RESOURCES)
    yield from _divisor(resource, str(reference.get("divisor", "0")), f"{path}.divisor")


def _divisor(resource: str, divisor: str, path: str) -> Errors:
    if not from_json(divisor):
        return []
    kind = resource.partition(".")[2]
    if kind == "cpu":
        if divisor in ("1m", "1"):
            return []
        return [errors.invalid(path, resource, "only divisor's values 1m and 1 are supported with the cpu resource")]
    what = {"memory": "memory", "ephemeral-storage": "local ephemeral storage"}.get(kind, "")
    if resource.startswith(_HUGE):
        what = "hugepages"
    if not what or divisor in _BYTE_DIVISORS:
        return []
    return [errors.invalid(path, resource, f"only divisor's values {_SIZES} are supported with the {what} resource")]


def _key_reference(reference: Tree, path: str) -> Errors:
    name, key = reference.get("name", ""), reference.get("key", "")
    yield from errors.invalid_each(f"{path}.name", name, names.dns1123_subdomain(name))
    if not key:
        yield errors.required(f"{path}.key")
        return
    yield from errors.invalid_each(f"{path}.key", key, names.config_map_key(key))


def _file_reference(reference: Tree, path: str) -> Errors:
    key, volume, target = reference.get("key", ""), reference.get("volumeName", ""), reference.get("path", "")
    if key:
        yield from errors.invalid_each(f"{path}.key", key, names.relaxed_env_var_name(key))
    else:
        yield errors.required(f"{path}.key")
    if volume:
        yield from errors.invalid_each(f"{path}.volumeName", volume, names.dns1123_label(volume))
    else:
        yield errors.required(f"{path}.volumeName")
    if not target:
        yield errors.required(f"{path}.path")
        return
    yield from file_paths.no_backsteps(target, f"{path}.path")


_CHECKS = {
    "fieldRef": _env_field,
    "resourceFieldRef": _env_resource,
    "configMapKeyRef": _key_reference,
    "secretKeyRef": _key_reference,
    "fileKeyRef": _file_reference,
}


def validate_env_from(sources: list[Tree], path: str) -> Errors:
    """Whole ConfigMaps and Secrets."""
    for index, source in enumerate(sources):
        place = f"{path}[{index}]"
        if prefix := source.get("prefix"):
            yield from errors.invalid_each(f"{place}.prefix", prefix, names.relaxed_env_var_name(prefix))
        kinds = [kind for kind in ("configMapRef", "secretRef") if source.get(kind) is not None]
        for kind in kinds:
            yield from _whole(source[kind], f"{place}.{kind}")
        if not kinds:
            yield errors.invalid(path, "", "must specify one of: `configMapRef` or `secretRef`")
        elif len(kinds) > 1:
            yield errors.invalid(path, "", "may not have more than one field specified at a time")


def _whole(reference: Tree, path: str) -> Errors:
    name = reference.get("name", "")
    if not name:
        return [errors.required(f"{path}.name")]
    return errors.invalid_each(f"{path}.name", name, metadata.subdomain(name, True))
