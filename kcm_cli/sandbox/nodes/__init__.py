from typing import Final

HEARTBEAT_S: Final = 10.0
"""How often a node says that it is well."""
