"""Snapshots, and the result of planned writes on an API server."""

from collections.abc import Iterable
from typing import Any

from kcm_cli.api.core import Pod, Service
from kcm_cli.api.discovery import ENDPOINT_SLICES, EndpointSlice
from kcm_cli.controllers.endpointslice.plan import Slicing, plan
from kcm_cli.controllers.endpointslice.plan.desired import Snapshot
from kcm_cli.machinery import codec
from kcm_cli.planning.actions import Action, Create, Delete, Update, edited
from tests.unit.planning.endpoints.making import node, pod, service

NODES = {name: node(name, zone) for name, zone in (("n1", "z1"), ("n2", "z2"), ("n3", "z3"))}


def snapshot(
    pods: Iterable[Pod] = (), slices: Iterable[EndpointSlice] = (), subject: Service | None = None, **other: Any
) -> Snapshot:
    options = {"nodes": NODES, "max_per_slice": 100} | other
    return Snapshot(subject or service(), tuple(pods), slices=tuple(slices), **options)


def actions(shot: Snapshot, planned: Slicing) -> list[Action]:
    return [action for stage in planned.stages for action in stage.actions]


def writes(shot: Snapshot, address_type: str = "IPv4") -> list[Action]:
    return actions(shot, plan(shot, address_type))


def verbs(found: Iterable[Action]) -> list[str]:
    return [type(action).__name__ for action in found]


def apply(slices: Iterable[EndpointSlice], done: Iterable[Action]) -> list[EndpointSlice]:
    """The slices after these writes, decoded from what was sent. New ones get names in order."""
    result = {slice_.name: slice_ for slice_ in slices}
    for action in done:
        match action:
            case Create(body=dict() as body):
                metadata: dict[str, Any] = dict(body["metadata"])  # type: ignore[call-overload]
                name = next(f"web-{n:03}" for n in range(1000) if f"web-{n:03}" not in result)
                metadata |= {"name": name, "uid": f"uid-{name}", "resourceVersion": "1"}
                result[name] = ENDPOINT_SLICES.decode(codec.encode({**body, "metadata": metadata}))
            case Update(obj=old, changes=changes):
                result[old.name] = ENDPOINT_SLICES.decode(codec.encode(edited(old, changes)))
            case Delete(name=name):
                del result[name]
    return list(result.values())


def settled(shot: Snapshot, address_type: str = "IPv4") -> list[EndpointSlice]:
    """The slices that the writes for this snapshot leave."""
    return apply(shot.slices, writes(shot, address_type))


def many(count: int, **options: Any) -> list[Pod]:
    return [pod(f"p{n:04}", f"10.0.{n // 250}.{n % 250 + 1}", **options) for n in range(count)]


def sizes(slices: Iterable[EndpointSlice]) -> list[int]:
    return sorted((len(slice_.members) for slice_ in slices), reverse=True)
