"""Small operators written with lightkube's asynchronous client, each with one bug that can be left out."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import httpx2
from lightkube import ApiError, AsyncClient, KubeConfig
from lightkube.generic_resource import create_namespaced_resource
from lightkube.models.meta_v1 import ObjectMeta
from lightkube.resources.core_v1 import ConfigMap
from lightkube.types import PatchType

from tests.perturb.kit import GROUP, PLURAL, SPACE, Case, changes, ends, shares, shares_more, starts

Widget = create_namespaced_resource(GROUP, "v1", "Widget", PLURAL)
FAILED = (ApiError, httpx2.HTTPError)
MERGE = PatchType.MERGE
FINALIZER = "example.com/operator"


def program(handle: Callable[[Any, bool], Any]) -> Callable[[bool], Any]:
    """``handle(client, buggy)`` runs forever; it is restarted when it fails."""

    def make(buggy: bool) -> Any:
        async def main(kubeconfig: str) -> None:
            config = KubeConfig.from_file(kubeconfig).get()
            client = AsyncClient(config=config, namespace=SPACE, field_manager="lightkube")
            try:
                while True:
                    try:
                        await handle(client, buggy)
                    except FAILED:
                        await asyncio.sleep(1)
            finally:
                await client.close()

        return main

    return make


async def states(client: Any, *, first: bool = True) -> AsyncIterator[tuple[str, Any]]:
    """What is there, as LISTED, then a SYNCED, then what changes. Ends with the watch."""
    version, there = "", []
    listed = client.list(Widget)
    async for widget in listed:
        there.append(widget)
    version = listed.resourceVersion
    if first:
        for widget in there:
            yield "LISTED", widget
        yield "SYNCED", there
    async for kind, widget in client.watch(Widget, resource_version=version, server_timeout=3600):
        yield kind, widget


def child(name: str, **data: str) -> ConfigMap:
    return ConfigMap(metadata=ObjectMeta(name=name, labels={"of": "widgets"}), data=data)


async def create_once(client: Any, one: ConfigMap) -> None:
    try:
        await client.create(one)
    except ApiError as error:
        if error.status.code != 409:
            raise


async def delete_once(client: Any, name: str) -> None:
    try:
        await client.delete(ConfigMap, name)
    except ApiError as error:
        if error.status.code != 404:
            raise


@program
async def only_added(client, buggy):
    """An object that was there before the watch is never handled."""
    async for kind, widget in states(client, first=not buggy):
        if kind in ("ADDED", "LISTED", "MODIFIED"):
            await create_once(client, child(f"{widget.metadata.name}-one", k="v"))
            await create_once(client, child(f"{widget.metadata.name}-two", k="v"))


def remembers_too_early():
    @program
    async def handle(client, buggy):
        done: set[str] = memory
        async for kind, widget in states(client):
            if kind in ("SYNCED", "DELETED") or widget.metadata.name in done:
                continue
            if buggy:
                done.add(widget.metadata.name)
            await create_once(client, child(f"{widget.metadata.name}-one", k="v"))
            await create_once(client, child(f"{widget.metadata.name}-two", k="v"))
            done.add(widget.metadata.name)

    memory: set[str] = set()

    def make(buggy):
        memory.clear()
        inner = handle(buggy)

        async def main(kubeconfig):
            memory.clear()
            await inner(kubeconfig)

        return main

    return make


@program
async def deletes_on_events(client, buggy):
    async for kind, widget in states(client):
        if kind == "SYNCED":
            names = {one.metadata.name for one in widget}
            if not buggy:
                async for found in client.list(ConfigMap, labels={"of": "widgets"}):
                    if found.metadata.name not in names:
                        await delete_once(client, found.metadata.name)
        elif kind == "DELETED":
            await delete_once(client, widget.metadata.name)
        else:
            await create_once(client, child(widget.metadata.name, k="v"))


@program
async def swallows_conflicts(client, buggy):
    """After a conflict the watch shows the newer version, so that nothing has to be tried again at once."""
    handled = set()
    async for kind, widget in states(client):
        if kind in ("SYNCED", "DELETED") or (buggy and (widget.metadata.uid, widget.spec["text"]) in handled):
            continue
        if (widget.status or {}).get("text") == widget.spec["text"]:
            continue
        handled.add((widget.metadata.uid, widget.spec["text"]))
        body = {**widget.to_dict(), "status": {"text": widget.spec["text"]}}
        try:
            await client.replace(Widget.Status.from_dict(body))
        except ApiError as error:
            if error.status.code != 409:
                handled.clear()
                raise


@program
async def counts_from_memory(client, buggy):
    made: dict[str, int] = {}
    async for kind, widget in states(client):
        if kind in ("SYNCED", "DELETED"):
            continue
        name = widget.metadata.name
        for number in range(2):
            if buggy:
                if made.get(name, 0) <= number:
                    generated = ObjectMeta(generateName=f"{name}-", labels={"of": "widgets"})
                    await client.create(ConfigMap(metadata=generated))
                    made[name] = number + 1
            else:
                await create_once(client, child(f"{name}-{number}"))


@program
async def finalizer_first(client, buggy):
    async def release(widget):
        kept = [one for one in widget.metadata.finalizers or [] if one != FINALIZER]
        await client.patch(Widget, widget.metadata.name, {"metadata": {"finalizers": kept}}, patch_type=MERGE)

    async for kind, widget in states(client):
        if kind in ("SYNCED", "DELETED"):
            continue
        name = widget.metadata.name
        if widget.metadata.deletionTimestamp is not None:
            if FINALIZER not in (widget.metadata.finalizers or []):
                continue
            if buggy:
                await release(widget)
                await delete_once(client, name)
            else:
                await delete_once(client, name)
                await release(widget)
            continue
        if FINALIZER not in (widget.metadata.finalizers or []):
            await client.patch(Widget, name, {"metadata": {"finalizers": [FINALIZER]}}, patch_type=MERGE)
        await create_once(client, child(name, k="v"))


@program
async def follows_each_change(client, buggy):
    """The text of each change is appended to a journal, so that missed changes matter."""
    seen: dict[str, str] = {}
    async for kind, widget in states(client):
        if kind in ("SYNCED", "DELETED"):
            continue
        name, text = widget.metadata.name, widget.spec["text"]
        if not buggy:
            await client.apply(child(name, text=text), force=True)
            continue
        if kind == "LISTED" or kind == "ADDED":
            await create_once(client, child(name, text=text))
        elif seen.get(name) != text:
            await client.patch(ConfigMap, name, {"data": {"text": text}})
        seen[name] = text


@program
async def renames(client, buggy):
    """The child is named by the text; the child of the former text is deleted."""
    before: dict[str, str] = {}
    async for kind, widget in states(client):
        if kind in ("SYNCED", "DELETED"):
            continue
        name, text = widget.metadata.name, widget.spec["text"]
        await create_once(client, child(f"{name}-{text}"))
        former = [f"{name}-{before[name]}"] if name in before else []
        if not buggy:
            former = [found.metadata.name async for found in client.list(ConfigMap, labels={"of": "widgets"})]
        for one in former:
            if one.startswith(f"{name}-") and one != f"{name}-{text}":
                await delete_once(client, one)
        before[name] = text


@program
async def observes_first(client, buggy):
    """The status has the processed text, so that nothing is done twice."""
    async for kind, widget in states(client):
        if kind in ("SYNCED", "DELETED") or (widget.status or {}).get("seen") == widget.spec["text"]:
            continue
        name, text = widget.metadata.name, widget.spec["text"]
        for step in ("seen", "done") if buggy else ("done", "seen"):
            if step == "seen":
                await client.patch(Widget.Status, name, {"status": {"seen": text}}, patch_type=MERGE)
            else:
                await client.apply(child(name, text=text), force=True)


@program
async def drops_versions(client, buggy):
    """Notes the texts in a ConfigMap in which others note something, too. What is in it is known from a watch."""
    known: list[ConfigMap] = []

    async def follow():
        while True:
            try:
                async for _, found in client.watch(ConfigMap, fields={"metadata.name": "shared"}, server_timeout=3600):
                    known[:] = [found]
            except FAILED:
                await asyncio.sleep(1)

    following = asyncio.ensure_future(follow())
    try:
        async for kind, widget in states(client):
            while kind not in ("SYNCED", "DELETED"):
                while not known:
                    await asyncio.sleep(0.1)
                shared = ConfigMap.from_dict(known[0].to_dict())
                if shared.data.get(widget.metadata.name) == widget.spec["text"]:
                    break
                shared.data[widget.metadata.name] = widget.spec["text"]
                if buggy:
                    shared.metadata.resourceVersion = None
                try:
                    known[:] = [await client.replace(shared)]
                except ApiError as error:
                    if error.status.code != 409:
                        raise
                    known[:] = [await client.get(ConfigMap, "shared")]
    finally:
        following.cancel()


@program
async def forgets_timers(client, buggy):
    """A widget is over after 20 seconds."""
    async for kind, widget in states(client):
        if kind in ("SYNCED", "DELETED"):
            continue
        name = widget.metadata.name
        phase = ((await client.get(Widget, name)).status or {}).get("phase")
        if phase is None:
            await client.patch(Widget.Status, name, {"status": {"phase": "Running"}}, patch_type=MERGE)
        if phase is None or (phase == "Running" and not buggy):
            await asyncio.sleep(20)
            await client.patch(Widget.Status, name, {"status": {"phase": "Over"}}, patch_type=MERGE)


CASES = (
    Case("only-added", "lightkube", "what was there before the watch is not handled", only_added, (starts,)),
    Case("remembers-too-early", "lightkube", "done before the writes have passed", remembers_too_early(), (starts,)),
    Case("deletes-on-events", "lightkube", "cleans up on DELETED events only", deletes_on_events, (starts, ends)),
    Case(
        "swallows-conflicts",
        "lightkube",
        "what met a conflict is taken for done",
        swallows_conflicts,
        (starts, changes),
    ),
    Case("counts-from-memory", "lightkube", "children are counted in memory only", counts_from_memory, (starts,)),
    Case("finalizer-first", "lightkube", "the finalizer goes before the cleaning", finalizer_first, (starts, ends)),
    Case("misses-changes", "lightkube", "changes while it was away are lost", follows_each_change, (starts, changes)),
    Case("renames", "lightkube", "knows from memory what it made before", renames, (starts, changes)),
    Case("observes-first", "lightkube", "the status says seen before it is done", observes_first, (starts, changes)),
    Case(
        "drops-versions",
        "lightkube",
        "replaces what it has not seen",
        drops_versions,
        (shares, starts, shares_more, changes),
    ),
    Case("forgets-timers", "lightkube", "a restart loses what is due later", forgets_timers, (starts,)),
)
