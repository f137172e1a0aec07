"""Predictions for new pods from a cluster's existing ones."""

import math
from typing import Any

import pytest
from msgspec.structs import replace

from kcm_cli.api.apps import DEPLOYMENTS
from kcm_cli.machinery import codec
from kcm_cli.machinery.times import format_time, parse_time
from kcm_cli.plan import Options, Scale, SetImage, Snapshot, Target, plan
from kcm_cli.plan.snapshot import Item
from kcm_cli.plan.twin.pods import PATIENCE_S, PULL_S, RUN_S, Learned, is_image
from kcm_cli.sandbox.nodes.images import Images
from kcm_cli.sandbox.views import NODES, PODS, SimulatedPod
from tests.kit.simulation import World
from tests.kit.workload import deployment
from tests.plans.probed import bare
from tests.unit.plan.clusters import settled, snapshot_of

NOW = parse_time("2026-01-01T01:00:00Z").timestamp()
OWNER = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-1", "uid": "rs", "controller": True}
Tree = dict[str, Any]


@pytest.mark.parametrize(
    "name",
    ["nginx", "nginx:1.27", "a/b/c:x", "localhost:5000/a", "registry.example.com/team/app:v1.2.3", "[::1]:5000/a:b"]
    + ["x@sha256:" + "a" * 64, "x:1@sha256:" + "0" * 64, "a__b", "a-b--c/d.e"],
)
def test_names_of_images(name: str) -> None:
    assert is_image(name)


@pytest.mark.parametrize(
    "name", ["", "Nginx", "a b", "a:b c", "a//b", "a/", "-a", "a:", "a@sha256:1", "http://a/b", "a" * 5000]
)
def test_images_that_no_kubelet_pulls(name: str) -> None:
    assert not is_image(name)


