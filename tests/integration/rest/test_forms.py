"""What an API server lists and watches is read as the same objects in JSON and in protobuf.

The server is the sandbox and, with KUBEBUILDER_ASSETS, a real kube-apiserver.
"""

import asyncio
import json
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import fields, replace

from kcm_cli.api.resource import GVR, Resource
from kcm_cli.component.clock import LoopClock
from kcm_cli.machinery.meta import ObjectMeta, PartialObject
from kcm_cli.rest.access import load
from kcm_cli.rest.authorized import Authorized
from kcm_cli.rest.client import Client
from kcm_cli.rest.errors import MethodNotSupported, NotFound
from kcm_cli.rest.listing import list_all
from kcm_cli.rest.ratelimit import Unlimited
from kcm_cli.rest.session import Session
from kcm_cli.runtime.frames import FrameDecoder, decoder_of
from kcm_cli.runtime.informer import WATCH_LIST
from kcm_cli.runtime.wire import Bookmark, BrokenEvent
from tests.kit.forms import OnlyFirst
from tests.kit.processes import ask
from tests.kit.servers import TOKEN, real_server, sandbox_server
from tests.unit.api.schemas import resources
from tests.unit.sandbox.fuzz.objects import valid

READ = {name: one for name, one in resources().items() if one.reader() is not None and "reviews" not in one.plural}
ASSETS = os.environ.get("KUBEBUILDER_ASSETS", "")
SERVERS = ["sandbox", pytest.param("real", marks=pytest.mark.skipif(not ASSETS, reason="no KUBEBUILDER_ASSETS"))]


@pytest.fixture(scope="module", params=SERVERS)
def kubeconfig(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Of a server that has one object of each kind."""
    folder = tmp_path_factory.mktemp("server")
    serving = real_server(Path(ASSETS), folder) if request.param == "real" else sandbox_server(folder)
    with serving as url:
        made = 0
        ask(f"{url}/api/v1/namespaces/default/serviceaccounts", method="POST", body=_named("default", {}), token=TOKEN)
        for collection, doc in valid().items():
            path = f"{url}/{collection.format(namespace='default')}"
            made += ask(path, method="POST", body=_named("a", doc), token=TOKEN).status == 201
        assert made > 35
        yield _kubeconfig(folder, url)


def _named(name: str, doc: dict[str, Any]) -> dict[str, Any]:
    return {**doc, "metadata": {"name": name, **doc.get("metadata", {})}}


def _kubeconfig(folder: Path, url: str) -> Path:
    cluster = {"server": url, "insecure-skip-tls-verify": True}
    doc = {
        "clusters": [{"name": "c", "cluster": cluster}],
        "users": [{"name": "u", "user": {"token": TOKEN}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }
    path = folder / "kubeconfig-of-test"
    path.write_text(json.dumps(doc))
    return path


@asynccontextmanager
async def clients(kubeconfig: Path) -> AsyncIterator[tuple[Client, Client, OnlyFirst]]:
    """One for JSON, one for protobuf, and what counts its requests."""
    clock = LoopClock()
    access = await load(path=str(kubeconfig), master="", clock=clock)
    plain = Authorized(Session(access, clock), access.credentials)
    only = OnlyFirst(plain)
    try:
        yield (
            Client(plain, limiter=Unlimited(), user_agent="test", clock=clock),
            Client(only, limiter=Unlimited(), user_agent="test", clock=clock, protobuf=True),
            only,
        )
    finally:
        await plain.close()


def comparable(value: Any) -> Any:
    """A view, with documents without their zeros: protobuf has them, and JSON leaves them out."""
    if isinstance(value, msgspec.Struct):
        return {one.name: comparable(getattr(value, one.name)) for one in fields(value)}
    if isinstance(value, tuple):
        return [comparable(one) for one in value]
    return without_zeros(value) if isinstance(value, dict) and not _of_strings(value) else value


def _of_strings(value: dict[str, Any]) -> bool:
    return all(isinstance(one, str) for one in value.values())


def without_zeros(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: found for key, one in value.items() if (found := without_zeros(one)) not in ("", 0, {}, None)}
    return [without_zeros(one) for one in value] if isinstance(value, list) else value


@pytest.mark.parametrize("resource", READ.values(), ids=READ)
def test_lists_and_watches_of_each_kind(kubeconfig: Path, resource: Resource[Any]) -> None:
    async def main() -> None:
        async with clients(kubeconfig) as (plain, packed, count):
            listed = await list_all(plain, resource)
            expected = [comparable(one) for one in listed.items]
            assert [comparable(one) for one in (await list_all(packed, resource)).items] == expected
            assert [comparable(one) for one in await watched(packed, resource)] == expected
            assert count.packed == 2

    asyncio.run(main())


async def watched(client: Client, resource: Resource[Any], *, metadata_only: bool = False) -> list[Any]:
    """The initial objects of a watch list."""
    found: list[Any] = []
    watching = client.watch(resource, query=(*WATCH_LIST, ("timeoutSeconds", "60")), metadata_only=metadata_only)
    async with watching as stream, aclosing(stream.chunks) as chunks:  # type: ignore[type-var]
        decoder = decoder_of(stream.headers, resource, metadata_only=metadata_only)
        assert isinstance(decoder, FrameDecoder)
        async for chunk in chunks:
            for event in decoder.feed(chunk):
                if isinstance(event, Bookmark):
                    assert event.last
                    return sorted(found, key=lambda one: one.key)
                assert not isinstance(event, BrokenEvent)
                found.append(event.object)
    raise AssertionError("the watch has ended")


def test_metadata_of_every_kind(kubeconfig: Path) -> None:
    async def main() -> None:
        async with clients(kubeconfig) as (plain, packed, count):
            seen = asked = 0
            for resource in _collections():
                try:
                    listed = await list_all(plain, resource, metadata_only=True)
                except (NotFound, MethodNotSupported):
                    continue  # a version that is off by default, or a review
                asked += 2
                expected = [replace(one, kind="", api_version="") for one in listed.items]
                assert (await list_all(packed, resource, metadata_only=True)).items == expected
                assert await watched(packed, resource, metadata_only=True) == expected
                seen += any(one.metadata != ObjectMeta() for one in expected)
            assert seen > 35
            assert count.packed == asked

    asyncio.run(main())


def _collections() -> list[Resource[PartialObject]]:
    found = []
    for collection in valid():
        parts = collection.replace("/namespaces/{namespace}", "").split("/")
        group, version, plural = parts[-3] if parts[0] == "apis" else "", parts[-2], parts[-1]
        found.append(Resource(GVR(group, version, plural), "", PartialObject))
    return found
