"""What lists and watch lists of pods cost in JSON and in protobuf: an API server's CPU time, and kcm's to decode them.

    KUBEBUILDER_ASSETS=DIR python -m tests.bench.forms [--pods 10000] [--rounds 5]

DIR has kube-apiserver and etcd. The figures are medians, in microseconds for each pod. The forms take turns, since
other programs on the machine slow both down.
"""

import argparse
import asyncio
import gc
import json
import os
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from statistics import median
from typing import Any

import aiohttp
import psutil

from kcm_cli.api.core import PODS
from kcm_cli.api.resource import Resource
from kcm_cli.machinery.envelope import MEDIA_TYPE
from kcm_cli.machinery.meta import SlimObject
from kcm_cli.rest.listing import read_page
from tests.bench import objects
from tests.kit.servers import TOKEN, real_server

JSON = "application/json"
PARTIAL = ";as=PartialObjectMetadata{};g=meta.k8s.io;v=v1"
FORMS = {"JSON": JSON, "protobuf": MEDIA_TYPE}
WRITERS = 16
SETTLE_S = 0.3
"""After an answer, while the server still tidies up."""
WATCH_LIST = "watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
SLIM: Resource[Any] = Resource(PODS.gvr, PODS.kind, SlimObject)
Figures = dict[str, dict[str, list[float]]]


class Server:
    """A kube-apiserver, and how much CPU time it has taken."""

    def __init__(self, session: aiohttp.ClientSession) -> None:
        self._session = session
        (self._process,) = (one for one in psutil.Process().children(recursive=True) if one.name() == "kube-apiserver")

    def cpu_s(self) -> float:
        times = self._process.cpu_times()
        return float(times.user + times.system)

    async def send(self, method: str, path: str, doc: objects.Doc, kind: str = JSON) -> None:
        async with self._session.request(method, path, data=json.dumps(doc), headers={"content-type": kind}) as answer:
            assert answer.status in (200, 201, 409), await answer.text()

    async def list(self, accept: str) -> bytes:
        headers = {"accept": accept}
        async with self._session.get("/api/v1/pods?resourceVersion=0", headers=headers) as answer:
            assert answer.status == 200
            return await answer.read()

    async def watch_list(self, accept: str) -> None:
        headers = {"accept": accept}
        async with self._session.get(f"/api/v1/pods?{WATCH_LIST}&timeoutSeconds=60", headers=headers) as answer:
            assert answer.status == 200
            async for chunk in answer.content.iter_any():
                if b"initial-events-end" in chunk[-4096:]:
                    return


async def fill(server: Server, pods: int) -> None:
    await server.send("POST", "/api/v1/namespaces", {"metadata": {"name": "crowd"}})
    await server.send("POST", "/api/v1/namespaces/crowd/serviceaccounts", {"metadata": {"name": "default"}})
    numbers = iter(range(pods))

    async def write() -> None:
        for number in numbers:
            path = "/api/v1/namespaces/crowd/pods"
            await server.send("POST", path, objects.pod(f"p{number}", "n0"))
            kind = "application/merge-patch+json"
            await server.send("PATCH", f"{path}/p{number}/status", objects.running(number), kind)

    await asyncio.gather(*(write() for _ in range(WRITERS)))


async def serving(server: Server, figures: Figures, rounds: int) -> None:
    """What the answers cost the server, in seconds."""
    asked: dict[str, tuple[Callable[[str], Any], str]] = {
        "API server: watch list of pods": (server.watch_list, ""),
        "API server: watch list of their metadata": (server.watch_list, PARTIAL.format("")),
        "API server: list of pods": (server.list, ""),
    }
    for _ in range(rounds):
        for title, (ask, parameters) in asked.items():
            for form, media in FORMS.items():
                before = server.cpu_s()
                await ask(media + parameters)
                await asyncio.sleep(SETTLE_S)
                figures.setdefault(title, {}).setdefault(form, []).append(server.cpu_s() - before)


def decoding(bodies: dict[str, bytes], figures: Figures, rounds: int) -> None:
    """What it costs kcm to decode the items of a list, in seconds."""
    pages = {form: read_page(body).items for form, body in bodies.items()}
    gc.disable()
    for _ in range(rounds):
        for title, resource in (("kcm: decoding a pod", PODS), ("kcm: decoding the metadata of a pod", SLIM)):
            for form, items in pages.items():
                before = time.process_time()
                found = [resource.read_item(item) for item in items]
                took = time.process_time() - before
                assert all(one.metadata.name for one in found)
                figures.setdefault(title, {}).setdefault(form, []).append(took)


@asynccontextmanager
async def session(url: str) -> AsyncIterator[aiohttp.ClientSession]:
    headers = {"authorization": f"Bearer {TOKEN}"}
    connector = aiohttp.TCPConnector(ssl=False)
    async with aiohttp.ClientSession(url, headers=headers, connector=connector, read_bufsize=1 << 20) as made:
        yield made


async def measure(url: str, pods: int, rounds: int) -> Figures:
    figures: Figures = {}
    async with session(url) as made:
        server = Server(made)
        await fill(server, pods)
        await serving(server, figures, rounds)
        decoding({form: await server.list(media) for form, media in FORMS.items()}, figures, rounds)
    return figures


def table(figures: Figures, pods: int) -> str:
    def cell(seconds: Sequence[float]) -> str:
        return f"{median(seconds) / pods * 1e6:.1f} µs"

    rows = [f"| {title} | {' | '.join(cell(found[form]) for form in FORMS)} |" for title, found in figures.items()]
    return "\n".join([f"| | {' | '.join(FORMS)} |", "| --- " * (len(FORMS) + 1) + "|", *rows])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pods", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        assets = os.environ.get("KUBEBUILDER_ASSETS")
        if not assets:
            parser.error("KUBEBUILDER_ASSETS must name a folder with kube-apiserver and etcd")
        with real_server(Path(assets), Path(folder)) as url:
            print(table(asyncio.run(measure(url, args.pods, args.rounds)), args.pods))


if __name__ == "__main__":
    main()
