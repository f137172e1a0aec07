"""What versions of objects and Events become."""

from typing import Any

import msgspec
import pytest

from kcm_cli.machinery import codec
from kcm_cli.trace.behind import Linked
from kcm_cli.trace.history import History
from kcm_cli.trace.join import Target
from kcm_cli.trace.steps import AUDIT, CREATED, EVENT, GUESS, MANAGED, REFUSED, SCALED, Ref, Step
from kcm_cli.trace.text import head, sentence
from kcm_cli.trace.views import CoreV1Event, Seen


def refused(name: str, count: int) -> CoreV1Event:
    involved = {"kind": "ReplicaSet", "namespace": "n", "name": "web", "uid": "r"}
    doc: dict[str, Any] = {"metadata": {"name": name, "namespace": "n"}, "involvedObject": involved}
    doc |= {"reason": "FailedCreate"}
    doc |= {"message": "no", "count": count, "type": "Warning", "reportingComponent": "replicaset-controller"}
    return codec.convert(doc, CoreV1Event)


def test_versions_of_an_event_count_what_it_counts() -> None:
    """A watch shows an Event whenever it is counted further; its counts are not added up."""
    history = History()
    for at in range(1, 14):
        history.event(refused("a", at), float(at))
    history.event(refused("b", 5), 20.0)
    found = Linked(history.steps, history.relations).about(Target("rs", "n", "web"))
    assert head(found)[0].startswith("00:00:20.000 trouble (18 times since 00:00:01.000): ")


def node(labels: dict[str, str] | None, manager: str = "kubelet") -> Seen:
    fields = [{"manager": manager, "operation": "Update", "time": "1970-01-01T00:00:02Z"}]
    return codec.convert({"metadata": {"name": "x", "uid": "x", "labels": labels, "managedFields": fields}}, Seen)


def daemon(*, ends: bool) -> Any:
    owner = {"kind": "DaemonSet", "name": "agent", "uid": "d", "controller": True}
    meta: dict[str, Any] = {"name": "agent-1", "namespace": "n", "uid": "p", "ownerReferences": [owner]}
    meta |= {"deletionTimestamp": "1970-01-01T00:00:03Z"} if ends else {}
    return codec.convert({"metadata": meta, "spec": {"nodeName": "x"}}, Seen)


@pytest.mark.parametrize(
    ("before", "after", "says"),
    [
        ({"pool": "a", "zone": "z"}, {"zone": "z"}, "its labels: -pool"),
        (None, {"pool": "a"}, "its labels: +pool=a"),
        ({"pool": "a"}, {"pool": "b"}, "its labels: +pool=b"),
    ],
)
def test_a_daemon_goes_as_its_node_has_other_labels(
    before: dict[str, str] | None, after: dict[str, str], says: str
) -> None:
    """And not since its DaemonSet was created long before."""
    history = History()
    made = {"metadata": {"name": "agent", "namespace": "n", "uid": "d", "creationTimestamp": "1970-01-01T00:00:00Z"}}
    history.version("DaemonSet", codec.convert(made, Seen), 0.0, listed=True)
    history.version("Node", node(before), 0.5, listed=True)
    history.version("Pod", daemon(ends=False), 1.0, listed=True)
    history.version("Node", node(after, "kubectl-label"), 2.0)
    told = {"kind": "DaemonSet", "namespace": "n", "name": "agent", "uid": "d"}
    event = {"metadata": {"name": "e", "namespace": "n"}, "involvedObject": told, "reason": "SuccessfulDelete"}
    event |= {"message": "Deleted pod: agent-1", "reportingComponent": "daemonset-controller"}
    history.event(codec.convert(event, CoreV1Event), 3.0)
    history.version("Pod", daemon(ends=True), 3.0)
    lines = head(Linked(history.steps, history.relations).about(Target("pod", "n", "agent-1")))
    assert "was deleted by daemonset-controller" in lines[0]
    assert lines[1].startswith(f"  <~ 00:00:02.000 Node x was changed by kubectl-label: {says} (inferred: ")


