"""Faults affect the configured requests at the configured times, reproducibly by seed, and are recorded."""

import asyncio
import json
import random
from contextlib import nullcontext
from typing import Any

import msgspec
import pytest

from kcm_cli.api.protobuf.encoding import to_protobuf
from kcm_cli.component.clock import LoopClock
from kcm_cli.machinery.envelope import MAGIC
from kcm_cli.rest.transport import ConnectionLost, Request, Response, Unreachable
from kcm_cli.sandbox.apiserver.entrance import Answer, Asked
from kcm_cli.sandbox.apiserver.entry.fault import Fault, faults_of
from kcm_cli.sandbox.apiserver.entry.faults import Faults, Injected
from kcm_cli.sandbox.apiserver.entry.recording import RecordedRequest, Recorder
from kcm_cli.sandbox.apiserver.routing.requestinfo import resolve
from kcm_cli.sandbox.apiserver.security.certificates import Certificates
from kcm_cli.sandbox.apiserver.types import User
from kcm_cli.serving.connection import Dropped
from kcm_cli.serving.upgrade import Duplex, upgraded
from tests.kit.embedded import EmbeddedServer

MAPS = "/api/v1/namespaces/default/configmaps"
JSON = {"content-type": "application/json", "user-agent": "operator/1"}


class Client:
    """One user of one server."""

    def __init__(self, server: EmbeddedServer, name: str) -> None:
        self.transport = server.transport(User(name, groups=("system:masters", "system:authenticated")))

    async def ask(self, method: str, path: str, doc: Any = None, **query: str) -> Response:
        body = b"" if doc is None else json.dumps(doc).encode()
        return await self.transport.send(Request(method, path, tuple(query.items()), JSON, body))

    async def put(self, name: str, value: str = "") -> int:
        """Create or replace it; returns the status."""
        doc = {"metadata": {"name": name}, "data": {"k": value}}
        answer = await self.ask("POST", MAPS, doc)
        if answer.status == 409 and b"AlreadyExists" in answer.body:
            answer = await self.ask("PUT", f"{MAPS}/{name}", doc)
        return answer.status

    async def value(self, name: str, **query: str) -> str | None:
        answer = await self.ask("GET", f"{MAPS}/{name}", **query)
        return json.loads(answer.body)["data"]["k"] if answer.status == 200 else None

    async def names(self, **query: str) -> list[str]:
        answer = await self.ask("GET", MAPS, **query)
        return [item["metadata"]["name"] for item in json.loads(answer.body)["items"]]

    async def watch(self, seen: list[str], **query: str) -> None:
        """Collects ``TYPE name`` until the watch ends."""
        request = Request("GET", MAPS, (("watch", "1"), *query.items()), JSON)
        async with self.transport.stream(request) as stream:
            async for chunk in stream.chunks:
                for line in chunk.splitlines():
                    event = json.loads(line)
                    found = event["object"].get("metadata", {}).get("name") or event["object"].get("code")
                    seen.append(f"{event['type']} {found}")


async def started(certificates: Certificates) -> EmbeddedServer:
    """A server with the namespace default."""
    made = EmbeddedServer(LoopClock(), random.Random(1), certificates)
    await made.start()
    await Client(made, "other").ask("POST", "/api/v1/namespaces", {"metadata": {"name": "default"}})
    return made


@pytest.fixture
async def server(certificates: Certificates) -> EmbeddedServer:
    return await started(certificates)


@pytest.fixture
def faults(server: EmbeddedServer) -> Faults:
    return server.api.faults


@pytest.fixture
def operator(server: EmbeddedServer) -> Client:
    return Client(server, "operator")


@pytest.fixture
def other(server: EmbeddedServer) -> Client:
    return Client(server, "other")


OURS = {"user": "operator", "resources": ("configmaps",)}


def hits(injected: Injected) -> list[str]:
    return [str(one) for one in injected.happened]


