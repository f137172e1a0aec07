from typing import Final

HEARTBEAT_S: Final = 10.0
"""The interval of a node's heartbeats in seconds."""
