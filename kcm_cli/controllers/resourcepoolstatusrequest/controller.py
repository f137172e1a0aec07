"""resourcepoolstatusrequest-controller: answers ResourcePoolStatusRequests with the numbers of devices in a driver's
pools.

Each request is answered once, and deleted an hour later. A request for a pool with missing slices is dropped after
several retries until it changes, as upstream does.

upstream: pkg/controller/resourcepoolstatusrequest
"""

import logging

from kcm_cli.api.devices import (
    RESOURCE_CLAIMS,
    RESOURCE_POOL_STATUS_REQUESTS,
    RESOURCE_SLICES,
    ResourcePoolStatusRequest,
)
from kcm_cli.component.logs import V2
from kcm_cli.component.metrics import Registry, exponential_buckets
from kcm_cli.controllers.resourcepoolstatusrequest import plan
from kcm_cli.engine import writes
from kcm_cli.engine.context import ControllerContext
from kcm_cli.engine.controller import Controller, Periodic, Queue, Watch, only, starting
from kcm_cli.engine.passes import Cleaner, ObjectFailed
from kcm_cli.engine.worker import Failures

log = logging.getLogger(__name__)

_NAME = "resourcepoolstatusrequest_controller_request"
_LABELS = ("driver_name",)
RETRIES = 5
CLEANING_S = 600.0


class RequestMetrics:
    """The metrics resourcepoolstatusrequest_controller_*."""

    def __init__(self, registry: Registry) -> None:
        self._processed = registry.counter(
            f"{_NAME}s_processed_total", "Number of processed requests, by driver.", labels=_LABELS
        )
        self._errors = registry.counter(
            f"{_NAME}_processing_errors_total", "Number of failed writes of answers, by driver.", labels=_LABELS
        )
        self._duration = registry.histogram(
            f"{_NAME}_processing_duration_seconds",
            "Duration of the processing of requests, in seconds, by driver.",
            exponential_buckets(0.001, 2, 15),
            labels=_LABELS,
        )

    def processed(self, driver: str, took_s: float, *, failed: bool) -> None:
        self._processed.labels(driver).inc()
        if failed:
            self._errors.labels(driver).inc()
        self._duration.labels(driver).observe(took_s)


_FAILED = ObjectFailed("Failed to delete expired ResourcePoolStatusRequest", "request")


class PoolStatusController:
    """Keys are requests."""

    def __init__(self, context: ControllerContext) -> None:
        self._client, self._clock = context.client, context.clock
        self._metrics = RequestMetrics(context.metrics)
        self._requests = context.cache(RESOURCE_POOL_STATUS_REQUESTS)
        self._slices = context.cache(RESOURCE_SLICES)
        self._claims = context.cache(RESOURCE_CLAIMS)
        self.answered = Cleaner(context, RESOURCE_POOL_STATUS_REQUESTS, plan.is_over, plan.deleted, _FAILED)

    async def sync(self, key: str) -> None:
        request = self._requests.store.get(key)
        if request is None:
            return
        fields: dict[str, object] = {"request": key, "driver": request.spec.driver}
        log.log(V2, "Processing ResourcePoolStatusRequest", extra={"fields": fields})
        started, failed = self._clock.monotonic(), True
        answer = plan.plan(request, self._slices.store, self._claims.store, self._clock.now())
        if answer is None:
            return
        try:
            await writes.send(self._client, answer)
            failed = False
            fields = {"request": key, "poolCount": plan.pool_count(answer)}
            log.log(V2, "Successfully processed ResourcePoolStatusRequest", extra={"fields": fields})
        finally:
            self._metrics.processed(request.spec.driver, self._clock.monotonic() - started, failed=failed)


def is_open(request: ResourcePoolStatusRequest) -> bool:
    """Whether the request has no answer yet."""
    return request.status is None


CONTROLLER = Controller(
    PoolStatusController,
    Queue(
        "resourcepoolstatusrequest",
        Watch(RESOURCE_POOL_STATUS_REQUESTS, changed=only(is_open)),
        sync=PoolStatusController.sync,
        failures=Failures(
            retried="Error syncing request, requeuing",
            dropped="Dropping request out of the queue after max retries",
            key="request",
            retries="retries",
        ),
        retries=RETRIES,
        measured=False,  # nor does upstream
    ),
    reads=(RESOURCE_SLICES, RESOURCE_CLAIMS),
    passes=(Periodic(lambda controller: controller.answered.clean(), pause_s=lambda controller: CLEANING_S),),
    announces=starting("ResourcePoolStatusRequest controller"),
)