async def test_errors_affect_one_user_with_the_configured_status(
    faults: Faults, operator: Client, other: Client
) -> None:
    fault = faults.add(Fault("refuse", status=503, message="not now", verbs=("create",), times=2, **OURS))
    assert [await operator.put("a"), await other.put("b"), await operator.put("a")] == [503, 201, 503]
    assert await operator.put("a") == 201
    assert hits(fault) == ["refuse: create configmaps default/a by operator"] * 2


async def test_conflicts_affect_updates_and_throttling_has_retry_after(
    faults: Faults, operator: Client, other: Client
) -> None:
    faults.add(Fault("conflict", every=2, **OURS))
    assert [await operator.put("a", str(n)) for n in range(5)] == [201, 200, 409, 200, 409]
    assert await other.value("a") == "3"
    faults.clear()
    faults.add(Fault("throttle", retry_after_s=3, **OURS))
    answer = await operator.ask("GET", MAPS)
    assert (answer.status, answer.headers["retry-after"]) == (429, "3")
    assert json.loads(answer.body)["details"]["retryAfterSeconds"] == 3


async def test_a_lost_response_has_an_effect_and_an_unavailable_server_none(
    faults: Faults, operator: Client, other: Client
) -> None:
    faults.add(Fault("lose", times=1, **OURS))
    with pytest.raises(ConnectionLost):
        await operator.put("a")
    faults.add(Fault("away", start_s=1, for_s=10, user="operator"))
    seen: list[str] = []
    watch = asyncio.ensure_future(operator.watch(seen))
    await asyncio.sleep(2)
    with pytest.raises(ConnectionLost):
        await watch
    with pytest.raises(Unreachable):
        await operator.put("b")
    assert await other.names() == ["a"]
    await asyncio.sleep(10)
    assert await operator.put("b") == 201


async def test_what_belongs_to_a_lost_response_is_released(faults: Faults) -> None:
    dropped: list[str] = []

    async def nobody(duplex: Duplex) -> None:
        raise AssertionError("the client has no answer")

    async def proceed(request: Request, at: int | None) -> Answer:
        return upgraded({}, nobody, lambda: dropped.append(request.path))

    faults.add(Fault("lose", user="operator"))
    request = Request("POST", MAPS)
    with pytest.raises(Dropped):
        await faults.intercept(Asked(User("operator"), request, resolve("POST", MAPS, {})[0]), proceed)
    assert dropped == [MAPS]


async def test_probabilities_are_reproducible_with_a_seed(certificates: Certificates) -> None:
    runs: list[list[int]] = []
    for seed in (1, 1, 2):
        server = await started(certificates)
        server.api.faults.add(Fault("refuse", chance=0.5, seed=seed, **OURS))
        runs.append([(await Client(server, "operator").ask("GET", MAPS)).status for _ in range(40)])
    assert runs[0] == runs[1] != runs[2]
    assert 5 < runs[0].count(500) < 35


async def test_delays_lie_between_their_bounds(faults: Faults, operator: Client) -> None:
    faults.add(Fault("delay", delay_s=(0.1, 0.2), **OURS))
    for _ in range(10):
        before = LoopClock().monotonic()
        await operator.ask("GET", MAPS)
        assert 0.1 <= LoopClock().monotonic() - before <= 0.2


async def test_watches_are_cut_after_their_time_and_at_once(faults: Faults, operator: Client) -> None:
    faults.add(Fault("cut", after_s=2.5, broken=True, every=2, **OURS))
    faults.add(Fault("cut", after_s=2.5, **OURS))
    await operator.watch([])
    with pytest.raises(ConnectionLost):
        await operator.watch([])
    assert LoopClock().monotonic() == pytest.approx(5)
    faults.clear()
    for broken in (False, True):
        open_one = asyncio.ensure_future(operator.watch([]))
        await asyncio.sleep(1)
        faults.add(Fault("cut", broken=broken, times=1, **OURS))
        with pytest.raises(ConnectionLost) if broken else nullcontext():
            await open_one


