"""The controller with that of ReplicaSets in a whole sandbox, on virtual time."""

import random
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import msgspec
import pytest

from kcm_cli.api import apps
from kcm_cli.component.metrics import Registry
from kcm_cli.controllers.deployment import controller
from kcm_cli.controllers.deployment.config import DeploymentConfig
from kcm_cli.controllers.deployment.controller import DeploymentController
from kcm_cli.controllers.replicaset.config import ReplicaSetConfig
from kcm_cli.engine.context import ControllerContext
from kcm_cli.planning.actions import MERGE
from kcm_cli.rest.errors import Forbidden
from kcm_cli.rest.transport import Request, Response, Transport
from kcm_cli.sandbox.apiserver.entrance import Answer, Asked, Proceed
from kcm_cli.sandbox.apiserver.entry.fault import Fault
from kcm_cli.serving.connection import Dropped
from tests.kit.controlling import Faulty, adds, controllers
from tests.kit.faults import Refusing, Rewriting, refusal
from tests.kit.world import PODS, World, resource, running_world

DEPLOYMENTS = resource("deployments", "apps")
REPLICA_SETS = resource("replicasets", "apps")
LIVE = ("Pending", "Running")


class Story:
    """A Deployment ``web``."""

    def __init__(self, world: World) -> None:
        self.world = world

    def running(self, transport: Transport | None = None, gates: Iterable[tuple[str, str]] = ()) -> Any:
        names, configs = ["deployment-controller", "replicaset-controller"], (DeploymentConfig(), ReplicaSetConfig())
        return controllers(self.world, *configs, names=names, transport=transport, gates=gates)

    async def make(self, image: str = "i:1", annotations: dict[str, str] | None = None, **spec: Any) -> None:
        template = {
            "metadata": {"labels": {"app": "web"}, "annotations": annotations or {}},
            "spec": {"containers": [{"name": "c", "image": image}], "terminationGracePeriodSeconds": 1},
        }
        full = {"replicas": 4, "selector": {"matchLabels": {"app": "web"}}, "template": template} | spec
        await self.world.create(DEPLOYMENTS, {"metadata": {"name": "web"}, "spec": full})

    async def patch(self, **spec: Any) -> None:
        await self.world.patch(DEPLOYMENTS, "web", {"spec": spec})

    async def image(self, image: str, **annotations: str) -> None:
        containers = [{"name": "c", "image": image}]
        template: dict[str, Any] = {"spec": {"containers": containers}}
        if annotations:
            template["metadata"] = {
                "annotations": {f"sandbox.kcm.dev/{k.replace('_', '-')}": v for k, v in annotations.items()}
            }
        await self.patch(template=template)

    async def images(self) -> list[str]:
        """Images of the pods that are not on their way out."""
        live = [pod for pod in await self.world.items(PODS) if "deletionTimestamp" not in pod["metadata"]]
        return sorted(pod["spec"]["containers"][0]["image"] for pod in live)

    async def available(self) -> int:
        live = [pod for pod in await self.world.items(PODS) if "deletionTimestamp" not in pod["metadata"]]
        return sum(
            any(c["type"] == "Ready" and c["status"] == "True" for c in pod["status"].get("conditions", []))
            for pod in live
        )

    async def asked(self) -> int:
        return sum(one["spec"]["replicas"] for one in await self.world.items(REPLICA_SETS))

    async def reasons(self) -> dict[str, tuple[str, str]]:
        status = (await self.world.get(DEPLOYMENTS, "web"))["status"]
        return {c["type"]: (c["status"], c["reason"]) for c in status.get("conditions", [])}

    async def revisions(self) -> dict[str, str]:
        """Images by revision."""
        key = "deployment.kubernetes.io/revision"
        return {
            one["metadata"]["annotations"][key]: one["spec"]["template"]["spec"]["containers"][0]["image"]
            for one in await self.world.items(REPLICA_SETS)
        }


async def fail(world: World, name: str) -> None:
    body = {"status": {"phase": "Failed", "reason": "Evicted"}}
    await world.client.patch(PODS, "default", name, body, content_type=MERGE, subresource="status")


@pytest.fixture
def story(world: World) -> Story:
    return Story(world)


