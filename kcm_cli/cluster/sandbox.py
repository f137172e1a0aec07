"""The cluster around a sandbox's API server, whose components call it in process."""

from typing import TYPE_CHECKING

from kcm_cli.cluster.cluster import Cluster
from kcm_cli.rest.transport import Transport
from kcm_cli.sandbox.heartbeats import Heartbeats
from kcm_cli.sandbox.means import Means
from kcm_cli.sandbox.nodes.agents import NodeOptions
from kcm_cli.sandbox.nodes.nodes import Nodes
from kcm_cli.sandbox.run import SIMULATION, SandboxServer
from kcm_cli.sandbox.transport import InProcessTransport
from kcm_cli.sandbox.usage.api import MetricsApi

if TYPE_CHECKING:
    from kcm_cli.cluster.manager import SandboxManager


def sandbox_cluster(
    server: SandboxServer, manager: "SandboxManager | None", *, simulated: bool = True
) -> Cluster[Nodes]:
    """The cluster of a prepared server, which starts and ends with it. simulated: it has nodes and a scheduler."""
    given = server.options

    def nodes(means: Means) -> Nodes:
        ranged = manager is None or not manager.gives_ranges
        renewals = Heartbeats(server.store, server.api)
        made = Nodes(means, NodeOptions(given.nodes, given.heartbeat_s, ranged, given.rules, renewals))
        _introduce(server, made)
        return made

    def connect(component: str) -> Transport:
        return InProcessTransport(server.api, SIMULATION, turns=server.turns)

    return Cluster(
        clock=server.clock,
        rng=server.rng,
        connect=connect,
        server=server,
        nodes=nodes if simulated else None,
        controllers=manager,
    )


def _introduce(server: SandboxServer, nodes: Nodes) -> None:
    """Let the API server ask the nodes, as it does for logs, exec and metrics."""
    api, annotations = server.api, nodes.rules.annotations
    api.components.running.add("scheduler")
    api.kubelets.annotations = annotations
    api.kubelets.commands.changed = nodes.set_probe_results
    api.kubelets.commands.signalled = nodes.signal
    api.aggregate(MetricsApi(server.store, server.clock, annotations))
