import pytest
from starlette.requests import Request
from starlette.responses import Response

from kcm_cli.manager.server.mux import Mux


async def one(request: Request) -> Response:
    return Response("one")


async def two(request: Request) -> Response:
    return Response("two")


def test_exact_paths_precede_prefixes_and_longer_prefixes_shorter_ones() -> None:
    mux = Mux()
    mux.handle("/a/b", one)
    mux.handle_prefix("/a/", two)
    mux.handle_prefix("/a/b/", one)
    assert mux.find("/a/b") is one
    assert mux.find("/a/b/c") is one
    assert mux.find("/a/c") is two
    assert mux.find("/a") is None
    assert mux.listed == ("/a/b",)


def test_paths_are_served_once() -> None:
    mux = Mux()
    mux.handle("/a", one)
    with pytest.raises(ValueError, match="/a is served"):
        mux.handle("/a", two)
    with pytest.raises(ValueError, match="must end in a slash"):
        mux.handle_prefix("/a", two)
