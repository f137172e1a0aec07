"""Watches over the API: selectors, initial events, bookmarks, ends. The tests of the store check its guarantees."""

import asyncio
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kcm_cli.rest.transport import Request
from kcm_cli.runtime.turns import Part, Turns
from kcm_cli.sandbox.apiserver.security.certificates import Certificates
from kcm_cli.sandbox.apiserver.store import Watcher
from kcm_cli.sandbox.transport import InProcessTransport
from tests.kit.api import CONFIG_MAPS, Api, Watching, started

MERGE = {"content-type": "application/merge-patch+json"}


async def test_objects_enter_and_leave_a_selection(api: Api) -> None:
    watch = await api.watch(CONFIG_MAPS, labelSelector="on=1")
    await api.config_map("a", meta={"labels": {"on": "1"}})
    await api.config_map("b")
    await api.json("PATCH", f"{CONFIG_MAPS}/b", {"metadata": {"labels": {"on": "1"}}}, headers=MERGE)
    left = await api.json("PATCH", f"{CONFIG_MAPS}/a", {"metadata": {"labels": {"on": "0"}}}, headers=MERGE)
    await api.json("DELETE", f"{CONFIG_MAPS}/a")
    await api.json("DELETE", f"{CONFIG_MAPS}/b")
    await asyncio.sleep(1)
    await watch.end()
    assert watch.seen() == [("ADDED", "a"), ("ADDED", "b"), ("DELETED", "a"), ("DELETED", "b")]
    gone = watch.events[2]["object"]
    assert gone["metadata"]["labels"] == {"on": "1"}
    assert gone["metadata"]["resourceVersion"] == left["metadata"]["resourceVersion"]


async def test_a_watch_over_a_websocket(api: Api) -> None:
    asked = {"upgrade": "websocket", "connection": "Upgrade", "sec-websocket-version": "13", "origin": "https://a/"}
    query = {"watch": "1"}
    answer = await api.call("GET", CONFIG_MAPS, query=query, headers={**asked, "sec-websocket-key": "a"})
    assert (answer.status, answer.headers["upgrade"]) == (101, "websocket")
    assert (await api.call("GET", CONFIG_MAPS, query=query, headers=asked)).status == 400


