"""Random lives of StatefulSets: ordinals that begin elsewhere, partitions, sizes, images and deleted pods."""

import random
from contextlib import suppress
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from kcm_cli.api.apps import CONTROLLER_REVISIONS, STATEFUL_SETS
from kcm_cli.api.core import PODS
from kcm_cli.controllers.statefulset.config import StatefulSetConfig
from kcm_cli.planning.actions import MERGE, STRATEGIC_MERGE
from kcm_cli.rest.errors import NotFound
from kcm_cli.rest.transport import Request
from kcm_cli.sandbox.apiserver.security.certificates import Certificates
from tests.kit.controlling import Faulty, controllers
from tests.kit.lives import RESTART, Act, Doc, Judged, available, deleted_pod, docs, image_of, live, living, settles
from tests.kit.world import World, running_world
from tests.unit.controllers.statefulset.test_end_to_end import document

REVISION = "controller-revision-hash"
ACTS: st.SearchStrategy[Act] = st.one_of(
    st.tuples(st.just("replicas"), st.integers(0, 4)),
    st.tuples(st.just("start"), st.integers(0, 3)),
    st.tuples(st.just("image"), st.sampled_from(["i:1", "i:2", "i:3"])),
    st.tuples(st.just("partition"), st.integers(0, 4)),
    st.tuples(st.just("delete"), st.integers(0, 3)),
    st.tuples(st.just("fail"), st.integers(0, 3)),
    st.tuples(st.just("break"), st.integers(0, 3)),
    st.tuples(st.just("wait"), st.sampled_from([1.0, 5.0, 40.0])),
    st.tuples(st.just(RESTART), st.none()),
)


