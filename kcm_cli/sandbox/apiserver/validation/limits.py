"""LimitRanges and ResourceQuotas.

Source: pkg/apis/core/validation/validation.go#ValidateLimitRange, #ValidateResourceQuota.
"""

from collections.abc import Mapping

from kcm_cli.machinery import names
from kcm_cli.machinery.quantity import Quantity, from_json, make
from kcm_cli.sandbox.apiserver.types import FieldError, Tree
from kcm_cli.sandbox.apiserver.validation import errors, go_print, metadata, quantities

_TYPES = ("Pod", "Container", "PersistentVolumeClaim")
_FIELDS = ("max", "min", "default", "defaultRequest", "maxLimitRequestRatio")
_COMPUTE = frozenset({"pods", "cpu", "memory", "limits.cpu", "limits.memory", "requests.cpu", "requests.memory"})
_PODS, _VOLUMES = frozenset({"pods"}), frozenset({"persistentvolumeclaims", "requests.storage"})
_SCOPES: Mapping[str, frozenset[str]] = {
    "Terminating": _COMPUTE,
    "NotTerminating": _COMPUTE,
    "BestEffort": _PODS,
    "NotBestEffort": _COMPUTE,
    "PriorityClass": _COMPUTE,
    "CrossNamespacePodAffinity": _COMPUTE,
    "VolumeAttributesClass": _VOLUMES,
}
_PAIRS = ({"BestEffort", "NotBestEffort"}, {"Terminating", "NotTerminating"})
_EXISTING = ("BestEffort", "NotBestEffort", "Terminating", "NotTerminating", "CrossNamespacePodAffinity")
_MUST_EXIST = (
    "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating, "
    "ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity"
)
_MAX_MILLI = (2**63 - 1) // 1000


def validate_limit_range(doc: Tree) -> list[FieldError]:
    found = metadata.validate_meta(doc["metadata"], True, metadata.subdomain)
    seen: set[str] = set()
    for index, limit in enumerate((doc.get("spec") or {}).get("limits") or ()):
        kind, path = limit.get("type", ""), f"spec.limits[{index}]"
        found += _type(kind, f"{path}.type")
        if kind in seen:
            found.append(errors.duplicate(f"{path}.type", kind))
        seen.add(kind)
        found += _limit(limit, kind, path)
    return found


def validate_limit_range_update(new: Tree, old: Tree) -> list[FieldError]:
    return validate_limit_range(new)


def _type(kind: str, path: str) -> list[FieldError]:
    if messages := names.qualified_name(kind):
        return errors.invalid_each(path, kind, messages)
    if "/" in kind or kind in _TYPES:
        return []
    return [errors.invalid(path, kind, "must be a standard limit type or fully qualified")]


def _limit(limit: Tree, kind: str, path: str) -> list[FieldError]:
    rule = quantities.container_name if kind in ("Pod", "Container") else quantities.any_name
    values: dict[str, dict[str, Quantity]] = {}
    found: list[FieldError] = []
    for field in _FIELDS:
        amounts = limit.get(field) or {}
        if kind == "Pod" and field in ("default", "defaultRequest"):
            if amounts:
                detail = "may not be specified when `type` is 'Pod'"
                found.append(errors.forbidden(f"{path}.{field}", detail))
            continue
        if field == "maxLimitRequestRatio" and kind == "PersistentVolumeClaim":
            found += _storage(limit, path)
        for name, amount in sorted(amounts.items()):
            found += errors.invalid_each(f"{path}.{field}[{name}]", name, rule(name))
            values.setdefault(name, {})[field] = from_json(amount)
    for name in sorted(values):
        found += _order(name, values[name], path)
    return found


def _storage(limit: Tree, path: str) -> list[FieldError]:
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
"""Lower and upper bound, the field of an error, its text, and which of the two is printed as the value."""


def _order(name: str, values: Mapping[str, Quantity], path: str) -> list[FieldError]:
    found: list[FieldError] = []
    for low, high, field, text, shown in _ORDERS:
        pair = (values.get(low), values.get(high))
        if pair[0] is not None and pair[1] is not None and pair[0] > pair[1]:
            detail = text.format(*pair)
            found.append(errors.invalid(f"{path}.{field}[{name}]", str(pair[shown]), detail))
    ratio = values.get("maxLimitRequestRatio")
    if ratio is not None:
        found += _ratio(ratio, values, f"{path}.maxLimitRequestRatio[{name}]")
    limit, request = values.get("default"), values.get("defaultRequest")
    if limit is not None and request is not None and limit != request and not quantities.overcommits(name):
        detail = f"default value {limit} must equal to defaultRequest value {request} in {name}"
        found.append(errors.invalid(f"{path}.defaultRequest[{name}]", str(request), detail))
    return found


