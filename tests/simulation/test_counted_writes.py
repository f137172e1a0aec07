"""Each write of each controller goes through its door, under its name, and is counted: what the recorded scenarios
ask for, thrown at one cluster at once, on virtual time."""

import asyncio
import json
import random
from collections import Counter
from contextlib import AbstractAsyncContextManager, suppress
from typing import Any

import yaml
from prometheus_client.parser import text_string_to_metric_families

from kcm_cli.component.metrics import Registry
from kcm_cli.manager.controller_map import CONTROLLERS
from kcm_cli.rest.transport import Request, Response, Stream, Transport
from tests.places import GOLDEN
from tests.recorded.golden.kit.api import Api, ApiError
from tests.recorded.golden.kit.steps import ScenarioRun, StepFailed
from tests.simulation.world import World, simulate

PAUSE_S = 2.0
ASKED = ("create", "replace", "patch", "scale", "delete", "own", "evict", "approve")
"""The steps that ask for something; the others wait and look, or play kubelet."""
PATIENT_S = 30.0
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


class Sent:
    """Counts the writes that are sent, by the client that sends them."""

    def __init__(self, inner: Transport) -> None:
        self._inner = inner
        self.writes: Counter[str] = Counter()

    async def send(self, request: Request) -> Response:
        if request.method != "GET":
            self.writes[request.headers["user-agent"].removeprefix("kcm/")] += 1
        return await self._inner.send(request)

    def stream(self, request: Request) -> AbstractAsyncContextManager[Stream]:
        return self._inner.stream(request)

    async def close(self) -> None:
        await self._inner.close()


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


async def play(api: InProcess, world: World, scenario: dict[str, Any]) -> None:
    """Ask for what a scenario asks for, one step after the other; what is refused here is refused."""
    run = ScenarioRun(api, scenario)
    await api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": run.namespace}})
    for step in scenario["steps"]:
        await world.clock.sleep(PAUSE_S)
        if any(verb in step for verb in ASKED):
            with suppress(ApiError, StepFailed, KeyError):
                await run.perform(step)


def counted(metrics: Registry) -> Counter[str]:
    """Writes by the client of their controller, as /metrics shows them."""
    clients = {descriptor.name: descriptor.client or descriptor.name for descriptor in CONTROLLERS}
    found: Counter[str] = Counter()
    for family in text_string_to_metric_families(metrics.expose().decode()):
        for sample in family.samples:
            if sample.name == "kcm_controller_writes_total":
                found[clients[sample.labels["controller"]]] += int(sample.value)
    return found


def test_each_write_of_the_recorded_scenarios_is_counted() -> None:
    random.seed(1)
    scenarios = [
        scenario
        for path in sorted(GOLDEN.glob("scenarios/*.yaml"))
        for scenario in yaml.safe_load_all(path.read_text())
    ]
    metrics, sent = Registry(), []

    async def story(world: World) -> None:
        def through(inner: Transport) -> Transport:
            sent.append(Sent(inner))
            return sent[0]

        manager = world.manager(through=through, metrics=metrics)
        async with InProcess(world.server.transport()) as api:
            await asyncio.gather(*(play(api, world, scenario) for scenario in scenarios))
        await world.clock.sleep(PATIENT_S)
        manager.cancel()
        with suppress(asyncio.CancelledError):
            await manager

    simulate(1, story)
    assert counted(metrics) == sent[0].writes
    assert {descriptor.client or descriptor.name for descriptor in CONTROLLERS} - sent[0].writes.keys() == QUIET
