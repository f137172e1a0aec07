"""What goes wrong beyond a node that cannot have a pod."""


class AllocationError(Exception):
    """A claim, a class or a selector is not right: no node is looked at any further, and the pod is tried again."""


class NodeRefused(Exception):
    """This node cannot have the devices; the text is told where no other can either."""
