"""Reads a manager: /metrics and /healthz on its port and, where there is a kubeconfig, its lease."""

from collections.abc import Callable
from datetime import datetime

import msgspec

from kcm_cli.api.coordination import LEASES, Lease
from kcm_cli.machinery.errors import FormatError
from kcm_cli.machinery.times import parse_time
from kcm_cli.rest.client import Client
from kcm_cli.rest.errors import ApiError
from kcm_cli.rest.manager_port import ManagerPort, ReadError
from kcm_cli.rest.transport import RequestError, Transport
from kcm_cli.top import figures
from kcm_cli.top.figures import Figures

_MOST_HEALTH = 1 << 20


class Held(msgspec.Struct, frozen=True):
    """Who holds the lease, and how long ago it was renewed, in seconds. ``problem``: why that is not known."""

    name: str
    holder: str = ""
    renewed_s: float | None = None
    problem: str = ""


class Reading(msgspec.Struct, frozen=True):
    """One look at a manager. ``unhealthy``: the lines of failed checks. ``held``: None without a kubeconfig."""

    figures: Figures
    unhealthy: tuple[str, ...] = ()
    held: Held | None = None


class Source:
    """A manager. ``leases``: a client of its cluster, with the namespace and name of its lease."""

    def __init__(
        self,
        transport: Transport,
        url: str,
        *,
        monotonic: Callable[[], float],
        now: Callable[[], datetime],
        leases: tuple[Client, str, str] | None = None,
    ) -> None:
        self._port = ManagerPort(transport, url)
        self._url = url
        self._monotonic = monotonic
        self._now = now
        self._leases = leases

    async def read(self) -> Reading:
        """Raises ReadError."""
        metrics = await self._port.read("/metrics", most_bytes=figures.MOST_BYTES)
        try:
            found = figures.read(metrics.decode(errors="replace"), self._monotonic())
        except FormatError as error:
            raise ReadError(f"{self._url}/metrics: {error}") from error
        health = await self._port.get("/healthz", (("verbose", ""),), most_bytes=_MOST_HEALTH)
        lines = health.body.decode(errors="replace").splitlines()
        unhealthy = tuple(line for line in lines if line.startswith("[-]"))
        if not unhealthy and health.status != 200:
            unhealthy = (f"/healthz: HTTP {health.status}",)
        return Reading(found, unhealthy, await self._held())

    async def _held(self) -> Held | None:
        if self._leases is None:
            return None
        client, namespace, name = self._leases
        where = f"{namespace}/{name}"
        try:
            lease: Lease = await client.get(LEASES, namespace, name)
        except ApiError as error:
            return Held(where, problem=error.message)
        except RequestError as error:
            return Held(where, problem=str(error))
        renewed = lease.spec.renew_time
        try:
            ago = None if renewed is None else (self._now() - parse_time(renewed)).total_seconds()
        except FormatError:
            ago = None
        return Held(where, lease.spec.holder_identity or "", ago)
