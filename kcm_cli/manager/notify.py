"""Reports the state of the service to systemd (Type=notify). Does nothing without a listener.

Source: sd_notify(3)
"""

import os
import socket
from collections.abc import Mapping

READY = "READY=1"
STOPPING = "STOPPING=1"


def notify(state: str, environ: Mapping[str, str] = os.environ) -> bool:
    """Send a state. Returns whether it was delivered."""
    address = environ.get("NOTIFY_SOCKET", "")
    if not address.startswith(("/", "@")):
        return False
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
        try:
            sock.connect("\0" + address[1:] if address.startswith("@") else address)
            sock.sendall(state.encode())
        except OSError:
            return False
    return True
