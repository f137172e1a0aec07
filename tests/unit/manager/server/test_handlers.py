"""What all handlers have in common with upstream's."""

import asyncio
import gzip

import pytest
from starlette.requests import Request

from kcm_cli.component.metrics import Registry
from kcm_cli.manager.server import handlers, responses


def headers(handler: object, path: str) -> dict[str, str]:
    scope = {"type": "http", "method": "GET", "path": path, "query_string": b"", "headers": [], "server": ("h", 1)}
    response = asyncio.run(handler(Request(scope)))  # type: ignore[operator]
    return dict(response.headers)


def test_configz_forbids_content_sniffing() -> None:
    found = headers(handlers.configz({"a": 1}), "/configz")
    assert (found["content-type"], found["x-content-type-options"]) == ("application/json", "nosniff")


def test_debug_pages_of_controllers_forbid_content_sniffing() -> None:
    async def ask(name: str, path: str, query: object) -> tuple[str, bytes]:
        return f"text/{name}", path.encode()

    found = headers(handlers.controllers(ask), "/debug/controllers/gc/graph")
    assert (found["content-type"], found["x-content-type-options"]) == ("text/gc", "nosniff")


@pytest.mark.parametrize(
    ("accepted", "answer"),
    [
        ("gzip", True),
        ("deflate, gzip;q=0.5", True),
        ("GZIP; q=1", True),
        ("", False),
        ("identity", False),
        ("gzip;q=0", False),
        ("gzip; q=0.000, identity", False),
        pytest.param(f"{'br,' * 1000}gzip", True, id="long"),
        pytest.param(f"{'br,' * 1400}gzip", False, id="too long"),
    ],
)
def test_metrics_are_compressed_if_accepted(accepted: str, answer: bool) -> None:
    registry = Registry()
    registry.counter("a_total", "A.").labels().inc()
    scope = {"type": "http", "method": "GET", "path": "/metrics", "query_string": b"", "server": ("h", 1)}
    scope["headers"] = [(b"accept-encoding", accepted.encode())]
    response = asyncio.run(handlers.metrics(registry, 7.5)(Request(scope)))  # type: ignore[arg-type]
    assert response.headers["process-start-time-unix"] == "7"
    assert ("content-encoding" in response.headers) is answer
    body = bytes(response.body)
    assert b"\na_total 1\n" in (gzip.decompress(body) if answer else body)


@pytest.mark.parametrize(("query", "pretty"), [(b"pretty=1&pretty=0", True), (b"pretty=0&pretty=1", False)])
def test_the_first_value_of_a_parameter_counts(query: bytes, pretty: bool) -> None:
    scope = {"type": "http", "method": "GET", "path": "/", "query_string": query, "headers": [], "server": ("h", 1)}
    assert responses.is_pretty(Request(scope)) is pretty
