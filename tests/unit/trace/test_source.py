"""Reading a manager's causes, and going on."""

import asyncio
from collections.abc import Mapping
from typing import cast

import pytest

from kcm_cli.component.clock import LoopClock
from kcm_cli.rest.manager_port import ManagerPort, ReadError
from kcm_cli.rest.transport import Request, Response, Transport, Unreachable
from kcm_cli.runtime.cause_document import About, document
from kcm_cli.runtime.cause_ring import CauseRing, Later
from kcm_cli.trace.source import Source
from tests.kit.faults import Answering

pytestmark = pytest.mark.real_time


class Manager(Answering):
    """Answers as a manager; ``answer`` instead of it, if there is one."""

    def __init__(self, answer: Response | None = None) -> None:
        self.ring = CauseRing(LoopClock())
        self.answer = answer

    async def send(self, request: Request) -> Response:
        if self.answer is not None:
            if not self.answer.status:
                raise Unreachable("connection refused")
            return self.answer
        query: Mapping[str, str] = dict(request.query)
        return Response(200, {}, document(self.ring.snapshot(), About(after=int(query["after"])), 5.0))


def source(manager: Manager) -> Source:
    return Source(ManagerPort(cast(Transport, manager), "https://m"))


async def test_each_entry_is_read_once_and_a_restart_is_noticed() -> None:
    manager = Manager()
    reading = source(manager)
    for number in (1, 2):
        manager.ring.put(Later(number, 1.0, 1.0))
        assert not await reading.read()
        assert [entry.sync for entry in reading.entries if isinstance(entry, Later)] == list(range(1, number + 1))
    manager.ring = CauseRing(LoopClock())
    manager.ring.started += 100.0
    manager.ring.put(Later(7, 1.0, 1.0))
    assert await reading.read()
    assert [entry.sync for entry in reading.entries if isinstance(entry, Later)] == [7]
    assert reading.forgotten == 0


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (Response(0, {}, b""), "connection refused (does the manager run?"),
        (Response(401, {}, b""), "https://m/debug/causes: 401 Unauthorized"),
        (Response(403, {}, b""), "who may get the nonResourceURL /debug/causes"),
        (Response(404, {}, b""), "this manager does not have the page"),
        (Response(200, {}, b"[" * 100_000), "not the causes of a manager that this kcm can read"),
        (Response(200, {}, b"{}"), "not the causes of a manager that this kcm can read"),
    ],
)
def test_what_cannot_be_read(answer: Response, text: str) -> None:
    with pytest.raises(ReadError) as raised:
        asyncio.run(source(Manager(answer)).read())
    assert text in str(raised.value)
