"""certificatesigningrequest-approving-controller: approves the client certificates of kubelets that may have them.

upstream: pkg/controller/certificates/approver
"""

from kcm_cli.api.authorization import SUBJECT_ACCESS_REVIEWS
from kcm_cli.api.certificates import CERTIFICATE_SIGNING_REQUESTS, CertificateSigningRequest
from kcm_cli.controllers.certificatesigningrequest_approving import plan
from kcm_cli.engine import writes
from kcm_cli.engine.context import ControllerContext, Runnable
from kcm_cli.planning import certificate_requests
from kcm_cli.runtime.workqueue import RetryLimiter

WORKERS = 5
RETRY_S = 0.2


def build(context: ControllerContext) -> Runnable:
    controller = ApprovingController(context)
    return context.worker(controller.queue, controller.sync, count=WORKERS, waits_for=(controller.requests,))


class NotAllowed(Exception):
    """Who asked may not have the certificate, yet: roles may change, so it is tried again."""

    reason = "NotAllowed"


class ApprovingController:
    """Keys are names of requests."""

    def __init__(self, context: ControllerContext) -> None:
        self._client = context.client
        self.queue = context.queue("certificate", RetryLimiter(base_s=RETRY_S))
        self.requests = context.informers.get(CERTIFICATE_SIGNING_REQUESTS)
        self.requests.listen(on_add=self._changed, on_update=lambda old, new: self._changed(new))

    async def sync(self, key: str) -> None:
        request = self.requests.store.get(key)
        if request is None or not plan.is_open(request):
            return
        ways = plan.ways(request, certificate_requests.parse(request))
        for way in ways:
            answer = await self._client.create(SUBJECT_ACCESS_REVIEWS, "", plan.review(request, way))
            if answer.status.allowed:
                update = certificate_requests.with_condition(request, plan.approval(way), "approval")
                await writes.update(self._client, update)
                return
        if ways:
            tried = ", ".join(way.permission for way in ways)
            raise NotAllowed(f"request {key} was recognized as {tried}, but its user is not allowed that")

    def _changed(self, request: CertificateSigningRequest) -> None:
        self.queue.add(request.name)
