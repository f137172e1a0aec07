"""Random lives of Deployments: images, sizes, pauses and strategies change in the middle of rollouts."""

import random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from kcm_cli.controllers.deployment.config import DeploymentConfig
from kcm_cli.controllers.replicaset.config import ReplicaSetConfig
from kcm_cli.machinery import codec
from kcm_cli.planning.actions import MERGE
from kcm_cli.rest.transport import Request
from kcm_cli.sandbox.apiserver.security.certificates import Certificates
from tests.kit.controlling import Faulty, controllers
from tests.kit.lives import RESTART, Act, Doc, Judged, docs, image_of, live, living, settles
from tests.kit.world import PODS, World, running_world
from tests.unit.controllers.deployment.test_end_to_end import DEPLOYMENTS, REPLICA_SETS

HASH = "pod-template-hash"
RECREATE: Doc = {"type": "Recreate", "rollingUpdate": None}
ROLLING: Doc = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}
which = st.integers(0, 3)
ACTS: st.SearchStrategy[Act] = st.one_of(
    st.tuples(st.just("image"), st.sampled_from(["i:1", "i:2", "i:3"])),
    st.tuples(st.just("replicas"), st.integers(0, 4)),
    st.tuples(st.just("paused"), st.booleans()),
    st.tuples(st.just("strategy"), st.sampled_from([RECREATE, ROLLING])),
    st.tuples(st.just("delete"), which),
    st.tuples(st.just("fail"), which),
    st.tuples(st.just("scale"), st.tuples(which, st.integers(0, 3))),
    st.tuples(st.just("wait"), st.sampled_from([1.0, 5.0, 40.0])),
    st.tuples(st.just(RESTART), st.none()),
)


class Life:
    """A Deployment ``web``, whose pods take five seconds to end. ``pure``: no rollout but by Recreate has begun."""

    def __init__(self, world: World, seed: int, share: float, strategy: Doc, limit: int) -> None:
        self.world = world
        self.strategy, self.limit = strategy, limit
        self.pure = strategy is RECREATE
        self.judged = Judged(world.server.transport(), self.judge)
        self.transport = Faulty(self.judged, random.Random(seed), share)

    def running(self) -> Any:
        names, configs = ["deployment-controller", "replicaset-controller"], (DeploymentConfig(), ReplicaSetConfig())
        return controllers(self.world, *configs, names=names, transport=self.transport)

    async def make(self) -> None:
        slow = {"sandbox.kcm.dev/stop-time": "5s"}
        template = {
            "metadata": {"labels": {"app": "web"}, "annotations": slow},
            "spec": {"containers": [{"name": "c", "image": "i:1"}]},
        }
        spec = {"replicas": 2, "selector": {"matchLabels": {"app": "web"}}, "template": template}
        more = {"strategy": self.strategy, "revisionHistoryLimit": self.limit}
        await self.world.create(DEPLOYMENTS, {"metadata": {"name": "web"}, "spec": spec | more})

    def judge(self, request: Request) -> str | None:
        """With Recreate, a pod of a new template is created when no other one runs any more."""
        if not self.pure or request.method != "POST" or not request.path.endswith("/pods"):
            return None
        made = codec.decode_doc(request.body)["metadata"]["labels"][HASH]
        others = {pod["metadata"]["labels"][HASH] for pod in docs(self.world, PODS) if runs(pod)} - {made}
        return f"a pod of {made} is created beside those of {others}" if others else None

    async def act(self, act: Act) -> None:
        what, value = act
        pods = living(self.world, PODS)
        match what:
            case "image":
                containers = [{"name": "c", "image": value}]
                await self.patch({"template": {"spec": {"containers": containers}}})
            case "replicas" | "paused":
                await self.patch({what: value})
            case "strategy":
                self.pure = self.pure and value is RECREATE
                await self.patch({"strategy": value})
            case "delete" if pods:
                await self.world.delete(PODS, pods[value % len(pods)])
            case "fail" if pods:
                ended = {"status": {"phase": "Failed", "conditions": []}}
                name = pods[value % len(pods)]
                await self.world.client.patch(PODS, "default", name, ended, content_type=MERGE, subresource="status")
            case "scale" if sets := docs(self.world, REPLICA_SETS):
                number, size = value
                self.pure = False
                name = sets[number % len(sets)]["metadata"]["name"]
                await self.world.patch(REPLICA_SETS, name, {"spec": {"replicas": size}})
            case "wait":
                await self.world.wait(value)

    async def patch(self, spec: Doc) -> None:
        await self.world.patch(DEPLOYMENTS, "web", {"spec": spec})

    def check_settled(self) -> None:
        made = docs(self.world, DEPLOYMENTS)[0]
        spec, status, replicas = made["spec"], made["status"], made["spec"]["replicas"]
        pods = [pod for pod in docs(self.world, PODS) if runs(pod)]
        assert [image_of(pod) for pod in pods] == [image_of(spec["template"])] * replicas
        for field in ("replicas", "updatedReplicas", "readyReplicas", "availableReplicas"):
            assert status.get(field, 0) == replicas, (field, status)
        assert status.get("unavailableReplicas", 0) == status["terminatingReplicas"] == 0
        assert status["observedGeneration"] == made["metadata"]["generation"]
        reasons = {c["type"]: c["reason"] for c in status["conditions"]}
        assert reasons == {"Available": "MinimumReplicasAvailable", "Progressing": "NewReplicaSetAvailable"}, status
        assert len(docs(self.world, REPLICA_SETS)) <= 1 + self.limit


def runs(pod: Doc) -> bool:
    return pod.get("status", {}).get("phase") not in ("Succeeded", "Failed")


@settings(max_examples=10)
@given(
    st.sampled_from([RECREATE, ROLLING]),
    st.integers(0, 2),
    st.lists(ACTS, min_size=3, max_size=12),
    st.integers(0, 999),
    st.sampled_from([0.0, 0.1]),
)
async def test_a_rollout_ends_whatever_changes_in_between(
    certificates: Certificates, strategy, limit, acts, seed, share
):
    async with running_world(certificates, nodes=1) as world:
        life = Life(world, seed, share, strategy, limit)
        await life.make()
        await live(life, acts, world.wait, seed)
        async with life.running():
            await life.patch({"paused": False})
            await settles(world, life.check_settled, life.judged.problems, 700)
        assert not life.judged.problems