class Life:
    """A StatefulSet ``db`` of a parallel or an ordered kind, with at most so many pods down in an update."""

    def __init__(self, world: World, seed: int, share: float, most: int | None) -> None:
        self.world = world
        self.most, self.policy = most, ""
        self.judged = Judged(world.server.transport(), self.judge)
        self.transport = Faulty(self.judged, random.Random(seed), share)

    def running(self) -> Any:
        gates = [("", "MaxUnavailableStatefulSet=true")] if self.most is not None else []
        return controllers(
            self.world, StatefulSetConfig(), names=["statefulset-controller"], transport=self.transport, gates=gates
        )

    async def make(self, policy: str) -> None:
        self.policy = policy
        spec = document(podManagementPolicy=policy, revisionHistoryLimit=1)
        await self.world.client.create(STATEFUL_SETS, "default", spec)
        self.allow()

    def allow(self) -> None:
        """Write maxUnavailable, which the sandbox drops, as by default."""
        if self.most is not None:
            made = self.set()
            made["spec"]["updateStrategy"].setdefault("rollingUpdate", {})["maxUnavailable"] = self.most
            self.world.server.store.update(STATEFUL_SETS.gvr, "default", "db", made)

    def set(self) -> Doc:
        return docs(self.world, STATEFUL_SETS)[0]

    def pods(self) -> dict[str, Doc]:
        return {pod["metadata"]["name"]: pod for pod in docs(self.world, PODS)}

    def judge(self, request: Request) -> str | None:
        """What is wrong with the deletion of a wanted pod: it has not ended, and is no step of an update, or the others
        do not suffice."""
        spec, pods = self.set()["spec"], self.pods()
        pod = pods.get(name := deleted_pod(request))
        if pod is None or "deletionTimestamp" in pod["metadata"] or pod["status"].get("phase") == "Failed":
            return None
        start, ordinal = spec.get("ordinals", {}).get("start", 0), int(name.rpartition("-")[2])
        wanted = range(start, start + spec["replicas"])
        if ordinal not in wanted:
            return None
        partition = spec["updateStrategy"]["rollingUpdate"].get("partition", 0)
        others = [n for n in wanted if n != ordinal]
        if self.most is None and self.policy == "Parallel":
            others = [n for n in others if n > ordinal]  # the lower ones do not count, as upstream
        down = sum(f"db-{n}" not in pods or not available(pods[f"db-{n}"]) for n in others)
        if ordinal < start + partition:
            return f"{name} is below the partition {start}+{partition}"
        if image_of(pod) == image_of(spec["template"]):
            return f"{name} is up to date"
        if available(pod) and down >= (self.most or 1):
            return f"{name} is deleted while {down} others are down"
        return None

    async def act(self, act: Act) -> None:
        what, value = act
        pods = living(self.world, PODS)
        match what:
            case "replicas":
                await self.patch({"replicas": value})
            case "start":
                await self.patch({"ordinals": {"start": value}})
            case "image":
                await self.patch({"template": {"spec": {"containers": [{"name": "c", "image": value}]}}})
            case "partition":
                await self.patch({"updateStrategy": {"rollingUpdate": {"partition": value}}})
            case "delete" if pods:
                await self.world.delete(PODS, pods[value % len(pods)])
            case "fail" if pods:
                ended = {"status": {"phase": "Failed", "conditions": []}}
                name = pods[value % len(pods)]
                await self.world.client.patch(PODS, "default", name, ended, content_type=MERGE, subresource="status")
            case "break" if pods:
                await self.annotate(pods[value % len(pods)], "never")
            case "wait":
                await self.world.wait(value)

    async def annotate(self, pod: str, delay: str | None) -> None:
        await self.world.patch(PODS, pod, {"metadata": {"annotations": {"sandbox.kcm.dev/ready-delay": delay}}})

    async def heal(self) -> None:
        """All pods become ready again."""
        for name in self.pods():
            with suppress(NotFound):
                await self.annotate(name, None)

    async def patch(self, spec: Doc) -> None:
        await self.world.client.patch(STATEFUL_SETS, "default", "db", {"spec": spec}, content_type=STRATEGIC_MERGE)
        self.allow()

    def check_settled(self) -> None:
        made, pods = self.set(), self.pods()
        spec, status = made["spec"], made["status"]
        replicas, start = spec["replicas"], spec.get("ordinals", {}).get("start", 0)
        partition = spec["updateStrategy"]["rollingUpdate"].get("partition", 0)
        image = image_of(spec["template"])
        assert sorted(pods) == sorted(f"db-{n}" for n in range(start, start + replicas)), (status, sorted(pods))
        for count in ("replicas", "readyReplicas", "availableReplicas"):
            assert status.get(count, 0) == replicas, (count, status)
        updated = [pods[f"db-{n}"] for n in range(start, start + replicas) if n >= start + partition]
        assert {image_of(pod) for pod in updated} <= {image}
        revisions = [pod["metadata"]["labels"][REVISION] for pod in pods.values()]
        for field, name in (("updatedReplicas", "updateRevision"), ("currentReplicas", "currentRevision")):
            assert status.get(field, 0) == revisions.count(status[name]), (field, status, revisions)


@settings(max_examples=10)
@given(
    st.sampled_from(["OrderedReady", "Parallel"]),
    st.sampled_from([None, 1, 2]),
    st.lists(ACTS, min_size=3, max_size=12),
    st.integers(0, 999),
    st.sampled_from([0.0, 0.1]),
)
async def test_a_set_gets_what_is_wanted_and_no_pod_goes_without_need(
    certificates: Certificates, policy, most, acts, seed, share
):
    async with running_world(certificates, nodes=1) as world:
        life = Life(world, seed, share, most)
        await life.make(policy)
        await live(life, acts, world.wait, seed)
        async with life.running():
            await life.heal()
            await settles(world, life.check_settled, life.judged.problems, 400)
            await life.act(("partition", 0))
            await settles(world, life.check_settled, life.judged.problems, 400)
            await world.wait(5)
        assert life.set()["status"]["currentRevision"] == life.set()["status"]["updateRevision"]
        assert len(await world.items(CONTROLLER_REVISIONS)) <= 2
        assert not life.judged.problems
