"""The conditions of a terminating namespace, and the delay until it is checked again."""

from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcm_cli.api.core import Condition, Pod, PodSpec, PodStatus
from kcm_cli.controllers.namespace import plan
from kcm_cli.controllers.namespace.plan import CONTENT, DISCOVERY, FINALIZERS, PARSING, REMAINING, Remains
from kcm_cli.machinery.times import format_time

DELETED = "2026-01-01T00:00:00Z"
NOW = datetime(2026, 1, 1, tzinfo=UTC)
LEFT = Counter({"pods.": 2, "widgets.example.com": 1})


@pytest.mark.parametrize(
    ("remains", "expected"),
    [
        pytest.param(Remains(), {}, id="nothing remains"),
        pytest.param(Remains(discovery_error="down"), {DISCOVERY: ("DiscoveryFailed", "down")}, id="discovery failed"),
        pytest.param(
            Remains(content_errors=["b", "a"]),
            {CONTENT: ("ContentDeletionFailed", "Failed to delete all resource types, 2 remaining: a, b")},
            id="errors, sorted",
        ),
        pytest.param(
            Remains(resources=LEFT),
            {
                REMAINING: (
                    "SomeResourcesRemain",
                    "Some resources are remaining: pods. has 2 resource instances,"
                    " widgets.example.com has 1 resource instances",
                )
            },
            id="resources, sorted",
        ),
        pytest.param(
            Remains(finalizers=Counter({"z/z": 1, "a/a": 3})),
            {
                FINALIZERS: (
                    "SomeFinalizersRemain",
                    "Some content in the namespace has finalizers remaining: a/a in 3 resource instances,"
                    " z/z in 1 resource instances",
                )
            },
            id="finalizers, sorted",
        ),
        pytest.param(
            Remains(resources=LEFT, finalizers=Counter({"a/a": 1}), content_errors=["a"], pods_only=True),
            {CONTENT: ("ContentDeletionFailed", "Failed to delete all resource types, 1 remaining: a")},
            id="with pods only errors are reported",
        ),
    ],
)
def test_problems(remains: Remains, expected: dict[str, tuple[str, str]]) -> None:
    assert plan.problems(remains) == expected


def of(type_: str, status: str, reason: str = "r", message: str = "m", at: str = DELETED) -> Condition:
    return Condition(type_, status, reason, message, last_transition_time=at)


def test_all_five_conditions_exist_from_the_start() -> None:
    found = plan.status((), Remains(), NOW)
    assert [(c.type, c.status, c.reason) for c in found] == [
        (DISCOVERY, "False", "ResourcesDiscovered"),
        (PARSING, "False", "ParsedGroupVersions"),
        (CONTENT, "False", "ContentDeleted"),
        (REMAINING, "False", "ContentRemoved"),
        (FINALIZERS, "False", "ContentHasNoFinalizers"),
    ]
    assert {c.last_transition_time for c in found} == {format_time(NOW)}


@pytest.mark.parametrize(
    ("before", "error", "expected"),
    [
        pytest.param(
            "True", "down", ("True", DELETED, "down"), id="still failing with another reason: the time is kept"
        ),
        pytest.param("False", "down", ("True", format_time(NOW + timedelta(hours=1)), "down"), id="fails"),
        pytest.param("True", "", ("False", format_time(NOW + timedelta(hours=1)), None), id="gets better"),
        pytest.param("False", "", ("False", DELETED, None), id="still well"),
    ],
)
def test_the_transition_time_changes_with_the_status(
    before: str, error: str, expected: tuple[str, str, str | None]
) -> None:
    later = NOW + timedelta(hours=1)
    old = (of("Other", "Unknown"), of(DISCOVERY, before))
    found = plan.status(old, Remains(discovery_error=error), later)
    assert found[0] == old[0]
    status, at, message = expected
    assert (found[1].status, found[1].last_transition_time) == (status, at)
    assert found[1].message == (message or "All resources successfully discovered")


remaining = st.builds(
    Remains,
    resources=st.dictionaries(st.sampled_from(["pods.", "secrets."]), st.integers(1, 9)).map(Counter),
    finalizers=st.dictionaries(st.sampled_from(["a/a", "b/b"]), st.integers(1, 9)).map(Counter),
    discovery_error=st.sampled_from(["", "down"]),
    content_errors=st.lists(st.sampled_from(["x", "y"])),
    pods_only=st.booleans(),
)


@given(remaining, remaining)
def test_equal_conditions_are_kept(before: Remains, now: Remains) -> None:
    first = plan.status((), before, NOW)
    second = plan.status(first, now, NOW + timedelta(hours=1))
    assert plan.status(second, now, NOW + timedelta(hours=2)) == second
    assert [c.type for c in second] == [c.type for c in first]


def pod(grace: int | None, phase: str = "Running") -> Pod:
    return Pod(spec=PodSpec(termination_grace_period_seconds=grace), status=PodStatus(phase=phase))


@pytest.mark.parametrize(
    ("pods", "after_s", "expected"),
    [
        pytest.param([], 0, 0, id="no pods"),
        pytest.param([pod(30), pod(60), pod(None)], 0, 60, id="the longest"),
        pytest.param([pod(30), pod(90, "Succeeded"), pod(90, "Failed")], 0, 30, id="ended pods need none"),
        pytest.param([pod(30)], 29, 30, id="not yet over"),
        pytest.param([pod(30)], 30, 0, id="over"),
        pytest.param([pod(0)], 0, 0, id="none"),
    ],
)
def test_grace(pods: list[Pod], after_s: int, expected: int) -> None:
    assert plan.grace_s(pods, DELETED, NOW + timedelta(seconds=after_s)) == expected


@pytest.mark.parametrize(("estimate", "expected"), [(0, None), (1, 1.0), (15, 8.0), (30, 16.0)])
def test_remaining_content_requeues(estimate: int, expected: float | None) -> None:
    assert plan.plan(Remains(estimate_s=estimate)) == expected


def test_errors_are_retried() -> None:
    with pytest.raises(plan.ContentRemains, match="^a; b; discovery$"):
        plan.plan(Remains(content_errors=["a", "b"], discovery_error="discovery", estimate_s=15))
