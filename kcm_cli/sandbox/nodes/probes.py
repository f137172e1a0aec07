"""When the probes of a container change their results, because their commands find other files over time.

upstream: pkg/kubelet/prober/worker.go
"""

import math
from collections.abc import Iterator, Sequence

import msgspec
from msgspec.structs import replace

from kcm_cli.sandbox.nodes.expansion import expand
from kcm_cli.sandbox.programs.execution import Execution, cut
from kcm_cli.sandbox.programs.filesystem import There
from kcm_cli.sandbox.programs.signals import Stages
from kcm_cli.sandbox.programs.simulate import MOST_WORK, Environment, simulate
from kcm_cli.sandbox.views import ExecAction, Probe, SimulatedContainer

_Answers = Sequence[tuple[float, bool]]
"""Seconds, and whether a probe succeeds from then on."""


class Failure(msgspec.Struct, frozen=True):
    """A failed probe that is the first one or follows successful ones.

    at_s: seconds from the start of the run.
    """

    at_s: float
    probe: str
    text: str


class Probed(msgspec.Struct, frozen=True):
    """The results of a run's probes, in seconds from its start. None means that nothing is known in advance.

    started_s: when the startup probe succeeds. turns: when the container becomes ready and unready, alternately. fails:
    when a probe ends the run, and the probe's name.
    """

    started_s: float | None = None
    turns: tuple[float, ...] | None = None
    fails: tuple[float, str] | None = None
    failures: tuple[Failure, ...] = ()


class Verdicts(msgspec.Struct, frozen=True):
    """New probe results: whether the container is ready, or alive, and after how many seconds. None means no change."""

    ready: tuple[bool, float] | None = None
    alive: tuple[bool, float] | None = None


def after(container: SimulatedContainer, env: Environment, before: There, now: There) -> Verdicts:
    """Return the probe results that change when the files change from ``before`` to ``now``."""
    probes = container.readiness_probe, container.liveness_probe
    return Verdicts(*(_verdict(probe, env, before, now) for probe in probes))


def _verdict(probe: Probe | None, env: Environment, before: There, now: There) -> tuple[bool, float] | None:
    if probe is None:
        return None
    was, good = (succeeds(probe, env, each) for each in (before, now))
    if was == good or (good is None and probe.exec is not None):
        return None
    times = probe.failure_threshold if good is False else probe.success_threshold
    return good is not False, float(max(times, 1) * max(probe.period_seconds, 1))


def probed(container: SimulatedContainer, env: Environment, stages: Stages, scratch: tuple[str, ...] = ()) -> Probed:
    """Return the results of the probes whose commands are known.

    stages: the files over time; empty if they are unknown. scratch: folders that contain nothing else.
    """
    looks = _Looks(env, stages, scratch)
    startup, readiness, liveness = container.startup_probe, container.readiness_probe, container.liveness_probe
    begins_s, started_s, turns = 0.0, None, None
    fails: list[tuple[float, str]] = []
    failures: list[Failure] = []
    if startup is not None:
        begins_s = float(startup.initial_delay_seconds)
        if (answers := looks.answers(startup)) is not None:
            changes = list(_changes(startup, answers, 0.0, None))
            good_s = next((at for at, good in changes if good), math.inf)
            bad_s = next((at for at, good in changes if not good), math.inf)
            if bad_s < good_s:
                fails.append((bad_s, "startup"))
            failures += looks.failures("startup", startup, answers, 0.0)
            begins_s = started_s = good_s if good_s < bad_s else math.inf
    if readiness is not None and (answers := looks.answers(readiness)) is not None:
        turns = tuple(at for at, _ in _changes(readiness, answers, begins_s, False))
        failures += looks.failures("readiness", readiness, answers, begins_s)
    if liveness is not None and (answers := looks.answers(liveness)) is not None:
        fails += [(at, "liveness") for at, good in _changes(liveness, answers, begins_s, True) if not good][:1]
        failures += looks.failures("liveness", liveness, answers, begins_s)
    return Probed(started_s, turns, min(fails, default=None), tuple(failures))


