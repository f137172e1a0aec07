"""Names and quantities of resources. Checks of names are cached.

upstream: pkg/apis/core/validation/validation.go#validateResourceRequirements, pkg/apis/core/helper/helpers.go
"""

from collections.abc import Callable, Collection

from kcm_cli.machinery import names
from kcm_cli.machinery.errors import FormatError
from kcm_cli.machinery.quantity import ZERO, Quantity, from_json, is_whole
from kcm_cli.machinery.remembered import remembered, remembered_all
from kcm_cli.sandbox.apiserver.types import Errors, FieldError, Tree
from kcm_cli.sandbox.apiserver.validation import errors, rules

HUGE = "hugepages-"
NOT_INTEGER = "must be an integer"
NOT_POSITIVE = "must be greater than zero"
COMPUTE = ("cpu", "memory")

_CONTAINER = frozenset({"cpu", "memory", "ephemeral-storage"})
COUNTED = frozenset(
    {"pods", "services", "replicationcontrollers", "resourcequotas", "secrets", "configmaps", "persistentvolumeclaims"}
)
SERVICES = frozenset({"services.nodeports", "services.loadbalancers"})
COMPUTE_QUOTA = frozenset(
    f"{prefix}{name}" for prefix in ("", "requests.", "limits.") for name in ("cpu", "memory", "ephemeral-storage")
)
STANDARD = COMPUTE_QUOTA | COUNTED | SERVICES | {"storage", "requests.storage"}
_INTEGERS = COUNTED | SERVICES

NameRule = Callable[[str], tuple[str, ...]]


def is_huge(name: str) -> bool:
    return name.startswith(HUGE)


def is_huge_quota(name: str) -> bool:
    return name.startswith((HUGE, f"requests.{HUGE}"))


@remembered(1024)
def is_extended(name: str) -> bool:
    """Whether a name is that of an extended resource."""
    if names.is_native_resource(name) or name.startswith("requests."):
        return False
    return not names.qualified_name(f"requests.{name}")


def overcommits(name: str) -> bool:
    return names.is_native_resource(name) and not is_huge(name)


def is_integer(name: str) -> bool:
    """Whether a resource has integer quantities."""
    return name in _INTEGERS or is_extended(name)


def _standard(name: str) -> bool:
    return name in STANDARD or is_huge_quota(name)


@remembered(1024)
def any_name(name: str) -> tuple[str, ...]:
    """The errors of a resource name."""
    if messages := names.qualified_name(name):
        return tuple(messages)
    if "/" not in name and not _standard(name):
        return ("must be a standard resource type or fully qualified",)
    return ()


@remembered(1024)
def container_name(name: str) -> tuple[str, ...]:
    """The errors of a resource name in a container."""
    found = any_name(name)
    if "/" not in name:
        if name not in _CONTAINER and not is_huge(name):
            return (*found, "must be a standard resource for containers")
    elif not names.is_native_resource(name) and not is_extended(name):
        return (*found, "doesn't follow extended resource name standard")
    return found


def amount(name: str, value: str, path: str) -> list[FieldError]:
    """Check that a quantity is not negative, and an integer if the resource requires it."""
    parsed = from_json(value)
    found: list[FieldError] = []
    if parsed.sign < 0:
        found.append(errors.invalid(path, value, errors.NEGATIVE))
    if is_integer(name) and not is_whole(value):
        found.append(errors.invalid(path, value, NOT_INTEGER))
    return found


positive = rules.must(lambda value: from_json(value).sign > 0, NOT_POSITIVE)
non_negative = rules.must(lambda value: from_json(value).sign >= 0, errors.NEGATIVE)


def _huge_amount(name: str, value: Quantity) -> bool:
    """Whether a quantity of huge pages is a multiple of the page size."""
    try:
        page = from_json(name.removeprefix(HUGE))
    except FormatError:
        return False
    return page > ZERO and not page.milli_value() % 1000 and not value.value() % page.value()


def validate_container(resources: Tree, claims: Collection[str], path: str) -> Errors:
    """Check limits, requests and claims of a container."""
    return _requirements(resources, container_name, claims, path)


