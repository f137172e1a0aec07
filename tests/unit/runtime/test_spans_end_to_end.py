"""What controllers do in a sandbox, on virtual time, as spans."""

from functools import partial

from kcm_cli.component.tracing_config import ALL
from kcm_cli.controllers.deployment.config import DeploymentConfig
from kcm_cli.controllers.replicaset.config import ReplicaSetConfig
from kcm_cli.rest.transport import Around, Request, Response, Unreachable
from kcm_cli.runtime.cause_ring import CauseRing
from kcm_cli.runtime.spans import CHANGE, CREATION, SYNC, WRITE, Span, Spans
from tests.kit.controlling import controllers
from tests.kit.simulation import World as Simulated
from tests.kit.simulation import simulate
from tests.kit.world import PODS, World, resource

DEPLOYMENTS, QUOTAS = resource("deployments", "apps"), resource("resourcequotas")
WORKLOADS = ["deployment-controller", "replicaset-controller"]


class Lost(Around):
    """Loses writes before they arrive."""

    async def send(self, request: Request) -> Response:
        if request.method == "GET":
            return await self._inner.send(request)
        raise Unreachable("no route")


class Traced:
    """A ring, and the spans that are made with it."""

    def __init__(self, world: World, instance: str = "one", rate: int = ALL) -> None:
        self.all: list[Span] = []
        self.ring = CauseRing(world.clock)
        self.ring.spans = Spans(instance, rate, self.ring.shift, self.all.append)

    def children(self, parent: Span, name: str) -> list[Span]:
        return [span for span in self.all if span.parent == parent.context and span.name == name]

    def only(self, name: str) -> Span:
        (found,) = [span for span in self.all if span.name == name]
        return found


async def deployment(world: World, replicas: int) -> None:
    env = [{"name": "P", "value": "sesame"}]
    template = {
        "metadata": {"labels": {"app": "web"}},
        "spec": {"containers": [{"name": "c", "image": "i", "env": env}], "terminationGracePeriodSeconds": 1},
    }
    spec = {"replicas": replicas, "selector": {"matchLabels": {"app": "web"}}, "template": template}
    await world.create(DEPLOYMENTS, {"metadata": {"name": "web"}, "spec": spec})


async def test_a_deployment_is_a_tree_of_spans(world: World):
    traced = Traced(world)
    async with controllers(world, DeploymentConfig(), ReplicaSetConfig(), names=WORKLOADS, causes=traced.ring):
        await world.wait(5)  # the caches are filled
        await deployment(world, 2)
        await world.wait(30)
    applied = traced.only("Deployment created")
    assert (applied.kind, applied.parent) == (CHANGE, None)
    (rollout,) = traced.children(applied, "deployment-controller sync")
    (creation,) = traced.children(rollout, "create replicasets")
    (scaling,) = traced.children(creation, "replicaset-controller sync")
    pods = traced.children(scaling, "create pods")
    assert [pod.attributes["kcm.reason"] for pod in pods] == ["too few replicas"] * 2
    assert (rollout.kind, creation.kind) == (SYNC, WRITE)
    for parent, child in ((applied, rollout), (rollout, creation), (creation, scaling), (scaling, pods[0])):
        assert parent.context.trace == child.context.trace and parent.start <= child.start <= child.end
    ready = [span for span in traced.all if span.name == "Pod changed"]
    links = {link.to for span in ready for link in span.links if link.why == CREATION}
    assert ready and links == {pod.context for pod in pods}
    merged = [link for span in traced.all if span.name == "replicaset-controller sync" for link in span.links]
    assert {link.to for link in merged} <= {span.context for span in traced.all} and merged
    ids = [span.context.span for span in traced.all]
    assert len(ids) == len({*ids})
    parents = {span.parent for span in traced.all if span.parent is not None}
    assert parents <= {span.context for span in traced.all}
    assert "sesame" not in repr(traced.all)