async def test_initial_events_end_with_a_bookmark(api: Api) -> None:
    await api.config_map("a")
    query = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan", "allowWatchBookmarks": "true"}
    watch = await api.watch(CONFIG_MAPS, **query)
    await api.config_map("b")
    await asyncio.sleep(1)
    await watch.end()
    assert [type_ for type_, _ in watch.seen()] == ["ADDED", "BOOKMARK", "ADDED"]
    assert watch.events[1]["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}


INITIAL = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan", "allowWatchBookmarks": "true"}


async def test_initial_events_are_sent_in_turns_beside_which_objects_change(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Turns, "is_over", lambda self: True)
    before = [(await api.config_map(name))["metadata"]["resourceVersion"] for name in "abc"]
    query = (("watch", "true"), *INITIAL.items())
    events: list[Any] = []
    async with InProcessTransport(api.server.api, api.user).stream(Request("GET", CONFIG_MAPS, query)) as stream:
        async for chunk in stream.chunks:
            (event,) = map(json.loads, chunk.splitlines())
            events.append(event)
            if len(events) == 1:
                await api.config_map("d")
                await api.json("DELETE", f"{CONFIG_MAPS}/c")
                await api.json("PATCH", f"{CONFIG_MAPS}/b", {"data": {"k": "new"}}, headers=MERGE)
            if len(events) == 7:
                break
    shown = [(event["type"], event["object"]["metadata"].get("name", "")) for event in events]
    assert shown[:4] == [("ADDED", "a"), ("ADDED", "b"), ("ADDED", "c"), ("BOOKMARK", "")]
    assert [event["object"]["metadata"]["resourceVersion"] for event in events[:3]] == before
    assert events[3]["object"]["metadata"]["resourceVersion"] == before[-1]
    assert shown[4:] == [("ADDED", "d"), ("DELETED", "c"), ("MODIFIED", "b")]


@pytest.mark.parametrize("late", [False, True])
async def test_a_watch_that_is_late_waits_behind_nobody(
    api: Api, monkeypatch: pytest.MonkeyPatch, *, late: bool
) -> None:
    waits: list[None] = []

    async def pause(turns: Turns) -> None:
        waits.append(None)

    monkeypatch.setattr(Turns, "is_over", lambda self: True)
    monkeypatch.setattr(Watcher, "late", late)
    before = await api.config_map("first")
    for name in "abc":
        await api.config_map(name)
    monkeypatch.setattr(Turns, "pause", pause)
    watch = await api.watch(CONFIG_MAPS, resourceVersion=before["metadata"]["resourceVersion"])
    await asyncio.sleep(1)
    await watch.end()
    assert watch.seen() == [("ADDED", "a"), ("ADDED", "b"), ("ADDED", "c")]
    assert len(waits) == (1 if late else 4), "once as a request"


async def test_a_watch_that_is_late_and_shows_little_lets_others_work(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[None] = []

    async def later(part: Part) -> None:
        waits.append(None)

    before = await api.config_map("first")
    for name in "abcde":
        await api.config_map(name)
    monkeypatch.setattr(Watcher, "late", True)
    monkeypatch.setattr(Part, "is_over", lambda self: True)
    monkeypatch.setattr(Part, "next", later)
    version = before["metadata"]["resourceVersion"]
    watch = await api.watch(CONFIG_MAPS, resourceVersion=version, labelSelector="on=1")
    await asyncio.sleep(1)
    await watch.end()
    assert (watch.seen(), len(waits)) == ([], 5)


async def test_a_chunk_of_large_events_is_short(api: Api) -> None:
    before = await api.config_map("first")
    for name in "abc":
        await api.post(CONFIG_MAPS, {"metadata": {"name": name}, "data": {"k": "v" * 150_000}})
    query = (("watch", "true"), ("resourceVersion", before["metadata"]["resourceVersion"]))
    counts = list[int]()
    async with InProcessTransport(api.server.api, api.user).stream(Request("GET", CONFIG_MAPS, query)) as stream:
        async for chunk in stream.chunks:
            counts.append(chunk.count(b"\n"))
            if sum(counts) == 3:
                break
    assert counts == [2, 1]


async def test_events_in_protobuf_are_sent_in_turns(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Turns, "is_over", lambda self: True)
    for name in "abc":
        await api.config_map(name)
    accepts = {"accept": "application/vnd.kubernetes.protobuf"}
    request = Request("GET", CONFIG_MAPS, (("watch", "true"), *INITIAL.items()), accepts)
    sizes: list[tuple[int, int]] = []
    async with InProcessTransport(api.server.api, api.user).stream(request) as stream:
        async for chunk in stream.chunks:
            sizes.append((int.from_bytes(chunk[:4], "big"), len(chunk) - 4))
            if len(sizes) == 4:
                await api.config_map("d")
                await api.config_map("e")
            if len(sizes) == 6:
                break
    assert all(said == there for said, there in sizes), "one event in each chunk"


async def test_a_bookmark_has_the_fields_that_its_kind_never_leaves_out(api: Api) -> None:
    query = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan", "allowWatchBookmarks": "true"}
    watch = await api.watch("/apis/autoscaling/v1/horizontalpodautoscalers", **query)
    await watch.end()
    mark = watch.events[0]["object"]
    assert (mark["kind"], mark["apiVersion"]) == ("HorizontalPodAutoscaler", "autoscaling/v1")
    assert set(mark["metadata"]) == {"resourceVersion", "annotations"}
    assert mark["spec"] == {"scaleTargetRef": {"kind": "", "name": ""}, "maxReplicas": 0}
    assert mark["status"] == {"currentReplicas": 0, "desiredReplicas": 0}


@pytest.mark.parametrize("included", ["", "Object", "None"])
async def test_the_row_of_a_bookmark_has_an_object_without_a_name(api: Api, included: str) -> None:
    query = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan", "allowWatchBookmarks": "true"}
    table = {"accept": "application/json;as=Table;g=meta.k8s.io;v=v1"}
    pairs = tuple({"watch": "true", "includeObject": included, **query}.items())
    watch = Watching(InProcessTransport(api.server.api, api.user), Request("GET", "/api/v1/pods", pairs, table))
    watch.task = asyncio.create_task(watch.run())
    await asyncio.sleep(1)
    await watch.end()
    (row,) = watch.events[0]["object"]["rows"]
    assert row["cells"][:2] == ["", "0/0"]
    assert row["object"]["kind"] == ("Pod" if included == "Object" else "PartialObjectMetadata")
    assert set(row["object"]["metadata"]) == {"resourceVersion", "annotations"}


@pytest.mark.parametrize(("timeout_s", "marks"), [(30, 1), (65, 2)])
async def test_a_bookmark_comes_two_seconds_before_the_end(api: Api, timeout_s: int, marks: int) -> None:
    version = (await api.json("GET", CONFIG_MAPS))["metadata"]["resourceVersion"]
    asked = {"resourceVersion": version, "allowWatchBookmarks": "true", "timeoutSeconds": str(timeout_s)}
    watch = await api.watch(CONFIG_MAPS, **asked)
    for name, pause_s in (("a", timeout_s - 3.5), ("b", 2.0)):  # around the bookmark
        await asyncio.sleep(pause_s)
        await api.json("POST", CONFIG_MAPS, {"metadata": {"name": name}}, status=201)
    await asyncio.sleep(0.1)
    await watch.end()
    types = [type_ for type_, _ in watch.seen()]
    assert types == [*["BOOKMARK"] * (marks - 1), "ADDED", "BOOKMARK", "ADDED"]


async def test_a_watch_of_two_seconds_has_no_bookmark(api: Api) -> None:
    version = (await api.json("GET", CONFIG_MAPS))["metadata"]["resourceVersion"]
    asked = {"resourceVersion": version, "allowWatchBookmarks": "true", "timeoutSeconds": "2"}
    watch = await api.watch(CONFIG_MAPS, **asked)
    await asyncio.sleep(3)
    await watch.end()
    assert watch.seen() == []


async def test_a_quiet_watch_gets_a_bookmark_a_minute(api: Api) -> None:
    version = (await api.json("GET", CONFIG_MAPS))["metadata"]["resourceVersion"]
    watch = await api.watch(CONFIG_MAPS, resourceVersion=version, allowWatchBookmarks="true")
    await api.json("POST", "/api/v1/namespaces", {"metadata": {"name": "elsewhere"}}, status=201)
    await asyncio.sleep(150)
    await watch.end()
    assert [type_ for type_, _ in watch.seen()] == ["BOOKMARK", "BOOKMARK"]
    assert int(watch.events[0]["object"]["metadata"]["resourceVersion"]) > int(version)


async def test_ends_at_its_timeout(api: Api) -> None:
    watch = await api.watch(CONFIG_MAPS, timeoutSeconds=5)
    assert watch.task is not None
    assert not watch.task.done()
    await asyncio.sleep(5)
    assert watch.task.done()
    assert api.server.store.watchers() == {}


async def test_a_version_before_the_kept_history_is_an_error_event(api: Api) -> None:
    watch = await api.watch(CONFIG_MAPS, resourceVersion=1)
    assert watch.status == 200
    assert [(e["type"], e["object"]["code"], e["object"]["reason"]) for e in watch.events] == [
        ("ERROR", 410, "Expired")
    ]


async def test_a_watch_from_a_future_version_omits_earlier_events(api: Api) -> None:
    ahead = api.server.store.revision + 2
    watch = await api.watch(CONFIG_MAPS, resourceVersion=ahead)
    for name in "abc":
        await api.config_map(name)
    await asyncio.sleep(1)
    await watch.end()
    assert watch.seen() == [("ADDED", "c")]


async def test_the_old_path_watches_one_object(api: Api) -> None:
    await api.config_map("a")
    await api.config_map("b")
    watch = await api.watch("/api/v1/watch/namespaces/default/configmaps/b")
    await watch.end()
    assert watch.seen() == [("ADDED", "b")]


writes = st.lists(
    st.tuples(st.sampled_from(["create", "patch", "delete"]), st.sampled_from("abc"), st.sampled_from("01")),
    max_size=25,
)


@settings(max_examples=25)
@given(writes)
async def test_replaying_a_watch_gives_the_list(certificates: Certificates, steps: list[tuple[str, str, str]]) -> None:
    api = await started(certificates)
    watches = [await api.watch(CONFIG_MAPS), await api.watch(CONFIG_MAPS, labelSelector="on=1")]
    for verb, name, label in steps:
        meta = {"labels": {"on": label}}
        if verb == "create":
            await api.call("POST", CONFIG_MAPS, {"metadata": {"name": name, **meta}})
        elif verb == "patch":
            await api.call("PATCH", f"{CONFIG_MAPS}/{name}", {"metadata": meta}, headers=MERGE)
        else:
            await api.call("DELETE", f"{CONFIG_MAPS}/{name}")
    await asyncio.sleep(1)
    for watch, selector in zip(watches, ("", "on=1"), strict=True):
        await watch.end()
        listed = await api.json("GET", CONFIG_MAPS, query={"labelSelector": selector})
        versions = {item["metadata"]["name"]: item["metadata"]["resourceVersion"] for item in listed["items"]}
        assert replayed(watch.events) == versions


def replayed(events: list[Any]) -> dict[str, str]:
    state: dict[str, str] = {}
    for event in events:
        meta = event["object"]["metadata"]
        assert (event["type"] == "ADDED") == (meta["name"] not in state)
        if event["type"] == "DELETED":
            del state[meta["name"]]
        else:
            state[meta["name"]] = meta["resourceVersion"]
    return state


async def test_a_timeout_before_the_beginning_is_an_error(api: Api) -> None:
    watch = await api.watch(CONFIG_MAPS, timeoutSeconds=-1)
    await watch.end()
    assert [event["type"] for event in watch.events] == ["ERROR"]
    assert watch.events[0]["object"]["message"] == "context deadline exceeded"
