"""The shared informers of a manager: what metrics call them, and how they are filled."""

import asyncio
import random

import pytest

from kcm_cli.api.core import PODS
from kcm_cli.api.resource import GVR, Resource
from kcm_cli.component import virtual
from kcm_cli.component.clock import LoopClock
from kcm_cli.machinery.meta import PartialObject
from kcm_cli.manager.config import load
from kcm_cli.manager.controllers import Caches, RunContext, cache_states
from kcm_cli.rest.builder import ClientSettings, RootClients
from kcm_cli.runtime.informers import Informers
from kcm_cli.runtime.tasks import Tasks
from tests.unit.runtime.test_informer import HOLD, Server, added, bookmark, page, pod


def test_caches_have_the_names_of_client_go() -> None:
    informers = Informers(None, LoopClock(), random.Random(1))  # type: ignore[arg-type]  # nothing is asked for
    informers.get(PODS)
    for gvr, kind in (
        (GVR("networking.k8s.io", "v1", "ingresses"), "Ingress"),
        (GVR("gateway.networking.k8s.io", "v1", "gateways"), "Gateway"),
        (GVR("apiextensions.k8s.io", "v1", "customresourcedefinitions"), "CustomResourceDefinition"),
    ):
        informers.metadata(Resource(gvr, kind, PartialObject))
    shown = [(state.group, state.version, state.resource) for state in cache_states(informers)]
    assert shown == [("", "v1", "pods"), ("networking.k8s.io", "v1", "ingresss")]


@pytest.mark.parametrize(
    ("flag", "verbs"),
    [
        ("--feature-gates=WatchListClient=true", ["watch"]),
        ("--feature-gates=WatchListClient=false", ["list", "watch"]),
        ("--emulated-version=1.34", ["list", "watch"]),
    ],
)
def test_a_gate_decides_whether_watch_lists_are_asked_for(flag: str, verbs: list[str]) -> None:
    async def main() -> None:
        server, clock = Server([[added("a", 1), bookmark(5, last=True), HOLD]], [page(5, pod("a", 1))]), LoopClock()
        clients = RootClients(server, ClientSettings(), clock)
        run = RunContext(config=load([flag]), chosen=(), clients=clients, clock=clock, rng=random.Random(1))
        informers, tasks = Caches(run).informers, Tasks(lambda name, error: pytest.fail(f"{name}: {error}"))
        pods = informers.get(PODS)
        informers.start(tasks)
        await asyncio.sleep(60)
        await tasks.stop()
        assert [obj.name for obj in pods.store] == ["a"]
        assert [one["verb"] for one in server.asked] == verbs

    virtual.run(main())
