"""The devices that claims get on a node."""

from typing import Any

import pytest

from kcm_cli.sandbox.scheduler.devices.errors import AllocationError, NodeRefused
from tests.unit.sandbox.scheduler.devices.making import (
    claim,
    class_of,
    device,
    devices_of,
    first_of,
    slice_of,
    used,
    wanted,
)

NUMA = [device("a", attributes={"numa": 0}), device("b", attributes={"numa": 1}), device("c", attributes={"numa": 1})]
SICK = device("sick", taints=[{"key": "k", "effect": "NoSchedule"}])
TOLERANT = {"tolerations": [{"key": "k", "operator": "Exists"}]}
MATCH = {"constraints": [{"matchAttribute": "gpu.x/numa"}]}
DISTINCT = {"constraints": [{"distinctAttribute": "gpu.x/numa"}]}
THREE = slice_of("a", "b", "c")


@pytest.mark.parametrize(
    ("claims", "slices", "expected"),
    [
        pytest.param([claim(wanted())], [THREE], [["a"]], id="the first"),
        pytest.param([claim(wanted(count=2))], [THREE], [["a", "b"]], id="two"),
        pytest.param([claim(wanted(count=4))], [THREE], None, id="too many"),
        pytest.param([claim(wanted(), wanted())], [THREE], [["a", "b"]], id="two requests"),
        pytest.param([claim(wanted()), claim(wanted(count=2))], [THREE], [["a"], ["b", "c"]], id="two claims"),
        pytest.param([claim(wanted(allocationMode="All"))], [THREE], [["a", "b", "c"]], id="all"),
        pytest.param([claim(wanted("false", allocationMode="All"))], [THREE], None, id="all of none"),
        pytest.param(
            [claim(wanted(count=2))], [slice_of("z", pool="a"), slice_of("y", pool="b")], [["z", "y"]], id="by pool"
        ),
        pytest.param(
            [claim(wanted(count=2))],
            [slice_of("z", name="a", count=2), slice_of("y", name="b", count=2)],
            [["z", "y"]],
            id="by slice",
        ),
        pytest.param([claim(wanted())], [slice_of(SICK, "b")], [["b"]], id="a taint"),
        pytest.param([claim(wanted(**TOLERANT))], [slice_of(SICK, "b")], [["sick"]], id="a tolerated taint"),
        pytest.param([claim(wanted(count=2), **MATCH)], [slice_of(*NUMA)], [["b", "c"]], id="the same attribute"),
        pytest.param([claim(wanted(count=3), **MATCH)], [slice_of(*NUMA)], None, id="not so many with the same"),
        pytest.param([claim(wanted(count=2), **DISTINCT)], [slice_of(*NUMA)], [["a", "b"]], id="distinct attributes"),
        pytest.param([claim(wanted(count=3), **DISTINCT)], [slice_of(*NUMA)], None, id="not so many distinct ones"),
        pytest.param(
            [claim(wanted(count=3), **DISTINCT)],
            [slice_of(*NUMA[:2], device("d", attributes={"numa": 0}))],
            [["a", "b", "d"]],
            id="distinct from the last one of a request",
        ),
        pytest.param(
            [claim(wanted(), wanted(count=2), **DISTINCT)],
            [slice_of(*NUMA[:2], device("d", attributes={"numa": 0}))],
            None,
            id="distinct from that of another request",
        ),
        pytest.param([claim(wanted(), **MATCH)], [THREE], None, id="without the attribute"),
        pytest.param(
            [claim(wanted(), wanted('device.attributes["gpu.x"].numa == 1'))],
            [slice_of(*NUMA[:2])],
            [["a", "b"]],
            id="in order",
        ),
        pytest.param(
            [claim(wanted('device.attributes["gpu.x"].numa >= 0'), wanted('device.attributes["gpu.x"].numa == 0'))],
            [slice_of(*NUMA[:2])],
            [["b", "a"]],
            id="going back",
        ),
        pytest.param([claim(first_of(wanted(count=2), wanted()))], [THREE], [["a", "b"]], id="the first alternative"),
        pytest.param([claim(first_of(wanted(count=9), wanted()))], [THREE], [["a"]], id="another alternative"),
        pytest.param(
            [claim(first_of(wanted(count=3), wanted())), claim(wanted())],
            [THREE],
            [["a"], ["b"]],
            id="for the next one",
        ),
        pytest.param(
            [claim(wanted(adminAccess=True), wanted())], [slice_of("a")], None, id="an administrator is first"
        ),
        pytest.param(
            [claim(wanted(adminAccess=True)), claim(wanted(adminAccess=True), name="d")],
            [slice_of("a")],
            [["a"], ["a"]],
            id="two administrators",
        ),
    ],
)
def test_devices(claims: Any, slices: Any, expected: list[list[str]] | None) -> None:
    assert devices_of(claims, slices) == expected


