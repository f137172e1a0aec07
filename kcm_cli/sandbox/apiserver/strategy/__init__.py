"""What the server does with a kind around a write (see ``base.Strategy``), and steps that kinds have in common."""

from kcm_cli.sandbox.apiserver.strategy.base import Context, Strategy

__all__ = ["Context", "Strategy"]
