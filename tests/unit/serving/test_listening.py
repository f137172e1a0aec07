"""Where clients reach a listener."""

import errno
import socket
from collections.abc import Callable

import pytest

from kcm_cli.manager.server.listener import listen
from kcm_cli.serving.listening import listening

HUNG_S = 10.0


def _has_ipv6() -> bool:
    try:
        with socket.create_server(("::1", 0), family=socket.AF_INET6):
            return True
    except OSError:
        return False


HOSTS = ["127.0.0.1", pytest.param("::1", marks=pytest.mark.skipif(not _has_ipv6(), reason="this host has no IPv6"))]


@pytest.mark.parametrize("make", [listening, listen], ids=["any port", "the secure port"])
@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("address", ["0.0.0.0", "::"])
def test_an_address_for_all_is_of_both_families(
    address: str, host: str, make: Callable[[str, int], socket.socket]
) -> None:
    with make(address, 0) as sock, socket.create_connection((host, sock.getsockname()[1]), HUNG_S) as client:
        assert client.getpeername()[0] == host


@pytest.mark.parametrize("host", HOSTS)
def test_another_address_is_that_one_alone(host: str) -> None:
    with listening(host, 0) as sock:
        assert sock.getsockname()[0] == host


@pytest.mark.parametrize("code", [errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL])
def test_without_ipv6_there_is_ipv4(code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    class Old(socket.socket):
        def bind(self, address: object) -> None:
            if self.family == socket.AF_INET6:
                raise OSError(code, "no IPv6")
            super().bind(address)  # type: ignore[arg-type]  # of whatever form

    monkeypatch.setattr(socket, "socket", Old)
    with listening("0.0.0.0", 0) as sock:
        assert sock.family == socket.AF_INET
    with pytest.raises(OSError, match="no IPv6"):
        listening("::", 0)


def test_a_taken_port_is_not_tried_for_one_family_alone() -> None:
    with listening("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(OSError, match="in use"):
            listening("0.0.0.0", port)
