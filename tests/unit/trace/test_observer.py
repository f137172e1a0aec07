"""An observer on a sandbox: what it asks for, what it may not see, and what it shows."""

import asyncio
from contextlib import AbstractAsyncContextManager
from datetime import datetime, timedelta
from email.utils import format_datetime

import pytest

from kcm_cli.component.clock import Clock
from kcm_cli.controllers.deployment.config import DeploymentConfig
from kcm_cli.controllers.replicaset.config import ReplicaSetConfig
from kcm_cli.machinery.errors import FormatError
from kcm_cli.rest.client import Client
from kcm_cli.rest.ratelimit import Unlimited
from kcm_cli.rest.transport import Request, Response, Stream, Transport
from kcm_cli.trace.behind import Linked
from kcm_cli.trace.history import History
from kcm_cli.trace.join import Target
from kcm_cli.trace.observer import Observer, Wanted, resolve
from kcm_cli.trace.text import head, lines
from tests.kit.controlling import controllers
from tests.kit.faults import refusal
from tests.kit.world import PODS, World, resource

DEPLOYMENTS = resource("deployments", "apps")
SECRET = {"metadata": {"name": "s"}, "stringData": {"p": "sesame"}}


class Asked:
    """A transport that keeps the requests, and refuses some paths."""

    def __init__(self, inner: Transport, refused: str = "-") -> None:
        self._inner, self._refused, self.asked = inner, refused, list[Request]()

    async def send(self, request: Request) -> Response:
        self.asked.append(request)
        return refusal(403, "Forbidden", "no") if self._refused in request.path else await self._inner.send(request)

    def stream(self, request: Request) -> AbstractAsyncContextManager[Stream]:
        self.asked.append(request)
        return self._inner.stream(request)

    async def close(self) -> None:
        pass


def observer(world: World, target: Target, refused: str = "-") -> tuple[Observer, Asked]:
    asked = Asked(world.server.transport(), refused)
    client = Client(asked, limiter=Unlimited(), user_agent="trace", clock=world.clock)
    return Observer(client, world.clock, Wanted(target), History()), asked


async def web(world: World) -> None:
    container = {"name": "c", "image": "i", "env": [{"name": "P", "value": "sesame"}]}
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [container]}}
    spec = {"replicas": 2, "selector": {"matchLabels": {"app": "web"}}, "template": template}
    await world.create(DEPLOYMENTS, {"metadata": {"name": "web"}, "spec": spec})


def told(seen: Observer, target: Target) -> str:
    return "\n".join(head(Linked(seen.history.steps, seen.history.relations).about(target)))


async def test_it_only_reads_and_shows_no_values(world: World) -> None:
    configs = (DeploymentConfig(), ReplicaSetConfig())
    async with controllers(world, *configs, names=["deployment-controller", "replicaset-controller"]):
        await world.create(resource("secrets"), SECRET)
        await web(world)
        await world.wait(10)
        target = Target("deploy", "default", "web")
        seen, asked = observer(world, target)
        watching = asyncio.create_task(seen.follow())
        await world.wait(5)
        await world.patch(DEPLOYMENTS, "web", {"spec": {"replicas": 1}})
        await world.wait(30)
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)
        assert {request.method for request in asked.asked} == {"GET"}
        assert not any("secrets" in request.path or "configmaps" in request.path for request in asked.asked)
        text = "\n".join(lines(Linked(seen.history.steps, seen.history.relations).about(target), []))
        assert "sesame" not in text and "was scaled" in text and "from 2 to 1" in text, text


async def test_what_may_not_be_read_is_a_gap_and_no_more(world: World) -> None:
    await web(world)
    target = Target("deploy", "default", "web")
    seen, _ = observer(world, target, "/nodes")
    await seen.look()
    assert list(seen.gaps) == ["nodes"] and "no" in seen.gaps["nodes"]
    assert "Deployment default/web was created by test" in told(seen, target)


