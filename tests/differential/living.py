"""What random lives need: an API server and what is on it, a place for each life, the comparison of two managers."""

import argparse
import asyncio
import json
import random
import time
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import aiohttp

from tests.kit.servers import TOKEN

Doc = dict[str, Any]
MERGE = "application/merge-patch+json"
REST_S, LIMIT_S = 2.5, 40.0
POLL_S = 0.4

Life = list[tuple[str, list[str]]]
"""For each step what was done, and the picture after it."""


@dataclass
class Api:
    """The API server, for one user."""

    session: aiohttp.ClientSession
    url: str

    async def ask(self, method: str, path: str, body: Doc | None = None, content_type: str = "") -> Doc:
        content_type = content_type or (MERGE if method == "PATCH" else "application/json")
        data = None if body is None else json.dumps(body)
        headers = {"Content-Type": content_type}
        async with self.session.request(method, self.url + path, data=data, headers=headers, ssl=False) as answer:
            return await answer.json()  # type: ignore[no-any-return]

    async def watch(self, path: str, version: str) -> AsyncIterator[Doc]:
        """The events of a list after a version."""
        address = f"{self.url}{path}?watch=1&timeoutSeconds=86400&resourceVersion={version}"
        timeout = aiohttp.ClientTimeout(total=None)
        async with self.session.get(address, ssl=False, timeout=timeout, read_bufsize=1 << 24) as answer:
            async for line in answer.content:
                yield json.loads(line)


@asynccontextmanager
async def api(url: str, **headers: str) -> AsyncIterator[Api]:
    timeout, connector = aiohttp.ClientTimeout(60), aiohttp.TCPConnector(limit=200)
    bearer = {"Authorization": f"Bearer {TOKEN}", **headers}
    async with aiohttp.ClientSession(headers=bearer, timeout=timeout, connector=connector) as session:
        yield Api(session, url)


@dataclass
class Mirror:
    """The objects on the server, as watches show them.

    ``paths``: of the plurals, up to the version; ``home``: the life that a (plural, object) belongs to; ``silent``:
    plurals whose changes do not count as such; ``patience``: how much longer than on an idle machine to wait.
    """

    api: Api
    paths: Mapping[str, str]
    home: Callable[[str, Doc], str]
    silent: frozenset[str] = frozenset()
    patience: float = 1.0
    objects: dict[tuple[str, str], dict[str, Doc]] = field(default_factory=lambda: defaultdict(dict))
    changed: dict[str, float] = field(default_factory=dict)

    def items(self, home: str, plural: str) -> list[Doc]:
        return list(self.objects[home, plural].values())

    def rests(self, home: str, since: float) -> bool:
        """Whether nothing of a life has changed for a while, which begins at ``since`` or later."""
        return time.monotonic() - max(since, self.changed.get(home, 0.0)) > REST_S * self.patience

    def made(self, plural: str, obj: Doc) -> None:
        """See what was just created, before the watch shows it."""
        self.objects[self.home(plural, obj), plural].setdefault(obj["metadata"]["uid"], obj)

    def _see(self, plural: str, obj: Doc, gone: bool = False) -> None:
        home, uid = self.home(plural, obj), obj["metadata"]["uid"]
        if gone:
            self.objects[home, plural].pop(uid, None)
        else:
            self.objects[home, plural][uid] = obj
        if plural not in self.silent:
            self.changed[home] = time.monotonic()

    async def _list(self, plural: str) -> str:
        """See all of a kind; the version to watch from, or none if it is not served."""
        found = await self.api.ask("GET", f"/{self.paths[plural]}/{plural}")
        if found["kind"] == "Status":
            return ""
        uids = {obj["metadata"]["uid"] for obj in found["items"]}
        for (_, other), objects in list(self.objects.items()):
            for obj in [obj for uid, obj in objects.items() if other == plural and uid not in uids]:
                self._see(plural, obj, gone=True)
        for obj in found["items"]:
            self._see(plural, obj)
        return str(found["metadata"]["resourceVersion"])

    async def _follow(self, plural: str, version: str) -> None:
        while True:
            async for event in self.api.watch(f"/{self.paths[plural]}/{plural}", version):
                assert event["type"] != "ERROR", event
                self._see(plural, event["object"], event["type"] == "DELETED")
            version = await self._list(plural)  # the server ends the watches of those who read too slowly

    @asynccontextmanager
    async def following(self) -> AsyncIterator[None]:
        tasks = []
        for plural in self.paths:
            if version := await self._list(plural):
                tasks.append(asyncio.create_task(self._follow(plural, version)))
        try:
            yield
            assert not any(task.done() for task in tasks), [task for task in tasks if task.done()]
        finally:
            for task in tasks:
                task.cancel()