def fails_after(probe: Probe, env: Environment, stages: Stages, scratch: tuple[str, ...]) -> float:
    """The seconds until a probe that has succeeded so far fails, with these files over time; infinite if it does not,
    or if that is unknown."""
    answers = _Looks(env, stages, scratch).answers(probe) if stages else None
    if answers is None:
        return math.inf
    changes = _changes(replace(probe, initial_delay_seconds=0), answers, 0.0, True)
    return next((at for at, good in changes if not good), math.inf)


def succeeds(probe: Probe, env: Environment, there: There, most_work: float = MOST_WORK) -> bool | None:
    """Whether a probe succeeds with these files, or None if that is unknown.

    A deleted file is not served over HTTP, either.
    """
    if probe.exec is None:
        asked = probe.http_get.path.partition("?")[0].strip("/") if probe.http_get is not None else ""
        lost = [each for each in there.gone if each.endswith(f"/{asked}") and not each.startswith("/tmp/")]
        return False if asked and lost else None
    known = _outcome(probe.exec, env, there, most_work)
    return None if known is None else known.code == 0 and known.lasts_s <= max(probe.timeout_seconds, 1)


def _outcome(action: ExecAction, env: Environment, there: There, most_work: float) -> Execution | None:
    words = [expand(word, env) or "" for word in action.command]
    return simulate(words, env, there, most_work=most_work)


class _Looks(msgspec.Struct, frozen=True):
    env: Environment
    stages: Stages
    scratch: tuple[str, ...]

    def answers(self, probe: Probe) -> _Answers | None:
        """Return the probe's results over time, or None if they are unknown. All of them together may cost as much as
        one program."""
        if probe.exec is None or not probe.exec.command:
            return None
        if not self.stages and any("/tmp" in word for word in probe.exec.command):
            return None  # the files are unknown
        stages = self.stages or _NOTHING
        found: list[tuple[float, bool]] = []
        for at_s, files, gone in stages:
            there = There(files, self.scratch, gone)
            good = succeeds(probe, self.env, there, MOST_WORK / len(stages))
            if good is None:
                return None
            if not found or found[-1][1] != good:
                found.append((at_s, good))
        return found

    def failures(self, name: str, probe: Probe, answers: _Answers, begins_s: float) -> Iterator[Failure]:
        """Yield the failures that are the first result or follow a success."""
        looks = replace(probe, failure_threshold=1, success_threshold=1)
        for at_s, good in _changes(looks, answers, begins_s, None):
            if not good:
                yield Failure(at_s, name, self._text(probe, at_s))

    def _text(self, probe: Probe, at_s: float) -> str:
        """The message of a probe that fails at this time."""
        stages = self.stages or _NOTHING
        _, files, gone = next(stage for stage in reversed(stages) if stage[0] <= at_s)
        action = probe.exec or ExecAction()
        known = _outcome(action, self.env, There(files, self.scratch, gone), MOST_WORK / len(stages))
        if known is None:
            return ""
        limit_s = max(probe.timeout_seconds, 1)
        if known.lasts_s > limit_s:
            return f'command timed out: "{" ".join(action.command)}" timed out after {limit_s}s'
        return cut("".join(each.text for each in known.output), _LONGEST_TEXT)


_NOTHING: Stages = ((0.0, {}, frozenset()),)
_LONGEST_TEXT = 10 << 10


def _changes(probe: Probe, answers: _Answers, begins_s: float, verdict: bool | None) -> Iterator[tuple[float, bool]]:
    """Yield when the result of a probe changes after its thresholds, and to what.

    begins_s: the probe does not run before this time.
    """
    period_s = float(max(probe.period_seconds, 1))
    first_s = max(float(probe.initial_delay_seconds), begins_s)
    if first_s == math.inf:
        return
    needed = {True: max(probe.success_threshold, 1), False: max(probe.failure_threshold, 1)}
    asked = 0
    for number, (_, good) in enumerate(answers):
        until_s = answers[number + 1][0] if number + 1 < len(answers) else math.inf
        times = math.inf if until_s == math.inf else max(0, math.ceil((until_s - first_s) / period_s)) - asked
        if verdict is not good and times >= needed[good]:
            verdict = good
            yield first_s + (asked + needed[good] - 1) * period_s, good
        if times < math.inf:
            asked += int(times)
