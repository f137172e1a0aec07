"""/debug/causes: the ring as JSON."""

import asyncio
import json

import pytest
from starlette.requests import Request
from starlette.responses import Response

from kcm_cli.component.clock import LoopClock
from kcm_cli.manager.server.causes import page
from kcm_cli.runtime.cause_ring import CauseRing, Wrote


def ask(query: str) -> Response:
    async def main() -> Response:
        ring = CauseRing(LoopClock())
        for at, name in ((ring.now() - 3600, "old"), (ring.now(), "new")):
            ring.put(Wrote(0, at, 0.0, "c", "create", "", "pods", "Pod", f"n/{name}", 201))
        scope = {"type": "http", "method": "GET", "path": "/", "query_string": query.encode(), "headers": []}
        return await page(ring, asyncio.get_running_loop())(Request(scope))

    return asyncio.run(main())


@pytest.mark.parametrize(
    ("query", "keys"),
    [
        ("", ["n/old", "n/new"]),
        ("since=10m", ["n/new"]),
        ("kind=pod&name=old&namespace=n", ["n/old"]),
        ("after=1", ["n/new"]),
        ("kind=Secret", []),
    ],
)
def test_entries(query: str, keys: list[str]) -> None:
    answer = json.loads(bytes(ask(query).body))
    assert [entry["key"] for entry in answer["entries"]] == keys and answer["total"] == 2


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("since=yesterday", "since: not a duration such as 10m"),
        ("after=-1", "after: not a number"),
        ("after=" + "9" * 5000, "after: not a number"),
    ],
)
def test_mistakes(query: str, text: str) -> None:
    response = ask(query)
    assert (response.status_code, bytes(response.body).decode().strip()) == (400, text)
