"""The text of ``kcm plan``."""

from functools import cache
from io import StringIO

import pytest
from msgspec.structs import replace
from rich.console import Console

from kcm_cli.cli.plan_text import condensed, describe, show, when
from kcm_cli.plan import Answer, Happening, Object, Options, Scale, Target, plan
from tests.unit.plan.clusters import settled

TICK, NIGHTLY = Object("CronJob", "default", "tick"), Object("CronJob", "default", "nightly")
WORK = Object("Job", "default", "work")


@cache
def small() -> Answer:
    return plan(settled(), [Scale(Target("deploy", "web", "sim"), 5)], Options(horizon_s=1))


@pytest.mark.parametrize(("count", "more"), [(40, []), (41, ["  and 1 more (-o json has all)"])])
def test_the_verdict_is_not_behind_hundreds_of_changes(count: int, more: list[str]) -> None:
    console = Console(width=200, record=True, file=StringIO())
    show(replace(small(), changes=tuple(f"apply ConfigMap {number}" for number in range(count))), console)
    lines = [line.rstrip() for line in console.export_text().splitlines()]
    assert lines[40:41] + more == lines[40 : 41 + len(more)] == ["  apply ConfigMap 39", *more]
    assert lines[42 + len(more)] == "Nothing ends differently."


def test_repeated_changes_are_summarised() -> None:
    often = [Happening(600.0 * n, 600.0 * n + 1, "begun", TICK, 1, "") for n in range(6)]
    ends = [Happening(600.0 * n + 30, 600.0 * n + 30, "complete", TICK, 1, "") for n in range(6)]
    once = Happening(1000.0, 1000.0, "begun", NIGHTLY, 1, "")
    timeline = sorted([*often, *ends, once], key=lambda one: one.at_s)
    assert [f"{when(one)} {describe(one)}" for one in condensed(timeline)] == [
        "+00:00 to +50:01 6 runs of CronJob default/tick begin",
        "+00:30 to +50:30 CronJob default/tick is complete (6 times)",
        "+16:40 1 run of CronJob default/nightly begins",
    ]


def test_changes_that_occur_three_times_are_listed() -> None:
    timeline = [Happening(float(n), float(n), "begun", TICK, 1, "") for n in range(3)]
    assert condensed(timeline) == timeline


@pytest.mark.parametrize(
    ("what", "about", "count", "detail", "text"),
    [
        ("terminating", WORK, 1, "", "1 pod of Job default/work is being deleted"),
        ("gone", WORK, 2, "", "2 pods of Job default/work are deleted"),
        ("failed", WORK, 1, "Evicted", "1 pod of Job default/work failed: Evicted"),
        ("failed", Object("Pod", "default", "a"), 1, "", "Pod default/a failed"),
        ("job-failed", WORK, 1, "too many", "Job default/work failed: too many"),
    ],
)
def test_pods_of_jobs_are_separate_from_jobs(what: str, about: Object, count: int, detail: str, text: str) -> None:
    assert describe(Happening(0.0, 0.0, what, about, count, detail)) == text
