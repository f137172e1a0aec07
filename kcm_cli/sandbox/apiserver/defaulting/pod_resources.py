"""Requests and limits of a whole pod, made up from those of its containers.

Source: pkg/apis/core/v1/defaults.go#defaultPodRequests, #defaultHugePagePodLimits; component-helpers resource.
"""

from kcm_cli.machinery.quantity import Quantity, from_json
from kcm_cli.sandbox.apiserver.types import Tree

_HUGE = "hugepages-"


def supported(name: str) -> bool:
    """Whether a resource can be requested for a pod as a whole."""
    return name in ("cpu", "memory") or name.startswith(_HUGE)


def pod_level(spec: Tree) -> None:
    """Fill in what pod-level resources leave open."""
    own = spec["resources"]
    if own.get("limits") or own.get("requests"):
        _huge_page_limits(spec, own)
    if own.get("limits"):
        _requests(spec, own)


def _huge_page_limits(spec: Tree, own: Tree) -> None:
    limits = dict(own.get("limits") or {})
    for name, amount in aggregate(spec, "limits").items():
        if name.startswith(_HUGE) and name not in (own.get("requests") or {}):
            limits.setdefault(name, str(amount))
    if limits:
        own["limits"] = limits


def _requests(spec: Tree, own: Tree) -> None:
    requests = dict(own.get("requests") or {})
    for name, amount in aggregate(spec, "requests").items():
        if name in ("cpu", "memory"):
            requests.setdefault(name, str(amount))
    for name, value in own["limits"].items():
        if supported(name):
            requests.setdefault(name, value)
    if requests:
        own["requests"] = requests


def aggregate(spec: Tree, field: str) -> dict[str, Quantity]:
    """What all containers together need: the sum of those that run, or the peak of those that run before."""
    total: dict[str, Quantity] = {}
    for item in spec.get("containers") or ():
        _add(total, _amounts(item, field))
    sidecars: dict[str, Quantity] = {}
    peak: dict[str, Quantity] = {}
    for item in spec.get("initContainers") or ():
        amounts = _amounts(item, field)
        if item.get("restartPolicy") == "Always":
            _add(total, amounts)
            _add(sidecars, amounts)
            current = dict(sidecars)
        else:
            current = dict(sidecars)
            _add(current, amounts)
        _raise(peak, current)
    _raise(total, peak)
    return total


def _amounts(item: Tree, field: str) -> dict[str, Quantity]:
    found = (item.get("resources") or {}).get(field) or {}
    return {name: from_json(value) for name, value in found.items()}


def _add(total: dict[str, Quantity], more: dict[str, Quantity]) -> None:
    for name, amount in more.items():
        known = total.get(name)
        total[name] = amount if known is None else known + amount


def _raise(total: dict[str, Quantity], other: dict[str, Quantity]) -> None:
    for name, amount in other.items():
        known = total.get(name)
        if known is None or amount > known:
            total[name] = amount
