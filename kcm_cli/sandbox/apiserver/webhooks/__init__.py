"""Calls of admission and conversion webhooks."""

from kcm_cli.sandbox.apiserver.webhooks.calls import CallError, WebhookCalls
from kcm_cli.sandbox.apiserver.webhooks.routes import Routes

__all__ = ["CallError", "Routes", "WebhookCalls"]
