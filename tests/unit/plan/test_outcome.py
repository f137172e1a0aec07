"""What is wrong at the end of a run."""

import pytest

from kcm_cli.plan.answer import Object
from kcm_cli.plan.applying import Refusal
from kcm_cli.plan.outcome import refused_creations
from kcm_cli.plan.twin.writes import Emitted

WEB = Object("ReplicaSet", "default", "web-1")


def event(at_s: float, reason: str, message: str = "", last_s: float = 0.0) -> Emitted:
    return Emitted(
        at_s, max(at_s, last_s), "replicaset-controller", "Normal", reason, message, "ReplicaSet", "default", "web-1"
    )


def refused(pod: str, why: str) -> str:
    return f'Error creating: pods "web-1-{pod}" is forbidden: {why}'


def over(quota: str, used: int) -> str:
    return f"exceeded quota: {quota}, requested: pods=1, used: pods={used}, limited: pods=6"


def test_a_quota_is_one_problem_however_many_pods_it_refuses() -> None:
    events = [event(float(n), "FailedCreate", refused(f"p{n}", over("small", 6 + n % 2))) for n in range(12)]
    events.append(event(13.0, "FailedCreate", f"(combined from similar events): {refused('x', over('small', 6))}"))
    events.append(event(14.0, "FailedCreate", refused("y", over("other", 2))))
    assert list(refused_creations(events, lambda about: True)) == [
        Refusal("quota", WEB, f"its pods are refused: {over('small', 6)}"),
        Refusal("quota", WEB, f"its pods are refused: {over('other', 2)}"),
    ]


TOO_MUCH = "maximum cpu usage per Container is 1, but limit is 2"


@pytest.mark.parametrize(
    ("made_s", "exists", "found"),
    [(None, True, True), (5.0, True, True), (30.0, True, False), (None, False, False)],
    ids=["never made", "made before", "made after", "the workload is deleted"],
)
def test_what_else_is_refused_counts_if_it_is_refused_to_the_end(
    made_s: float | None, exists: bool, found: bool
) -> None:
    events = [event(0.0, "FailedCreate", refused("a", TOO_MUCH), last_s=20.0)]
    if made_s is not None:
        events.append(event(made_s, "SuccessfulCreate", "Created pod: web-1-b"))
    wanted = [Refusal("refused", WEB, f"its pods are refused: {TOO_MUCH}")] if found else []
    assert list(refused_creations(events, lambda about: exists)) == wanted


def test_an_error_in_other_words_is_told_whole() -> None:
    (found,) = refused_creations([event(0.0, "FailedCreate", "Error creating: timed out")], lambda about: True)
    assert found.text == "its pods are refused: Error creating: timed out"
