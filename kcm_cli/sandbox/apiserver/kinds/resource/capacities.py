"""Shared counters of devices, and policies for requests of capacity.

upstream: pkg/apis/resource/validation/validation.go#validateCounterSet, #validateDeviceCounterConsumption,
#validateRequestPolicy
"""

from kcm_cli.machinery.quantity import Quantity, from_json
from kcm_cli.sandbox.apiserver.types import Errors, Tree
from kcm_cli.sandbox.apiserver.validation import errors, rules

_SETS_MAX, _CONSUMED_MAX, _COUNTERS_MAX, _VALUES_MAX = 8, 2, 32, 10


def _names(counters: Tree, path: str) -> Errors:
    for name in sorted(counters):
        yield from rules.LABEL(name, path)


def _counters(field: str) -> rules.Rule:
    """The rule for a set of counters whose name is in ``field``."""
    return rules.fields(
        rules.required(field, rules.LABEL),
        rules.required("counters", rules.unless(rules.max_items(_COUNTERS_MAX), _names)),
    )


SHARED = rules.unless(rules.max_items(_SETS_MAX), rules.items(_counters("name"), key="name", at_key=False))
"""The rule for the counter sets of a slice."""
CONSUMED = rules.unless(
    rules.max_items(_CONSUMED_MAX), rules.items(_counters("counterSet"), key="counterSet", at_key=False)
)
"""The rule for what a device consumes of counter sets."""


def validate_request_policy(policy: Tree, capacity: object, path: str) -> Errors:
    """Check the policy for requests of a capacity: valid values, or a range."""
    values, span, default = policy.get("validValues"), policy.get("validRange"), policy.get("default")
    if values and span is not None:
        detail = 'exactly one policy can be specified, cannot specify "validValues" and "validRange" at the same time'
        return [errors.forbidden(path, detail)]
    field = "validValues" if values else "validRange"
    if not values and span is None:
        return []
    if default is None:
        return [errors.required(f"{path}.default", f"required when {field} is defined")]
    whole, usual = from_json(capacity or "0"), from_json(default)
    if values:
        return _values([from_json(value) for value in values], usual, whole, f"{path}.{field}")
    return _range(span or {}, usual, whole, f"{path}.{field}")


def _values(values: list[Quantity], default: Quantity, whole: Quantity, path: str) -> Errors:
    for index, (before, value) in enumerate(zip(values, values[1:], strict=False), 1):
        if value < before:
            yield errors.invalid(f"{path}[{index}]", str(value), "values must be sorted in ascending order")
    if len(values) > _VALUES_MAX:
        yield errors.too_many(path, len(values), _VALUES_MAX)
    else:
        for index, value in enumerate(values):
            if whole < value:
                detail = f"option is larger than capacity value: {whole}"
                yield errors.invalid(f"{path}[{index}]", str(value), detail)
        unique = rules.Unique()
        for index, value in enumerate(values):
            yield from unique(str(value.value()), f"{path}[{index}]")
    if len(values) > _VALUES_MAX or default not in values:
        yield errors.invalid(path, str(default), "default value is not valid according to the requestPolicy")


def _range(span: Tree, default: Quantity, whole: Quantity, path: str) -> Errors:
    if span.get("min") is None:
        yield errors.required(f"{path}.min", "required when validRange is defined")
        return
    low = from_json(span["min"])
    high = from_json(span["max"]) if span.get("max") is not None else None
    if whole < low:
        yield errors.invalid(f"{path}.min", str(low), f"min is larger than capacity value: {whole}")
    if default < low:
        yield errors.invalid(f"{path}.min", str(default), f"default is less than min: {low}")
    if high is not None and high < low:
        yield errors.invalid(f"{path}.max", str(low), f"min is larger than max: {high}")
    if high is not None and whole < high:
        yield errors.invalid(f"{path}.max", str(high), f"max is larger than capacity value: {whole}")
    if high is not None and high < default:
        yield errors.invalid(f"{path}.max", str(default), f"default is more than max: {high}")
    if span.get("step") is None:
        return
    step = from_json(span["step"])
    if whole < low + step:
        detail = f"one step {low + step} is larger than capacity value: {whole}"
        yield errors.invalid(f"{path}.step", str(step), detail)
    for value in (default, *([] if high is None else [high])):
        # upstream divides by a step of zero, and the request panics
        if not step.value() or (value.value() - low.value()) % step.value():
            detail = f"value is not a multiple of a given step ({step}) from ({low})"
            yield errors.invalid(f"{path}.step", str(value), detail)
