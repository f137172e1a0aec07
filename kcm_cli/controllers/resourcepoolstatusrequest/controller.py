"""resourcepoolstatusrequest-controller: answers once how many devices the pools of a driver have and use.

Answered requests go after an hour. One for a pool whose slices are not all there is given up after some tries, as by
upstream, until something happens to it.

upstream: pkg/controller/resourcepoolstatusrequest
"""

from kcm_cli.api.devices import (
    RESOURCE_CLAIMS,
    RESOURCE_POOL_STATUS_REQUESTS,
    RESOURCE_SLICES,
    ResourcePoolStatusRequest,
)
from kcm_cli.controllers.resourcepoolstatusrequest import plan
from kcm_cli.controllers.resourcepoolstatusrequest.metrics import RequestMetrics
from kcm_cli.engine import writes
from kcm_cli.engine.cleaning import Cleaner
from kcm_cli.engine.context import ControllerContext, Runnable
from kcm_cli.engine.resync import Together
from kcm_cli.engine.retry import RetryPolicy
from kcm_cli.planning.actions import Update
from kcm_cli.runtime.workqueue import WorkQueue

RETRIES = 5
CLEANING_S = 600.0


def build(context: ControllerContext) -> Runnable:
    controller = PoolStatusController(context)
    worker = context.worker(
        controller.queue, controller.sync, count=1, waits_for=controller.informers, retry=RetryPolicy(RETRIES)
    )
    return Together((worker, Cleaner(context, RESOURCE_POOL_STATUS_REQUESTS, plan.is_over).every(CLEANING_S)))


class PoolStatusController:
    """Keys are requests."""

    def __init__(self, context: ControllerContext) -> None:
        self._client, self._clock = context.client, context.clock
        self._metrics = RequestMetrics(context.metrics)
        self.queue = WorkQueue("resourcepoolstatusrequest", context.clock)  # upstream's has no metrics either
        self._requests = context.informers.get(RESOURCE_POOL_STATUS_REQUESTS)
        self._slices = context.informers.get(RESOURCE_SLICES)
        self._claims = context.informers.get(RESOURCE_CLAIMS)
        self.informers = (self._requests, self._slices, self._claims)
        self._requests.listen(on_add=self._request, on_update=lambda old, new: self._request(new))

    async def sync(self, key: str) -> None:
        request = self._requests.store.get(key)
        if request is None or request.status is not None:
            return
        started, failed = self._clock.monotonic(), True
        answer = plan.status(request, self._slices.store, self._claims.store, self._clock.now())
        try:
            change = Update(RESOURCE_POOL_STATUS_REQUESTS, request, {("status",): answer}, subresource="status")
            await writes.update(self._client, change)
            failed = False
        finally:
            self._metrics.processed(request.spec.driver, self._clock.monotonic() - started, failed=failed)

    def _request(self, request: ResourcePoolStatusRequest) -> None:
        if request.status is None:
            self.queue.add(request.key)
