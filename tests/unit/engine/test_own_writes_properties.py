"""With any order of writes, lost answers, late events and relists: no plan on a stale cache, no endless wait."""

import asyncio
import random
from dataclasses import dataclass, field
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from kcm_cli.api.core import PODS
from kcm_cli.component.clock import LoopClock
from kcm_cli.engine.door import Door
from kcm_cli.engine.own_writes import OwnWrites
from kcm_cli.machinery import codec
from kcm_cli.rest.transport import ConnectionLost, Request, RequestError, Response, Unreachable
from kcm_cli.runtime.informer import Informer
from kcm_cli.runtime.wire import DELETED, Bookmark, WatchEvent
from kcm_cli.runtime.workqueue import WorkQueue
from tests.kit.faults import Answering

KEYS = ("ns/a", "ns/b")
Tree = dict[str, Any]


@dataclass
class Server(Answering):
    """Pods, the log of their changes, and what becomes of the next write: ok, lost, unsent or refused."""

    version: int = 10
    uids: int = 0
    pods: dict[str, Tree] = field(default_factory=dict)
    log: list[tuple[str, Tree]] = field(default_factory=list)
    fate: str = "ok"
    lists: int = 0

    async def send(self, request: Request) -> Response:
        if request.method == "GET":
            return self._read(request)
        if self.fate == "unsent":
            raise Unreachable("refused")
        if self.fate == "refused":
            return _refusal(409, "Conflict")
        if self.fate == "vanished":
            raise ConnectionLost("broken on the way there")
        response = self._write(request)
        if self.fate == "lost":
            raise ConnectionLost("broken on the way back")
        return response

    def change(self, kind: str, pod: Tree) -> Response:
        self.version += 1
        pod = {**pod, "metadata": {**pod["metadata"], "resourceVersion": str(self.version)}}
        if kind == DELETED:
            del self.pods[pod["metadata"]["name"]]
        else:
            self.pods[pod["metadata"]["name"]] = pod
        self.log.append((kind, pod))
        return Response(200, {}, codec.encode(pod))

    def _read(self, request: Request) -> Response:
        query = dict(request.query)
        name, wanted = (query.get(one, "").partition("=")[2] for one in ("fieldSelector", "labelSelector"))
        self.lists += not name
        items = [
            pod
            for pod in self.pods.values()
            if wanted in ("", pod["metadata"]["labels"]["key"]) and name in ("", pod["metadata"]["name"])
        ]
        body = {"kind": "PodList", "metadata": {"resourceVersion": str(self.version)}, "items": items}
        return Response(200, {}, codec.encode(body))

    def _write(self, request: Request) -> Response:
        name = request.path.rpartition("/pods")[2].strip("/")
        if request.method == "POST":
            self.uids += 1
            metadata = codec.decode_doc(request.body)["metadata"]
            assert isinstance(metadata, dict)
            name = str(metadata.get("name") or f"{metadata['generateName']}{self.uids}")
            if name in self.pods:
                return _refusal(409, "AlreadyExists")
            return self.change(
                "ADDED", {"metadata": {**metadata, "namespace": "ns", "name": name, "uid": f"u{self.uids}"}}
            )
        if name not in self.pods:
            return _refusal(404, "NotFound")
        pod = self.pods[name]
        if request.method == "PATCH":
            return self.change("MODIFIED", pod)
        if pod["metadata"].get("deletionTimestamp"):
            return self.change(DELETED, pod)
        return self.change("MODIFIED", {"metadata": {**pod["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z"}})


def _refusal(status: int, reason: str) -> Response:
    return Response(status, {}, codec.encode({"kind": "Status", "reason": reason, "code": status, "message": "no"}))


class Story:
    """A controller of two keys with its cache, whose news come when the test says."""

    def __init__(self) -> None:
        self.server, self.clock = Server(), LoopClock()
        client = self.server.client(self.clock)
        self.door = Door(client, "c")
        self.pods: Informer[Any] = Informer(PODS, client, self.clock, random.Random(1))
        self.pods.progress.reached(str(self.server.version))
        self.queue = WorkQueue("q", self.clock)
        self.own = OwnWrites(self.door, self.clock, (self.pods,))
        self.shown = 0
        """How much of the log the cache shows."""
        self.needed = dict.fromkeys(KEYS, 0)
        """How much of it each key's own writes need."""
        self.put_off: set[str] = set()

    async def write(self, key: str, verb: str, fate: str, named: bool) -> None:
        """A write on behalf of a key, of a pod that is in the log, the newest first; it may fail."""
        before, self.server.fate = len(self.server.log), fate
        names = [pod["metadata"]["name"] for _, pod in reversed(self.server.log)] or ["none"]
        metadata: Tree = {"labels": {"key": key.rpartition("/")[2]}}
        metadata |= {"name": f"{key[-1]}-0"} if named else {"generateName": f"{key[-1]}-"}
        held = self.pods.store.get(f"ns/{names[0]}")
        with self.own.acting_for(key):
            try:
                if verb == "create":
                    await self.door.create(PODS, "ns", {"metadata": metadata})
                elif verb == "patch":
                    await self.door.patch(PODS, "ns", names[0], {})
                elif held is not None and not held.deleting:  # what is deleted was read from the cache
                    await self.door.delete(PODS, "ns", names[0], uid=held.uid)
            except RequestError as error:
                assert fate != "ok" or getattr(error, "status", 0) in (404, 409)
        self.server.fate = "ok"
        if len(self.server.log) > before:
            self.needed[key] = len(self.server.log)

    def foreign(self) -> None:
        """Another client changes the newest pod."""
        if self.server.pods:
            self.server.change("MODIFIED", list(self.server.pods.values())[-1])

    async def deliver(self, count: int) -> None:
        """So many more events, then a bookmark if there are none left."""

        async def events() -> Any:
            for kind, pod in self.server.log[self.shown : self.shown + count]:
                yield WatchEvent(kind, PODS.decode(codec.encode(pod)))
            if self.shown + count >= len(self.server.log):
                yield Bookmark(str(self.server.version), False)

        async with asyncio.timeout(None) as limit:
            await self.pods._apply(events(), limit)
        self.shown = min(self.shown + count, len(self.server.log))

    async def relist(self) -> None:
        """The watch was cut for too long: the set as it is now takes the place of the events."""
        found = {f"ns/{name}": PODS.decode(codec.encode(pod)) for name, pod in self.server.pods.items()}
        await self.pods._replace(found, str(self.server.version))
        self.shown = len(self.server.log)

    async def ask(self, key: str) -> None:
        """What the worker does with a key: it may plan only on a cache that shows all of its own writes."""
        lists = self.server.lists
        if await self.own.shown(key, self.queue):
            assert self.shown >= self.needed[key]
            self.put_off.discard(key)
        else:
            self.put_off.add(key)
        assert self.server.lists <= lists + 12

    async def end(self) -> None:
        """Once the cache shows everything all keys that were put off have been queued, and nothing is left over."""
        await self.deliver(len(self.server.log))
        queued = set()
        while len(self.queue):
            key = await self.queue.get()
            queued.add(key)
            self.queue.done(key)
        assert self.put_off <= queued
        for key in KEYS:
            assert await self.own.shown(key, self.queue)
        assert not len(self.own)
        assert not self.pods.progress._versions and not self.pods.progress._ends


FATES = st.sampled_from(("ok", "ok", "ok", "lost", "vanished", "unsent", "refused"))
VERBS = st.sampled_from(("create", "create", "patch", "delete", "delete"))
STEPS = st.one_of(
    st.tuples(st.just("write"), st.sampled_from(KEYS), VERBS, FATES, st.booleans()),
    st.tuples(st.just("deliver"), st.integers(1, 3)),
    st.tuples(st.just("ask"), st.sampled_from(KEYS)),
    st.just(("foreign",)),
    st.just(("relist",)),
)


@settings(max_examples=100, deadline=None)
@given(st.lists(STEPS, min_size=10, max_size=25))
async def test_no_plan_on_stale_caches_and_no_key_waits_forever(steps: list[tuple[Any, ...]]) -> None:
    story = Story()
    for name, *args in steps:
        result = getattr(story, name)(*args)
        if asyncio.iscoroutine(result):
            await result
    await story.end()
