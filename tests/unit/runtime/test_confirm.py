"""A cache that a standby has kept does not count as synced before it shows what was written up to the takeover."""

import asyncio
import random
from typing import Any

import pytest

from kcm_cli.api.core import PODS, Pod
from kcm_cli.component import virtual
from kcm_cli.component.clock import LoopClock
from kcm_cli.rest.client import Client
from kcm_cli.rest.ratelimit import Unlimited
from kcm_cli.runtime import informer as module
from kcm_cli.runtime.informer import CATCH_UP_S, MOST_CATCH_UPS, Informer
from kcm_cli.runtime.informers import Informers
from kcm_cli.runtime.tasks import Tasks
from tests.unit.runtime.test_informer import HOLD, Server, added, bookmark, expired, page, pod, status

FIRST = [added("a", 1), bookmark(5, last=True), HOLD]


@pytest.fixture
def large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every cache is one of many objects."""
    monkeypatch.setattr(module, "SMALL", 0)


def synced_after(server: Server, seconds: float = 200) -> tuple[float | None, Informer[Pod]]:
    """The seconds after which the cache is synced again, None if it is not; and the informer."""

    async def main() -> tuple[float | None, Informer[Pod]]:
        clock, failures = LoopClock(), list[Any]()
        client = Client(server, limiter=Unlimited(), user_agent="test", clock=clock)
        informers = Informers(client, clock, random.Random(1))
        informer, tasks = informers.get(PODS), Tasks(lambda *failure: failures.append(failure))
        informers.start(tasks)
        await asyncio.sleep(20)
        assert informer.synced.is_set()
        await informers.confirm(tasks)
        assert not informer.synced.is_set()
        started, took = clock.monotonic(), None
        try:
            async with asyncio.timeout(seconds):
                await informer.synced.wait()
                took = clock.monotonic() - started
                await asyncio.sleep(seconds)
        except TimeoutError:
            pass
        await tasks.stop()
        assert not failures
        return took, informer

    return virtual.run(main())


def test_a_small_cache_is_listed() -> None:
    server = Server([FIRST], [page(9, pod("b", 8))])
    took, informer = synced_after(server)
    assert took == 0
    assert [obj.name for obj in informer.store] == ["b"]
    assert [(one["verb"], one.get("resourceVersion", "")) for one in server.asked[1:]] == [("list", ""), ("watch", "9")]


def test_it_is_listed_until_that_works() -> None:
    server = Server([FIRST], [status(500, "InternalError"), status(429, "TooManyRequests"), page(9, pod("b", 8))])
    took, _ = synced_after(server)
    assert took
    assert [one["verb"] for one in server.asked[1:]] == ["list", "list", "list", "watch"]


@pytest.mark.usefixtures("large")
@pytest.mark.parametrize("shown", [bookmark(9), added("b", 9)], ids=["a bookmark", "a change"])
def test_a_large_cache_is_synced_when_a_watch_shows_the_version(shown: dict[str, Any]) -> None:
    server = Server([FIRST, [added("c", 6), shown, HOLD]], [page(9, pod("a", 1))])
    took, informer = synced_after(server)
    assert took == 4  # the second event of the scripted watch
    assert "c" in {obj.name for obj in informer.store}
    assert server.asked[1]["limit"] == "1"
    assert "resourceVersion" not in server.asked[1]
    assert (server.asked[2]["resourceVersion"], server.asked[2]["timeoutSeconds"]) == ("5", str(CATCH_UP_S))


@pytest.mark.usefixtures("large")
def test_a_large_cache_that_shows_the_version_is_synced_at_once() -> None:
    server = Server([FIRST], [page(5, pod("a", 1))])
    assert synced_after(server)[0] == 0
    assert [one["verb"] for one in server.asked] == ["watch", "list", "watch"]


@pytest.mark.usefixtures("large")
@pytest.mark.parametrize(
    "quiet", [[], [HOLD], [bookmark(6)], [expired()]], ids=["nothing", "no end", "too little", "too old"]
)
def test_all_are_listed_where_watches_do_not_help(quiet: list[Any]) -> None:
    ones = [page(9, pod("a", 1))] * MOST_CATCH_UPS
    again = [added("b", 8), bookmark(9, last=True), HOLD]  # too old: the set comes by watch
    server = Server([FIRST, quiet, again if quiet == [expired()] else quiet], [*ones, page(9, pod("b", 8))])
    took, informer = synced_after(server)
    assert took
    assert [obj.name for obj in informer.store] == ["b"]


@pytest.mark.usefixtures("large")
def test_versions_that_are_no_numbers_are_not_compared() -> None:
    server = Server([FIRST], [page("x7", pod("a", 1)), page("x8", pod("b", 8))])  # type: ignore[arg-type]
    took, informer = synced_after(server)
    assert took == 0
    assert [obj.name for obj in informer.store] == ["b"]


@pytest.mark.usefixtures("large")
def test_all_are_listed_where_versions_went_back() -> None:
    """As after a restore from a backup: API servers accept a watch from a version that lies ahead of theirs, and send
    nothing before they have reached it."""
    server = Server([FIRST], [page(3, pod("b", 2))] * 2)
    took, informer = synced_after(server)
    assert took == 0
    assert [obj.name for obj in informer.store] == ["b"]
    assert [(one["verb"], one.get("resourceVersion", "")) for one in server.asked[2:]] == [("list", ""), ("watch", "3")]
