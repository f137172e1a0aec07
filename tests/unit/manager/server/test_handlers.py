"""What all handlers have in common with the original's."""

import asyncio

from starlette.requests import Request

from kcm_cli.manager.server import handlers


def headers(handler: object, path: str) -> dict[str, str]:
    scope = {"type": "http", "method": "GET", "path": path, "query_string": b"", "headers": [], "server": ("h", 1)}
    response = asyncio.run(handler(Request(scope)))  # type: ignore[operator]
    return dict(response.headers)


def test_nobody_guesses_the_type_of_a_configuration() -> None:
    found = headers(handlers.configz({"a": 1}), "/configz")
    assert (found["content-type"], found["x-content-type-options"]) == ("application/json", "nosniff")


def test_nobody_guesses_the_type_of_what_a_controller_shows() -> None:
    async def ask(name: str, path: str, query: object) -> tuple[str, bytes]:
        return f"text/{name}", path.encode()

    found = headers(handlers.controllers(ask), "/debug/controllers/gc/graph")
    assert (found["content-type"], found["x-content-type-options"]) == ("text/gc", "nosniff")
