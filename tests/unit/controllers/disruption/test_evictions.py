"""Budgets in a whole sandbox, on virtual time: concurrent evictions by any client keep the budget."""

import asyncio
import json
import random
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kcm_cli.api.policy import POD_DISRUPTION_BUDGETS
from kcm_cli.api.resource import Resource
from kcm_cli.component.metrics import Registry
from kcm_cli.controllers.deployment.config import DeploymentConfig
from kcm_cli.controllers.replicaset.config import ReplicaSetConfig
from kcm_cli.rest.errors import ApiError, TooManyRequests
from kcm_cli.rest.transport import Request, Response, Transport
from kcm_cli.sandbox.apiserver.security.certificates import Certificates
from tests.kit.controlling import Faulty, adds, controllers
from tests.kit.faults import Meanwhile, Noting, Refusing, Rewriting, refusal
from tests.kit.widgets import WIDGETS, serve_widgets
from tests.kit.world import PODS, World, resource, running_world

REPLICA_SETS = resource("replicasets", "apps")
DEPLOYMENTS = resource("deployments", "apps")
TEMPLATE = {
    "metadata": {"labels": {"app": "web"}},
    "spec": {"containers": [{"name": "c", "image": "i"}], "terminationGracePeriodSeconds": 5},
}
WORKLOAD = {"selector": {"matchLabels": {"app": "web"}}, "template": TEMPLATE}


class Story:
    """Pods labelled ``app: web``, their budget and who evicts them."""

    def __init__(self, world: World) -> None:
        self.world = world

    def running(self, *names: str, transport: Transport | None = None, **options: Any) -> Any:
        wanted, configs = ["disruption-controller", *names], (ReplicaSetConfig(), DeploymentConfig())
        return controllers(self.world, *configs, names=wanted, transport=transport, **options)

    async def budget(self, name: str = "b", **spec: Any) -> None:
        spec = {"selector": {"matchLabels": {"app": "web"}}} | spec
        await self.world.create(POD_DISRUPTION_BUDGETS, {"metadata": {"name": name}, "spec": spec})

    async def set_of(self, kind: Resource[Any], replicas: int) -> None:
        await self.world.create(kind, {"metadata": {"name": "web"}, "spec": WORKLOAD | {"replicas": replicas}})

    async def status(self, name: str = "b") -> dict[str, Any]:
        found = await self.world.get(POD_DISRUPTION_BUDGETS, name)
        return found["status"]  # type: ignore[no-any-return]

    async def numbers(self, name: str = "b") -> tuple[int, int, int, int]:
        """Expected, desired, healthy, allowed."""
        status = await self.status(name)
        wanted = ("expectedPods", "desiredHealthy", "currentHealthy", "disruptionsAllowed")
        return tuple(status[key] for key in wanted)  # type: ignore[return-value]

    async def pods(self) -> list[dict[str, Any]]:
        return await self.world.items(PODS)

    async def healthy(self) -> int:
        return sum(ready(pod) and "deletionTimestamp" not in pod["metadata"] for pod in await self.pods())

    async def evict(self, name: str) -> None:
        body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}}
        await self.world.client.create(PODS, "default", body, name=name, subresource="eviction")

    async def condition(self, name: str, type_: str, status: str, **more: str) -> None:
        condition = {"type": type_, "status": status} | more
        conditions = [c for c in (await self.world.status(name)).get("conditions", []) if c["type"] != type_]
        await self._report(name, {"conditions": [*conditions, condition]})

    async def end(self, name: str, phase: str) -> None:
        await self._report(name, {"phase": phase, "conditions": [{"type": "Ready", "status": "False"}]})

    async def _report(self, name: str, status: dict[str, Any]) -> None:
        body = {"status": status}
        merge = "application/merge-patch+json"
        await self.world.client.patch(PODS, "default", name, body, content_type=merge, subresource="status")


@pytest.fixture
def story(world: World) -> Story:
    return Story(world)


def ready(pod: dict[str, Any]) -> bool:
    return any(c["type"] == "Ready" and c["status"] == "True" for c in pod["status"].get("conditions", []))


# -- the scale of whatever owns the pods


@pytest.mark.parametrize(
    ("kind", "spec", "expected"),
    [
        pytest.param(REPLICA_SETS, {"maxUnavailable": 1}, (4, 3, 4, 1), id="of a ReplicaSet"),
        pytest.param(REPLICA_SETS, {"minAvailable": "30%"}, (4, 2, 4, 2), id="a share of a ReplicaSet"),
        pytest.param(DEPLOYMENTS, {"maxUnavailable": "50%"}, (4, 2, 4, 2), id="of a Deployment"),
        pytest.param(DEPLOYMENTS, {"minAvailable": 3}, (4, 3, 4, 1), id="a number of a Deployment"),
    ],
)
async def test_numbers(world: World, story: Story, kind, spec, expected):
    async with story.running("replicaset-controller", "deployment-controller"):
        await story.set_of(kind, 4)
        await story.budget(**spec)
        await world.wait(20)
        assert await story.numbers() == expected


