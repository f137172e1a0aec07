"""The controller in a whole sandbox, on virtual time: token Secrets are deleted with their accounts."""

import base64
import random
from functools import partial
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from kcm_cli.component.service_account_config import ServiceAccountTokenConfig
from kcm_cli.rest.transport import Request, Transport
from tests.kit.controlling import Faulty, controllers
from tests.kit.faults import Held, Meanwhile, Noting, Refusing
from tests.kit.root_ca import CA
from tests.kit.world import World, resource

pytestmark = pytest.mark.cluster(alone=True)

SECRETS = resource("secrets")
ACCOUNTS = resource("serviceaccounts")
NAME, UID = "kubernetes.io/service-account.name", "kubernetes.io/service-account.uid"


@pytest.fixture
def config(tmp_path) -> ServiceAccountTokenConfig:
    key = ec.generate_private_key(ec.SECP256R1())
    plain = serialization.NoEncryption()
    (tmp_path / "key").write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain)
    )
    (tmp_path / "ca").write_text(CA)
    return ServiceAccountTokenConfig(service_account_key_file=str(tmp_path / "key"), root_ca_file=str(tmp_path / "ca"))


class Story:
    def __init__(self, world: World, config: ServiceAccountTokenConfig) -> None:
        self.world = world
        self.config = config

    def running(self, transport: Transport | None = None) -> Any:
        return controllers(self.world, self.config, names=["serviceaccount-token-controller"], transport=transport)

    async def account(self, name: str = "robot", *secrets: str) -> str:
        await self.world.create(ACCOUNTS, {"metadata": {"name": name}, "secrets": [{"name": s} for s in secrets]})
        return (await self.world.get(ACCOUNTS, name))["metadata"]["uid"]  # type: ignore[no-any-return]

    async def secret(self, name: str = "token", account: str = "robot", data: Any = None, **notes: str) -> None:
        metadata = {"name": name, "annotations": {NAME: account, **notes}}
        body = {"metadata": metadata, "type": "kubernetes.io/service-account-token", "data": data or {}}
        await self.world.create(SECRETS, body)

    async def data(self, name: str = "token") -> dict[str, str]:
        found = await self.world.get(SECRETS, name)
        return {key: base64.b64decode(value).decode() for key, value in found.get("data", {}).items()}

    async def is_deleted(self, name: str = "token") -> bool:
        return await self.world.is_deleted(name, SECRETS)


async def test_a_token_is_generated(world: World, config):
    story = Story(world, config)
    async with story.running():
        uid = await story.account()
        await story.secret(data={"mine": base64.b64encode(b"stays").decode()})
        await world.wait(2)
        data = await story.data()
        assert data["mine"] == "stays"
        assert (data["ca.crt"], data["namespace"]) == (CA, "default")
        assert data["token"].count(".") == 2
        assert (await world.get(SECRETS, "token"))["metadata"]["annotations"][UID] == uid


async def test_removed_data_is_generated_again(world: World, config):
    story = Story(world, config)
    async with story.running():
        await story.account()
        await story.secret()
        await world.wait(2)
        before = await story.data()
        await world.patch(SECRETS, "token", {"data": {"ca.crt": "d3Jvbmc="}})
        await world.wait(2)
        assert await story.data() == before
        await world.patch(SECRETS, "token", {"data": {"token": None}})
        await world.wait(2)
        assert (await story.data())["token"].count(".") == 2


async def test_a_changed_ca_is_in_the_tokens_that_there_are(world: World, config, tmp_path):
    story = Story(world, config)
    async with story.running():
        await story.account()
        await story.secret()
        await world.wait(2)
        before = await story.data()
        (tmp_path / "ca").write_text(f"# new\n{CA}")
        await world.wait(70)
        assert await story.data() == before | {"ca.crt": f"# new\n{CA}"}


async def test_other_secrets_are_not_changed(world: World, config):
    story = Story(world, config)
    async with story.running():
        await story.account()
        await world.create(SECRETS, {"metadata": {"name": "token", "annotations": {NAME: "robot"}}})
        await world.wait(2)
        assert await story.data() == {}
        await world.delete(ACCOUNTS, "robot")
        await world.wait(2)
        assert not await story.is_deleted()


async def test_tokens_are_deleted_with_their_account(world: World, config):
    """They have its uid, so that it is not read for them."""
    story, noting = Story(world, config), Noting(world.server.transport())
    async with story.running(noting):
        await story.account()
        await story.account("other")
        for name, account in (("a", "robot"), ("b", "robot"), ("c", "other")):
            await story.secret(name, account)
        await world.wait(2)
        noting.sent.clear()
        await world.delete(ACCOUNTS, "robot")
        await world.wait(2)
        assert [await story.is_deleted(name) for name in "abc"] == [True, True, False]
        assert [one.method for one in noting.sent] == ["DELETE", "DELETE"]


async def test_a_failed_deletion_of_a_token_does_not_affect_others(world: World, config):
    story = Story(world, config)
    refusing = Refusing(world.server.transport(), lambda r: r.method == "DELETE" and r.path.endswith("/a"))
    async with story.running(refusing):
        await story.account()
        for name in "ab":
            await story.secret(name)
        await world.wait(2)
        await world.delete(ACCOUNTS, "robot")
        await world.wait(2)
        assert refusing.refused
        assert [await story.is_deleted(name) for name in "ab"] == [False, True]


