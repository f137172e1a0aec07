"""certificatesigningrequest-cleaner-controller: removes requests for certificates that nobody needs any more.

upstream: pkg/controller/certificates/cleaner
"""

import logging

from kcm_cli.api.certificates import CERTIFICATE_SIGNING_REQUESTS
from kcm_cli.controllers.certificatesigningrequest_cleaner import plan
from kcm_cli.engine.context import ControllerContext, Runnable
from kcm_cli.engine.resync import Loop
from kcm_cli.rest.errors import ApiError, Conflict, NotFound
from kcm_cli.rest.transport import TransportError

log = logging.getLogger(__name__)

PERIOD_S = 3600.0


def build(context: ControllerContext) -> Runnable:
    cleaner = Cleaner(context)
    return Loop(
        name=context.name,
        clock=context.clock,
        step=cleaner.clean,
        pause_s=lambda: PERIOD_S,
        waits_for=(cleaner.requests,),
    )


class Cleaner:
    """Looks at all requests once an hour."""

    def __init__(self, context: ControllerContext) -> None:
        self._client, self._clock = context.client, context.clock
        self.requests = context.informers.get(CERTIFICATE_SIGNING_REQUESTS)

    async def clean(self) -> None:
        """One pass; what cannot be deleted is left to the next one."""
        now = self._clock.now()
        for request in [request for request in self.requests.store if plan.is_over(request, now)]:
            try:
                await self._client.delete(CERTIFICATE_SIGNING_REQUESTS, "", request.name, uid=request.uid)
            except (NotFound, Conflict):
                continue  # gone, or another one of this name
            except (ApiError, TransportError) as error:
                fields = {"csr": request.name, "err": str(error)}
                log.error("Could not delete a request for a certificate", extra={"fields": fields})