async def test_a_deployment_counts_once_during_a_rollout(world: World, story: Story):
    """Two ReplicaSets, one Deployment: its size is the number of pods that are expected."""
    async with story.running("replicaset-controller", "deployment-controller"):
        await story.set_of(DEPLOYMENTS, 4)
        await story.budget(maxUnavailable=1)
        await world.wait(20)
        metadata = {"labels": {"app": "web"}, "annotations": {"v": "2"}}
        await world.patch(DEPLOYMENTS, "web", {"spec": {"paused": False, "template": {"metadata": metadata}}})
        for _ in range(20):
            await world.wait(0.5)
            assert (await story.numbers())[:2] == (4, 3)
        await world.patch(DEPLOYMENTS, "web", {"spec": {"replicas": 6}})
        await world.wait(20)
        assert await story.numbers() == (6, 5, 6, 1)


SCALE = {"scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}}


async def widget(world: World, **ref: str) -> dict[str, Any]:
    """Make a Widget of five; how its pods refer to it."""
    body = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": {"replicas": 5}}
    await world.create(WIDGETS, body)
    uid = (await world.get(WIDGETS, "w"))["metadata"]["uid"]
    named = {"apiVersion": "example.com/v1", "kind": "Widget", "name": "w", "uid": uid, "controller": True}
    return named | ref


async def owned_pods(world: World, owner: dict[str, Any] | None, count: int = 3) -> None:
    for number in range(count):
        metadata: dict[str, Any] = {"name": f"p{number}", "labels": {"app": "web"}}
        if owner is not None:
            metadata["ownerReferences"] = [owner]
        await world.create(PODS, {"metadata": metadata, "spec": TEMPLATE["spec"]})


def legacy(request: Request, answer: Response) -> Response:
    """A scale as an aggregated API server shows it in extensions/v1beta1."""
    if not request.path.endswith("/scale"):
        return answer
    doc = json.loads(answer.body) | {"apiVersion": "extensions/v1beta1"}
    doc["status"] |= {"selector": {"app": "web"}, "targetSelector": "app=web"}
    return Response(answer.status, answer.headers, json.dumps(doc).encode())


@pytest.mark.parametrize(
    "shown", [pytest.param(lambda request, answer: answer, id="v1"), pytest.param(legacy, id="extensions/v1beta1")]
)
async def test_any_owner_with_a_scale_counts(world: World, story: Story, shown):
    async with story.running(transport=Rewriting(world.server.transport(), shown)):
        await serve_widgets(world, **SCALE)
        await owned_pods(world, await widget(world))
        await story.budget(maxUnavailable="40%")
        await world.wait(20)
        assert await story.numbers() == (5, 3, 3, 0)


@pytest.mark.parametrize(
    ("subresources", "ref", "error"),
    [
        pytest.param({}, {}, "widgets.example.com does not implement the scale subresource", id="no scale"),
        pytest.param(SCALE, {"name": "x"}, 'found no controllers for pod "p0"', id="no such object"),
        pytest.param(SCALE, {"uid": "x"}, 'found no controllers for pod "p0"', id="another object of the name"),
        pytest.param(SCALE, {"kind": "Gadget"}, 'no matches for kind "Gadget" in version "example.com/v1"', id="kind"),
    ],
)
async def test_a_missing_scale_allows_no_disruption(world: World, story: Story, subresources, ref, error):
    async with story.running():
        await serve_widgets(world, **subresources)
        owner = await widget(world, **ref)
        await owned_pods(world, owner, 1)
        await story.budget(maxUnavailable=5)
        await world.wait(20)
        status = await story.status()
        (condition,) = status["conditions"]
        assert status["disruptionsAllowed"] == 0
        assert (condition["status"], condition["reason"]) == ("False", "SyncFailed")
        assert condition["message"] == error
        text = f"Failed to calculate the number of expected pods: {error}"
        assert ("CalculateExpectedPodCountFailed", text) in await world.events("b")
        with pytest.raises(TooManyRequests):
            await story.evict("p0")


async def test_a_pod_that_outlives_its_controller_blocks_no_evictions(world: World, story: Story):
    """kubernetes#130723: a ReplicaSet beyond the history is gone, and the last of its pods takes its time to end."""
    async with story.running("replicaset-controller"):
        await story.set_of(REPLICA_SETS, 3)
        gone = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "old", "uid": "old", "controller": True}
        await owned_pods(world, gone, 2)
        await story.budget(maxUnavailable=1)
        await world.wait(20)
        assert (await story.status())["conditions"][0]["reason"] == "SyncFailed"
        for name in ("p0", "p1"):
            await world.patch(PODS, name, {"metadata": {"finalizers": ["example.com/slow"]}})
            await world.delete(PODS, name)
        await world.wait(20)
        assert await story.numbers() == (3, 2, 3, 1)


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
@pytest.mark.parametrize("kind", ["batch/v1 Job", "gone.example.com/v1 Run", "apps/v1 ReplicaSet"])
async def test_a_pod_that_has_ended_needs_no_controller(world: World, story: Story, kind, phase):
    """kubernetes#77383: a Job of the application has its labels, and no scale. Its pod may be evicted anyway."""
    version, _, name = kind.partition(" ")
    owner = {"apiVersion": version, "kind": name, "name": "old", "uid": "old", "controller": True}
    transport = Noting(world.server.transport())
    async with story.running("replicaset-controller", transport=transport):
        await story.set_of(REPLICA_SETS, 3)
        await owned_pods(world, owner, 1)
        await story.budget(maxUnavailable=1)
        await world.wait(20)
        assert (await story.status())["conditions"][0]["reason"] == "SyncFailed"
        transport.sent.clear()
        await story.end("p0", phase)
        await world.wait(20)
        assert await story.numbers() == (3, 2, 3, 1)
        assert not [path for path in transport.paths("GET") if path.endswith("/scale")]


