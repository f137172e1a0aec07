"""A transport that adds odd objects to every list and watch, and writes JSON as no API server does.

The objects are made from each kind's OpenAPI schema, with parts that are null, missing, empty, unknown, absurd, or of
another shape altogether. They are in no store: what controllers write to them is answered 404.
"""

import json
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from kcm_cli.rest.transport import Around, Request, Response, Stream, Transport
from tests.unit.api.schemas import document, names, resources

NAMESPACE = "odd"
WRONG_SHAPES: tuple[Any, ...] = (5, "x", [], True)
Tree = dict[str, Any]


class OddTransport(Around):
    """``share``: of the objects in each answer, so many are odd, and at least ``least``."""

    def __init__(self, inner: Transport, rng: random.Random, share: float = 1 / 3, least: int = 4) -> None:
        super().__init__(inner)
        self._rng = rng
        self._share = share
        self._least = least
        self.added = 0

    async def send(self, request: Request) -> Response:
        response = await self._inner.send(request)
        kind = _listed(request)
        if kind is None or response.status != 200:
            return response
        page = json.loads(response.body)
        if not str(page.get("kind")).endswith("List"):
            return response
        if "kind" in page and page["kind"] == "PartialObjectMetadataList":
            kind = ""
        items = page.get("items") or []
        page["items"] = [*items, *self._odd(kind, request, len(items))]
        return Response(200, response.headers, json.dumps(page, indent=1).encode())

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[Stream]:
        async with self._inner.stream(request) as stream:
            kind = _listed(request)
            yield stream if kind is None else Stream(stream.status, stream.headers, self._events(kind, request, stream))

    async def _events(self, kind: str, request: Request, stream: Stream) -> AsyncIterator[bytes]:
        """The events of a watch with odd ones among them; ``object`` comes first, with spaces."""
        rest, seen = b"", 0
        async for chunk in stream.chunks:
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                event = json.loads(line)
                last = event["type"] == "BOOKMARK"
                version = event["object"].get("metadata", {}).get("resourceVersion")
                for obj in self._odd(kind, request, seen) if last and seen >= 0 else ():
                    yield _event("ADDED", obj)
                seen = -1 if last else seen + (seen >= 0)
                if not last and seen < 0 and self._rng.random() < self._share:
                    for obj in self._odd(kind, request, 0)[:1]:
                        if isinstance(obj.get("metadata"), dict):
                            obj["metadata"]["resourceVersion"] = version
                            yield _event("MODIFIED", obj)
                yield _event(event["type"], event["object"])

    def _odd(self, kind: str, request: Request, beside: int) -> list[Tree]:
        namespaced = dict(request.query).get("fieldSelector") is None
        if not namespaced or dict(request.query).get("continue"):
            return []
        count = max(self._least, int(beside * self._share / (1 - self._share)))
        self.added += count
        return [self._one(kind, number) for number in range(count)]

    def _one(self, kind: str, number: int) -> Tree:
        rng = self._rng
        name = names().get(kind, "io.k8s.apimachinery.pkg.apis.meta.v1.PartialObjectMetadata")
        try:
            doc: Tree = document(rng, name)
        except KeyError:
            doc = {"metadata": document(rng, "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta")}
        metadata = doc.get("metadata")
        if rng.random() < 0.9:
            doc["metadata"] = {
                **(metadata if isinstance(metadata, dict) else {}),
                "name": f"odd-{number}",
                "namespace": NAMESPACE,
                "uid": f"odd-{kind}-{number}",
                "resourceVersion": str(rng.randrange(10)),
            }
        if rng.random() < 0.2:
            doc[rng.choice(("spec", "status", "metadata"))] = rng.choice(WRONG_SHAPES)
        return doc


def _event(type_: str, obj: Tree) -> bytes:
    return json.dumps({"object": obj, "type": type_}).encode() + b"\n"


_KINDS: dict[str, str] = {}


def _listed(request: Request) -> str | None:
    """``group/version/Kind`` of a list or watch of a whole resource; None for other requests."""
    if request.method != "GET":
        return None
    if not _KINDS:
        _KINDS.update({one.gvr.path(): f"{one.gvr.group}/{one.gvr.version}/{one.kind}" for one in resources().values()})
    if "as=PartialObjectMetadata" in request.headers.get("accept", ""):
        return "" if len(request.path.split("/")) == (4 if request.path.startswith("/api/") else 5) else None
    return _KINDS.get(request.path)
