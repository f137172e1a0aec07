"""Records who wrote what, of the writes of a sandbox's clients, in its manager's record of causes.

The manager's controllers record their own writes. All others pass the API server: those of simulated parts, for the
sync that they are in, and those of other clients, by user and user agent. Each version that a request wrote is an
entry, also of other objects than its own, so that each can be joined by uid and version.

upstream: none
"""

from collections.abc import Iterator

import msgspec

from kcm_cli.api.resource import GVR
from kcm_cli.machinery.meta import object_key
from kcm_cli.rest.errors import from_response
from kcm_cli.rest.transport import Response
from kcm_cli.runtime.cause_ring import QUIET, CauseRing, Wrote, identity, refusal
from kcm_cli.runtime.causes import Due, Tick, Work, is_recorded, working
from kcm_cli.sandbox.apiserver.entrance import Asked, Exchange
from kcm_cli.sandbox.apiserver.store import Event
from kcm_cli.sandbox.apiserver.types import Tree

_WRITES = frozenset(("create", "update", "patch", "delete", "deletecollection"))
_VERBS = {"ADDED": "create", "MODIFIED": "update", "DELETED": "delete"}
_LEASES = "coordination.k8s.io"
_LONGEST_AGENT = 128


class ClientCauses:
    """Observes a server, on the loop of the controllers that fill the ring."""

    def __init__(self, ring: CauseRing) -> None:
        self._ring = ring

    def observe(self, exchange: Exchange) -> None:
        """See ``entrance.Observer``."""
        asked = exchange.asked
        if asked.info.verb not in _WRITES or not asked.info.is_resource or not isinstance(exchange.answer, Response):
            return
        if asked.resource in QUIET or asked.info.group == _LEASES:
            return
        work = working()
        if asked.resource == "nodes/status" and work is not None and _is_routine(work):
            return
        for entry in self._entries(exchange, exchange.answer, work):
            self._ring.wrote(entry)

    def _entries(self, exchange: Exchange, answer: Response, work: Work | None) -> Iterator[Wrote]:
        asked, is_known = exchange.asked, is_recorded()
        info, request = asked.info, asked.request
        query = dict(request.query)
        writes = list(_writes(exchange, recorded=is_known))
        failed = answer.status >= 400 and not is_known and "dryRun" not in query
        if not (writes or failed):
            return
        who = work.controller if work is not None and is_known else _who(exchange)
        head = work.noted() if work is not None else 0, exchange.at, self._ring.now() - exchange.at, who
        agent = asked.user_agent.partition(" (")[0][:_LONGEST_AGENT]
        client = agent, query.get("fieldManager") or agent.partition("/")[0]
        if failed:
            error = from_response(answer, request)
            place = info.verb, info.group, asked.resource, request.kind, object_key(info.namespace, asked.name)
            why = refusal(error.reason, error.message)
            yield Wrote(*head, *place, answer.status, "", "", request.reason, request.owner, why, *client)
        for one in writes:
            stored, doc = one.event.stored, _doc(one.event)
            place = one.verb, one.gvr.group, one.resource, doc.get("kind", ""), stored.key
            version = identity(doc["metadata"].get("uid", "")), str(stored.revision)
            yield Wrote(*head, *place, answer.status, *version, one.reason, request.owner, "", *client)


class _Write(msgspec.Struct, frozen=True):
    """A version that a request wrote, and how it is recorded."""

    gvr: GVR
    event: Event
    verb: str
    resource: str
    reason: str


def _writes(exchange: Exchange, *, recorded: bool) -> Iterator[_Write]:
    """What a request wrote. recorded: its sender records the answer, which shows the last version of a single object,
    and none of a collection."""
    asked = exchange.asked
    info = asked.info
    own = [number for number, (gvr, event) in enumerate(exchange.writes) if _is_own(asked, gvr, event)]
    answered = own[-1:] if recorded and info.verb != "deletecollection" else []
    seen = {exchange.writes[number][1].stored.key for number in answered}
    for number, (gvr, event) in enumerate(exchange.writes):
        if number in answered:
            continue
        is_first = event.stored.key not in seen
        seen.add(event.stored.key)
        if number not in own:
            reason = f"{info.verb} {asked.resource} {object_key(info.namespace, asked.name)}"
            yield _Write(gvr, event, _VERBS[event.type], gvr.plural, reason)
        else:
            said = asked.request.reason
            reason = said if is_first else f"{said}, {_part(event)}" if said else _part(event)
            yield _Write(gvr, event, info.verb.removesuffix("collection"), asked.resource, reason)


def _part(event: Event) -> str:
    """What a write was in a request with several of one object."""
    if event.type == "DELETED":
        return "removed"
    return "marked for deletion" if "deletionTimestamp" in _doc(event)["metadata"] else "continued"


def _is_own(asked: Asked, gvr: GVR, event: Event) -> bool:
    """Whether an object is what the request names. A creation may leave the name to the server."""
    if (gvr.group, gvr.plural) != (asked.info.group, asked.info.plural):
        return False
    return not asked.info.name or event.stored.name == asked.info.name


def _doc(event: Event) -> Tree:
    return event.stored.doc


def _who(exchange: Exchange) -> str:
    name = exchange.user.name
    return f"{name} (as {exchange.asked.user.name} said)" if exchange.is_impersonated else name


def _is_routine(work: Work) -> bool:
    """Whether only the clock asks for it, as for a node's heartbeat."""
    return all(isinstance(cause, Tick | Due) for cause in work.causes.found)
