"""Small operators written with kubernetes-asyncio, each with a bug that can be left out."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import aiohttp
import kubernetes_asyncio
from kubernetes_asyncio.client import ApiException

from tests.perturb.kit import GROUP, PLURAL, SPACE, Case, Tree, adds_another, changes, config_map, ends, shares, starts

FAILED = (ApiException, aiohttp.ClientError, OSError, TimeoutError)

SEVERAL = (starts, adds_another, changes)


def program(handle: Callable[[Any, Tree, bool], Awaitable[None]], **listing: str) -> Callable[[bool], Any]:
    """``handle(core, widget, buggy)`` for each widget that is there, and for each that changes. listing: options."""

    def make(buggy: bool) -> Any:
        async def main(kubeconfig: str) -> None:
            configuration = kubernetes_asyncio.client.Configuration()
            await kubernetes_asyncio.config.load_kube_config(kubeconfig, client_configuration=configuration)
            async with kubernetes_asyncio.client.ApiClient(configuration) as api:
                while True:
                    try:
                        await follow(api, buggy)
                    except FAILED:
                        await asyncio.sleep(1)

        return main

    async def follow(api: Any, buggy: bool) -> None:
        core, widgets = kubernetes_asyncio.client.CoreV1Api(api), kubernetes_asyncio.client.CustomObjectsApi(api)
        found = await widgets.list_namespaced_custom_object(GROUP, "v1", SPACE, PLURAL, **listing)
        for widget in found["items"]:
            await handle(core, widget, buggy)
        options = {"resource_version": found["metadata"]["resourceVersion"], "timeout_seconds": 3600}
        where = widgets.list_namespaced_custom_object, GROUP, "v1", SPACE, PLURAL
        async with kubernetes_asyncio.watch.Watch() as watch:
            async for event in watch.stream(*where, **options):
                if event["type"] in ("ADDED", "MODIFIED"):
                    await handle(core, event["object"], buggy)

    return make


async def unless(status: int, call: Awaitable[Any]) -> None:
    """Await a request that may be answered so."""
    try:
        await call
    except ApiException as error:
        if error.status != status:
            raise


@program
async def locks(core: Any, widget: Tree, buggy: bool) -> None:
    """A lock is held while the text is written. Nobody else takes it, so who finds it has died with it."""
    name, text = widget["metadata"]["name"], widget["spec"]["text"]
    try:
        await core.create_namespaced_config_map(SPACE, config_map("lock", holder=name))
    except ApiException as error:
        if error.status != 409:
            raise
        if buggy:
            return
    await unless(409, core.create_namespaced_config_map(SPACE, config_map(name, text=text)))
    await core.patch_namespaced_config_map(name, SPACE, {"data": {"text": text}})
    await unless(404, core.delete_namespaced_config_map("lock", SPACE))


async def cleans_up(core: Any, widget: Tree, buggy: bool) -> None:
    """Listed from a cache, as informers do: the widget may have been recreated since."""
    widgets, where = kubernetes_asyncio.client.CustomObjectsApi(core.api_client), (GROUP, "v1", SPACE, PLURAL)
    metadata = widget["metadata"]
    name = metadata["name"]
    if not (buggy and "deletionTimestamp" in metadata):
        there = (await widgets.list_namespaced_custom_object(*where, field_selector=f"metadata.name={name}"))["items"]
        if not there or there[0]["metadata"]["uid"] != metadata["uid"]:
            return
        metadata = there[0]["metadata"]
    ends, held = "deletionTimestamp" in metadata, bool(metadata.get("finalizers"))
    if ends and held:
        await unless(404, core.delete_namespaced_config_map(name, SPACE))
    if ends == held:
        body = {"metadata": {"finalizers": [] if ends else ["example.com/operator"]}}
        options = {"_content_type": "application/merge-patch+json"}
        await unless(404, widgets.patch_namespaced_custom_object(*where, name, body, **options))
    if not ends:
        await unless(409, core.create_namespaced_config_map(SPACE, config_map(name, k="v")))


def stamp() -> str:
    """The present time of the loop, as a Lease has it."""
    return f"{datetime.fromtimestamp(asyncio.get_running_loop().time(), UTC):%Y-%m-%dT%H:%M:%S.%fZ}"


def leads(buggy: bool) -> Any:
    """Works while it holds a Lease. The one of another that has died is taken over when it has not been renewed."""

    async def main(kubeconfig: str) -> None:
        me, leading = f"{random.SystemRandom().random()}", asyncio.Event()
        configuration = kubernetes_asyncio.client.Configuration()
        await kubernetes_asyncio.config.load_kube_config(kubeconfig, client_configuration=configuration)
        async with kubernetes_asyncio.client.ApiClient(configuration) as api:
            leases, seen, since = kubernetes_asyncio.client.CoordinationV1Api(api), None, 0.0
            work = asyncio.create_task(_when(leading, lambda: program(writes)(False)(kubeconfig)))
            try:
                while not work.done():
                    with suppress(*FAILED):
                        await unless(409, leases.create_namespaced_lease(SPACE, {"metadata": {"name": "leader"}}))
                        lease = await leases.read_namespaced_lease("leader", SPACE)
                        spec, now = lease.spec or kubernetes_asyncio.client.V1LeaseSpec(), time()
                        if (spec.holder_identity, spec.renew_time) != seen:
                            seen, since = (spec.holder_identity, spec.renew_time), now
                        if spec.holder_identity in (None, me) or (now - since > 15 and not buggy):
                            held = {"holderIdentity": me, "leaseDurationSeconds": 15, "renewTime": stamp()}
                            version = lease.metadata.resource_version
                            body = {"metadata": {"name": "leader", "resourceVersion": version}, "spec": held}
                            await leases.replace_namespaced_lease("leader", SPACE, body)
                            leading.set()
                    await asyncio.sleep(5)
            finally:
                work.cancel()

    def time() -> float:
        return asyncio.get_running_loop().time()

    return main


async def _when(event: asyncio.Event, work: Callable[[], Awaitable[None]]) -> None:
    await event.wait()
    await work()


async def writes(core: Any, widget: Tree, buggy: bool) -> None:
    """What does not pass is tried again, or else it is only done for the next change."""
    name, text = widget["metadata"]["name"], widget["spec"]["text"]
    for part in ("one", "two"):
        try:
            await unless(409, core.create_namespaced_config_map(SPACE, config_map(f"{name}-{part}", text=text)))
            await core.patch_namespaced_config_map(f"{name}-{part}", SPACE, {"data": {"text": text}})
        except ApiException:
            if not buggy:
                raise


def sums_up(buggy: bool) -> Any:
    """One ConfigMap summarises all widgets. The correct operator writes it once it has listed them all."""
    seen: Tree = {}

    async def tell(core: Any, widget: Tree, buggy: bool) -> None:
        seen[widget["metadata"]["name"]] = widget["spec"]["text"]
        known = seen
        if not buggy:
            widgets = kubernetes_asyncio.client.CustomObjectsApi(core.api_client)
            found = await widgets.list_namespaced_custom_object(GROUP, "v1", SPACE, PLURAL)
            known = {one["metadata"]["name"]: one["spec"]["text"] for one in found["items"]}
        await unless(409, core.create_namespaced_config_map(SPACE, config_map("all")))
        there = await core.read_namespaced_config_map("all", SPACE)
        there.data = {name: str(text) for name, text in known.items()}
        await core.replace_namespaced_config_map("all", SPACE, there)

    follow = program(tell)(buggy)

    async def main(kubeconfig: str) -> None:
        seen.clear()
        await follow(kubeconfig)

    return main


@program
async def claims_shared(core: Any, widget: Tree, buggy: bool) -> None:
    """Adds a key to a ConfigMap of another client."""
    name, text = widget["metadata"]["name"], widget["spec"]["text"]
    there = await core.read_namespaced_config_map("shared", SPACE)
    while (there.data or {}).get(name) != text:
        there.data = {**(there.data or {}), name: text}
        try:
            there = await core.replace_namespaced_config_map("shared", SPACE, there)
        except ApiException as error:
            if error.status != 409:
                raise
            fresh = await core.read_namespaced_config_map("shared", SPACE)
            if buggy:
                there.metadata.resource_version = fresh.metadata.resource_version
                there.data.pop(name)
            else:
                there = fresh


def rents(buggy: bool) -> Any:
    """Rents a machine outside of the cluster, and records its number. A trial begins without machines."""
    rented: list[str] = []

    async def rent(core: Any, widget: Tree, buggy: bool) -> None:
        name, uid = widget["metadata"]["name"], widget["metadata"]["uid"]
        if (await core.list_namespaced_config_map(SPACE, field_selector=f"metadata.name={name}")).items:
            return
        if buggy or uid not in rented:
            rented.append(uid)
        body = config_map(name, machine=f"{rented.count(uid)} of its machines")
        await unless(409, core.create_namespaced_config_map(SPACE, body))

    return program(rent)(buggy)


@program
async def rolls_out(core: Any, widget: Tree, buggy: bool) -> None:
    """Sends more and more requests to the new version."""
    name = widget["metadata"]["name"]
    await unless(409, core.create_namespaced_config_map(SPACE, config_map(name)))
    weight = int(
        ((await core.read_namespaced_config_map(name, SPACE)).data or {}).get("weight", "0%").removesuffix("%")
    )
    for step in (10, 50, 100):
        if step > weight or (buggy and weight < 100):
            await core.patch_namespaced_config_map(name, SPACE, {"data": {"weight": f"{step}%"}})
            await asyncio.sleep(5)


CASES = (
    Case(
        "overwrites", "kubernetes-asyncio", "takes a new version for its old content", claims_shared, (shares, starts)
    ),
    Case("rents-again", "kubernetes-asyncio", "a restart rents another machine", rents, (starts,)),
    Case("goes-back", "kubernetes-asyncio", "a restart begins the steps of a rollout anew", rolls_out, (starts,)),
    Case("leads-for-ever", "kubernetes-asyncio", "a dead one leads for ever", leads, (starts, changes)),
    Case("ignores-refusals", "kubernetes-asyncio", "what is refused is forgotten", program(writes), (starts,)),
    Case("keeps-its-lock", "kubernetes-asyncio", "a crash leaves a lock for ever", locks, (starts, changes)),
    Case(
        "cleans-up-by-name",
        "kubernetes-asyncio",
        "cleans up after a widget of which another has the name now",
        program(cleans_up, resource_version="0"),
        (starts, ends, starts),
    ),
    Case("forgets-the-rest", "kubernetes-asyncio", "a restart takes away what it has not seen yet", sums_up, SEVERAL),
)
