"""Deletion: grace period, finalizers, propagation, preconditions, collections, namespaces."""

import asyncio
import random
from datetime import timedelta
from typing import Any

import pytest

from kcm_cli.api.resource import GVR
from kcm_cli.component.clock import LoopClock
from kcm_cli.machinery.times import format_time
from kcm_cli.sandbox.apiserver.settings import Settings
from kcm_cli.sandbox.assembly import assemble
from tests.kit.api import CONFIG_MAPS, EPOCH, Api
from tests.kit.embedded import EmbeddedServer

MERGE = {"content-type": "application/merge-patch+json"}
PODS = "/api/v1/namespaces/default/pods"


async def pod(api: Api, name: str, **spec: Any) -> Any:
    containers = [{"name": "c", "image": "i"}]
    return await api.json(
        "POST", PODS, {"metadata": {"name": name}, "spec": {"containers": containers, **spec}}, status=201
    )


@pytest.mark.parametrize(("seconds", "year"), [(1 << 62, 2030), (10**10, 1762), (9 * 10**9, 2315)])
async def test_the_end_of_a_very_long_grace_period_wraps_round(api: Api, seconds: int, year: int) -> None:
    await pod(api, "p", nodeName="n", terminationGracePeriodSeconds=seconds)
    marked = (await api.json("DELETE", f"{PODS}/p"))["metadata"]
    assert marked["deletionGracePeriodSeconds"] == seconds
    assert marked["deletionTimestamp"].startswith(f"{year}-")
    shorter = (await api.json("DELETE", f"{PODS}/p", {"gracePeriodSeconds": 5}))["metadata"]
    end = EPOCH + timedelta(seconds=5)
    assert shorter["deletionTimestamp"] in (format_time(end), format_time(end - timedelta(seconds=1)))  # it is rounded


async def test_a_pod_on_a_node_waits_for_its_kubelet(api: Api) -> None:
    await pod(api, "p", nodeName="n")
    watch = await api.watch(PODS)
    marked = await api.json("DELETE", f"{PODS}/p")
    assert marked["metadata"]["deletionGracePeriodSeconds"] == 30
    await api.json("DELETE", f"{PODS}/p")  # asks for nothing new
    shorter = await api.json("DELETE", f"{PODS}/p", {"gracePeriodSeconds": 5})
    assert shorter["metadata"]["deletionGracePeriodSeconds"] == 5
    await api.json("DELETE", f"{PODS}/p", {"gracePeriodSeconds": 60})
    await api.json("DELETE", f"{PODS}/p", {"gracePeriodSeconds": 0})
    await api.json("GET", f"{PODS}/p", status=404)
    await asyncio.sleep(1)
    await watch.end()
    assert [kind for kind, _ in watch.seen()] == ["ADDED", "MODIFIED", "MODIFIED", "MODIFIED", "DELETED"]
    generations = [event["object"]["metadata"]["generation"] for event in watch.events]
    assert generations == [1, 2, 2, 2, 2]


async def test_removing_the_last_finalizer_deletes_the_object(api: Api) -> None:
    await api.config_map("a", meta={"finalizers": ["x.test/a", "x.test/b"]})
    await api.json("DELETE", f"{CONFIG_MAPS}/a")
    more = {"metadata": {"finalizers": ["x.test/a", "x.test/b", "x.test/c"]}}
    await api.json("PATCH", f"{CONFIG_MAPS}/a", more, headers=MERGE, status=422)
    one = {"metadata": {"finalizers": ["x.test/b"]}}
    await api.json("PATCH", f"{CONFIG_MAPS}/a", one, headers=MERGE)
    again = await api.json("POST", CONFIG_MAPS, {"metadata": {"name": "a"}}, status=409)
    assert again["message"] == 'object is being deleted: configmaps "a" already exists'
    await api.json("PATCH", f"{CONFIG_MAPS}/a", {"metadata": {"finalizers": None}}, headers=MERGE)
    await api.json("GET", f"{CONFIG_MAPS}/a", status=404)


@pytest.mark.parametrize(
    ("options", "finalizers"),
    [
        ({"propagationPolicy": "Orphan"}, ["orphan"]),
        ({"propagationPolicy": "Foreground"}, ["foregroundDeletion"]),
        ({"propagationPolicy": "Background"}, None),
        ({"orphanDependents": True}, ["orphan"]),
        ({"orphanDependents": False}, None),
        ({}, None),
    ],
    ids=["orphan", "foreground", "background", "old true", "old false", "default"],
)
async def test_propagation_shows_as_a_finalizer(api: Api, options: Any, finalizers: list[str] | None) -> None:
    await api.config_map("a")
    await api.json("DELETE", f"{CONFIG_MAPS}/a", options)
    found = await api.call("GET", f"{CONFIG_MAPS}/a")
    assert found.status == (200 if finalizers else 404)
    if finalizers:
        assert (await api.json("GET", f"{CONFIG_MAPS}/a"))["metadata"]["finalizers"] == finalizers


async def test_events_have_no_dependents(api: Api) -> None:
    events = "/api/v1/namespaces/default/events"
    about = {"namespace": "default"}
    await api.json("POST", events, {"metadata": {"name": "e"}, "involvedObject": about}, status=201)
    await api.json("DELETE", f"{events}/e", {"propagationPolicy": "Foreground"})
    await api.json("GET", f"{events}/e", status=404)


