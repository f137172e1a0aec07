"""Asks a real API server and a sandbox the same, and counts where they answer alike."""

import asyncio
import json
import random
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

import aiohttp

from tests.differential.bases import Base, changed
from tests.differential.changes import changes
from tests.differential.sameness import Answer, differences
from tests.differential.variations import Schemas, Tree, Variation

NAMESPACE = "fuzz"
AT_ONCE = 8
MODES = ("create", "update", "status", "patch", "protobuf")
CHANGES = 24
"""Random changes of an object in mode patch."""
JSON, PROTOBUF = "application/json", "application/vnd.kubernetes.protobuf"


class Server:
    """One API server, over HTTP."""

    def __init__(self, url: str, token: str) -> None:
        headers = {"authorization": f"Bearer {token}", "user-agent": "differential"}
        connector = aiohttp.TCPConnector(ssl=False, limit=AT_ONCE)
        self._session = aiohttp.ClientSession(url, headers=headers, connector=connector)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._session.close()

    async def ask(
        self,
        method: str,
        path: str,
        body: object = None,
        query: str = "",
        content_type: str = JSON,
        accept: str = JSON,
    ) -> Answer:
        data = body if body is None or isinstance(body, bytes) else json.dumps(body, separators=(",", ":"))
        target = f"{path.replace('{ns}', NAMESPACE)}{query}"
        headers = {"content-type": content_type, "accept": accept}
        try:
            async with self._session.request(method, target, data=data, headers=headers) as answer:
                doc: Any = await (answer.read() if answer.content_type == PROTOBUF else answer.text(errors="replace"))
                if answer.content_type == JSON:
                    with suppress(RecursionError):  # the answer is as deep as its object
                        doc = json.loads(doc)
                return Answer(answer.status, tuple(answer.headers.getall("warning", ())), doc)
        except aiohttp.ClientError as error:
            return Answer(0, (), f"no answer: {type(error).__name__}")


@dataclass(frozen=True)
class Difference:
    """A request, by what it varies, and the lines that tell where the answers part."""

    label: str
    lines: list[str]

    def __str__(self) -> str:
        return "\n    ".join((self.label, *self.lines))


@dataclass
class Tally:
    """What came of one base. ``refused``: why its object could not be made on both servers."""

    base: Base
    asked: int = 0
    found: list[Difference] = field(default_factory=list)
    refused: str = ""

    def add(self, label: str, lines: list[str]) -> None:
        """Count a request; ``lines``: where the answers part."""
        self.asked += 1
        if lines:
            self.found.append(Difference(label, lines))


