"""LimitRange.

upstream: pkg/apis/core/v1/defaults.go, pkg/apis/core/validation, pkg/registry/core/limitrange/strategy.go
"""

from collections.abc import Mapping

from kcm_cli.machinery import names
from kcm_cli.machinery.quantity import Quantity, from_json, make
from kcm_cli.sandbox.apiserver.defaulting import fill, resources
from kcm_cli.sandbox.apiserver.registry.core import Kind
from kcm_cli.sandbox.apiserver.strategy.base import Strategy, by_spec
from kcm_cli.sandbox.apiserver.types import Errors, Tree
from kcm_cli.sandbox.apiserver.validation import errors, quantities, rules

_TYPES = ("Pod", "Container", "PersistentVolumeClaim")
_FIELDS = ("max", "min", "default", "defaultRequest", "maxLimitRequestRatio")
_MAX_MILLI = (2**63 - 1) // 1000


def _type(kind: str, path: str) -> Errors:
    if messages := names.qualified_name(kind):
        return errors.invalid_each(path, kind, messages)
    if "/" in kind or kind in _TYPES:
        return []
    return [errors.invalid(path, kind, "must be a standard limit type or fully qualified")]


def _limit(limit: Tree, path: str) -> Errors:
    kind = limit.get("type", "")
    rule = quantities.container_name if kind in ("Pod", "Container") else quantities.any_name
    values: dict[str, dict[str, Quantity]] = {}
    for field in _FIELDS:
        amounts = limit.get(field) or {}
        if kind == "Pod" and field in ("default", "defaultRequest"):
            if amounts:
                yield errors.forbidden(f"{path}.{field}", "may not be specified when `type` is 'Pod'")
            continue
        if field == "maxLimitRequestRatio" and kind == "PersistentVolumeClaim":
            yield from _storage(limit, path)
        for name, amount in sorted(amounts.items()):
            yield from errors.invalid_each(f"{path}.{field}[{name}]", name, rule(name))
            values.setdefault(name, {})[field] = from_json(amount)
    for name in sorted(values):
        yield from _order(name, values[name], path)


_LIMITS = rules.items(rules.fields(rules.always("type", _type)), key="type", then=_limit)
_SPEC = rules.fields(rules.optional("limits", _LIMITS))


def _storage(limit: Tree, path: str) -> Errors:
    if any("storage" in (limit.get(field) or {}) for field in ("min", "max")):
        return []
    detail = "either minimum or maximum storage value is required, but neither was provided"
    return [errors.required(f"{path}.limits", detail)]


_ORDERS = (
    ("min", "max", "min", "min value {} is greater than max value {}", 0),
    ("min", "defaultRequest", "defaultRequest", "min value {} is greater than default request value {}", 1),
    ("defaultRequest", "max", "defaultRequest", "default request value {} is greater than max value {}", 0),
    (
        *("defaultRequest", "default", "defaultRequest"),
        "default request value {} is greater than default limit value {}",
        0,
    ),
    ("min", "default", "default", "min value {} is greater than default value {}", 0),
    ("default", "max", "default", "default value {} is greater than max value {}", 1),
)
"""Lower and upper bound, the field of the error, its detail, and which of the two is its value."""


def _order(name: str, values: Mapping[str, Quantity], path: str) -> Errors:
    for low, high, field, text, shown in _ORDERS:
        pair = (values.get(low), values.get(high))
        if pair[0] is not None and pair[1] is not None and pair[0] > pair[1]:
            yield errors.invalid(f"{path}.{field}[{name}]", str(pair[shown]), text.format(*pair))
    ratio = values.get("maxLimitRequestRatio")
    if ratio is not None:
        yield from _ratio(ratio, values, f"{path}.maxLimitRequestRatio[{name}]")
    limit, request = values.get("default"), values.get("defaultRequest")
    if limit is not None and request is not None and limit != request and not quantities.overcommits(name):
        detail = f"default value {limit} must equal to defaultRequest value {request} in {name}"
        yield errors.invalid(f"{path}.defaultRequest[{name}]", str(request), detail)


def _ratio(ratio: Quantity, values: Mapping[str, Quantity], path: str) -> Errors:
    if ratio < make(1):
        yield errors.invalid(path, str(ratio), f"ratio {ratio} is less than 1")
    low, high = values.get("min"), values.get("max")
    if low is None or high is None:
        return
    if max(ratio.value(), low.value(), high.value()) < _MAX_MILLI:
        asked, bottom, top = ratio.milli_value() / 1000, low.milli_value(), high.milli_value()
    else:
        asked, bottom, top = float(ratio.value()), low.value(), high.value()
    most = top / bottom if bottom else float("inf")
    if asked > most:
        yield errors.invalid(path, str(ratio), f"ratio {ratio} is greater than max/min = {most:f}")


def _defaults(doc: Tree) -> None:
    for item in doc.setdefault("spec", {}).get("limits") or ():
        if item.get("type") == "Container":
            _container_limits(item)
        for field in _FIELDS:
            resources.resource_list(item.get(field))


def _container_limits(item: Tree) -> None:
    """The default limit is the maximum; the default request is the limit or else the minimum."""
    limits = {**(item.get("max") or {}), **(item.get("default") or {})}
    requests = {**(item.get("min") or {}), **limits, **(item.get("defaultRequest") or {})}
    if limits:
        item["default"] = limits
    if requests:
        item["defaultRequest"] = requests


def _new_limit_range(doc: Tree) -> None:
    fill.empty(doc["metadata"], name=doc["metadata"].get("uid", ""))


KIND = Kind(
    "",
    "limitranges",
    defaults=_defaults,
    strategy=Strategy(
        on_create=_new_limit_range,
        creates_on_update=True,
        check=by_spec(_SPEC),
        update_steps=("name", "rules"),
    ),
)
