"""Intercepts requests between the operators under test and the API server: records them, and causes the
perturbation."""

import asyncio
import re
from collections import Counter
from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from kcm_cli.api.resource import GVR, group_resource
from kcm_cli.machinery import codec
from kcm_cli.rest.transport import Response, discard
from kcm_cli.sandbox.apiserver import errors as api_errors
from kcm_cli.sandbox.apiserver.entrance import Answer, Asked, Proceed, as_json
from kcm_cli.sandbox.apiserver.entry.fault import Fault
from kcm_cli.sandbox.apiserver.store import Event, Stored
from kcm_cli.sandbox.apiserver.types import ApiError, RequestInfo
from kcm_cli.serving.connection import Dropped
from kcm_cli.testing.perturb.host import Host, Measure, Subject
from kcm_cli.testing.perturb.kopf_flaws import KopfFlaws
from kcm_cli.testing.perturb.points import VERBS, Point, Spot
from kcm_cli.testing.perturb.record import Record
from kcm_cli.testing.perturb.states import OTHER_CLIENT, OVERTAKEN, generated_name, name_of, plain
from kcm_cli.testing.perturb.taken_back import Taken, numbers

_LAG_S, _BLIND_S = 1.0, 30.0
"""How long, in the cluster's time, an operator sees nothing new: at ``lag``, and at other points."""
_VAIN = 2
"""After so many writes of an object without effect, further ones are no activity, until something changes."""
_OF_REVIEWS = frozenset(("authentication.k8s.io", "authorization.k8s.io"))
"""API groups whose objects are not stored."""
_VERSION = re.compile(rb'"resourceVersion"\s*:\s*"[^"]')


