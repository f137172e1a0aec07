"""Each write of each controller goes through its door, under its name, and is counted: all recorded scenarios are
played at once in one cluster, on virtual time."""

import asyncio
import json
import random
from collections import Counter
from contextlib import suppress
from datetime import datetime, tzinfo
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from kcm_cli.component.metrics import Registry
from kcm_cli.manager.controller_map import CONTROLLERS
from kcm_cli.rest.transport import Around, Request, Response, Transport
from kcm_cli.sandbox.apiserver.routing.requestinfo import resolve
from kcm_cli.sandbox.nodes.agents import NodeOptions
from tests.kit.places import GOLDEN
from tests.kit.simulation import World, simulate
from tests.recorded.golden.kit import kubelet, steps
from tests.recorded.golden.kit.api import Api, ApiError
from tests.recorded.golden.kit.steps import ScenarioRun, StepFailed

PAUSE_S = 2.0
LOOKS = {"wait", "snapshot", "observe", "observed", "quiet"}
"""The steps that change nothing."""
PATIENT_S = 30.0
SCHEDULED = {"replicaset-failed-pods", "replicaset-scale-down-ranking"}
"""Scenarios with a step that binds a pod, which the scheduler of the sandbox has bound already."""
Written = tuple[str, str, str]
"""The client, the verb and the resource of a write."""
QUIET = {
    "attachdetach-controller",
    "bootstrap-signer",
    "certificate-controller",
    "cloud-node-lifecycle-controller",
    "device-taint-eviction-controller",
    "ephemeral-volume-controller",
    "expand-controller",
    "kube-apiserver-serving-clustertrustbundle-publisher",
    "legacy-service-account-token-cleaner",
    "node-route-controller",
    "podcertificaterequestcleaner",
    "podgroup-protection-controller",
    "pv-protection-controller",
    "resource-claim-controller",
    "resourcepoolstatusrequest-controller",
    "selinux-warning-controller",
    "service-lb-controller",
    "storage-version-garbage-collector",
    "storage-version-migrator-controller",
    "token-cleaner",
    "tokens-controller",
    "validatingadmissionpolicy-status-controller",
    "volumeattributesclass-protection-controller",
}
"""The clients of those that no scenario gives anything to write, or that are off by default."""


class Sent(Around):
    """Counts the writes that are sent, as the API server reads them."""

    def __init__(self, inner: Transport) -> None:
        super().__init__(inner)
        self.writes: Counter[Written] = Counter()

    async def send(self, request: Request) -> Response:
        if request.method != "GET":
            info, _ = resolve(request.method, request.path, {})
            resource = f"{info.plural}/{info.subresource}" if info.subresource else info.plural
            self.writes[request.headers["user-agent"].rpartition("/")[2], info.verb, resource] += 1
        return await self._inner.send(request)


class InProcess(Api):
    """The kit's client, on a transport."""

    def __init__(self, transport: Transport) -> None:
        super().__init__("http://sandbox", "")
        self._transport = transport

    async def __aenter__(self) -> "InProcess":
        await self._discover()
        return self

    async def __aexit__(self, *_: object) -> None: ...

    async def request(
        self, method: str, path: str, body: Any = None, params: Any = None, content_type: str = "application/json"
    ) -> Any:
        headers = {"user-agent": "test", "accept": "application/json", "content-type": content_type}
        data = b"" if body is None else json.dumps(body).encode()
        response = await self._transport.send(Request(method, path, tuple((params or {}).items()), headers, data))
        answer = json.loads(response.body)
        if response.status >= 400:
            raise ApiError(method, path, response.status, answer)
        return answer


async def play(api: InProcess, world: World, scenario: dict[str, Any]) -> int:
    """Perform the steps of a scenario, and act as kubelet where it says so. Returns the number of failed steps."""
    run, failed = ScenarioRun(api, scenario), 0
    await api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": run.namespace}})
    for step in scenario["steps"]:
        await world.clock.sleep(PAUSE_S)
        if not LOOKS & step.keys():
            try:
                await run.perform(step)
            except (ApiError, StepFailed):
                failed += 1
    return failed


def counted(metrics: Registry) -> Counter[Written]:
    """Writes by the client of their controller, as /metrics shows them."""
    clients = {descriptor.name: descriptor.client or descriptor.name for descriptor in CONTROLLERS}
    found: Counter[Written] = Counter()
    for family in text_string_to_metric_families(metrics.expose().decode()):
        for sample in family.samples:
            if sample.name == "kcm_controller_writes_total":
                labels = sample.labels
                found[clients[labels["controller"]], labels["verb"], labels["resource"]] += int(sample.value)
    return found


@pytest.fixture
def world_time(monkeypatch: pytest.MonkeyPatch) -> list[World]:
    """Has the scenarios' kit take its time from the world that is put into the list."""
    worlds: list[World] = []

    class Now(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> datetime:
            return worlds[0].clock.now()

    time = SimpleNamespace(
        monotonic=lambda: worlds[0].clock.monotonic(), time=lambda: worlds[0].clock.now().timestamp()
    )
    for module in (steps, kubelet):
        monkeypatch.setattr(module, "time", time)
        monkeypatch.setattr(module, "datetime", Now)
    return worlds


def test_each_write_of_the_recorded_scenarios_is_counted(world_time: list[World]) -> None:
    random.seed(1)
    scenarios = [
        scenario
        for path in sorted(GOLDEN.glob("scenarios/*.yaml"))
        for scenario in yaml.safe_load_all(path.read_text())
    ]
    metrics, sent = Registry(), []
    failed: dict[str, int] = {}

    async def story(world: World) -> None:
        def through(inner: Transport) -> Transport:
            sent.append(Sent(inner))
            return sent[0]

        world_time.append(world)
        manager = world.manager(through=through, metrics=metrics)
        async with InProcess(world.server.transport()) as api:
            failures = await asyncio.gather(*(play(api, world, scenario) for scenario in scenarios))
        failed.update((scenario["name"], count) for scenario, count in zip(scenarios, failures, strict=True) if count)
        await world.clock.sleep(PATIENT_S)
        manager.cancel()
        with suppress(asyncio.CancelledError):
            await manager

    simulate(1, story, NodeOptions(count=0))
    assert failed.keys() <= SCHEDULED
    assert counted(metrics) == sent[0].writes
    writers = {client for client, _, _ in sent[0].writes}
    assert {descriptor.client or descriptor.name for descriptor in CONTROLLERS} - writers == QUIET
