"""Calls of admission and conversion webhooks."""

from kcm_cli.sandbox.apiserver.webhooks.calls import CallError, Calls, NoCalls, UnusableConfig, WebhookCalls
from kcm_cli.sandbox.apiserver.webhooks.routes import Routes

__all__ = ["CallError", "Calls", "NoCalls", "UnusableConfig", "Routes", "WebhookCalls"]
