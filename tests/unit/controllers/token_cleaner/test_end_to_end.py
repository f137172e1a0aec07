"""The controller in a whole sandbox, on virtual time: expired bootstrap tokens are deleted."""

import random
from functools import partial
from typing import Any

import pytest

from kcm_cli.rest.transport import Transport
from tests.kit.bootstrap_tokens import token
from tests.kit.controlling import Faulty, controllers
from tests.kit.faults import Meanwhile
from tests.kit.world import World, resource

pytestmark = pytest.mark.cluster(alone=True)

SECRETS = resource("secrets")
SYSTEM = "kube-system"


def cleaning(world: World, transport: Transport | None = None) -> Any:
    return controllers(world, names=["token-cleaner-controller"], transport=transport)


async def left(world: World, namespace: str = SYSTEM) -> list[str]:
    return [item["metadata"]["name"].removeprefix("bootstrap-token-") for item in await world.items(SECRETS, namespace)]


async def test_expired_tokens_are_deleted(world: World):
    async with cleaning(world):
        await world.create(SECRETS, token("eternl"), SYSTEM)
        await world.create(SECRETS, token("soon00", expiration="2026-01-01T00:05:00Z"), SYSTEM)
        await world.create(SECRETS, token("passed", expiration="2025-01-01T00:00:00Z"), SYSTEM)
        await world.create(SECRETS, token("absurd", expiration="at some time"), SYSTEM)
        await world.create(SECRETS, token("opaque", type_="Opaque", expiration="2025-01-01T00:00:00Z"), SYSTEM)
        await world.create(SECRETS, token("passed", expiration="2025-01-01T00:00:00Z"))
        await world.wait()
        assert await left(world) == ["eternl", "opaque", "soon00"]
        await world.wait(290)
        assert "soon00" in await left(world)
        await world.wait(10)
        assert await left(world) == ["eternl", "opaque"]
        assert await left(world, "default") == ["passed"]


async def test_a_prolonged_token_is_kept(world: World):
    later = token(expiration="2026-01-02T00:00:00Z")["data"]
    prolonged = partial(world.patch, SECRETS, "bootstrap-token-abcdef", {"data": later}, SYSTEM)
    transport = Meanwhile(world.server.transport(), "DELETE", "/bootstrap-token-abcdef", prolonged)
    async with cleaning(world, transport):
        await world.create(SECRETS, token(expiration="2026-01-01T00:05:00Z"), SYSTEM)
        await world.wait(600)
        assert transport.happened
        assert await left(world) == ["abcdef"]


@pytest.mark.parametrize("seed", range(3))
async def test_lost_requests_and_answers(world: World, seed):
    faulty = Faulty(world.server.transport(), random.Random(seed), 0.6)
    async with cleaning(world, faulty):
        for number in range(6):
            await world.create(SECRETS, token(f"aaaaa{number}", expiration="2026-01-01T00:00:30Z"), SYSTEM)
        await world.wait(120)
        assert faulty.faults
        assert await left(world) == []
