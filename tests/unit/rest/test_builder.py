"""Clients by name."""

import asyncio
import json
from datetime import UTC, datetime, timedelta

import pytest

from kcm_cli.api.core import PODS
from kcm_cli.component.clock import LoopClock
from kcm_cli.machinery.times import format_time
from kcm_cli.rest.builder import ClientSettings, RootClients, ServiceAccountClients
from kcm_cli.rest.transport import Unreachable

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)
ACCOUNTS = "/api/v1/namespaces/kube-system/serviceaccounts"


class Provisioner:
    """Plays the API server: accounts, namespace, tokens that hold for ``lifetime_s``."""

    def __init__(self, answer, failure, clock, lifetime_s=3600):
        self.answer, self.failure, self.clock, self.lifetime_s = answer, failure, clock, lifetime_s
        self.accounts = set()
        self.namespaces = {"kube-system"}
        self.tokens = 0
        self.asked = []
        self.broken = 0

    def __call__(self, request):
        self.asked.append((request.method, request.path))
        path = request.path
        if path.endswith("/token"):
            return self.token(request)
        kind = "namespace" if "serviceaccounts" not in path else "serviceaccount"
        known = self.namespaces if kind == "namespace" else self.accounts
        if request.method == "POST":
            known.add(json.loads(request.body)["metadata"]["name"])
            return self.answer(201, json.loads(request.body))
        name = path.rpartition("/")[2]
        return self.answer(200, {"metadata": {"name": name}}) if name in known else self.failure(404, "NotFound")

    def token(self, request):
        if self.broken:
            self.broken -= 1
            return self.failure(500, "InternalError")
        assert json.loads(request.body)["spec"] == {"expirationSeconds": 3600}
        self.tokens += 1
        expires = format_time(self.clock.now() + timedelta(seconds=self.lifetime_s))
        return self.answer(201, {"status": {"token": f"t{self.tokens}", "expirationTimestamp": expires}})


@pytest.fixture
def cluster(script, answer, failure):
    clock = LoopClock(EPOCH)
    provisioner = Provisioner(answer, failure, clock)
    seen = script(lambda request: answer(200, {"metadata": {"name": request.path.rpartition("/")[2]}}))
    settings = ClientSettings(qps=-1)
    root = RootClients(script(provisioner), settings, clock)
    clients = ServiceAccountClients(root.client("kube-controller-manager"), seen, settings, clock)
    return provisioner, seen, clients


def test_user_agent_has_the_form_of_client_go():
    agent = ClientSettings(version="v1.36.0", commit="abcdef0").user_agent("deployment-controller")
    system, _, rest = agent.partition(" (")
    assert system == "kube-controller-manager/v1.36.0"
    assert rest.endswith(") kubernetes/abcdef0/deployment-controller")


def test_a_name_has_one_client_with_its_own_limit(script, answer):
    root = RootClients(script(answer(200, {})), ClientSettings(), LoopClock())
    assert root.client("a") is root.client("a")
    assert root.client("a")._limiter is not root.client("b")._limiter


async def test_a_controller_uses_its_service_account(cluster):
    provisioner, seen, clients = cluster
    await clients.client("deployment-controller").get(PODS, "ns", "a")
    assert provisioner.accounts == {"deployment-controller"}
    headers = seen.asked[0].headers
    assert headers["authorization"] == "Bearer t1"
    assert headers["user-agent"].endswith("/system:serviceaccount:kube-system:deployment-controller")


def test_creating_a_client_sends_no_request(cluster):
    provisioner, _, clients = cluster
    clients.client("a")
    assert provisioner.asked == []


async def test_a_token_is_used_for_80_percent_of_its_lifetime(cluster):
    provisioner, seen, clients = cluster
    client = clients.client("a")
    for wait_s in (0, 2879, 2, 0):
        await asyncio.sleep(wait_s)
        await client.get(PODS, "ns", "a")
    assert [r.headers["authorization"] for r in seen.asked] == ["Bearer t1", "Bearer t1", "Bearer t2", "Bearer t2"]


async def test_a_token_that_seems_short_lived_is_used_for_eight_minutes(cluster):
    provisioner, seen, clients = cluster
    provisioner.lifetime_s = 1
    client = clients.client("a")
    for wait_s in (0, 479, 2):
        await asyncio.sleep(wait_s)
        await client.get(PODS, "ns", "a")
    assert [r.headers["authorization"] for r in seen.asked] == ["Bearer t1", "Bearer t1", "Bearer t2"]


async def test_getting_a_token_is_tried_four_times(cluster):
    provisioner, seen, clients = cluster
    provisioner.broken = 3
    await clients.client("a").get(PODS, "ns", "a")
    assert LoopClock().monotonic() == pytest.approx(3.5)
    assert len(seen.asked) == 1


async def test_a_client_without_a_token_sends_no_request(cluster):
    provisioner, seen, clients = cluster
    provisioner.broken = 100
    with pytest.raises(Unreachable, match="failed to get token for kube-system/a"):
        await clients.client("a").get(PODS, "ns", "a")
    assert seen.asked == []


async def test_a_missing_account_and_its_namespace_are_created_before_the_first_request(cluster):
    provisioner, _, clients = cluster
    provisioner.namespaces.clear()
    for name in ("a", "b", "a"):
        await clients.client(name).get(PODS, "ns", "a")
    assert provisioner.accounts == {"a", "b"}
    assert provisioner.namespaces == {"kube-system"}
    assert provisioner.asked.count(("POST", ACCOUNTS)) == 2
