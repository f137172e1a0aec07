"""What an autoscaler measures.

Source: pkg/apis/autoscaling/validation/validation.go#validateMetricSpec.
"""

from collections.abc import Mapping

from kcm_cli.machinery import names
from kcm_cli.machinery.quantity import from_json
from kcm_cli.sandbox.apiserver.types import FieldError, Tree
from kcm_cli.sandbox.apiserver.validation import errors, quantities

_FIELDS: Mapping[str, str] = {
    "Object": "object",
    "Pods": "pods",
    "Resource": "resource",
    "External": "external",
    "ContainerResource": "containerResource",
}
_ORDER = ("object", "external", "pods", "resource", "containerResource")
_TYPES = tuple(sorted(_FIELDS))
_RAW_OR_UTILIZATION = "must set either a target raw value or a target utilization"
_NOT_BOTH = "may not set both a target raw value and a target utilization"


def version_problem(ref: Tree, *, core: bool) -> str:
    """What is wrong with the API version of a reference; ``core``: it may be without a group."""
    version = ref.get("apiVersion", "")
    if version.count("/") > 1:
        return f"unexpected GroupVersion string: {version}"
    return "" if core or "/" in version and not version.startswith("/") else "apiVersion must specify API group"


def validate_metric(metric: Tree, path: str, *, lenient: bool) -> list[FieldError]:
    """One metric; ``lenient``: an older object has references with bad API versions."""
    kind = metric.get("type", "")
    found = [] if kind else [errors.required(f"{path}.type", "must specify a metric source type")]
    if kind not in _TYPES:
        found.append(errors.not_supported(f"{path}.type", kind, _TYPES))
    present = [field for field in _ORDER if metric.get(field) is not None]
    if present:
        found += _source(present[0], metric[present[0]], f"{path}.{present[0]}", lenient)
    expected = _FIELDS.get(kind)
    if expected is None:
        found.append(errors.not_supported(f"{path}.type", kind, _TYPES))
    elif expected not in present:
        detail = "must populate information for the given metric source"
        found.append(errors.required(f"{path}.{expected}", detail))
    if len(present) > 1:
        detail = "must populate the given metric source only"
        found += [errors.forbidden(f"{path}.{field}", detail) for field in present if field != expected]
    return found


def _source(field: str, source: Tree, path: str, lenient: bool) -> list[FieldError]:
    target, place = source.get("target") or {}, f"{path}.target"
    found: list[FieldError] = []
    if field == "object":
        found += _described(source.get("describedObject") or {}, f"{path}.describedObject", lenient)
    if field in ("resource", "containerResource"):
        found += _resource(field, source, path)
    else:
        found += _identifier(source.get("metric") or {}, f"{path}.metric")
    found += _target(target, place)
    value, average, utilization = (target.get(name) for name in ("value", "averageValue", "averageUtilization"))
    match field:
        case "object" if value is None and average is None:
            detail = "must set either a target value or averageValue"
            found.append(errors.required(f"{place}.averageValue", detail))
        case "external" if value is None and average is None:
            detail = "must set either a target value for metric or a per-pod target"
            found.append(errors.required(f"{place}.averageValue", detail))
        case "external" if value is not None and average is not None:
            detail = "may not set both a target value for metric and a per-pod target"
            found.append(errors.forbidden(f"{place}.value", detail))
        case "pods" if average is None:
            found.append(errors.required(f"{place}.averageValue", "must specify a positive target averageValue"))
        case "resource" | "containerResource" if utilization is None and average is None:
            found.append(errors.required(f"{place}.averageUtilization", _RAW_OR_UTILIZATION))
        case "resource" | "containerResource" if utilization is not None and average is not None:
            found.append(errors.forbidden(f"{place}.averageValue", _NOT_BOTH))
    return found


def _described(ref: Tree, path: str, lenient: bool) -> list[FieldError]:
    found = validate_reference(ref, path)
    problem = "" if lenient else version_problem(ref, core=True)
    if problem:
        found.append(errors.invalid(f"{path}.apiVersion", ref.get("apiVersion", ""), problem))
    return found


def validate_reference(ref: Tree, path: str) -> list[FieldError]:
    """Kind and name of a reference."""
    found: list[FieldError] = []
    for field in ("kind", "name"):
        value = ref.get(field, "")
        if value:
            found += errors.invalid_each(f"{path}.{field}", value, names.path_segment(value))
        else:
            found.append(errors.required(f"{path}.{field}"))
    return found


def _resource(field: str, source: Tree, path: str) -> list[FieldError]:
    name, container = source.get("name", ""), source.get("container", "")
    found: list[FieldError] = []
    if not name:
        found.append(errors.required(f"{path}.name", "must specify a resource name"))
    if field == "resource":
        return found
    if name:
        found += errors.invalid_each(f"{path}.name", name, quantities.container_name(name))
    if container:
        return found + errors.invalid_each(f"{path}.container", container, names.dns1123_label(container))
    return [*found, errors.required(f"{path}.container", "must specify a container")]


def _identifier(metric: Tree, path: str) -> list[FieldError]:
    name = metric.get("name", "")
    if not name:
        return [errors.required(f"{path}.name", "must specify a metric name")]
    return errors.invalid_each(f"{path}.name", name, names.path_segment(name))


def _target(target: Tree, path: str) -> list[FieldError]:
    kind, utilization = target.get("type", ""), target.get("averageUtilization")
    found = [] if kind else [errors.required(f"{path}.type", "must specify a metric target type")]
    if kind not in ("Utilization", "Value", "AverageValue"):
        detail = "must be either Utilization, Value, or AverageValue"
        found.append(errors.invalid(f"{path}.type", kind, detail))
    for field in ("value", "averageValue"):
        value = target.get(field)
        if value is not None and from_json(value).sign <= 0:
            found.append(errors.invalid(f"{path}.{field}", value, "must be positive"))
    if utilization is not None and utilization < 1:
        found.append(errors.invalid(f"{path}.averageUtilization", utilization, errors.NOT_POSITIVE))
    return found
