"""Keys keep what queued them: changes, the clock, other syncs; nothing is made up."""

import asyncio

from hypothesis import given
from hypothesis import strategies as st

from kcm_cli.component.clock import LoopClock
from kcm_cli.runtime.causes import (
    DELAY,
    MOST,
    QUEUED,
    RETRY,
    Causes,
    Change,
    Due,
    Tick,
    Work,
    because,
    current,
    set_working,
    unrecorded,
)
from kcm_cli.runtime.workqueue import WorkQueue


def change(number: int) -> Change:
    return Change("MODIFIED", "", "Pod", f"n/{number}", "u", str(number), 0.0)


def working(key: str = "k", causes: Causes | None = None) -> Work:
    return Work(controller="c", queue="q", kind="Pod", key=key, at=0.0, causes=causes or Causes(), note=unrecorded)


async def taken(queue: WorkQueue) -> Causes:
    key = await queue.get()
    found = queue.taken_for
    queue.done(key)
    return found


async def test_a_key_keeps_its_causes_until_it_is_taken() -> None:
    async def main() -> None:
        queue = WorkQueue("q", LoopClock(), caused=True)
        for number in range(MOST + 3):
            with because(change(number)):
                queue.add("k")
        found = await taken(queue)
        assert found.found == [change(number) for number in range(MOST)] and found.more == 3
        queue.add("k")
        assert await taken(queue) == Causes()  # nobody knows why

    await main()


async def test_a_delayed_key_keeps_its_causes_until_it_is_due() -> None:
    async def main() -> None:
        queue = WorkQueue("q", LoopClock(), caused=True)
        with because(change(1)):
            queue.add_after("k", 5.0)
        with because(change(2)):
            queue.add("k")
        assert (await taken(queue)).found == [change(2)]
        assert (await taken(queue)).found == [change(1), Tick(DELAY)]

    await main()


async def test_a_sync_is_the_cause_of_what_it_asks_for() -> None:
    async def main() -> None:
        queue, work = WorkQueue("q", LoopClock(), caused=True), working()
        set_working(work)
        queue.add_rate_limited("k")
        assert (await taken(queue)).found == [Due(RETRY, work)]
        queue.add("other")
        assert (await taken(queue)).found == [Due(QUEUED, work)]
        with because(change(1)):  # what is told is nearer
            assert current() == change(1)

    await main()


async def test_a_task_of_a_listener_is_not_told_what_the_listener_was() -> None:
    async def main() -> None:
        async def after() -> None:
            assert current() is None

        with because(change(1)):
            task = asyncio.ensure_future(after())
        await task

    await main()


async def test_causes_that_are_kept_come_before_later_ones() -> None:
    async def main() -> None:
        queue = WorkQueue("q", LoopClock(), caused=True)
        with because(change(1)):
            queue.add("k")
        await queue.get()
        queue.keep("k", queue.taken_for)  # the caches do not show the key's own writes
        queue.done("k")
        queue.add("k")
        assert (await taken(queue)).found == [change(1)]

    await main()


def test_a_key_that_is_synced_every_minute_has_no_chain_of_all_its_syncs() -> None:
    first = working(causes=Causes([change(1)]))
    work = first
    for _ in range(50):
        causes = Causes([Due(DELAY, work)])
        causes.shorten()
        assert causes.found == [Due(DELAY, first)]
        work = working(causes=causes)


@given(st.lists(st.sampled_from(["change", "add", "after", "take", "wait"]), max_size=60))
async def test_what_a_queue_remembers_is_bounded_by_its_keys(steps: list[str]) -> None:
    async def main() -> None:
        queue = WorkQueue("q", LoopClock(), caused=True)
        for number, step in enumerate(steps):
            match step:
                case "change":
                    with because(change(number)):
                        queue.add(f"k{number % 3}")
                case "add":
                    queue.add(f"k{number % 3}")
                case "after":
                    queue.add_after(f"k{number % 3}", 1.0)
                case "take":
                    if len(queue):
                        assert len((await taken(queue)).found) <= MOST
                case "wait":
                    await asyncio.sleep(2.0)
            assert queue._why is not None
            assert queue._why.keys() <= queue._dirty and queue._why_later.keys() == queue._delayed.keys()

    await main()


async def test_a_queue_that_keeps_no_causes_has_none() -> None:
    async def main() -> None:
        queue = WorkQueue("q", LoopClock())
        with because(change(1)):
            queue.add("k")
            queue.add_after("j", 1.0)
        assert await taken(queue) == Causes() == await taken(queue)

    await main()
