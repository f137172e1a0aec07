"""Environment variables of containers, and fields of the pod that they and volumes refer to.

upstream: pkg/apis/core/validation/validation.go#ValidateEnv, #ValidateEnvFrom, #validateObjectFieldSelector
"""

from kcm_cli.machinery import names
from kcm_cli.machinery.quantity import from_json
from kcm_cli.machinery.remembered import remembered
from kcm_cli.sandbox.apiserver.types import Errors, Tree
from kcm_cli.sandbox.apiserver.validation import errors, file_paths, metadata, rules

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
_VARIABLE = rules.form(remembered(4096)(names.relaxed_env_var_name))


def _split_subscript(field: str) -> tuple[str, str | None]:
    """A path and the key in its subscript; None without one."""
    start = field.find("['", 1)
    if start < 0 or not field.endswith("']") or len(field) < start + 4:
        return field, None
    return field[:start], field[start + 2 : -2]


def _source(variable: Tree, path: str) -> Errors:
    source, place = variable.get("valueFrom"), f"{path}.valueFrom"
    if source is None:
        return
    given = [kind for kind in _CHECKS if source.get(kind) is not None]
    for kind in given:
        yield from _CHECKS[kind](source[kind], f"{place}.{kind}")
    if not given:
        yield errors.invalid(place, "", f"must specify one of: {_SOURCES}")
    elif variable.get("value"):
        yield errors.invalid(place, "", "may not be specified when `value` is not empty")
    elif len(given) > 1:
        yield errors.invalid(place, "", "may not have more than one field specified at a time")


def field_selector(*allowed: str) -> rules.Rule:
    """A reference to a field of the pod, or to one of its labels or annotations."""

    def check(reference: Tree, path: str) -> Errors:
        version, field = reference.get("apiVersion", ""), reference.get("fieldPath", "")
        if not version:
            return [errors.required(f"{path}.apiVersion")]
        if not field:
            return [errors.required(f"{path}.fieldPath")]
        base, key = _split_subscript(field)
        if problem := _unconvertible(version, field, base, subscripted=key is not None):
            return [errors.invalid(f"{path}.fieldPath", field, f"error converting fieldPath: {problem}")]
        if key is not None:
            return _subscripted(base, key, path)
        base = "spec.nodeName" if base == "spec.host" else base
        return [] if base in allowed else [errors.not_supported(f"{path}.fieldPath", base, allowed)]

    return check


def _unconvertible(version: str, field: str, base: str, *, subscripted: bool) -> str:
    if version != "v1":
        return f"unsupported pod version: {version}"
    if subscripted and base not in ("metadata.annotations", "metadata.labels"):
        return f"field label does not support subscript: {field}"
    return "" if subscripted or field in _FIELDS else f"field label not supported: {field}"


def _subscripted(base: str, key: str, path: str) -> Errors:
    lowered = key.lower() if base == "metadata.annotations" else key
    return errors.invalid_each(path, lowered, names.qualified_name(lowered))


def resource_selector(reference: Tree, path: str, *, volume: bool = False) -> Errors:
    """A reference to a limit or request of a container."""
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


_KEY_REFERENCE = rules.fields(
    rules.always("name", rules.SUBDOMAIN), rules.required("key", rules.form(names.config_map_key))
)
_CHECKS = {
    "fieldRef": field_selector(*ENV_FIELDS),
    "resourceFieldRef": resource_selector,
    "configMapKeyRef": _KEY_REFERENCE,
    "secretKeyRef": _KEY_REFERENCE,
    "fileKeyRef": rules.fields(
        rules.required("key", _VARIABLE),
        rules.required("volumeName", rules.LABEL),
        rules.required("path", file_paths.no_backsteps),
    ),
}
validate_env = rules.items(rules.fields(rules.required("name", _VARIABLE), _source))
"""The variables in ``env``."""

_WHOLE = rules.fields(rules.required("name", rules.form(lambda name: metadata.subdomain(name, True))))
_FROM = rules.fields(
    rules.nonempty("prefix", _VARIABLE), rules.optional("configMapRef", _WHOLE), rules.optional("secretRef", _WHOLE)
)


def validate_env_from(sources: list[Tree], path: str) -> Errors:
    """The ConfigMaps and Secrets in ``envFrom``."""
    for index, source in enumerate(sources):
        yield from _FROM(source, f"{path}[{index}]")
        given = [kind for kind in ("configMapRef", "secretRef") if source.get(kind) is not None]
        if not given:
            yield errors.invalid(path, "", "must specify one of: `configMapRef` or `secretRef`")
        elif len(given) > 1:
            yield errors.invalid(path, "", "may not have more than one field specified at a time")
