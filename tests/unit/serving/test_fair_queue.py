"""The order of handshakes."""

import asyncio
from dataclasses import dataclass

import pytest

from kcm_cli.serving.fair_queue import FairQueue

pytestmark = pytest.mark.real_time


@dataclass(eq=False)
class One:
    name: str
    done: list[str]
    address: str = "a"
    continued: bool = False

    def proceed(self) -> None:
        self.done.append(self.name)


async def test_order_of_handshakes() -> None:
    done, handshakes = list[str](), FairQueue(60)
    for name in ("a1", "a2", "a3", "a4"):
        handshakes.add(One(name, done))
    handshakes.add(One("b", done, "b"))
    for name in ("c1", "c2", "c3"):
        handshakes.add(One(name, done, "c", continued=True))
    handshakes.add(One("d", done, "d", continued=True))
    await asyncio.sleep(0)
    assert done == ["c3", "d", "c1", "c2", "a4", "b", "a1", "a3", "a2"]


async def test_no_handshake_starves() -> None:
    """A hundred clients behind one address, each with the next connection as soon as it has had its turn."""
    done, handshakes = list[str](), FairQueue(0)
    for number in range(100):
        handshakes.add(One(str(number), done))
    while len(done) < 200:
        await asyncio.sleep(0)
        handshakes.add(One("next", done))
    assert {str(number) for number in range(100)} <= set(done)


async def test_other_tasks_run_between_handshakes() -> None:
    done, handshakes = list[str](), FairQueue(0)
    for number in range(3):
        handshakes.add(One(str(number), done))
    for turns in range(3):
        assert len(done) == turns
        await asyncio.sleep(0)
    assert done == ["2", "0", "1"]


async def test_closed_handshakes_are_dropped() -> None:
    done, handshakes = list[str](), FairQueue(60)
    ones = [One("begun", done), One("answered", done, continued=True), One("stays", done, "b")]
    for one in ones:
        handshakes.add(one)
        handshakes.add(one)
    for one in ones[:2]:
        handshakes.discard(one)
        handshakes.discard(one)
    await asyncio.sleep(0)
    assert done == ["stays"]
    handshakes.add(ones[0])
    await asyncio.sleep(0)
    assert done == ["stays", "begun"]


async def test_the_others_go_on_where_one_raises() -> None:
    class Raising(One):
        def proceed(self) -> None:
            raise RuntimeError("a bug")

    raised = list[object]()
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: raised.append(context["exception"]))
    done, handshakes = list[str](), FairQueue(60)
    for one in (One("a", done), Raising("b", done), One("c", done)):
        handshakes.add(one)
    await asyncio.sleep(0.001)
    handshakes.add(One("d", done))
    await asyncio.sleep(0.001)
    assert done == ["c", "a", "d"]
    assert [str(one) for one in raised] == ["a bug"]
