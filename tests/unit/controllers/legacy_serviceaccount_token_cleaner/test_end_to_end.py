"""The controller in a whole sandbox, on virtual time: unused tokens are marked, and deleted a period later."""

from functools import partial
from typing import Any

import pytest

from kcm_cli.controllers.legacy_serviceaccount_token_cleaner.config import LegacyTokenCleanerConfig
from kcm_cli.engine.descriptor import StartError
from kcm_cli.rest.transport import Transport
from tests.kit.controlling import controllers
from tests.kit.faults import Meanwhile, Refusing
from tests.kit.world import World, resource

pytestmark = pytest.mark.cluster(alone=True)

SECRETS = resource("secrets")
ACCOUNTS = resource("serviceaccounts")
TRACKING = resource("configmaps")
TRACKED = "kube-apiserver-legacy-service-account-token-tracking"
NAME = "kubernetes.io/service-account.name"
USED, INVALID = "kubernetes.io/legacy-token-last-used", "kubernetes.io/legacy-token-invalid-since"
HOUR = 3600.0
DAY = 24 * HOUR


def cleaning(world: World, transport: Transport | None = None, period_s: float = HOUR) -> Any:
    config = LegacyTokenCleanerConfig(clean_up_period_s=period_s)
    names = ["legacy-serviceaccount-token-cleaner-controller"]
    return controllers(world, config, names=names, transport=transport)


async def token(world: World, name: str = "token", *, listed: bool = True, **labels: str) -> None:
    """A token that is older than the period, in a cluster that has tracked uses for long."""
    metadata = {"name": name, "annotations": {NAME: "robot"}, "labels": {"mine": "kept", **labels}}
    await world.create(SECRETS, {"metadata": metadata, "type": "kubernetes.io/service-account-token"})
    await world.create(ACCOUNTS, {"metadata": {"name": "robot"}, "secrets": [{"name": name}] if listed else []})
    await world.patch(TRACKING, TRACKED, {"data": {"since": "2025-01-01"}}, "kube-system")
    await world.wait(2 * HOUR)


async def labels(world: World) -> dict[str, str]:
    return (await world.get(SECRETS, "token"))["metadata"]["labels"]  # type: ignore[no-any-return]


async def test_nothing_is_deleted_before_use_is_tracked_for_a_whole_period(world: World):
    assert (await world.get(TRACKING, TRACKED, "kube-system"))["data"] == {"since": "2026-01-01"}
    await token(world)
    await world.patch(TRACKING, TRACKED, {"data": {"since": "2026-01-01"}}, "kube-system")
    async with cleaning(world):
        await world.wait()
        assert INVALID not in await labels(world)
        await world.wait(DAY)
        assert await labels(world) == {"mine": "kept", INVALID: "2026-01-02"}


async def test_an_unused_token_is_marked_and_deleted_a_period_later(world: World):
    await token(world)
    async with cleaning(world):
        await world.wait()
        assert await labels(world) == {"mine": "kept", INVALID: "2026-01-01"}
        await world.wait(DAY)
        assert await world.is_deleted("token", SECRETS)


async def test_a_marked_token_is_kept_for_the_whole_period(world: World):
    await token(world, **{INVALID: "2026-01-01"})
    async with cleaning(world):
        await world.wait()
        assert not await world.is_deleted("token", SECRETS)


@pytest.mark.parametrize(
    ("listed", "given"),
    [
        pytest.param(False, {}, id="created by a user"),
        pytest.param(True, {USED: "2026-06-01"}, id="used"),
        pytest.param(True, {USED: "never"}, id="used on no day"),
    ],
)
async def test_tokens_that_are_kept(world: World, listed, given):
    await token(world, listed=listed, **given)
    async with cleaning(world):
        await world.wait(DAY + HOUR)
        assert await labels(world) == {"mine": "kept", **given}


async def test_a_token_that_a_pod_names_is_kept_until_the_pod_is_deleted(world: World):
    await token(world)
    await world.pod("user", {"imagePullSecrets": [{"name": "token"}], "schedulingGates": [{"name": "x.y/z"}]})
    async with cleaning(world):
        await world.wait()
        assert INVALID not in await labels(world)
        await world.delete(resource("pods"), "user")
        await world.wait(DAY)
        assert INVALID in await labels(world)


async def test_a_token_used_just_before_its_deletion_is_kept(world: World):
    await token(world, **{INVALID: "2025-01-01"})
    used = partial(world.patch, SECRETS, "token", {"metadata": {"labels": {USED: "2026-01-01"}}})
    async with cleaning(world, Meanwhile(world.server.transport(), "DELETE", "/secrets/token", used)):
        await world.wait()
        assert (await labels(world))[USED] == "2026-01-01"


async def test_a_token_used_just_before_it_is_marked_stays_valid(world: World):
    """The pods of other namespaces are listed between the decision and the write."""
    await token(world)
    used = partial(world.patch, SECRETS, "token", {"metadata": {"labels": {USED: "2026-01-01"}}})
    async with cleaning(world, Meanwhile(world.server.transport(), "PATCH", "/secrets/token", used)):
        await world.wait()
        assert await labels(world) == {"mine": "kept", USED: "2026-01-01"}


@pytest.mark.parametrize("path", ["/default/pods", "/secrets/token", "/configmaps/kube-apiserver-legacy"])
async def test_failures_are_retried_a_day_later(world: World, path):
    await token(world)
    down = [True]
    transport = Refusing(world.server.transport(), lambda request: down[0] and path in request.path)
    async with cleaning(world, transport):
        await world.wait()
        assert transport.refused
        assert INVALID not in await labels(world)
        down[0] = False
        await world.wait(DAY)
        assert INVALID in await labels(world)


async def test_a_period_of_zero_is_an_error_at_the_start(world: World):
    with pytest.raises(StartError, match="--legacy-service-account-token-clean-up-period"):
        async with cleaning(world, period_s=0.0):
            await world.wait(1)
