"""Reports the state of the service to systemd (Type=notify). Does nothing without a listener.

Source: sd_notify(3)
"""

import os
import socket
from collections.abc import Mapping

READY = "READY=1"
STOPPING = "STOPPING=1"
PATIENCE_S = 1.0
"""How long a listener that does not read is waited for."""


def notify(state: str, environ: Mapping[str, str] = os.environ) -> bool:
    """Send a state. Returns whether it was delivered."""
    address = environ.get("NOTIFY_SOCKET", "")
    if not address.startswith(("/", "@")):
        return False
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
        sock.settimeout(PATIENCE_S)
        try:
            sock.connect("\0" + address[1:] if address.startswith("@") else address)
            sock.sendall(state.encode())
        except OSError:
            return False
    return True
