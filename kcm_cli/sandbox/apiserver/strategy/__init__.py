"""Strategies: how writes of a kind are prepared and validated (see ``base.Strategy``), and steps that kinds share."""

from kcm_cli.sandbox.apiserver.strategy.base import Context, Strategy

__all__ = ["Context", "Strategy"]
