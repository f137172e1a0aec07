"""What all handlers have in common with upstream's."""

import asyncio
import gzip

import pytest

from kcm_cli.component.metrics import Registry
from kcm_cli.manager.server import handlers, responses
from kcm_cli.manager.server.request import Pairs, Request


def headers(handler: object, path: str) -> dict[str, str]:
    response = asyncio.run(handler(Request("GET", path, path)))  # type: ignore[operator]
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
    ],
)
def test_metrics_are_compressed_if_accepted(accepted: str, answer: bool) -> None:
    registry = Registry()
    registry.counter("a_total", "A.").labels().inc()
    request = Request("GET", "/metrics", "/metrics", headers=Pairs((("accept-encoding", accepted),)))
    response = asyncio.run(handlers.metrics(registry, 7.5)(request))  # type: ignore[arg-type]
    assert response.headers["process-start-time-unix"] == "7"
    assert ("content-encoding" in response.headers) is answer
    body = bytes(response.body)
    assert b"\na_total 1\n" in (gzip.decompress(body) if answer else body)


@pytest.mark.parametrize(("values", "pretty"), [("10", True), ("01", False)])
def test_the_first_value_of_a_parameter_counts(values: str, pretty: bool) -> None:
    query = Pairs(("pretty", value) for value in values)
    assert responses.is_pretty(Request("GET", "/", "/", query)) is pretty
