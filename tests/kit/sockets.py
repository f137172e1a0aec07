"""Watches the connections of this process, and prevents those to other machines."""

import errno
import ipaddress
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest


@contextmanager
def watched() -> Iterator[list[str]]:
    """Within the block, the hosts other than loopback that were connected to or looked up. None is reached."""
    found: list[str] = []
    real = socket.socket
    connect, connect_ex, look_up = real.connect, real.connect_ex, socket.getaddrinfo

    def refuse(sock: socket.socket, address: Any) -> None:
        host = address[0]
        if sock.family in (socket.AF_INET, socket.AF_INET6) and not ipaddress.ip_address(host).is_loopback:
            found.append(host)
            raise OSError(errno.ENETUNREACH, "this test connects to nothing outside")

    def watched_connect(self: socket.socket, address: Any) -> None:
        refuse(self, address)
        connect(self, address)

    def watched_connect_ex(self: socket.socket, address: Any) -> int:
        refuse(self, address)
        return connect_ex(self, address)

    def watched_look_up(host: Any, *rest: Any, **options: Any) -> Any:
        name = host.decode() if isinstance(host, bytes) else host
        if name not in (None, "localhost") and not _is_address(name):
            found.append(name)
            raise socket.gaierror(socket.EAI_NONAME, "this test looks nothing up")
        return look_up(host, *rest, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(real, "connect", watched_connect)
        patch.setattr(real, "connect_ex", watched_connect_ex)
        patch.setattr(socket, "getaddrinfo", watched_look_up)
        yield found


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True
