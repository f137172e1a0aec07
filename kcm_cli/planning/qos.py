"""The quality-of-service class of a pod.

upstream: pkg/apis/core/helper/qos/qos.go
"""

from kcm_cli.machinery.quantity import from_json
from kcm_cli.planning.pod_resources import Amounts, Tree

_COMPUTE = ("cpu", "memory")


def qos_class(spec: Tree) -> str:
    """``Guaranteed``, ``Burstable`` or ``BestEffort``."""
    requests: Amounts = {}
    limits: Amounts = {}
    guaranteed = True
    if spec.get("resources") is not None:
        guaranteed = _collect(spec, requests, limits) or not spec["resources"].get("limits")
    else:
        for item in spec.get("containers") or ():
            guaranteed &= _collect(item, requests, limits)
        for item in spec.get("initContainers") or ():
            guaranteed &= _collect(item, requests, limits)
    if not requests and not limits:
        return "BestEffort"
    if guaranteed and requests == limits:
        return "Guaranteed"
    return "Burstable"


def _collect(holder: Tree, requests: Amounts, limits: Amounts) -> bool:
    """Add up the resources of one container. Returns whether it has limits for cpu and memory."""
    resources = holder.get("resources")
    if not resources:
        return False
    _add(requests, resources.get("requests"))
    return _add(limits, resources.get("limits")) == len(_COMPUTE)


def _add(total: Amounts, amounts: Tree | None) -> int:
    found = 0
    if amounts:
        for name in _COMPUTE:
            value = amounts.get(name)
            if value is not None and (amount := from_json(value)).sign > 0:
                found += 1
                total[name] = total[name] + amount if name in total else amount
    return found
