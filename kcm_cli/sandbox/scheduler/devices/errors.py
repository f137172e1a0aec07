"""Errors of device allocation."""


class AllocationError(Exception):
    """A claim, class or selector is invalid. No other node is checked, and the pod is retried."""


class NodeRefused(Exception):
    """This node cannot provide the devices. The text is reported if no other node can."""