async def test_a_fault_that_lasts_keeps_nothing_of_old_watches(faults: Faults, operator: Client) -> None:
    fault = faults.add(Fault("cut", after_s=2.5, **OURS))
    for _ in range(5):
        await operator.watch([])
    assert (fault.hits, len(fault.happened), fault.timers) == (5, 5, set())
    assert faults.counts() == {"cut": 5}


async def test_of_very_many_hits_the_last_are_listed(faults: Faults, operator: Client) -> None:
    faults.add(Fault("refuse", times=10_003, **OURS))
    statuses = [(await operator.ask("GET", MAPS)).status for _ in range(10_005)]
    assert statuses[10_002:] == [500, 200, 200]
    (fault,) = faults.all.values()
    assert len(fault.happened) == 10_000 and faults.counts() == {"refuse": 10_003}


async def test_watches_from_a_version_and_open_ones_expire(
    faults: Faults, operator: Client, other: Client, server: EmbeddedServer
) -> None:
    await other.put("a")
    seen: list[str] = []
    watch = asyncio.ensure_future(operator.watch(seen))
    await asyncio.sleep(1)
    faults.add(Fault("expire", **OURS))
    await watch
    assert seen == ["ADDED a", "ERROR 410"]
    await operator.watch(seen, resourceVersion="5")
    assert seen[2:] == ["ERROR 410"]
    faults.clear()
    faults.add(Fault("expire", revision=server.store.revision, **OURS))
    await operator.watch(seen, resourceVersion=str(server.store.revision - 1))
    assert seen.pop() == "ERROR 410"
    newest = asyncio.ensure_future(operator.watch(seen, resourceVersion=str(server.store.revision)))
    await asyncio.sleep(1)
    assert not newest.done()
    newest.cancel()
    faults.clear()
    faults.add(Fault("expire", **OURS))
    fresh = asyncio.ensure_future(operator.watch(seen, resourceVersion="0"))
    await asyncio.sleep(1)
    assert seen[3:] == ["ADDED a"]
    fresh.cancel()
    await other.put("b")
    page = await other.ask("GET", MAPS, limit="1")
    more = json.loads(page.body)["metadata"]["continue"]
    assert (await operator.ask("GET", MAPS, **{"continue": more})).status == 410
    assert (await other.ask("GET", MAPS, **{"continue": more})).status == 200


async def test_a_stale_client_sees_an_old_state(faults: Faults, operator: Client, other: Client) -> None:
    await other.put("a", "old")
    await other.put("b")
    seen: list[str] = []
    watch = asyncio.ensure_future(operator.watch(seen))
    await asyncio.sleep(1)
    stale = faults.add(Fault("stale", for_s=60, **OURS))
    await other.put("a", "new")
    await other.ask("DELETE", f"{MAPS}/b")
    await other.put("c")
    await asyncio.sleep(70 - 20)
    assert seen == ["ADDED a", "ADDED b"]
    assert [await operator.value("a"), await operator.value("a", resourceVersion="0")] == ["new", "old"]
    assert [await operator.names(), await operator.names(resourceVersion="0")] == [["a", "c"], ["a", "b"]]
    assert await other.names(resourceVersion="0") == ["a", "c"]
    second: list[str] = []
    later = asyncio.ensure_future(operator.watch(second, resourceVersion="0"))
    await asyncio.sleep(20)
    assert seen[2:] == second[2:] == ["MODIFIED a", "DELETED b", "ADDED c"]
    assert second[:2] == ["ADDED a", "ADDED b"]
    assert "stale: list configmaps default by operator" in hits(stale)
    watch.cancel()
    later.cancel()
    faults.add(Fault("stale", revision=stale.revision, all_reads=True, **OURS))
    assert [await operator.value("a"), await operator.names()] == ["old", ["a", "b"]]