def validate_pod_level(resources: Tree, path: str) -> Errors:
    """Check limits and requests at pod level."""
    return _requirements(resources, _pod_name, (), path)


@remembered(256)
def _pod_name(name: str) -> tuple[str, ...]:
    found = any_name(name)
    if found or name in COMPUTE or is_huge(name):
        return found
    return ("\0",)


def _named(name: str, rule: NameRule, path: str) -> Errors:
    messages = rule(name)
    if messages == ("\0",):
        return [errors.not_supported(path, name, ["cpu", "hugepages-", "memory"])]
    return errors.invalid_each(path, name, messages)


@remembered_all(4096)
def _fine(name: str, value: str, rule: NameRule) -> bool:
    """Whether a name and its quantity are valid in any context. Cached."""
    return not (rule(name) or amount(name, value, "") or is_huge(name))


@remembered_all(4096)
def _covered(name: str, request: str, limit: str | None) -> bool:
    return not _within(name, request, limit, "")


def _requirements(resources: Tree, rule: NameRule, claims: Collection[str], path: str) -> Errors:
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    for name, value in sorted(limits.items()):
        if not _fine(name, value, rule):
            yield from _one(name, value, rule, f"{path}.limits[{name}]")
            yield from _pages(name, value, f"{path}.limits[{name}]")
    for name, value in sorted(requests.items()):
        fine = _fine(name, value, rule)
        if not fine:
            yield from _one(name, value, rule, f"{path}.requests[{name}]")
        if not _covered(name, value, limits.get(name)):
            yield from _within(name, value, limits.get(name), path)
        if not fine:
            yield from _pages(name, value, f"{path}.requests[{name}]")
    mentioned = limits.keys() | requests.keys()
    if mentioned.isdisjoint(COMPUTE) and any(is_huge(name) for name in mentioned):
        yield errors.forbidden(path, "HugePages require cpu or memory")
    if used := resources.get("claims"):
        yield from _claims(used, claims, f"{path}.claims")


def _one(name: str, value: str, rule: NameRule, path: str) -> Errors:
    if rule(name):
        yield from _named(name, rule, path)
    yield from amount(name, value, path)


def _pages(name: str, value: str, path: str) -> Errors:
    if is_huge(name) and not _huge_amount(name, from_json(value)):
        yield errors.invalid(path, value, f"{value} is not positive integer multiple of {name}")


def _within(name: str, request: str, limit: str | None, path: str) -> list[FieldError]:
    if limit is None:
        if overcommits(name):
            return []
        return [errors.required(f"{path}.limits", "Limit must be set for non overcommitable resources")]
    if request == limit:
        return []
    asked, most = from_json(request), from_json(limit)
    if asked != most and not overcommits(name):
        detail = f"must be equal to {name} limit of {limit}"
    elif asked > most:
        detail = f"must be less than or equal to {name} limit of {limit}"
    else:
        return []
    return [errors.invalid(f"{path}.requests", request, detail)]


def _claims(used: list[Tree], known: Collection[str], path: str) -> Errors:
    seen: dict[str, set[str]] = {}
    for index, claim in enumerate(used):
        name, place = claim.get("name", ""), f"{path}[{index}]"
        if not name:
            yield errors.required(place)
            continue
        yield from _claim_uses(name, claim.get("request", ""), seen, place)
        if name not in known:
            rest = f": {', '.join(sorted(known))}" if known else " which is empty"
            yield errors.not_found(place, name, f"must be one of the names in pod.spec.resourceClaims{rest}")


def _claim_uses(name: str, request: str, seen: dict[str, set[str]], path: str) -> Errors:
    """``seen``: the requests of each claim; ``""`` stands for all."""
    uses = seen.setdefault(name, set())
    if "" in uses:
        yield errors.duplicate(path, name)
        return
    if request:
        yield from errors.invalid_each(f"{path}.request", request, names.dns1123_label(request))
        if request in uses:
            yield errors.duplicate(path, f"{name}/{request}")
    else:
        yield from (errors.duplicate(path, name) for _ in uses)
    uses.add(request)
