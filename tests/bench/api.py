"""The few requests that a load takes."""

import asyncio
import json
from collections.abc import Iterable
from typing import Any

import aiohttp

MERGE = "application/merge-patch+json"


class Api:
    """An API server. Objects that are there or gone already are no errors."""

    def __init__(self, session: aiohttp.ClientSession) -> None:
        self._session = session
        self._limit = asyncio.Semaphore(16)

    async def call(self, method: str, path: str, body: object = None, kind: str = "application/json") -> dict[str, Any]:
        data = None if body is None else json.dumps(body)
        async with self._session.request(method, path, data=data, headers={"content-type": kind}) as answer:
            doc: dict[str, Any] = await answer.json()
            if answer.status >= 400 and answer.status not in (404, 409):
                raise RuntimeError(f"{method} {path}: {answer.status} {doc.get('message')}")
            return doc

    async def patch(self, path: str, body: object) -> dict[str, Any]:
        return await self.call("PATCH", path, body, MERGE)

    async def many(self, method: str, requests: Iterable[tuple[str, object]]) -> None:
        kind = MERGE if method == "PATCH" else "application/json"

        async def one(path: str, body: object) -> None:
            async with self._limit:
                await self.call(method, path, body, kind)

        await asyncio.gather(*(one(path, body) for path, body in requests))

    async def items(self, path: str) -> list[dict[str, Any]]:
        items: list[dict[str, Any]] = (await self.call("GET", f"{path}?resourceVersion=0"))["items"]
        return items

    async def count(self, path: str) -> int:
        """How many there are, without reading them."""
        page = await self.call("GET", f"{path}?limit=1")
        return len(page["items"]) + int(page["metadata"].get("remainingItemCount", 0))

    async def names(self, path: str) -> list[str]:
        return [item["metadata"]["name"] for item in await self.items(path)]
