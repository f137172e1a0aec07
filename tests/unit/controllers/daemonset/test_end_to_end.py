"""The controller in a whole sandbox, on virtual time: pods are scheduled, start and end."""

import json
import random
from dataclasses import replace
from typing import Any
from unittest.mock import ANY

import pytest

from kcm_cli.api.apps import CONTROLLER_REVISIONS, DAEMON_SETS
from kcm_cli.api.core import NODES, PODS
from kcm_cli.component.metrics import Registry
from kcm_cli.controllers.daemonset import controller, placements
from kcm_cli.controllers.daemonset.config import DaemonSetConfig
from kcm_cli.controllers.daemonset.controller import DaemonSetController
from kcm_cli.controllers.daemonset.placements import Placements
from kcm_cli.engine.context import ControllerContext
from kcm_cli.planning.actions import MERGE, STRATEGIC_MERGE
from kcm_cli.rest.transport import Request
from tests.kit.controlling import Faulty, controllers, metric
from tests.kit.faults import Held, Meanwhile, Refusing
from tests.kit.world import World


@pytest.fixture
def made(monkeypatch):
    """The controllers that a test makes."""
    found: list[DaemonSetController] = []

    def make(context: ControllerContext) -> DaemonSetController:
        found.append(DaemonSetController(context))
        return found[-1]

    monkeypatch.setattr(controller, "CONTROLLER", replace(controller.CONTROLLER, make=make))
    return found


def document(**spec: Any) -> dict[str, Any]:
    full = {
        "selector": {"matchLabels": {"app": "agent"}},
        "template": {
            "metadata": {"labels": {"app": "agent"}},
            "spec": {"containers": [{"name": "c", "image": "i:1"}], "terminationGracePeriodSeconds": 1},
        },
    }
    return {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "agent"}, "spec": full | spec}


def image_of(pod: dict[str, Any]) -> str:
    return pod["spec"]["containers"][0]["image"]  # type: ignore[no-any-return]


class Story:
    """A DaemonSet ``agent`` and the questions of the tests. Nodes have no taints but those of a test."""

    def __init__(self, world: World) -> None:
        self.world = world

    def running(self, **options: Any) -> Any:
        return controllers(self.world, DaemonSetConfig(), names=["daemonset-controller"], **options)

    async def nodes(self) -> list[str]:
        return sorted(node["metadata"]["name"] for node in await self.world.items(NODES))

    async def taint(self, *nodes: str, effect: str = "") -> None:
        taints = [{"key": "test", "effect": effect}] if effect else None
        for node in nodes:
            await self.world.patch(NODES, node, {"spec": {"taints": taints}})

    async def make(self, **spec: Any) -> None:
        await self.world.client.create(DAEMON_SETS, "default", document(**spec))

    async def image(self, image: str) -> None:
        body = {"spec": {"template": {"spec": {"containers": [{"name": "c", "image": image}]}}}}
        await self.world.client.patch(DAEMON_SETS, "default", "agent", body, content_type=STRATEGIC_MERGE)

    async def status(self) -> dict[str, Any]:
        found = await self.world.client.get_doc(DAEMON_SETS, "default", "agent")
        return found["status"]  # type: ignore[return-value]

    async def images(self) -> dict[str, str]:
        """Images by node."""
        pods = await self.world.items(PODS)
        return {pod["spec"]["nodeName"]: image_of(pod) for pod in pods}


@pytest.fixture
def story(world: World) -> Story:
    return Story(world)


@pytest.mark.parametrize(
    "rolling",
    [{"maxUnavailable": 1}, {"maxUnavailable": "100%"}, {"maxSurge": 1, "maxUnavailable": 0}],
    ids=["one", "all", "surge"],
)
async def test_lifecycle(world: World, story: Story, rolling):
    nodes = await story.nodes()
    await story.taint(*nodes)
    async with story.running():
        await story.make(updateStrategy={"type": "RollingUpdate", "rollingUpdate": rolling})
        await world.wait(60)
        assert await story.images() == dict.fromkeys(nodes, "i:1")
        assert (await story.status())["numberAvailable"] == 3
        await story.image("i:2")
        await world.wait(120)
        assert await story.images() == dict.fromkeys(nodes, "i:2")
        assert (await story.status())["updatedNumberScheduled"] == 3
        await story.taint(nodes[0], effect="NoSchedule")
        await world.wait(10)
        assert set(await story.images()) == set(nodes)
        await story.taint(nodes[0], effect="NoExecute")
        await world.wait(30)
        assert set(await story.images()) == set(nodes[1:])
        await story.taint(nodes[0])
        await world.wait(30)
        assert set(await story.images()) == set(nodes)


