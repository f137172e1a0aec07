"""The requests or limits of a whole pod, computed from those of its containers.

upstream: component-helpers resource/helpers.go
"""

from typing import Any

from kcm_cli.machinery.quantity import Quantity, from_json

Tree = dict[str, Any]
_HUGE = "hugepages-"


def supported(name: str) -> bool:
    """Whether a resource can be requested for a pod as a whole."""
    return name in ("cpu", "memory") or name.startswith(_HUGE)


def aggregate(spec: Tree, field: str) -> dict[str, Quantity]:
    """What all containers need together: the sum of those that run at once, or the peak of the init containers."""
    total: dict[str, Quantity] = {}
    for item in spec.get("containers") or ():
        _add(total, amounts_of(item, field))
    sidecars: dict[str, Quantity] = {}
    peak: dict[str, Quantity] = {}
    for item in spec.get("initContainers") or ():
        amounts = amounts_of(item, field)
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


def amounts_of(item: Tree, field: str) -> dict[str, Quantity]:
    """The ``requests`` or ``limits`` of a container or pod."""
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
