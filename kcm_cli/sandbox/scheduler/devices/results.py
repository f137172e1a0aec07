"""Builds the allocation in a claim's status: devices, their configuration, and a node selector.

upstream: staging/src/k8s.io/dynamic-resource-allocation/structured/internal/incubating/allocator_incubating.go
"""

import random
from collections.abc import Iterable, Sequence
from uuid import UUID

import msgspec

from kcm_cli.api.core import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from kcm_cli.machinery.codec import Doc
from kcm_cli.planning.node_affinity import NAME_FIELD
from kcm_cli.sandbox.scheduler.devices.allocator import Choice, Given, RequestData
from kcm_cli.sandbox.scheduler.devices.views import Allocation, Claim


class Reservation(msgspec.Struct, frozen=True):
    """A claim to reserve for a pod, with its allocation if it has none yet. ``mappings``: set for a claim for extended
    resources, which has to be created."""

    claim: Claim
    allocation: Doc | None
    mappings: tuple[Doc, ...] = ()


def allocation_of(choice: Choice, node: str, rng: random.Random) -> Doc:
    """The ``status.allocation`` of a claim. Shares of devices get unique ids."""
    devices: Doc = {"results": [_result(given, rng) for given in choice.given]}
    config = [*_of_classes(choice.request_data), *_of_claim(choice)]
    if config:
        devices["config"] = config
    selector = _node_selector(choice.given, node)
    return {"devices": devices} | ({} if selector is None else {"nodeSelector": msgspec.to_builtins(selector)})


def view_of(allocation: Doc) -> Allocation:
    return msgspec.convert(allocation, Allocation)


def _result(given: Given, rng: random.Random) -> Doc:
    wanted, (driver, pool, device) = given.data.wanted, given.candidate.id
    source = given.candidate.device
    result: Doc = {"request": given.data.name, "driver": driver, "pool": pool, "device": device}
    if wanted.admin_access:
        result["adminAccess"] = True
    if wanted.tolerations:
        result["tolerations"] = [msgspec.to_builtins(one) for one in wanted.tolerations]
    if source.binding_conditions:
        result["bindingConditions"] = [*source.binding_conditions]
    if source.binding_failure_conditions:
        result["bindingFailureConditions"] = [*source.binding_failure_conditions]
    if given.shared:
        result["shareID"] = str(UUID(int=rng.getrandbits(128), version=4))
    if given.amounts:
        result["consumedCapacity"] = {name: str(amount) for name, amount in given.amounts.items()}
    return result


def _of_classes(request_data: Sequence[RequestData]) -> list[Doc]:
    """The configurations of each class, once, with all its requests."""
    requests: dict[str, list[str]] = {}
    for data in request_data:
        requests.setdefault(data.class_.name, []).append(data.name)
    classes = {data.class_.name: data.class_ for data in request_data}
    return [
        {**config, "source": "FromClass", "requests": names}
        for name, names in requests.items()
        for config in classes[name].spec.config
    ]


def _of_claim(choice: Choice) -> Iterable[Doc]:
    """The claim's configurations: for all requests, or once for each named request."""
    for config in choice.claim.spec.devices.config:
        named = config.get("requests")
        if not isinstance(named, list) or not named:
            yield {**config, "source": "FromClaim"}
            continue
        for data in choice.request_data:
            if data.parent in named or data.name in named:
                yield {**config, "source": "FromClaim"}


def _node_selector(given: Sequence[Given], node: str) -> NodeSelector | None:
    """The node if a device is local to it, else the requirements of all devices; None for any node."""
    fields: list[NodeSelectorRequirement] = []
    expressions: list[NodeSelectorRequirement] = []
    for one in given:
        source = (
            one.candidate.device if one.candidate.slice.spec.per_device_node_selection else one.candidate.slice.spec
        )
        if source.node_name is not None or one.candidate.device.binds_to_node:
            here = NodeSelectorRequirement(NAME_FIELD, "In", (node,))
            return NodeSelector((NodeSelectorTerm(match_fields=(here,)),))
        for term in source.node_selector.node_selector_terms if source.node_selector is not None else ():
            _add(term.match_fields, fields)
            _add(term.match_expressions, expressions)
    if not fields and not expressions:
        return None
    return NodeSelector((NodeSelectorTerm(tuple(expressions), tuple(fields)),))


def _add(more: Iterable[NodeSelectorRequirement], found: list[NodeSelectorRequirement]) -> None:
    for item in more:
        if not any(_is_same(item, other) for other in found):
            found.append(item)


def _is_same(one: NodeSelectorRequirement, other: NodeSelectorRequirement) -> bool:
    return (one.key, one.operator, set(one.values)) == (other.key, other.operator, set(other.values))