async def test_a_quota_that_refuses_pods_is_an_error_and_retries_stay_in_the_trace(world: World):
    traced = Traced(world)
    hard = {"hard": {"pods": "0"}}
    await world.create(QUOTAS, {"metadata": {"name": "small"}, "spec": hard})
    status = {"metadata": {"name": "small"}, "spec": hard, "status": {**hard, "used": {"pods": "0"}}}
    await world.client.update(QUOTAS, "default", "small", status, subresource="status")
    async with controllers(world, DeploymentConfig(), ReplicaSetConfig(), names=WORKLOADS, causes=traced.ring):
        await world.wait(5)
        await deployment(world, 1)
        await world.wait(60)
    refused = [span for span in traced.all if span.name == "create pods"]
    assert len(refused) > 2
    assert {span.error for span in refused} == {"Forbidden: exceeded quota small"}
    assert {span.attributes["http.response.status_code"] for span in refused} == {403}
    failed = [span for span in traced.all if span.name == "replicaset-controller sync" and span.error]
    assert {span.error for span in failed} == {"Forbidden"}
    assert [span.attributes["kcm.attempt"] for span in failed] == [*range(1, len(failed) + 1)]
    assert {span.context.trace for span in failed} == {traced.only("Deployment created").context.trace}


async def test_the_next_leader_goes_on_with_the_trace(world: World):
    """No write of the first one arrived: the second one finds the version with which the trace began."""
    first, second = Traced(world, "one"), Traced(world, "two")
    run = partial(controllers, world, DeploymentConfig(), ReplicaSetConfig(), names=WORKLOADS)
    async with run(causes=first.ring, transport=Lost(world.server.transport())):
        await world.wait(5)
        await deployment(world, 1)
        await world.wait(30)
    async with run(causes=second.ring):
        await world.wait(30)
    began, listed = first.only("Deployment created"), second.only("Deployment listed")
    assert listed.context.trace == began.context.trace and listed.context.span != began.context.span
    (rollout,) = second.children(listed, "deployment-controller sync")
    assert second.children(rollout, "create replicasets")
    assert {span.error for span in first.all if span.kind == WRITE} == {"Unreachable"}


async def test_traces_that_are_not_sampled_are_not_made(world: World):
    traced = Traced(world, rate=0)
    async with controllers(world, DeploymentConfig(), ReplicaSetConfig(), names=WORKLOADS, causes=traced.ring):
        await world.wait(5)
        await deployment(world, 2)
        await world.wait(30)
        assert len(await world.items(PODS)) == 2
    assert traced.all == [] and len(traced.ring) > 0


def test_the_parts_of_a_sandbox_end_their_spans_and_are_in_the_trace() -> None:
    made: list[Span] = []

    async def story(world: Simulated) -> None:
        assert world.causes is not None
        world.causes.spans = Spans("one", ALL, world.causes.shift, made.append)
        manager = world.manager(only=(*WORKLOADS, "serviceaccount-controller"), causes=world.causes)
        await world.clock.sleep(5)
        labels = {"app": "web"}
        template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
        spec = {"replicas": 2, "selector": {"matchLabels": labels}, "template": template}
        await world.create("apps/v1/deployments", {"metadata": {"name": "web"}, "spec": spec})
        await world.clock.sleep(60)
        before = len(made)
        world.causes.spans.close(world.clock.monotonic())
        assert made[before:] == []  # all have ended
        manager.cancel()

    simulate(1, story, recorded=True)
    (began,) = [span for span in made if span.name == "Deployment created"]
    ours = [span for span in made if span.context.trace == began.context.trace]
    names = {span.name for span in ours}
    assert {"kube-scheduler sync", "create pods/binding", "patch pods/status"} <= names
    contexts = {span.context for span in ours}
    assert [span.name for span in ours if span.parent not in contexts] == [began.name]
    assert not [span.name for span in made if span.name.startswith("Pod ")]  # none is another client's
