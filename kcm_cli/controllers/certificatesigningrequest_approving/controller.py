"""certificatesigningrequest-approving-controller: approves client certificates of kubelets, if the requester may have
them.

upstream: pkg/controller/certificates/approver
"""

import logging

from kcm_cli.api.authorization import SUBJECT_ACCESS_REVIEWS
from kcm_cli.api.certificates import CERTIFICATE_SIGNING_REQUESTS
from kcm_cli.controllers.certificatesigningrequest_approving import plan
from kcm_cli.engine import writes
from kcm_cli.engine.context import ControllerContext
from kcm_cli.engine.controller import Controller, Queue, Watch, own_key, starting
from kcm_cli.engine.worker import Logged, unhandled
from kcm_cli.machinery.errors import SyncError
from kcm_cli.planning import certificate_requests
from kcm_cli.runtime.workqueue import RetryLimiter

log = logging.getLogger(__name__)

WORKERS = 5
RETRY_S = 0.2


class NotAllowed(SyncError):
    """The requester does not have the permission yet. Roles may change, so the request is retried."""


class ApprovingController:
    """Keys are names of requests."""

    def __init__(self, context: ControllerContext) -> None:
        self._client = context.client
        self._requests = context.cache(CERTIFICATE_SIGNING_REQUESTS).store

    async def sync(self, key: str) -> None:
        request = self._requests.get(key)
        if request is None:
            return
        permissions = plan.plan(request)
        for permission in permissions:
            answer = await self._client.create(SUBJECT_ACCESS_REVIEWS, "", plan.review(request, permission))
            if answer.status.allowed:
                update = certificate_requests.with_condition(request, plan.approval(permission), "approval")
                await writes.send(self._client, update)
                return
        if permissions:
            tried = ", ".join(permission.subresource for permission in permissions)
            error = NotAllowed(f"request {key} was recognized as {tried}, but its user is not allowed that")
            log.debug("Sync certificate request failed", extra={"fields": {"csr": key, "err": str(error)}})
            raise Logged(error)


CONTROLLER = Controller(
    ApprovingController,
    Queue(
        "certificate",
        Watch(CERTIFICATE_SIGNING_REQUESTS, changed=own_key),
        sync=ApprovingController.sync,
        failures=unhandled("Sync {key} failed with : {error}"),
        workers=WORKERS,
        limiter=lambda context: RetryLimiter(base_s=RETRY_S),
    ),
    announces=starting("certificate controller", name="csrapproving"),
)
