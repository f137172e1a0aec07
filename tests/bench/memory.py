"""What a pod takes in memory: in the store of a sandbox, and in the cache of each informer. Bytes, by tracemalloc.

    python -m tests.bench.memory [--pods 5000]

The pods run, are those of ReplicaSets of 50, and differ in names, uids and addresses. Stored is what a sandbox keeps:
the version in JSON with its key, and the event of its creation, without the decoded document, of which a sandbox keeps
the latest 2,000. A cache has the view and the indexes that controllers add. Pages of a list are decoded, in JSON and in
protobuf.
"""

import argparse
import asyncio
import gc
import json
import random
import tracemalloc
import uuid
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Any

from kcm_cli.api.core import PODS
from kcm_cli.api.resource import GVR, Resource
from kcm_cli.component.clock import LoopClock
from kcm_cli.machinery.meta import PartialObject
from kcm_cli.rest.listing import read_page
from kcm_cli.rest.transport import Request
from kcm_cli.runtime.label_indexes import LabelIndex
from kcm_cli.runtime.store import CONTROLLER_UID, NODE, Store, by_controller, by_node
from kcm_cli.sandbox import views
from kcm_cli.sandbox.apiserver.security.certificates import Certificates
from tests.bench import objects
from tests.kit.embedded import EmbeddedServer

PODS_GVR = GVR("", "v1", "pods")
METADATA = Resource(PODS_GVR, "Pod", PartialObject)
CACHES: dict[str, tuple[Resource[Any], bool, str]] = {
    "controllers: pods": (PODS, False, ""),
    "garbage collector: metadata of pods": (METADATA, True, ";as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"),
    "nodes and scheduler of a sandbox: pods": (views.PODS, False, ""),
}
FORMS = {"JSON": "application/json", "protobuf": "application/vnd.kubernetes.protobuf"}
EACH = 50


class Server:
    """An API server in this process, with pods."""

    def __init__(self) -> None:
        certificates = Certificates.load(None, datetime.now(UTC))
        self.server = EmbeddedServer(LoopClock(), random.Random(1), certificates)

    async def send(self, method: str, path: str, body: object = None, **headers: str) -> bytes:
        data = b"" if body is None else json.dumps(body).encode()
        headers = {"content-type": "application/json", **headers}
        answer = await self.server.transport().send(Request(method, path, headers=headers, body=data))
        assert answer.status < 300, answer.body
        return answer.body

    async def start(self) -> None:
        await self.server.start()
        await self.send("POST", "/api/v1/namespaces", {"metadata": {"name": "crowd"}})
        await self.send("POST", "/api/v1/namespaces/crowd/serviceaccounts", {"metadata": {"name": "default"}})
        owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-5d9c7b", "uid": str(uuid.uuid4())}
        pod = {**objects.template("web"), "apiVersion": "v1", "kind": "Pod"}
        pod["metadata"] |= {"name": "web-5d9c7b-first", "ownerReferences": [{**owner, "controller": True}]}
        pod["spec"]["nodeName"] = "node-1"
        path = "/api/v1/namespaces/crowd/pods"
        await self.send("POST", path, pod)
        merge = {"content-type": "application/merge-patch+json"}
        await self.send("PATCH", f"{path}/web-5d9c7b-first/status", objects.running(0), **merge)

    def fill(self, count: int) -> None:
        """Write pods like the first one."""
        store = self.server.store
        first = store.get(PODS_GVR, "crowd", "web-5d9c7b-first")
        assert first is not None
        for number in range(count):
            doc: Any = first.copy()
            meta, name = doc["metadata"], f"web-{number // EACH:x}-{number:x}"
            meta |= {"name": name, "uid": str(uuid.uuid4()), "labels": {"app": f"web-{number // EACH}"}}
            meta["ownerReferences"][0] |= {"name": f"web-{number // EACH:x}", "uid": str(uuid.UUID(int=number // EACH))}
            doc["spec"]["nodeName"] = f"node-{number % 100}"
            doc["status"] |= objects.running(number)["status"]
            store.create(PODS_GVR, "crowd", name, doc).forget()


def taken(work: Callable[[], object]) -> int:
    """The bytes that are held after a piece of work, by what it returns, too."""
    gc.collect()
    tracemalloc.start()
    kept = work()
    gc.collect()
    size, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    del kept
    return size


def cached(resource: Resource[Any], items: Iterable[Any], *, metadata_only: bool) -> Store[Any]:
    """A cache of a resource, with the indexes that controllers add to that of pods."""
    store: Store[Any] = Store()
    if not metadata_only:
        store.add_index(CONTROLLER_UID, by_controller)
        store.add_index(NODE, by_node)
        LabelIndex.of(store)
    for item in items:
        store.put(resource.read_item(item, metadata_only=metadata_only))
    return store


async def measure(count: int) -> None:
    made = Server()
    await made.start()
    print(f"stored: {taken(lambda: made.fill(count)) // count} bytes a pod, with its creation's event", flush=True)
    for title, (resource, metadata_only, parameters) in CACHES.items():
        for form, media in FORMS.items():
            body = await made.send("GET", "/api/v1/namespaces/crowd/pods", accept=media + parameters)
            items = read_page(body).items
            size = taken(lambda r=resource, i=items, m=metadata_only: cached(r, i, metadata_only=m))  # type: ignore[misc]
            print(f"{title}, {form}: {size // count} bytes a pod", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pods", type=int, default=5_000)
    asyncio.run(measure(parser.parse_args().pods))


if __name__ == "__main__":
    main()
