"""clusterrole-aggregation-controller: writes the rules of aggregated ClusterRoles (admin, edit, view and others).

upstream: pkg/controller/clusterroleaggregation
"""

from kcm_cli.api.rbac import CLUSTER_ROLES, ClusterRole
from kcm_cli.api.resource import Undecodable
from kcm_cli.controllers.clusterrole_aggregation import plan
from kcm_cli.engine import writes
from kcm_cli.engine.context import ControllerContext
from kcm_cli.engine.controller import Controller, Keys, Queue, Watch, starting
from kcm_cli.engine.worker import unhandled

WORKERS = 5


class AggregationController:
    """Keys are names of aggregated ClusterRoles. A change of any ClusterRole queues all of them."""

    def __init__(self, context: ControllerContext) -> None:
        self._client = context.client
        self._aggregated: set[str] = set()
        self._roles = context.cache(CLUSTER_ROLES).store

    async def sync(self, key: str) -> None:
        role = self._roles.get(key)
        if role is None or role.aggregation_rule is None:
            return
        patch = plan.plan(role, self._roles, complete=not self._roles.unseen())
        if patch is not None:
            await writes.send(self._client, patch)

    def changed(self, role: ClusterRole) -> Keys:
        """The keys of all aggregated roles, including this one if it is aggregated."""
        if role.aggregation_rule is not None:
            self._aggregated.add(role.name)
        else:
            self._aggregated.discard(role.name)
        return self._aggregated

    def deleted(self, role: ClusterRole) -> Keys:
        """The keys of all other aggregated roles."""
        self._aggregated.discard(role.name)
        return self._aggregated

    def all_aggregated(self, role: Undecodable) -> Keys:
        """The keys of all aggregated roles, since the deleted role's labels are unknown."""
        return self._aggregated


CONTROLLER = Controller(
    AggregationController,
    Queue(
        "ClusterRoleAggregator",
        Watch(
            CLUSTER_ROLES,
            changed=AggregationController.changed,
            deleted=AggregationController.deleted,
            unknown_deleted=AggregationController.all_aggregated,
        ),
        sync=AggregationController.sync,
        failures=unhandled("{key} failed with : {error}"),
        workers=WORKERS,
    ),
    announces=starting("ClusterRoleAggregator controller"),
)
