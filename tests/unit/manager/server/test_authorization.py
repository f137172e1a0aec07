import json
import random
import sys
from dataclasses import dataclass, field

import pytest

from kcm_cli.component.auth_config import AuthorizationConfig
from kcm_cli.component.clock import LoopClock
from kcm_cli.component.metrics import Registry
from kcm_cli.manager.server.authorization import Authorizer, OpenPaths
from kcm_cli.manager.server.metrics import ReviewMetrics
from kcm_cli.manager.server.review import ACCESS_REVIEWS, Reviewer, ReviewError
from kcm_cli.manager.server.user import ANONYMOUS, User
from kcm_cli.rest.transport import ConnectionLost, Request, Response
from tests.kit.faults import Answering

JANE = User("jane", groups=("g",), extra={"k": ("v",)})


@dataclass
class Answers(Answering):
    """Answers reviews in turn; an error is raised."""

    queue: list[bool | int | Exception]
    specs: list[dict[str, object]] = field(default_factory=list)

    async def send(self, request: Request) -> Response:
        self.specs.append(json.loads(request.body)["spec"])
        answer = self.queue.pop(0)
        if isinstance(answer, Exception):
            raise answer
        if isinstance(answer, bool):
            return Response(201, {}, json.dumps({"status": {"allowed": answer}}).encode())
        return Response(answer, {}, b'{"kind":"Status","message":"no","code":%d}' % answer)


def authorizer(answers: Answers, config: AuthorizationConfig | None = None) -> Authorizer:
    clock = LoopClock()
    client = answers.client(clock)
    metrics = ReviewMetrics.register(Registry(), "authz", "reviews")
    reviewer = Reviewer(client, ACCESS_REVIEWS, "SubjectAccessReview", metrics, clock, random.Random(1))
    return Authorizer(config or AuthorizationConfig(), reviewer, clock)


@pytest.mark.parametrize(
    ("paths", "path", "is_open"),
    [
        (("/healthz",), "/healthz", True),
        (("/healthz",), "/healthz/", False),
        (("/healthz*",), "/healthz/x", True),
        (("healthz",), "/healthz", True),
        (("/",), "/", True),
        (("/",), "/x", False),
        (("*",), "/x", True),
        ((), "/x", False),
    ],
)
def test_always_allowed_paths(paths: tuple[str, ...], path: str, is_open: bool) -> None:
    assert (path in OpenPaths(paths)) is is_open


async def test_always_allowed_paths_and_masters_need_no_review() -> None:
    answers = Answers([])
    subject = authorizer(answers)
    assert (await subject.decide(ANONYMOUS, "get", "/healthz")).allowed
    assert (await subject.decide(User("x", groups=("system:masters",)), "get", "/metrics")).allowed
    assert answers.specs == []


async def test_decisions_are_cached_for_their_ttl() -> None:
    config = AuthorizationConfig(authorized_cache_ttl_s=10.0, unauthorized_cache_ttl_s=2.0)
    answers = Answers([False, True, True])
    subject, clock = authorizer(answers, config), LoopClock()
    assert not (await subject.decide(JANE, "get", "/metrics")).allowed
    await clock.sleep(1.9)
    assert not (await subject.decide(JANE, "get", "/metrics")).allowed
    await clock.sleep(0.2)
    assert (await subject.decide(JANE, "get", "/metrics")).allowed
    await clock.sleep(9.9)
    assert (await subject.decide(JANE, "get", "/metrics")).allowed
    assert len(answers.specs) == 2
    await subject.decide(JANE, "post", "/metrics")
    assert answers.specs[-1] == {
        "nonResourceAttributes": {"path": "/metrics", "verb": "post"},
        "user": "jane",
        "groups": ["g"],
        "extra": {"k": ["v"]},
    }


async def test_temporary_failures_are_retried() -> None:
    answers = Answers([ConnectionLost("reset"), 500, True])
    assert (await authorizer(answers).decide(JANE, "get", "/metrics")).allowed
    assert 0.5 + 0.75 <= LoopClock().monotonic() <= (0.5 + 0.75) * 1.2 + 0.1


async def test_permanent_failures_are_errors() -> None:
    with pytest.raises(ReviewError, match="no"):
        await authorizer(Answers([403])).decide(JANE, "get", "/metrics")
    with pytest.raises(ReviewError):
        await authorizer(Answers([ConnectionLost("reset")] * 9)).decide(JANE, "get", "/metrics")


async def test_paths_of_any_length_take_little_memory() -> None:
    answers = Answers([False] * 100)
    subject = authorizer(answers)
    for _ in range(2):
        for number in range(100):
            assert not (await subject.decide(ANONYMOUS, "get", f"/{number}/" + "x" * 16_000)).allowed
    assert len(answers.specs) == 100
    assert sum(sys.getsizeof(key) for key in subject._known) < 10_000
