"""What a sandbox's API server records of its clients' writes: each version, who wrote it, and for which sync."""

from collections.abc import Iterator
from typing import Any

import pytest

from kcm_cli.runtime.cause_ring import CauseRing, Sync, Wrote
from kcm_cli.runtime.causes import DELAY, RECORDED, Causes, Tick, Work, set_working
from kcm_cli.sandbox.apiserver.security.certificates import Certificates
from kcm_cli.sandbox.apiserver.types import User
from kcm_cli.sandbox.client_causes import ClientCauses
from tests.kit.api import CONFIG_MAPS, EPOCH, Api, started

ALICE = User("alice", groups=("system:masters", "system:authenticated"))
PODS = "/api/v1/namespaces/default/pods"
POD = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}


@pytest.fixture(scope="module")
def certificates() -> Certificates:
    return Certificates.load(None, EPOCH)


@pytest.fixture
async def api(certificates: Certificates) -> Api:
    return Api((await started(certificates)).server, ALICE)


@pytest.fixture
def ring(api: Api) -> Iterator[CauseRing]:
    ring = CauseRing(api.server.api.core.clock)
    api.server.api.observe(ClientCauses(ring).observe)
    yield ring
    set_working(None)


def written(ring: CauseRing) -> list[Wrote]:
    return [one for one in ring.snapshot().entries() if isinstance(one, Wrote)]


def short(ring: CauseRing) -> list[tuple[str, str, str, str]]:
    return [(one.verb, one.resource, one.key, one.reason) for one in written(ring)]


def worked(ring: CauseRing, *causes: Any) -> Work:
    why = Causes(list(causes))
    return Work(controller="kubelet", queue="q", kind="Node", key="n", at=0.0, causes=why, note=ring.note)


async def test_who_wrote_a_version(api: Api, ring: CauseRing) -> None:
    headers = {"user-agent": "kubectl/v1.36.0 (linux/amd64) kubernetes/abc"}
    made = await api.json("POST", CONFIG_MAPS, {"metadata": {"generateName": "m-"}}, status=201, headers=headers)
    meta = made["metadata"]
    (entry,) = written(ring)
    assert (entry.controller, entry.agent, entry.manager) == ("alice", "kubectl/v1.36.0", "kubectl")
    assert (entry.verb, entry.resource, entry.kind, entry.code) == ("create", "configmaps", "ConfigMap", 201)
    assert (entry.key, entry.uid, entry.version) == (f"default/{meta['name']}", meta["uid"], meta["resourceVersion"])
    assert entry.sync == 0


async def test_a_field_manager_is_named(api: Api, ring: CauseRing) -> None:
    await api.json("POST", CONFIG_MAPS, {"metadata": {"name": "m"}}, status=201, query={"fieldManager": "me"})
    assert [one.manager for one in written(ring)] == ["me"]


async def test_an_impersonated_user(api: Api, ring: CauseRing) -> None:
    headers = {"impersonate-user": "bob", "impersonate-group": "system:masters"}
    await api.json("POST", CONFIG_MAPS, {"metadata": {"name": "m"}}, status=201, headers=headers)
    assert [one.controller for one in written(ring)] == ["bob (as alice said)"]


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("GET", CONFIG_MAPS, None, 200),
        ("POST", "/api/v1/namespaces/default/events", {"metadata": {"name": "e"}, "involvedObject": {}}, 201),
        ("POST", "/apis/coordination.k8s.io/v1/namespaces/default/leases", {"metadata": {"name": "l"}}, 201),
        ("POST", "/api/v1/namespaces/default/serviceaccounts/default/token", {"spec": {}}, 201),
    ],
)
async def test_what_is_not_recorded(api: Api, ring: CauseRing, method: str, path: str, body: Any, status: int) -> None:
    if body is not None and "involvedObject" in body:
        body["involvedObject"] = {"namespace": "default"}
    await api.json(method, path, body, status=status)
    assert written(ring) == []


async def test_a_write_without_effect_is_not_recorded(api: Api, ring: CauseRing) -> None:
    await api.json("POST", CONFIG_MAPS, {"metadata": {"name": "m"}}, status=201, query={"dryRun": "All"})
    assert written(ring) == []


async def test_the_refusal_of_a_dry_run_is_not_recorded(api: Api, ring: CauseRing) -> None:
    bad = {**POD, "spec": {"containers": [{"name": "c", "image": "i", "imagePullPolicy": "sesame"}]}}
    await api.json("POST", PODS, bad, status=422, query={"dryRun": "All"})
    assert written(ring) == []


