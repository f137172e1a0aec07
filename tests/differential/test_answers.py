"""Answers that are kept as data hold: a sample here, all of them by ``python -m tests.differential.answers``."""

from tests.differential import answers
from tests.differential.sameness import Answer

SHARE = 0.01


def test_a_sandbox_answers_as_recorded() -> None:
    now, differing = answers.compare(share=SHARE)
    assert differing == []
    assert now.keys() == answers.read().keys()


def test_a_digest_tells_codes_warnings_and_bodies_apart_but_not_what_is_random() -> None:
    one = Answer(200, ("w",), {"uid": "01234567-89ab-cdef-0123-456789abcdef", "resourceVersion": "1"})
    same = Answer(200, ("w",), {"uid": "11234567-89ab-cdef-0123-456789abcdef", "resourceVersion": "2"})
    assert answers.digest(one, "") == answers.digest(same, "")
    others = (Answer(201, ("w",), one.body), Answer(200, (), one.body), Answer(200, ("w",), {**one.body, "x": 1}))
    assert answers.digest(one, "") not in {answers.digest(other, "") for other in others}
