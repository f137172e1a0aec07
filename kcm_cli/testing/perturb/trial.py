"""One run of a scenario: a reference, or a run with a perturbation at a point.

The engine is the same for operators on a sandbox (``OperatorTrial``) and for what else is perturbed on another host, as
kcm's own controllers on virtual time in its tests.
"""

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from typing import Any, TypeVar

from kcm_cli.api.well_known import MASTERS
from kcm_cli.component.clock import RealClock
from kcm_cli.sandbox.snapshots import LEASES, Snapshot
from kcm_cli.testing.operators import Operator, OperatorError, Program
from kcm_cli.testing.perturb.host import OPERATORS, Host, Measure, Subject
from kcm_cli.testing.perturb.interceptor import Interceptor
from kcm_cli.testing.perturb.points import Point
from kcm_cli.testing.perturb.random_words import untied, words_of
from kcm_cli.testing.perturb.record import Record
from kcm_cli.testing.perturb.states import GONE, counts_above, cut, differences, state_of
from kcm_cli.testing.perturb.taken_back import Entry, entries, went_back
from kcm_cli.testing.sandbox import Sandbox
from kcm_cli.testing.warp import Stalled

T = TypeVar("T")
_REAL = RealClock()

_QUIET_S = 600.0
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
_EXTRA_WRITES, _EXTRA_REFUSALS = 5, 4
_SEEING = frozenset({"crash", "unsent", "lost", "refused", "conflict"})
"""Kinds that leave an operator what there is to see: with an old view it may write what was right then."""
_STARTS, _QUIET_STEPS = 20, 10
_SHOWN_LINES, _OFTEN, _LOST = 40, 3, 5

_BLOCKING = "(if it waits with time.sleep, write it as def main(kubeconfig, stop): async def waits with await)"
_OVERWRITTEN = "what another client wrote between its read and its write was overwritten (an annotation is gone)"
_WHOLE = "what is made of several objects has to wait until all of them are listed"


class Perturbed(AssertionError):
    """The operator failed after a perturbation. The text is the story. note: what explains the failure, such as a flaw
    of the operator's framework, else empty."""

    def __init__(self, story: str, note: str = "") -> None:
        super().__init__(story)
        self.note = note


