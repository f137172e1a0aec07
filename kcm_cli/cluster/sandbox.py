"""The cluster around a sandbox's API server, whose components call it in process."""

from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache, partial
from typing import TYPE_CHECKING

from kcm_cli.cluster.cluster import Cluster
from kcm_cli.rest.transport import Transport
from kcm_cli.sandbox.apiserver.types import User
from kcm_cli.sandbox.client_causes import ClientCauses
from kcm_cli.sandbox.heartbeats import Heartbeats
from kcm_cli.sandbox.means import Means
from kcm_cli.sandbox.nodes.agents import NodeOptions
from kcm_cli.sandbox.nodes.commands import FIRST
from kcm_cli.sandbox.nodes.nodes import Nodes
from kcm_cli.sandbox.run import SCHEDULER, SIMULATION, SandboxServer
from kcm_cli.sandbox.system_pods import static_pods
from kcm_cli.sandbox.transport import InProcessTransport
from kcm_cli.sandbox.usage.api import MetricsApi
from kcm_cli.sandbox.work import acting_node

if TYPE_CHECKING:
    from kcm_cli.cluster.manager import SandboxManager


def sandbox_cluster(
    server: SandboxServer, manager: "SandboxManager | None", *, simulated: bool = True
) -> Cluster[Nodes]:
    """The cluster of a prepared server, which starts and ends with it. simulated: it has nodes and a scheduler."""
    given, causes = server.options, manager.causes if manager is not None else None
    if causes is not None:
        server.observers.append(ClientCauses(causes).observe)

    def nodes(means: Means) -> Nodes:
        ranged = manager is None or not manager.gives_ranges
        renewals = Heartbeats(server.store, server.api)
        static = tuple(static_pods(FIRST)) if given.system_pods else ()
        made = Nodes(means, NodeOptions(given.nodes, given.heartbeat_s, ranged, given.rules, renewals, static))
        _introduce(server, made)
        return made

    def connect(component: str) -> Transport:
        return InProcessTransport(server.api, user_of(component))

    return Cluster(
        clock=server.clock,
        rng=server.rng,
        connect=connect,
        server=server,
        nodes=nodes if simulated else None,
        controllers=manager,
        causes=causes,
    )


def user_of(component: str) -> User | Callable[[], User]:
    """Who a part of the simulation is; of kubelets, what returns the one that a request is from."""
    return _kubelet if component == "kubelet" else SCHEDULER if component == "kube-scheduler" else SIMULATION


@lru_cache(maxsize=8192)
def _kubelet_of(node: str) -> User:
    return User(f"system:node:{node}", groups=(*SIMULATION.groups, "system:nodes"))


def _kubelet() -> User:
    """The kubelet that this task is; what all of them share, as their caches, is the simulation's."""
    node = acting_node()
    return _kubelet_of(node) if node else SIMULATION


def _introduce(server: SandboxServer, nodes: Nodes) -> None:
    """Let the API server ask the nodes, as it does for logs, exec and metrics."""
    api, annotations = server.api, nodes.rules.annotations
    api.components.running.add("scheduler")
    api.kubelets.annotations = annotations
    api.kubelets.commands.changed = nodes.set_probe_results
    api.kubelets.commands.signalled = nodes.signal
    api.kubelets.commands.ended = partial(_ended, nodes)
    api.aggregate(MetricsApi(server.store, server.clock, annotations))


def _ended(nodes: Nodes, pod: str, container: str, code: int) -> None:
    with suppress(LookupError):  # it has been stopped just now
        nodes.kill_container(pod, container, code)
