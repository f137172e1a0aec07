"""A proxy between a manager and its API server that spoils what passes, by chance but seeded.

Objects of hostile tenants are always shown as if they were stored past validation. While ``faults`` is set, answers
are also rewritten, cut, truncated, replaced or lost, and events are duplicated and spoilt. Renewals of leases are only
rewritten: a manager that loses its lease has to end.
"""

import asyncio
import json
import random
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import aiohttp
from aiohttp import web
from yarl import URL

from tests.hostile import spoiling
from tests.kit.processes import free_port
from tests.kit.servers import TOKEN

SPOILT = 0.25
"""The part of the requests that fail while there are faults; of the events, a quarter of that."""
REWRITTEN = 0.5
HANG_S = 3.0
STREAM_S = (1.0, 20.0)
_HOP = frozenset(
    {"connection", "transfer-encoding", "content-length", "keep-alive", "host", "content-encoding", "date"}
)
_BEFORE = ("refused", "hung", "html", "html 502", "nothing")
_AFTER = ("lost", "cut", "truncated", "not UTF-8", "wrong kind")


@dataclass
class Proxy:
    """``odd``: the part of the hostile objects that are shown as stored past validation. ``done``: counts."""

    target: str
    seed: int
    odd: float = 0.3
    faults: bool = False
    port: int = field(default_factory=free_port)
    done: "Counter[str]" = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self._rng = random.Random(self.seed)
        self._session: aiohttp.ClientSession

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Serve until the end of the block."""
        connector = aiohttp.TCPConnector(ssl=False, limit=0)
        timeout = aiohttp.ClientTimeout(total=None)
        runner = web.ServerRunner(web.Server(self._handle), shutdown_timeout=0.1)
        async with aiohttp.ClientSession(connector=connector, timeout=timeout, auto_decompress=False) as self._session:
            await runner.setup()
            await web.TCPSite(runner, "127.0.0.1", self.port).start()
            try:
                yield
            finally:
                await runner.cleanup()

    def _chance(self, part: float) -> bool:
        return self._rng.random() < part

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        fault = ""
        if self.faults and "/leases/" not in request.path and self._chance(SPOILT):
            fault = self._rng.choice(_BEFORE + _AFTER)
        if fault:
            self.done[fault] += 1
        if fault in _BEFORE:
            return await self._instead(request, fault)
        headers = {key: value for key, value in request.headers.items() if key.lower() not in _HOP}
        headers |= {"accept-encoding": "identity", "authorization": f"Bearer {TOKEN}"}  # none is sent over plain HTTP
        url, body = URL(self.target + request.raw_path, encoded=True), await request.read()
        try:
            async with self._session.request(
                request.method, url, data=body or None, headers=headers, skip_auto_headers=("content-type",)
            ) as answer:
                if "watch" in request.query:
                    return await self._stream(request, answer, bool(fault))
                return await self._answer(request, answer, fault)
        except aiohttp.ClientError:
            _abort(request)
            return web.Response(status=502)

    async def _instead(self, request: web.BaseRequest, fault: str) -> web.StreamResponse:
        if fault == "nothing":
            return web.Response(content_type="application/json")
        if fault.startswith("html"):
            return web.Response(body=spoiling.HTML, content_type="text/html", status=200 if fault == "html" else 502)
        if fault == "hung":
            await asyncio.sleep(HANG_S)
        _abort(request)
        return web.Response(status=502)

    async def _answer(self, request: web.BaseRequest, answer: aiohttp.ClientResponse, fault: str) -> web.StreamResponse:
        data = await answer.read()
        headers = {key: value for key, value in answer.headers.items() if key.lower() not in _HOP}
        if answer.content_type == "application/json" and data:
            data = self._json(request, data)
        if fault == "lost":
            _abort(request)
        elif fault == "wrong kind" and answer.status < 300:
            data = spoiling.wrong_kind(self._rng)
        elif fault == "not UTF-8":
            data = spoiling.not_utf8(data)
        elif fault == "truncated":
            data = data[: self._rng.randrange(len(data) + 1)]
        elif fault == "cut" and data:
            response = web.StreamResponse(status=answer.status, headers={**headers, "content-length": str(len(data))})
            await response.prepare(request)
            await response.write(data[: self._rng.randrange(len(data))])
            _abort(request)
            return response
        return web.Response(status=answer.status, headers=headers, body=data)

    def _json(self, request: web.BaseRequest, data: bytes) -> bytes:
        """An answer with hostile objects as they are shown, perhaps written in another way."""
        rewrite = self.faults and self._chance(REWRITTEN)
        if self.faults and request.path.startswith("/apis") and request.path.count("/") < 4:
            return self._discovery(json.loads(data))
        if not rewrite and b'"odd-' not in data:
            return data
        doc = _read(data)
        if doc is None:
            return data
        if isinstance(doc, dict) and request.method == "GET":
            for item in doc.get("items") or ():
                if isinstance(item, dict):
                    item.update(self._shown(item))
            if "items" not in doc:
                doc = self._shown(doc)
        self.done["rewritten"] += rewrite
        return spoiling.rewritten(self._rng, doc) if rewrite else json.dumps(doc).encode()

    def _discovery(self, doc: Any) -> bytes:
        """With an aggregated group whose lists are null."""
        if isinstance(doc, dict) and isinstance(doc.get("groups"), list):
            doc["groups"] += [spoiling.NULL_GROUP]
        elif isinstance(doc, dict) and doc.get("kind") == "APIGroupDiscoveryList":
            doc["items"] += [spoiling.NULL_AGGREGATED]
        self.done["discovery"] += 1
        return spoiling.rewritten(self._rng, doc)

    def _shown(self, obj: Any) -> Any:
        if not spoiling.is_odd(obj):
            return obj
        return spoiling.past_validation(obj, self.odd, self.seed)

    async def _stream(
        self, request: web.BaseRequest, answer: aiohttp.ClientResponse, short: bool
    ) -> web.StreamResponse:
        headers = {key: value for key, value in answer.headers.items() if key.lower() not in _HOP}
        response = web.StreamResponse(status=answer.status, headers=headers)
        response.enable_chunked_encoding()
        await response.prepare(request)
        rest, end = b"", self._end(short)
        while _now() < end:
            try:
                async with asyncio.timeout(min(1.0, end - _now())):
                    chunk = await answer.content.readany()
            except TimeoutError:
                end = min(end, self._end(short)) if self.faults else float("inf")
                continue
            if not chunk:
                await response.write(rest)
                return response
            *lines, rest = (rest + chunk).split(b"\n")
            for line in filter(None, lines):
                if self.faults and self._chance(SPOILT / 50):
                    self.done["event truncated"] += 1
                    await response.write(line[: self._rng.randrange(1, len(line))])
                    return response
                await response.write(b"".join(self._event(line)))
        self.done["stream cut"] += 1
        _abort(request)
        return response

    def _end(self, short: bool) -> float:
        if not self.faults:
            return float("inf")
        return _now() + (0.0 if short else self._rng.uniform(*STREAM_S))

    def _event(self, line: bytes) -> Iterator[bytes]:
        """What comes in the place of an event's line."""
        if b'"odd-' in line or (self.faults and self._chance(REWRITTEN)):
            event = _read(line)
            if event is not None:
                if isinstance(event.get("object"), dict):
                    event["object"] = self._shown(event["object"])
                line = spoiling.rewritten(self._rng, event) if self.faults else json.dumps(event).encode()
        if not self.faults:
            yield line + b"\n"
            return
        if self._chance(SPOILT / 4):
            fault = self._rng.choice(list(_EVENTS))
            self.done[f"event {fault}"] += 1
            yield from _EVENTS[fault](self._rng, line)
        else:
            yield line + b"\n"


