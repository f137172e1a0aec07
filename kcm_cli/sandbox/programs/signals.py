"""How a program with traps reacts to SIGTERM."""

import math

import msgspec


class Reaction(msgspec.Struct, frozen=True):
    """The reaction to a signal between ``from_s`` and ``until_s``, in seconds from the start: the program exits with
    ``code``, ``after_s`` after ``until_s`` (``at_once``: after the signal). Infinite: it does not exit."""

    from_s: float
    until_s: float
    at_once: bool
    after_s: float
    code: int


class Signals(msgspec.Struct, frozen=True):
    """The reactions over time. From ``again_s`` on they repeat every ``period_s``."""

    reactions: tuple[Reaction, ...]
    again_s: float = math.inf
    period_s: float = 0.0

    def answer(self, asked_s: float) -> tuple[float, int] | None:
        """The end, in seconds from the start, and the exit code after a signal at ``asked_s``; None if unknown."""
        at_s = asked_s
        if self.period_s > 0 and asked_s >= self.again_s:
            at_s = self.again_s + math.fmod(asked_s - self.again_s, self.period_s)
        for each in self.reactions:
            if each.from_s <= at_s < each.until_s:
                waits_s = 0.0 if each.at_once else each.until_s - at_s
                return asked_s + waits_s + each.after_s, each.code
        return None
