"""Addresses as Go reads them."""

import pytest

from kcm_cli.machinery.addresses import host_and_port, is_canonical_ipv4, is_ipv6


@pytest.mark.parametrize(
    ("text", "expected"),
    [("::1", True), ("::ffff:1.2.3.4", False), ("1.2.3.4", False), ("None", False), ("", False)],
)
def test_only_ipv6_is_ipv6(text: str, expected: bool) -> None:
    assert is_ipv6(text) is expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [("1.2.3.4", True), ("0.0.0.0", True), ("255.255.255.255", True), ("256.1.1.1", False), ("01.2.3.4", False)],
)
def test_canonical_ipv4(text: str, expected: bool) -> None:
    assert bool(is_canonical_ipv4(text)) is expected


def test_addresses_with_ports() -> None:
    assert host_and_port("::", 10257) == "[::]:10257"
    assert host_and_port("0.0.0.0", 10257) == "0.0.0.0:10257"