async def test_a_restarted_controller_writes_nothing(world: World, story: Story):
    await story.taint(*await story.nodes())
    async with story.running():
        await story.make()
        await world.wait(60)
    kinds = (DAEMON_SETS, PODS, CONTROLLER_REVISIONS)
    before = [await story.world.items(kind) for kind in kinds]
    assert len(before[1]) == 3
    metrics = Registry()
    async with story.running(metrics=metrics):
        await world.wait(60)
    assert metric(metrics, "workqueue_adds_total") > 0
    assert metric(metrics, "workqueue_retries_total") == 0
    assert metric(metrics, "kcm_controller_writes_total") == 0
    assert [await story.world.items(kind) for kind in kinds] == before


@pytest.mark.parametrize("seed", range(2))
async def test_lost_requests_and_answers_only_delay(world: World, story: Story, seed):
    nodes = await story.nodes()
    await story.taint(*nodes)
    faulty = Faulty(world.server.transport(), random.Random(seed), 0.3)
    async with story.running(transport=faulty):
        await story.make()
        await world.wait(700)
        assert await story.images() == dict.fromkeys(nodes, "i:1")
        await story.image("i:2")
        await world.wait(1500)
        assert await story.images() == dict.fromkeys(nodes, "i:2")
        assert len(await story.world.items(PODS)) == 3
    assert faulty.faults > 2
    assert sorted(revision["revision"] for revision in await story.world.items(CONTROLLER_REVISIONS)) == [1, 2]


async def test_a_new_revision_does_not_count_as_an_expected_pod(world: World, story: Story, made):
    await story.taint(*await story.nodes())
    async with story.running():
        await story.make()
        await world.wait(30)
        expectations = vars(made[0])["_expectations"]
        uid = (await world.get(DAEMON_SETS, "agent"))["metadata"]["uid"]
        expectations.expect("default/agent", world.clock.monotonic(), uid=uid, creations=1)
        await story.image("i:2")
        await world.wait(10)
        assert len(await world.items(CONTROLLER_REVISIONS)) == 2
        assert not expectations.satisfied("default/agent", world.clock.monotonic(), uid)


async def test_a_revision_of_another_client_is_kept_until_the_next_sync(world: World, story: Story, made):
    await story.taint(*await story.nodes())
    async with story.running():
        await story.make()
        await world.wait(30)
        (first,) = await world.items(CONTROLLER_REVISIONS)
        kept = {field: first["metadata"][field] for field in ("labels", "ownerReferences")}
        again = {**first, "metadata": {"name": "again", **kept}, "revision": 2}
        await world.client.create(CONTROLLER_REVISIONS, "default", again)
        await world.wait(5)
        assert len(await world.items(CONTROLLER_REVISIONS)) == 2
        await world.patch(DAEMON_SETS, "agent", {"spec": {"minReadySeconds": 1}})
        await world.wait(5)
        assert [each["metadata"]["name"] for each in await world.items(CONTROLLER_REVISIONS)] == ["again"]


async def test_a_running_sync_keeps_no_state_of_a_deleted_daemonset(world: World, story: Story, made):
    await story.taint(*await story.nodes())

    async def delete() -> None:
        await world.delete(DAEMON_SETS, "agent")
        await world.wait(5)

    transport = Meanwhile(world.server.transport(), "PUT", "/daemonsets/agent/status", delete)
    async with story.running(transport=transport):
        await story.make()
        await world.wait(60)
    assert transport.happened
    assert not vars(made[0])["_reported"]
    assert not vars(vars(made[0])["_placements"])["_known"]


