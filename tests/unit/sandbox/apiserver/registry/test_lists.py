"""Lists: pages, versions, selectors."""

import asyncio
import gc
import tracemalloc
from typing import Any

import pytest

from kcm_cli.api.resource import GVR
from kcm_cli.runtime.turns import Part
from kcm_cli.sandbox.apiserver.registry import responses
from kcm_cli.sandbox.apiserver.registry.reading import COMPACT_S
from tests.kit.api import CONFIG_MAPS, Api


async def fill(api: Api, count: int) -> None:
    for number in range(count):
        await api.config_map(f"c{number}", meta={"labels": {"parity": str(number % 2)}})


def names(listed: Any) -> list[str]:
    return [item["metadata"]["name"] for item in listed["items"]]


async def test_pages_show_one_moment_whatever_is_written_in_between(api: Api) -> None:
    await fill(api, 5)
    first = await api.json("GET", CONFIG_MAPS, query={"limit": 2})
    assert names(first) == ["c0", "c1"]
    assert first["metadata"]["remainingItemCount"] == 3
    await api.json("DELETE", f"{CONFIG_MAPS}/c3")
    await api.config_map("c2a")
    await api.json("PATCH", f"{CONFIG_MAPS}/c4", {"data": {"new": "1"}}, headers=MERGE)
    second = await api.json("GET", CONFIG_MAPS, query={"limit": 2, "continue": first["metadata"]["continue"]})
    assert second["metadata"]["remainingItemCount"] == 1
    third = await api.json("GET", CONFIG_MAPS, query={"continue": second["metadata"]["continue"]})
    assert names(second) == ["c2", "c3"]
    assert names(third) == ["c4"]
    assert "data" not in third["items"][0]
    assert first["metadata"]["resourceVersion"] == third["metadata"]["resourceVersion"]


MERGE = {"content-type": "application/merge-patch+json"}


async def test_a_token_from_compacted_history_offers_to_go_on_inconsistently(api: Api) -> None:
    await fill(api, 4)
    first = await api.json("GET", CONFIG_MAPS, query={"limit": 2})
    await api.json("DELETE", f"{CONFIG_MAPS}/c2")
    api.server.store.compact(api.server.store.revision)
    query = {"limit": 2, "continue": first["metadata"]["continue"]}
    expired = await api.json("GET", CONFIG_MAPS, query=query, status=410)
    assert expired["reason"] == "Expired"
    rest = await api.json("GET", CONFIG_MAPS, query={"continue": expired["metadata"]["continue"]})
    assert names(rest) == ["c3"]


async def test_a_list_can_be_continued_for_minutes_at_its_version(api: Api) -> None:
    await fill(api, 4)
    begun, rest = await api.json("GET", CONFIG_MAPS, query={"limit": 2}), {}
    for waited_s in (COMPACT_S - 1, 2):
        rest = {"limit": 2, "continue": begun["metadata"]["continue"]}
        assert names(await api.json("GET", CONFIG_MAPS, query=rest)) == ["c2", "c3"]
        await asyncio.sleep(waited_s)
    assert names(await api.json("GET", CONFIG_MAPS, query=rest)) == ["c2", "c3"]  # nothing has changed
    await api.json("DELETE", f"{CONFIG_MAPS}/c2")
    expired = await api.json("GET", CONFIG_MAPS, query=rest, status=410)
    assert names(await api.json("GET", CONFIG_MAPS, query={"continue": expired["metadata"]["continue"]})) == ["c3"]
    await api.config_map("c4")
    fresh = await api.json("GET", CONFIG_MAPS, query={"limit": 2})
    await api.config_map("c5")
    await api.json("GET", CONFIG_MAPS, query={"continue": fresh["metadata"]["continue"]})
    await asyncio.sleep(2 * COMPACT_S)
    await api.json("GET", CONFIG_MAPS, query={"continue": fresh["metadata"]["continue"]}, status=410)


TABLE = "application/json;as=Table;g=meta.k8s.io;v=v1"
METADATA = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
SELECTED = {"labelSelector": "parity=0"}


@pytest.mark.parametrize(
    ("accept", "query"),
    [("", {}), (TABLE, {}), (METADATA, {}), ("", SELECTED), ("", {**SELECTED, "limit": 2})],
    ids=["whole", "table", "metadata", "selected", "a page of the selected"],
)
async def test_a_list_is_made_in_turns_and_shows_the_moment_of_its_request(
    api: Api, monkeypatch: pytest.MonkeyPatch, accept: str, query: dict[str, object]
) -> None:
    monkeypatch.setattr(responses, "PART", 1)
    await fill(api, 6)
    before = await api.get(CONFIG_MAPS, query=query, accept=accept)
    monkeypatch.setattr(Part, "is_over", lambda self: True)
    asked = asyncio.create_task(api.get(CONFIG_MAPS, query=query, accept=accept))
    turns = 0
    while not asked.done():
        turns += 1
        await asyncio.sleep(0)
        if turns == 3:  # the request itself took a turn
            api.server.store.delete(GVR("", "v1", "configmaps"), "default", "c2")
    assert turns > 5
    assert asked.result().body == before.body


