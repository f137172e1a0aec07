"""Electors on virtual time, against one Lease in memory."""

import asyncio
import json
import logging
import random
from dataclasses import dataclass, field

import pytest

from kcm_cli.component.clock import LoopClock
from kcm_cli.component.metrics import Registry
from kcm_cli.planning.actions import Notice
from kcm_cli.rest.transport import Request, Response, Unreachable, Unreadable
from kcm_cli.runtime.leader import ElectionConfig, Elector, LeaseLock
from kcm_cli.runtime.leader.record import Record
from tests.kit.faults import Answering

STATUS = {"kind": "Status", "apiVersion": "v1", "status": "Failure"}


@dataclass
class LeaseServer:
    """Serves one Lease as an API server does. ``down``: refuses connections. ``delay_s``: answers late."""

    lease: dict | None = None
    events: list[Notice] = field(default_factory=list)
    writes: list[tuple[float, str]] = field(default_factory=list)
    down: set[str] = field(default_factory=set)
    delay_s: float = 0.0
    version: int = 0

    def for_user(self, name: str) -> "Wire":
        return Wire(self, name)

    def answer(self, request: Request) -> tuple[int, dict]:
        if request.method == "GET":
            return (200, self.lease) if self.lease else (404, {**STATUS, "reason": "NotFound", "code": 404})
        doc = json.loads(request.body)
        if request.method == "POST":
            if self.lease:
                return 409, {**STATUS, "reason": "AlreadyExists", "code": 409}
            doc["metadata"]["uid"] = "u1"
            return 201, self.store(doc)
        if doc["metadata"].get("resourceVersion") != str(self.version):
            return 409, {**STATUS, "reason": "Conflict", "code": 409}
        return 200, self.store(doc)

    def store(self, doc: dict) -> dict:
        self.version += 1
        doc["metadata"]["resourceVersion"] = str(self.version)
        self.lease = doc
        self.writes.append((asyncio.get_running_loop().time(), doc["spec"]["holderIdentity"]))
        return doc


@dataclass
class Wire(Answering):
    server: LeaseServer
    name: str

    async def send(self, request: Request) -> Response:
        if self.name in self.server.down:
            await asyncio.sleep(0.05)
            raise Unreachable("connection refused")
        await asyncio.sleep(self.server.delay_s)
        status, doc = self.server.answer(request)
        return Response(status, {}, json.dumps(doc).encode())


def elector(
    server: LeaseServer, name: str, registry: Registry | None = None, *, coordinated: bool = False, eager: bool = False
) -> Elector:
    clock = LoopClock()
    client = server.for_user(name).client(clock)
    config = ElectionConfig(identity=name, coordinated=coordinated, eager=eager)
    lock = LeaseLock(client, config.namespace, config.name, server.events.append)
    return Elector(config, lock, clock, random.Random(name), registry or Registry())


def now() -> float:
    return asyncio.get_running_loop().time()


async def test_a_new_lease_names_the_first_candidate() -> None:
    server = LeaseServer()
    one = elector(server, "one")
    await one.acquire()
    assert one.leads
    assert server.lease is not None
    spec = server.lease["spec"]
    assert (spec["holderIdentity"], spec["leaseDurationSeconds"], spec["leaseTransitions"]) == ("one", 15, 0)
    assert set(spec) == {
        "acquireTime", "holderIdentity", "leaseDurationSeconds", "leaseTransitions", "renewTime",
    }  # fmt: skip


