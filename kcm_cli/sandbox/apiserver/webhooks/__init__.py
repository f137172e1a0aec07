"""Calls of servers that users run: admission and conversion webhooks."""

from kcm_cli.sandbox.apiserver.webhooks.calls import CallError, WebhookCalls

__all__ = ["CallError", "WebhookCalls"]
