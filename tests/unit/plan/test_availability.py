"""How many ready endpoints a Service is to have."""

from collections.abc import Mapping
from functools import cache
from typing import Any

import pytest
from msgspec.structs import replace

from kcm_cli.machinery import codec
from kcm_cli.plan import Change, Delete, Options, Scale, Snapshot, Target, plan
from kcm_cli.plan.answer import Availability, Object
from kcm_cli.plan.availability import _wanted
from kcm_cli.plan.observe import SLICES
from kcm_cli.plan.snapshot import Item
from tests.kit.simulation import World
from tests.kit.workload import deployment
from tests.unit.plan.clusters import snapshot_of

WEB, OTHER = Object("Deployment", "n", "web"), Object("Deployment", "n", "other")


@pytest.mark.parametrize(
    ("before", "final", "of", "fewer", "wanted"),
    [
        (4, 4, {WEB: 4}, {}, 4),
        (4, 3, {WEB: 4}, {WEB: 0}, 4),  # one never came back
        (4, 2, {WEB: 4}, {WEB: 2}, 2),  # scaled down
        (4, 1, {WEB: 4}, {WEB: 2}, 2),
        (4, 3, {WEB: 4}, {WEB: 2}, 3),
        (4, 6, {WEB: 4}, {WEB: 0}, 4),  # scaled up
        (4, 0, {WEB: 4}, {}, 4),  # it selects others, or none
        (4, 0, {WEB: 4}, {WEB: 4}, 1),  # none are left
        (6, 2, {WEB: 4, OTHER: 2}, {WEB: 4}, 2),  # others are left
        (6, 1, {WEB: 4, OTHER: 2}, {WEB: 4}, 2),
        (4, 3, {WEB: 1, OTHER: 3}, {WEB: 9}, 3),  # it selects one of nine
        (4, 2, {WEB: 1, OTHER: 3}, {WEB: 9}, 3),
        (0, 0, {}, {}, 0),
    ],
)
def test_what_a_service_is_to_have(
    before: int, final: int, of: Mapping[Object, int], fewer: Mapping[Object, int], wanted: int
) -> None:
    assert _wanted([(0.0, before), (1.0, final)], of, fewer) == wanted


async def _shared(world: World) -> None:
    """A Service with the pods of two Deployments, ``blue`` and ``green``."""
    for name, replicas in (("blue", 3), ("green", 2)):
        doc = deployment(name, replicas)
        doc["spec"]["template"]["metadata"]["labels"]["tier"] = "front"
        await world.create("apps/v1/deployments", doc)
    metadata = {"name": "front", "namespace": "sim"}
    spec = {"selector": {"tier": "front"}, "ports": [{"port": 80}]}
    await world.create("v1/services", {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec})
    await world.clock.sleep(60)


@cache
def shared() -> Snapshot:
    return snapshot_of(_shared)


def front(snapshot: Snapshot, change: Change) -> Availability:
    answer = plan(snapshot, [change], Options(horizon_s=120))
    return next(one for one in answer.availability if one.about.kind == "Service")


BLUE = Target("deploy", "blue", "sim")


@pytest.mark.parametrize("change", [Scale(BLUE, 0), Delete(BLUE)], ids=["scaled", "deleted"])
def test_a_service_needs_no_pods_of_a_workload_that_is_to_have_none(change: Change) -> None:
    found = front(shared(), change)
    assert (found.before, found.wanted, found.lowest, found.below_s) == (5, 2, 2, 0.0)


def test_the_endpoints_of_several_slices_are_added_up() -> None:
    """A Service with more endpoints than a slice may have has several."""
    found = front(_in_two_slices(shared()), Scale(BLUE, 1))
    assert (found.before, found.wanted, found.lowest, found.below_s) == (5, 3, 3, 0.0)


def _in_two_slices(snapshot: Snapshot) -> Snapshot:
    (item,) = snapshot.items(SLICES)
    parts = []
    for number, part in enumerate((slice(2), slice(2, None))):
        doc: Any = item.doc
        doc["metadata"] |= {"name": f"front-{number}", "uid": f"front-{number}"}
        doc["endpoints"] = doc["endpoints"][part]
        parts.append(Item("sim", f"front-{number}", f"front-{number}", codec.encode(doc)))
    whole = replace(snapshot.collections[SLICES], items=tuple(parts))
    return replace(snapshot, collections={**snapshot.collections, SLICES: whole})
