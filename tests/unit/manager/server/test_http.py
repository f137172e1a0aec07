"""Requests as the application of port 10257 gets them."""

import pytest

from kcm_cli.component.auth_config import AuthorizationConfig
from kcm_cli.component.clock import LoopClock
from kcm_cli.component.health import SliMetrics
from kcm_cli.component.metrics import Registry
from kcm_cli.manager.server import handlers
from kcm_cli.manager.server.authentication import Authenticator
from kcm_cli.manager.server.authorization import Authorizer
from kcm_cli.manager.server.http import _called, _scope, application
from kcm_cli.manager.server.metrics import AuthMetrics
from kcm_cli.manager.server.mux import Mux
from kcm_cli.manager.server.profiling import Profiling
from kcm_cli.manager.server.trust import Trust, TrustState
from kcm_cli.rest.transport import Response
from kcm_cli.serving.connection import Received

TEXT, HTML = "text/plain; charset=utf-8", "text/html; charset=utf-8"


@pytest.mark.parametrize(
    ("target", "path", "query"),
    [
        (b"/healthz", "/healthz", b""),
        (b"/healthz?a=b?c", "/healthz", b"a=b?c"),
        (b"/a%2fb", "/a/b", b""),
        (b"/x?of=http://b/c", "/x", b"of=http://b/c"),
        (b"//a/b", "//a/b", b""),
        (b"http://a/healthz?verbose", "/healthz", b"verbose"),
        (b"http://a:1", "/", b""),
        (b"http://a?b", "/", b"b"),
        (b"http://[/healthz", "/healthz", b""),
        (b"http://[::1/healthz", "/healthz", b""),
        (b"http://a]b/healthz", "/healthz", b""),
        (b"*", "*", b""),
        (b"/a#b", "/a#b", b""),
        (b"/a%3fb%23c", "/a?b#c", b""),
        (b"a:443", "/a:443", b""),
        (b"a" * 100_000, f"/{'a' * 100_000}", b""),
    ],
)
def test_each_target_has_a_path_and_a_query(target: bytes, path: str, query: bytes) -> None:
    scope = _scope(Received("GET", target, "1.1", [], b"", True), {})
    assert (scope["path"], scope["query_string"]) == (path, query)


def test_the_target_of_connect_is_no_path() -> None:
    assert _scope(Received("CONNECT", b"a:443", "1.1", [], b"", True), {})["path"] == ""


async def answer(method: str, target: bytes) -> Response:
    """The answer of some pages that everyone may use."""
    clock, registry, mux = LoopClock(), Registry(), Mux()
    metrics, slis = AuthMetrics.register(registry), Registry()
    Profiling(tuple, lambda: 0.0).install(mux)
    mux.handle("/metrics/slis", handlers.slis(slis, SliMetrics(slis), 0.0))
    everyone = Authorizer(AuthorizationConfig(always_allow_paths=("*",)), None, clock)
    app = application(mux, Authenticator(Trust(TrustState()), None, clock, metrics), everyone, clock, metrics)
    return await _called(app, _scope(Received(method, target, "1.1", [], b"", True), {}), b"")


@pytest.mark.parametrize(
    ("method", "target", "status", "headers", "body"),
    [
        ("GET", b"*", 404, {"content-type": TEXT, "x-content-type-options": "nosniff"}, b"404 page not found\n"),
        ("CONNECT", b"a:1", 404, {"content-type": TEXT, "x-content-type-options": "nosniff"}, b"404 page not found\n"),
        ("DELETE", b"/metrics/slis", 200, {"content-type": TEXT}, b"metrics reset\n"),
        (
            *("GET", b"/debug/pprof/x", 404),
            *({"content-type": TEXT, "x-content-type-options": "nosniff", "x-go-pprof": "1"}, b"Unknown profile\n"),
        ),
        (
            *("GET", b"/debug/pprof", 302, {"content-type": HTML, "location": "/debug/pprof/"}),
            b'<a href="/debug/pprof/">Found</a>.\n\n',
        ),
        ("POST", b"/debug/pprof", 302, {"location": "/debug/pprof/"}, b""),
    ],
)
async def test_answers_are_those_of_go(
    method: str, target: bytes, status: int, headers: dict[str, str], body: bytes
) -> None:
    found = await answer(method, target)
    assert (found.status, dict(found.headers), found.body) == (status, headers, body)
