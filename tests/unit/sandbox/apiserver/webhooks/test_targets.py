"""The URLs of webhooks."""

import pytest

from kcm_cli.sandbox.apiserver.webhooks.targets import target_of


@pytest.mark.parametrize(
    ("written", "path"),
    [("", "/"), ("/", "/"), ("//", "/"), ("/a/b", "/a/b"), ("//a//b/", "/a/b"), ("/a/../b/.", "/b"), ("/.a", "/.a")],
)
def test_paths_are_as_gos_client_asks_for_them(written: str, path: str) -> None:
    by_url = target_of({"url": f"https://127.0.0.1:9443{written}"})
    by_service = target_of({"service": {"namespace": "a", "name": "b", "path": written}})
    assert (by_url.path, by_service.path) == (path, path)
    assert by_url.url == f"https://127.0.0.1:9443{path}"
