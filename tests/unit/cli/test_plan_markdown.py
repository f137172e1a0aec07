"""The answer of ``kcm plan -o markdown``, for a comment on a pull request."""

from functools import cache

import pytest
from msgspec.structs import replace

from kcm_cli.cli.plan_markdown import LARGEST, markdown
from kcm_cli.plan import Answer, Object, Options, Problem, Risk, Scale, Target, plan
from tests.unit.plan.clusters import settled

OBJECT = Object("Deployment", "n" * 63, "d" * 253)


@cache
def small() -> Answer:
    return plan(settled(), [Scale(Target("deploy", "web", "sim"), 6)], Options(horizon_s=30))


def left_out(comment: str) -> list[str]:
    return [line for line in comment.splitlines() if line.startswith(("and ", "- and ")) and line.endswith(" more")]


def grown(answer: Answer, count: int, text: str) -> Answer:
    """An answer with so many lines of a text in each section."""
    problem = Problem("stuck", OBJECT, text, False, 1)
    return replace(
        answer,
        changes=(text,) * count,
        problems=(problem,) * count,
        assumed=(text,) * count,
        risks=(Risk(text, (problem,) * count),),
        timeline=tuple(replace(answer.timeline[0], at_s=float(at), detail=text) for at in range(count)),
        differences=answer.differences[:1] * count,
        not_modelled=(text,) * count,
    )


@pytest.mark.parametrize("text", ["short", "<" * 5000, "`|_" * 9000], ids=["short", "escaped", "code"])
@pytest.mark.parametrize("count", [1, 51, 5000])
def test_a_comment_is_as_large_as_one_may_be(count: int, text: str) -> None:
    """GitHub refuses more; what is most important is there."""
    comment = markdown(grown(small(), count, text))
    assert len(comment) <= LARGEST
    assert comment.splitlines()[0].startswith("### ❌ kcm plan: ")
    assert bool(left_out(comment)) == (count > 1)
    assert comment.count("<details>") == comment.count("</details>") > 2
    assert f"<summary>Not modelled ({count})</summary>" in comment


def test_a_small_answer_is_there_as_a_whole() -> None:
    comment = markdown(small())
    assert all(str(one.about) in comment for one in small().differences if one.about.name)
    assert left_out(comment) == []
