"""What a program answers when it is asked to stop (SIGTERM), as far as its traps tell."""

import math

import msgspec


class Reaction(msgspec.Struct, frozen=True):
    """Asked at any time from ``from_s`` until ``until_s`` after its start, the program ends ``after_s`` after the
    second (``at_once``: after it is asked) with this code. Infinite: not by itself."""

    from_s: float
    until_s: float
    at_once: bool
    after_s: float
    code: int


class Signals(msgspec.Struct, frozen=True):
    """Its reactions. From ``again_s`` on what is from there to the end repeats itself every ``period_s``."""

    reactions: tuple[Reaction, ...]
    again_s: float = math.inf
    period_s: float = 0.0

    def answer(self, asked_s: float) -> tuple[float, int] | None:
        """When it ends, in seconds from its start, and with which code; None if that is unknown."""
        at_s = asked_s
        if self.period_s > 0 and asked_s >= self.again_s:
            at_s = self.again_s + math.fmod(asked_s - self.again_s, self.period_s)
        for each in self.reactions:
            if each.from_s <= at_s < each.until_s:
                waits_s = 0.0 if each.at_once else each.until_s - at_s
                return asked_s + waits_s + each.after_s, each.code
        return None
