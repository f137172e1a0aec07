"""Adoptions and releases that the server refuses."""

import asyncio
import json
from collections.abc import Mapping

import pytest

from kcm_cli.api.apps import REPLICA_SETS, ReplicaSet
from kcm_cli.api.core import PODS, Pod
from kcm_cli.component.clock import LoopClock
from kcm_cli.engine.claiming import Claimed, RefManager
from kcm_cli.engine.execute import Executor
from kcm_cli.machinery.labels import parse
from kcm_cli.machinery.meta import ObjectMeta, OwnerReference
from kcm_cli.planning.actions import Notice
from kcm_cli.rest.errors import ApiError, Conflict, Invalid
from kcm_cli.rest.transport import Request, Response
from kcm_cli.runtime.expectations import Expectations
from tests.kit.faults import Answering
from tests.kit.world import EPOCH

OWNER = ReplicaSet(metadata=ObjectMeta("web", "ns", "u1"))
REFERENCE = OwnerReference("apps/v1", "ReplicaSet", "web", "u1", controller=True)
REASONS = {404: "NotFound", 409: "Conflict", 422: "Invalid"}


def pod(name: str, app: str, *, owned: bool) -> Pod:
    references = (REFERENCE,) if owned else ()
    return Pod(metadata=ObjectMeta(name, "ns", name, labels={"app": app}, owner_references=references))


class Server(Answering):
    """Has the owner, and answers patches of pods with these codes, by their names."""

    def __init__(self, codes: Mapping[str, int]) -> None:
        self._codes = codes

    async def send(self, request: Request) -> Response:
        if request.method == "GET":
            metadata = {"name": "web", "namespace": "ns", "uid": "u1"}
            return Response(200, {}, json.dumps({"metadata": metadata}).encode())
        name = request.path.rpartition("/")[2]
        code = self._codes.get(name, 200)
        body = {"metadata": {"name": name, "namespace": "ns", "uid": name}}
        status = {"kind": "Status", "reason": REASONS.get(code), "code": code, "message": "no"}
        return Response(code, {}, json.dumps(body if code == 200 else status).encode())


class Silent:
    def emit(self, notice: Notice) -> None:
        raise AssertionError(notice)


def claimed(codes: Mapping[str, int]) -> Claimed[Pod]:
    """What is the owner's after a pod was kept, one adopted and one released."""

    async def work() -> Claimed[Pod]:
        clock = LoopClock(EPOCH)
        client = Server(codes).client(clock)
        executor = Executor(client, Silent(), Expectations(), clock)
        pods = [pod("kept", "web", owned=True), pod("orphan", "web", owned=False), pod("other", "db", owned=True)]
        return await RefManager(executor, REPLICA_SETS, PODS).claim(OWNER, parse("app=web"), pods)

    return asyncio.run(work())


@pytest.mark.parametrize(
    ("codes", "expected"),
    [
        pytest.param({}, ["kept", "orphan"], id="all-taken"),
        pytest.param({"orphan": 404}, ["kept"], id="the-orphan-was-deleted"),
        pytest.param({"other": 404}, ["kept", "orphan"], id="released-object-was-deleted"),
        pytest.param({"other": 422}, ["kept", "orphan"], id="it-was-released-already"),
    ],
)
def test_objects_that_are_claimed(codes, expected):
    found = claimed(codes)
    assert ([each.name for each in found.members], found.error) == (expected, None)


@pytest.mark.parametrize(
    ("codes", "error", "expected"),
    [
        pytest.param({"orphan": 422}, Invalid, ["kept"], id="an-adoption-refused-as-invalid"),
        pytest.param({"orphan": 409}, Conflict, ["kept"], id="adopted-by-another"),
        pytest.param({"other": 409}, Conflict, ["kept", "orphan"], id="a-release-that-has-to-be-repeated"),
        pytest.param({"orphan": 500}, ApiError, ["kept"], id="an-error-of-the-server"),
    ],
)
def test_an_error_leaves_what_is_claimed_known(codes, error, expected):
    found = claimed(codes)
    assert isinstance(found.error, error)
    assert [each.name for each in found.members] == expected