def pod(name: str, *, image: str = "app:1", owner: Tree | None = None, **more: Any) -> Tree:
    """A pod that was scheduled at 00:00:00, started at 00:00:04 and was ready at 00:00:10."""
    state: Tree = more.pop("state", {"running": {"startedAt": "2026-01-01T00:00:04Z"}})
    ready = more.pop("ready", "True")
    conditions = [
        {"type": "PodScheduled", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"},
        {"type": "Ready", "status": ready, "lastTransitionTime": "2026-01-01T00:00:10Z"},
    ]
    metadata = {"name": name, "namespace": "sim", "uid": name, "generation": 1, "ownerReferences": [owner or OWNER]}
    spec = {"nodeName": "node-1", "restartPolicy": "Always", "containers": [{"name": "c", "image": image}]}
    status = {
        "phase": "Running",
        "startTime": "2026-01-01T00:00:01Z",
        "conditions": conditions,
        "containerStatuses": [{"name": "c", "state": state, "restartCount": more.pop("restarts", 0)}],
    }
    spec |= more.pop("spec", {})
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": status | more}


def learned(*docs: Tree, of: Snapshot | None = None) -> Learned:
    whole = settled() if of is None else of
    items = tuple(Item("sim", doc["metadata"]["name"], doc["metadata"]["uid"], codec.encode(doc)) for doc in docs)
    pods = replace(whole.collections[PODS.gvr], items=items)
    return Learned(replace(whole, collections={**whole.collections, PODS.gvr: pods}), lambda: NOW)


def view(doc: Tree) -> SimulatedPod:
    return PODS.decode(codec.encode(doc))


def test_new_pods_take_as_long_as_others() -> None:
    script = learned(pod("a"), pod("b")).script(view(pod("new")))
    assert script.start_delay_s == 4.0
    assert script.containers[0].ready_s == 6.0


def test_without_a_precedent_there_are_defaults() -> None:
    known = learned(pod("a"))
    script = known.script(view(pod("new", image="other:1", owner={**OWNER, "uid": "x", "name": "x"})))
    assert (script.start_delay_s, script.containers[0].ready_s) == (PULL_S, 0.0)
    assert known.assumed == {"other:1"}
    once = pod("once", owner={**OWNER, "uid": "j", "kind": "Job", "name": "j"}, spec={"restartPolicy": "Never"})
    assert known.script(view(once)).containers[0].run.lasts_s == RUN_S


def test_a_pod_that_pulls_its_image_takes_as_long_as_the_slow_ones() -> None:
    late = {"running": {"startedAt": "2026-01-01T00:00:02Z"}}
    known = learned(pod("a"), pod("b", state=late), pod("c", state=late))
    delays = [
        known.script(view(pod(name, image=image))).start_delay_s for name, image in (("x", "app:1"), ("y", "b:1"))
    ]
    assert delays == [2.0, 4.0]


def test_a_time_above_the_deadline_is_not_that_of_the_start() -> None:
    """Of a pod that got unready and ready again days later, and of one that waited for a volume."""
    flapped = pod("a", spec={"containers": [{"name": "c", "image": "app:1"}]})
    flapped["status"]["conditions"][1]["lastTransitionTime"] = "2026-01-03T00:00:10Z"
    probe = {"initialDelaySeconds": 3}
    new = view(pod("new", spec={"containers": [{"name": "c", "image": "app:1", "readinessProbe": probe}]}))
    assert learned(flapped).script(new).containers[0].ready_s == 3.0
    assert learned(flapped, pod("b")).script(new).containers[0].ready_s == 6.0
    late = pod("c", state={"running": {"startedAt": "2026-01-01T00:40:00Z"}})
    assert learned(late).script(view(pod("new", image="b:1"))).start_delay_s == PULL_S
    assert learned(late, pod("b")).script(view(pod("new", image="b:1"))).start_delay_s == 4.0


@pytest.mark.parametrize(
    ("deadline_s", "taken_s"), [(None, 0.0), (600, 0.0), (900, 700.0), (0, 0.0), (2**31 - 1, 0.0), ("x", 0.0)]
)
def test_the_deadline_is_that_of_the_deployment(deadline_s: object, taken_s: float) -> None:
    slow = pod("a", owner={**OWNER, "kind": "Deployment", "name": "slow"})
    slow["status"]["conditions"][1]["lastTransitionTime"] = "2026-01-01T00:11:44Z"
    doc = deployment("slow", 1)
    doc["spec"]["progressDeadlineSeconds"] = deadline_s
    whole = settled()
    items = (Item("sim", "slow", "slow", codec.encode(doc)),)
    deployments = replace(whole.collections[DEPLOYMENTS.gvr], items=items)
    known = learned(slow, of=replace(whole, collections={**whole.collections, DEPLOYMENTS.gvr: deployments}))
    assert known.script(view(slow | {"metadata": slow["metadata"] | {"uid": "new"}})).containers[0].ready_s == taken_s


def test_new_probes_are_waited_for() -> None:
    known = learned(pod("a"))
    for probes in ({"readinessProbe": {"initialDelaySeconds": 60}}, {"startupProbe": {"initialDelaySeconds": 60}}):
        new = pod("new", spec={"containers": [{"name": "c", "image": "app:1", **probes}]})
        assert known.script(view(new)).containers[0].ready_s == 60.0


def test_one_slow_pod_of_many_does_not_decide_for_each_pull() -> None:
    late = pod("late", state={"running": {"startedAt": "2026-01-01T00:09:00Z"}})
    known = learned(*(pod(f"p{number}") for number in range(9)), late)
    assert known.script(view(pod("new", image="b:1"))).start_delay_s == 4.0


def test_pods_of_one_node_wait_for_the_same_pull() -> None:
    known = learned()
    new = [view(pod(name, image="b:1")) for name in ("x", "y", "x")]
    assert [known.script(one).start_delay_s for one in new] == [PULL_S] * 3


def test_a_roll_out_takes_as_long_as_the_pods_before_it() -> None:
    """Pods of a ReplicaSet that is made in the twin are those of its Deployment."""

    async def story(world: World) -> None:
        notes = {"metadata": {"annotations": {"sandbox.kcm.dev/ready-delay": "40s"}, "labels": {"app": "web"}}}
        doc = deployment("web", 1)
        doc["spec"]["template"] |= {**notes, "spec": doc["spec"]["template"]["spec"]}
        doc["spec"]["strategy"] = {"type": "Recreate"}
        await world.create("apps/v1/deployments", doc)
        await world.clock.sleep(120)

    answer = plan(bare(snapshot_of(story)), [SetImage(Target("deploy", "web", "sim"), "app:2")], Options(horizon_s=90))
    (web,) = [one for one in answer.availability if one.about.kind == "Deployment"]
    assert (web.lowest, 40 <= web.below_s <= 43) == (0, True), web


def test_running_pods_do_not_change_and_new_ones_do() -> None:
    known = learned(pod("a"))
    assert known.rests_s(view(pod("a")), NOW) == math.inf
    assert known.rests_s(view(pod("new")), NOW) == 0.0


@pytest.mark.parametrize(
    "reason", ["ImagePullBackOff", "ErrImagePull", "CrashLoopBackOff", "CreateContainerConfigError"]
)
def test_a_stuck_pod_and_its_siblings_stay_stuck(reason: str) -> None:
    stuck = pod("a", ready="False", state={"waiting": {"reason": reason}})
    known = learned(stuck)
    assert known.rests_s(view(stuck), NOW) == math.inf
    new = pod("new")
    script = known.script(view(new))
    assert math.inf in (script.start_delay_s, script.containers[0].ready_s)
    assert known.hopeless or known.refused


def test_a_crash_loop_of_an_init_container_keeps_siblings_from_starting() -> None:
    waits = {"name": "i", "state": {"waiting": {"reason": "CrashLoopBackOff"}}, "restartCount": 9}
    state = {"waiting": {"reason": "PodInitializing"}}
    known = learned(pod("a", ready="False", state=state, phase="Pending", initContainerStatuses=[waits]))
    assert known.script(view(pod("new"))).containers[0].ready_s == math.inf
    assert list(known.hopeless.values()) == ["CrashLoopBackOff in pod sim/a"]


@pytest.mark.parametrize(("since", "ready_s"), [("2025-12-31T23:00:00Z", math.inf), (None, 0.0)])
def test_pods_that_run_and_do_not_get_ready_are_a_precedent(since: str | None, ready_s: float) -> None:
    """As by a failing readiness probe; one that has begun just now is none."""
    runs = pod("a", ready="False")
    whole = settled()
    since = since or format_time(whole.taken_at)
    runs["status"] |= {
        "startTime": since,
        "conditions": [{**one, "lastTransitionTime": since} for one in runs["status"]["conditions"]],
    }
    known = learned(runs)
    assert known.script(view(pod("new"))).containers[0].ready_s == ready_s
    assert list(known.hopeless.values()) == (["pod sim/a runs and does not get Ready"] if ready_s else [])


@pytest.mark.parametrize(("revision", "ready_s"), [("1", math.inf), ("2", 0.0)])
def test_a_new_template_of_the_same_owner_is_judged_anew(revision: str, ready_s: float) -> None:
    """A DaemonSet and a StatefulSet own pods of several templates: the change may be what mends them."""
    owner = {**OWNER, "kind": "DaemonSet"}
    stuck = pod("a", owner=owner, ready="False", state={"waiting": {"reason": "CrashLoopBackOff"}})
    stuck["metadata"]["labels"] = {"controller-revision-hash": "1"}
    new = pod("new", owner=owner)
    new["metadata"]["labels"] = {"controller-revision-hash": revision}
    known = learned(stuck)
    assert known.script(view(new)).containers[0].ready_s == ready_s
    assert bool(known.hopeless) == (ready_s == math.inf)


def test_a_healthy_sibling_has_priority() -> None:
    known = learned(pod("a"), pod("b", ready="False", state={"waiting": {"reason": "CrashLoopBackOff"}}))
    assert known.script(view(pod("new"))).containers[0].ready_s == 6.0
    assert known.hopeless == {}


def other(name: str, namespace: str, node: str, **more: Any) -> Tree:
    """A pod of another workload, of a namespace and on a node."""
    doc = pod(name, owner={**OWNER, "name": "other-1", "uid": "other"}, **more)
    doc["metadata"]["namespace"], doc["spec"]["nodeName"] = namespace, node
    return doc


UNPULLED: Tree = {"ready": "False", "phase": "Pending", "state": {"waiting": {"reason": "ImagePullBackOff"}}}


@pytest.mark.parametrize(
    ("others", "policy", "starts"),
    [
        pytest.param([other("b", "sim", "node-2")], "IfNotPresent", True, id="it runs in this namespace"),
        pytest.param([other("b", "away", "node-2")], "IfNotPresent", False, id="it runs in another one"),
        pytest.param([other("b", "away", "node-1")], "IfNotPresent", True, id="it is on the node"),
        pytest.param([other("b", "away", "node-1")], "Always", False, id="it is on the node and pulled anyway"),
        pytest.param([other("b", "sim", "node-2", **UNPULLED)], "IfNotPresent", False, id="it fails here, too"),
        pytest.param([other("b", "sim", "gone", **UNPULLED)], "IfNotPresent", False, id="on a node that is gone"),
    ],
)
def test_an_image_that_others_cannot_pull(others: list[Tree], policy: str, starts: bool) -> None:
    """As for want of a namespace's credentials, or by a registry that has had enough of a node."""
    known = learned(other("a", "elsewhere", "node-3", **UNPULLED), *others)
    new = view(pod("new", spec={"containers": [{"name": "c", "image": "app:1", "imagePullPolicy": policy}]}))
    script = known.script(new)
    assert (known.of_containers(new, script, Images()) == [None], not known.refused) == (starts, starts)


def test_a_node_does_not_have_what_a_pod_on_it_cannot_pull() -> None:
    """Whatever it reports: that may be older."""
    reports = {"metadata": {"name": "node-1"}, "status": {"images": [{"names": ["app:1"]}]}}
    new = view(pod("new"))
    for waiting, starts in (((), True), ((pod("a", **UNPULLED),), False)):
        known = learned(*waiting, of=with_node(reports))
        assert (known.of_containers(new, known.script(new), Images()) == [None]) == starts


@pytest.mark.parametrize(
    ("listed", "why"),
    [(1, ["it is not on node-1, and its policy is Never"]), (0, []), (50, [])],
    ids=["another", "not known", "not all"],
)
def test_an_image_that_is_never_pulled(listed: int, why: list[str]) -> None:
    images = [{"names": [f"other:{number}"]} for number in range(listed)]
    known = learned(of=with_node({"metadata": {"name": "node-1"}, "status": {"images": images}}))
    new = view(pod("new", spec={"containers": [{"name": "c", "image": "app:1", "imagePullPolicy": "Never"}]}))
    holds = known.of_containers(new, known.script(new), Images())
    assert list(known.refused.values()) == why
    assert [hold.reason for hold in holds if hold is not None] == ["ErrImageNeverPull"] * len(why)


def with_node(doc: Tree) -> Snapshot:
    """The settled cluster with another node-1."""
    whole = settled()
    item = Item("", "node-1", "n", codec.encode(doc))
    nodes = tuple(item if one.name == "node-1" else one for one in whole.items(NODES.gvr))
    return replace(
        whole, collections={**whole.collections, NODES.gvr: replace(whole.collections[NODES.gvr], items=nodes)}
    )


def test_a_starting_pod_gets_time() -> None:
    waiting = pod("a", ready="False", state={"waiting": {"reason": "ContainerCreating"}}, phase="Pending")
    known = learned(waiting)
    began = parse_time("2026-01-01T00:00:01Z").timestamp()
    assert known.rests_s(view(waiting), began + PATIENCE_S - 1) == 0.0
    assert known.rests_s(view(waiting), began + PATIENCE_S + 1) == math.inf


def test_a_pod_of_a_job_runs_as_long_as_others_did() -> None:
    job = {**OWNER, "uid": "j", "kind": "Job", "name": "j"}
    ended = {"terminated": {"startedAt": "2026-01-01T00:00:04Z", "finishedAt": "2026-01-01T00:01:44Z"}}
    done = pod("done", owner=job, phase="Succeeded", state=ended, ready="False")
    runs = pod("runs", owner=job, spec={"restartPolicy": "Never"})
    known = learned(done, runs)
    began = parse_time("2026-01-01T00:00:04Z").timestamp()
    assert known.rests_s(view(runs), began + 30) == 70.0
    assert known.rests_s(view(runs), began + 200) == 0.0


@pytest.mark.parametrize(
    ("notes", "rests_s"), [({}, math.inf), ({"sandbox.kcm.dev/run-time": "1h"}, 0.0)], ids=["real", "simulated"]
)
def test_a_pod_that_ran_for_longer_than_is_known_of_any_goes_on(notes: Tree, rests_s: float) -> None:
    """Such as one that kubectl run made a day ago, which a drain has to evict: its annotations or nothing say when it
    ends."""
    runs = pod("runs", owner={**OWNER, "kind": "Workflow"}, spec={"restartPolicy": "Never"})
    runs["metadata"]["annotations"] = notes
    began = parse_time("2026-01-01T00:00:04Z").timestamp()
    assert learned(runs).rests_s(view(runs), began + 20) == RUN_S - 20
    assert learned(runs).rests_s(view(runs), began + 86400) == rests_s


def with_failing_web() -> Snapshot:
    """The settled cluster, in which the pods of web wait for an image."""
    whole = settled()
    items = []
    for item in whole.items(PODS.gvr):
        doc: Any = item.doc
        if item.name.startswith("web-"):
            for status in doc["status"]["containerStatuses"]:
                status |= {"state": {"waiting": {"reason": "ImagePullBackOff"}}, "ready": False, "started": False}
            for condition in doc["status"]["conditions"]:
                if condition["type"] in ("Ready", "ContainersReady"):
                    condition["status"] = "False"
            doc["status"]["phase"] = "Pending"
        items.append(replace(item, data=codec.encode(doc)))
    pods = replace(whole.collections[PODS.gvr], items=tuple(items))
    return replace(whole, collections={**whole.collections, PODS.gvr: pods})


def test_an_image_that_cannot_be_pulled_today_cannot_be_pulled_in_the_plan() -> None:
    target = Target("deploy", "web", "sim")
    answer = plan(with_failing_web(), [Scale(target, 7)], Options(horizon_s=120))
    kinds = {(one.kind, str(one.about), one.already) for one in answer.problems}
    assert ("image", "Image v1", False) in kinds
    assert ("stuck", "Deployment sim/web", False) in kinds  # more replicas are missing than without the change
