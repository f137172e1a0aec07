"""Requests to a server in the same process."""

import asyncio
import time
from typing import Any

import pytest

from kcm_cli.rest.transport import Request, Unreachable
from kcm_cli.runtime.turns import TURN_S
from kcm_cli.sandbox.apiserver.types import User
from kcm_cli.sandbox.transport import InProcessTransport

pytestmark = pytest.mark.real_time


@pytest.mark.parametrize("together", [False, True])
async def test_many_requests_yield_to_other_tasks(monkeypatch: pytest.MonkeyPatch, together: bool) -> None:
    now, had = 0.0, 0

    def permitted() -> bool:
        nonlocal now
        now += TURN_S / 10
        return False

    async def send() -> None:
        with pytest.raises(Unreachable):
            await transport.send(Request("GET", "/", permitted=permitted))

    async def other() -> None:
        nonlocal had
        while True:
            had += 1
            await asyncio.sleep(0)

    server: Any = None
    transport = InProcessTransport(server, User("a"))
    monkeypatch.setattr(time, "perf_counter", lambda: now)
    task = asyncio.create_task(other())
    if together:
        await asyncio.gather(*(send() for _ in range(500)))
    else:
        for _ in range(500):
            await send()
    task.cancel()
    assert had >= 25


async def test_a_fenced_write_is_not_sent() -> None:
    server: Any = None  # it is asked nothing
    request = Request("POST", "/api/v1/namespaces", body=b"{}", permitted=lambda: False)
    with pytest.raises(Unreachable, match="not permitted any more"):
        await InProcessTransport(server, User("a")).send(request)
