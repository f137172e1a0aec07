"""Pods against a quota.

upstream: pkg/quota/v1/evaluator/core/pods.go
"""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta

from kcm_cli.machinery import names as naming
from kcm_cli.machinery.quantity import make
from kcm_cli.machinery.times import parse_time
from kcm_cli.planning.pod_resources import Amounts, amounts_of, charged_amounts
from kcm_cli.planning.pod_totals import supported
from kcm_cli.planning.qos import qos_class
from kcm_cli.planning.quota.write import Tree, Write

_ONE = make(1)
_COUNT = "count/pods"
_NAMES = frozenset(
    {
        _COUNT,
        "pods",
        "cpu",
        "memory",
        "ephemeral-storage",
        "requests.cpu",
        "requests.memory",
        "requests.ephemeral-storage",
        "limits.cpu",
        "limits.memory",
        "limits.ephemeral-storage",
    }
)
_REQUIRED = frozenset({"cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory"})
_HUGE, _REQUESTS = "hugepages-", "requests."
_DEVICE_CLASS = "deviceclass.resource.kubernetes.io/"


def counts(attrs: Write) -> bool:
    """A create, a resize, and an update that moves the pod between the terminating scopes."""
    if attrs.subresource == "resize":
        return attrs.operation == "UPDATE"
    if attrs.subresource:
        return False
    if attrs.operation == "UPDATE":
        return _terminating(attrs.old or {}) != _terminating(attrs.obj or {})
    return attrs.operation == "CREATE"


def covers(name: str) -> bool:
    """Whether a name of a quota is about pods."""
    if name in _NAMES or name.startswith((_HUGE, _REQUESTS + _HUGE)):
        return True
    if not name.startswith(_REQUESTS):
        return False
    return not naming.is_native_resource(name) or name.startswith(_REQUESTS + _DEVICE_CLASS)


def usage(pod: Tree, now: datetime) -> Amounts:
    """A pod that has ended, or should have, counts as an object only."""
    if not _alive(pod, now):
        return {_COUNT: _ONE}
    requests, limits = charged_amounts(pod, "requests"), charged_amounts(pod, "limits")
    return {_COUNT: _ONE, **_compute(requests, limits)}


def problem(pod: Tree, names: Iterable[str]) -> str:
    """A quota of cpu or memory wants every container to say what it needs."""
    spec: Tree = pod["spec"]
    required = _REQUIRED.intersection(names)
    if not required or _has_pod_level(spec):
        return ""
    missing: dict[str, set[str]] = {}
    for key in ("containers", "initContainers"):
        for container in spec.get(key) or ():
            resources = container.get("resources") or {}
            requests = amounts_of(resources.get("requests"))
            given = _compute(requests, amounts_of(resources.get("limits")))
            for name in required.difference(given):
                missing.setdefault(name, set()).add(container["name"])
    if not missing:
        return ""
    parts = (f"{name} for: {','.join(sorted(missing[name]))}" for name in sorted(missing))
    return f"must specify {'; '.join(parts)}"


def in_scope(pod: Tree, requirement: Tree) -> bool:
    """Whether a pod is in a scope."""
    spec: Tree = pod["spec"]
    match requirement.get("scopeName"):
        case "Terminating":
            return _terminating(pod)
        case "NotTerminating":
            return not _terminating(pod)
        case "BestEffort":
            return qos_class(spec) == "BestEffort"
        case "NotBestEffort":
            return qos_class(spec) != "BestEffort"
        case "PriorityClass":
            name = spec.get("priorityClassName") or ""
            if requirement.get("operator") == "Exists":
                return bool(name)
            return scope_matches(requirement, {"PriorityClass": name} if name else {})
        case "CrossNamespacePodAffinity":
            return any(
                term.get("namespaces") or term.get("namespaceSelector") is not None for term in _affinity_terms(spec)
            )
    return False


def scope_matches(requirement: Tree, values: Mapping[str, str]) -> bool:
    """Whether the value of a scope is one that the requirement names."""
    value = values.get(requirement.get("scopeName", ""))
    wanted: list[str] = requirement.get("values") or []
    match requirement.get("operator"):
        case "In":
            return value is not None and value in wanted
        case "NotIn":
            return value is None or value not in wanted
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
    return False


def _compute(requests: Amounts, limits: Amounts) -> Amounts:
    found: Amounts = {"pods": _ONE}
    for name in ("cpu", "memory", "ephemeral-storage"):
        if name in requests:
            found[name] = found[f"{_REQUESTS}{name}"] = requests[name]
        if name in limits:
            found[f"limits.{name}"] = limits[name]
    for name, amount in requests.items():
        if name.startswith(_HUGE):
            found[name] = found[_REQUESTS + name] = amount
        elif _extended(name):
            found[_REQUESTS + name] = amount
    return found


def _extended(name: str) -> bool:
    if name.startswith(_DEVICE_CLASS):
        return True
    if naming.is_native_resource(name) or name.startswith(_REQUESTS):
        return False
    return not naming.qualified_name(_REQUESTS + name)


def alive(phase: str, deleted: str | None, grace_s: int | None, now: datetime) -> bool:
    """Whether a pod is charged for more than its existence: it has not ended, nor is its deletion overdue."""
    if phase in ("Failed", "Succeeded"):
        return False
    if deleted is None or grace_s is None:
        return True
    return now <= parse_time(deleted) + timedelta(seconds=grace_s)


def terminating(deadline_s: int | None) -> bool:
    """Whether a pod with such a deadline is in the scope Terminating; if not it is in NotTerminating."""
    return deadline_s is not None and deadline_s >= 0


def _alive(pod: Tree, now: datetime) -> bool:
    metadata: Tree = pod["metadata"]
    phase = (pod.get("status") or {}).get("phase") or ""
    return alive(phase, metadata.get("deletionTimestamp"), metadata.get("deletionGracePeriodSeconds"), now)


def _terminating(pod: Tree) -> bool:
    return terminating((pod.get("spec") or {}).get("activeDeadlineSeconds"))


def _has_pod_level(spec: Tree) -> bool:
    own: Tree = spec.get("resources") or {}
    return any(supported(name) for field in ("requests", "limits") for name in own.get(field) or ())


def _affinity_terms(spec: Tree) -> Iterator[Tree]:
    affinity: Tree = spec.get("affinity") or {}
    for kind in ("podAffinity", "podAntiAffinity"):
        rules: Tree = affinity.get(kind) or {}
        yield from rules.get("requiredDuringSchedulingIgnoredDuringExecution") or ()
        for weighted in rules.get("preferredDuringSchedulingIgnoredDuringExecution") or ():
            yield weighted.get("podAffinityTerm") or {}