class Trial:
    """A trial. ``begin`` starts what is perturbed, ``settle`` waits until it has done its work, ``finish`` judges the
    run.

    base: the snapshot before the run. namespace: that of the scenario, whose name differs in every run.
    """

    def __init__(
        self,
        host: Host,
        base: Snapshot,
        namespace: str = "",
        point: Point | None = None,
        reference: Record | None = None,
        measure: Measure = OPERATORS,
    ) -> None:
        self.host = host
        self.namespace = namespace
        self.point = point
        self._base = base
        self._reference = reference
        self._measure = measure
        self._operators: list[Subject] = []
        self._interceptor = Interceptor(host, namespace, point, measure, self._crash)
        self._judged: tuple[tuple[int, int], list[str]] | None = None
        self._restarted: Callable[[], None] | None = None
        self._starts = 0
        self._finished = False
        host.run(self._interceptor.attach)

    @property
    def record(self) -> Record:
        """The record of the run so far."""
        return self._interceptor.record

    @property
    def fired(self) -> bool:
        """Whether the perturbation has happened. A run may not reach the point."""
        return self._interceptor.fired

    # -- for the scenario

    def begin(self, one: Subject) -> None:
        """Start what is perturbed.

        Raises OperatorError if it ends at once, OSError if its command cannot be run, ValueError if another one has its
        user.
        """
        user, subjects = one.user, self._interceptor.subjects
        if user in subjects:
            raise ValueError(f"an operator is the user {user!r} already: give this one another name, as user='second'")
        with ExitStack() as undo:
            subjects[user] = one
            undo.callback(subjects.pop, user)
            one.start()
            undo.pop_all()
        self._operators.append(one)
        self._await_watch(one)

    def _await_watch(self, one: Subject) -> None:
        """Wait until the operator has opened a watch, or for a maximum time.

        Raises OperatorError if it ends, in a reference. With a perturbation it is restarted later.
        """
        began = _REAL.monotonic()
        deadline = began + (_START_S if one.virtual else _REAL_START_S)
        requests = self._interceptor.requests
        while _REAL.monotonic() < deadline and not self.host.run(lambda: self._watches(one.user)):
            if not one.alive() and self.fired:
                return
            one.check()
            if self._interceptor.requests > requests and _REAL.monotonic() > began + _POLLS_S:
                return
            if one.virtual:
                self._advance(0.1)
            time.sleep(_REAL_STEP_S / 10)

    def _watches(self, user: str) -> bool:
        return any(watch.asked.user.name == user for watch in self.host.server.api.open_watches())

    @property
    def started(self) -> bool:
        """Whether an operator was started."""
        return bool(self._operators)

    def settle(self) -> None:
        """Let time pass until the operator has done its work.

        In a reference, that is when nothing has changed for a while. With a perturbation, it is when the cluster has
        the state of the reference. Raises Perturbed if it does not reach that state, OperatorError if an operator ends
        in a reference, ValueError if none was started.
        """
        if not self.started:
            raise ValueError("no operator was started: call kcm_operator(main), or trial.operator(main), first")
        if self._reference is None:
            if not self._rest():
                self.record.restless.add(self._interceptor.latest)
            self._checkpoint()
            return
        passed = 0.0
        while wrong := self._wrong(self._reference, len(self.record.checkpoints)):
            if passed >= self._limit_s:
                story = self.story([f"it was not as it should be after {self._passed(passed)}:", *wrong])
                raise Perturbed(story, self._explain(wrong))
            passed += self._step(1.0 if passed < 10 else _LEAP_S if passed < 200 else 60.0)
        self._checkpoint()
        self._interceptor.story.append("(all was as it should be)")

    def _checkpoint(self) -> None:
        self.record.checkpoints.append(self._read(state_of))
        if self._reference is None:
            self.record.words.append(self._read(words_of))
        self._interceptor.settled = self.host.run(lambda: self.host.server.store.revision)

    def finish(self) -> None:
        """Judge the run. Raises Perturbed."""
        if self._finished or not self.started:
            return
        self._finished = True
        self.settle()
        self._joined()
        if self._reference is not None:
            self._calm()
        self._interceptor.quiet = True
        if self._virtual:
            self._advance(_QUIET_S)
        else:
            for _ in range(_QUIET_STEPS):
                self._advance(_QUIET_S / _QUIET_STEPS)
                time.sleep(_REAL_STEP_S)
        self._checkpoint()
        if self._reference is not None and (wrong := list(self._faults(self._reference))):
            raise Perturbed(self.story(wrong), self._explain(wrong))

    def failed(self, error: Exception) -> Perturbed:
        """The failure of a scenario with a perturbation by an error of its own, such as a failed assertion."""
        differs = [] if self._reference is None else self._wrong(self._reference, len(self.record.checkpoints))
        line = f"{type(error).__name__}: {error}"
        return Perturbed(self.story([line]), self._explain(differs, line))

    def _explain(self, wrong: list[str], *errors: str) -> str:
        if self.point is None:
            return ""
        return self._interceptor.kopf.explain(wrong) or self._measure.explain(self.point, [*wrong, *errors])

    def stop(self) -> None:
        """Stop the operators. May be called at any time, and twice."""
        self._joined()
        for one in self._operators:
            one.kill()
        self.host.run(self._interceptor.detach)

    def story(self, wrong: Sequence[str]) -> str:
        """The story of the run, as text."""
        point = self.point
        head = f"the operator {point.describe()}; then:" if point else "without perturbation:"
        lines = [head, *(f"  {line}" for line in wrong)]
        if point is not None and not self.fired:
            lines.append("  (the point did not come up in this run)")
        lines.append("what the operator did:")
        lines += [f"  {line}" for line in _around(self._interceptor.story)]
        if point is not None:
            lines.append(f"to mend it: {point.advice()}")
            lines.append(f"again: {self._measure.again.format(point)}")
        return "\n".join(lines)

    # -- time

    @property
    def _virtual(self) -> bool:
        return all(one.virtual for one in self._operators)

    @property
    def _limit_s(self) -> float:
        return _LIMIT_S if self._virtual else _REAL_LIMIT_S + self.host.run(self._lease_s)

    def _lease_s(self) -> float:
        """The seconds for which a killed operator may still hold a lease."""
        leases: Any = [one.doc for one in self.host.server.store.list(LEASES) if self._base.covers(LEASES, one)]
        longest = max((one["spec"].get("leaseDurationSeconds") or 0 for one in leases), default=0)
        return min(float(longest), _LONGEST_LEASE_S)

    def _passed(self, passed: float) -> str:
        return f"{passed:.0f} s of the cluster's time" if self._virtual else f"{passed:.0f} s"

    def _rest(self) -> bool:
        """Wait until nothing changes any more. False if that does not happen."""
        if self._virtual:
            return self._await_idle(_IDLE_S)
        passed = still = unlooked = 0.0
        idle = _REAL_IDLE_S
        while (still < idle or unlooked < idle) and still < max(idle, _REAL_LOOKING_S) and passed < self._limit_s:
            before, requests = self._interceptor.activity, self._interceptor.requests
            took = self._step(0.0)
            passed += took
            still = still + took if before == self._interceptor.activity else 0.0
            unlooked = unlooked + took if requests == self._interceptor.requests else 0.0
        return passed < self._limit_s

    def _calm(self) -> None:
        """Wait until the operator sees new changes again, and has handled them."""
        self._advance(max(0.0, self._interceptor.blind_until - self.host.run(self.host.clock.monotonic)))
        self._await_idle(_IDLE_S if self._virtual else _REAL_CALM_S)

    def _await_idle(self, idle: float) -> bool:
        """Wait until nothing has changed for ``idle`` seconds of the operators' time. False if that does not happen."""
        passed = still = 0.0
        while still < idle and passed < self._limit_s:
            before = self._interceptor.activity
            took = self._step(min(_LEAP_S, idle - still))
            passed += took
            still = still + took if before == self._interceptor.activity else self._inactive_s()
        return still >= idle

    def _inactive_s(self) -> float:
        return self.host.run(self.host.clock.monotonic) - self._interceptor.active_at if self._virtual else 0.0

    def _step(self, seconds: float) -> float:
        """Let time pass, this much in the cluster's time. Returns the seconds in the operators' time."""
        self._joined()
        self._revive()
        if not self._virtual:
            start = _REAL.monotonic()
            time.sleep(_REAL_STEP_S)
            self._advance(1.0)
            return _REAL.monotonic() - start
        self._advance(seconds)
        return seconds

    def _advance(self, seconds: float) -> None:
        """Let time pass in the cluster. Raises Perturbed if an operator never waits."""
        self._interceptor.asked.clear()
        try:
            self.host.advance(seconds)
        except Stalled as error:
            often = [f"{count} times {what}" for what, count in self._interceptor.asked.most_common(_OFTEN)]
            asked = f"it asked {', '.join(often)}" if often else "it asked nothing"
            wrong = [f"no time passed, for it never waits; meanwhile {asked}", f"({error})", _BLOCKING]
            raise Perturbed(self.story(wrong)) from None

    def _joined(self) -> None:
        if self._restarted is not None:
            self._restarted()
            self._restarted = None

    def _revive(self) -> None:
        """Restart operators that have ended, as a kubelet would."""
        for one in self._operators:
            try:
                one.check()
            except OperatorError as error:
                self._starts += 1
                if self._reference is None or self._starts > _STARTS:
                    raise
                self._interceptor.story.append(f"({error}; {self._named(one)} was restarted)")
                one.restart()

    # -- the verdict

    def _read(self, read: Callable[..., T]) -> T:
        """What a function reads of the objects, on the loop of the cluster."""
        return self.host.run(
            lambda: read(
                self.host.server.store,
                self._base,
                self.namespace,
                measure=self._measure,
                generated=self._interceptor.generated,
            )
        )

    def _wrong(self, reference: Record, index: int) -> list[str]:
        """The differences from a checkpoint of the reference, or from its last one."""
        index = min(index, len(reference.checkpoints) - 1) % len(reference.checkpoints)
        now = index, self._interceptor.activity
        if self._judged is None or self._judged[0] != now:
            wrong = list(differences(reference.checkpoints[index], self._read(state_of)))
            self._judged = now, wrong or list(untied(reference.ties[index], self._read(words_of)))
        return self._judged[1]

    def _faults(self, reference: Record) -> list[str]:
        wrong = list(self._wrong(reference, -1))
        wrong += self._vanished(reference)
        wrong += self._backwards(reference)
        wrong += [f"{key}: {_OVERWRITTEN}" for key in dict.fromkeys(self.record.overwritten)]
        for key, count, once in counts_above(reference.made, self.record.made):
            if count <= 3 * once + _EXTRA_WRITES and not self._made_where_it_stays(reference, key):
                continue  # what is not there when all is done, as a lock, may be made once more
            wrong.append(f"{key} was made {count} times, and {once} without")
        for key, count, once in counts_above(reference.written, self.record.written):
            if count > 3 * once + _EXTRA_WRITES:
                wrong.append(f"{count} times {key}, and {once} without")
        for key, count, once in counts_above(reference.refused, self.record.refused):
            if count > once + _EXTRA_REFUSALS:
                wrong.append(f"{count} times {key} refused in ten minutes without a change, and {once} without")
        for key, count, once in counts_above(reference.late, self.record.late):
            wrong.append(
                f"it was not quiet: {count} times {key} in ten minutes in which nothing happened, and {once} without"
            )
        return wrong

    def _made_where_it_stays(self, reference: Record, key: str) -> bool:
        """Whether the object was created too often in a step after which it is there."""
        last = len(reference.checkpoints) - 1
        return any(
            count > reference.made_in[step, key] and reference.checkpoints[min(step, last)].get(key, [GONE]) != [GONE]
            for (step, name), count in self.record.made_in.items()
            if name == key
        )

    def _vanished(self, reference: Record) -> list[str]:
        """Entries that had settled and were missing for a while; the first few."""
        if self.point is None or self.point.kind not in _SEEING:
            return []
        known = {(key, entry) for _, key, entry in reference.taken}
        taken: dict[tuple[int, str], list[Entry]] = {}
        for checkpoint, key, entry in sorted(self.record.taken):
            if checkpoint and (key, entry) not in known:
                taken.setdefault((checkpoint, key), []).append(entry)
        found = []
        for (checkpoint, key), gone in taken.items():
            around = reference.checkpoints[checkpoint - 1 : checkpoint + 1]
            stays = set.intersection(*(entries(state, key) for state in around)) if around else set()
            cause = f"was taken away for a while; {_WHOLE}"
            found += [f"{key}: {cut('.'.join(entry))} {cause}" for entry in gone if entry in stays]
        left = len(found) - _LOST
        return [*found[:_LOST], *([f"… and {left} entries more"] if left > 0 else [])]

    def _backwards(self, reference: Record) -> list[str]:
        """Numbers that went back on their way, as the weight of a rollout; the first few."""
        if self.point is None or self.point.kind not in _SEEING:
            return []
        found = []
        for (key, path), steps in reference.numbers.items():
            if back := went_back(steps, self.record.numbers.get((key, path), ())):
                way = ", ".join(f"{step:g}" for step in steps[:_LOST])
                found.append(f"{key}: {cut('.'.join(path))} went back from {back[0]:g} to {back[1]:g}; without: {way}")
        return found[:_LOST]

    # -- restarts

    def _named(self, one: Subject) -> str:
        return one.user if len(self._operators) > 1 else "it"

    def _crash(self, user: str) -> None:
        one = next(each for each in self._operators if each.user == user)
        one.sever()

        def restart() -> None:
            one.restart()
            self._interceptor.story.append(f"({self._named(one)} was restarted)")
            if not one.virtual:  # the cluster's time goes on faster, and would be past what it is to see
                with suppress(OperatorError):
                    self._await_watch(one)

        self._restarted = self.host.aside(restart)


