"""Nodes that are added, fail and are deleted, and their pods."""

from collections import Counter
from collections.abc import Sequence

from kcm_cli.sandbox.nodes import commands
from tests.kit.simulation import World
from tests.kit.workload import deployment
from tests.simulation.stories.kit import (
    NODES,
    PODS,
    Step,
    Story,
    create,
    create_doc,
    delete,
    patch,
    pod_spec,
    together,
    wait,
)
from tests.simulation.stories.workloads import DEPLOYMENTS


def fails(name: str) -> Step:
    async def step(world: World) -> None:
        await commands.fail(world.client, name)

    return step


def recovers(name: str) -> Step:
    async def step(world: World) -> None:
        await commands.recover(world.client, name)

    return step


def goes(name: str) -> Step:
    async def step(world: World) -> None:
        await commands.remove(world.client, name)

    return step


def tainted(*keys: str) -> Step:
    return patch(NODES, "node-1", {"spec": {"taints": [{"key": key, "effect": "NoExecute"} for key in keys]}})


def tolerating(key: str, seconds: int) -> dict[str, object]:
    return {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": seconds}


def shared_ranges(world: World) -> Sequence[str]:
    """Ranges of addresses that two nodes have, and nodes without one: which one a node has does not matter."""
    given = Counter(str(dict(doc)["spec"].get("podCIDR", "none")) for doc in world.objects("v1/nodes", ""))
    return [f"{cidr} is the range of {count} nodes" for cidr, count in given.items() if count > 1]


RANGED = ("--allocate-node-cidrs=true", "--cluster-cidr=10.0.0.0/22")

STORIES = {
    "start": Story(
        about=("clusterrole-aggregation", "root-ca-certificate-publisher", "serviceaccount", "service-cidr", "ttl"),
        nodes=2,
        steps=(),
        flags=("--root-ca-file={files}/ca.crt",),
        start=True,
    ),
    "failing-node": Story(
        about=("node-lifecycle", "taint-eviction", "replicaset"),
        nodes=2,
        steps=(
            create_doc(DEPLOYMENTS, deployment("web", 2)),
            together(fails("node-1"), wait(420)),
            recovers("node-1"),
        ),
    ),
    "lost-node": Story(
        about=("pod-garbage-collector", "replicaset", "ttl"),
        nodes=2,
        steps=(create_doc(DEPLOYMENTS, deployment("web", 3)), goes("node-2")),
    ),
    "tainted-node": Story(
        about=("taint-eviction",),
        nodes=1,
        steps=(
            create(PODS, "stays", spec=pod_spec(tolerations=[{"operator": "Exists"}])),
            create(PODS, "leaves", spec=pod_spec(tolerations=[tolerating("a", 60)])),
            tainted("a"),
            create(PODS, "later", spec=pod_spec(nodeName="node-1", tolerations=[tolerating("a", 60)])),
            tainted(),
        ),
    ),
    "node-addresses": Story(
        about=("node-ipam", "ttl"),
        flags=RANGED,
        check=shared_ranges,
        steps=(
            create(NODES, "a"),
            create(NODES, "b"),
            delete(NODES, "a"),
            create(NODES, "c"),
        ),
    ),
}