@pytest.mark.parametrize("name", ["nobody", "a|b", "robot|x|y", '"'])
async def test_a_token_without_an_account_is_deleted(world: World, config, name):
    story = Story(world, config)
    async with story.running():
        await story.secret(account=name)
        await world.wait(2)
        assert await story.is_deleted()


async def test_a_token_with_an_impossible_account_name_is_kept(world: World, config):
    story = Story(world, config)
    async with story.running():
        await story.account()
        await story.secret(account="../serviceaccounts/robot")
        await world.wait(60)
        assert await story.data() == {}


async def test_a_token_of_an_earlier_account_is_deleted(world: World, config):
    story = Story(world, config)
    async with story.running():
        await story.account()
        await story.secret(**{UID: "earlier"})
        await world.wait(2)
        assert await story.is_deleted()


async def test_a_deleted_token_is_removed_from_its_account(world: World, config):
    story = Story(world, config)
    async with story.running():
        await story.account("robot", "token", "kept")
        await story.secret()
        await world.wait(2)
        await world.delete(SECRETS, "token")
        await world.wait(2)
        assert (await world.get(ACCOUNTS, "robot"))["secrets"] == [{"name": "kept"}]


@pytest.mark.parametrize("filled", [True, False])
async def test_a_new_token_of_a_recreated_account_is_kept(world: World, config, filled):
    """The cache still has the old account when the token is created, and when it is filled in."""
    story, holding = Story(world, config), [False]
    held = Held(world.server.transport(), world.clock, "/api/v1/serviceaccounts")
    transport = Refusing(held, lambda request: holding[0] and not filled and request.method == "PUT")
    await story.account()
    async with story.running(transport):
        await world.wait(2)
        held.hold()
        holding[0] = True
        await world.delete(ACCOUNTS, "robot")
        uid = await story.account()
        await story.secret()
        await world.wait(2)
        held.release()
        await world.wait(1)
        holding[0] = False
        await world.wait(20)
        assert (await story.data())["token"]
        assert (await world.get(SECRETS, "token"))["metadata"]["annotations"][UID] == uid


async def test_a_stale_cache_without_the_account_deletes_nothing(world: World, config):
    story = Story(world, config)
    blind = [False]

    def refuses(request: Request) -> bool:
        return blind[0] and request.path == "/api/v1/serviceaccounts"

    await story.account("first")
    async with story.running(Refusing(world.server.transport(), refuses)):
        await world.wait(2)
        await story.account()
        await story.secret()
        await world.wait(2)
        assert (await story.data())["token"]


async def test_a_token_is_deleted_with_an_account_that_the_cache_never_shows(world: World, config):
    """As when a list takes the place of a watch: no event says that it is gone."""
    story = Story(world, config)
    blind = [False]

    def refuses(request: Request) -> bool:
        return blind[0] and request.path == "/api/v1/serviceaccounts"

    async with story.running(Refusing(world.server.transport(), refuses)):
        await world.wait(2)
        blind[0] = True
        await world.wait(600)
        await story.account()
        await story.secret()
        await world.wait(2)
        assert (await story.data())["token"]
        await world.delete(ACCOUNTS, "robot")
        await world.wait(70)
        assert await story.is_deleted()


async def test_a_token_that_gets_an_account_while_its_deletion_is_retried_is_kept(world: World, config):
    story = Story(world, config)
    broken = [True]
    transport = Refusing(world.server.transport(), lambda request: broken[0] and request.method == "DELETE")
    await story.account()
    await story.secret(account="robto")
    async with story.running(transport):
        await world.wait(1)
        assert transport.refused
        await world.patch(SECRETS, "token", {"metadata": {"annotations": {NAME: "robot"}}})
        await world.wait(0.1)
        broken[0] = False
        await world.wait(60)
        assert (await story.data())["token"]


async def test_a_token_that_gets_an_account_just_before_its_deletion_is_kept(world: World, config):
    story = Story(world, config)
    await story.account()
    await story.secret(account="robto")
    corrected = partial(world.patch, SECRETS, "token", {"metadata": {"annotations": {NAME: "robot"}}})
    async with story.running(Meanwhile(world.server.transport(), "DELETE", "/secrets/token", corrected)):
        await world.wait(2)
        assert (await story.data())["token"]


async def test_without_a_key_it_does_not_run(world: World):
    story = Story(world, ServiceAccountTokenConfig())
    async with story.running():
        await story.account()
        await story.secret()
        await world.wait(2)
        assert await story.data() == {}


@pytest.mark.parametrize("seed", range(3))
async def test_lost_requests_and_answers(world: World, config, seed):
    story = Story(world, config)
    faulty = Faulty(world.server.transport(), random.Random(seed), 0.4)
    async with story.running(faulty):
        await story.account()
        await story.account("other")
        for number in range(6):
            await story.secret(f"s{number}", "robot" if number % 2 else "other")
        await world.wait(60)
        assert all([(await story.data(f"s{number}")).get("token") for number in range(6)])
        await world.delete(ACCOUNTS, "other")
        await world.wait(60)
        assert faulty.faults
        assert [await story.is_deleted(f"s{number}") for number in range(6)] == [True, False] * 3