async def test_a_pod_that_has_ended_counts_for_a_controller_that_is_there(world: World, story: Story):
    async with story.running():
        await story.set_of(REPLICA_SETS, 3)
        uid = (await world.get(REPLICA_SETS, "web"))["metadata"]["uid"]
        owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": uid, "controller": True}
        await owned_pods(world, owner, 1)
        await story.budget(maxUnavailable=1)
        await world.wait(20)
        assert await story.numbers() == (3, 2, 1, 0)
        await story.end("p0", "Failed")
        await world.wait(20)
        assert await story.numbers() == (3, 2, 0, 0)


async def test_a_pod_that_has_ended_counts_for_any_owner_with_a_scale(world: World, story: Story):
    """As for upstream: its other pods may be missing altogether, and none of another owner may go then."""
    async with story.running("replicaset-controller"):
        await serve_widgets(world, **SCALE)
        await story.set_of(REPLICA_SETS, 3)
        await owned_pods(world, await widget(world), 1)
        await story.budget(maxUnavailable=1)
        await world.wait(20)
        assert await story.numbers() == (8, 7, 4, 0)
        await story.end("p0", "Failed")
        await world.wait(20)
        assert await story.numbers() == (8, 7, 3, 0)


@pytest.mark.parametrize("answer", [True, False], ids=["an error", "no answer"])
async def test_an_unavailable_scale_allows_no_disruption_until_the_next_sync(world: World, story: Story, answer):
    broken = [True]

    def hit(request: Request) -> bool:
        return broken[0] and request.path.endswith("/scale")

    def answers(request: Request) -> Response | None:
        return refusal(503, "ServiceUnavailable", "not now") if hit(request) else None

    server = world.server.transport()
    transport: Any = Rewriting(server, answer=answers) if answer else Refusing(server, hit)
    async with story.running(transport=transport):
        await serve_widgets(world, **SCALE)
        await owned_pods(world, await widget(world))
        await story.budget(maxUnavailable=3)
        await world.wait(20)
        status = await story.status()
        assert status["disruptionsAllowed"] == 0
        assert status["conditions"][0]["reason"] == "SyncFailed"
        broken[0] = False
        await world.delete(PODS, "p2")
        await world.wait(20)
        assert await story.numbers() == (5, 2, 2, 0)
        assert (await story.status())["conditions"][0]["reason"] == "InsufficientPods"


@pytest.mark.parametrize(
    ("spec", "expected", "reasons"),
    [
        pytest.param({"maxUnavailable": 1}, (0, 0, 3, 0), {"UnmanagedPods"}, id="cannot be counted"),
        pytest.param({"minAvailable": "50%"}, (0, 0, 3, 0), {"UnmanagedPods"}, id="no share of anything"),
        pytest.param({"minAvailable": 2}, (3, 2, 3, 1), set(), id="a number can"),
    ],
)
async def test_pods_without_a_controller(world: World, story: Story, spec, expected, reasons):
    async with story.running():
        await owned_pods(world, None)
        await world.wait(20)
        await story.budget(**spec)
        await world.wait(20)
        assert await story.numbers() == expected
        assert {reason for reason, _ in await world.events("b")} == reasons


