"""Binds sockets before anything else starts, so that an occupied port is reported at once.

upstream: staging/src/k8s.io/apiserver/pkg/server/options/serving.go#CreateListener
"""

import errno
import ipaddress
import socket

from kcm_cli.manager.errors import RunError

_BACKLOG = 1024


def listen(address: str, port: int, *, share_port: bool = False) -> socket.socket:
    """A non-blocking listening socket. ``::`` accepts IPv4, too. Raises RunError."""
    family = socket.AF_INET6 if ipaddress.ip_address(address).version == 6 else socket.AF_INET
    where = f"[{address}]:{port}" if family == socket.AF_INET6 else f"{address}:{port}"
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        # Go sets this on every listener; --permit-address-sharing asks for no more.
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if share_port:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        if family == socket.AF_INET6:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        sock.bind((address, port))
        sock.listen(_BACKLOG)
        sock.setblocking(False)
    except OSError as error:
        sock.close()
        why = (error.strerror or str(error)).lower()
        if error.errno == errno.EADDRINUSE:
            why += " (--secure-port takes another one, or 0 for none)"
        raise RunError(f"failed to create listener: failed to listen on {where}: {why}") from error
    return sock