@pytest.mark.parametrize("subresource", ["attach", "exec", "portforward", "proxy"])
async def test_a_connection_that_fails_is_not_recorded(api: Api, ring: CauseRing, subresource: str) -> None:
    answer = await api.call("POST", f"{PODS}/absent/{subresource}")
    assert answer.status >= 400 and written(ring) == []


async def test_a_refusal_has_no_part_of_the_message(api: Api, ring: CauseRing) -> None:
    bad = {**POD, "spec": {"containers": [{"name": "c", "image": "i", "imagePullPolicy": "sesame"}]}}
    await api.json("POST", PODS, bad, status=422)
    (entry,) = written(ring)
    assert (entry.code, entry.refusal, entry.key, entry.uid) == (422, "Invalid", "default/p", "")


async def test_an_eviction_is_joined_by_uid_and_version(api: Api, ring: CauseRing) -> None:
    pod = await api.json("POST", PODS, POD, status=201)
    budget = {"metadata": {"name": "b"}, "spec": {"maxUnavailable": 1, "selector": {}}}
    path = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
    await api.json("POST", path, budget, status=201)
    status = {"status": {"observedGeneration": 1, "disruptionsAllowed": 1, "currentHealthy": 1, "desiredHealthy": 0}}
    status["status"] |= {"expectedPods": 1}
    headers = {"content-type": "application/merge-patch+json"}
    await api.json("PATCH", f"{path}/b/status", status, headers=headers)
    binding = {"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n"}}
    await api.json("POST", f"{PODS}/p/binding", binding, status=201)
    running = {"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}
    await api.json("PATCH", f"{PODS}/p/status", running, headers=headers)
    before = len(written(ring))
    await api.json("POST", f"{PODS}/p/eviction", {"metadata": {"name": "p"}}, status=201)
    assert short(ring)[before:] == [
        ("update", "poddisruptionbudgets", "default/b", "create pods/eviction default/p"),
        ("create", "pods/eviction", "default/p", ""),
        ("create", "pods/eviction", "default/p", "marked for deletion"),
    ]
    now = await api.json("GET", f"{PODS}/p")
    assert written(ring)[-1].uid == pod["metadata"]["uid"]
    assert written(ring)[-1].version == now["metadata"]["resourceVersion"]


async def test_each_object_of_a_collection(api: Api, ring: CauseRing) -> None:
    for name in ("a", "b"):
        await api.config_map(name)
    before = len(written(ring))
    await api.json("DELETE", CONFIG_MAPS)
    assert short(ring)[before:] == [
        ("delete", "configmaps", "default/a", ""),
        ("delete", "configmaps", "default/b", ""),
    ]
    assert all(one.uid for one in written(ring))


async def test_what_its_sender_records_is_left_to_it(api: Api, ring: CauseRing) -> None:
    """But for the versions that no answer shows."""
    set_working(worked(ring))
    RECORDED.set(True)
    for name in ("a", "b"):
        await api.config_map(name)
    assert written(ring) == []
    await api.json("DELETE", CONFIG_MAPS)
    assert [(one.controller, one.key, one.sync) for one in written(ring)] == [
        ("kubelet", "default/a", 1),
        ("kubelet", "default/b", 1),
    ]


async def test_the_sync_of_a_part_in_this_process(api: Api, ring: CauseRing) -> None:
    set_working(worked(ring, Tick(DELAY)))
    await api.config_map("m")
    found = list(ring.snapshot().entries())
    assert isinstance(found[0], Sync) and isinstance(found[1], Wrote)
    assert found[0].number == found[1].sync == 1


async def test_heartbeats_take_no_place(api: Api, ring: CauseRing) -> None:
    await api.json("POST", "/api/v1/nodes", {"metadata": {"name": "n"}}, status=201)
    path, headers = "/api/v1/nodes/n/status", {"content-type": "application/merge-patch+json"}
    set_working(worked(ring, Tick(DELAY)))
    await api.json("PATCH", path, {"status": {"phase": "a"}}, headers=headers)
    assert [one.resource for one in written(ring)] == ["nodes"]
    set_working(None)
    await api.json("PATCH", path, {"status": {"phase": "b"}}, headers=headers)
    assert [one.resource for one in written(ring)] == ["nodes", "nodes/status"]


async def test_long_texts_are_bounded(api: Api, ring: CauseRing) -> None:
    await api.json("POST", CONFIG_MAPS, {"metadata": {"name": "m"}}, status=201, headers={"user-agent": "x" * 100_000})
    assert ring.size < 1000


async def test_protobuf_refusals(api: Api, ring: CauseRing) -> None:
    headers = {"accept": "application/vnd.kubernetes.protobuf"}
    answer = await api.call("DELETE", f"{CONFIG_MAPS}/none", headers=headers)
    assert answer.status == 404
    assert [one.refusal for one in written(ring)] == ["NotFound"]
