"""A cluster: the order of its parts, and what happens when one of them ends."""

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from kcm_cli.cluster.cluster import Cluster
from kcm_cli.component.clock import LoopClock
from kcm_cli.sandbox.apiserver.security.certificates import Certificates
from tests.kit.embedded import EmbeddedServer
from tests.kit.world import EPOCH


class Story:
    """A cluster whose parts note their start and end. ``ends``: how a part ends by itself."""

    def __init__(self, certificates: Certificates, **ends: Exception | int) -> None:
        self.noted: list[str] = []
        self._ends = ends
        self._api = EmbeddedServer(LoopClock(EPOCH), random.Random(1), certificates)

    @asynccontextmanager
    async def _server(self) -> AsyncIterator[None]:
        self.noted.append("server")
        await self._api.start()
        try:
            yield
        finally:
            self.noted.append("no server")

    async def _live(self, name: str, stop: asyncio.Event) -> int:
        self.noted.append(name)
        try:
            await asyncio.sleep(1)
            end = self._ends.get(name)
            if isinstance(end, Exception):
                raise end
            if end is None:
                await stop.wait()
            return end or 0
        finally:
            self.noted.append(f"no {name}")

    def cluster(self) -> Cluster[Any]:
        story = self

        class Part:
            def __init__(self, name: str) -> None:
                self.name = name

            async def run(self) -> None:
                await story._live(self.name, asyncio.Event())

        class Controllers:
            async def run(self, cluster: object, stop: asyncio.Event) -> int:
                return await story._live("controllers", stop)

        return Cluster(
            clock=LoopClock(EPOCH),
            rng=random.Random(1),
            connect=lambda component: self._api.transport(),
            server=self._server(),
            nodes=lambda means: Part("nodes"),
            storage=lambda means: Part("storage"),
            controllers=Controllers(),
        )


async def test_parts_start_in_order_and_end_in_the_opposite_one(certificates: Certificates) -> None:
    story = Story(certificates)
    async with story.cluster().running() as cluster:
        assert cluster.nodes.name == "nodes"
        await asyncio.sleep(5)
        started = list(story.noted)
    assert started == ["server", "nodes", "storage", "controllers"]
    assert story.noted[4:] == [f"no {name}" for name in reversed(started)]
    assert (cluster.code, cluster.failed, cluster.stop.is_set()) == (0, [], True)


@pytest.mark.parametrize("name", ["nodes", "storage", "controllers"])
async def test_a_part_that_fails_is_named_and_ends_the_controllers(certificates: Certificates, name: str) -> None:
    error, stop = ValueError("broken"), asyncio.Event()
    story = Story(certificates, **{name: error})
    async with story.cluster().running(stop) as cluster:
        await asyncio.wait_for(stop.wait(), 5)
        assert cluster.failed == [(name, error)]
    assert sorted(story.noted[4:]) == sorted(f"no {each}" for each in story.noted[:4])


async def test_controllers_that_end_have_a_code_and_end_the_cluster(certificates: Certificates) -> None:
    stop = asyncio.Event()
    async with Story(certificates, controllers=3).cluster().running(stop) as cluster:
        await asyncio.wait_for(stop.wait(), 5)
        assert (cluster.code, cluster.failed) == (3, [])


async def test_an_error_of_the_user_ends_all_parts(certificates: Certificates) -> None:
    story = Story(certificates)
    with pytest.raises(LookupError):
        async with story.cluster().running():
            await asyncio.sleep(5)
            raise LookupError
    assert sorted(story.noted[4:]) == sorted(f"no {each}" for each in story.noted[:4])
