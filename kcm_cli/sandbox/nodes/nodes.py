"""The simulated nodes of a sandbox, behind one class."""

import asyncio
from collections.abc import Sequence

from kcm_cli.rest.errors import AlreadyExists
from kcm_cli.runtime.informers import Informers
from kcm_cli.sandbox.nodes import HEARTBEAT_S, commands, shape
from kcm_cli.sandbox.nodes.agents import Agents, Means
from kcm_cli.sandbox.nodes.behaviour import ByRules
from kcm_cli.sandbox.nodes.eviction import Evictions
from kcm_cli.sandbox.nodes.kubelet import Kubelets
from kcm_cli.sandbox.nodes.mounts import Mounts
from kcm_cli.sandbox.nodes.objects import CachedObjects
from kcm_cli.sandbox.nodes.obstacles import Obstacles
from kcm_cli.sandbox.nodes.probes import Verdicts
from kcm_cli.sandbox.nodes.rules import Rule, Rules
from kcm_cli.sandbox.views import CONFIG_MAP_KEYS, NODES, PODS


class Nodes:
    """Creates the first nodes, and runs the kubelets of all while ``run`` runs. ``commands`` adds and removes nodes."""

    def __init__(
        self,
        means: Means,
        informers: Informers,
        heartbeat_s: float = HEARTBEAT_S,
        *,
        ranged: bool = True,
        rules: Sequence[Rule] = (),
    ) -> None:
        """Create the nodes.

        ranged: nodes are created with a pod CIDR. rules: apply in addition to those of objects.
        """
        client, clock = means.client, means.clock
        self._client = client
        self._ranged = ranged
        self._informer = informers.get(NODES)
        self._kubelets = Kubelets(client, informers.get(PODS), self._informer, means.events, clock)
        self._agents = Agents(means, self._informer, self._changed, heartbeat_s, ranged=ranged)
        self._kubelets.agents = self._agents
        self.rules = Rules(informers.get(CONFIG_MAP_KEYS), self._kubelets.rules_changed, rules)
        self._kubelets.behaviour = ByRules(self.rules, CachedObjects(informers))
        self._obstacles = Obstacles(informers, self._kubelets.namespace_changed, self._kubelets.volumes_attached)
        self._kubelets.obstacles = self._obstacles
        self._evictions = Evictions(self._agents, self._kubelets, self.rules.annotations, means.events, clock)
        self._mounts = Mounts(client, informers, clock, lambda name: self._agents.alive(name) is not None)

    async def run(self) -> None:
        """Run until cancelled. The informers have to run, too."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._agents.run(), name="simulated nodes")
            group.create_task(self._kubelets.run(), name="simulated kubelets")
            group.create_task(self._mounts.run(), name="simulated mounts")
            group.create_task(self._evictions.run(), name="simulated evictions")

    def _changed(self, name: str) -> None:
        self._kubelets.node_changed(name)
        self._mounts.node_changed(name)
        self._evictions.node_changed(name)

    def kill_container(self, key: str, container: str = "", code: int = 137, reason: str = "") -> None:
        """Kill a container of the pod ``namespace/name``, by default the first regular one. Raises LookupError."""
        self._kubelets.kill(key, container, code, reason)

    def signal(self, key: str, container: str, name: str) -> None:
        """Send a signal (``TERM``) to the first process of a container of the pod ``namespace/name``."""
        self._kubelets.signal(key, container, name)

    def set_probe_results(self, key: str, container: str, verdicts: Verdicts) -> None:
        """Apply new probe results to a container of the pod ``namespace/name`` in which a command has changed files."""
        self._kubelets.set_probe_results(key, container, verdicts)

    def fail_image(self, pattern: str, message: str = "") -> None:
        """Let pulls of matching images fail from now on, unless they are on the node. The pattern may contain ``*`` and
        ``?``."""
        self._obstacles.fail_image(pattern, message)
        self._kubelets.enqueue_all()

    def restore_image(self, pattern: str) -> None:
        """Undo ``fail_image`` for this pattern."""
        self._obstacles.restore_image(pattern)
        self._kubelets.enqueue_all()

    def restore_images(self) -> None:
        """Undo ``fail_image`` for all patterns."""
        self._obstacles.restore_images()
        self._kubelets.enqueue_all()

    async def ensure(self, count: int) -> None:
        """Create nodes 1 to ``count`` that do not exist yet, no faster than their kubelets come up. Raises
        RequestError."""
        for number in range(1, count + 1):
            name = f"{commands.PREFIX}{number}"
            if self._ranged:  # otherwise they wait for their pod CIDR
                await self._agents.few_unreported()
            self._agents.expect(name)
            try:
                await self._client.create(NODES, "", shape.node_doc(name, number, ranged=self._ranged))
            except AlreadyExists:
                self._agents.has_reported(name)
