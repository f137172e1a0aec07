"""ResourceQuota.

upstream: pkg/apis/core/v1/defaults.go, pkg/apis/core/validation,
pkg/registry/core/resourcequota/strategy.go, pkg/printers/internalversion/printers.go
"""

from collections.abc import Mapping
from datetime import datetime

from kcm_cli.machinery.quantity import from_json
from kcm_cli.machinery.remembered import remembered
from kcm_cli.sandbox.apiserver.defaulting import resources
from kcm_cli.sandbox.apiserver.kinds.core.common import needs_version
from kcm_cli.sandbox.apiserver.registry.core import Kind
from kcm_cli.sandbox.apiserver.strategy.base import Strategy
from kcm_cli.sandbox.apiserver.tables.column import AGE, NAME, Column, created, layout, name_of
from kcm_cli.sandbox.apiserver.types import Errors, Tree
from kcm_cli.sandbox.apiserver.validation import errors, go_print, quantities, rules
from kcm_cli.sandbox.apiserver.validation.quantities import COMPUTE_QUOTA, COUNTED, SERVICES, any_name, is_huge_quota

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


def _check(doc: Tree, old: Tree | None) -> Errors:
    yield from _quota_spec(doc.get("spec") or {})
    if old is None:
        yield from _STATUS(doc.get("status") or {}, "status")


def _check_change(new: Tree, old: Tree) -> Errors:
    scopes, known = ((doc.get("spec") or {}).get("scopes") for doc in (new, old))
    if set(scopes or ()) != set(known or ()):
        yield errors.invalid("spec.scopes", scopes, errors.IMMUTABLE)


def _check_status(new: Tree, old: Tree) -> Errors:
    return [*needs_version(new, old), *_STATUS(new.get("status") or {}, "status")]


def _amounts(amounts: Mapping[str, str], path: str) -> Errors:
    for name, amount in sorted(amounts.items()):
        place = f"{path}[{name}]"
        yield from errors.invalid_each(place, name, quota_name(name))
        yield from quantities.amount(name, amount, place)


def _quota_spec(spec: Tree) -> Errors:
    hard = spec.get("hard") or {}
    yield from _amounts(hard, "spec.hard")
    limited = [name for name in hard if name in QUOTA or quantities.is_huge_quota(name)]
    if scopes := spec.get("scopes"):
        yield from _scopes(scopes, limited)
    selector = spec.get("scopeSelector")
    if selector is not None:
        yield from _selector(selector, spec.get("scopes"), limited)


def _scopes(scopes: list[str], limited: list[str]) -> Errors:
    path = "spec.scopes"
    for scope in scopes:
        counted = _SCOPES.get(scope)
        if counted is None:
            yield errors.invalid(path, scopes, "unsupported scope")
            continue
        unfit = [name for name in limited if name not in counted]
        yield from (errors.invalid(path, scopes, "unsupported scope applied to resource") for _ in unfit)
    yield from _conflicts(set(scopes), scopes, path)


def _conflicts(used: set[str], shown: list[str] | None, path: str) -> Errors:
    return [errors.invalid(path, shown, "conflicting scopes") for pair in _PAIRS if pair <= used]


_STATUS = rules.fields(rules.optional("hard", _amounts), rules.optional("used", _amounts))


def _selector(selector: Tree, scopes: list[str] | None, limited: list[str]) -> Errors:
    path = "spec.scopeSelector.matchExpressions"
    items = selector.get("matchExpressions") or ()
    shown = go_print.internal("core.ScopeSelector", selector)
    for item in items:
        scope, operator, values = item.get("scopeName", ""), item.get("operator", ""), item.get("values") or []
        counted = _SCOPES.get(scope)
        if counted is None:
            yield errors.invalid(f"{path}.scopeName", scope, "unsupported scope")
        else:
            unfit = [name for name in limited if name not in counted]
            yield from (errors.invalid(path, shown, "unsupported scope applied to resource") for _ in unfit)
        if scope in _EXISTING and operator != "Exists":
            yield errors.invalid(f"{path}.operator", operator, _MUST_EXIST)
        yield from _operator(operator, values, path)
    yield from _conflicts({item.get("scopeName", "") for item in items}, scopes, path)


def _operator(operator: str, values: list[str], path: str) -> Errors:
    if operator in ("In", "NotIn"):
        detail = "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector"
        return [] if values else [errors.required(f"{path}.values", detail)]
    if operator in ("Exists", "DoesNotExist"):
        detail = "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector"
        return [errors.invalid(f"{path}.values", values, detail)] if values else []
    return [errors.invalid(f"{path}.operator", operator, "not a valid selector operator")]


QUOTA = COMPUTE_QUOTA | COUNTED | SERVICES | {"requests.storage"}


@remembered(1024)
def quota_name(name: str) -> tuple[str, ...]:
    """The errors of a resource name in a quota."""
    found = any_name(name)
    if "/" not in name and name not in QUOTA and not is_huge_quota(name):
        return (*found, "must be a standard resource for quota")
    return found


def _defaults(doc: Tree) -> None:
    resources.resource_list(doc.setdefault("spec", {}).get("hard"))
    status = doc.setdefault("status", {})
    resources.resource_list(status.get("hard"))
    resources.resource_list(status.get("used"))


def of_quota(new: Tree, old: Tree | None) -> list[str]:
    """Warnings about a new ResourceQuota with higher requests than limits."""
    hard = (new.get("spec") or {}).get("hard") or {}
    found: list[str] = []
    for name in ("cpu", "memory", "storage", "ephemeral-storage") if old is None else ():
        request, limit = f"requests.{name}", f"limits.{name}"
        if request not in hard and name in ("cpu", "memory"):
            request = name
        if request in hard and limit in hard and from_json(hard[request]) > from_json(hard[limit]):
            found.append(f"ResourceQuota {request} ({hard[request]}) should be less than {limit} ({hard[limit]})")
    return found


def _cells(doc: Tree, now: datetime) -> list[object]:
    status = doc.get("status") or {}
    used, hard = status.get("used") or {}, status.get("hard") or {}
    texts: dict[bool, list[str]] = {True: [], False: []}
    for name in sorted(hard):
        texts[name.startswith("limits.")].append(f"{name}: {used.get(name, '0')}/{hard[name]}")
    return [name_of(doc), ", ".join(texts[False]), ", ".join(texts[True]), created(doc, now)]


KIND = Kind(
    "",
    "resourcequotas",
    defaults=_defaults,
    strategy=Strategy(
        new_status={},
        returns_object_on_delete=True,
        check=_check,
        check_change=_check_change,
        check_status=_check_status,
        warn=of_quota,
    ),
    table=layout(
        NAME,
        Column("Request", "Request represents a minimum amount of cpu/memory that a container may consume."),
        Column(
            "Limit",
            "Limits control the maximum amount of cpu/memory that a container may use independent of contention "
            "on the node.",
        ),
        AGE,
        row=_cells,
    ),
)
