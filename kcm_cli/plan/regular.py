"""The regular work of CronJobs and autoscalers, which any manager does, apart from the work of a takeover."""

from kcm_cli.manager.controller_map import all_controllers
from kcm_cli.plan.answer import Object
from kcm_cli.plan.twin.writes import Write

_FOLLOWERS = frozenset(("endpoints", "endpointslices", "poddisruptionbudgets", "resourcequotas"))
"""What is rewritten as pods come and go; their writes name no pod."""


class Regular:
    """Follows writes in their order, from those of CronJobs and autoscalers to what the written objects own."""

    def __init__(self) -> None:
        self._begin = {one.called for one in all_controllers() if one.regular}
        self._objects: set[Object] = set()
        self._namespaces: set[str] = set()

    def has(self, write: Write, about: Object) -> bool:
        """Whether the write follows from such work."""
        kind, _, name = write.owner.partition("/")
        owner = Object(kind, about.namespace, name)
        follows = write.resource in _FOLLOWERS and about.namespace in self._namespaces
        if not (write.client in self._begin or about in self._objects or owner in self._objects or follows):
            return False
        self._objects.add(about)
        if about.kind == "Pod":
            self._namespaces.add(about.namespace)
        return True
