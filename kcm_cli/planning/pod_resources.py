"""The resource requests and limits of a whole pod.

upstream: component-helpers resource/helpers.go, plugin/pkg/admission/limitranger
"""

from collections.abc import Iterable, Mapping
from typing import Any

from kcm_cli.machinery.quantity import Quantity, from_json

Amounts = dict[str, Quantity]
Tree = dict[str, Any]
_HUGE = "hugepages-"


def supported(name: str) -> bool:
    """Whether a resource can be requested for a pod as a whole."""
    return name in ("cpu", "memory") or name.startswith(_HUGE)


def aggregate(spec: Tree, field: str) -> Amounts:
    """The resources of all containers: the sum of those that run at once, or the peak of the init containers if that is
    higher."""
    total: Amounts = {}
    for item in spec.get("containers") or ():
        _add(total, amounts_of((item.get("resources") or {}).get(field)))
    sidecars: Amounts = {}
    peak: Amounts = {}
    for item in spec.get("initContainers") or ():
        amounts = amounts_of((item.get("resources") or {}).get(field))
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


def spec_amounts(pod: Tree, field: str) -> Amounts:
    """``requests`` or ``limits`` by the spec alone, without overhead."""
    spec: Tree = pod["spec"]
    return _with_pod_level(spec, field, aggregate(spec, field))


def charged_amounts(pod: Tree, field: str) -> Amounts:
    """``requests`` or ``limits`` as schedulers and quotas count them.

    They include the overhead of the RuntimeClass, and what is still allocated to a pod that is being resized.
    """
    spec: Tree = pod["spec"]
    amounts = _with_pod_level(spec, field, aggregate(_effective(pod, field), field))
    overhead: Mapping[str, object] = spec.get("overhead") or {}
    for name, value in overhead.items():
        known = amounts.get(name)
        if field == "requests" or known:
            amounts[name] = from_json(value) if known is None else known + from_json(value)
    return amounts


def amounts_of(values: Mapping[str, object] | None) -> Amounts:
    """A resource list with its numbers."""
    return {name: from_json(value) for name, value in (values or {}).items()}


def _add(total: Amounts, more: Amounts) -> None:
    for name, amount in more.items():
        known = total.get(name)
        total[name] = amount if known is None else known + amount


def _raise(total: Amounts, other: Amounts) -> None:
    for name, amount in other.items():
        known = total.get(name)
        if known is None or amount > known:
            total[name] = amount


def _with_pod_level(spec: Tree, field: str, amounts: Amounts) -> Amounts:
    own: Mapping[str, object] = (spec.get("resources") or {}).get(field) or {}
    for name, value in own.items():
        if supported(name):
            amounts[name] = from_json(value)
    return amounts


def _effective(pod: Tree, field: str) -> Tree:
    """The spec with the containers' actual resources where these are larger."""
    status: Tree = pod.get("status") or {}
    told = (each for key in ("containerStatuses", "initContainerStatuses") for each in status.get(key) or ())
    last = {each.get("name", ""): each for each in told}  # the API server accepts two of one name, or of none
    statuses = {name: each for name, each in last.items() if each.get("resources") is not None}
    spec: Tree = pod["spec"]
    if not statuses:
        return spec
    refused = is_refused((each.get("type", ""), each.get("reason", "")) for each in status.get("conditions") or ())
    changed: Tree = {}
    for key in ("containers", "initContainers"):
        containers: Iterable[Tree] = spec.get(key) or ()
        changed[key] = [
            _container(each, statuses[name], field, refused)
            if (name := each.get("name", "")) in statuses
            and (key == "containers" or each.get("restartPolicy") == "Always")
            else each
            for each in containers
        ]
    return changed


def _container(container: Tree, status: Tree, field: str, refused: bool) -> Tree:
    sources = [] if refused else [amounts_of((container.get("resources") or {}).get(field))]
    sources.append(amounts_of(status["resources"].get(field)))
    if field == "requests":
        sources.append(amounts_of(status.get("allocatedResources")))
    most: Amounts = {}
    for source in sources:
        for name, amount in source.items():
            most[name] = max(most[name], amount) if name in most else amount
    return {**container, "resources": {field: {name: str(amount) for name, amount in most.items()}}}


def is_refused(conditions: Iterable[tuple[str, str]]) -> bool:
    """Whether the node of a pod refuses its resize for good. ``conditions``: the types and reasons of the pod's."""
    return next((reason for kind, reason in conditions if kind == "PodResizePending"), "") == "Infeasible"