async def test_a_pod_of_two_budgets_is_reported_and_cannot_be_evicted(world: World, story: Story):
    async with story.running():
        await story.budget("a", minAvailable=0)
        await story.budget("b", minAvailable=0)
        await world.wait(5)
        assert ("NoPods", "No matching pods found") in await world.events("a")
        await owned_pods(world, None, 1)
        await world.wait(20)
        text = 'Pod "default"/"p0" matches multiple PodDisruptionBudgets.  Chose "a" arbitrarily.'
        assert ("MultiplePodDisruptionBudgets", text) in await world.events("p0")
        with pytest.raises(ApiError, match="more than one PodDisruptionBudget"):
            await story.evict("p0")


async def test_every_budget_of_a_pod_counts_its_current_state(world: World, story: Story):
    async with story.running():
        await story.budget("a", minAvailable=1, selector={"matchLabels": {"app": "web", "one": "true"}})
        await story.budget("b", minAvailable=1)
        await owned_pods(world, None, 2)
        await world.wait(20)
        await world.patch(PODS, "p0", {"metadata": {"labels": {"one": "true"}}})
        await world.wait(20)
        assert (await story.numbers("a"), await story.numbers("b")) == ((1, 1, 1, 0), (2, 1, 2, 1))
        await world.delete(PODS, "p0")
        await world.wait(20)
        assert (await story.numbers("a"), await story.numbers("b")) == ((0, 1, 0, 0), (1, 1, 1, 0))


# -- evictions


@pytest.mark.parametrize(
    ("policy", "spec", "evicted"),
    [
        pytest.param(None, {"minAvailable": 2}, True, id="default, enough are healthy"),
        pytest.param(None, {"minAvailable": 3}, False, id="default, too few are healthy"),
        pytest.param("IfHealthyBudget", {"minAvailable": 2}, True, id="IfHealthyBudget, enough"),
        pytest.param("IfHealthyBudget", {"minAvailable": 3}, False, id="IfHealthyBudget, too few"),
        pytest.param("AlwaysAllow", {"minAvailable": 3}, True, id="AlwaysAllow, too few"),
        pytest.param("AlwaysAllow", {"minAvailable": 2}, True, id="AlwaysAllow, enough"),
    ],
)
async def test_an_unhealthy_pod_can_be_evicted(world: World, story: Story, policy, spec, evicted):
    """Two of three are healthy; healthy pods stay protected."""
    async with story.running():
        await owned_pods(world, None)
        await story.budget(**spec, **({"unhealthyPodEvictionPolicy": policy} if policy else {}))
        await world.wait(20)
        await world.patch(PODS, "p0", {"metadata": {"annotations": {"sandbox.kcm.dev/ready-delay": "never"}}})
        await world.wait(1)
        assert (await story.numbers())[2:] == (2, 0)
        with pytest.raises(TooManyRequests):
            await story.evict("p1")
        if evicted:
            await story.evict("p0")
        else:
            with pytest.raises(TooManyRequests):
                await story.evict("p0")
        await world.wait(20)
        assert await world.is_deleted("p0") is evicted
        assert await story.healthy() == 2


async def test_an_eviction_without_a_deletion_expires(world: World):
    """Granted, but the pod is never deleted: reported, dropped and allowed again."""
    story, metrics = Story(world), Registry()
    async with story.running(metrics=metrics):
        await owned_pods(world, None)
        await story.budget(minAvailable=2)
        await world.wait(20)
        granted = {"disruptedPods": {"p0": "2026-01-01T00:00:21Z"}, "disruptionsAllowed": 0}
        await world.client.patch(
            POD_DISRUPTION_BUDGETS,
            "default",
            "b",
            {"status": granted},
            content_type="application/merge-patch+json",
            subresource="status",
        )
        await world.wait(60)
        assert (await story.numbers())[2:] == (2, 0)
        assert adds(metrics, "disruption_recheck") == 0
        await world.wait(65)
        assert adds(metrics, "disruption_recheck") == 1
        assert (await story.numbers())[2:] == (3, 1)
        assert "disruptedPods" not in await story.status()
        problem = "Pod was expected by PDB default/b to be deleted but it wasn't"
        assert ("NotDeleted", problem) in await world.events("p0")


