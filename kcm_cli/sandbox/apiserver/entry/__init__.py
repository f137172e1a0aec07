"""Interception of requests: injected faults and recordings."""