def replica_set(size: int, second: int, name: str = "web-1") -> Seen:
    fields = [{"manager": "kube-controller-manager", "operation": "Update", "time": f"1970-01-01T00:00:{second:02}Z"}]
    owner = {"kind": "Deployment", "name": "web", "uid": "d", "controller": True}
    meta = {"name": name, "namespace": "n", "uid": "r", "generation": 9 - size, "managedFields": fields}
    return codec.convert({"metadata": {**meta, "ownerReferences": [owner]}, "spec": {"replicas": size}}, Seen)


@pytest.mark.parametrize(("second", "by"), [(22, " by deployment-controller"), (2, "")])
def test_who_wrote_twice_in_a_second_is_known_by_the_first_time(second: int, by: str) -> None:
    """The entry of the second write is that of the first one. An old entry says nothing."""
    history = History()
    for size, at in ((2, 21.9), (1, 22.4), (0, 22.9)):
        history.version("ReplicaSet", replica_set(size, second), at)
    last = Linked(history.steps, history.relations).about(Target("rs", "n", "web-1")).nodes[-1]
    assert sentence(last).startswith(f"ReplicaSet n/web-1 was scaled{by}: from 1 to 0 (")


def test_a_writer_without_an_entry_of_its_own_is_a_guess() -> None:
    history = History()
    for size, second, at in ((2, 21, 21.4), (1, 22, 22.4), (0, 22, 22.9)):
        history.version("ReplicaSet", replica_set(size, second), at)
    assert [one.source for one in history.steps if one.verb == SCALED] == [MANAGED, GUESS]


def budget(*conditions: tuple[str, str]) -> Seen:
    meta = {"name": "web", "namespace": "n", "uid": "b"}
    told = [{"type": kind, "status": status, "reason": "R"} for kind, status in conditions]
    return codec.convert({"metadata": meta, "status": {"conditions": told}}, Seen)


@pytest.mark.parametrize(
    ("kind", "standing", "now", "is_over"),
    [
        ("PodDisruptionBudget", [("DisruptionAllowed", "False")], [("DisruptionAllowed", "True")], True),
        ("HorizontalPodAutoscaler", [("ScalingActive", "False")], [("ScalingActive", "True")], True),
        ("Deployment", [("ReplicaFailure", "True")], [], True),
        ("Deployment", [("ReplicaFailure", "True"), ("Progressing", "False")], [("Progressing", "False")], False),
        ("Deployment", [("Progressing", "False")], [("Progressing", "False"), ("Available", "True")], False),
        ("Deployment", [("Progressing", "False")], [("Progressing", "True")], True),
    ],
)
def test_what_is_over_is_no_trouble(
    kind: str, standing: list[tuple[str, str]], now: list[tuple[str, str]], is_over: bool
) -> None:
    history = History()
    for at, conditions in enumerate((standing, now)):
        history.version(kind, budget(*conditions), float(at))
    (line, *_) = head(Linked(history.steps, history.relations).about(Target(kind, "n", "web")))
    assert ("trouble" not in line) is is_over, line


@pytest.mark.parametrize(
    ("actor", "pod", "is_over"),
    [
        ("replicaset-controller", "n/other-1", False),
        ("alice", "n/web-1", False),
        ("replicaset-controller", "n/web-1", True),
    ],
)
def test_a_refusal_is_over_when_the_same_was_made(actor: str, pod: str, is_over: bool) -> None:
    history = History()
    history.version("ReplicaSet", replica_set(2, 1, "web"), 0.5, listed=True)
    history.event(refused("a", 3), 1.0)
    history.add(Step(2.0, CREATED, Ref("Pod", pod), actor, EVENT))
    line = head(Linked(history.steps, history.relations).about(Target("rs", "n", "web")))[0]
    assert ("trouble" not in line) is is_over, line


