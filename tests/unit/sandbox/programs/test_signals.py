"""When a program ends after SIGTERM."""

import math

from kcm_cli.sandbox.programs.signals import Reaction, Signals


def test_periodic_programs_have_periodic_reactions() -> None:
    signals = Signals((Reaction(0, 3, False, 0.5, 1), Reaction(3, 5, True, 2, 0)), again_s=3, period_s=2)
    assert [signals.answer(at) for at in (0, 2.5, 3.5, 5.5, 100)] == [(3.5, 1), (3.5, 1), (5.5, 0), (7.5, 0), (102, 0)]


def test_what_is_unknown() -> None:
    signals = Signals((Reaction(1, 2, False, math.inf, 0),))
    assert [signals.answer(at) for at in (0.5, 1.5, 2)] == [None, (math.inf, 0), None]