class Pair:
    """A real server and ours, asked together."""

    def __init__(self, real: Server, ours: Server, suffix: str, seed: int = 0) -> None:
        """``seed``: of the random changes in mode patch."""
        self._servers = (real, ours)
        self._seed = seed
        self._suffix = suffix
        self._limit = asyncio.Semaphore(AT_ONCE)
        self._schemas: dict[str, Tree] = {}

    async def both(
        self, method: str, path: str, *bodies: object, query: str = "", content_type: str = JSON, accept: str = JSON
    ) -> tuple[Answer, Answer]:
        """Ask both; with two bodies each server gets its own."""
        sent = bodies * 2 if len(bodies) == 1 else bodies or (None, None)
        pairs = zip(self._servers, sent, strict=True)
        asks = (server.ask(method, path, body, query, content_type, accept) for server, body in pairs)
        real, ours = await asyncio.gather(*asks)
        return real, ours

    async def prepare(self) -> None:
        """The namespace that the objects go to, with the account that pods need."""
        await self.both("POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
        await self.both("POST", "/api/v1/namespaces/{ns}/serviceaccounts", {"metadata": {"name": "default"}})

    async def compare(self, base: Base, mode: str, share: float = 1.0) -> Tally:
        """Vary one base. ``mode``: one of MODES. ``share``: of the variations, evenly taken."""
        await self._steps(base.setup)
        tally = Tally(base)
        if mode == "create":
            await self._creations(base, tally, share)
        elif mode == "protobuf":
            await self._packed(base, tally)
        elif not base.kind.endswith("Review"):
            await self._changes(base, mode, tally, share)
        await self._steps(base.cleanup)
        return tally

    async def _steps(self, steps: Iterable[Tree]) -> None:
        for step in steps:
            await self.both(step["method"], step["path"], step.get("body"))

    async def _variations(self, base: Base, doc: Tree, share: float) -> list[Variation]:
        version = base.body["apiVersion"]
        if version not in self._schemas:
            path = f"/openapi/v3/{'apis' if '/' in version else 'api'}/{version}"
            self._schemas[version] = (await self._servers[0].ask("GET", path)).body["components"]["schemas"]
        skip = (*base.untouched, "metadata.managedFields*", "metadata.resourceVersion")
        schemas = Schemas(self._schemas[version], skip)
        found = schemas.variations(schemas.of_kind(version, base.kind), doc)
        return [one for index, one in enumerate(found) if int((index + 1) * share) > int(index * share)]

    async def _creations(self, base: Base, tally: Tally, share: float) -> None:
        body = self._named(base)
        tried = [("as it is", body)]
        tried += [(str(one), one.applied(body)) for one in await self._variations(base, body, share)]
        tried += [(f"also {change}", changed(body, change)) for change in base.also]
        asks = (self._tell(tally, label, "POST", base.path, doc, query="?dryRun=All") for label, doc in tried)
        await asyncio.gather(*asks)

    async def _changes(self, base: Base, mode: str, tally: Tally, share: float) -> None:
        body = self._named(base)
        made = await self.both("POST", base.path, body)
        if any(answer.status != 201 for answer in made):
            tally.refused = " / ".join(f"{one.status} {_message(one)}" for one in made)
            return
        item = f"{base.path}/{body['metadata']['name']}"
        await self._steps(base.then)
        await asyncio.sleep(base.wait)
        shown = await self.both("GET", item)
        tally.add("as it is shown", differences(*shown, json.dumps(body)))
        if mode == "patch":
            await self._patches(base, body, item, tally, share)
        else:
            await self._replacements(base, mode, item, [answer.body for answer in shown], tally, share)
        await self.both("DELETE", item, {"gracePeriodSeconds": 0, "propagationPolicy": "Background"})

    async def _patches(self, base: Base, body: Tree, item: str, tally: Tally, share: float) -> None:
        rng = random.Random(f"{base.name} {self._seed}")
        for change in changes(body, base.status or {}, rng, round(CHANGES * share)):
            place, query = item + change.place, change.query
            answers = await self.both("PATCH", place, change.body, query=query, content_type=change.content_type)
            tally.add(str(change), differences(*answers, f"{json.dumps(body)} {change}"))
        tally.add("after all changes", differences(*await self.both("GET", item), json.dumps(body)))

    async def _packed(self, base: Base, tally: Tally) -> None:
        """Create it from the protobuf that each server sends."""
        query = "?dryRun=All"
        for answer in await self.both("POST", base.path, self._named(base), query=query, accept=PROTOBUF):
            if isinstance(answer.body, bytes):
                made = await self.both("POST", base.path, answer.body, query=query, content_type=PROTOBUF)
                tally.add("as protobuf", differences(*made, json.dumps(base.body)))

    async def _replacements(
        self, base: Base, mode: str, item: str, docs: list[Tree], tally: Tally, share: float
    ) -> None:
        of_status = mode == "status"
        if of_status:
            docs = [{**doc, "status": base.status or {}} for doc in docs]
        found = await self._variations(base, docs[0], share)
        tried = [("as it is", docs)]
        chosen = [one for one in found if _concerns(one, of_status) and all(one.fits(doc) for doc in docs)]
        tried += [(str(one), [one.applied(doc) for doc in docs]) for one in chosen]
        changes = base.statuses if of_status else base.updates
        tried += [(f"also {change}", [changed(doc, change) for doc in docs]) for change in changes]
        path = f"{item}/status" if of_status else item
        asks = (self._tell(tally, label, "PUT", path, *pair, query="?dryRun=All") for label, pair in tried)
        await asyncio.gather(*asks)

    async def _tell(self, tally: Tally, label: str, method: str, path: str, *bodies: Any, query: str) -> None:
        async with self._limit:
            real, ours = await self.both(method, path, *bodies, query=query)
        tally.add(label, differences(real, ours, f"{json.dumps(tally.base.body)} {label}"))

    def _named(self, base: Base) -> Tree:
        metadata = base.body.get("metadata", {})
        if base.fixed or "name" not in metadata:
            return base.body
        return {**base.body, "metadata": {**metadata, "name": metadata["name"] + self._suffix}}


def _concerns(variation: Variation, of_status: bool) -> bool:
    return not of_status or variation.path[:1] == ("status",)


def _message(answer: Answer) -> str:
    return str(answer.body.get("message", "")) if isinstance(answer.body, dict) else str(answer.body)