WEB = Ref("ReplicaSet", "n/web")
RS = "replicaset-controller"


def no(about: Ref, actor: str, detail: str, behind: Ref | None = None, *, makes: bool = True) -> Step:
    return Step(1.0, REFUSED, about, actor, AUDIT, detail, trouble=True, behind=behind, makes=makes)


def made(kind: str, key: str, actor: str, behind: Ref | None = None) -> Step:
    return Step(2.0, CREATED, Ref(kind, key), actor, AUDIT, behind=behind)


@pytest.mark.parametrize(
    ("refusal", "creation", "is_over"),
    [
        pytest.param(
            no(Ref("Deployment", "n/web"), "alice", "patch", makes=False),
            made("ReplicaSet", "n/web-canary", "alice"),
            False,
            id="of a user, who makes another object",
        ),
        pytest.param(
            no(Ref("Pod", "n/web-1"), RS, "delete Pod: no", WEB, makes=False),
            made("Pod", "n/web-2", RS),
            False,
            id="of a deletion",
        ),
        pytest.param(no(Ref("Pod", "n/"), RS, "create Pod: no", WEB), made("Pod", "n/web-2", RS), True, id="by name"),
        pytest.param(
            no(Ref("Pod", "n/"), RS, "create Pod: no", WEB),
            made("Pod", "n/web-canary-2", RS),
            False,
            id="a longer name",
        ),
        pytest.param(
            no(Ref("Job", "n/web"), "job-controller", "FailedCreate: no"),
            made("Pod", "n/web-0-abcde", "job-controller"),
            True,
            id="the pod of an indexed Job",
        ),
        pytest.param(
            no(Ref("ReplicationController", "n/web"), "replication-controller", "FailedCreate: no"),
            made("Pod", "n/web-abcde", "replicationcontroller-controller"),
            True,
            id="under the other name of a controller",
        ),
    ],
)
def test_a_refusal_is_over_when_its_controller_makes_another_for_the_owner(
    refusal: Step, creation: Step, is_over: bool
) -> None:
    target = refusal.behind or refusal.about
    history = History()
    history.add(Step(0.5, CREATED, target, "bob", AUDIT))
    history.add(refusal)
    history.add(creation)
    found = Linked(history.steps, history.relations).about(Target(target.kind, "n", "web"))
    text = head(found)[0]
    assert {one.what for one in found.nodes} >= {refusal}
    assert ("trouble" not in text) is is_over, text


@pytest.mark.parametrize(("reason", "makes"), [("FailedCreate", True), ("FailedDelete", False)])
def test_an_event_says_whether_a_creation_was_refused(reason: str, makes: bool) -> None:
    history = History()
    history.event(msgspec.structs.replace(refused("a", 1), reason=reason), 1.0)
    assert [one.makes for one in history.steps] == [makes]


def test_the_owner_of_another_api_is_not_the_controllers() -> None:
    """Volcano has Jobs, too."""
    history = History()
    for name, version in (("ours", "batch/v1"), ("theirs", "batch.volcano.sh/v1alpha1")):
        owner = {"apiVersion": version, "kind": "Job", "name": "train", "uid": name, "controller": True}
        meta = {"name": name, "namespace": "n", "uid": name, "ownerReferences": [owner]}
        history.version("Pod", codec.convert({"metadata": meta}, Seen), 1.0)
    assert [step.actor for step in history.steps] == ["job-controller", ""]
    told = {"kind": "Job", "apiVersion": "batch.volcano.sh/v1alpha1", "namespace": "n", "name": "train"}
    history.event(codec.convert({"involvedObject": told, "reason": "Aborted"}, CoreV1Event), 2.0)
    linked = Linked(history.steps, history.relations)
    (line,) = head(linked.about(Target("job", "n", "train")))
    assert line.startswith("Nothing is recorded about Job n/train")
    for word in ("jobs.batch.volcano.sh", "Job.batch.volcano.sh"):
        assert [one.what for one in linked.about(Target(word, "n", "train")).nodes] == list(history.steps)[1:]


