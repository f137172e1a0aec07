"""The health of scheduler, controller manager and store, which ComponentStatuses show.

upstream: pkg/registry/core/rest/storage_core.go#serversToValidate (v1.36)
"""

from collections.abc import Awaitable, Callable

Probe = Callable[[int], Awaitable[str]]
"""Probes /healthz on a local port. Returns the error, or nothing."""
_PORTS = {"scheduler": 10259, "controller-manager": 10257}
_STORE = "etcd-0"


async def _no_probe(port: int) -> str:
    return f'Get "https://127.0.0.1:{port}/healthz": dial tcp 127.0.0.1:{port}: connect: connection refused'


class Components:
    """``running``: components in this process. ``probe``: probes the others."""

    names = (*_PORTS, _STORE)

    def __init__(self) -> None:
        self.running: set[str] = {_STORE}
        self.probe: Probe = _no_probe

    async def problem(self, name: str) -> str:
        """The error of a component, or nothing."""
        return "" if name in self.running else await self.probe(_PORTS[name])