async def test_requests_are_recorded_with_what_faults_made_of_them(
    faults: Faults, operator: Client, other: Client, server: EmbeddedServer
) -> None:
    kept: list[RecordedRequest] = []
    server.api.interceptors.append(Recorder(LoopClock(), kept.append, user="operator").intercept)
    faults.add(Fault("conflict", **OURS))
    faults.add(Fault("lose", verbs=("delete",), **OURS))
    await operator.put("a")
    await other.put("a")
    await operator.put("a")
    with pytest.raises(ConnectionLost):
        await operator.ask("DELETE", f"{MAPS}/a")
    assert [str(one) for one in kept] == [
        "create configmaps default/a: 201",
        "create configmaps default/a: 409",
        "update configmaps default/a: 409",
        "delete configmaps default/a: no answer",
    ]
    assert json.loads(kept[0].answer)["metadata"]["name"] == "a"


async def test_faults_are_served(operator: Client, other: Client, server: EmbeddedServer) -> None:
    path = "/sandbox.kcm.dev/faults"
    made = await other.ask("POST", path, [{"fault": "refuse", "userAgent": "operator/*", "verbs": ["create"]}])
    assert made.status == 201
    assert await operator.put("a") == 500
    found = json.loads((await other.ask("GET", path)).body)["items"]
    assert [(one["id"], one["fault"], one["userAgent"]) for one in found] == [(1, "refuse", "operator/*")]
    assert [(one["verb"], one["name"]) for one in found[0]["happened"]] == [("create", "a")]
    for wrong in ("2", "01", "1" * 5000):
        assert (await other.ask("DELETE", f"{path}/{wrong}")).status == 404
    assert (await other.ask("PUT", f"{path}/1")).status == 405
    bad = await other.ask("POST", path, {"fault": "refuse", "usr": "x"})
    assert (bad.status, "unknown field `usr`" in bad.body.decode()) == (400, True)
    assert (await other.ask("DELETE", f"{path}/1")).status == 200
    assert await operator.put("a") == 201
    nobody = server.transport(User("nobody", groups=("system:authenticated",)))
    assert (await nobody.send(Request("GET", path))).status == 403


@pytest.mark.parametrize(
    ("doc", "why"),
    [
        ({"fault": "explode"}, "Invalid enum value 'explode'"),
        ({"fault": "conflict", "verbs": ["create"]}, "conflict: it can hit update, patch, not create"),
        ({"fault": "refuse", "chance": 2}, "chance from 0 to 1"),
        ({"fault": "refuse", "status": 200}, "200 is not an error status"),
        ({"fault": "delay", "delaySeconds": -1}, "times must be finite and not negative"),
        ("conflict", "Expected `object`, got `str`"),
        (None, "Expected `object`, got `null`"),
    ],
)
def test_invalid_faults_are_refused(doc: object, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        faults_of(doc)


async def test_faults_are_chosen_by_token_group_and_subresource(faults: Faults, operator: Client) -> None:
    faults.add(Fault("refuse", resources=("deployments.apps/scale",), name="w*", namespace="def*"))
    scale = "/apis/apps/v1/namespaces/default/deployments/web/scale"
    assert (await operator.ask("GET", scale)).status == 500
    assert (await operator.ask("GET", scale.removesuffix("/scale"))).status == 404
    faults.clear()
    faults.add(Fault("refuse", token="secret"))
    request = Request("GET", MAPS, (), {"authorization": "Bearer secret"})
    assert (await operator.transport.send(request)).status == 500
    assert (await operator.ask("GET", MAPS)).status == 200


def test_a_fault_is_encoded_and_decoded() -> None:
    fault = Fault("delay", user="a", delay_s=(1, 2), for_s=3, resources=("pods",))
    assert faults_of([msgspec.to_builtins(fault)]) == (fault,)


def test_what_is_created_is_named_by_its_body_in_protobuf_too() -> None:
    doc: Any = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "web-"}}
    for body, name in ((to_protobuf(doc), "web-"), (MAGIC + b"no message", ""), (json.dumps(doc).encode(), "web-")):
        asked = Asked(User("operator"), Request("POST", MAPS, (), {}, body), resolve("POST", MAPS, {})[0])
        assert asked.name == name
