"""Admission that users define: policies and webhooks."""