@pytest.mark.parametrize(
    ("reason", "left"),
    [
        pytest.param("EvictionByEvictionAPI", "False", id="taken back"),
        pytest.param("TerminationByKubelet", "True", id="kept"),
    ],
)
async def test_a_stale_disruption_target_condition(world: World, story: Story, reason, left):
    async with story.running():
        await owned_pods(world, None, 1)
        await world.wait(20)
        since = "2026-01-01T00:00:20Z"
        await story.condition("p0", "DisruptionTarget", "True", reason=reason, lastTransitionTime=since)
        await world.wait(100)
        assert (await world.condition("p0", "DisruptionTarget"))["status"] == "True"
        await world.wait(30)
        assert (await world.condition("p0", "DisruptionTarget"))["status"] == left


async def test_a_disruption_target_condition_renewed_meanwhile_is_not_taken_back(world: World, story: Story):
    """The pod was chosen again just before the stale condition is written: the change is kept."""
    renewed = partial(story.condition, "p0", "DisruptionTarget", "True", reason="EvictionByEvictionAPI", **at(140))
    transport = Meanwhile(world.server.transport(), "PATCH", "/pods/p0/status", renewed)
    async with story.running(transport=transport):
        await owned_pods(world, None, 1)
        await world.wait(20)
        await story.condition("p0", "DisruptionTarget", "True", reason="EvictionByEvictionAPI", **at(20))
        await world.wait(130)
        assert transport.happened
        assert (await world.condition("p0", "DisruptionTarget"))["status"] == "True"
        await world.wait(120)
        assert (await world.condition("p0", "DisruptionTarget"))["status"] == "False"


def at(second: int) -> dict[str, str]:
    """The time of a condition that was set that long after the start of the virtual time."""
    return {"lastTransitionTime": f"2026-01-01T00:{second // 60:02}:{second % 60:02}Z"}


async def evictor(story: Story, rng: random.Random, floor: Callable[[], int], until_s: float) -> int:
    """Evicts whatever it finds; how often it was allowed to. The budget is checked after each time."""
    granted = 0
    while story.world.clock.monotonic() < until_s:
        found = [p for p in await story.pods() if ready(p) and "deletionTimestamp" not in p["metadata"]]
        if found:
            try:
                await story.evict(rng.choice(found)["metadata"]["name"])
                granted += 1
            except ApiError:
                pass
            assert await story.healthy() >= floor()
        await story.world.wait(rng.choice([0.0, 0.01, 0.3, 2.0]))
    return granted


@settings(max_examples=4)
@given(
    st.integers(3, 6),
    st.one_of(
        st.sampled_from([{"minAvailable": 2}, {"minAvailable": "50%"}, {"minAvailable": 3}]),
        st.sampled_from([{"maxUnavailable": 1}, {"maxUnavailable": "30%"}, {"maxUnavailable": 2}]),
    ),
    st.booleans(),
    st.integers(0, 99),
)
async def test_concurrent_evictions_never_exceed_the_budget(certificates: Certificates, replicas, spec, faulty, seed):
    async with running_world(certificates) as world:
        story = Story(world)
        transport = Faulty(world.server.transport(), random.Random(seed), 0.2) if faulty else None
        async with story.running("replicaset-controller", transport=transport):
            await story.set_of(REPLICA_SETS, replicas)
            await story.budget(**spec)
            await world.wait(60)
            expected, desired, healthy, _ = await story.numbers()
            assert expected == healthy == replicas
            until_s = world.clock.monotonic() + 20
            evictors = [evictor(story, random.Random(seed + n), lambda: desired, until_s) for n in range(4)]
            granted = await asyncio.gather(*evictors)
            assert sum(granted) > 1 or desired == replicas
            await world.wait(200)
            assert (await story.numbers())[2:] == (replicas, replicas - desired)


async def test_labels_that_no_budget_selects_by_queue_no_budget(world: World):
    """A tenant's patches of labels cost no sync; a label that a budget selects by moves the pod at once."""
    story, metrics = Story(world), Registry()
    async with story.running(metrics=metrics):
        await owned_pods(world, None)
        await story.budget(minAvailable=1)
        await world.wait(20)
        before = adds(metrics, "disruption")
        for turn in range(5):
            await world.client.patch(PODS, "default", "p0", {"metadata": {"labels": {"turn": str(turn)}}})
            await world.wait(1)
        assert adds(metrics, "disruption") == before
        count, _, healthy, _ = await story.numbers()
        await world.client.patch(PODS, "default", "p0", {"metadata": {"labels": {"app": "other"}}})
        await world.wait(1)
        assert (await story.numbers())[::2] == (count - 1, healthy - 1)
