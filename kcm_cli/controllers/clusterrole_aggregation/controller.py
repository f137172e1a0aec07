"""clusterrole-aggregation-controller: keeps the rules of aggregated ClusterRoles (admin, edit, view and the like).

upstream: pkg/controller/clusterroleaggregation
"""

from kcm_cli.api.rbac import CLUSTER_ROLES, ClusterRole
from kcm_cli.controllers.clusterrole_aggregation import plan
from kcm_cli.engine.context import ControllerContext, Runnable
from kcm_cli.planning.actions import APPLY

WORKERS = 5
MANAGER = "clusterrole-aggregation-controller"


def build(context: ControllerContext) -> Runnable:
    controller = AggregationController(context)
    return context.worker(controller.queue, controller.sync, count=WORKERS, waits_for=(controller.roles,))


class AggregationController:
    """Keys are names of aggregated ClusterRoles; any change of any role queues them all."""

    def __init__(self, context: ControllerContext) -> None:
        self._client = context.client
        self._aggregated: set[str] = set()
        self.queue = context.queue("ClusterRoleAggregator")
        self.roles = context.informers.get(CLUSTER_ROLES)
        self.roles.listen(
            on_add=self._changed,
            on_update=lambda old, new: self._changed(new),
            on_delete=self._gone,
            on_unknown_delete=lambda gone: self._queue_all(),
        )

    async def sync(self, key: str) -> None:
        role = self.roles.store.get(key)
        if role is None or role.aggregation_rule is None:
            return
        rules = plan.rules_of(role, self.roles.store)
        if self.roles.store.unseen():
            rules = plan.kept(role, rules)
        if plan.same(role, rules):
            return
        query = (("fieldManager", MANAGER), ("force", "true"))
        await self._client.patch(CLUSTER_ROLES, "", key, plan.applied(role, rules), content_type=APPLY, query=query)

    def _changed(self, role: ClusterRole) -> None:
        if role.aggregation_rule is not None:
            self._aggregated.add(role.name)
        else:
            self._aggregated.discard(role.name)
        self._queue_all()

    def _gone(self, role: ClusterRole) -> None:
        self._aggregated.discard(role.name)
        self._queue_all()

    def _queue_all(self) -> None:
        for name in self._aggregated:
            self.queue.add(name)