@pytest.mark.parametrize("fault", ["a budget that is none", "a revision that cannot be deleted"])
async def test_the_status_is_written_although_the_sync_failed(world: World, story: Story, fault):

    def refused(request: Request) -> bool:
        return fault.startswith("a revision") and request.method == "DELETE" and "controllerrevisions" in request.path

    async with story.running(transport=Refusing(world.server.transport(), refused)):
        await story.make(revisionHistoryLimit=0)
        await world.wait(30)
        if fault.startswith("a budget"):
            store = world.server.store
            (stored,) = store.list(DAEMON_SETS.gvr, "default")
            odd = stored.copy()
            odd["spec"]["updateStrategy"]["rollingUpdate"]["maxUnavailable"] = "some"
            odd["metadata"]["generation"] = 2
            store.update(DAEMON_SETS.gvr, "default", "agent", odd)
        else:
            await story.image("i:2")
        await world.wait(60)
        status = (await world.get(DAEMON_SETS, "agent"))["status"]
        assert (status["observedGeneration"], status["numberReady"]) == (2, 3)


@pytest.mark.parametrize("fault", ["", "a revision that cannot be created", "a template that is not selected"])
async def test_a_sync_evaluates_no_nodes_at_once(world: World, story: Story, monkeypatch, fault):
    """Also one that only writes the status: the nodes are evaluated in turns before."""
    evaluated, at_once = list[str](), list[int]()
    real_fit, real_of = placements.fit, Placements.of

    def fit(wanted: Any, node: Any, **more: Any) -> Any:
        evaluated.append(node.name)
        return real_fit(wanted, node, **more)

    def of(memory: Placements, *args: Any) -> Any:
        before = len(evaluated)
        found = real_of(memory, *args)
        at_once.append(len(evaluated) - before)
        return found

    def refused(request: Request) -> bool:
        created = request.method == "POST" and request.path.endswith("/controllerrevisions")
        return created and fault.startswith("a revision") and bool(changed)

    changed = list[str]()
    monkeypatch.setattr(placements, "fit", fit)
    monkeypatch.setattr(Placements, "of", of)
    transport = Refusing(world.server.transport(), refused)
    async with story.running(transport=transport):
        await story.make()
        await world.wait(10)
        evaluated.clear()
        at_once.clear()
        changed.append(fault)
        if fault.startswith("a template"):
            odd = world.server.store.get(DAEMON_SETS.gvr, "default", "agent").copy()
            odd["spec"]["template"]["metadata"]["labels"] = {"app": "other"}
            odd["metadata"]["generation"] = 2
            world.server.store.update(DAEMON_SETS.gvr, "default", "agent", odd)
        else:
            await story.image("i:2")
        await world.wait(1)
    assert sorted(evaluated) == await story.nodes()
    assert at_once and not any(at_once)
    assert bool(transport.refused) == fault.startswith("a revision")


async def test_a_daemonset_that_selects_all_pods_is_refused(world: World, story: Story):
    """API servers reject it; it may have been stored before they did."""
    await world.pod("stranger")
    async with story.running():
        await story.make()
        await world.wait(5)
        odd = world.server.store.get(DAEMON_SETS.gvr, "default", "agent").copy()
        odd["spec"]["selector"] = {}
        world.server.store.update(DAEMON_SETS.gvr, "default", "agent", odd)
        for name in await story.nodes():
            await world.create(NODES, {"metadata": {"name": f"{name}-more"}})
        await world.wait(10)
        text = "This daemon set is selecting all pods. A non-empty selector is required."
        assert await world.events("agent") == [*[("SuccessfulCreate", ANY)] * 3, ("SelectingAll", text)]
        assert "ownerReferences" not in (await world.get(PODS, "stranger"))["metadata"]


@pytest.mark.cluster(alone=True)
async def test_failed_pods_are_replaced_with_backoff(world: World):
    story, times = Story(world), list[float]()
    await world.create(NODES, {"metadata": {"name": "n"}})
    await story.taint("n")
    async with story.running():
        await story.make()
        for _ in range(5):
            await world.wait(0.5)
            (pod,) = await world.items(PODS)
            failed = {"status": {"phase": "Failed"}}
            name = pod["metadata"]["name"]
            await world.client.patch(PODS, "default", name, failed, content_type=MERGE, subresource="status")
            started = world.clock.monotonic()
            while not await world.is_deleted(name):
                await world.wait(0.1)
            times.append(round(world.clock.monotonic() - started))
        assert times == [0, 1, 2, 4, 8]


