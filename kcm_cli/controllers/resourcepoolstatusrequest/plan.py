"""Counts the devices in a driver's pools, and those in use.

upstream: pkg/controller/resourcepoolstatusrequest/controller.go#calculatePoolStatus
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

from kcm_cli.api.devices import RESOURCE_POOL_STATUS_REQUESTS, ResourceClaim, ResourcePoolStatusRequest, ResourceSlice
from kcm_cli.machinery.codec import Doc
from kcm_cli.machinery.documents import nested_list
from kcm_cli.machinery.errors import SyncError
from kcm_cli.machinery.times import format_time, parse_time
from kcm_cli.planning.actions import Remark, Update

DEFAULT_LIMIT = 100
ANSWERED = timedelta(hours=1)
PENDING = timedelta(hours=24)
_OVER = ("Complete", "Failed")


class Incomplete(SyncError):
    """A driver has not published all slices of a pool yet."""


def plan(
    request: ResourcePoolStatusRequest, slices: Iterable[ResourceSlice], claims: Iterable[ResourceClaim], now: datetime
) -> Update | None:
    """The answer to an open request, or None. Raises Incomplete."""
    if request.status is not None:
        return None
    answer = status(request, slices, claims, now)
    return Update(
        RESOURCE_POOL_STATUS_REQUESTS, request, {("status",): answer}, subresource="status", reason="answered"
    )


def pool_count(answer: Update) -> int:
    """The number of pools in an answer."""
    return len(nested_list({"status": answer.changes[("status",)]}, "status", "pools"))


def deleted(request: ResourcePoolStatusRequest, now: datetime) -> Remark:
    """What is logged about a deleted request."""
    return Remark("Deleted expired ResourcePoolStatusRequest", {"request": request.name})


def status(
    request: ResourcePoolStatusRequest, slices: Iterable[ResourceSlice], claims: Iterable[ResourceClaim], now: datetime
) -> Doc:
    """The status with the answer. Raises Incomplete if one of its pools is."""
    pools: defaultdict[str, list[ResourceSlice]] = defaultdict(list)
    for one in slices:
        if _is_meant(request, one):
            pools[one.spec.pool.name].append(one)
    used = _used(claims, request.spec.driver)
    limit = request.spec.limit if request.spec.limit is not None else DEFAULT_LIMIT
    shown = [_pool(name, pools[name], used[name]) for name in sorted(pools)[:limit]]
    condition = {
        "type": "Complete",
        "status": "True",
        "lastTransitionTime": format_time(now),
        "reason": "CalculationComplete",
        "message": f"Calculated status for {len(shown)} pools",
    }
    answer: Doc = {"poolCount": len(pools), "conditions": [condition]}
    if shown:
        answer["pools"] = shown
    return answer


def _is_meant(request: ResourcePoolStatusRequest, one: ResourceSlice) -> bool:
    wanted = request.spec
    return one.spec.driver == wanted.driver and (not wanted.pool_name or one.spec.pool.name == wanted.pool_name)


def _used(claims: Iterable[ResourceClaim], driver: str) -> Counter[str]:
    """The number of devices in use, by pool."""
    found: Counter[str] = Counter()
    for claim in claims:
        if claim.status.allocation is not None:
            found.update(one.pool for one in claim.status.allocation.devices.results if one.driver == driver)
    return found


def _pool(name: str, slices: Sequence[ResourceSlice], used: int) -> Doc:
    """The numbers for the latest generation of a pool. No device counts as unavailable, as upstream."""
    generation = max(one.spec.pool.generation for one in slices)
    latest = [one.spec for one in slices if one.spec.pool.generation == generation]
    driver, expected = latest[0].driver, latest[0].pool.resource_slice_count
    if len(latest) < expected:
        seen = f"observed {len(latest)}/{expected} slices at generation {generation}"
        raise Incomplete(f"pool {driver}/{name} is incomplete: {seen}")
    total = sum(len(one.devices) for one in latest)
    pool: Doc = {
        "driver": driver,
        "poolName": name,
        "generation": generation,
        "resourceSliceCount": len(latest),
        "totalDevices": total,
        "allocatedDevices": used,
        "availableDevices": max(0, total - used),
        "unavailableDevices": 0,
    }
    nodes = {one.node_name or "" for one in latest}
    if len(nodes) == 1 and "" not in nodes:
        pool["nodeName"] = nodes.pop()
    return pool


def is_over(request: ResourcePoolStatusRequest, now: datetime) -> bool:
    """Whether a request can be deleted: some time after its answer or, without one, after a longer time."""
    since, kept = request.metadata.creation_timestamp, PENDING
    if request.status is not None:
        kept = ANSWERED
        last = next((one for one in request.status.conditions if one.type in _OVER), None)
        since = last.last_transition_time if last is not None else since
    return since is not None and now - parse_time(since) > kept
