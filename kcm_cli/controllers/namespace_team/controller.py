"""namespace-team-controller: a namespace that names no team gets the default one.

upstream: none
"""

from kcm_cli.api.core import NAMESPACES
from kcm_cli.controllers.namespace_team.config import NamespaceTeamConfig
from kcm_cli.controllers.namespace_team.plan import LABEL, plan
from kcm_cli.engine.context import ControllerContext
from kcm_cli.engine.controller import Controller, Queue, Watch, only


class NamespaceTeam:
    """Keys are names of namespaces."""

    def __init__(self, context: ControllerContext) -> None:
        self._executor = context.executor()
        self._team = context.config(NamespaceTeamConfig).team
        self._namespaces = context.cache(NAMESPACES).store

    async def sync(self, key: str) -> None:
        namespace = self._namespaces.get(key)
        if namespace is None:
            return
        outcome = await self._executor.run(plan(namespace, self._team))
        if outcome.error is not None:
            raise outcome.error


unlabelled = only(lambda namespace: LABEL not in namespace.labels)
CONTROLLER = Controller(
    NamespaceTeam, Queue("namespace_team", Watch(NAMESPACES, changed=unlabelled), sync=NamespaceTeam.sync)
)
