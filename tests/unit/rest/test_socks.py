"""The requests to a SOCKS5 proxy for each kind of address; only the reply is read."""

import asyncio
import socket

import pytest

from kcm_cli.rest.socks import ProxyRefused, tunnel

GREETING = b"\x05\x01\x00"
REPLIES = {
    "IPv4": b"\x05\x00\x00\x01" + bytes(4) + b"\x00\x50",
    "a name": b"\x05\x00\x00\x03\x02up\x00\x50",
    "IPv6": b"\x05\x00\x00\x04" + bytes(16) + b"\x00\x50",
}


def exchanged(host: str, reply: bytes) -> tuple[bytes, bytes]:
    """What a proxy has heard that answers at once, and what is left to read after its reply."""

    async def main() -> tuple[bytes, bytes]:
        ours, proxys = socket.socketpair()
        with ours, proxys:
            ours.setblocking(False)
            proxys.sendall(b"\x05\x00" + reply + b"from the server")
            await tunnel(ours, host, 6443, None)
            return proxys.recv(1000), ours.recv(1000)

    return asyncio.run(main())


@pytest.mark.parametrize(
    ("host", "address"),
    [
        ("10.0.0.1", b"\x01\x0a\x00\x00\x01"),
        ("fd00::1", b"\x04\xfd" + bytes(14) + b"\x01"),
        ("api.example", b"\x03\x0bapi.example"),
        ("b\u00fccher.example", b"\x03\x15xn--bcher-kva.example"),
    ],
)
def test_a_server_is_named_by_its_address_or_its_name(host, address):
    heard, _ = exchanged(host, REPLIES["IPv4"])
    assert heard == GREETING + b"\x05\x01\x00" + address + (6443).to_bytes(2, "big")


@pytest.mark.parametrize("reply", REPLIES.values(), ids=REPLIES)
def test_exactly_the_reply_is_read(reply):
    assert exchanged("api.example", reply)[1] == b"from the server"


def test_a_reply_of_another_version_is_an_error():
    with pytest.raises(ProxyRefused, match="version number: 4"):
        exchanged("api.example", b"\x04" + REPLIES["IPv4"][1:])