async def test_preconditions_are_checked(api: Api) -> None:
    made = await api.config_map("a")
    await api.json("PATCH", f"{CONFIG_MAPS}/a", {"data": {"x": "1"}}, headers=MERGE)
    version = {"preconditions": {"resourceVersion": made["metadata"]["resourceVersion"]}}
    await api.json("DELETE", f"{CONFIG_MAPS}/a", version, status=409)
    await api.json("DELETE", f"{CONFIG_MAPS}/a", {"preconditions": {"uid": "other"}}, status=409)
    await api.json("DELETE", f"{CONFIG_MAPS}/a", {"preconditions": {"uid": made["metadata"]["uid"]}})


async def test_a_collection_is_answered_as_it_was(api: Api) -> None:
    for name in "abc":
        await api.config_map(name, meta={"labels": {"l": name}})
    listed = await api.json("DELETE", CONFIG_MAPS, query={"labelSelector": "l in (a,c)"})
    assert [item["metadata"]["name"] for item in listed["items"]] == ["a", "c"]
    left = await api.json("GET", CONFIG_MAPS)
    assert [item["metadata"]["name"] for item in left["items"]] == ["b"]


async def test_a_collection_is_deleted_as_of_the_version_that_is_named(api: Api) -> None:
    version = (await api.config_map("a"))["metadata"]["resourceVersion"]
    await api.config_map("b")
    await api.json("DELETE", CONFIG_MAPS, {}, query={"resourceVersion": version})
    left = await api.json("GET", CONFIG_MAPS)
    assert [item["metadata"]["name"] for item in left["items"]] == ["b"]
    await api.json("DELETE", CONFIG_MAPS, {}, query={"resourceVersion": "99999"}, status=504)


async def test_a_collection_is_deleted_whole_however_many_it_has(api: Api) -> None:
    store = api.server.api.core.store
    for number in range(10_001):  # upstream reads pages of 10,000
        meta = {"name": f"m{number}", "namespace": "default", "uid": str(number)}
        doc = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta}
        store.create(GVR("", "v1", "configmaps"), "default", meta["name"], doc)
    gone = await api.json("DELETE", CONFIG_MAPS, {}, query={"resourceVersion": store.revision})
    assert len(gone["items"]) == 10_001 and not gone["metadata"].get("continue")
    assert not (await api.json("GET", CONFIG_MAPS))["items"]


async def test_a_namespace_is_deleted_with_its_last_finalizer(api: Api) -> None:
    await api.json("POST", "/api/v1/namespaces", {"metadata": {"name": "n"}}, status=201)
    ending = await api.json("DELETE", "/api/v1/namespaces/n")
    assert ending["status"]["phase"] == "Terminating"
    assert "deletionGracePeriodSeconds" not in ending["metadata"]
    await api.json("DELETE", "/api/v1/namespaces/n")
    body = {"metadata": {"name": "n"}, "spec": {"finalizers": []}}
    await api.json("PUT", "/api/v1/namespaces/n/finalize", body)
    await api.json("GET", "/api/v1/namespaces/n", status=404)


async def test_jobs_orphan_their_pods_by_default(api: Api) -> None:
    jobs = "/apis/batch/v1/namespaces/default/jobs"
    template = {"spec": {"containers": [{"name": "c", "image": "i"}], "restartPolicy": "Never"}}
    await api.json("POST", jobs, {"metadata": {"name": "j"}, "spec": {"template": template}}, status=201)
    answer = await api.call("DELETE", f"{jobs}/j")
    assert "child pods are preserved by default" in answer.headers["warning"]
    assert (await api.json("GET", f"{jobs}/j"))["metadata"]["finalizers"] == ["orphan"]
    missing = await api.call("DELETE", f"{jobs}/none")
    assert (missing.status, "child pods" in missing.headers["warning"]) == (404, True)
    await api.call("PATCH", f"{jobs}/j", {"metadata": {"finalizers": None}}, headers=MERGE)
    everything = await api.call("DELETE", jobs)
    assert everything.headers["warning"].count("child pods") == 1, "also where there are none"


async def test_clients_see_that_a_pod_is_deleted_before_it_is_gone(certificates: Any) -> None:
    """As with etcd: two writes, with some time between them."""
    pods = "/api/v1/namespaces/default/pods"
    server = EmbeddedServer(LoopClock(EPOCH), random.Random(1), certificates)
    await server.start()
    server.api = assemble(
        server.store, LoopClock(EPOCH), random.Random(1), certificates, address="h:1",
        settings=Settings(deletion_gap_s=0.5),
    )  # fmt: skip
    api = Api(server)
    await api.json("POST", "/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "default"}}, status=201)
    for name in ("a", "b", "c"):
        spec = {"containers": [{"name": "c", "image": "i"}]}
        await api.json("POST", pods, {"metadata": {"name": name}, "spec": spec}, status=201)
    watching = await api.watch(pods)
    watching.events.clear()
    deletion = asyncio.ensure_future(api.json("DELETE", f"{pods}/a"))
    await asyncio.sleep(0.3)
    assert watching.seen() == [("MODIFIED", "a")]
    assert (await api.json("GET", f"{pods}/a"))["metadata"]["deletionTimestamp"]
    merge = {"headers": {"content-type": "application/merge-patch+json"}}
    await api.json("PATCH", f"{pods}/a", {"metadata": {"labels": {"x": "y"}}}, **merge)
    await deletion
    await asyncio.sleep(0.1)
    assert watching.seen() == [("MODIFIED", "a"), ("DELETED", "a")]  # the update has deleted it, as upstream
    both = [asyncio.ensure_future(api.call("DELETE", f"{pods}/b")) for _ in range(2)]
    assert [(await each).status for each in both] == [200, 200]
    assert (await api.call("GET", f"{pods}/b")).status == 404
    await watching.end()
