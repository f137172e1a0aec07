"""A whole sandbox on virtual time: API server, simulated nodes and scheduler, in this process."""

import json
import logging
import random
from collections import ChainMap
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pytest

from kcm_cli.api.core import NAMESPACES, SERVICE_ACCOUNTS
from kcm_cli.api.resource import GVR, Resource
from kcm_cli.cluster.cluster import Cluster, Running
from kcm_cli.component.clock import Clock, LoopClock
from kcm_cli.machinery.meta import PartialObject
from kcm_cli.planning.actions import MERGE
from kcm_cli.rest.client import Client
from kcm_cli.rest.errors import NotFound
from kcm_cli.rest.ratelimit import Unlimited
from kcm_cli.rest.transport import Transport
from kcm_cli.sandbox.apiserver.security.certificates import Certificates
from kcm_cli.sandbox.apiserver.settings import DEFAULTS, Settings
from kcm_cli.sandbox.nodes.agents import NodeOptions
from kcm_cli.sandbox.nodes.nodes import Nodes
from tests.kit.embedded import EmbeddedServer

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)


def resource(plural: str, group: str = "", version: str = "v1", *, namespaced: bool = True) -> Resource[PartialObject]:
    return Resource(GVR(group, version, plural), "", PartialObject, namespaced)


PODS = resource("pods")
NODES = resource("nodes", namespaced=False)


@dataclass
class World:
    """The cluster of a test. ``wait`` lets virtual seconds pass."""

    client: Client
    clock: LoopClock
    cluster: Running[Nodes]
    server: EmbeddedServer
    raised: list[logging.LogRecord]
    """The errors that were logged of what is simulated, after which it goes on. A test that causes some clears it."""

    async def wait(self, seconds: float = 1.0) -> None:
        await self.clock.sleep(seconds)

    async def create(self, kind: Resource[Any], doc: dict, namespace: str = "default") -> None:
        await self.client.create(kind, namespace if kind.namespaced else "", doc)

    async def pod(self, name: str, spec: dict | None = None, **annotations: str) -> None:
        """Create a pod of one container; ``run_time`` is the annotation sandbox.kcm.dev/run-time, and so on."""
        metadata: dict = {"name": name}
        if annotations:
            metadata["annotations"] = {f"sandbox.kcm.dev/{k.replace('_', '-')}": v for k, v in annotations.items()}
        labels = (spec or {}).pop("labels", None)
        if labels:
            metadata["labels"] = labels
        body = {"containers": [{"name": "c", "image": "nginx"}], **(spec or {})}
        await self.create(PODS, {"metadata": metadata, "spec": body})

    async def bind(self, pod: str, node: str) -> None:
        """As a scheduler does."""
        binding = {"metadata": {"name": pod}, "target": {"kind": "Node", "name": node}}
        await self.client.create(PODS, "default", binding, name=pod, subresource="binding")

    async def get(self, kind: Resource[Any], name: str, namespace: str = "default") -> dict:
        return await self.client.get_doc(kind, namespace if kind.namespaced else "", name)

    async def items(self, kind: Resource[Any], namespace: str = "default", **query: Any) -> list[dict[str, Any]]:
        """All objects of a kind, or those in a namespace."""
        page = await self.client.list_page(kind, namespace if kind.namespaced else "", **query)
        return json.loads(page)["items"]  # type: ignore[no-any-return]

    async def status(self, name: str) -> dict:
        return (await self.get(PODS, name))["status"]

    async def node_of(self, name: str) -> str:
        return (await self.get(PODS, name))["spec"].get("nodeName", "")

    async def condition(self, name: str, type_: str) -> dict:
        conditions = (await self.status(name)).get("conditions", [])
        return next((c for c in conditions if c["type"] == type_), {})

    async def is_deleted(self, name: str, kind: Resource[Any] = PODS, namespace: str = "default") -> bool:
        """Whether an object does not exist, or no longer."""
        try:
            await self.get(kind, name, namespace)
        except NotFound:
            return True
        return False

    async def delete(self, kind: Resource[Any], name: str, **options: Any) -> None:
        await self.client.delete(kind, "default" if kind.namespaced else "", name, **options)

    async def patch(self, kind: Resource[Any], name: str, body: dict, namespace: str = "default") -> None:
        await self.client.patch(kind, namespace if kind.namespaced else "", name, body, content_type=MERGE)

    async def events(self, name: str) -> list[tuple[str, str]]:
        """Reason and message of the Events of an object, in the order of their names."""
        items = await self.items(resource("events"))
        return [(e["reason"], e["message"]) for e in items if e["involvedObject"]["name"] == name]


def simulated(transport: Transport, clock: Clock, rng: random.Random, options: NodeOptions | None) -> Cluster[Nodes]:
    """What takes the place of machines around an API server; None for nothing, not even a scheduler."""
    nodes = None if options is None else lambda means: Nodes(means, options)
    return Cluster(clock=clock, rng=rng, connect=lambda component: transport, nodes=nodes)


@pytest.fixture(scope="session")
def certificates() -> Certificates:
    return Certificates.load(None, datetime.now(UTC))


@pytest.fixture
async def world(request: pytest.FixtureRequest, certificates: Certificates) -> AsyncIterator[World]:
    """A world of its own with three nodes and a scheduler, or as ``pytest.mark.cluster`` says."""
    async with running_world(certificates, **cluster_options(request)) as made:
        yield made


def cluster_options(request: pytest.FixtureRequest) -> dict[str, Any]:
    """What the marks ``cluster`` of a test say, the nearest first."""
    return dict(ChainMap(*(mark.kwargs for mark in request.node.iter_markers("cluster"))))


@asynccontextmanager
async def running_world(
    certificates: Certificates,
    nodes: int = 3,
    *,
    ranged: bool = True,
    alone: bool = False,
    heartbeat_s: float = 300.0,
    service_ranges: tuple[str, ...] = DEFAULTS.service_ranges,
) -> AsyncIterator[World]:
    """A cluster while inside; nothing else is needed.

    ``alone``: there is neither a node nor a scheduler, so that long times cost little. ``heartbeat_s``: how often nodes
    renew their Leases, which is half the cost of a minute. Where the node lifecycle controller runs: 10. ``ranged``:
    nodes have a range of addresses for pods. ``service_ranges``: of the addresses of Services, one for each family.
    """
    clock = LoopClock(EPOCH)
    server = EmbeddedServer(clock, random.Random(1), certificates, Settings(service_ranges=service_ranges))
    await server.start()
    client = Client(server.transport(), limiter=Unlimited(), user_agent="test", clock=clock)
    options = NodeOptions(nodes, heartbeat_s, ranged)
    made = simulated(server.transport(), clock, random.Random(2), None if alone else options)
    with _raised() as raised:
        async with made.running() as cluster:
            await client.create(SERVICE_ACCOUNTS, "default", {"metadata": {"name": "default"}})
            await client.get(NAMESPACES, "", "default")
            await clock.sleep(1)
            yield World(client, clock, cluster, server, raised)
            assert not cluster.failed
            assert not raised


@contextmanager
def _raised() -> Iterator[list[logging.LogRecord]]:
    """The errors with tracebacks that the sandbox logs while inside."""
    found: list[logging.LogRecord] = []
    handler = logging.Handler()
    handler.emit = lambda record: found.append(record) if record.exc_info else None  # type: ignore[method-assign]
    logger = logging.getLogger("kcm_cli.sandbox")
    logger.addHandler(handler)
    try:
        yield found
    finally:
        logger.removeHandler(handler)
