"""A small operator written with kubernetes-asyncio, with a bug that can be left out."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import aiohttp
import kubernetes_asyncio
from kubernetes_asyncio.client import ApiException

from tests.perturb.kit import GROUP, PLURAL, SPACE, Case, Tree, changes, config_map, starts

FAILED = (ApiException, aiohttp.ClientError, OSError, TimeoutError)


def program(handle: Callable[[Any, Tree, bool], Awaitable[None]]) -> Callable[[bool], Any]:
    """``handle(core, widget, buggy)`` for each widget that is there, and for each that changes."""

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
        found = await widgets.list_namespaced_custom_object(GROUP, "v1", SPACE, PLURAL)
        for widget in found["items"]:
            await handle(core, widget, buggy)
        options = {"resource_version": found["metadata"]["resourceVersion"], "timeout_seconds": 3600}
        where = widgets.list_namespaced_custom_object, GROUP, "v1", SPACE, PLURAL
        async for event in kubernetes_asyncio.watch.Watch().stream(*where, **options):
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


CASES = (Case("keeps-its-lock", "kubernetes-asyncio", "a crash leaves a lock for ever", locks, (starts, changes)),)
