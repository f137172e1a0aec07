"""The pools that are available on a node."""

from typing import Any

import pytest

from kcm_cli.sandbox.scheduler.devices.pools import Inventory, Target
from tests.unit.sandbox.scheduler.devices.making import NODE, claim, device, devices_of, slice_of, wanted

ZONE_A = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}]}
OTHER = Target("n2", {"zone": "b"})


@pytest.mark.parametrize(
    ("fields", "here", "there"),
    [
        pytest.param({"nodeName": "n1"}, True, False, id="one node"),
        pytest.param({"allNodes": True}, True, True, id="all nodes"),
        pytest.param({"nodeSelector": ZONE_A}, True, False, id="some nodes"),
        pytest.param({"perDeviceNodeSelection": False}, False, False, id="unknown"),
    ],
)
def test_where_a_slice_is(fields: Any, here: bool, there: bool) -> None:
    inventory = Inventory([slice_of("d", **fields)])
    assert [bool(inventory.pools_of(node)) for node in (NODE, OTHER)] == [here, there]


def test_each_device_may_be_elsewhere() -> None:
    devices = [device("x", nodeName="n2"), device("y", nodeSelector=ZONE_A), device("z", allNodes=True)]
    slices = [slice_of(*devices, perDeviceNodeSelection=True)]
    asked = [claim(wanted(allocationMode="All"))]
    assert devices_of(asked, slices) == [["y", "z"]]
    assert devices_of(asked, slices, node=OTHER) == [["x", "z"]]


def test_only_the_latest_generation_counts_even_where_it_is_not_for_the_node() -> None:
    old, new = slice_of("d"), slice_of("e", name="t", generation=2, nodeName="n2")
    assert Inventory([old, new]).pools_of(NODE) == []
    assert devices_of([claim(wanted())], [old, new], node=OTHER) == [["e"]]


def test_slices_of_other_nodes_do_not_make_a_pool_incomplete() -> None:
    slices = [slice_of("d", count=2), slice_of("e", name="t", count=2, nodeName="n2")]
    assert devices_of([claim(wanted(allocationMode="All"))], slices) == [["d"]]


def test_devices_with_binding_conditions_are_last() -> None:
    slow = slice_of(device("slow", bindingConditions=["Ready"], bindingFailureConditions=["Failed"]), pool="a")
    assert devices_of([claim(wanted(count=2))], [slow, slice_of("fast", pool="b")]) == [["fast", "slow"]]


def test_missing_counters_make_a_pool_invalid() -> None:
    use = {"counterSet": "none", "counters": {"memory": {"value": "1"}}}
    (pool,) = Inventory([slice_of(device("d", consumesCounters=[use]))]).pools_of(NODE)
    assert pool.invalid
