"""Whatever Endpoints, their Service and other clients do, with late news and lost answers: at rest the slices that
mirror Endpoints have their addresses, each once, or there are none if nothing is to be mirrored."""

import random
from collections import Counter
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from kcm_cli.api.core import SERVICES
from kcm_cli.api.discovery import ENDPOINT_SLICES, SKIP_MIRROR
from kcm_cli.api.endpoints import ENDPOINTS
from kcm_cli.controllers.endpointslice_mirroring.config import EndpointSliceMirroringConfig
from kcm_cli.controllers.endpointslice_mirroring.plan import MANAGER
from kcm_cli.rest.transport import Transport
from kcm_cli.sandbox.apiserver.security.certificates import Certificates
from tests.kit.controlling import controllers
from tests.kit.faults import Late
from tests.kit.world import World, running_world
from tests.unit.controllers.endpointslice.meddling import NUMBERS, OTHERS, Meddling

Doc = dict[str, Any]
ADDRESSES = ("10.1.0.1", "10.1.0.2", "10.1.0.3", "fd00::1", "fd00::2", "10.1.0.4", "10.1.0.5")


class Story(Meddling):
    """A Service ``web`` without a selector, and its Endpoints."""

    def __init__(self, world: World) -> None:
        super().__init__(world, MANAGER)

    def running(self, transport: Transport | None = None) -> Any:
        names = ["endpointslice-mirroring-controller"]
        return controllers(self.world, EndpointSliceMirroringConfig(), names=names, transport=transport)

    async def prepare(self) -> None:
        await self.step_serve(0)

    # -- Endpoints

    async def step_put(self, number: int) -> None:
        """As many addresses, the last one not ready."""
        addresses = [{"ip": ip} for ip in ADDRESSES[:number]]
        subset = {"addresses": addresses[:-1], "notReadyAddresses": addresses[-1:], "ports": [{"port": 80}]}
        await self._write({"subsets": [subset] if addresses else None})

    async def step_split(self, number: int) -> None:
        """Two subsets of different ports."""
        subsets = [{"addresses": [{"ip": ip}], "ports": [{"port": 80 + number}]} for ip in ADDRESSES[2:4]]
        await self._write({"subsets": [subsets[0], subsets[1] | {"ports": [{"port": 70}]}]})

    async def step_mark(self, number: int) -> None:
        meta = {"labels": {"number": f"{number}"}, "annotations": {"number": f"{number}"}}
        await self._write({"metadata": meta})

    async def step_skip(self, number: int) -> None:
        await self._write({"metadata": {"labels": {SKIP_MIRROR: ("true", None)[number % 2]}}})

    async def step_remove(self, number: int) -> None:
        if not await self.world.is_deleted("web", ENDPOINTS):
            await self.world.delete(ENDPOINTS, "web")

    async def step_replace(self, number: int) -> None:
        await self.step_remove(number)
        await self.step_put(number)

    # -- the Service

    async def step_serve(self, number: int) -> None:
        if await self.world.is_deleted("web", SERVICES):
            await self.world.create(SERVICES, {"metadata": {"name": "web"}, "spec": {"ports": [{"port": 80}]}})

    async def step_close(self, number: int) -> None:
        """With the Service the API server deletes its Endpoints."""
        if not await self.world.is_deleted("web", SERVICES):
            await self.world.delete(SERVICES, "web")

    async def step_select(self, number: int) -> None:
        """Or no longer."""
        if not await self.world.is_deleted("web", SERVICES):
            selector = ({"app": "web"}, None)[number % 2]
            await self.world.patch(SERVICES, "web", {"spec": {"selector": selector}})

    async def check(self) -> None:
        wanted = await self._wanted()
        found = await self.slices()
        assert Counter(
            (slice_["addressType"], ports_of(slice_), *one["addresses"], one["conditions"]["ready"])
            for slice_ in found
            for one in slice_["endpoints"]
        ) == Counter(wanted)
        assert all(slice_["endpoints"] for slice_ in found)
        assert len({(slice_["addressType"], ports_of(slice_)) for slice_ in found}) == len(found)

    # -- inside

    async def _wanted(self) -> list[tuple[Any, ...]]:
        if await self.world.is_deleted("web", SERVICES) or await self.world.is_deleted("web", ENDPOINTS):
            return []
        service, endpoints = await self.world.get(SERVICES, "web"), await self.world.get(ENDPOINTS, "web")
        if service["spec"].get("selector") or endpoints["metadata"].get("labels", {}).get(SKIP_MIRROR) == "true":
            return []
        return [
            ("IPv6" if ":" in one["ip"] else "IPv4", ports_of(subset), one["ip"], ready)
            for subset in endpoints.get("subsets") or ()
            for field, ready in (("addresses", True), ("notReadyAddresses", False))
            for one in subset.get(field) or ()
        ]

    async def _write(self, body: Doc) -> None:
        if await self.world.is_deleted("web", ENDPOINTS):
            await self.world.create(ENDPOINTS, {"metadata": {"name": "web"}})
        await self.world.patch(ENDPOINTS, "web", body)


def ports_of(one: Doc) -> tuple[int, ...]:
    return tuple(port["port"] for port in one["ports"])


OWN = ("put", "split", "mark", "skip", "remove", "replace", "serve", "close", "select")
STEPS = (*OWN, *OTHERS, *("put", "serve", "wait") * 4)
USUAL = (("serve", 0), ("select", 1), ("skip", 1), ("put", 6))


@settings(max_examples=8)
@given(st.integers(0, 2**32 - 1), st.integers(5, 60))
async def test_at_rest_slices_are_the_endpoints(certificates: Certificates, seed, length):
    rng = random.Random(seed)
    async with running_world(certificates, alone=True) as world:
        story = Story(world)
        await story.prepare()
        late = Late(world.server.transport(), world.clock, random.Random(seed))
        async with story.running(late):
            for _ in range(length):
                await story.step(rng.choice(STEPS), rng.randrange(NUMBERS))
            late.steady()
            await world.wait(1500)
            await story.check()
            await story.tour((*OWN, *OTHERS), USUAL, rng)
        async with story.running():
            await world.wait(60)
            await story.check()
            before = await story.versions(ENDPOINT_SLICES)
        async with story.running():
            await world.wait(60)
            assert await story.versions(ENDPOINT_SLICES) == before