class Interceptor:
    """The interceptor of one trial. Its methods run on the sandbox's thread.

    subjects: what is perturbed, by its user. record: the record of the run. story: the run as text for people, line
    by line. fired: whether the perturbation has happened. requests: the number of requests. asked: that number by verb
    and resource, since it was cleared. activity: the number of changes and of writes by operators. active_at: the
    cluster's time of the last of them. latest: its text. quiet: whether the quiet time at the end has begun. settled:
    the revision of the last checkpoint. kopf: what kopf itself loses.
    generated: all generated names. blind_until: when an operator sees new changes again, in the cluster's time.
    """

    def __init__(
        self, host: Host, namespace: str, point: Point | None, measure: Measure, crash: Callable[[str], None]
    ) -> None:
        self.subjects: dict[str, Subject] = {}
        self.record = Record()
        self.story: list[str] = []
        self.fired = self.quiet = False
        self.asked: Counter[str] = Counter()
        self.activity = self.requests = self.settled = 0
        self.active_at = self.blind_until = 0.0
        self.latest = ""
        self.kopf = KopfFlaws()
        self.generated: dict[str, str] = {}
        self._host = host
        self._measure = measure
        self._namespace = namespace
        self._point = point
        self._crash = crash
        self._store = host.server.store
        self._watched: set[tuple[str, str]] = set()
        self._read: set[tuple[str, str]] = set()
        self._own: set[str] = set()
        self._terminating: dict[str, int] = {}
        self._gone: tuple[int, str] | None = None
        self._lost = b""
        self._arrived: Counter[Spot] = Counter()
        self._events: Counter[tuple[str, str, str]] = Counter()
        self._unclaimed: dict[int, tuple[str, Event]] = {}
        self._vain: Counter[str] = Counter()
        self._taken = Taken()
        self._writing = 0
        self._timers: list[asyncio.TimerHandle] = []

    def attach(self) -> None:
        """Start to record requests and changes."""
        self.settled = self._store.revision
        for gvr in self._store.sizes():
            for stored in self._store.list(gvr):
                self._note_generated(stored)
        self._host.server.api.interceptors.append(self._intercept)
        self._store.observers.append(self._observe)

    def detach(self) -> None:
        """Stop recording. May be called twice."""
        for timer in self._timers:
            timer.cancel()
        api = self._host.server.api
        if self._intercept in api.interceptors:
            api.interceptors.remove(self._intercept)
            self._store.observers.remove(self._observe)

    async def _intercept(self, asked: Asked, proceed: Proceed) -> Answer:
        info = asked.info
        if asked.user.name not in self.subjects or not info.is_resource:
            return await proceed(asked.request, None)
        self.asked[f"{info.verb} of {group_resource(info.group, info.plural)}"] += 1
        self.requests += 1
        if info.verb == "watch":
            self._watched.add((info.group, info.plural))
        if info.verb not in VERBS:
            self._read.add((info.group, info.plural))
        if info.verb not in VERBS or info.plural in self._measure.uncompared:
            return await proceed(asked.request, None)
        spot = self._arrival(asked)
        hit = self._point is not None and not self.fired and not self.quiet and self._point.spot == spot
        kind = self._point.kind if self._point is not None and hit else ""
        what = spot.describe(counted=False)
        if self._vain[what] < _VAIN:
            self._acted(what)
        if not self.fired:
            self.kopf.arrived(asked, spot, perturbed=bool(kind))
        before = self._store.revision
        if kind:
            self._precede(kind, asked, spot)
        self._writing += 1
        try:
            answer = await proceed(asked.request, None)
            self._answered(asked, spot, answer)
        except ApiError as error:
            self.story.append(f"{self._who(asked)}{spot.describe()}: {error.code}")
            self._note_vain(spot, error.code)
            raise
        except Dropped:  # from a run that was killed
            self._forget(spot)
            raise
        finally:
            self._writing -= 1
            if not self._writing:
                self._unclaimed.clear()
        if kind and kind not in ("conflict", "lag"):
            self._follow(kind, asked, before)
            await discard(answer)
            raise Dropped(effect=True)
        return answer

    def _follow(self, kind: str, asked: Asked, before: int) -> None:
        """Do what happens instead of the answer. before: the revision before the write."""
        self.fired = True
        self.story[-1] += f", PERTURBED ({kind})"
        if kind == "lost":
            self._lost = asked.request.body
        else:
            self._crash(asked.user.name)
        self._show_older(kind, asked.user.name, before)

    def _precede(self, kind: str, asked: Asked, spot: Spot) -> None:
        """Do what happens before the request is handled. Raises ApiError or Dropped if it is not handled at all."""
        if kind == "refused":
            self.fired = True
            error = api_errors.internal("etcdserver: request timed out")
            self.story.append(f"{self._who(asked)}{spot.describe()}: {error.code}, PERTURBED ({kind})")
            raise error
        if kind == "unsent":
            self.fired = True
            self._forget(spot)
            self.story.append(f"{self._who(asked)}{spot.describe()}: not sent, PERTURBED ({kind})")
            self._crash(asked.user.name)
            raise Dropped(effect=False)
        if kind == "conflict":
            self._overtake(asked.info)
        if kind == "lag":
            self.fired = True
            self.story.append(f"(from {spot.describe()} on it sees nothing for a second, PERTURBED ({kind}))")
            self._hold(asked.user.name, self._store.revision, _LAG_S)

    def _overtake(self, info: RequestInfo) -> None:
        """Change the object before the operator's write of it, as another client does.

        The change is a new version. If the operator replaces an object that it has not created, it is an annotation,
        which has to remain.
        """
        found = self._stored(info)
        if found is None:
            return
        self.fired = True
        gvr, stored = found
        doc: Any = stored.copy()
        if self._replaces_foreign(info, stored):
            doc["metadata"]["annotations"] = {**(doc["metadata"].get("annotations") or {}), **OVERTAKEN}
        resource = group_resource(info.group, info.plural)
        name = name_of(doc, info.namespace, self._namespace, self.generated)
        self._store.update(gvr, info.namespace, info.name, doc, always=True)
        self.story.append(f"({resource} {name}: another client changes it, PERTURBED (conflict))")

    def _replaces_foreign(self, info: RequestInfo, stored: Stored) -> bool:
        return info.verb == "update" and not info.subresource and _metadata(stored)["uid"] not in self._own

    def _stored(self, info: RequestInfo) -> tuple[GVR, Stored] | None:
        """The object that a request names, with where it is stored."""
        served = self._host.server.api.catalog.find(info.group, info.version, info.plural)
        stored = self._store.get(served.storage, info.namespace, info.name) if served is not None else None
        return None if served is None or stored is None else (served.storage, stored)

    def _show_older(self, kind: str, user: str, before: int) -> None:
        """Serve an old state to a restarted operator for a while. before: the revision before its last write."""
        seen = {"stale": before, "older": self.settled}.get(kind)
        if kind == "terminating" and self._gone is not None:
            seen, name = self._gone
            self.story.append(f"({name}, which is gone, is shown to it as it was when it was being deleted)")
        if seen is not None:
            self._hold(user, seen, _BLIND_S)

    def _hold(self, user: str, revision: int, seconds: float) -> None:
        """Show nothing after a revision for a while."""
        self.blind_until = self._host.clock.monotonic() + seconds
        self._host.server.api.faults.add(Fault("stale", user=user, revision=revision, for_s=seconds))

    def _who(self, asked: Asked) -> str:
        return f"{asked.user.name}: " if len(self.subjects) > 1 else ""

    def _acted(self, what: str) -> None:
        self.activity += 1
        self.latest = what
        self.active_at = self._host.clock.monotonic()

    def _arrival(self, asked: Asked) -> Spot:
        info = asked.info
        resource = group_resource(info.group, info.plural)
        resource = f"{resource}/{info.subresource}" if info.subresource else resource
        first = Spot(info.verb, resource, self._name(asked), 1, self.subjects[asked.user.name].client_of(asked))
        self._arrived[first] += 1
        return replace(first, nth=self._arrived[first])

    def _forget(self, spot: Spot) -> None:
        """A write that was not carried out was not there."""
        self._arrived[replace(spot, nth=1)] -= 1

    def _name(self, asked: Asked) -> str:
        info = asked.info
        if info.verb == "create" and not info.name:
            try:
                doc: Any = codec.decode_doc(as_json(asked.request.body))
            except codec.DecodeError:
                doc = {}
        else:
            found = self._stored(info)
            doc = found[1].doc if found is not None else {"metadata": {"name": info.name}}
        return name_of(doc if isinstance(doc, dict) else {}, info.namespace, self._namespace, self.generated)

    def _answered(self, asked: Asked, spot: Spot, answer: Answer) -> None:
        self.story.append(f"{self._who(asked)}{spot.describe()}: {answer.status}")
        if answer.status in (409, 422) and self._lost and self._lost == asked.request.body:
            self.story.append("(that was the request again whose answer was lost: its own change is in its way)")
            self.kopf.refused_again(asked)
        if answer.status >= 400:
            self._note_vain(spot, answer.status)
            return
        if not self.quiet:
            self._note_point(asked, spot)
        if self._effective(asked.info, answer):
            key = spot.describe(counted=False)
            self.record.written[key] += 1
            if self.quiet:
                self.record.late[key] += 1
        else:
            self._note_vain(spot, answer.status)

    def _note_vain(self, spot: Spot, status: int) -> None:
        """Count writes without effect. After those that found all done, as of an operator that polls, it does not go
        on with its work."""
        what = spot.describe(counted=False)
        if status < 400 or (spot.verb, status) in (("create", 409), ("delete", 404)):
            self._vain[what] += 1
            if self.quiet and not self._measure.polls:
                self.record.late[what] += 1
        elif self.quiet:
            self.record.refused[what] += 1

    def _note_point(self, asked: Asked, spot: Spot) -> None:
        self.record.spots.writes.append(spot)
        info, found = asked.info, self._stored(asked.info)
        versioned = info.verb in ("update", "patch", "delete") and _VERSION.search(as_json(asked.request.body))
        if versioned or (found is not None and self._replaces_foreign(info, found[1])):
            self.record.spots.conflicting.append(spot)
        if self._gone is not None:
            self.record.spots.afterwards.append(spot)

    def _effective(self, info: RequestInfo, answer: Answer) -> bool:
        """Whether the write changed something; a review asks only. True if the answer cannot be parsed."""
        if info.group in _OF_REVIEWS:
            return False
        if not isinstance(answer, Response):
            return True
        try:
            doc: Any = codec.decode_doc(as_json(answer.body))
            revision = int(doc["metadata"]["resourceVersion"])
        except (codec.DecodeError, LookupError, TypeError, ValueError):
            return True
        if (known := self._unclaimed.pop(revision, None)) is None:
            return False
        name, event = known
        if event.type == "ADDED":
            self._own.add(_metadata(event.stored)["uid"])
        if event.previous is not None and event.type == "MODIFIED":
            before, after = (_metadata(one).get("annotations") or {} for one in (event.previous, event.stored))
            if OTHER_CLIENT in before and OTHER_CLIENT not in after:
                self.record.overwritten.append(name)
        self._note_taken(name, event)
        return True

    def _note_taken(self, name: str, event: Event) -> None:
        """Record entries of an object that the operator's write removed or restored, and the numbers it changed."""
        if event.type == "DELETED" or "*" in name:
            return
        after = plain(event.stored.doc, self._namespace, generated=self.generated)
        before = {}
        if event.previous is not None:
            before = plain(event.previous.doc, self._namespace, generated=self.generated)
        if event.previous is not None:
            self.record.taken |= self._taken.put_back(name, before, after, len(self.record.checkpoints))
        known = numbers(before)
        for path, number in numbers(after).items():
            if known.get(path) != number:
                self.record.numbers.setdefault((name, path), []).append(number)

    def _observe(self, gvr: GVR, event: Event) -> None:
        if gvr.plural in self._measure.uncompared:
            return
        stored = event.stored
        resource = gvr.group_resource
        self._note_generated(stored)
        name = name_of(stored.doc, stored.namespace, self._namespace, self.generated)
        self._vain.clear()
        self._acted(f"{event.type} {resource} {name}")
        if self._writing:
            self._unclaimed[event.revision] = f"{resource} {name}", event
        if event.type == "ADDED" and "*" not in name:
            self.record.made[f"{resource} {name}"] += 1
            self.record.made_in[len(self.record.checkpoints), f"{resource} {name}"] += 1
        if (gvr.group, gvr.plural) in self._read:
            self._ends(event, f"{resource} {name}")
        if (gvr.group, gvr.plural) not in self._watched or self.quiet:
            return
        key = event.type, resource, name
        self._events[key] += 1
        spot = Spot(*key, self._events[key])
        self.record.spots.seen.append(spot)
        point = self._point
        if point is not None and not self.fired and point.spot == spot and point.kind in ("stale", "missed"):
            self.fired = True
            self.story.append(f"({spot.describe()}: not seen by it, PERTURBED)")
            for user in self.subjects:
                self._blind(user, gvr, event.revision - 1)

    def _note_generated(self, stored: Stored) -> None:
        if stored.name not in self.generated and (name := generated_name(stored.doc, self.generated)):
            self.generated[stored.name] = name

    def _ends(self, event: Event, name: str) -> None:
        """Record since when a deleted object had been terminating."""
        metadata = _metadata(event.stored)
        uid = metadata["uid"]
        if event.type == "DELETED":
            since = self._terminating.pop(uid, None)
            self._gone = self._gone if since is None else (since, name)
        elif metadata.get("deletionTimestamp"):
            self._terminating.setdefault(uid, event.revision)

    def _blind(self, user: str, gvr: GVR, revision: int) -> None:
        faults = self._host.server.api.faults
        if self._point is not None and self._point.kind == "stale":
            self._hold(user, revision, _BLIND_S)
            return
        self.blind_until = self._host.clock.monotonic() + _BLIND_S
        resource = gvr.group_resource
        stale = faults.add(Fault("stale", user=user, resources=(resource,), revision=revision))

        def see() -> None:
            faults.add(Fault("expire", user=user, resources=(resource,), revision=self._store.revision))
            faults.remove(stale.number)
            self.story.append("(its watch got 410)")

        self._timers.append(self._host.clock.call_later(_BLIND_S, see))


def _metadata(stored: Stored) -> Any:
    return stored.doc["metadata"]