async def test_a_selection_can_be_continued_although_something_was_written_while_it_was_made(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    await fill(api, 6)
    await api.json("GET", CONFIG_MAPS, query={"limit": 2})  # a token, from which on versions are kept for minutes
    await asyncio.sleep(COMPACT_S + 1)
    monkeypatch.setattr(Part, "is_over", lambda self: True)
    asked = asyncio.create_task(api.json("GET", CONFIG_MAPS, query={"limit": 2, **SELECTED}))
    for _ in range(3):
        await asyncio.sleep(0)
    api.server.store.delete(GVR("", "v1", "configmaps"), "default", "c4")
    begun = await asked
    rest = {**SELECTED, "continue": begun["metadata"]["continue"]}
    assert names(await api.json("GET", CONFIG_MAPS, query=rest)) == ["c4"]


@pytest.mark.parametrize("quiet_s", [COMPACT_S - 1, COMPACT_S + 1])
async def test_a_list_can_be_continued_for_minutes_after_an_earlier_one_at_its_version(
    api: Api, quiet_s: float
) -> None:
    await fill(api, 4)
    await api.json("GET", CONFIG_MAPS, query={"limit": 2})
    await asyncio.sleep(quiet_s)
    begun = await api.json("GET", CONFIG_MAPS, query={"limit": 2})
    await api.json("DELETE", f"{CONFIG_MAPS}/c2")
    rest = {"continue": begun["metadata"]["continue"]}
    for waited_s in (2, COMPACT_S - 3):
        await asyncio.sleep(waited_s)
        assert names(await api.json("GET", CONFIG_MAPS, query=rest)) == ["c2", "c3"]
    await asyncio.sleep(COMPACT_S)
    await api.json("GET", CONFIG_MAPS, query=rest, status=410)


async def test_a_selection_is_paged_without_a_count_of_what_is_left(api: Api) -> None:
    await fill(api, 5)
    first = await api.json("GET", CONFIG_MAPS, query={"limit": 2, "labelSelector": "parity=0"})
    assert names(first) == ["c0", "c2"]
    assert "remainingItemCount" not in first["metadata"]
    query = {"limit": 2, "labelSelector": "parity=0", "continue": first["metadata"]["continue"]}
    assert names(await api.json("GET", CONFIG_MAPS, query=query)) == ["c4"]


async def test_an_exact_version_shows_the_past(api: Api) -> None:
    created = await api.config_map("a")
    await api.json("DELETE", f"{CONFIG_MAPS}/a")
    await api.config_map("b")
    query = {"resourceVersion": created["metadata"]["resourceVersion"], "resourceVersionMatch": "Exact"}
    assert names(await api.json("GET", CONFIG_MAPS, query=query)) == ["a"]
    query["resourceVersionMatch"] = "NotOlderThan"
    assert names(await api.json("GET", CONFIG_MAPS, query=query)) == ["b"]


async def test_a_version_of_the_future_is_waited_for_some_seconds(api: Api) -> None:
    clock = api.server.api.core.clock
    start = clock.monotonic()
    refused = await api.json("GET", CONFIG_MAPS, query={"resourceVersion": "99999"}, status=504)
    assert refused["details"]["causes"][0]["reason"] == "ResourceVersionTooLarge"
    assert 3 <= clock.monotonic() - start < 4


@pytest.mark.parametrize(
    ("token", "why"),
    [
        ("abc", "continue key is not valid: invalid character 'i' looking for beginning of value"),
        ("ab!c", "continue key is not valid: illegal base64 data at input byte 2"),
        ("eyJ2IjoidjAifQ", "continue key is not valid: server does not recognize this encoded version v0"),
        (
            "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MCwic3RhcnQiOiJhIn0",
            "continue key is not valid: incorrect encoded start resourceVersion (version meta.k8s.io/v1)",
        ),
        (
            "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6NSwic3RhcnQiOiIuLi9hIn0",
            "continue key is not valid: ../a",
        ),
    ],
    ids=["no json", "no base64", "version", "no revision", "path"],
)
async def test_refuses_a_bad_token(api: Api, token: str, why: str) -> None:
    refused = await api.json("GET", CONFIG_MAPS, query={"continue": token}, status=400)
    assert refused["message"] == f"invalid continue token: {why}"


async def test_a_namespace_can_be_selected_across_all(api: Api) -> None:
    await api.config_map("a")
    query = {"fieldSelector": "metadata.namespace=default,metadata.name=a"}
    assert names(await api.json("GET", "/api/v1/configmaps", query=query)) == ["a"]
    query = {"fieldSelector": "metadata.namespace=other"}
    assert names(await api.json("GET", "/api/v1/configmaps", query=query)) == []


@pytest.mark.parametrize(
    "others", [{"resourceVersion": "x"}, {"resourceVersionMatch": "Odd"}, {"sendInitialEvents": "1"}]
)
async def test_selectors_are_read_before_versions_are(api: Api, others: dict[str, str]) -> None:
    refused = await api.json("GET", CONFIG_MAPS, query={"labelSelector": "a b", **others}, status=400)
    assert refused["message"].startswith("unable to parse requirement")


async def test_long_selectors_are_not_cached(api: Api) -> None:
    sizes: list[int] = []
    await fill(api, 1)
    tracemalloc.start()
    for number in range(3):
        text = ",".join(f"!a{number}-{term}" for term in range(4000))
        assert names(await api.json("GET", CONFIG_MAPS, query={"labelSelector": text})) == ["c0"]
        gc.collect()
        sizes.append(tracemalloc.get_traced_memory()[0])
    tracemalloc.stop()
    assert sizes[2] - sizes[0] < 400_000
