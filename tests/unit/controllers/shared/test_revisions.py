"""ControllerRevisions: names that exist, with equal or other data."""

import asyncio
import json
import random

import pytest

from kcm_cli.api.apps import CONTROLLER_REVISIONS, DaemonSet
from kcm_cli.component.clock import LoopClock
from kcm_cli.controllers.shared.revisions import Revisions, numbered
from kcm_cli.engine.door import Door
from kcm_cli.engine.own_writes import OwnWrites
from kcm_cli.machinery.meta import ObjectMeta
from kcm_cli.rest.transport import Response
from kcm_cli.runtime.informer import Informer
from tests.kit.faults import Answering

OWNER = DaemonSet(metadata=ObjectMeta("d", "ns", "u"))
NAMED = b'{"metadata": {"name": "r"}}'


def revision(data, version="7", number=1, owner=""):
    metadata = {"name": "r", "namespace": "ns", "uid": "r-uid", "resourceVersion": version}
    if owner:
        metadata["ownerReferences"] = [{"kind": "DaemonSet", "name": "d", "uid": owner, "controller": True}]
    return {"metadata": metadata, "data": data, "revision": number}


def refusal(status, reason):
    return status, {"kind": "Status", "reason": reason, "code": status, "message": "no"}


TAKEN = refusal(409, "AlreadyExists")


class Server(Answering):
    """Returns these responses in order, and records requests."""

    def __init__(self, *answers):
        self._answers = list(answers)
        self.bodies = []

    async def send(self, request):
        if request.body:
            self.bodies.append(json.loads(request.body))
        status, document = self._answers.pop(0)
        return Response(status, {}, json.dumps(document).encode())


def with_revisions(server, work):
    """The answer of some work with revisions, and whether the owner's key waits for the cache then."""

    async def main():
        clock = LoopClock()
        client = Door(server.client(clock), "c")
        informer = Informer(CONTROLLER_REVISIONS, client, clock, random.Random(1))
        informer.progress.reached("5")
        own = OwnWrites(client, clock, (informer,))
        with own.acting_for(OWNER.key):
            answer = await work(Revisions(client, informer))
        return answer, len(own) == 1

    return asyncio.run(main())


@pytest.mark.parametrize(
    ("answers", "found", "waits"),
    [
        pytest.param([(201, revision({"a": 1}))], True, True, id="created"),
        pytest.param([TAKEN, (200, revision({"a": 1}))], True, True, id="created before"),
        pytest.param([TAKEN, (200, revision({"a": 1}, owner="u"))], True, True, id="created before, by its owner"),
        pytest.param([TAKEN, (200, revision({"a": 1}, owner="former"))], False, True, id="of a former owner"),
        pytest.param([TAKEN, (200, revision({"a": 2}))], False, True, id="another"),
    ],
)
def test_creating_a_revision(answers, found, waits):
    made, waiting = with_revisions(Server(*answers), lambda all_: all_.create(OWNER, "r", NAMED, {"a": 1}))
    assert (made is not None, waiting) == (found, waits)


def test_the_revision_number_is_computed_again_after_a_conflict():
    server = Server(refusal(409, "Conflict"), (200, revision({}, "8")), (200, revision({}, "9", 3)))
    old = CONTROLLER_REVISIONS.decode(json.dumps(revision({"a": 1})).encode())
    written, waiting = with_revisions(server, lambda all_: all_.change(old, numbered(3)))
    assert (written.revision, waiting) == (3, True)
    assert [body["metadata"]["resourceVersion"] for body in server.bodies] == ["7", "8"]


def test_an_unchanged_revision_number_is_not_written():
    server = Server()
    old = CONTROLLER_REVISIONS.decode(json.dumps(revision({"a": 1}, number=3)).encode())
    assert with_revisions(server, lambda all_: all_.change(old, numbered(3)))[0] is old
    assert server.bodies == []


def test_deleting_a_missing_revision():
    old = CONTROLLER_REVISIONS.decode(json.dumps(revision({"a": 1})).encode())
    server = Server(refusal(404, "NotFound"), (200, {"kind": "Status", "status": "Success"}))
    with_revisions(server, lambda all_: all_.delete([old, old]))
    assert [body["preconditions"]["uid"] for body in server.bodies] == ["r-uid", "r-uid"]
