"""Requests as the handlers of port 10257 get them."""

import pytest

from kcm_cli.manager.server.request import Pairs, request_of
from kcm_cli.serving.connection import Received


@pytest.mark.parametrize(
    ("target", "path", "query"),
    [
        (b"/healthz", "/healthz", ()),
        (b"/healthz?a=b?c", "/healthz", (("a", "b?c"),)),
        (b"/healthz?verbose&a=1&a=%32", "/healthz", (("verbose", ""), ("a", "1"), ("a", "2"))),
        (b"/a%2fb", "/a/b", ()),
        (b"/x?of=http://b/c", "/x", (("of", "http://b/c"),)),
        (b"//a/b", "//a/b", ()),
        (b"http://a/healthz?verbose", "/healthz", (("verbose", ""),)),
        (b"http://a:1", "/", ()),
        (b"http://a?b", "/", (("b", ""),)),
        (b"http://[/healthz", "/healthz", ()),
        (b"http://[::1/healthz", "/healthz", ()),
        (b"http://a]b/healthz", "/healthz", ()),
        (b"*", "*", ()),
        (b"/a#b", "/a#b", ()),
        (b"/a%3fb%23c", "/a?b#c", ()),
        (b"a:443", "/a:443", ()),
        (b"a" * 100_000, f"/{'a' * 100_000}", ()),
    ],
)
def test_each_target_has_a_path_and_a_query(target: bytes, path: str, query: tuple[tuple[str, str], ...]) -> None:
    request = request_of(Received("GET", target, "1.1", [], b"", True))
    assert (request.path, request.query) == (path, query)


def test_the_target_of_connect_is_no_path() -> None:
    assert request_of(Received("CONNECT", b"a:443", "1.1", [], b"", True)).path == ""


def test_a_name_may_be_repeated() -> None:
    headers = [(b"X-Group", b"a"), (b"Accept", b"*/*"), (b"x-group", b"b")]
    found = request_of(Received("GET", b"/", "1.1", headers, b"", True)).headers
    assert found == Pairs((("x-group", "a"), ("accept", "*/*"), ("x-group", "b")))
    assert (found.first("x-group"), found.every("x-group")) == ("a", ("a", "b"))
    assert (found.first("host"), found.every("host"), found.has("host"), found.has("accept")) == ("", (), False, True)