@pytest.mark.cluster(nodes=1)
@pytest.mark.parametrize("rolling", [{"maxUnavailable": 1}, {"maxSurge": 1, "maxUnavailable": 0}])
async def test_a_node_that_refuses_pods_is_not_flooded(world: World, story: Story, rolling):
    (node,) = await story.nodes()
    await world.patch(NODES, node, {"metadata": {"annotations": {"sandbox.kcm.dev/pressure": "disk"}}})
    await world.wait(20)
    async with story.running():
        await story.make(updateStrategy={"type": "RollingUpdate", "rollingUpdate": rolling})
        for _ in range(60):
            await world.wait(0.5)
            assert len(await world.items(PODS)) <= 2
        created = [message for reason, message in await world.events("agent") if reason == "SuccessfulCreate"]
        assert 3 <= len(created) <= 7  # after 0, 1, 2, 4, 8 and 16 seconds


async def test_a_failed_creation_is_retried(world: World):
    story, refused = Story(world), list[Request]()

    def refuses(request: Request) -> bool:
        if request.method != "POST" or not request.path.endswith("/pods") or len(refused) >= 6:
            return False
        refused.append(request)
        return True

    metrics = Registry()
    await story.taint(*await story.nodes())
    async with story.running(transport=Refusing(world.server.transport(), refuses), metrics=metrics):
        await story.make()
        await world.wait(10)
        assert len(await world.items(PODS)) == 3
        assert metric(metrics, "workqueue_retries_total") > 0


async def test_pods_become_available_under_a_controller_that_was_restarted(world: World, story: Story):
    await story.taint(*await story.nodes())
    async with story.running():
        await story.make(minReadySeconds=60)
        await world.wait(20)
    async with story.running():
        await world.wait(20)
        assert (await story.status()).get("numberAvailable", 0) == 0
        await world.wait(40)
        assert (await story.status())["numberAvailable"] == 3


async def test_a_surge_goes_on_under_a_controller_that_was_restarted(world: World, story: Story):
    """The new pod is ready beside the old one, which is the one that the status counts: nothing changes any more."""
    await story.taint(*await story.nodes())
    rolling = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}
    async with story.running():
        await story.make(minReadySeconds=60, updateStrategy=rolling)
        await world.wait(100)
        await story.image("i:2")
        await world.wait(30)
        assert len(await world.items(PODS)) == 4
    async with story.running():
        await world.wait(300)
        assert set((await story.images()).values()) == {"i:2"}


async def test_new_pods_of_a_surge_become_available_one_after_the_other(world: World, story: Story):
    """Of two times to look again the earlier one counts, so that the sync at that time has to know of the other."""
    nodes = await story.nodes()
    await story.taint(*nodes)
    await world.delete(NODES, nodes[2])
    rolling = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 2, "maxUnavailable": 0}}
    async with story.running():
        await story.make(minReadySeconds=60, updateStrategy=rolling)
        await world.wait(100)
        await story.image("i:2")
        await world.wait(2)
        late = next(pod["metadata"]["name"] for pod in await world.items(PODS) if image_of(pod) == "i:2")
        await world.patch(PODS, late, {"metadata": {"annotations": {"sandbox.kcm.dev/ready-delay": "20s"}}})
        await world.wait(150)
        assert await story.images() == dict.fromkeys(nodes[:2], "i:2")


async def test_misscheduled_pods_are_counted_when_the_taints_of_their_node_change(world: World, story: Story):
    nodes = await story.nodes()
    await story.taint(*nodes)
    async with story.running():
        await story.make()
        await world.wait(30)
        await story.taint(nodes[0], effect="NoSchedule")
        await world.wait(5)
        status = await story.status()
        assert (status["numberMisscheduled"], status["desiredNumberScheduled"]) == (1, 2)
        await story.taint(nodes[0])
        await world.wait(5)
        assert (await story.status())["numberMisscheduled"] == 0