def _duplicated(rng: random.Random, line: bytes) -> tuple[bytes, ...]:
    return (line + b"\n", line + b"\n")


def _broken(rng: random.Random, line: bytes) -> tuple[bytes, ...]:
    return (spoiling.not_utf8(line), b"\n")


def _in_html(rng: random.Random, line: bytes) -> tuple[bytes, ...]:
    return (spoiling.HTML, b"\n", line, b"\n")


def _unknown(rng: random.Random, line: bytes) -> tuple[bytes, ...]:
    return (b'{"type":"NEVER-HEARD-OF","object":null}\n', line, b"\n")


def _over_lines(rng: random.Random, line: bytes) -> tuple[bytes, ...]:
    event = _read(line)
    return (line if event is None else json.dumps(event, indent=1).encode(), b"\n")


def _read(data: bytes) -> Any:
    """The JSON; None for what Python's module cannot read, which passes as it is."""
    try:
        return json.loads(data)
    except (RecursionError, UnicodeDecodeError):
        return None


_EVENTS: dict[str, Callable[[random.Random, bytes], tuple[bytes, ...]]] = {
    "duplicated": _duplicated,
    "not UTF-8": _broken,
    "HTML": _in_html,
    "unknown": _unknown,
    "over lines": _over_lines,
}


def _now() -> float:
    return asyncio.get_running_loop().time()


def _abort(request: web.BaseRequest) -> None:
    if request.transport is not None:
        request.transport.abort()
