"""Events about pods that could not be created or deleted, and what is expected after that."""

import asyncio
import json

import pytest

from kcm_cli.api.core import Pod
from kcm_cli.component.clock import LoopClock
from kcm_cli.engine.execute import Executor
from kcm_cli.machinery.meta import ObjectMeta
from kcm_cli.planning.actions import EventRef, Expect, Mode, Notice, Stage
from kcm_cli.planning.pod_control import create_pod, delete_pod
from kcm_cli.rest.client import Client
from kcm_cli.rest.ratelimit import Unlimited
from kcm_cli.rest.transport import Request, Response
from kcm_cli.runtime.expectations import Expectations
from tests.kit.world import EPOCH

REF = EventRef("apps/v1", "ReplicaSet", "ns", "web", "u1", "1")
TERMINATING = {"causes": [{"reason": "NamespaceTerminating"}]}


class Recorded:
    def __init__(self) -> None:
        self.notices: list[Notice] = []

    def emit(self, notice: Notice) -> None:
        self.notices.append(notice)


def outcome(
    method: str, code: int, reason: str, details: dict[str, object] | None = None, *, times: int = 1, text: str = "no"
) -> tuple[list[Notice], bool]:
    """After requests that are answered so: the Events, and whether the owner may plan again."""

    class Server:
        async def send(self, request: Request) -> Response:
            status = {"kind": "Status", "reason": reason, "code": code, "message": text, "details": details}
            return Response(code, {}, json.dumps(status).encode())

    recorded, expectations = Recorded(), Expectations()
    clock = LoopClock(EPOCH)

    async def work() -> bool:
        client = Client(Server(), limiter=Unlimited(), user_agent="t", clock=clock)  # type: ignore[arg-type]
        pod = Pod(metadata=ObjectMeta("p", "ns", "p1"))
        action = create_pod(REF, "ns", {"metadata": {}}, "why") if method == "POST" else delete_pod(REF, pod, "why")
        creating = times if method == "POST" else 0
        expect = Expect("ns/web", "", creating, () if creating else ("ns/p",))
        stage = Stage((action,) * times, Mode.SLOW_START, expect=expect)
        await Executor(client, recorded, expectations, clock).stage(stage)
        return expectations.satisfied("ns/web", clock.monotonic())

    return recorded.notices, asyncio.run(work())


@pytest.mark.parametrize(
    ("method", "code", "reason", "details", "expected"),
    [
        pytest.param("POST", 403, "Forbidden", None, ["FailedCreate"], id="refused"),
        pytest.param("POST", 404, "NotFound", None, ["FailedCreate"], id="the-namespace-is-not-there"),
        pytest.param("POST", 403, "Forbidden", TERMINATING, [], id="the-namespace-is-terminating"),
        pytest.param("DELETE", 403, "Forbidden", None, ["FailedDelete"], id="deletion-refused"),
        pytest.param("DELETE", 404, "NotFound", None, [], id="deleted-already-by-another"),
    ],
)
def test_events(method, code, reason, details, expected):
    assert [notice.reason for notice in outcome(method, code, reason, details)[0]] == expected


def test_an_error_is_shown_as_it_is():
    """Webhooks word the errors: here, what stands for a name in ours."""
    ((notice,), _) = outcome("POST", 403, "Forbidden", text="call it {name} or {error}")
    assert notice.message.endswith("call it {name} or {error}")


@pytest.mark.parametrize(
    ("method", "details", "may_plan"),
    [("POST", None, True), ("POST", TERMINATING, False), ("DELETE", None, True), ("DELETE", TERMINATING, True)],
)
def test_only_a_permanently_failed_creation_stays_expected(method, details, may_plan):
    times = 7 if method == "POST" else 1
    assert outcome(method, 403, "Forbidden", details, times=times)[1] is may_plan
