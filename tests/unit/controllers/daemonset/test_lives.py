"""Random lives of DaemonSets: taints that come and go during updates with maxSurge or maxUnavailable."""

import random
from contextlib import suppress
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from kcm_cli.api.apps import CONTROLLER_REVISIONS, DAEMON_SETS
from kcm_cli.api.core import NODES, PODS
from kcm_cli.controllers.daemonset.config import DaemonSetConfig
from kcm_cli.planning.actions import MERGE, STRATEGIC_MERGE
from kcm_cli.rest.errors import NotFound
from kcm_cli.rest.transport import Request
from kcm_cli.sandbox.apiserver.security.certificates import Certificates
from tests.kit.controlling import Faulty, controllers
from tests.kit.lives import RESTART, Act, Doc, Judged, available, deleted_pod, docs, image_of, live, living, settles
from tests.kit.world import World, running_world
from tests.unit.controllers.daemonset.test_end_to_end import document

HASH = "controller-revision-hash"
SURGE, REPLACE = {"maxSurge": 1, "maxUnavailable": 0}, {"maxSurge": 0, "maxUnavailable": 1}
node = st.integers(0, 2)
ACTS: st.SearchStrategy[Act] = st.one_of(
    st.tuples(st.just("taint"), st.tuples(node, st.sampled_from(["", "NoSchedule", "NoExecute"]))),
    st.tuples(st.just("image"), st.sampled_from(["i:1", "i:2", "i:3"])),
    st.tuples(st.just("strategy"), st.sampled_from([SURGE, REPLACE])),
    st.tuples(st.just("seconds"), st.sampled_from([0, 20])),
    st.tuples(st.just("delete"), node),
    st.tuples(st.just("fail"), node),
    st.tuples(st.just("break"), node),
    st.tuples(st.just("wait"), st.sampled_from([1.0, 5.0, 40.0])),
    st.tuples(st.just(RESTART), st.none()),
)


class Life:
    """A DaemonSet ``agent`` on three nodes."""

    def __init__(self, world: World, seed: int, share: float) -> None:
        self.world = world
        self.judged = Judged(world.server.transport(), self.judge)
        self.transport = Faulty(self.judged, random.Random(seed), share)

    def running(self) -> Any:
        return controllers(self.world, DaemonSetConfig(), names=["daemonset-controller"], transport=self.transport)

    def set(self) -> Doc:
        return docs(self.world, DAEMON_SETS)[0]

    def judge(self, request: Request) -> str | None:
        """With maxSurge, an available pod goes only if its node has another one, or should have none."""
        pods = {pod["metadata"]["name"]: pod for pod in docs(self.world, PODS)}
        pod = pods.get(name := deleted_pod(request))
        if pod is None or not available(pod) or self.set()["spec"]["updateStrategy"]["rollingUpdate"] != SURGE:
            return None
        on = pod["spec"]["nodeName"]
        beside = [p for p in pods.values() if p is not pod and p["spec"].get("nodeName") == on and available(p)]
        tainted = any(effects(one) for one in docs(self.world, NODES, "") if one["metadata"]["name"] == on)
        return None if beside or tainted else f"{name} is deleted, and its node has no other"

    async def act(self, act: Act) -> None:
        what, value = act
        pods = living(self.world, PODS)
        match what:
            case "taint":
                number, effect = value
                await self.taint(number, effect)
            case "image":
                await self.patch({"template": {"spec": {"containers": [{"name": "c", "image": value}]}}})
            case "strategy":
                await self.patch({"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": value}})
            case "seconds":
                await self.patch({"minReadySeconds": value})
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

    async def taint(self, number: int, effect: str) -> None:
        taints = [{"key": "test", "effect": effect}] if effect else None
        name = docs(self.world, NODES, "")[number]["metadata"]["name"]
        await self.world.patch(NODES, name, {"spec": {"taints": taints}})

    async def annotate(self, pod: str, delay: str | None) -> None:
        await self.world.patch(PODS, pod, {"metadata": {"annotations": {"sandbox.kcm.dev/ready-delay": delay}}})

    async def patch(self, spec: Doc) -> None:
        await self.world.client.patch(DAEMON_SETS, "default", "agent", {"spec": spec}, content_type=STRATEGIC_MERGE)

    def check_settled(self) -> None:
        spec, status, pods = self.set()["spec"], self.set()["status"], docs(self.world, PODS)
        assert {image_of(pod) for pod in pods} <= {image_of(spec["template"])}
        assert all(map(available, pods))
        wanted, kept = 0, 0
        for one in docs(self.world, NODES, ""):
            here = sum(pod["spec"]["nodeName"] == one["metadata"]["name"] for pod in pods)
            found = effects(one)
            assert here == 1 if not found else here <= ("NoExecute" not in found), (found, here)
            wanted, kept = wanted + (not found), kept + here * bool(found)
        expected = {"desiredNumberScheduled": wanted, "currentNumberScheduled": wanted, "numberMisscheduled": kept}
        for field in ("numberReady", "updatedNumberScheduled", "numberAvailable"):
            expected[field] = wanted
        assert {field: status.get(field, 0) for field in expected} == expected, status


def effects(one: Doc) -> set[str]:
    return {taint["effect"] for taint in one["spec"].get("taints", ())}


@settings(max_examples=10)
@given(
    st.sampled_from([SURGE, REPLACE]),
    st.lists(ACTS, min_size=3, max_size=12),
    st.integers(0, 999),
    st.sampled_from([0.0, 0.1]),
)
async def test_each_node_has_its_pod_and_none_goes_without_need(certificates: Certificates, rolling, acts, seed, share):
    async with running_world(certificates, nodes=3) as world:
        life = Life(world, seed, share)
        for number in range(3):
            await life.taint(number, "")
        strategy = {"type": "RollingUpdate", "rollingUpdate": rolling}
        doc = document(updateStrategy=strategy, revisionHistoryLimit=1)
        await world.client.create(DAEMON_SETS, "default", doc)
        await live(life, acts, world.wait, seed)
        for pod in docs(world, PODS):
            with suppress(NotFound):
                await life.annotate(pod["metadata"]["name"], None)
        async with life.running():
            await settles(world, life.check_settled, life.judged.problems, 600)
            await world.wait(5)
        assert len(await world.items(CONTROLLER_REVISIONS)) <= 2
        assert not life.judged.problems
