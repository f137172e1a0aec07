"""What looks at thousands of pods gives the loop back."""

import asyncio
import time
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from kcm_cli.api.core import PODS
from kcm_cli.component.clock import LoopClock
from kcm_cli.controllers.disruption.scales import Scales
from kcm_cli.controllers.horizontal_pod_autoscaler.metrics_apis import MetricsApis
from kcm_cli.controllers.resourcequota.ledger import Ledger
from kcm_cli.controllers.resourcequota.monitors import Monitors
from kcm_cli.controllers.resourcequota.plan import POD_KIND, Features
from kcm_cli.machinery import codec
from kcm_cli.machinery.labels import parse
from kcm_cli.runtime.turns import TURN_S

PODS_IN_ALL = 100
NAMES = [f"p{number}" for number in range(PODS_IN_ALL)]
pytestmark = pytest.mark.real_time


class Others:
    """What else runs on the loop."""

    def __init__(self) -> None:
        self.turns = 0

    async def run(self) -> None:
        while True:
            self.turns += 1
            await asyncio.sleep(0)


@pytest.fixture
async def others(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Others]:
    """On a machine on which a few pods take the time of a turn."""
    now = 0.0

    def passing() -> float:
        nonlocal now
        now += TURN_S / 5
        return now

    monkeypatch.setattr(time, "perf_counter", passing)
    found = Others()
    task = asyncio.create_task(found.run())
    yield found
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
    assert others.turns > PODS_IN_ALL / 10


async def test_controllers_of_the_pods_of_a_budget(others: Others) -> None:
    scales = object.__new__(Scales)
    size = SimpleNamespace(uid="a", spec=SimpleNamespace(replicas=7), metadata=SimpleNamespace(owner_references=()))
    scales._known = lambda ref, namespace: size  # type: ignore[assignment, return-value]
    owner = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "a", "uid": "a", "controller": True}
    docs = [{"metadata": {"name": name, "namespace": "ns", "ownerReferences": [owner]}} for name in NAMES]
    assert await scales.total([PODS.decode(codec.encode(doc)) for doc in docs]) == (7, False)
    assert others.turns > PODS_IN_ALL / 10


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
    assert others.turns > PODS_IN_ALL / 10
