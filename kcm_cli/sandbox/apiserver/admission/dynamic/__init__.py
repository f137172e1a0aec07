"""Admission that users define: policies and webhooks (see ``users.UserDefined``)."""
