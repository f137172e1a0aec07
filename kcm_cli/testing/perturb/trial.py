"""One run of a scenario with an operator: a reference, or one in which something goes wrong at a point."""

import asyncio
import re
import threading
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from typing import Any

from kcm_cli.api.resource import GVR
from kcm_cli.machinery import codec
from kcm_cli.rest.transport import Response
from kcm_cli.sandbox.apiserver import errors as api_errors
from kcm_cli.sandbox.apiserver.entry.entrance import Answer, Asked, Proceed, as_json
from kcm_cli.sandbox.apiserver.entry.fault import Fault
from kcm_cli.sandbox.apiserver.store import Event
from kcm_cli.sandbox.apiserver.types import ApiError, Dropped, RequestInfo
from kcm_cli.sandbox.hosted import HostedSandbox
from kcm_cli.sandbox.operators import Operator, OperatorError, Program
from kcm_cli.sandbox.snapshots import LEASES, Snapshot
from kcm_cli.sandbox.warp import Stalled
from kcm_cli.testing.perturb.points import Point, Spot
from kcm_cli.testing.perturb.record import Record
from kcm_cli.testing.perturb.states import UNCOMPARED, State, counts_above, cut, differences, name_of, plain, state_of
from kcm_cli.testing.perturb.taken import Taken, has
from kcm_cli.testing.perturb.ties import Words, untied, words_of

_WRITES = frozenset({"create", "update", "patch", "delete", "deletecollection"})
BLIND_S = 30.0
"""How long, in the cluster's time, an operator sees nothing new."""
QUIET_S = 600.0
_IDLE_S, _LIMIT_S = 70.0, 1800.0
"""In the cluster's time: a reference has settled after so long without a change; nothing settles after so long."""
_REAL_IDLE_S, _REAL_LIMIT_S, _REAL_STEP_S = 1.5, 15.0, 0.05
"""The same of operators that live in real time."""
_LEAP_S = 10.0
"""In the cluster's time: how often one looks whether the operator has ended."""
_LONGEST_LEASE_S = 180.0
"""In real time: for a leader that was killed one waits no longer than this, whatever its Lease says."""
_REAL_CALM_S = 0.5
"""In real time: one that was perturbed and has done its work is quiet after so long without a change."""
_REAL_LOOKING_S = 4.0
"""In real time: one that goes on reading has settled after so long without a write."""
_START_S, _REAL_START_S, _POLLS_S = 10.0, 30.0, 1.0
"""In real time: how long an operator may take to open a watch (a process on a busy machine longer), and one that only
asks now and then."""
_EXTRA_WRITES = 5
_SEEING = frozenset({"crash", "lost", "refused", "conflict"})
"""Kinds that leave an operator what there is to see: with an old view it may write what was right then."""
_STARTS, _QUIET_STEPS = 20, 10
_VERSION = re.compile(rb'"resourceVersion"\s*:\s*"[^"]')
_TOLD, _OFTEN, _LOST = 40, 3, 5

_WHOLE = "what is made of several objects has to wait until all of them are listed"


class Perturbed(AssertionError):
    """An operator did not stand a perturbation; the text is the story."""


