"""The Lease as a lock: read it, create it, update it if it is unchanged, and emit Events about it.

Only the election's fields are written; all others stay. An update carries the resourceVersion that this process saw
last.

upstream: staging/src/k8s.io/client-go/tools/leaderelection/resourcelock/leaselock.go
"""

from collections.abc import Callable
from typing import Protocol

from kcm_cli.api.resource import GVR
from kcm_cli.machinery import codec
from kcm_cli.machinery.codec import Doc
from kcm_cli.machinery.documents import nested_map, nested_str
from kcm_cli.machinery.meta import Object
from kcm_cli.planning.actions import EventRef, Notice
from kcm_cli.rest import errors
from kcm_cli.rest.client import Client
from kcm_cli.rest.reading import read, read_doc
from kcm_cli.rest.transport import Request, Unreadable
from kcm_cli.runtime.leader.record import LeaseSpec, Record, from_spec, to_spec

LEASES = GVR("coordination.k8s.io", "v1", "leases")


class Lock(Protocol):
    """Stores the election record. Methods raise ``errors.ApiError`` and ``transport.TransportError``."""

    async def get(self) -> Record | None:
        """The record now, or None if there is no lease yet."""

    async def create(self, record: Record) -> None:
        """Create the lease. Raises AlreadyExists if another candidate created it first."""

    async def update(self, record: Record) -> None:
        """Write the record. Raises Conflict if the lease changed since it was last read or written here."""

    def record_event(self, message: str) -> None:
        """Emit an Event about the lease; returns at once."""


class _Lease(Object, frozen=True, gc=False, kw_only=True):
    spec: LeaseSpec = LeaseSpec()


class LeaseLock:
    """A Lease on an API server, through a separate client. ``emit``: queues an Event."""

    def __init__(self, client: Client, namespace: str, name: str, emit: Callable[[Notice], None]) -> None:
        self._client = client
        self._namespace = namespace
        self._name = name
        self._emit = emit
        self._doc: Doc | None = None

    def __str__(self) -> str:
        return f"{self._namespace}/{self._name}"

    async def get(self) -> Record | None:
        """The record now, or None if there is no lease yet."""
        try:
            body = await self._client.call(Request("GET", LEASES.path(self._namespace, self._name)))
        except errors.NotFound:
            return None
        return self._keep(body)

    async def create(self, record: Record) -> None:
        """Create the lease. Raises AlreadyExists if another candidate was faster."""
        doc: Doc = {
            "apiVersion": LEASES.group_version,
            "kind": "Lease",
            "metadata": {"name": self._name, "namespace": self._namespace},
            "spec": to_spec(record),
        }
        self._keep(await self._send("POST", LEASES.path(self._namespace), doc))

    async def update(self, record: Record) -> None:
        """Write the record. Raises Conflict if the lease changed, ValueError if it was never read."""
        if self._doc is None:
            raise ValueError("a lease is read or made before it is updated")
        doc: Doc = {**self._doc, "spec": {**nested_map(self._doc, "spec"), **to_spec(record)}}
        self._keep(await self._send("PUT", LEASES.path(self._namespace, self._name), doc))

    def record_event(self, message: str) -> None:
        """Emit a LeaderElection Event about the lease; returns at once."""
        uid, version = (nested_str(self._doc, "metadata", field) for field in ("uid", "resourceVersion"))
        ref = EventRef(LEASES.group_version, "Lease", self._namespace, self._name, uid, version)
        self._emit(Notice(ref, "Normal", "LeaderElection", message))

    async def _send(self, method: str, path: str, doc: Doc) -> bytes:
        headers = {"content-type": "application/json"}
        return await self._client.call(Request(method, path, (), headers, codec.encode(doc)))

    def _keep(self, body: bytes) -> Record:
        doc, lease = read_doc(body), read(body, _Lease)
        if lease.name != self._name:
            raise Unreadable(f"the answer cannot be read: it is no Lease named {self._name}")
        self._doc = doc
        return from_spec(lease.spec)
