"""Makes the fixtures of a simulated cluster known here."""

from tests.unit.sandbox.nodes.world import certificates, play

__all__ = ["certificates", "play"]