@dataclass
class Scene:
    """A namespace, where a life happens."""

    mirror: Mirror
    namespace: str

    @property
    def api(self) -> Api:
        return self.mirror.api

    def path(self, plural: str, name: str = "") -> str:
        return f"/{self.mirror.paths[plural]}/namespaces/{self.namespace}/{plural}" + (f"/{name}" if name else "")

    def items(self, plural: str) -> list[Doc]:
        return self.mirror.items(self.namespace, plural)

    async def create(self, plural: str, doc: Doc) -> None:
        answer = await self.api.ask("POST", self.path(plural), doc)
        assert answer["kind"] != "Status", answer

    async def patch(self, plural: str, name: str, body: Doc, sub: str = "") -> None:
        await self.api.ask("PATCH", self.path(plural, name) + sub, body)

    async def delete(self, plural: str, name: str) -> None:
        await self.api.ask("DELETE", self.path(plural, name), {"gracePeriodSeconds": 0})

    async def kubelets(self) -> None:
        """The work of kubelets and other programs, which comes up again and again."""
        raise NotImplementedError

    async def rest(self, extra_s: float = 0.0) -> None:
        """Wait until nothing has changed for a while."""
        await asyncio.sleep(extra_s * self.mirror.patience)
        since = time.monotonic()
        ends = since + LIMIT_S * self.mirror.patience
        while time.monotonic() < ends and not self.mirror.rests(self.namespace, since):
            await self.kubelets()
            await asyncio.sleep(POLL_S)


def wanted_node(pod: Doc) -> str:
    """The node that a DaemonSet wants a pod on."""
    affinity = pod["spec"].get("affinity", {}).get("nodeAffinity", {})
    terms = affinity.get("requiredDuringSchedulingIgnoredDuringExecution", {}).get("nodeSelectorTerms", [])
    return next((f["values"][0] for term in terms for f in term.get("matchFields", [])), "")


async def many(seeds: Iterable[int], at_once: int, live: Callable[[int], Awaitable[Life]]) -> dict[int, Life]:
    """All lives, by seed."""
    gate = asyncio.Semaphore(at_once)

    async def one(seed: int) -> tuple[int, Life]:
        async with gate:
            return seed, await live(seed)

    return dict(await asyncio.gather(*(one(seed) for seed in seeds)))


def arguments(doc: str | None, kinds: Iterable[str]) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lives", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--at-once", type=int, default=20)
    parser.add_argument("--patience", type=float, default=1.0, help="how much longer to wait than on an idle machine")
    parser.add_argument("--only", choices=list(kinds), nargs="*", default=[])
    return parser


def compare(ours: dict[int, Life], theirs: dict[int, Life]) -> list[int]:
    """Print each difference once, and how many lives differ. The lives that differ at their end."""
    differing, ends = 0, []
    for seed in sorted(ours):
        told: set[str] = set()
        for number, ((what, mine), (_, other)) in enumerate(zip(ours[seed], theirs[seed], strict=True)):
            kcm, go = Counter(mine), Counter(other)
            lines = [f"    kcm {line}" for line in (kcm - go).elements()]
            lines += [f"    go  {line}" for line in (go - kcm).elements()]
            if new := [line for line in lines if line not in told]:
                if not told:
                    print(f"--- life {seed}\n" + "\n".join(f"  {n} {step}" for n, (step, _) in enumerate(ours[seed])))
                print(f"  after {number} {what[:100]}", *new, sep="\n", flush=True)
                told.update(new)
        differing += bool(told)
        if Counter(ours[seed][-1][1]) != Counter(theirs[seed][-1][1]):
            ends.append(seed)
    print(f"{len(ours)} lives: {differing} differ at some step, {len(ends)} at the end")
    return ends


def chosen(rng: random.Random, kinds: Iterable[str], only: list[str]) -> str:
    """The kind of a life."""
    return rng.choice(only or list(kinds))
