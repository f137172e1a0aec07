"""The pages of port 10257: which path shows what of a manager. Imported with its first client, as ``server`` says.

upstream: cmd/kube-controller-manager/app/controllermanager.go#Run, staging/src/k8s.io/controller-manager/app/serve.go
"""

import asyncio
import random
from collections.abc import Callable, Mapping

from kcm_cli.component import logs, zpages
from kcm_cli.component.metrics.process import RESIDENT, START, Tasks
from kcm_cli.engine.context import DebugTable
from kcm_cli.manager.configz import configz
from kcm_cli.manager.observability import Observability
from kcm_cli.manager.running import MANAGER
from kcm_cli.manager.server import handlers
from kcm_cli.manager.server.causes import page as causes_page
from kcm_cli.manager.server.mux import Mux
from kcm_cli.manager.server.profiling import Profiling

_DEBUG_S = 10.0


def pages(
    show: Observability, controllers: asyncio.AbstractEventLoop, server: Callable[[], asyncio.AbstractEventLoop]
) -> Mux:
    """The paths and their handlers. ``controllers``: the loop on which controllers' debug handlers run."""
    config, mux = show.config, Mux()
    show.registry.add(Tasks(lambda: (controllers, server())))
    generic, start = config.component.generic, show.process.value(START)
    mux.handle("/healthz", handlers.health(show.health))
    if generic.debugging.profiling:
        Profiling(lambda: (controllers, server()), lambda: show.process.value(RESIDENT)).install(mux)
        mux.handle("/debug/flags", handlers.flag_index, listed=False)
        mux.handle_prefix("/debug/flags/", handlers.flag_index)
        mux.handle("/debug/flags/v", handlers.verbosity(logs.set_verbosity), listed=False)
    mux.handle("/configz", handlers.configz(configz(config.component)))
    mux.handle("/metrics", handlers.metrics(show.registry, start))
    mux.handle("/metrics/slis", handlers.slis(show.slis, show.sli_families, start))
    mux.handle_prefix("/debug/controllers/", handlers.controllers(_debug(show.debug, controllers)))
    mux.handle("/debug/causes", causes_page(show.causes, controllers), listed=False)
    if config.gates.enabled("ComponentFlagz"):
        mux.handle("/flagz", handlers.page(zpages.flagz(MANAGER, config.flags, random.Random())))
    if config.gates.enabled("ComponentStatusz"):
        paths = zpages.folders(mux.listed)
        page = zpages.statusz(MANAGER, show.started, show.clock.now, config.version, lambda: paths)
        mux.handle("/statusz", handlers.page(page), listed=False)
    return mux


def _debug(tables: DebugTable, loop: asyncio.AbstractEventLoop) -> handlers.Debug:
    async def ask(name: str, path: str, query: Mapping[str, str]) -> tuple[str, bytes] | None:
        table = tables.get(name)
        if not table:
            raise KeyError(name)
        handler = table.get(path)
        if handler is None:
            return None

        async def answer() -> tuple[str, bytes]:
            return handler(path, query)

        future = asyncio.run_coroutine_threadsafe(answer(), loop)
        async with asyncio.timeout(_DEBUG_S):
            return await asyncio.wrap_future(future)

    return ask
