"""The controller in a whole sandbox, on virtual time: cluster-info is signed with the existing tokens."""

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

CONFIG_MAPS, SECRETS = resource("configmaps"), resource("secrets")
INFO = {"metadata": {"name": "cluster-info", "labels": {"mine": "kept"}}, "data": {"kubeconfig": "text", "other": "x"}}
FIRST = "jws-kubeconfig-abcdef"


def signing(world: World, transport: Transport | None = None) -> Any:
    return controllers(world, names=["bootstrap-signer-controller"], transport=transport)


async def data(world: World) -> dict[str, str]:
    return (await world.get(CONFIG_MAPS, "cluster-info", "kube-public"))["data"]  # type: ignore[no-any-return]


async def test_signatures_follow_the_tokens_and_the_content(world: World):
    async with signing(world):
        await world.create(SECRETS, token(), "kube-system")
        await world.create(CONFIG_MAPS, INFO, "kube-public")
        await world.wait()
        signed = await data(world)
        assert set(signed) == {"kubeconfig", "other", FIRST}
        await world.create(SECRETS, token("other1"), "kube-system")
        await world.patch(CONFIG_MAPS, "cluster-info", {"data": {"kubeconfig": "more"}}, "kube-public")
        await world.wait()
        assert set(await data(world)) == {"kubeconfig", "other", FIRST, "jws-kubeconfig-other1"}
        assert (await data(world))[FIRST] != signed[FIRST]
        await world.client.delete(SECRETS, "kube-system", "bootstrap-token-abcdef")
        await world.wait()
        assert set(await data(world)) == {"kubeconfig", "other", "jws-kubeconfig-other1"}


async def test_tokens_of_other_namespaces_and_types_sign_nothing(world: World):
    async with signing(world):
        await world.create(CONFIG_MAPS, INFO, "kube-public")
        await world.create(CONFIG_MAPS, INFO, "default")
        await world.create(SECRETS, token(), "default")
        await world.create(SECRETS, token("bbbbbb", type_="Opaque"), "kube-system")
        await world.wait()
        assert await data(world) == INFO["data"]


async def test_the_signature_of_a_deleted_token_is_removed(world: World):
    async with signing(world):
        await world.create(SECRETS, token(expiration="2026-01-01T00:05:00Z"), "kube-system")
        await world.create(CONFIG_MAPS, INFO, "kube-public")
        await world.wait(200)
        assert FIRST in await data(world)
        await world.wait(100)
        assert FIRST not in await data(world)


async def test_a_concurrent_change_is_not_lost(world: World):
    changed = partial(world.patch, CONFIG_MAPS, "cluster-info", {"data": {"other": "y"}}, "kube-public")
    async with signing(world, Meanwhile(world.server.transport(), "PUT", "/cluster-info", changed)):
        await world.create(CONFIG_MAPS, INFO, "kube-public")
        await world.create(SECRETS, token(), "kube-system")
        await world.wait(5)
        signed = await data(world)
        assert (signed["other"], FIRST in signed) == ("y", True)


@pytest.mark.parametrize("seed", range(3))
async def test_lost_requests_and_answers(world: World, seed):
    faulty = Faulty(world.server.transport(), random.Random(seed), 0.5)
    async with signing(world, faulty):
        await world.create(CONFIG_MAPS, INFO, "kube-public")
        for number in range(6):
            await world.create(SECRETS, token(f"aaaaa{number}"), "kube-system")
            await world.wait(1)
        await world.wait(60)
        assert faulty.faults
        assert len(await data(world)) == 8
