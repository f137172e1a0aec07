"""The simulated nodes of a sandbox, behind one class."""

import asyncio
import logging
from collections.abc import Mapping

from kcm_cli.rest.errors import AlreadyExists
from kcm_cli.rest.transport import RequestError
from kcm_cli.sandbox.means import Means
from kcm_cli.sandbox.nodes import commands, shape
from kcm_cli.sandbox.nodes.agents import Agents, NodeOptions
from kcm_cli.sandbox.nodes.behaviour import ByRules
from kcm_cli.sandbox.nodes.eviction import Evictions
from kcm_cli.sandbox.nodes.kubelet import Kubelets
from kcm_cli.sandbox.nodes.mounts import Mounts
from kcm_cli.sandbox.nodes.objects import CachedObjects
from kcm_cli.sandbox.nodes.obstacles import Obstacles
from kcm_cli.sandbox.nodes.probes import Verdicts
from kcm_cli.sandbox.nodes.rules import Rules
from kcm_cli.sandbox.nodes.static_pods import StaticPods
from kcm_cli.sandbox.views import CONFIG_MAP_KEYS, NODES

log = logging.getLogger(__name__)
RETRY_S = 1.0


class Nodes:
    """Creates the first nodes, and runs the kubelets of all while ``run`` runs. ``commands`` adds and removes nodes."""

    def __init__(self, means: Means, options: NodeOptions) -> None:
        informers = means.informers
        self._client, self._clock = means.kubelet, means.clock
        self._options = options
        self._agents = Agents(means, options)
        self.rules = Rules(informers.get(CONFIG_MAP_KEYS), options.rules)
        self._obstacles = Obstacles(informers)
        behaviour = ByRules(self.rules, CachedObjects(informers))
        self._kubelets = Kubelets(means, self._agents, behaviour, self._obstacles)
        self.rules.listen(self._kubelets.rules_changed)
        self._obstacles.listen(self._kubelets.object_changed, self._kubelets.volumes_attached)
        self._mounts = Mounts(means, self._agents)
        self._static_pods = StaticPods(means, self._agents, options.static_pods)
        self._evictions = Evictions(self._agents, self._kubelets, self.rules.annotations, means)

    async def run(self) -> None:
        """Run until cancelled. The informers have to run, too."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._create_first(), name="first nodes")
            group.create_task(self._agents.run(), name="simulated nodes")
            group.create_task(self._kubelets.run(), name="simulated kubelets")
            group.create_task(self._mounts.run(), name="simulated mounts")
            group.create_task(self._static_pods.run(), name="static pods")
            group.create_task(self._evictions.run(), name="simulated evictions")

    async def _create_first(self) -> None:
        while True:
            try:
                await self.ensure(self._options.count)
                return
            except RequestError as error:
                log.warning("Cannot register nodes", extra={"fields": {"err": str(error)}})
                await self._clock.sleep(RETRY_S)

    def kill_container(self, key: str, container: str = "", code: int = 137, reason: str = "") -> None:
        """Kill a container of the pod ``namespace/name``, by default the first regular one. Raises LookupError."""
        self._kubelets.kill(key, container, code, reason)

    def signal(self, key: str, container: str, name: str) -> None:
        """Send a signal (``TERM``) to the first process of a container of the pod ``namespace/name``."""
        self._kubelets.signal(key, container, name)

    def set_probe_results(self, key: str, container: str, verdicts: Verdicts) -> None:
        """Apply new probe results to a container of the pod ``namespace/name`` in which a command has changed files."""
        self._kubelets.set_probe_results(key, container, verdicts)

    def restored(self, versions: Mapping[str, int]) -> None:
        """Go on with these pods (``namespace/name``) as their status says since this revision: a snapshot has restored
        it."""
        self._kubelets.restored(versions)

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
            if self._options.ranged:  # otherwise they wait for their pod CIDR
                await self._agents.few_unreported()
            self._agents.expect(name)
            try:
                await self._client.create(NODES, "", shape.node_doc(name, number, ranged=self._options.ranged))
            except AlreadyExists:
                self._agents.has_reported(name)