async def test_a_leader_is_reported_once_it_is_known(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        server = LeaseServer(down={"one"})
        one = elector(server, "one")
        asyncio.get_running_loop().call_later(10, server.down.clear)
        await one.acquire()
    assert [record.fields["holder"] for record in caplog.records if "New leader" in record.message] == ["one"]


async def test_a_request_that_is_not_answered_is_logged_in_the_words_of_go(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        server = LeaseServer()
        one = elector(server, "one")
        await one.acquire()
        server.delay_s = 60
        await one.hold()
    errors = {record.fields["err"] for record in caplog.records if "err" in record.fields}
    assert errors == {"context deadline exceeded"}


async def test_the_leader_renews_without_reading_and_emits_an_event() -> None:
    server, registry = LeaseServer(), Registry()
    one = elector(server, "one", registry)
    await one.acquire()
    task = asyncio.create_task(one.hold())
    await asyncio.sleep(60)
    assert not task.done()
    assert len(server.writes) == pytest.approx(31, abs=1)
    text = registry.expose().decode()
    assert 'leader_election_master_status{name="kube-controller-manager"} 1\n' in text
    assert "leader_election_slowpath_total{" not in text
    event = server.events[0]
    assert (event.reason, event.message) == ("LeaderElection", "one became leader")
    assert (event.ref.kind, event.ref.uid, event.ref.resource_version) == ("Lease", "u1", "1")
    task.cancel()


async def test_the_second_takes_over_an_expired_lease() -> None:
    server = LeaseServer()
    one, two = elector(server, "one"), elector(server, "two")
    await one.acquire()
    died = now()
    await two.acquire()
    assert 15.0 <= now() - died <= 15.0 + 2.0 * 2.2
    assert server.lease is not None
    assert server.lease["spec"]["leaseTransitions"] == 1


@pytest.mark.parametrize("held_s", [0.0, 0.3, 0.7, 1.9, 7.7])
async def test_an_eager_candidate_leads_when_the_lease_expires(held_s: float) -> None:
    server = LeaseServer()
    one, two = elector(server, "one"), elector(server, "two", eager=True)
    await one.acquire()
    waiting = asyncio.create_task(two.acquire())
    holding = asyncio.create_task(one.hold())
    await asyncio.sleep(held_s)
    holding.cancel()
    last, _ = server.writes[-1]
    await waiting
    assert last + 15 <= now() <= last + 16.1


async def test_an_eager_candidate_leads_within_a_second_of_a_release() -> None:
    server = LeaseServer()
    one, two = elector(server, "one"), elector(server, "two", eager=True)
    await one.acquire()
    waiting = asyncio.create_task(two.acquire())
    await asyncio.sleep(1.5)
    await one.release()
    released = now()
    await waiting
    assert now() - released <= 1


async def test_the_second_waits_while_the_first_renews() -> None:
    server = LeaseServer()
    one, two = elector(server, "one"), elector(server, "two")
    await one.acquire()
    hold = asyncio.create_task(one.hold())
    wait = asyncio.create_task(two.acquire())
    await asyncio.sleep(600)
    assert not wait.done() and not hold.done()
    assert {holder for _, holder in server.writes} == {"one"}
    wait.cancel()
    hold.cancel()


async def test_a_released_lease_is_taken_at_once() -> None:
    server = LeaseServer()
    one, two = elector(server, "one"), elector(server, "two")
    await one.acquire()
    wait = asyncio.create_task(two.acquire())
    await asyncio.sleep(1.0)
    assert await one.release()
    assert server.lease is not None
    assert server.lease["spec"]["holderIdentity"] == ""
    assert server.lease["spec"]["leaseDurationSeconds"] == 1
    released_at = now()
    await wait
    assert now() - released_at <= 2.0 * 2.2
    assert not one.leads
    assert [event.message for event in server.events[:2]] == ["one became leader", "one stopped leading"]


async def test_a_disconnected_leader_stops_before_another_can_lead() -> None:
    server = LeaseServer()
    one, two = elector(server, "one"), elector(server, "two")
    await one.acquire()
    hold = asyncio.create_task(one.hold())
    wait = asyncio.create_task(two.acquire())
    await asyncio.sleep(30)
    assert one.safe()
    server.down.add("one")
    why = await hold
    assert why == "context deadline exceeded"
    assert not (one.safe() or wait.done())
    await wait
    assert two.safe()


async def test_a_leader_that_was_suspended_is_not_safe_before_it_has_renewed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its monotonic clock stood still meanwhile, and others may have waited for longer than the lease lasts."""
    suspended = [100.0]
    monkeypatch.setattr("kcm_cli.runtime.leader.elector.suspended_s", lambda: suspended[0])
    one = elector(LeaseServer(), "one")
    assert not one.safe()
    await one.acquire()
    hold = asyncio.create_task(one.hold())
    await asyncio.sleep(1)
    assert one.safe()
    suspended[0] += 13
    assert one.safe()
    suspended[0] += 2
    assert not one.safe()
    await asyncio.sleep(2)
    assert one.safe()
    hold.cancel()


async def test_a_short_disconnection_is_tolerated() -> None:
    server = LeaseServer()
    one = elector(server, "one")
    await one.acquire()
    hold = asyncio.create_task(one.hold())
    await asyncio.sleep(5)
    server.down.add("one")
    await asyncio.sleep(8)
    server.down.clear()
    await asyncio.sleep(60)
    assert not hold.done()
    hold.cancel()


async def test_a_lease_taken_by_another_is_lost_at_once() -> None:
    server = LeaseServer()
    one = elector(server, "one")
    await one.acquire()
    hold = asyncio.create_task(one.hold())
    await asyncio.sleep(5)
    assert server.lease is not None
    lease = json.loads(json.dumps(server.lease))
    lease["spec"]["holderIdentity"] = "thief"
    server.store(lease)
    taken = now()
    assert await hold == "the lease was taken by thief"
    assert now() - taken <= 2.1


async def test_an_edit_of_the_lease_causes_one_read_and_is_kept() -> None:
    server, registry = LeaseServer(), Registry()
    one = elector(server, "one", registry)
    await one.acquire()
    hold = asyncio.create_task(one.hold())
    await asyncio.sleep(5)
    assert server.lease is not None
    lease = json.loads(json.dumps(server.lease))
    lease["metadata"]["labels"] = {"a": "b"}
    lease["spec"]["strategy"] = "OldestEmulationVersion"
    server.store(lease)
    await asyncio.sleep(10)
    assert server.lease["metadata"]["labels"] == {"a": "b"}
    assert server.lease["spec"]["strategy"] == "OldestEmulationVersion"
    assert 'leader_election_slowpath_total{name="kube-controller-manager"} 1\n' in registry.expose().decode()
    hold.cancel()


async def test_a_stalled_process_loses_the_lease() -> None:
    server = LeaseServer()
    one = elector(server, "one")
    await one.acquire()
    stalled: list[int] = []
    hold = asyncio.create_task(one.hold(lambda: not stalled))
    await asyncio.sleep(20)
    assert not hold.done()
    stalled.append(1)
    await asyncio.sleep(2.1)
    assert "stalled" in hold.result()


async def test_answers_slower_than_the_request_timeout_lose_the_lease() -> None:
    server = LeaseServer()
    one = elector(server, "one")
    await one.acquire()
    server.delay_s = 6.0
    started = now()
    assert await one.hold() == "context deadline exceeded"
    assert now() - started <= 1.0 + 2.0 + 10.0 + 0.1


async def test_health_fails_only_for_a_leader_long_past_its_lease() -> None:
    server = LeaseServer()
    one, two = elector(server, "one"), elector(server, "two")
    assert one.check(now()) is None
    await one.acquire()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(1):
            await two.acquire()
    await asyncio.sleep(33.9)
    assert one.check(now()) is None
    await asyncio.sleep(0.2)
    assert one.check(now()) == "failed election to renew leadership on lease kube-controller-manager"
    assert two.check(now()) is None


async def test_a_release_ends_within_its_time() -> None:
    server = LeaseServer()
    one = elector(server, "one")
    await one.acquire()
    server.delay_s = 60.0
    started = now()
    assert not await one.release(3.0)
    assert now() - started == pytest.approx(3.0)


@pytest.mark.parametrize("after_s", [0.5, 1.5, 2.5, 3.5])
async def test_a_lease_that_a_cancelled_request_may_hold_is_released(after_s: float) -> None:
    """The server takes its time over each request; the claim is under way, or answered, when this one is stopped."""
    server = LeaseServer(delay_s=1.0)
    one = elector(server, "one")
    acquiring = asyncio.ensure_future(one.acquire())
    await asyncio.sleep(after_s)
    acquiring.cancel()
    await asyncio.wait([acquiring])
    assert await one.release(20)
    await asyncio.sleep(10)
    assert server.lease is None or server.lease["spec"]["holderIdentity"] == ""


async def test_a_lease_whose_answer_was_lost_is_released() -> None:
    server = LeaseServer()
    one = elector(server, "one")
    acquiring = asyncio.ensure_future(one.acquire())
    while server.lease is None:
        await asyncio.sleep(0)
    acquiring.cancel()
    await asyncio.wait([acquiring])
    assert await one.release()
    assert server.lease["spec"]["holderIdentity"] == ""


async def test_a_huge_duration_is_limited() -> None:
    server = LeaseServer()
    one, two = elector(server, "one"), elector(server, "two")
    await one.acquire()
    assert server.lease is not None
    server.lease["spec"]["leaseDurationSeconds"] = 10**400
    waiting = asyncio.ensure_future(two.acquire())
    await asyncio.sleep(60)
    assert not waiting.done()
    waiting.cancel()


def lease_of(holder: str, **spec: object) -> dict:
    return {
        "metadata": {"name": "kube-controller-manager", "uid": "u1"},
        "spec": {"holderIdentity": holder, "leaseDurationSeconds": 5, "strategy": "OldestEmulationVersion", **spec},
    }


async def test_a_coordinated_elector_takes_no_lease_that_does_not_name_it() -> None:
    server = LeaseServer()
    one = elector(server, "one", coordinated=True)
    wait = asyncio.create_task(one.acquire())
    await asyncio.sleep(30)
    assert server.lease is None
    server.store(lease_of("two"))
    await asyncio.sleep(30)  # expired long since
    assert [holder for _, holder in server.writes] == ["two"]
    server.store(lease_of("one"))
    await asyncio.sleep(5)
    assert wait.done() and one.leads
    assert server.lease["spec"]["strategy"] == "OldestEmulationVersion"
    assert server.lease["spec"]["leaseDurationSeconds"] == 15
    assert server.lease["spec"]["acquireTime"]


async def test_a_coordinated_leader_renews_until_another_is_preferred() -> None:
    server = LeaseServer()
    server.store(lease_of("one"))
    one = elector(server, "one", coordinated=True)
    await one.acquire()
    hold = asyncio.create_task(one.hold())
    await asyncio.sleep(60)
    assert not hold.done()
    lease = json.loads(json.dumps(server.lease))
    lease["spec"]["preferredHolder"] = "two"
    server.store(lease)
    writes = len(server.writes)
    assert await hold == "context deadline exceeded"
    assert len(server.writes) == writes
    assert not one.safe()


@pytest.mark.parametrize("seed", range(5))
async def test_never_two_leaders_under_network_faults(seed: int) -> None:
    rng, server = random.Random(seed), LeaseServer()
    leading: set[str] = set()
    reigns: list[str] = []

    async def candidate(name: str) -> None:
        while True:
            one = elector(server, name)
            await one.acquire()
            leading.add(name)
            assert leading == {name}
            reigns.append(name)
            await one.hold()
            leading.discard(name)

    tasks = [asyncio.create_task(candidate(name)) for name in ("a", "b", "c")]
    for _ in range(300):
        await asyncio.sleep(rng.uniform(0.5, 8.0))
        name = rng.choice("abc")
        server.down.symmetric_difference_update({name})
        server.delay_s = rng.choice((0.0, 0.0, 0.1, 3.0))
    for task in tasks:
        assert not task.done()
        task.cancel()
    assert len(reigns) > 5


async def test_a_release_keeps_a_lease_taken_by_another() -> None:
    server, emitted = LeaseServer(), 1
    one = elector(server, "one")
    await one.acquire()
    assert server.lease is not None
    server.store({**server.lease, "spec": {**server.lease["spec"], "holderIdentity": "two"}})
    assert await one.release()
    assert server.lease["spec"]["holderIdentity"] == "two"
    assert len(server.events) == emitted, "only that it became leader"


async def test_a_lease_that_was_deleted_cannot_be_released() -> None:
    server = LeaseServer()
    one = elector(server, "one")
    await one.acquire()
    server.lease = None
    assert not await one.release()
    assert server.lease is None


async def test_a_release_reads_again_after_a_conflict() -> None:
    server = LeaseServer()
    one = elector(server, "one")
    await one.acquire()
    server.delay_s = 1.0

    async def label() -> None:
        await asyncio.sleep(1.5)  # between the read and the update
        assert server.lease is not None
        metadata = {**server.lease["metadata"], "labels": {"a": "b"}}
        server.store({**server.lease, "metadata": metadata})

    labelling = asyncio.ensure_future(label())
    assert await one.release()
    await labelling
    assert server.lease is not None
    assert server.lease["spec"]["holderIdentity"] == ""
    assert server.lease["metadata"]["labels"] == {"a": "b"}


def lease_lock(server: LeaseServer) -> LeaseLock:
    client = server.for_user("one").client()
    return LeaseLock(client, "ns", "name", server.events.append)


async def test_a_lock_updates_only_the_observed_version() -> None:
    server = LeaseServer()
    lock = lease_lock(server)
    assert str(lock) == "ns/name"
    with pytest.raises(ValueError, match="before it is updated"):
        await lock.update(Record("one", 15, "", ""))
    assert server.writes == []


async def test_a_response_for_another_lease_is_an_error() -> None:
    server = LeaseServer()
    server.store({"metadata": {"name": "other"}, "spec": {"holderIdentity": "two"}})
    with pytest.raises(Unreadable, match="no Lease named name"):
        await lease_lock(server).get()
