"""Restores the server's own objects that clients have deleted or changed.

What upstream checks in intervals from its start is checked at the same times, but only after a write that may have
broken it.

upstream: pkg/controlplane/controller/{systemnamespaces,kubernetesservice,clusterauthenticationtrust},
pkg/controlplane/controller/legacytokentracking, pkg/registry/flowcontrol/{rest,ensurer} (v1.36)
"""

import asyncio
import logging
import math
from collections.abc import Sequence

import msgspec

from kcm_cli.api.resource import GVR
from kcm_cli.machinery import codec
from kcm_cli.machinery.booleans import parse_bool
from kcm_cli.machinery.codec import Doc
from kcm_cli.rest.errors import from_response
from kcm_cli.rest.transport import Request, Response
from kcm_cli.sandbox.apiserver.controllers.bootstrap import (
    FLOWS,
    HEADERS,
    SYSTEM,
    TRACKING,
    BootstrapError,
    Server,
    create_missing,
)
from kcm_cli.sandbox.apiserver.store import Event
from kcm_cli.sandbox.apiserver.types import Tree

_log = logging.getLogger(__name__)
_AUTO_UPDATE = "apf.kubernetes.io/autoupdate-spec"
_MANDATORY = frozenset(("exempt", "catch-all"))
_FLOW_KINDS = frozenset(("FlowSchema", "PriorityLevelConfiguration"))
_RETRY_S = 1.0


class _Group(msgspec.Struct):
    """Objects that are checked together.

    interval_s: between the times from the start at which they may be checked; 0: at once. rest_s: the least time
    between two checks.
    """

    documents: list[Doc]
    interval_s: float
    rest_s: float = 0.0
    restores_changes: bool = False
    due: bool = False
    """Whether a check is planned."""
    free_s: float = -math.inf
    """From when on it may be checked."""


class Upkeep:
    """See the module. Belongs to a server whose objects have been created."""

    def __init__(self, server: Server, documents: Sequence[Doc]) -> None:
        self._server = server
        self._clock = server.core.clock
        self._began_s = self._clock.monotonic()
        self._tasks: set[asyncio.Task[None]] = set()
        for group in _groups(documents):
            for gvr, keys in self._keys(group).items():
                server.core.store.subscribe(gvr, _Listener(self, group, keys))

    def _keys(self, group: _Group) -> dict[GVR, frozenset[tuple[str, str]]]:
        """The namespaces and names of objects, by their resources."""
        found: dict[GVR, set[tuple[str, str]]] = {}
        for document in group.documents:
            doc: Tree = dict(document)
            served = self._server.catalog.by_kind(doc["apiVersion"], doc["kind"])
            if served is not None:
                key = doc["metadata"].get("namespace", ""), doc["metadata"]["name"]
                found.setdefault(served.storage, set()).add(key)
        return {gvr: frozenset(keys) for gvr, keys in found.items()}

    def plan(self, group: _Group, *, least_s: float = 0.0) -> None:
        """Plan a check at the next time of the group."""
        if group.due:
            return
        group.due = True
        now_s = self._clock.monotonic()
        at_s = max(now_s + least_s, group.free_s)
        if group.interval_s:
            times = math.floor((at_s - self._began_s) / group.interval_s) + 1
            at_s = self._began_s + times * group.interval_s
        self._clock.call_later(at_s - now_s, lambda: self._start(group))

    def _start(self, group: _Group) -> None:
        task = asyncio.ensure_future(self._check(group))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _check(self, group: _Group) -> None:
        group.due = False
        try:
            await create_missing(self._server, [self._dated(each) for each in group.documents])
            group.free_s = self._clock.monotonic() + group.rest_s
            for document in group.documents if group.restores_changes else ():
                await self._restore(dict(document))
        except BootstrapError as error:  # such as in a namespace that is being deleted
            _log.warning(
                "Unable to restore the server's own objects, will retry", extra={"fields": {"err": str(error)}}
            )
            self.plan(group, least_s=_RETRY_S)

    def _dated(self, document: Doc) -> Doc:
        """The document with the current date, if it has one."""
        doc: Tree = dict(document)
        return (
            {**doc, "data": {"since": f"{self._clock.now():%Y-%m-%d}"}} if doc["metadata"]["name"] == TRACKING else doc
        )

    async def _restore(self, doc: Tree) -> None:
        """Restore the spec of a FlowSchema or PriorityLevelConfiguration, unless its annotation keeps changes. Raises
        BootstrapError."""
        served = self._server.catalog.by_kind(doc["apiVersion"], doc["kind"])
        name: str = doc["metadata"]["name"]
        stored = self._server.core.store.get(served.storage, "", name) if served is not None else None
        if served is None or stored is None:
            return
        known: Tree = stored.copy()
        annotations: Tree = known["metadata"].get("annotations") or {}
        said = parse_bool(annotations.get(_AUTO_UPDATE, ""))
        updates = name in _MANDATORY or (known["metadata"].get("generation") == 1 if said is None else said)
        wanted = known | ({"spec": _kept(doc, known)} if updates else {})
        if said != updates:
            wanted["metadata"] = {
                **known["metadata"], "annotations": {**annotations, _AUTO_UPDATE: str(updates).lower()}
            }  # fmt: skip
        if wanted == known:
            return
        gvr = served.info.gvr
        request = Request("PUT", gvr.path("", name), FLOWS, HEADERS, codec.encode(wanted))
        answer = await self._server.handle_as(SYSTEM, request)  # one that changes nothing writes nothing
        if isinstance(answer, Response) and answer.status not in (200, 404, 409):
            raise BootstrapError(f"{gvr.path('', name)}: {from_response(answer)}")


class _Listener:
    def __init__(self, upkeep: Upkeep, group: _Group, keys: frozenset[tuple[str, str]]) -> None:
        self._upkeep = upkeep
        self._group = group
        self._keys = keys

    def __call__(self, event: Event) -> None:
        stored = event.stored
        if (stored.namespace, stored.name) not in self._keys:
            return
        if event.type == "DELETED" or (event.type == "MODIFIED" and self._group.interval_s):
            self._upkeep.plan(self._group)


def _groups(documents: Sequence[Doc]) -> list[_Group]:
    docs: list[Tree] = [dict(each) for each in documents]
    of_service = [each for each in docs if each["metadata"]["name"] == "kubernetes" and each["kind"] in _OF_SERVICE]
    return [
        _Group([each for each in docs if each["kind"] == "Namespace"], 60.0),
        _Group(list(of_service), 10.0),
        _Group([each for each in docs if each["kind"] in _FLOW_KINDS], 60.0, restores_changes=True),
        _Group([each for each in docs if each["metadata"]["name"] == "extension-apiserver-authentication"], 0.0),
        _Group([each for each in docs if each["metadata"]["name"] == TRACKING], 0.0, rest_s=1800.0),
    ]


_OF_SERVICE = frozenset(("Service", "Endpoints", "EndpointSlice"))


def _kept(doc: Tree, known: Tree) -> Tree:
    """The spec of the document, with the shares of an exempt level, which are the operator's."""
    spec: Tree = dict(doc["spec"])
    exempt = known["spec"].get("exempt")
    return {**spec, "exempt": exempt} if spec.get("type") == "Exempt" and exempt is not None else spec
