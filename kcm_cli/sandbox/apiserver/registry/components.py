"""ComponentStatuses: the health of scheduler, controller manager and store.

upstream: pkg/registry/core/componentstatus, pkg/registry/core/rest/storage_core.go#serversToValidate (v1.36)
"""

import asyncio
from collections.abc import Awaitable, Callable

from kcm_cli.machinery import codec
from kcm_cli.rest.transport import Response
from kcm_cli.sandbox.apiserver.errors import not_found
from kcm_cli.sandbox.apiserver.registry import errors as api_errors
from kcm_cli.sandbox.apiserver.registry.call import Call
from kcm_cli.sandbox.apiserver.registry.options import list_options
from kcm_cli.sandbox.apiserver.registry.reading import chosen_by
from kcm_cli.sandbox.apiserver.store import Stored
from kcm_cli.sandbox.apiserver.store.stored import Recent
from kcm_cli.sandbox.apiserver.types import Tree

Probe = Callable[[int], Awaitable[str]]
"""Probes /healthz on a local port. Returns the error, or nothing."""
_PORTS = {"scheduler": 10259, "controller-manager": 10257}
_STORE = "etcd-0"
_NAMES = (*_PORTS, _STORE)


async def _no_probe(port: int) -> str:
    return f'Get "https://127.0.0.1:{port}/healthz": dial tcp 127.0.0.1:{port}: connect: connection refused'


class Components:
    """Handles get and list. ``running``: components in this process. ``probe``: probes the others."""

    def __init__(self) -> None:
        self.running: set[str] = {_STORE}
        self.probe: Probe = _no_probe

    async def answer(self, call: Call) -> Response:
        """The response to a get or list. Raises ApiError."""
        if call.info.verb == "watch":
            raise api_errors.verb_not_supported(call.resource, call.info.verb)
        if call.info.verb == "list":
            chosen = chosen_by(call, list_options(call.query))
            every = await asyncio.gather(*map(self._status, _NAMES))
            return call.media.list([each for each in every if chosen.matches(each)], "", "", None)
        if call.name not in _NAMES:
            raise not_found("", "componentstatus", call.name)
        return call.media.object(200, await self._status(call.name))

    async def _status(self, name: str) -> Stored:
        wrong = "" if name in self.running else await self.probe(_PORTS[name])
        condition = {"type": "Healthy", "status": "False" if wrong else "True", "message": wrong or "ok"}
        doc: Tree = {"kind": "ComponentStatus", "apiVersion": "v1", "metadata": {"name": name}}
        doc["conditions"] = [condition]
        return Stored("", name, 0, codec.encode(doc), Recent(1), doc)
