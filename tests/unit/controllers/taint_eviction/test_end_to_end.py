"""The controller in a whole sandbox, on virtual time, while deletions fail."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from kcm_cli.component.metrics import Registry
from kcm_cli.rest.transport import Around, Request, Response
from tests.kit.controlling import adds, controllers, metric
from tests.kit.faults import Held, Meanwhile, Noting, Refusing, Rewriting, refusal
from tests.kit.world import NODES, PODS, World, resource


async def test_a_failed_eviction_is_retried_at_once(world: World):
    toleration = {"key": "k", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
    await world.pod("p", {"tolerations": [toleration], "terminationGracePeriodSeconds": 1})
    await world.wait(5)
    broken = [True]
    transport = Refusing(world.server.transport(), lambda request: broken[0] and request.method == "DELETE")
    async with controllers(world, names=["taint-eviction-controller"], transport=transport):
        taint = {"key": "k", "effect": "NoExecute"}
        await world.patch(NODES, await world.node_of("p"), {"spec": {"taints": [taint]}})
        await world.wait(290)
        assert not transport.refused
        await world.wait(20)
        assert transport.refused
        assert not await world.is_deleted("p")
        broken[0] = False
        await world.wait(60)
        assert await world.is_deleted("p")


def tolerated(key: str, seconds: int) -> dict:
    return {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": seconds}


@pytest.mark.parametrize(
    ("later", "gone", "event_messages"),
    [
        pytest.param(["a", "strange"], True, ["Cancelling", "Marking"], id="one that is not tolerated"),
        pytest.param(["a", "short"], False, [], id="one that is tolerated for a shorter time"),
        pytest.param([], False, ["Cancelling"], id="no taint any longer"),
    ],
)
async def test_taints_that_change_during_a_pending_eviction(world: World, later, gone, event_messages):
    tolerations = [tolerated("a", 300), tolerated("short", 5)]
    await world.pod("p", {"tolerations": tolerations, "terminationGracePeriodSeconds": 1})
    await world.wait(5)
    node = await world.node_of("p")
    async with controllers(world, names=["taint-eviction-controller"]):
        for keys in (["a"], later):
            taints = [{"key": key, "effect": "NoExecute"} for key in keys]
            await world.patch(NODES, node, {"spec": {"taints": taints}})
            await world.wait(20)
        assert await world.is_deleted("p") == gone
        messages = [text for reason, text in await world.events("p") if reason == "TaintManagerEviction"]
        assert [text.split()[0] for text in messages] == event_messages


def tolerating(seconds: int | None, key: str = "k") -> dict:
    toleration = {"key": key, "operator": "Exists", "effect": "NoExecute"}
    return toleration | ({} if seconds is None else {"tolerationSeconds": seconds})


class Story:
    """A pod ``p`` and the taints of its node. ``left`` returns the second of its deletion, or None."""

    def __init__(self, world: World, node: str) -> None:
        self.world = world
        self.node = node

    async def taint(self, *keys: str) -> None:
        taints = [{"key": key, "effect": "NoExecute"} for key in keys]
        await self.world.patch(NODES, self.node, {"spec": {"taints": taints}})

    async def left(self, seconds: int) -> int | None:
        for second in range(seconds):
            await self.world.wait(1)
            if await self.world.is_deleted("p") or "deletionTimestamp" in (await self.world.get(PODS, "p"))["metadata"]:
                return second
        return None

    async def event_messages(self) -> list[str]:
        await self.world.wait(5)
        return [text for reason, text in await self.world.events("p") if reason == "TaintManagerEviction"]


@asynccontextmanager
async def tolerant(world: World, *tolerations: dict) -> AsyncIterator[Story]:
    """A pod that runs with these tolerations."""
    await world.pod("p", {"tolerations": list(tolerations), "terminationGracePeriodSeconds": 1})
    await world.wait(10)
    async with controllers(world, names=["taint-eviction-controller"]):
        await world.wait(1)
        yield Story(world, await world.node_of("p"))


MARKED, CANCELLED = "Marking for deletion Pod default/p", "Cancelling deletion of Pod default/p"


async def test_a_pod_without_tolerations_is_evicted_at_once(world: World):
    async with tolerant(world) as story:
        await story.taint("k")
        assert await story.left(5) == 0
        assert await story.event_messages() == [MARKED]


async def test_an_evicted_pod_that_is_gone_before_the_answer_was_not_cancelled(world: World):
    """A pod without a grace period is deleted at once; its watch event comes before the response to the deletion."""
    answered: list[bool] = []

    class Late(Around):
        async def send(self, request: Request) -> Response:
            response = await self._inner.send(request)
            if request.method == "DELETE":
                await world.wait(5)
                answered.append(True)
            return response

    await world.pod("p", {"terminationGracePeriodSeconds": 0})
    await world.wait(10)
    story = Story(world, await world.node_of("p"))
    async with controllers(world, names=["taint-eviction-controller"], transport=Late(world.server.transport())):
        await world.wait(1)
        await story.taint("k")
        await world.wait(3)
        assert await world.is_deleted("p") and not answered
        await world.wait(10)
        assert answered
        assert await story.event_messages() == [MARKED]


async def test_the_condition_has_the_reason(world: World):
    async with tolerant(world) as story:
        await story.world.patch(PODS, "p", {"metadata": {"finalizers": ["example.com/wait"]}})
        await story.taint("k")
        await story.world.wait(2)
        found = await story.world.condition("p", "DisruptionTarget")
        assert (found["status"], found["reason"]) == ("True", "DeletionByTaintManager")
        assert found["message"] == "Taint manager: deleting due to NoExecute taint"
        assert found["observedGeneration"] == 1


async def test_a_toleration_without_seconds_is_unlimited(world: World):
    async with tolerant(world, tolerating(None)) as story:
        await story.taint("k")
        assert await story.left(600) is None
        assert await story.event_messages() == []


async def test_the_shortest_toleration_counts(world: World):
    async with tolerant(world, tolerating(200), tolerating(60, "l")) as story:
        await story.taint("k", "l")
        assert await story.left(300) in (59, 60)


async def test_removing_a_taint_cancels_the_eviction_and_a_new_one_restarts_it(world: World):
    async with tolerant(world, tolerating(60)) as story:
        await story.taint("k")
        assert await story.left(50) is None
        await story.taint()
        assert await story.left(100) is None
        assert await story.event_messages() == [CANCELLED]
        await story.taint("k")
        assert await story.left(100) in (59, 60)
        assert sorted(await story.event_messages()) == [CANCELLED, MARKED]


@pytest.mark.parametrize(
    ("second", "expected"),
    [
        pytest.param(30, (19, 20), id="a shorter one does not bring it forward"),
        pytest.param(300, (19, 20), id="a longer one does not put it off"),
        pytest.param(0, (19, 20), id="not even one for no time"),
    ],
)
async def test_another_taint_during_the_toleration(world: World, second, expected):
    async with tolerant(world, tolerating(60), tolerating(second, "l")) as story:
        await story.taint("k")
        assert await story.left(40) is None
        await story.taint("k", "l")
        assert await story.left(100) in expected


async def test_another_taint_that_is_not_tolerated_ends_the_wait(world: World):
    async with tolerant(world, tolerating(60)) as story:
        await story.taint("k")
        assert await story.left(10) is None
        await story.taint("k", "l")
        assert await story.left(10) == 0


async def test_a_toleration_counts_only_if_added_in_time(world: World):
    async with tolerant(world, tolerating(60)) as story:
        await story.taint("k")
        assert await story.left(30) is None
        await story.world.patch(PODS, "p", {"spec": {"tolerations": [tolerating(60), tolerating(None, "other")]}})
        assert await story.left(60) in (29, 30)


async def test_a_toleration_that_becomes_unlimited_cancels_the_eviction(world: World):
    async with tolerant(world, tolerating(60)) as story:
        await story.taint("k")
        assert await story.left(30) is None
        tolerations = (await story.world.get(PODS, "p"))["spec"]["tolerations"]
        changed = [tolerating(None) if each["key"] == "k" else each for each in tolerations]
        await story.world.patch(PODS, "p", {"spec": {"tolerations": changed}})
        assert await story.event_messages() == [CANCELLED]
        assert await story.left(100) is None


async def test_deleting_the_pod_cancels_its_eviction(world: World):
    async with tolerant(world, tolerating(60)) as story:
        await story.taint("k")
        assert await story.left(20) is None
        await story.world.delete(PODS, "p", grace_s=0)
        assert await story.event_messages() == [CANCELLED]


async def test_deleting_the_node_does_not_cancel_the_eviction(world: World):
    async with tolerant(world, tolerating(60)) as story:
        await story.taint("k")
        assert await story.left(20) is None
        await story.world.patch(PODS, "p", {"metadata": {"finalizers": ["example.com/wait"]}})
        await story.world.delete(NODES, story.node)
        assert await story.left(60) in (39, 40)


async def test_a_pod_bound_to_a_tainted_node_is_evicted(world: World):
    async with tolerant(world) as story:
        await story.taint("k")
        assert await story.left(5) == 0
        await story.world.wait(5)
        await story.world.pod("p", {"nodeName": story.node, "terminationGracePeriodSeconds": 1})
        assert await story.left(5) == 0


@pytest.mark.parametrize("tolerations", [[], [tolerating(3)]], ids=["at once", "after a time"])
async def test_a_pod_stays_if_its_node_has_lost_the_taint_that_the_cache_shows(world: World, tolerations):
    """As on a new node that an agent has just made ready. If the taint is back, the pod leaves."""
    taints = {"spec": {"taints": [{"key": "k", "effect": "NoExecute"}]}}
    await world.patch(NODES, "node-1", taints)
    held = Held(world.server.transport(), world.clock, "/api/v1/nodes")
    async with controllers(world, names=["taint-eviction-controller"], transport=held):
        await world.wait(1)
        held.hold()
        await world.patch(NODES, "node-1", {"spec": {"taints": None}})
        await world.pod("p", {"nodeName": "node-1", "tolerations": tolerations, "terminationGracePeriodSeconds": 1})
        await world.wait(30)
        assert not await world.is_deleted("p")
        assert "Marking" not in str(await world.events("p"))
        await world.patch(NODES, "node-1", taints)
        await world.wait(20)
        assert await world.is_deleted("p")
        held.release()


async def test_pods_that_leave_a_node_together_share_a_look_at_it(world: World):
    noting = Noting(world.server.transport())
    for number in range(20):
        await world.pod(f"p{number}", {"nodeName": "node-1", "terminationGracePeriodSeconds": 1})
    await world.wait(5)
    async with controllers(world, names=["taint-eviction-controller"], transport=noting):
        await world.wait(1)
        await world.patch(NODES, "node-1", {"spec": {"taints": [{"key": "k", "effect": "NoExecute"}]}})
        await world.wait(20)
        assert noting.paths("DELETE")
        assert not await world.items(PODS)
        assert 1 <= noting.paths("GET").count("/api/v1/nodes/node-1") <= 8


async def test_a_recreated_pod_has_its_own_toleration_time(world: World):
    async with tolerant(world, tolerating(60)) as story:
        await story.taint("k")
        assert await story.left(50) is None
        await story.world.delete(PODS, "p", grace_s=0)
        await story.world.pod("p", {"nodeName": story.node, "tolerations": [tolerating(60)]})
        assert await story.left(100) in (59, 60)
        assert sorted(await story.event_messages()) == [CANCELLED, MARKED]


async def test_a_waiting_pod_is_evicted_when_it_is_bound_to_a_tainted_node(world: World):
    async with tolerant(world) as story:
        await story.taint("k")
        assert await story.left(5) == 0
        await story.world.wait(5)
        await story.world.pod("p", {"schedulerName": "another", "terminationGracePeriodSeconds": 1})
        assert await story.left(30) is None
        await story.world.bind("p", story.node)
        assert await story.left(5) == 0


async def test_a_pod_that_replaces_an_evicted_one_is_kept(world: World):
    """It is created between the read and the deletion. The deletion has the uid of the first one."""
    await world.pod("p", {"terminationGracePeriodSeconds": 1})
    await world.wait(10)
    node, noting = await world.node_of("p"), Noting(world.server.transport())

    async def replace() -> None:
        await world.delete(PODS, "p", grace_s=0)
        await world.pod("p", {"nodeName": node, "tolerations": [{"operator": "Exists"}]})

    transport = Meanwhile(noting, "DELETE", "/pods/p", replace)
    async with controllers(world, names=["taint-eviction-controller"], transport=transport):
        await world.patch(NODES, node, {"spec": {"taints": [{"key": "k", "effect": "NoExecute"}]}})
        await world.wait(20)
    assert len(noting.paths("DELETE")) == 1
    assert "deletionTimestamp" not in (await world.get(PODS, "p"))["metadata"]
    assert [text for reason, text in await world.events("p") if reason == "TaintManagerEviction"] == [MARKED]


async def test_metrics_count_evictions_and_measure_their_delay_in_seconds(world: World):
    await world.pod("p", {"tolerations": [tolerating(60)], "terminationGracePeriodSeconds": 1})
    await world.wait(10)
    node, metrics, broken = await world.node_of("p"), Registry(), [True]
    transport = Refusing(world.server.transport(), lambda request: broken[0] and request.method == "DELETE")
    prefix = "taint_eviction_controller_pod_deletion"
    async with controllers(world, names=["taint-eviction-controller"], transport=transport, metrics=metrics):
        await world.patch(NODES, node, {"spec": {"taints": [{"key": "k", "effect": "NoExecute"}]}})
        await world.wait(70)
        assert metric(metrics, f"{prefix}s_total") == 0
        broken[0] = False
        await world.wait(60)
    assert metric(metrics, f"{prefix}s_total") == metric(metrics, f"{prefix}_duration_seconds_count") == 1
    assert 10 <= metric(metrics, f"{prefix}_duration_seconds_sum") < 30


@pytest.mark.parametrize("method", ["DELETE", "PATCH"])
async def test_an_eviction_refused_with_409_by_a_webhook_is_retried(world: World, method):
    await world.pod("p", {"terminationGracePeriodSeconds": 1})
    await world.wait(10)
    node, refused = await world.node_of("p"), []

    def webhook(request: Request) -> Response | None:
        if request.method != method or not request.path.removesuffix("/status").endswith("/pods/p"):
            return None
        refused.append(request)
        return refusal(409, "Conflict") if len(refused) < 5 else None

    transport = Rewriting(world.server.transport(), answer=webhook)
    async with controllers(world, names=["taint-eviction-controller"], transport=transport):
        await world.patch(NODES, node, {"spec": {"taints": [{"key": "k", "effect": "NoExecute"}]}})
        await world.wait(20)
        assert len(refused) == 5
        assert await world.is_deleted("p")
        events = [e for e in await world.items(resource("events")) if e["reason"] == "TaintManagerEviction"]
        assert [(event["message"], event["count"]) for event in events] == [(MARKED, 1)]


async def test_the_work_queues_have_metrics(world: World):
    await world.pod("p", {"terminationGracePeriodSeconds": 1})
    await world.wait(10)
    node, metrics = await world.node_of("p"), Registry()
    async with controllers(world, names=["taint-eviction-controller"], metrics=metrics):
        await world.wait(1)
        before = [adds(metrics, queue) for queue in ("noexec_taint_node", "noexec_taint_pod")]
        await world.patch(NODES, node, {"spec": {"taints": [{"key": "k", "effect": "NoExecute"}]}})
        await world.wait(20)
        after = [adds(metrics, queue) for queue in ("noexec_taint_node", "noexec_taint_pod")]
        assert after[0] == before[0] + 1
        assert after[1] > before[1]
