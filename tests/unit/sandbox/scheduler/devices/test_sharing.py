"""Devices that several claims share."""

from typing import Any

import msgspec
import pytest

from kcm_cli.machinery import quantity
from kcm_cli.sandbox.scheduler.devices import capacity
from kcm_cli.sandbox.scheduler.devices.usage import Usage
from kcm_cli.sandbox.scheduler.devices.views import Device, Result, Wanted
from tests.unit.sandbox.scheduler.devices.making import DRIVER, allocated, claim, device, devices_of, slice_of, wanted

RANGE = {"default": "1Gi", "validRange": {"min": "1Gi", "step": "1Gi", "max": "6Gi"}}
VALUES = {"default": "1Gi", "validValues": ["1Gi", "4Gi"]}


def asking(amount: str | None) -> dict[str, Any]:
    return {} if amount is None else {"capacity": {"requests": {"memory": amount}}}


def shared(policy: Any = RANGE) -> dict[str, Any]:
    memory = {"value": "10Gi"} | ({"requestPolicy": policy} if policy else {})
    return device("s", allowMultipleAllocations=True, capacity={"memory": memory})


@pytest.mark.parametrize(
    ("policy", "amount", "taken", "fits"),
    [
        pytest.param(None, None, "10Gi", True, id="all of it"),
        pytest.param(None, "3Gi", "3Gi", True, id="so much"),
        pytest.param(None, "11Gi", "11Gi", False, id="more than there is"),
        pytest.param(RANGE, None, "1Gi", True, id="the default"),
        pytest.param(RANGE, "100Mi", "1Gi", True, id="the least"),
        pytest.param(RANGE, "1500Mi", "2Gi", True, id="rounded up"),
        pytest.param(RANGE, "7Gi", "7Gi", False, id="beyond the range"),
        pytest.param(VALUES, "2Gi", "4Gi", True, id="the next value"),
        pytest.param(VALUES, "5Gi", "5Gi", False, id="beyond all values"),
    ],
)
def test_how_much_is_taken(policy: Any, amount: str | None, taken: str, fits: bool) -> None:
    asked, found = msgspec.convert(asking(amount), Wanted), msgspec.convert(shared(policy), Device)
    assert capacity.consumed(asked, found) == {"memory": quantity.parse(taken)}
    assert capacity.fits(asked, found, {}) is fits


def test_a_capacity_that_the_device_does_not_have() -> None:
    asked = msgspec.convert({"capacity": {"requests": {"cores": "1"}}}, Wanted)
    assert not capacity.fits(asked, msgspec.convert(shared(), Device), {})


def test_several_claims_get_shares_until_nothing_is_left() -> None:
    claims = [claim(wanted(**asking("4Gi")), name=name) for name in "abc"]
    slices = [slice_of(shared())]
    assert devices_of(claims[:2], slices) == [["s"], ["s"]]
    assert devices_of(claims, slices) is None
    found = allocated(claims[:2], slices)
    assert found is not None
    results = [one["devices"]["results"][0] for one in found]
    assert [one["consumedCapacity"] for one in results] == [{"memory": "4Gi"}] * 2
    assert results[0]["shareID"] != results[1]["shareID"]
    usage = Usage()
    usage.hold("a", [msgspec.convert(results[0], Result)])
    assert devices_of(claims[1:2], slices, usage=usage) == [["s"]]
    usage.hold("b", [msgspec.convert(results[1], Result)])
    assert devices_of(claims[2:], slices, usage=usage) is None
    assert usage.is_allocated((DRIVER, "p", "s")) and not usage.is_taken((DRIVER, "p", "s"))
    usage.release("a")
    assert devices_of(claims[2:], slices, usage=usage) == [["s"]]
    usage.release("b")
    assert usage.capacity == {} and not usage.is_allocated((DRIVER, "p", "s"))


def test_counters_of_a_shared_device_that_was_tried_are_not_had_again() -> None:
    uses = [{"counterSet": "m", "counters": {"memory": {"value": "1"}}}]
    devices = [shared(None) | {"consumesCounters": uses}, device("t", consumesCounters=uses)]
    claims = [
        claim(wanted(), wanted("device.allowMultipleAllocations"))
    ]  # the first takes all of s, then the search backtracks to t

    def found(units: str) -> list[list[str]] | None:
        counters = [{"name": "m", "counters": {"memory": {"value": units}}}]
        return devices_of(claims, [slice_of(name="a", count=2, sharedCounters=counters), slice_of(*devices, count=2)])

    assert found("3") == [["t", "s"]]
    assert found("2") is None


def test_counters_of_a_tainted_device_count_as_used() -> None:
    def partition(name: str, units: str, **fields: Any) -> dict[str, Any]:
        return device(name, consumesCounters=[{"counterSet": "m", "counters": {"memory": {"value": units}}}], **fields)

    tainted = partition("a", "3", taints=[{"key": "k", "effect": "NoSchedule"}])
    counters = [{"name": "m", "counters": {"memory": {"value": "4"}}}]
    slices = [slice_of(name="a", count=2, sharedCounters=counters)]
    assert devices_of([claim(wanted())], [*slices, slice_of(tainted, partition("b", "1"), count=2)]) == [["b"]]
    assert devices_of([claim(wanted())], [*slices, slice_of(tainted, partition("b", "2"), count=2)]) is None


def test_counters_of_a_shared_device_without_capacities_are_taken_once() -> None:
    """As upstream: a device that has been tried counts as shared, so its counters are not consumed again."""
    uses = [{"counterSet": "m", "counters": {"memory": {"value": "1"}}}]
    tried = device("s", allowMultipleAllocations=True, consumesCounters=uses, attributes={"x": 1})
    others = [device(name, consumesCounters=uses, attributes={"x": 2}) for name in "tu"]
    slices = [
        slice_of(name="a", count=2, sharedCounters=[{"name": "m", "counters": {"memory": {"value": "5"}}}]),
        slice_of(tried, *others, count=2),
    ]
    # The devices of the first request and of the last one must match: the search backtracks from s to t.
    claims = [
        claim(
            wanted(),
            wanted("device.allowMultipleAllocations"),
            wanted("!device.allowMultipleAllocations"),
            constraints=[{"requests": ["r0", "r2"], "matchAttribute": f"{DRIVER}/x"}],
        )
    ]
    assert devices_of(claims, slices) == [["t", "s", "u"]]
