"""The evaluator of pods.

upstream: pkg/quota/v1/evaluator/core/pods.go
"""

from collections.abc import Iterable, Iterator
from datetime import datetime

from kcm_cli.machinery import names as naming
from kcm_cli.machinery.quantity import make
from kcm_cli.machinery.times import parse_time
from kcm_cli.planning.pod_resources import Amounts, Tree, amounts_of, charged_amounts, supported
from kcm_cli.planning.qos import qos_class
from kcm_cli.planning.quota.devices import IMPLICIT, REQUESTS, is_extended
from kcm_cli.planning.quota.scopes import PRIORITY_CLASS, Profile
from kcm_cli.planning.quota.write import Write

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
SCOPES = frozenset(
    {
        "Terminating",
        "NotTerminating",
        "BestEffort",
        "NotBestEffort",
        PRIORITY_CLASS,
        "CrossNamespacePodAffinity",
    }
)
_REQUIRED = frozenset({"cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory"})
_HUGE = "hugepages-"


def counts(attrs: Write) -> bool:
    """Whether a write counts: a creation, a resize, or an update that changes a pod's Terminating scope."""
    if attrs.subresource == "resize":
        return attrs.operation == "UPDATE"
    if attrs.subresource:
        return False
    if attrs.operation == "UPDATE":
        return _terminating(attrs.old or {}) != _terminating(attrs.obj or {})
    return attrs.operation == "CREATE"


def covers(name: str) -> bool:
    """Whether a name in a quota concerns pods."""
    return name in _NAMES or name.startswith((_HUGE, REQUESTS + _HUGE)) or is_extended(name)


def usage(pod: Tree, now: datetime) -> Amounts:
    """The usage of a pod. One that is terminal, or whose deletion is overdue, counts as an object only."""
    if not _alive(pod, now):
        return {_COUNT: _ONE}
    requests, limits = charged_amounts(pod, "requests"), charged_amounts(pod, "limits")
    return {_COUNT: _ONE, **_compute(requests, limits)}


def problem(pod: Tree, names: Iterable[str]) -> str:
    """Why a pod cannot be measured: with a quota of cpu or memory, every container must state it."""
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


def profile(pod: Tree) -> Profile:
    """The scopes that a pod is in."""
    spec: Tree = pod["spec"]
    quality = (pod.get("status") or {}).get("qosClass") or qos_class(spec)
    found = {
        ("Terminating" if _terminating(pod) else "NotTerminating", ""),
        ("BestEffort" if quality == "BestEffort" else "NotBestEffort", ""),
    }
    if name := spec.get("priorityClassName"):
        found.add((PRIORITY_CLASS, name))
    if any(term.get("namespaces") or term.get("namespaceSelector") is not None for term in _affinity_terms(spec)):
        found.add(("CrossNamespacePodAffinity", ""))
    return frozenset(found)


def _compute(requests: Amounts, limits: Amounts) -> Amounts:
    found: Amounts = {"pods": _ONE}
    for name in ("cpu", "memory", "ephemeral-storage"):
        if name in requests:
            found[name] = found[f"{REQUESTS}{name}"] = requests[name]
        if name in limits:
            found[f"limits.{name}"] = limits[name]
    for name, amount in requests.items():
        if name.startswith(_HUGE):
            found[name] = found[REQUESTS + name] = amount
        elif _extended(name):
            found[REQUESTS + name] = amount
    return found


def _extended(name: str) -> bool:
    if name.startswith(IMPLICIT):
        return True
    if naming.is_native_resource(name) or name.startswith(REQUESTS):
        return False
    return not naming.qualified_name(REQUESTS + name)


def alive(phase: str, deleted: str | None, grace_s: int | None, now: datetime) -> bool:
    """Whether a pod is charged for more than its existence: it is not terminal, and its deletion is not overdue."""
    if phase in ("Failed", "Succeeded"):
        return False
    due_s = overdue_from(deleted, grace_s)
    return due_s is None or now.timestamp() <= due_s


def overdue_from(deleted: str | None, grace_s: int | None) -> float | None:
    """When the deletion of a pod becomes overdue (seconds since 1970); None for a pod that is not being deleted."""
    return parse_time(deleted).timestamp() + grace_s if deleted is not None and grace_s is not None else None


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
