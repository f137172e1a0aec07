"""Requests as the application of port 10257 gets them."""

import pytest

from kcm_cli.manager.server.http import _scope
from kcm_cli.serving.connection import Received


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
