"""How a program with traps reacts to SIGTERM."""

import math
from collections.abc import Callable, Sequence

import msgspec
from msgspec.structs import replace

from kcm_cli.sandbox.programs.filesystem import Files

Stages = Sequence[tuple[float, Files, frozenset[str]]]
"""Seconds, and the files and deleted files from then on."""


class Reaction(msgspec.Struct, frozen=True):
    """The reaction to a signal between ``from_s`` and ``until_s``, in seconds from the start: the program exits with
    ``code``, ``after_s`` after ``until_s`` (``at_once``: after the signal). Infinite: it does not exit.

    stages: the files that it changes, in seconds from ``until_s`` or the signal. unready_s: when its readiness probe
    fails, from then on.
    """

    from_s: float
    until_s: float
    at_once: bool
    after_s: float
    code: int
    stages: Stages = ()
    unready_s: float = math.inf


class Signals(msgspec.Struct, frozen=True):
    """The reactions over time. From ``again_s`` on they repeat every ``period_s``."""

    reactions: tuple[Reaction, ...]
    again_s: float = math.inf
    period_s: float = 0.0

    def answer(self, asked_s: float) -> tuple[float, int] | None:
        """The end, in seconds from the start, and the exit code after a signal at ``asked_s``; None if unknown."""
        found = self._reaction(asked_s)
        return None if found is None else (found[0] + found[1].after_s, found[1].code)

    def unready(self, asked_s: float) -> float:
        """When the readiness probe fails after a signal at ``asked_s``, in seconds from the start; infinite if it does
        not, or if that is unknown."""
        found = self._reaction(asked_s)
        return math.inf if found is None else found[0] + found[1].unready_s

    def probed(self, fails_after: Callable[[Stages], float]) -> "Signals":
        """The same with ``unready_s``. fails_after: the seconds until the readiness probe fails, with these files."""
        return replace(
            self,
            reactions=tuple(replace(each, stages=(), unready_s=fails_after(each.stages)) for each in self.reactions),
        )

    def _reaction(self, asked_s: float) -> tuple[float, Reaction] | None:
        """The reaction to a signal at ``asked_s``, and when it begins."""
        at_s = asked_s
        if self.period_s > 0 and asked_s >= self.again_s:
            at_s = self.again_s + math.fmod(asked_s - self.again_s, self.period_s)
        for each in self.reactions:
            if each.from_s <= at_s < each.until_s:
                return asked_s + (0.0 if each.at_once else each.until_s - at_s), each
        return None
