"""Leases that are renewed in the store equal those renewed by a kubelet's request."""

from datetime import datetime
from typing import Any

import pytest

from kcm_cli.api.resource import GVR
from kcm_cli.api.well_known import LEASE_NAMESPACE
from kcm_cli.component.clock import LoopClock
from kcm_cli.machinery.times import format_micro_time, format_time
from kcm_cli.planning.actions import MERGE
from kcm_cli.rest.client import Client
from kcm_cli.rest.ratelimit import Unlimited
from kcm_cli.sandbox.apiserver.entry.fault import Fault
from kcm_cli.sandbox.apiserver.store import NotKept
from kcm_cli.sandbox.heartbeats import Heartbeats
from kcm_cli.sandbox.nodes import shape
from kcm_cli.sandbox.views import NODE_LEASES
from tests.kit.embedded import EmbeddedServer
from tests.kit.world import World

pytestmark = pytest.mark.cluster(alone=True)

WEBHOOKS = GVR("admissionregistration.k8s.io", "v1", "validatingwebhookconfigurations")


def times(clock: LoopClock) -> tuple[str, str]:
    now: datetime = clock.now()
    return format_micro_time(now), format_time(now)


async def leased(server: EmbeddedServer, clock: LoopClock) -> Client:
    """A kubelet with the Leases of two nodes."""
    kubelet = Client(server.transport(), limiter=Unlimited(), user_agent="kubelet", clock=clock)
    for name in ("a", "b"):
        lease = shape.lease_doc(name, "uid", times(clock)[0])
        await kubelet.create(NODE_LEASES, LEASE_NAMESPACE, lease)
    return kubelet


@pytest.fixture
def server(world: World) -> EmbeddedServer:
    return world.server


@pytest.fixture
def clock(world: World) -> LoopClock:
    return world.clock


async def test_a_lease_is_as_after_a_request(server: EmbeddedServer, clock: LoopClock) -> None:
    kubelet = await leased(server, clock)
    await clock.sleep(40)
    renew_time, now = times(clock)
    patch: dict[str, Any] = {"spec": {"renewTime": renew_time, "holderIdentity": "a"}}
    await kubelet.patch(NODE_LEASES, LEASE_NAMESPACE, "a", patch, content_type=MERGE)
    watching = server.store.watch(NODE_LEASES.gvr, LEASE_NAMESPACE, server.store.revision)
    assert Heartbeats(server.store, server.api).renew("b", renew_time, now)
    one, other = [server.store.get(NODE_LEASES.gvr, LEASE_NAMESPACE, name) for name in ("a", "b")]
    assert one is not None and other is not None
    documents: list[Any] = [one.copy(), other.copy()]
    for document in documents:
        for field in ("name", "uid", "resourceVersion", "ownerReferences"):
            document["metadata"].pop(field)
        document["spec"].pop("holderIdentity")
    assert documents[0] == documents[1] and documents[1]["spec"]["renewTime"] == renew_time
    assert [event.type for event in watching.take()] == ["MODIFIED"]


async def test_a_request_is_required_if_others_may_see_or_change_it(server: EmbeddedServer, clock: LoopClock) -> None:
    kubelet = await leased(server, clock)
    beats, when = Heartbeats(server.store, server.api), times(clock)
    assert not beats.renew("unknown", *when)
    fault = server.api.faults.add(Fault("conflict", chance=0.0))
    assert not beats.renew("a", *when)
    server.api.faults.remove(fault.number)
    assert beats.renew("a", *when)
    other = Client(server.transport(), limiter=Unlimited(), user_agent="other", clock=clock)
    label: dict[str, Any] = {"metadata": {"labels": {"l": "1"}}}
    await other.patch(NODE_LEASES, LEASE_NAMESPACE, "a", label, content_type=MERGE)
    assert not beats.renew("a", *when) and beats.renew("b", *when)
    await kubelet.patch(NODE_LEASES, LEASE_NAMESPACE, "b", {"spec": {"holderIdentity": "x"}}, content_type=MERGE)
    assert not beats.renew("b", *when)


async def test_webhooks_are_called(server: EmbeddedServer, clock: LoopClock) -> None:
    await leased(server, clock)
    beats = Heartbeats(server.store, server.api)
    doc: dict[str, Any] = {"metadata": {"name": "w"}, "webhooks": []}
    assert beats.renew("a", *times(clock))
    server.store.create(WEBHOOKS, "", "w", doc)
    assert not beats.renew("a", *times(clock))


async def test_a_full_disk_is_reported_by_a_request(
    server: EmbeddedServer, clock: LoopClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise NotKept("the data directory is not writable")

    await leased(server, clock)
    monkeypatch.setattr(server.store, "update", full)
    assert not Heartbeats(server.store, server.api).renew("a", *times(clock))
