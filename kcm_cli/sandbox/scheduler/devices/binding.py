"""Binding conditions: devices that their drivers have to prepare before a pod can be bound.

upstream: pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go#isClaimReadyForBinding
"""

from collections.abc import Iterable
from datetime import datetime, timedelta

from kcm_cli.machinery.quoting import quote
from kcm_cli.machinery.times import parse_time
from kcm_cli.planning.conditions import find, is_true
from kcm_cli.sandbox.scheduler.devices.views import Claim, DeviceStatus, Result

TIMEOUT = timedelta(minutes=10)
_TIMED_OUT = "device binding timeout"


class NotPrepared(Exception):
    """A device cannot be prepared, or was not prepared in time."""


def has_conditions(results: Iterable[Result]) -> bool:
    """Whether a device has to be prepared."""
    return any(result.binding_conditions for result in results)


def is_prepared(claim: Claim, now: datetime) -> bool:
    """Whether the devices of a claim are prepared. Raises NotPrepared."""
    allocation = claim.status.allocation
    if allocation is None:
        return False
    results = [result for result in allocation.devices.results if result.binding_conditions]
    if all(_is_prepared(claim, result) for result in results):
        return True
    since = allocation.allocation_timestamp
    if since is not None and parse_time(since) + TIMEOUT < now:
        raise NotPrepared(f"{_TIMED_OUT}: claim={claim.name}")
    return False


def _is_prepared(claim: Claim, result: Result) -> bool:
    status = _status_of(claim, result)
    if status is None:
        return False
    for type_ in result.binding_failure_conditions:
        found = find(status.conditions, type_)
        if found is not None and found.status == "True":
            what = f"reason={found.reason}, message={quote(found.message)}"
            raise NotPrepared(f"device binding failed: claim={claim.name}, {what}")
    return all(is_true(status.conditions, type_) for type_ in result.binding_conditions)


def _status_of(claim: Claim, result: Result) -> DeviceStatus | None:
    devices = claim.status.devices
    return next((device for device in devices if (device.driver, device.pool, device.device) == result.id), None)