def stateful(uid: str, second: int, **more: Any) -> Seen:
    meta = {"name": "db-0", "namespace": "n", "uid": uid, "creationTimestamp": f"1970-01-01T00:00:{second:02}Z"}
    return codec.convert({"metadata": meta | more}, Seen)


@pytest.mark.parametrize(
    ("uid", "owner", "before"),
    [
        ("p1", "StatefulSet", "  <~ before 00:00:30.000 Pod n/db-0 was deleted: another one of its name is there"),
        ("3f8a5c0b9d", "Node", ""),
    ],
    ids=["the pod before", "a static pod's own uid"],
)
def test_an_object_that_is_there_is_not_deleted(uid: str, owner: str, before: str) -> None:
    """Events of an hour ago are about the pod that had its name, and those of a static pod about its configuration."""
    history = History()
    ref = {"apiVersion": "apps/v1", "kind": owner, "name": "db", "uid": "s", "controller": True}
    history.version("Pod", stateful("p2", 30, ownerReferences=[ref]), 90.0, listed=True)
    involved = {"kind": "Pod", "namespace": "n", "name": "db-0", "uid": uid}
    event: dict[str, Any] = {"metadata": {"name": "e", "namespace": "n"}, "involvedObject": involved}
    event |= {"reason": "Killing", "message": "Stopping container c", "lastTimestamp": "1970-01-01T00:00:20Z"}
    history.event(codec.convert(event, CoreV1Event), 90.0)
    history.absent({"Pod"}, 90.0)
    line, *back = head(Linked(history.steps, history.relations).about(Target("pod", "n", "db-0")))
    assert "was deleted" not in line, line
    assert before in "".join(back) and bool(before) is any("was deleted" in one for one in back), back


def test_a_pod_that_was_made_again_in_the_second_of_its_end_is_not_deleted() -> None:
    """Its creation has the full second, which was before the end of the one before it."""
    history = History()
    history.version("Pod", stateful("p1", 1), 2.0, listed=True)
    history.gone("Pod", stateful("p1", 1), 30.4)
    history.version("Pod", stateful("p2", 30), 30.5)
    line = head(Linked(history.steps, history.relations).about(Target("pod", "n", "db-0")))[0]
    assert "was deleted" not in line, line
    history.gone("Pod", stateful("p2", 30), 30.9)
    line = head(Linked(history.steps, history.relations).about(Target("pod", "n", "db-0")))[0]
    assert line.startswith("00:00:30.900 Pod n/db-0 was deleted"), line


@pytest.mark.parametrize(
    ("version", "kind"), [("apps/v1", "StatefulSet"), ("apps.kruise.io/v1beta1", "StatefulSet.apps.kruise.io")]
)
def test_what_an_autoscaler_scales_may_be_another_apis_kind(version: str, kind: str) -> None:
    history = History()
    scaler = {"metadata": {"name": "h", "namespace": "n", "uid": "h"}}
    scaler["spec"] = {"scaleTargetRef": {"apiVersion": version, "kind": "StatefulSet", "name": "db"}}
    history.version("HorizontalPodAutoscaler", codec.convert(scaler, Seen), 1.0, listed=True)
    involved = {"kind": "HorizontalPodAutoscaler", "namespace": "n", "name": "h", "uid": "h"}
    event: dict[str, Any] = {"metadata": {"name": "e", "namespace": "n"}, "involvedObject": involved}
    event |= {"reason": "SuccessfulRescale", "message": "New size: 3; reason: cpu above target"}
    history.event(codec.convert(event, CoreV1Event), 2.0)
    assert [one.about.kind for one in history.steps if one.verb == SCALED] == [kind]
