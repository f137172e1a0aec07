"""Authentication and authorization of requests before the handlers.

upstream: staging/src/k8s.io/controller-manager/app/serve.go#BuildHandlerChain, apiserver/pkg/endpoints/filters
"""

import logging

from kcm_cli.component.clock import Clock
from kcm_cli.manager.server import responses
from kcm_cli.manager.server.authentication import Authenticator
from kcm_cli.manager.server.authorization import Authorizer
from kcm_cli.manager.server.metrics import AuthMetrics, compressed
from kcm_cli.manager.server.mux import Handler
from kcm_cli.manager.server.request import Request
from kcm_cli.manager.server.review import ReviewError
from kcm_cli.manager.server.user import AuthenticationError, User
from kcm_cli.rest.transport import Response

log = logging.getLogger(__name__)


class Guard:
    """Passes a request on, or answers with 401, 403 or 500."""

    def __init__(
        self, handler: Handler, authenticator: Authenticator, authorizer: Authorizer, clock: Clock, metrics: AuthMetrics
    ) -> None:
        self._handler = handler
        self._authenticator = authenticator
        self._authorizer = authorizer
        self._clock = clock
        self._metrics = metrics

    async def __call__(self, request: Request) -> Response:
        return await self._refusal(request) or await self._handler(request)

    async def _refusal(self, request: Request) -> Response | None:
        user = await self._authenticate(request)
        if user is None:
            return responses.unauthorized(request)
        return await self._authorize(request, user)

    async def _authenticate(self, request: Request) -> User | None:
        start, outcome = self._clock.monotonic(), "error"
        try:
            user = await self._authenticator.user(request.headers, request.peer)
            outcome = "success"
        except AuthenticationError as error:
            log.error("Unable to authenticate the request", extra={"fields": {"err": str(error)}})
            return None
        finally:
            self._metrics.attempts.labels(outcome).inc()
            self._metrics.duration.labels(outcome).observe(self._clock.monotonic() - start)
        self._metrics.users.labels(compressed(user.name)).inc()
        return user

    async def _authorize(self, request: Request, user: User) -> Response | None:
        start, outcome = self._clock.monotonic(), "error"
        verb, path = request.method.lower(), request.path
        try:
            decision = await self._authorizer.decide(user, verb, path)
            outcome = "allowed" if decision.allowed and not decision.denied else "no-opinion"
            outcome = "denied" if decision.denied else outcome
        except ReviewError as error:
            return responses.internal_error(request, str(error))
        finally:
            self._metrics.authorizations.labels(outcome).inc()
            self._metrics.authorization_duration.labels(outcome).observe(self._clock.monotonic() - start)
        if outcome == "allowed":
            return None
        fields = {"URI": path, "reason": decision.reason}
        log.debug("Forbidden", extra={"fields": fields})
        return responses.forbidden(request, user.name, verb, path, decision.reason)