class Trial:
    """See the module. ``operator`` starts the operator, ``settle`` waits until it has done its work, ``finish`` judges.

    base: what was there before. namespace: of the scenario, whose name differs from run to run.
    """

    def __init__(
        self,
        sandbox: HostedSandbox,
        base: Snapshot,
        namespace: str = "",
        point: Point | None = None,
        reference: Record | None = None,
    ) -> None:
        self.sandbox = sandbox
        self.namespace = namespace
        self.point = point
        self.record = Record()
        self.fired = False
        self._base = base
        self._reference = reference
        self._operators: list[Operator] = []
        self._users: set[str] = set()
        self._watched: set[tuple[str, str]] = set()
        self._read: set[tuple[str, str]] = set()
        self._terminating: dict[str, int] = {}
        self._gone: tuple[int, str] | None = None
        self._lost = b""
        self._arrived: Counter[tuple[str, str, str]] = Counter()
        self._events: Counter[tuple[str, str, str]] = Counter()
        self._unclaimed: dict[int, tuple[str, Event]] = {}
        self._taken = Taken()
        self._writing = 0
        self._activity = self._looks = 0
        self._active_at = 0.0
        self._latest = ""
        self._asked: Counter[str] = Counter()
        self._judged: tuple[tuple[int, int], list[str]] | None = None
        self._quiet = False
        self._story: list[str] = []
        self._restart: threading.Thread | None = None
        self._starts = 0
        self._finished = False
        self._polls = False
        self._timers: list[asyncio.TimerHandle] = []
        self._store = sandbox.running.store
        self._settled = 0
        self._blind_until = 0.0
        sandbox.run(self._attach)

    # -- for the scenario

    def operator(
        self, program: Program, *, user: str = "operator", groups: Sequence[str] = ("system:masters",)
    ) -> Operator:
        """Start the operator under test. Call it once for each operator; their users need different names.

        Raises OperatorError where it ends at once, OSError for a command that cannot be run, ValueError for a user that
        another one has.
        """
        if user in self._users:
            raise ValueError(f"an operator is the user {user!r} already: give this one another name, as user='second'")
        one = self.sandbox.operator(program, user=user, groups=groups)
        with ExitStack() as undo:
            self._users.add(user)
            undo.callback(self._users.discard, user)
            one.start()
            undo.pop_all()
        self._operators.append(one)
        self._await_watch(one)
        return one

    def _await_watch(self, one: Operator) -> None:
        """Let it get ready: it has a watch open, or has had some time for that. Raises OperatorError."""
        began = time.monotonic()
        deadline = began + (_START_S if one.virtual else _REAL_START_S)
        self._polls = False
        while time.monotonic() < deadline and not self.sandbox.run(lambda: self._watches(one.user)):
            one.check()
            if self._polls and time.monotonic() > began + _POLLS_S:
                return
            if one.virtual:
                self._advance(0.1)
            time.sleep(_REAL_STEP_S / 10)

    def _watches(self, user: str) -> bool:
        return any(watch.asked.user.name == user for watch in self.sandbox.running.api.open_watches())

    def __call__(
        self, program: Program, *, user: str = "operator", groups: Sequence[str] = ("system:masters",)
    ) -> Operator:
        """The same as ``operator``."""
        return self.operator(program, user=user, groups=groups)

    @property
    def started(self) -> bool:
        """Whether there is an operator."""
        return bool(self._operators)

    def settle(self) -> None:
        """Let time pass until the operator has done its work.

        In a reference that is when nothing has changed for a while; under perturbation when the cluster is as it was
        then. Raises Perturbed where it does not get there, OperatorError for an operator that ends in a reference,
        ValueError where none was started.
        """
        if not self.started:
            raise ValueError("no operator was started: call kcm_operator(main), or trial.operator(main), first")
        if self._reference is None:
            if not self._rest():
                self.record.restless.add(self._latest)
            self._checkpoint()
            return
        passed = 0.0
        while wrong := self._wrong(self._reference, len(self.record.checkpoints)):
            if passed >= self._limit_s:
                raise Perturbed(self.story([f"it was not as it should be after {self._passed(passed)}:", *wrong]))
            passed += self._step(1.0 if passed < 10 else _LEAP_S if passed < 200 else 60.0)
        self._checkpoint()
        self._story.append("(all was as it should be)")

    def _checkpoint(self) -> None:
        self.record.checkpoints.append(self._state())
        if self._reference is None:
            self.record.words.append(self._words())
        self._settled = self.sandbox.run(lambda: self._store.revision)

    def finish(self) -> None:
        """Judge the run. Raises Perturbed."""
        if self._finished or not self.started:
            return
        self._finished = True
        self.settle()
        self._joined()
        if self._reference is not None:
            self._calm()
        self._quiet = True
        if self._virtual:
            self._advance(QUIET_S)
        else:
            for _ in range(_QUIET_STEPS):
                self._advance(QUIET_S / _QUIET_STEPS)
                time.sleep(_REAL_STEP_S)
        self._checkpoint()
        if self._reference is not None and (wrong := list(self._faults(self._reference))):
            raise Perturbed(self.story(wrong))

    def stop(self) -> None:
        """End the operators. May be called at any time, twice."""
        self._joined()
        for one in self._operators:
            one.kill()
        self.sandbox.run(self._detach)

    def story(self, wrong: Sequence[str]) -> str:
        """What happened, for people."""
        point = self.point
        head = f"the operator {point.describe()}; then:" if point else "without perturbation:"
        lines = [head, *(f"  {line}" for line in wrong)]
        if point is not None and not self.fired:
            lines.append("  (the point did not come up in this run)")
        lines.append("what the operator did:")
        lines += [f"  {line}" for line in _around(self._story)]
        if point is not None:
            lines.append(f"to mend it: {point.advice()}")
            lines.append(f"again: pytest --kcm-perturb --kcm-replay '{point}'")
        return "\n".join(lines)

    # -- time

    @property
    def _virtual(self) -> bool:
        return all(one.virtual for one in self._operators)

    @property
    def _limit_s(self) -> float:
        return _LIMIT_S if self._virtual else _REAL_LIMIT_S + self.sandbox.run(self._lease_s)

    def _lease_s(self) -> float:
        """For how long one that was killed may still be taken for the leader."""
        leases: Any = [one.doc for one in self._store.list(LEASES) if self._base.covers(LEASES, one)]
        longest = max((one["spec"].get("leaseDurationSeconds") or 0 for one in leases), default=0)
        return min(float(longest), _LONGEST_LEASE_S)

    def _passed(self, passed: float) -> str:
        return f"{passed:.0f} s of the cluster's time" if self._virtual else f"{passed:.0f} s"

    def _rest(self) -> bool:
        """Wait until nothing changes any more; False where that does not come."""
        if self._virtual:
            return self._await_idle(_IDLE_S)
        passed = still = unlooked = 0.0
        idle = _REAL_IDLE_S
        while (still < idle or unlooked < idle) and still < max(idle, _REAL_LOOKING_S) and passed < self._limit_s:
            before, looks = self._activity, self._looks
            took = self._step(0.0)
            passed += took
            still = still + took if before == self._activity else 0.0
            unlooked = unlooked + took if looks == self._looks else 0.0
        return passed < self._limit_s

    def _calm(self) -> None:
        """All may be as it should be before the operator knows of it: it sees again, and does what it then has to."""
        self._advance(max(0.0, self._blind_until - self.sandbox.run(self.sandbox.clock.monotonic)))
        self._await_idle(_IDLE_S if self._virtual else _REAL_CALM_S)

    def _await_idle(self, idle: float) -> bool:
        """Wait until nothing has changed for so long, in the operators' time; False where that does not come."""
        passed = still = 0.0
        while still < idle and passed < self._limit_s:
            before = self._activity
            took = self._step(min(_LEAP_S, idle - still))
            passed += took
            still = still + took if before == self._activity else self._inactive_s()
        return still >= idle

    def _inactive_s(self) -> float:
        return self.sandbox.run(self.sandbox.clock.monotonic) - self._active_at if self._virtual else 0.0

    def _acted(self, what: str) -> None:
        self._activity += 1
        self._latest = what
        self._active_at = self.sandbox.clock.monotonic()

    def _step(self, seconds: float) -> float:
        """Let some time pass, so much in the cluster's time; how much it was in the operators' time."""
        self._joined()
        self._revive()
        if not self._virtual:
            start = time.monotonic()
            time.sleep(_REAL_STEP_S)
            self._advance(1.0)
            return time.monotonic() - start
        self._advance(seconds)
        return seconds

    def _advance(self, seconds: float) -> None:
        """Let time pass in the cluster. Raises Perturbed for an operator that never waits."""
        self._asked.clear()
        try:
            self.sandbox.advance(seconds)
        except Stalled as error:
            often = [f"{count} times {what}" for what, count in self._asked.most_common(_OFTEN)]
            asked = f"it asked {', '.join(often)}" if often else "it asked nothing"
            wrong = [f"no time passed, for it never waits; meanwhile {asked}", f"({error})"]
            raise Perturbed(self.story(wrong)) from None

    def _joined(self) -> None:
        if self._restart is not None:
            self._restart.join()
            self._restart = None

    def _revive(self) -> None:
        """Start what has ended by itself, as a kubelet would."""
        for one in self._operators:
            try:
                one.check()
            except OperatorError as error:
                self._starts += 1
                if self._reference is None or self._starts > _STARTS:
                    raise
                self._story.append(f"({error}; it was restarted)")
                one.restart()

    # -- the verdict

    def _state(self) -> State:
        return self.sandbox.run(lambda: state_of(self._store, self._base, self.namespace))

    def _words(self) -> Words:
        return self.sandbox.run(lambda: words_of(self._store, self._base, self.namespace))

    def _wrong(self, reference: Record, index: int) -> list[str]:
        """What is not as it was at a checkpoint of the reference, or at its last."""
        index = min(index, len(reference.checkpoints) - 1) % len(reference.checkpoints)
        now = index, self._activity
        if self._judged is None or self._judged[0] != now:
            wrong = list(differences(reference.checkpoints[index], self._state()))
            self._judged = now, wrong or list(untied(reference.ties[index], self._words()))
        return self._judged[1]

    def _faults(self, reference: Record) -> list[str]:
        wrong = list(self._wrong(reference, -1))
        wrong += self._vanished(reference)
        settled = {key for state in reference.checkpoints for key in state}
        for key, count, once in counts_above(reference.made, self.record.made):
            if key not in settled and count <= 3 * once + _EXTRA_WRITES:
                continue  # what is never there when all is done, as a lock, may be made once more
            wrong.append(f"{key} was made {count} times, and {once} without")
        for key, count, once in counts_above(reference.written, self.record.written):
            if count > 3 * once + _EXTRA_WRITES:
                wrong.append(f"{count} times {key}, and {once} without")
        for key, count, once in counts_above(reference.late, self.record.late):
            wrong.append(
                f"it was not quiet: {count} times {key} in ten minutes in which nothing happened, and {once} without"
            )
        return wrong

    def _vanished(self, reference: Record) -> list[str]:
        """What had settled and had to stay, and was not there for a while; the first few."""
        if self.point is None or self.point.kind not in _SEEING:
            return []
        known = {(key, entry) for _, key, entry in reference.taken}
        found = []
        for checkpoint, key, entry in sorted(self.record.taken):
            around = reference.checkpoints[checkpoint - 1 : checkpoint + 1] if checkpoint else []
            if around and (key, entry) not in known and all(has(state, key, entry) for state in around):
                found.append(f"{key}: {cut('.'.join(entry))} was taken away for a while; {_WHOLE}")
        left = len(found) - _LOST
        return [*found[:_LOST], *([f"… and {left} entries more"] if left > 0 else [])]

    # -- on the sandbox's thread

    def _attach(self) -> None:
        self._settled = self._store.revision
        self.sandbox.running.api.interceptors.append(self._intercept)
        self._store.observers.append(self._observe)

    def _detach(self) -> None:
        for timer in self._timers:
            timer.cancel()
        api = self.sandbox.running.api
        if self._intercept in api.interceptors:
            api.interceptors.remove(self._intercept)
            self._store.observers.remove(self._observe)

    async def _intercept(self, asked: Asked, proceed: Proceed) -> Answer:
        info = asked.info
        if asked.user.name not in self._users or not info.is_resource:
            return await proceed(asked.request, None)
        self._polls = True
        self._asked[f"{info.verb} of {api_errors.qualified(info.group, info.plural)}"] += 1
        if self._reference is None and not self._virtual:
            self._looks += 1  # it may be at work, even if it only looks
        if info.verb == "watch":
            self._watched.add((info.group, info.plural))
        if info.verb not in _WRITES:
            self._read.add((info.group, info.plural))
        if info.verb not in _WRITES or info.plural in UNCOMPARED:
            return await proceed(asked.request, None)
        spot = self._arrival(asked)
        hit = self.point is not None and not self.fired and not self._quiet and self.point.spot == spot
        kind = self.point.kind if self.point is not None and hit else ""
        self._acted(f"{spot.verb} of {spot.resource} {spot.name}")
        if kind in ("conflict", "refused"):
            self.fired = True
            error = _refusal(kind, info)
            self._story.append(f"{spot.describe()}: {error.code}, PERTURBED ({kind})")
            raise error
        before = self._store.revision
        self._writing += 1
        try:
            answer = await proceed(asked.request, None)
            self._answered(asked, spot, answer)
        except ApiError as error:
            self._story.append(f"{spot.describe()}: {error.code}")
            raise
        except Dropped:  # from a run that was killed
            self._arrived[spot.verb, spot.resource, spot.name] -= 1
            raise
        finally:
            self._writing -= 1
            if not self._writing:
                self._unclaimed.clear()
        if kind:
            self.fired = True
            self._story[-1] += f", PERTURBED ({kind})"
            if kind == "lost":
                self._lost = asked.request.body
            else:
                self._crash(asked.user.name)
            self._show_older(kind, asked.user.name, before)
            raise Dropped(effect=True)
        return answer

    def _show_older(self, kind: str, user: str, before: int) -> None:
        """What one that starts anew is shown for a while. before: the revision before its last write."""
        seen = {"stale": before, "older": self._settled}.get(kind)
        if kind == "terminating" and self._gone is not None:
            seen, name = self._gone
            self._story.append(f"({name}, which is gone, is shown to it as it was when it was being deleted)")
        if seen is not None:
            self._blind_until = self.sandbox.clock.monotonic() + BLIND_S
            self.sandbox.running.api.faults.add(Fault("stale", user=user, revision=seen, for_s=BLIND_S))

    def _arrival(self, asked: Asked) -> Spot:
        info = asked.info
        resource = api_errors.qualified(info.group, info.plural)
        resource = f"{resource}/{info.subresource}" if info.subresource else resource
        key = info.verb, resource, self._name(asked)
        self._arrived[key] += 1
        return Spot(*key, self._arrived[key])

    def _name(self, asked: Asked) -> str:
        info = asked.info
        if info.verb == "create" and not info.name:
            try:
                doc: Any = codec.decode_doc(as_json(asked.request.body))
            except codec.DecodeError:
                doc = {}
        else:
            served = self.sandbox.running.api.catalog.find(info.group, info.version, info.plural)
            stored = self._store.get(served.storage, info.namespace, info.name) if served is not None else None
            doc = stored.doc if stored is not None else {"metadata": {"name": info.name}}
        return name_of(doc if isinstance(doc, dict) else {}, info.namespace, self.namespace)

    def _answered(self, asked: Asked, spot: Spot, answer: Answer) -> None:
        self._story.append(f"{spot.describe()}: {answer.status}")
        if answer.status in (409, 422) and self._lost and self._lost == asked.request.body:
            self._story.append("(that was the request again whose answer was lost: its own change is in its way)")
        if answer.status >= 400:
            return
        if not self._quiet:
            self._note_point(asked, spot)
        if self._effective(answer):
            key = f"{spot.verb} of {spot.resource} {spot.name}"
            self.record.written[key] += 1
            if self._quiet:
                self.record.late[key] += 1

    def _note_point(self, asked: Asked, spot: Spot) -> None:
        self.record.writes.append(spot)
        if asked.info.verb in ("update", "patch") and _VERSION.search(as_json(asked.request.body)):
            self.record.conflicting.append(spot)
        if self._gone is not None:
            self.record.afterwards.append(spot)

    def _effective(self, answer: Answer) -> bool:
        """Whether it has changed something; what cannot be read counts as a change."""
        if not isinstance(answer, Response):
            return True
        try:
            doc: Any = codec.decode_doc(as_json(answer.body))
            revision = int(doc["metadata"]["resourceVersion"])
        except (codec.DecodeError, LookupError, TypeError, ValueError):
            return True
        if (known := self._unclaimed.pop(revision, None)) is None:
            return False
        self._note_taken(*known)
        return True

    def _note_taken(self, name: str, event: Event) -> None:
        """Note what a write of the operator has taken away from an object, or put back."""
        if event.type != "MODIFIED" or event.previous is None or "*" in name:
            return
        before, after = (plain(one.doc, self.namespace) for one in (event.previous, event.stored))
        self.record.taken |= self._taken.put_back(name, before, after, len(self.record.checkpoints))

    def _observe(self, gvr: GVR, event: Event) -> None:
        if gvr.plural in UNCOMPARED:
            return
        stored = event.stored
        resource = api_errors.qualified(gvr.group, gvr.plural)
        name = name_of(stored.doc, stored.namespace, self.namespace)
        self._acted(f"{event.type} {resource} {name}")
        if self._writing:
            self._unclaimed[event.revision] = f"{resource} {name}", event
        if event.type == "ADDED" and "*" not in name:
            self.record.made[f"{resource} {name}"] += 1
        if (gvr.group, gvr.plural) in self._read:
            self._ends(event, f"{resource} {name}")
        if (gvr.group, gvr.plural) not in self._watched or self._quiet:
            return
        key = event.type, resource, name
        self._events[key] += 1
        spot = Spot(*key, self._events[key])
        self.record.seen.append(spot)
        point = self.point
        if point is not None and not self.fired and point.spot == spot and point.kind in ("stale", "missed"):
            self.fired = True
            self._story.append(f"({spot.describe()}: not seen by it, PERTURBED)")
            for user in self._users:
                self._blind(user, gvr, event.revision - 1)

    def _ends(self, event: Event, name: str) -> None:
        """Note from when on an object was terminating that has gone."""
        metadata: Any = event.stored.doc["metadata"]
        uid = metadata["uid"]
        if event.type == "DELETED":
            since = self._terminating.pop(uid, None)
            self._gone = self._gone if since is None else (since, name)
        elif metadata.get("deletionTimestamp"):
            self._terminating.setdefault(uid, event.revision)

    def _blind(self, user: str, gvr: GVR, revision: int) -> None:
        faults = self.sandbox.running.api.faults
        self._blind_until = self.sandbox.clock.monotonic() + BLIND_S
        if self.point is not None and self.point.kind == "stale":
            faults.add(Fault("stale", user=user, revision=revision, for_s=BLIND_S))
            return
        resource = api_errors.qualified(gvr.group, gvr.plural)
        stale = faults.add(Fault("stale", user=user, resources=(resource,), revision=revision))

        def see() -> None:
            faults.add(Fault("expire", user=user, resources=(resource,), revision=self._store.revision))
            faults.remove(stale.number)
            self._story.append("(its watch got 410)")

        self._timers.append(self.sandbox.clock.call_later(BLIND_S, see))

    def _crash(self, user: str) -> None:
        one = next(each for each in self._operators if each.user == user)
        one.sever()
        holding = ExitStack()
        holding.enter_context(self.sandbox.loop.hold())

        def restart() -> None:
            try:
                one.restart()
                self._story.append("(it was restarted)")
                if not one.virtual:  # the cluster's time goes on faster, and would be past what it is to see
                    with suppress(OperatorError):
                        self._await_watch(one)
            finally:
                self.sandbox.loop.call_soon_threadsafe(holding.close)

        thread = threading.Thread(target=restart, name="restart of the operator", daemon=True)
        thread.start()
        self._restart = thread  # whoever joins it may do so now


def _around(story: Sequence[str]) -> list[str]:
    """At most ``_TOLD`` lines of the story: those around the perturbation, and how many were left out."""
    at = next((index for index, line in enumerate(story) if "PERTURBED" in line), 0)
    first = max(0, min(at - _TOLD // 2, len(story) - _TOLD))
    told = list(story[first : first + _TOLD])
    left = len(story) - first - len(told)
    return [*([f"… {first} before"] if first else []), *told, *([f"… and {left} more"] if left else [])]


def _refusal(kind: str, info: RequestInfo) -> ApiError:
    if kind == "conflict":
        return api_errors.conflict(info.group, info.plural, info.name, _OUTDATED)
    return api_errors.internal("etcdserver: request timed out")


_OUTDATED = "the object has been modified; please apply your changes to the latest version and try again"
