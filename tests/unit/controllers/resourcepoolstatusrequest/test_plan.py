"""The status of a request, and its retention."""

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from kcm_cli.api.devices import ResourceClaim, ResourcePoolStatusRequest, ResourceSlice
from kcm_cli.controllers.resourcepoolstatusrequest.plan import Incomplete, is_over, status

NOW = datetime(2026, 1, 2, tzinfo=UTC)


def request(**spec: Any) -> ResourcePoolStatusRequest:
    return msgspec.convert({"metadata": {"name": "r"}, "spec": {"driver": "d"} | spec}, ResourcePoolStatusRequest)


def slice_of(
    pool: str, *, count: int = 2, generation: int = 1, slices: int = 1, node: str | None = "n", driver: str = "d"
) -> ResourceSlice:
    devices = [{"name": f"d{number}"} for number in range(count)]
    place = {"name": pool, "generation": generation, "resourceSliceCount": slices}
    spec = {"driver": driver, "pool": place, "nodeName": node, "devices": devices}
    return msgspec.convert({"metadata": {"name": f"{pool}-{generation}-{count}"}, "spec": spec}, ResourceSlice)


def claim(*pools: str, driver: str = "d") -> ResourceClaim:
    results = [{"driver": driver, "pool": pool, "device": "x"} for pool in pools]
    return msgspec.convert({"status": {"allocation": {"devices": {"results": results}}}}, ResourceClaim)


def pool(name: str, total: int, used: int = 0, **more: Any) -> dict[str, Any]:
    counts = {"totalDevices": total, "allocatedDevices": used, "availableDevices": max(0, total - used)}
    fixed = {"driver": "d", "generation": 1, "resourceSliceCount": 1, "unavailableDevices": 0, "nodeName": "n"}
    return fixed | {"poolName": name} | counts | more


TWO_NODES = pool("a", 3, resourceSliceCount=2)
del TWO_NODES["nodeName"]


@pytest.mark.parametrize(
    ("spec", "slices", "claims", "pools", "count"),
    [
        pytest.param({}, [], [], None, 0, id="none"),
        pytest.param({}, [slice_of("b"), slice_of("a")], [], [pool("a", 2), pool("b", 2)], 2, id="in order"),
        pytest.param({}, [slice_of("a", driver="e")], [], None, 0, id="of another driver"),
        pytest.param({"poolName": "b"}, [slice_of("b"), slice_of("a")], [], [pool("b", 2)], 1, id="one pool"),
        pytest.param({"limit": 1}, [slice_of("b"), slice_of("a")], [], [pool("a", 2)], 2, id="the first ones"),
        pytest.param({}, [slice_of("a")], [claim("a", "b")], [pool("a", 2, 1)], 1, id="in use"),
        pytest.param({}, [slice_of("a")], [claim("a", driver="e")], [pool("a", 2)], 1, id="in use of another driver"),
        pytest.param({}, [slice_of("a", count=1)], [claim("a", "a")], [pool("a", 1, 2)], 1, id="more than there are"),
        pytest.param(
            {},
            [slice_of("a", count=5), slice_of("a", generation=2)],
            [],
            [pool("a", 2, generation=2)],
            1,
            id="the latest generation",
        ),
        pytest.param(
            {},
            [slice_of("a", slices=2), slice_of("a", count=1, slices=2, node="m")],
            [],
            [TWO_NODES],
            1,
            id="two nodes",
        ),
    ],
)
def test_the_status(spec: Any, slices: Any, claims: Any, pools: Any, count: int) -> None:
    found = status(request(**spec), slices, claims, NOW)
    assert found.get("pools") == pools
    assert found["poolCount"] == count
    (condition,) = found["conditions"]  # type: ignore[misc]
    assert condition == {  # type: ignore[has-type]
        "type": "Complete",
        "status": "True",
        "reason": "CalculationComplete",
        "message": f"Calculated status for {len(pools or ())} pools",
        "lastTransitionTime": "2026-01-02T00:00:00Z",
    }


def test_an_incomplete_pool() -> None:
    slices = [slice_of("a", slices=3)]
    with pytest.raises(Incomplete, match="pool d/a is incomplete: observed 1/3 slices at generation 1"):
        status(request(), slices, [], NOW)


@pytest.mark.parametrize(
    ("found", "age", "expected"),
    [
        pytest.param(None, timedelta(hours=24), False, id="pending"),
        pytest.param(None, timedelta(hours=25), True, id="pending for long"),
        pytest.param({"conditions": []}, timedelta(minutes=61), True, id="answered without a condition"),
        pytest.param(
            {"conditions": [{"type": "Complete", "lastTransitionTime": "2026-01-01T23:00:00Z"}]},
            timedelta(hours=30),
            False,
            id="answered lately",
        ),
        pytest.param(
            {"conditions": [{"type": "Failed", "lastTransitionTime": "2026-01-01T22:59:59Z"}]},
            timedelta(hours=2),
            True,
            id="failed a while ago",
        ),
    ],
)
def test_expiry(found: Any, age: timedelta, expected: bool) -> None:
    created = (NOW - age).strftime("%Y-%m-%dT%H:%M:%SZ")
    doc = {"metadata": {"name": "r", "creationTimestamp": created}, "status": found}
    assert is_over(msgspec.convert(doc, ResourcePoolStatusRequest), NOW) is expected
