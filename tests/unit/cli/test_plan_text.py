"""The text of ``kcm plan``."""

from kcm_cli.cli.plan_text import condensed, told, when
from kcm_cli.plan import Happening, Object

TICK, NIGHTLY = Object("CronJob", "default", "tick"), Object("CronJob", "default", "nightly")


def test_what_happens_again_and_again_is_told_once() -> None:
    often = [Happening(600.0 * n, 600.0 * n + 1, "begun", TICK, 1, "") for n in range(6)]
    ends = [Happening(600.0 * n + 30, 600.0 * n + 30, "complete", TICK, 1, "") for n in range(6)]
    once = Happening(1000.0, 1000.0, "begun", NIGHTLY, 1, "")
    timeline = sorted([*often, *ends, once], key=lambda one: one.at_s)
    assert [f"{when(one)} {told(one)}" for one in condensed(timeline)] == [
        "+00:00 to +50:01 6 runs of CronJob default/tick begin",
        "+00:30 to +50:30 CronJob default/tick is complete (6 times)",
        "+16:40 1 run of CronJob default/nightly begins",
    ]


def test_what_happens_three_times_is_told_three_times() -> None:
    timeline = [Happening(float(n), float(n), "begun", TICK, 1, "") for n in range(3)]
    assert condensed(timeline) == timeline