class OperatorTrial(Trial):
    """A trial of operators on a sandbox."""

    def __init__(
        self,
        sandbox: Sandbox,
        base: Snapshot,
        namespace: str = "",
        point: Point | None = None,
        reference: Record | None = None,
    ) -> None:
        super().__init__(sandbox, base, namespace, point, reference)
        self.sandbox = sandbox
        self._begun: list[Operator] = []

    def operator(self, program: Program, *, user: str = "operator", groups: Sequence[str] = (MASTERS,)) -> Operator:
        """Start an operator under test. Call it once for each operator; each needs another user.

        Raises OperatorError if it ends at once, OSError if the command cannot be run, ValueError if another operator
        has the user.
        """
        one = self.sandbox.operator(program, user=user, groups=groups)
        self.begin(one)
        self._begun.append(one)
        return one

    def check(self) -> None:
        """Raises OperatorError if an operator has failed since it was started, where nothing was perturbed."""
        for one in self._begun if self.point is None else ():
            if failure := one.failure():
                raise OperatorError(failure)

    def __call__(self, program: Program, *, user: str = "operator", groups: Sequence[str] = (MASTERS,)) -> Operator:
        """See ``operator``."""
        return self.operator(program, user=user, groups=groups)


def _around(story: Sequence[str]) -> list[str]:
    """At most ``_SHOWN_LINES`` lines of the story around the perturbation, with the numbers of omitted lines."""
    at = next((index for index, line in enumerate(story) if "PERTURBED" in line), 0)
    first = max(0, min(at - _SHOWN_LINES // 2, len(story) - _SHOWN_LINES))
    lines = list(story[first : first + _SHOWN_LINES])
    left = len(story) - first - len(lines)
    return [*([f"… {first} before"] if first else []), *lines, *([f"… and {left} more"] if left else [])]