@pytest.mark.parametrize("gone", [True, False], ids=["deleted", "unfit"])
async def test_a_pod_that_waits_for_its_node_goes_with_it(world: World, story: Story, gone):
    """No node has room for it: nobody else deletes it, and nothing else of it changes (kubernetes#71349)."""
    nodes = await story.nodes()
    await story.taint(*nodes)
    template = document()["spec"]["template"]
    template["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "1000"}}
    async with story.running():
        await story.make(template=template)
        await world.wait(30)
        assert [pod["spec"].get("nodeName") for pod in await world.items(PODS)] == [None] * 3
        if gone:
            await world.delete(NODES, nodes[0])
        else:
            await story.taint(nodes[0], effect="NoExecute")
        await world.wait(10)
        assert len(await world.items(PODS)) == (await story.status())["desiredNumberScheduled"] == 2


async def test_an_invalid_number_in_a_node_selector_does_not_affect_others(world: World):
    """API servers refuse it; it may have been stored before they did."""
    story, term = Story(world), {"matchExpressions": [{"key": "x", "operator": "Gt", "values": ["9" * 5000]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    odd, ordinary = document(), document()
    odd["metadata"]["name"] = "a-odd"
    async with story.running():
        for each in (odd, ordinary):
            each["spec"]["template"]["spec"]["nodeSelector"] = {"x": "1"}
            await world.client.create(DAEMON_SETS, "default", each)
        stored = world.server.store.get(DAEMON_SETS.gvr, "default", "a-odd").copy()
        stored["spec"]["template"]["spec"]["affinity"] = {"nodeAffinity": required}
        world.server.store.update(DAEMON_SETS.gvr, "default", "a-odd", stored)
        await world.wait(5)
        node = (await story.nodes())[0]
        await world.patch(NODES, node, {"metadata": {"labels": {"x": "1"}}})
        await world.wait(5)
        assert [pod["spec"]["nodeName"] for pod in await world.items(PODS)] == [node]


def creates_pod(sent: Request) -> bool:
    return sent.method == "POST" and sent.path.endswith("/pods")


@pytest.mark.parametrize("gate", ["true", "false"])
async def test_pods_that_appear_during_a_sync_are_not_made_twice(world: World, gate):
    """The pods of the first sync appear while the second one, for a new template, waits for the new revision."""
    story, waited, created = Story(world), False, 0
    held = Held(world.server.transport(), world.clock, "/api/v1/pods", creates_pod)

    async def before(sent: Request) -> None:
        nonlocal waited, created
        created += creates_pod(sent)
        if sent.method == "POST" and sent.path.endswith("/controllerrevisions") and b"i:2" in sent.body:
            waited = True
            held.release()
            await world.wait(1)

    transport = Refusing(held, lambda sent: False, before)
    async with story.running(transport=transport, gates=[("", f"StaleControllerConsistencyDaemonSet={gate}")]):
        await world.client.create(DAEMON_SETS, "default", document(updateStrategy={"type": "OnDelete"}))
        await world.wait(2)
        assert len(await world.items(PODS)) == 3
        template = {"spec": {"containers": [{"name": "c", "image": "i:2"}]}}
        body = {"spec": {"template": template}}
        await world.client.patch(DAEMON_SETS, "default", "agent", body, content_type=STRATEGIC_MERGE)
        if gate == "true":
            held.release()  # the second sync waits for its caches
        await world.wait(5)
        assert (waited, created) == (True, 3)


async def test_the_status_counts_what_changed_while_a_pod_was_deleted(world: World, story: Story):
    """The pods were read before, and are read again: another client deletes one meanwhile."""
    first, second, _ = await story.nodes()
    written: list[dict[str, Any]] = []

    async def before(sent: Request) -> None:
        if sent.method == "DELETE" and not gone:
            (other,) = [pod for pod in await world.items(PODS) if pod["spec"]["nodeName"] == second]
            gone.append(other["metadata"]["name"])
            await world.client.delete(PODS, "default", gone[0], grace_s=0)
            await world.wait(1)
        elif gone and sent.method == "PUT" and sent.path.endswith("/daemonsets/agent/status"):
            written.append(json.loads(sent.body)["status"])

    gone: list[str] = []
    async with story.running(transport=Refusing(world.server.transport(), lambda sent: False, before)):
        await story.make()
        await world.wait(30)
        await story.taint(first, effect="NoExecute")
        await world.wait(30)
    assert (written[0]["desiredNumberScheduled"], written[0]["currentNumberScheduled"]) == (2, 1)
    assert written[-1]["currentNumberScheduled"] == 2