@pytest.mark.parametrize(
    ("update", "most", "fewest"),
    [
        pytest.param({"maxSurge": 1, "maxUnavailable": 0}, 5, 4, id="surge only"),
        pytest.param({"maxSurge": 0, "maxUnavailable": 1}, 4, 3, id="unavailable only"),
        pytest.param({"maxSurge": "25%", "maxUnavailable": "25%"}, 5, 3, id="shares"),
        pytest.param({"maxSurge": "100%", "maxUnavailable": "100%"}, 8, 0, id="all at once"),
    ],
)
async def test_a_rolling_update_keeps_its_budget(world: World, story: Story, update, most, fewest):
    async with story.running():
        await story.make(strategy={"type": "RollingUpdate", "rollingUpdate": update})
        await world.wait(60)
        assert await story.available() == 4
        await story.image("i:2")
        for _ in range(200):
            await world.wait(0.2)
            assert await story.asked() <= most
            assert await story.available() >= fewest
        await world.wait(60)
        assert await story.images() == ["i:2"] * 4
        assert await story.reasons() == {
            "Available": ("True", "MinimumReplicasAvailable"),
            "Progressing": ("True", "NewReplicaSetAvailable"),
        }


async def test_recreate_never_runs_old_and_new_pods_together(world: World, story: Story):
    async with story.running():
        await story.make(strategy={"type": "Recreate"})
        await world.wait(60)
        await story.image("i:2")
        for _ in range(100):
            await world.wait(0.2)
            running = [pod for pod in await story.world.items(PODS) if pod["status"]["phase"] in LIVE]
            assert len({pod["spec"]["containers"][0]["image"] for pod in running}) <= 1
        await world.wait(60)
        assert await story.images() == ["i:2"] * 4


@pytest.mark.parametrize("finalizers", [[], ["example.com/wait"]], ids=["deleted", "ended"])
async def test_recreate_does_not_wait_for_pods_that_have_ended(world: World, story: Story, finalizers):
    """kubernetes#128798: a pod that failed earlier stays; upstream goes on when the progress deadline is over.

    With the gate, each change of status.terminatingReplicas queues the Deployment.
    """
    async with story.running(gates=[("", "DeploymentReplicaSetTerminatingReplicas=false")]):
        slow = {"sandbox.kcm.dev/stop-time": "1s"}
        await story.make(annotations=slow, replicas=2, strategy={"type": "Recreate"})
        await world.wait(30)
        failed, *_ = await world.items(PODS)
        await fail(world, failed["metadata"]["name"])
        await world.wait(30)
        for pod in await world.items(PODS):
            await world.patch(PODS, pod["metadata"]["name"], {"metadata": {"finalizers": finalizers}})
        await story.image("i:2")
        await world.wait(30)
        assert await story.images() == ["i:1", "i:2", "i:2"]


