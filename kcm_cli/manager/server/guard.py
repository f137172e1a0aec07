"""ASGI middleware: authentication and authorization of requests before the handlers.

upstream: staging/src/k8s.io/controller-manager/app/serve.go#BuildHandlerChain, apiserver/pkg/endpoints/filters
"""

import logging

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from kcm_cli.component.clock import Clock
from kcm_cli.manager.server import responses
from kcm_cli.manager.server.authentication import Authenticator, Peer
from kcm_cli.manager.server.authorization import Authorizer
from kcm_cli.manager.server.metrics import AuthMetrics, compressed
from kcm_cli.manager.server.review import ReviewError
from kcm_cli.manager.server.user import AuthenticationError, User

log = logging.getLogger(__name__)

PEER = "peer"
"""Key of the connection's certificate in the scope's state."""


class Guard:
    """Passes a request on, or answers with 401, 403 or 500."""

    def __init__(
        self, app: ASGIApp, authenticator: Authenticator, authorizer: Authorizer, clock: Clock, metrics: AuthMetrics
    ) -> None:
        self._app = app
        self._authenticator = authenticator
        self._authorizer = authorizer
        self._clock = clock
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope)
        refusal = await self._refusal(request)
        await (refusal or self._app)(scope, receive, send)

    async def _refusal(self, request: Request) -> Response | None:
        user = await self._authenticate(request)
        if user is None:
            return responses.unauthorized(request)
        return await self._authorize(request, user)

    async def _authenticate(self, request: Request) -> User | None:
        start, outcome = self._clock.monotonic(), "error"
        peer = getattr(request.state, PEER, None)
        try:
            user = await self._authenticator.user(request.headers, peer if isinstance(peer, Peer) else None)
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
        verb, path = request.method.lower(), responses.path_of(request)
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
