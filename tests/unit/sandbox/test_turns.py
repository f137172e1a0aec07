"""In-process requests yield to other tasks, and are sent only if they are permitted."""

import asyncio
from itertools import count
from typing import Any

import pytest

from kcm_cli.rest.transport import Request, Unreachable
from kcm_cli.sandbox.apiserver.types import User
from kcm_cli.sandbox.transport import TURN_S, InProcessTransport, Turns

pytestmark = pytest.mark.real_time


def others(step_s: float, requests: int) -> int:
    """How many turns another task gets during this number of requests, each of which takes this long."""

    async def run() -> int:
        times = count()
        turns, had = Turns(lambda: next(times) * step_s), 0

        async def other() -> None:
            nonlocal had
            while True:
                had += 1
                await asyncio.sleep(0)

        task = asyncio.create_task(other())
        for _ in range(requests):
            await turns.share()
        task.cancel()
        return had

    return asyncio.run(run())


def test_many_requests_yield_to_other_tasks() -> None:
    assert others(TURN_S / 10, 1000) >= 50


def test_few_requests_do_not_yield() -> None:
    assert others(TURN_S / 1000, 500) == 0


async def test_a_fenced_write_is_not_sent() -> None:
    server: Any = None  # it is asked nothing
    request = Request("POST", "/api/v1/namespaces", body=b"{}", permitted=lambda: False)
    with pytest.raises(Unreachable, match="not permitted any more"):
        await InProcessTransport(server, User("a")).send(request)
