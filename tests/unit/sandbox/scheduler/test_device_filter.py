"""The nodes that fit for pods with claims."""

import random
from typing import Any

import pytest

from kcm_cli.machinery import codec
from kcm_cli.runtime.store import Store
from kcm_cli.sandbox.scheduler.compared import Compared
from kcm_cli.sandbox.scheduler.decide import Placement, decide
from kcm_cli.sandbox.scheduler.device_filter import MOST_USERS, DeviceFilter
from kcm_cli.sandbox.scheduler.devices.state import DeviceState
from kcm_cli.sandbox.scheduler.devices.views import CLAIMS, Claim, DeviceClass, Slice
from kcm_cli.sandbox.scheduler.podinfo import PodInfo
from kcm_cli.sandbox.scheduler.state import ClusterState
from kcm_cli.sandbox.scheduler.verdict import FitError
from kcm_cli.sandbox.views import NODES
from tests.unit.sandbox.scheduler.build import node_doc, pod, volumes_of
from tests.unit.sandbox.scheduler.devices.making import claim, class_of, first_of, slice_of, wanted

Doc = dict[str, Any]


def using(*claims: str) -> PodInfo:
    return pod("p", resourceClaims=[{"name": name, "resourceClaimName": name} for name in claims])


def state_of(claims: list[Claim], slices: list[Slice], *nodes: str) -> ClusterState:
    stores: tuple[Store[Claim], Store[DeviceClass], Store[Slice]] = (Store(), Store(), Store())
    for each in claims:
        stores[0].put(each)
    stores[1].put(class_of())
    for one in slices:
        stores[2].put(one)
    state = ClusterState(devices=DeviceState(*stores))
    for name in nodes:
        state.set_node(NODES.decode(codec.encode(node_doc(name))))
    return state


def with_status(source: Claim, **status: Any) -> Claim:
    doc = codec.decode_doc(codec.encode(source))
    doc["metadata"]["namespace"] = "default"
    return CLAIMS.decode(codec.encode(doc | {"status": status}))


@pytest.mark.parametrize(
    ("others", "own", "fits"), [(MOST_USERS, False, False), (MOST_USERS - 1, False, True), (MOST_USERS - 1, True, True)]
)
def test_a_claim_that_as_many_pods_use_as_can(others: int, own: bool, fits: bool) -> None:
    users = [{"resource": "pods", "name": f"o{number}", "uid": f"o{number}"} for number in range(others)]
    users += [{"resource": "pods", "name": "p", "uid": "p"}] if own else []
    taken = with_status(claim(wanted()), reservedFor=users, allocation={"devices": {"results": []}})
    found = decide(using("c"), state_of([taken], [], "n"), volumes_of(), random.Random(1))
    if fits:
        assert isinstance(found, Placement)
    else:
        assert isinstance(found, FitError)
        assert found.message() == "0/1 nodes are available: resourceclaim in use."


def test_alternatives_of_claims_that_have_devices_count_on_all_nodes() -> None:
    had = with_status(
        claim(first_of(wanted(), wanted()), name="had"),
        allocation={"devices": {"results": [{"request": "r0/s1", "driver": "x", "pool": "p", "device": "d"}]}},
    )
    free = with_status(claim(first_of(wanted("device.attributes['gpu.x'].big"), wanted()), name="free"))
    slices = [
        slice_of({"name": "d", "attributes": {"big": {"bool": big}}}, name=node, pool=node, nodeName=node)
        for node, big in (("a", True), ("b", False))
    ]
    state = state_of([had, free], slices, "a", "b")
    made = DeviceFilter(using("had", "free"), state.devices)
    assert [made.check(node) for node in state.all()] == [None, None]
    found = made.scores(Compared(state, range(2)))
    assert found is not None
    assert [found.points[value] for value in found.values] == [100, 14 * 100 // 15]