async def test_a_rollout_that_becomes_recreate_and_is_scaled_goes_on(world: World, story: Story):
    """kubernetes#125568: with two ReplicaSets that run, upstream neither scales nor rolls out."""
    async with story.running():
        await story.make(strategy={"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 1}})
        await world.wait(60)
        await story.image("i:2", start_delay="10000s")
        await world.wait(30)
        assert set(await story.images()) == {"i:2", "i:1"}
        await story.patch(strategy={"type": "Recreate", "rollingUpdate": None}, replicas=5)
        await world.wait(60)
        assert await story.images() == ["i:2"] * 5


async def test_a_rollout_can_be_paused_and_resumed(world: World, story: Story):
    async with story.running():
        await story.make()
        await world.wait(60)
        await story.patch(paused=True)
        await story.image("i:2")
        await world.wait(60)
        assert await story.images() == ["i:1"] * 4
        assert (await story.reasons())["Progressing"] == ("Unknown", "DeploymentPaused")
        await story.patch(replicas=6)
        await world.wait(60)
        assert await story.images() == ["i:1"] * 6
        await story.patch(paused=False)
        await world.wait(120)
        assert await story.images() == ["i:2"] * 6
        assert (await story.reasons())["Progressing"] == ("True", "NewReplicaSetAvailable")


async def test_history_is_limited_and_a_restored_template_is_a_new_revision(world: World, story: Story):
    async with story.running():
        await story.make(revisionHistoryLimit=1)
        for number in (2, 3):
            await world.wait(60)
            await story.image(f"i:{number}")
        await world.wait(60)
        assert await story.revisions() == {"2": "i:2", "3": "i:3"}
        await story.image("i:2")
        await world.wait(60)
        assert await story.revisions() == {"3": "i:3", "4": "i:2"}
        assert await story.images() == ["i:2"] * 4


async def test_a_stuck_rollout_exceeds_its_deadline_and_can_be_rolled_back(world: World, story: Story):
    async with story.running():
        await story.make(progressDeadlineSeconds=60)
        await world.wait(30)
        await story.image("i:2", start_delay="10000s")
        await world.wait(50)
        assert (await story.reasons())["Progressing"] == ("True", "ReplicaSetUpdated")
        await world.wait(30)
        assert (await story.reasons())["Progressing"] == ("False", "ProgressDeadlineExceeded")
        assert await story.available() >= 3
        await world.patch(DEPLOYMENTS, "web", {"spec": {"template": {"metadata": {"annotations": None}}}})
        await story.image("i:1")
        await world.wait(60)
        assert (await story.reasons())["Progressing"] == ("True", "NewReplicaSetAvailable")
        assert await story.images() == ["i:1"] * 4


async def test_a_refused_template_is_reported(world: World, story: Story):
    """Its ReplicaSet is created; the failed creations of pods are a condition."""
    async with story.running():
        await story.make()
        await world.wait(30)
        await world.patch(DEPLOYMENTS, "web", {"spec": {"template": {"spec": {"serviceAccountName": "nobody"}}}})
        await world.wait(30)
        assert (await story.reasons())["ReplicaFailure"] == ("True", "FailedCreate")
        assert await story.available() >= 3


async def test_a_replica_set_that_cannot_be_created_is_not_tried_for_ever(world: World, story: Story):
    """Upstream's controller drops the key after 15 retries. Without its ReplicaSet a rollout has no deadline."""
    refused = world.server.api.faults.add(
        Fault("refuse", verbs=("create",), resources=("replicasets.apps",), status=403)
    )
    async with story.running():
        await story.make(progressDeadlineSeconds=600)
        await world.wait(500)
        tried = len(refused.happened)
        assert 10 < tried <= 20
        await world.wait(1000)
        assert len(refused.happened) == tried
        assert (await story.reasons())["Progressing"] == ("False", "ReplicaSetCreateError")


async def test_a_rollout_that_is_over_is_not_checked_again_and_again(world: World, story: Story):
    metrics = Registry()
    names, configs = ["deployment-controller", "replicaset-controller"], (DeploymentConfig(), ReplicaSetConfig())
    async with controllers(world, *configs, names=names, metrics=metrics):
        await story.make(progressDeadlineSeconds=60)
        await world.wait(100)
        assert (await story.reasons())["Progressing"] == ("True", "NewReplicaSetAvailable")
        pod = (await world.items(PODS))[0]["metadata"]["name"]
        await world.patch(PODS, pod, {"metadata": {"annotations": {"sandbox.kcm.dev/ready-delay": "never"}}})
        await world.wait(10)
        assert await story.available() == 3
        before = adds(metrics, "deployment")
        await world.wait(100)
        assert adds(metrics, "deployment") == before


@pytest.mark.parametrize("seed", range(2))
async def test_lost_requests_and_answers(world: World, story: Story, seed):
    faulty = Faulty(world.server.transport(), random.Random(seed), 0.3)
    async with story.running(faulty):
        await story.make(strategy={"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 1}})
        await world.wait(300)
        assert await story.images() == ["i:1"] * 4
        await story.image("i:2")
        for _ in range(300):
            await world.wait(1)
            assert await story.asked() <= 5
        assert faulty.faults
        assert await story.images() == ["i:2"] * 4


async def test_a_relist_in_the_middle_of_a_sync_is_no_collision(world: World, story: Story, monkeypatch):
    """The ReplicaSet is there already (the answer was lost), and the cache holds the Deployment in another object."""
    made: list[DeploymentController] = []

    def make(context: ControllerContext) -> DeploymentController:
        made.append(DeploymentController(context))
        return made[-1]

    monkeypatch.setattr(controller, "CONTROLLER", replace(controller.CONTROLLER, make=make))
    done: list[str] = []

    async def first(request: Request) -> None:
        if request.method == "POST" and request.path.endswith("/replicasets") and not done:
            done.append(request.path)
            await world.server.transport().send(request)
            await world.wait(1)
            store = made[0]._deployments.store
            (deployment,) = store.list("default")
            assert deployment.raw is not None
            store.put(apps.DEPLOYMENTS.decode(deployment.raw))

    async with story.running(Refusing(world.server.transport(), lambda request: False, first)):
        await story.make()
        await world.wait(60)
    assert done
    assert "collisionCount" not in (await world.get(DEPLOYMENTS, "web"))["status"]
    assert len(await world.items(REPLICA_SETS)) == 1


class Mirroring:
    """Admission that has each new ReplicaSet take its image from a mirror, and refuses more than ten."""

    def __init__(self) -> None:
        self.made = 0

    async def __call__(self, asked: Asked, proceed: Proceed) -> Answer:
        if asked.resource != "replicasets" or asked.request.method != "POST":
            return await proceed(asked.request, None)
        self.made += 1
        if self.made > 10:
            raise Forbidden(403, "Forbidden", "too many ReplicaSets")
        body = asked.request.body.replace(b'"image":"i:', b'"image":"mirror/i:')
        return await proceed(msgspec.structs.replace(asked.request, body=body), None)


@pytest.mark.parametrize("kept", [10, 0], ids=["with a history", "without a history"])
async def test_replica_sets_that_admission_alters_are_not_created_again_and_again(world: World, story: Story, kept):
    """kubernetes#57167: none is ever the one that the Deployment made, and each one is taken for a collision."""
    world.server.api.interceptors.append(Mirroring())
    async with story.running():
        await story.make(revisionHistoryLimit=kept)
        await world.wait(60)
        assert len(await world.items(REPLICA_SETS)) == 2
        await story.image("i:2")
        await world.wait(600)
        assert await story.images() == ["mirror/i:2"] * 4
        assert await story.available() == 4
        assert (await story.reasons())["Progressing"] == ("True", "NewReplicaSetAvailable")
        sets = await world.items(REPLICA_SETS)
        assert len(sets) == (4 if kept else 2)
        assert sorted(one["spec"]["replicas"] for one in sets) == [0] * (len(sets) - 1) + [4]


class LosesOne:
    """Loses write number ``which``: its answer, or, where it is not ``sent``, the whole request."""

    def __init__(self, which: int, *, sent: bool) -> None:
        self.which = which
        self.sent = sent
        self.writes = 0

    async def __call__(self, asked: Asked, proceed: Proceed) -> Answer:
        ours = asked.user_agent.startswith("kube-controller-manager/") and asked.request.method != "GET"
        self.writes += ours and asked.resource != "events"
        lost = ours and asked.resource != "events" and self.writes - 1 == self.which
        answer = await proceed(asked.request, None) if self.sent or not lost else None
        if lost or answer is None:
            raise Dropped(effect=self.sent)
        return answer


@pytest.mark.parametrize("sent", [False, True], ids=["request", "answer"])
async def test_a_rollout_ends_the_same_though_a_write_is_lost(certificates, sent):
    async def rollout(which: int) -> tuple[int, dict[str, Any]]:
        loses, found = LosesOne(which, sent=sent), {}
        async with running_world(certificates) as world:
            story = Story(world)
            world.server.api.interceptors.append(loses)
            async with story.running():
                await story.make()
                await world.wait(20)
                await story.image("i:2")
                await world.wait(120)
                found["images"] = await story.images()
                sets = await world.items(REPLICA_SETS)
                found["sets"] = sorted(one["spec"]["replicas"] for one in sets)
                deployment = await world.get(DEPLOYMENTS, "web")
                found["available"] = deployment["status"].get("availableReplicas")
        return loses.writes, found

    writes, undisturbed = await rollout(-1)
    assert undisturbed == {"images": ["i:2"] * 4, "sets": [0, 4], "available": 4}
    assert writes > 10
    assert {which: found for which in range(0, writes, 5) if (found := (await rollout(which))[1]) != undisturbed} == {}


@pytest.mark.parametrize(("causes", "reported"), [([], True), ([{"reason": "NamespaceTerminating"}], False)])
async def test_errors_of_a_terminating_namespace_are_not_reported(world: World, story: Story, causes, reported):
    """Nothing more can come of it, and each status would bring another try."""
    tries = []

    def answer(request: Request) -> Response | None:
        if request.method != "POST" or not request.path.endswith("/replicasets"):
            return None
        tries.append(request)
        return refusal(403, "Forbidden", causes=causes)

    async with story.running(Rewriting(world.server.transport(), answer=answer)):
        await story.make()
        await world.wait(60)
        status = (await world.get(DEPLOYMENTS, "web")).get("status", {})
        assert bool(status.get("conditions")) is reported
        assert (len(tries) > 1) is reported
