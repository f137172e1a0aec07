"""Admission policies and webhooks (see ``users.UserDefined``)."""
