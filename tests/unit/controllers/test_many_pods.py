"""What looks at thousands of pods gives the loop back."""

import asyncio
import time
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from kcm_cli.api.core import PODS, Namespace, NamespaceStatus, Secret
from kcm_cli.api.well_known import ACCOUNT_TOKEN
from kcm_cli.component.clock import LoopClock
from kcm_cli.controllers.disruption.scales import Scales
from kcm_cli.controllers.horizontal_pod_autoscaler.metrics_apis import MetricsApis
from kcm_cli.controllers.resourcequota.ledger import Ledger
from kcm_cli.controllers.resourcequota.monitors import Monitors
from kcm_cli.controllers.resourcequota.plan import POD_KIND, Features
from kcm_cli.controllers.root_ca_certificate_publisher.controller import RootCAPublisher
from kcm_cli.controllers.serviceaccount_token.controller import TokenController
from kcm_cli.machinery import codec
from kcm_cli.machinery.labels import parse
from kcm_cli.machinery.meta import ObjectMeta
from kcm_cli.runtime.store import Store
from kcm_cli.runtime.turns import TURN_S, Turns
from kcm_cli.runtime.workqueue import WorkQueue

PODS_IN_ALL = 100
NAMES = [f"p{number}" for number in range(PODS_IN_ALL)]
pytestmark = pytest.mark.real_time


class Others:
    """What else runs on the loop. waits: for the next turn, all the time."""

    def __init__(self, *, waits: bool) -> None:
        self.turns = 0
        self._waits = waits

    async def run(self) -> None:
        while True:
            self.turns += 1
            if self._waits:
                time.sleep(2 * TURN_S)  # their work
                await Turns.of_loop().next()
            else:
                await asyncio.sleep(0)

    def had_their_part(self) -> bool:
        """Whether the work took turns if it was long, and not one for each pod if it was short."""
        return self.turns < PODS_IN_ALL if self._waits else self.turns > PODS_IN_ALL / 10


@pytest.fixture(params=[False, True], ids=["slow", "crowded"])
async def others(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Others]:
    """On a machine on which a few pods take the time of a turn, or on one with others that wait for a turn."""
    now = 0.0

    def passing() -> float:
        nonlocal now
        now += TURN_S / 5
        return now

    if not request.param:
        monkeypatch.setattr(time, "perf_counter", passing)
    found = Others(waits=request.param)
    tasks = [asyncio.create_task(found.run()) for _ in range(3 if request.param else 1)]
    await asyncio.sleep(0)
    yield found
    for task in tasks:
        task.cancel()


@pytest.mark.parametrize("custom", [False, True], ids=["resource", "custom"])
async def test_samples_of_an_autoscaler(others: Others, custom: bool) -> None:
    usage = {"containers": [{"name": "c", "usage": {"cpu": "1"}}]}
    items: list[Any] = [{"metadata": {"name": name}, **usage} for name in NAMES]
    if custom:
        items = [{"describedObject": {"kind": "Pod", "name": name}, "value": "1"} for name in NAMES]

    async def ask(request: object, view: type[Any]) -> Any:
        return msgspec.convert({"items": items}, view)

    async def discovery() -> Any:
        group = SimpleNamespace(name="custom.metrics.k8s.io", preferred="v1beta1", versions=())
        return SimpleNamespace(groups=(group,))

    client: Any = SimpleNamespace(ask=ask)
    mapper: Any = SimpleNamespace(discovery=discovery)
    apis, selector = MetricsApis(client, LoopClock(), mapper), parse("app=web")
    if custom:
        samples = await apis.pods("ns", selector, "hits", parse(""))
    else:
        samples = await apis.resource("ns", selector, "cpu", "")
    assert [(name, sample.value) for name, sample in samples.items()] == [(name, 1000) for name in NAMES]
    assert others.had_their_part()


async def test_controllers_of_the_pods_of_a_budget(others: Others) -> None:
    scales = object.__new__(Scales)
    size = SimpleNamespace(uid="a", spec=SimpleNamespace(replicas=7), metadata=SimpleNamespace(owner_references=()))
    scales._known = lambda ref, namespace: size  # type: ignore[assignment, return-value]
    owner = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "a", "uid": "a", "controller": True}
    docs = [{"metadata": {"name": name, "namespace": "ns", "ownerReferences": [owner]}} for name in NAMES]
    assert await scales.total([PODS.decode(codec.encode(doc)) for doc in docs]) == (7, False)
    assert others.had_their_part()


async def test_a_resync_of_quotas_in_many_namespaces(others: Others) -> None:
    looked: list[str] = []

    def keys(kind: object, namespace: str) -> list[str]:
        looked.append(namespace)
        return []

    lookups: Any = SimpleNamespace(keys=keys)
    monitors = object.__new__(Monitors)
    monitors._ledger = Ledger(lookups, Features())
    for name in NAMES:
        monitors._ledger.keep(POD_KIND, name)
    looked.clear()
    await monitors.restart()
    assert looked == NAMES
    assert others.had_their_part()


async def test_a_changed_root_ca_for_many_namespaces(others: Others) -> None:
    publisher, store = object.__new__(RootCAPublisher), Store[Namespace]()
    for name in NAMES:
        store.put(Namespace(metadata=ObjectMeta(name=name), status=NamespaceStatus("Active")))
    publisher._root_ca, publisher._namespaces = changed_ca(), store
    publisher._queue = WorkQueue("", LoopClock())
    await publisher.reload()
    assert len(publisher._queue) == PODS_IN_ALL
    assert others.had_their_part()


async def test_a_changed_root_ca_for_many_tokens(others: Others) -> None:
    controller, store = object.__new__(TokenController), Store[Secret]()
    for name in NAMES:
        store.put(Secret(metadata=ObjectMeta(name=name, namespace="ns"), type=ACCOUNT_TOKEN))
    controller._root_ca, controller._secrets = changed_ca(), SimpleNamespace(store=store)  # type: ignore[assignment]
    controller._secret_queue = WorkQueue("", LoopClock())
    await controller.reload()
    assert len(controller._secret_queue) == PODS_IN_ALL
    assert others.had_their_part()


def changed_ca() -> Any:
    return SimpleNamespace(reload=lambda: True)