def test_allocated_devices_are_available_only_with_admin_access() -> None:
    assert devices_of([claim(wanted())], [THREE], usage=used("a")) == [["b"]]
    assert devices_of([claim(wanted(adminAccess=True))], [THREE], usage=used("a")) == [["a"]]
    assert devices_of([claim(wanted())], [THREE], usage=used("a", admin_access=True)) == [["a"]]
    assert devices_of([claim(wanted(allocationMode="All"))], [THREE], usage=used("a")) is None


def test_a_class_selects_first() -> None:
    chosen = class_of("any", 'device.driver == "gpu.x"', 'device.attributes["gpu.x"].numa == 1')
    assert devices_of([claim(wanted())], [slice_of(*NUMA)], chosen) == [["b"]]


def test_the_number_of_devices_in_a_claim_is_bounded() -> None:
    slices = [slice_of(*(f"d{number}" for number in range(40)))]
    with pytest.raises(AllocationError, match="number of requested devices 33 exceeds the claim limit of 32"):
        devices_of([claim(wanted(count=33))], slices)
    found = devices_of([claim(wanted(count=30), first_of(wanted(count=3), wanted(count=2), name="r1"))], slices)
    assert found is not None and len(found[0]) == 32


@pytest.mark.parametrize(
    ("asked", "text"),
    [
        pytest.param(
            claim(wanted("device.nonesuch")),
            "claim ns/c: selector #0: CEL runtime error: no such key: nonesuch",
            id="run",
        ),
        pytest.param(claim(wanted("device.")), "claim ns/c: selector #0: CEL compile error: ", id="parse"),
        pytest.param(
            claim(wanted(deviceClassName="other")),
            "claim ns/c, request r0: could not retrieve device class other: "
            'deviceclass.resource.k8s.io "other" not found',
            id="class",
        ),
        pytest.param(
            claim(wanted(allocationMode="All"), **MATCH),
            "claim ns/c, request r0: cannot add device gpu.x/p/a because a claim constraint would not be satisfied",
            id="all and a constraint",
        ),
    ],
)
def test_errors_are_reported(asked: Any, text: str) -> None:
    with pytest.raises(AllocationError) as caught:
        devices_of([asked], [THREE])
    assert str(caught.value).startswith(text)


@pytest.mark.parametrize(
    ("slices", "state"),
    [
        pytest.param([slice_of("a", count=2)], "being updated", id="incomplete"),
        pytest.param([slice_of("a", count=2), slice_of("a", name="t", count=2)], "invalid", id="a name twice"),
    ],
)
def test_incomplete_pools(slices: Any, state: str) -> None:
    with pytest.raises(AllocationError, match=f"resource pool gpu.x/p is currently {state}"):
        devices_of([claim(wanted(allocationMode="All"))], slices)
    assert devices_of([claim(wanted())], [*slices, slice_of("z", pool="q")]) == [["z"]]
    if state == "invalid":
        with pytest.raises(NodeRefused, match="invalid resource pools were encountered"):
            devices_of([claim(wanted())], slices)
    else:
        assert devices_of([claim(wanted())], slices) is None


def part(name: str, memory: str) -> dict[str, Any]:
    return device(name, consumesCounters=[{"counterSet": "m", "counters": {"memory": {"value": memory}}}])


PARTS = [
    slice_of(name="a", count=2, sharedCounters=[{"name": "m", "counters": {"memory": {"value": "4Gi"}}}]),
    slice_of(part("whole", "4Gi"), part("one", "2Gi"), part("two", "2Gi"), name="b", count=2),
]


@pytest.mark.parametrize(
    ("count", "taken", "expected"),
    [
        pytest.param(1, [], [["whole"]], id="one"),
        pytest.param(2, [], [["one", "two"]], id="two of which one is not the whole"),
        pytest.param(3, [], None, id="more than there is"),
        pytest.param(1, ["two"], [["one"]], id="beside another"),
        pytest.param(1, ["whole"], None, id="nothing left"),
    ],
)
def test_partitions_share_counters(count: int, taken: list[str], expected: Any) -> None:
    assert devices_of([claim(wanted(count=count))], PARTS, usage=used(*taken)) == expected
