"""The syntax of routes."""

import pytest

from kcm_cli.sandbox.apiserver.webhooks.routes import service_of, where_of


def test_a_service_is_its_name_and_its_namespace() -> None:
    assert service_of("hook-1.my-namespace") == ("my-namespace", "hook-1")


@pytest.mark.parametrize(
    "text", ["", "hook", ".", "a.", ".b", "a.b.svc", "A.b", "a/b.c", "-a.b", f"{'a' * 64}.b", "a.b\n"]
)
def test_invalid_names_of_services(text: str) -> None:
    with pytest.raises(ValueError, match="does not name a Service: write NAME.NAMESPACE"):
        service_of(text)


@pytest.mark.parametrize(
    ("to", "where"),
    [
        (9443, ("127.0.0.1", 9443)),
        ("9443", ("127.0.0.1", 9443)),
        ("127.0.0.1:1", ("127.0.0.1", 1)),
        ("host.example:65535", ("host.example", 65535)),
        ("[::1]:9443", ("::1", 9443)),
    ],
)
def test_a_target_is_a_port_or_host_and_port(to: int | str, where: tuple[str, int]) -> None:
    assert where_of(to) == where


@pytest.mark.parametrize(
    "to", [0, -1, 65536, "", "x", "::1:9443", "[::1]", "a b:1", ":1", "https://h:1", "h:1/p", "h:", "1\n", True]
)
def test_invalid_targets(to: int | str) -> None:
    with pytest.raises(ValueError, match="is no address: write PORT or HOST:PORT"):
        where_of(to)
