"""Sockets that listen, as Go's net.Listen opens them."""

import errno
import socket

BACKLOG = 1024
_ANY_IPV4, _ANY = "0.0.0.0", "::"
_WITHOUT_IPV6 = (errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL)
"""What a system that has no IPv6, or has it turned off, says."""


def listening(address: str, port: int, *, share_port: bool = False) -> socket.socket:
    """A socket that listens on an address of this host. Raises OSError.

    0.0.0.0 and :: both stand for all addresses, of both families; without IPv6, 0.0.0.0 stands for those of IPv4.
    share_port: whether other processes may listen on the port, too.

    upstream: net/ipsock_posix.go#favoriteAddrFamily, net/sockopt_linux.go
    """
    if address == _ANY_IPV4:
        try:
            return _listening(_ANY, port, share_port=share_port)
        except OSError as error:
            if error.errno not in _WITHOUT_IPV6:
                raise
    return _listening(address, port, share_port=share_port)


def _listening(address: str, port: int, *, share_port: bool) -> socket.socket:
    sock = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_STREAM)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # Go sets it on each listener
        if share_port:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        if sock.family == socket.AF_INET6:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        sock.bind((address, port))
        sock.listen(BACKLOG)
    except OSError:
        sock.close()
        raise
    return sock