async def test_an_object_that_is_not_there_is_unknown(world: World) -> None:
    for word in ("pod", "node", "secret", "thing.example.com"):
        target = Target(word, "default", "none")
        seen, _ = observer(world, target)
        await seen.look()
        assert "is unknown" in told(seen, target) and not seen.gaps


async def test_of_other_kinds_the_metadata_is_read_and_of_secrets_nothing(world: World) -> None:
    await world.create(resource("secrets"), SECRET)
    await world.create(resource("configmaps"), {"metadata": {"name": "s"}, "data": {"p": "sesame"}})
    for word, kind, told_of in (("cm", "ConfigMap", "was created by test"), ("secrets", "Secret", "is unknown")):
        asked = Asked(world.server.transport())
        client = Client(asked, limiter=Unlimited(), user_agent="trace", clock=world.clock)
        wanted = await resolve(client, Target(word, "default", "s"))
        assert wanted.target == Target(kind, "default", "s")
        seen = Observer(client, world.clock, wanted, History())
        await seen.look()
        assert told_of in told(seen, wanted.target) and not seen.gaps
        reads = [one for one in asked.asked if "configmaps" in one.path or "secrets" in one.path]
        assert all("PartialObjectMetadata" in one.headers["accept"] for one in reads)
        assert len(reads) == (word == "cm")


async def test_kinds_are_those_of_the_cluster(world: World) -> None:
    for word, kind, namespace in (("no", "Node", ""), ("ns", "Namespace", ""), ("deploy", "Deployment", "n")):
        assert (await resolve(world.client, Target(word, "n", "x"))).target.text == (
            f"{kind} {namespace}/x" if namespace else f"{kind} x"
        )
    assert (await resolve(world.client, Target("pv", "n", "x"))).target.text == "PersistentVolume x"
    with pytest.raises(FormatError, match="thing.example.com: the cluster serves no such kind"):
        await resolve(world.client, Target("thing.example.com", "n", "x"))


async def test_a_pod_that_somebody_deleted_has_no_invented_cause(world: World) -> None:
    await world.pod("lone")
    target = Target("pod", "default", "lone")
    seen, _ = observer(world, target)
    watching = asyncio.create_task(seen.follow())
    await world.wait(5)
    await world.delete(PODS, "lone")
    await world.wait(60)
    watching.cancel()
    await asyncio.gather(watching, return_exceptions=True)
    text = told(seen, target)
    assert "was marked for deletion" in text and "nothing says who did it" in text and " by " not in text, text


class Behind:
    """A clock that is behind that of the cluster."""

    def __init__(self, clock: Clock, by_s: float) -> None:
        self._clock, self._by_s = clock, by_s

    def now(self) -> datetime:
        return self._clock.now() - timedelta(seconds=self._by_s)

    def __getattr__(self, name: str) -> object:
        return getattr(self._clock, name)


@pytest.mark.parametrize("by_s", [-90.0, 0.0, 90.0])
async def test_times_are_those_of_the_api_server(world: World, by_s: float) -> None:
    class Dated(Asked):
        async def send(self, request: Request) -> Response:
            answer = await super().send(request)
            date = format_datetime(world.clock.now(), usegmt=True)
            return Response(answer.status, {**answer.headers, "date": date}, answer.body)

    client = Client(Dated(world.server.transport()), limiter=Unlimited(), user_agent="trace", clock=world.clock)
    seen = Observer(client, Behind(world.clock, by_s), Wanted(Target("pod", "default", "a")), History())  # type: ignore[arg-type]
    await seen.look()
    assert abs(seen.now() - world.clock.now().timestamp()) <= 1


async def test_events_of_another_apis_kind_have_its_bare_name(world: World) -> None:
    seen, asked = observer(world, Target("Node.metal.example.com", "", "x"))
    await seen.look()
    selectors = [dict(one.query).get("fieldSelector") for one in asked.asked if one.path.endswith("/events")]
    assert selectors == ["involvedObject.kind=Node"]
