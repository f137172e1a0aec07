"""Binds sockets before anything else starts, so that an occupied port is reported at once.

upstream: staging/src/k8s.io/apiserver/pkg/server/options/serving.go#CreateListener
"""

import errno
import socket

from kcm_cli.machinery.addresses import host_and_port
from kcm_cli.manager.errors import RunError
from kcm_cli.serving.listening import listening


def listen(address: str, port: int, *, share_port: bool = False) -> socket.socket:
    """A non-blocking listening socket. ``0.0.0.0`` and ``::`` accept both families. Raises RunError."""
    try:
        # --permit-address-sharing asks for no more than every listener has.
        sock = listening(address, port, share_port=share_port)
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        if error.errno == errno.EADDRINUSE:
            why += " (--secure-port takes another one, or 0 for none)"
        where = host_and_port(address, port)
        raise RunError(f"failed to create listener: failed to listen on {where}: {why}") from error
    sock.setblocking(False)
    return sock
