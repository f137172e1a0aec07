"""Add, remove, fail and recover nodes of a running sandbox through the API.

Only a client is needed: the process that simulates the nodes (``nodes.Nodes``) watches the Node objects.
"""

from kcm_cli.api.resource import Resource
from kcm_cli.api.well_known import LEASE_NAMESPACE
from kcm_cli.machinery.codec import Doc
from kcm_cli.machinery.meta import PartialObject
from kcm_cli.planning.actions import MERGE
from kcm_cli.rest.client import Client
from kcm_cli.rest.errors import AlreadyExists, NotFound
from kcm_cli.rest.listing import list_all
from kcm_cli.sandbox.nodes import shape
from kcm_cli.sandbox.views import NODE_LEASES, NODES

PREFIX = "node-"
FIRST = f"{PREFIX}1"
_METADATA = Resource(NODES.gvr, NODES.kind, PartialObject, False)


class NotSimulated(Exception):
    """The node is not a simulated one, and must not be changed."""


async def add(client: Client, name: str, *, capacity: str = "") -> None:
    """Add a node. Raises ValueError, AlreadyExists and other API errors.

    capacity: as in the annotation, such as ``cpu=8,memory=16Gi``.
    """
    if wrong := shape.unreadable(capacity):
        raise ValueError(f"a size is such as cpu=8 or memory=16Gi, not {', '.join(wrong)}")
    annotations = {shape.SIMULATED: "true"}
    if capacity:
        annotations[shape.CAPACITY] = capacity
    doc: Doc = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "annotations": annotations}}
    await client.create(_METADATA, "", doc)


async def add_some(client: Client, count: int, *, capacity: str = "") -> list[str]:
    """Add ``count`` nodes under the first free names. Return their names."""
    listed = await list_all(client, _METADATA, metadata_only=True)
    taken = {node.name for node in listed.items}
    added: list[str] = []
    number = 0
    while len(added) < count:
        number += 1
        name = f"{PREFIX}{number}"
        if name in taken:
            continue
        try:
            await add(client, name, capacity=capacity)
            added.append(name)
        except AlreadyExists:
            continue
    return added


async def remove(client: Client, name: str) -> None:
    """Delete a node and its Lease. The pod garbage collector deletes its pods. Raises NotFound, NotSimulated."""
    await _check(client, name)
    await client.delete(_METADATA, "", name)
    try:
        await client.delete(NODE_LEASES, LEASE_NAMESPACE, name)
    except NotFound:
        return


async def fail(client: Client, name: str) -> None:
    """Stop a node's heartbeats and its pods' progress. Raises NotFound, NotSimulated."""
    await _annotate(client, name, "true")


async def recover(client: Client, name: str) -> None:
    """Bring a failed node back. Raises NotFound, NotSimulated."""
    await _annotate(client, name, None)


async def _annotate(client: Client, name: str, failed: str | None) -> None:
    await _check(client, name)
    patch: Doc = {"metadata": {"annotations": {shape.FAILED: failed}}}
    await client.patch(_METADATA, "", name, patch, content_type=MERGE)


async def _check(client: Client, name: str) -> None:
    annotations = (await client.get(_METADATA, "", name)).metadata.annotations or {}
    if annotations.get(shape.SIMULATED) != "true":
        raise NotSimulated(f'node "{name}" is not simulated, so it is left alone: is this cluster a sandbox?')