def _ratio(ratio: Quantity, values: Mapping[str, Quantity], path: str) -> list[FieldError]:
    found: list[FieldError] = []
    if ratio < make(1):
        found.append(errors.invalid(path, str(ratio), f"ratio {ratio} is less than 1"))
    low, high = values.get("min"), values.get("max")
    if low is None or high is None:
        return found
    if max(ratio.value(), low.value(), high.value()) < _MAX_MILLI:
        asked, bottom, top = ratio.milli_value() / 1000, low.milli_value(), high.milli_value()
    else:
        asked, bottom, top = float(ratio.value()), low.value(), high.value()
    most = top / bottom if bottom else float("inf")
    if asked > most:
        detail = f"ratio {ratio} is greater than max/min = {most:f}"
        found.append(errors.invalid(path, str(ratio), detail))
    return found


def validate_quota(doc: Tree) -> list[FieldError]:
    found = metadata.validate_meta(doc["metadata"], True, metadata.subdomain)
    return found + _quota_spec(doc.get("spec") or {}) + _quota_status(doc.get("status") or {})


def validate_quota_update(new: Tree, old: Tree) -> list[FieldError]:
    found = metadata.validate_meta_update(new["metadata"], old["metadata"])
    found += _quota_spec(new.get("spec") or {})
    scopes, known = ((doc.get("spec") or {}).get("scopes") for doc in (new, old))
    if set(scopes or ()) != set(known or ()):
        found.append(errors.invalid("spec.scopes", scopes, errors.IMMUTABLE))
    return found


def validate_quota_status(new: Tree, old: Tree) -> list[FieldError]:
    found = metadata.validate_meta_update(new["metadata"], old["metadata"])
    if not new["metadata"].get("resourceVersion"):
        found.append(errors.required("resourceVersion"))
    return found + _quota_status(new.get("status") or {})


def _quota_status(status: Tree) -> list[FieldError]:
    found = _amounts(status.get("hard") or {}, "status.hard")
    return found + _amounts(status.get("used") or {}, "status.used")


def _amounts(amounts: Mapping[str, str], path: str) -> list[FieldError]:
    found: list[FieldError] = []
    for name, amount in sorted(amounts.items()):
        place = f"{path}[{name}]"
        found += errors.invalid_each(place, name, quantities.quota_name(name))
        found += quantities.amount(name, amount, place)
    return found


def _quota_spec(spec: Tree) -> list[FieldError]:
    hard = spec.get("hard") or {}
    found = _amounts(hard, "spec.hard")
    limited = [name for name in hard if name in quantities.QUOTA or quantities.is_huge_quota(name)]
    if scopes := spec.get("scopes"):
        found += _scopes(scopes, limited)
    selector = spec.get("scopeSelector")
    return found if selector is None else found + _selector(selector, spec.get("scopes"), limited)


def _scopes(scopes: list[str], limited: list[str]) -> list[FieldError]:
    path = "spec.scopes"
    found: list[FieldError] = []
    for scope in scopes:
        counted = _SCOPES.get(scope)
        if counted is None:
            found.append(errors.invalid(path, scopes, "unsupported scope"))
            continue
        unfit = [name for name in limited if name not in counted]
        found += [errors.invalid(path, scopes, "unsupported scope applied to resource") for _ in unfit]
    return found + _conflicts(set(scopes), scopes, path)


def _conflicts(used: set[str], shown: list[str] | None, path: str) -> list[FieldError]:
    return [errors.invalid(path, shown, "conflicting scopes") for pair in _PAIRS if pair <= used]


def _selector(selector: Tree, scopes: list[str] | None, limited: list[str]) -> list[FieldError]:
    path = "spec.scopeSelector.matchExpressions"
    items = selector.get("matchExpressions") or ()
    found: list[FieldError] = []
    for item in items:
        scope, operator, values = item.get("scopeName", ""), item.get("operator", ""), item.get("values") or []
        counted = _SCOPES.get(scope)
        if counted is None:
            found.append(errors.invalid(f"{path}.scopeName", scope, "unsupported scope"))
        else:
            shown = go_print.internal("core.ScopeSelector", selector)
            unfit = [name for name in limited if name not in counted]
            found += [errors.invalid(path, shown, "unsupported scope applied to resource") for _ in unfit]
        if scope in _EXISTING and operator != "Exists":
            found.append(errors.invalid(f"{path}.operator", operator, _MUST_EXIST))
        found += _operator(operator, values, path)
    return found + _conflicts({item.get("scopeName", "") for item in items}, scopes, path)


def _operator(operator: str, values: list[str], path: str) -> list[FieldError]:
    if operator in ("In", "NotIn"):
        detail = "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector"
        return [] if values else [errors.required(f"{path}.values", detail)]
    if operator in ("Exists", "DoesNotExist"):
        detail = "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector"
        return [errors.invalid(f"{path}.values", values, detail)] if values else []
    return [errors.invalid(f"{path}.operator", operator, "not a valid selector operator")]
