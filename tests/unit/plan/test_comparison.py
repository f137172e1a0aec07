"""A plan beside what became of the cluster."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from kcm_cli.api.resource import GVR
from kcm_cli.machinery import codec
from kcm_cli.machinery.times import format_time, parse_time
from kcm_cli.plan import Answer, PlanError, Snapshot
from kcm_cli.plan.answer import Availability, Difference, Field, Object, Source, Totals
from kcm_cli.plan.compare import is_same_value, short
from kcm_cli.plan.comparison import MOST_BYTES, Comparison, compare, needed, read_plan
from kcm_cli.plan.snapshot import Collection, Gap, Item
from kcm_cli.plan.steps import DIFFERENTLY, HAPPENED, NOT_YET, UNKNOWN, _at
from tests.kit.simulation import NAMESPACE
from tests.unit.plan.clusters import lived, planned

PLANNED_AT, LATER = "2026-01-01T10:00:00Z", "2026-01-01T10:05:00Z"
WEB = Object("Deployment", "n", "web")
GVRS = {"Deployment": "apps/v1/deployments", "ReplicaSet": "apps/v1/replicasets", "Pod": "v1/pods", "Node": "v1/nodes"}
GVRS |= {"VolumeAttachment": "storage.k8s.io/v1/volumeattachments"}
GVRS |= {"StatefulSet": "apps/v1/statefulsets"}
GVRS |= {"CronJob": "batch/v1/cronjobs", "IPAddress": "networking.k8s.io/v1/ipaddresses"}
GVRS |= {"ConfigMap": "v1/configmaps", "PersistentVolume": "v1/persistentvolumes"}
GVRS |= {"Namespace": "v1/namespaces", "EndpointSlice": "discovery.k8s.io/v1/endpointslices", "Job": "batch/v1/jobs"}


def answer(*differences: Difference, **more: Any) -> Answer:
    source = Source(PLANNED_AT, "v1.36.0", "100", 1, 1, 1, (), (), "cluster-1")
    empty: dict[str, Any] = dict.fromkeys(("problems", "assumed", "risks", "timeline", "nodes", "writes", "audit"), ())
    given = {"changes": ("scale deploy/web to 5",), "varies": (), "not_modelled": (), "begins_at": PLANNED_AT, **more}
    made = {"source": source, "horizon_s": 600.0, "seeds": 1, "routine": 0, "totals": Totals(0, 0, 0, 0)}
    return Answer(api_version="plan.kcm.dev/v1", kind="Plan", differences=differences, **empty | made | given)


def obj(kind: str, name: str, *, made: str = "2026-01-01T09:00:00Z", owner: str = "", **more: Any) -> dict[str, Any]:
    """An object in the namespace n. changed, by: of its newest field manager."""
    metadata: dict[str, Any] = {"name": name, "namespace": "n", "creationTimestamp": made, "uid": f"{kind}-{name}"}
    if owner:
        of, _, named = owner.partition("/")
        metadata["ownerReferences"] = [{"kind": of, "name": named, "uid": owner, "controller": True}]
    if "changed" in more:
        metadata["managedFields"] = [{"manager": more.pop("by", "kubectl"), "time": more.pop("changed")}]
    if "deleting" in more:
        metadata["deletionTimestamp"] = more.pop("deleting")
    return {"kind": kind, "metadata": metadata, **more}


def with_version(doc: dict[str, Any], version: str) -> dict[str, Any]:
    return {**doc, "metadata": {**doc["metadata"], "resourceVersion": version}}


def cluster(*docs: dict[str, Any], at: str = LATER, version: str = "200", uid: str = "cluster-1") -> Snapshot:
    """A snapshot with these objects; Deployments, ReplicaSets and Pods were read, if there are none, too."""
    system = {"kind": "Namespace", "metadata": {"name": "kube-system", "uid": uid}}
    found: dict[str, list[Item]] = {kind: [] for kind in ("Deployment", "ReplicaSet", "Pod", "Node")}
    for doc in (*docs, system):
        meta = doc["metadata"]
        item = Item(meta.get("namespace", ""), meta["name"], meta.get("uid", ""), codec.encode(doc))
        found.setdefault(doc["kind"], []).append(item)
    collections = {}
    for kind, items in found.items():
        *group, of, plural = GVRS[kind].split("/")
        gvr = GVR("".join(group), of, plural)
        collections[gvr] = Collection(gvr, kind, kind not in ("Node", "Namespace"), tuple(items))
    return Snapshot(parse_time(at), "v1.36.0", version, collections)


def changed(*fields: tuple[str, object, object], about: Object = WEB, owner: str = "") -> Difference:
    return Difference("changed", about, owner, 1, tuple(Field(*field) for field in fields))


SCALED = changed(("spec.replicas", 3, 5))
PODS = Difference("created", Object("Pod", "n", ""), "ReplicaSet/web-1", 2, ())
NEW = {"made": "2026-01-01T10:01:00Z"}


def pod(name: str, **more: Any) -> dict[str, Any]:
    ready = {"conditions": [{"type": "Ready", "status": "True"}]}
    return obj("Pod", name, **{"owner": "ReplicaSet/web-1", "status": ready, **more})


@pytest.mark.parametrize(
    ("planned", "docs", "state", "detail"),
    [
        (SCALED, [obj("Deployment", "web", spec={"replicas": 5})], HAPPENED, ""),
        (SCALED, [obj("Deployment", "web", spec={"replicas": 3})], NOT_YET, "spec.replicas"),
        (SCALED, [obj("Deployment", "web", spec={"replicas": 4})], DIFFERENTLY, "spec.replicas"),
        (SCALED, [obj("Deployment", "web", spec={"replicas": 9})], DIFFERENTLY, "spec.replicas"),
        (SCALED, [obj("Deployment", "web")], DIFFERENTLY, "spec.replicas"),
        (SCALED, [], DIFFERENTLY, "it is not there"),
        (
            changed(("spec.replicas", 0, 3), about=Object("ReplicaSet", "n", "web-1"), owner="Deployment/web"),
            [obj("ReplicaSet", "web-1", spec={"replicas": 2})],
            NOT_YET,  # on its way
            "spec.replicas",
        ),
        (
            changed(("status.readyReplicas", 3, 5), ("spec.replicas", 3, 5)),
            [obj("Deployment", "web", spec={"replicas": 5}, status={"readyReplicas": 1})],
            NOT_YET,
            "status.readyReplicas",
        ),
        (
            changed(("status.conditions[Progressing].message", "a", "b"), ("spec.replicas", 3, 5)),
            [
                obj(
                    "Deployment",
                    "web",
                    spec={"replicas": 5},
                    status={"conditions": [{"type": "Progressing", "message": "c"}]},
                )
            ],
            HAPPENED,  # no plan knows the words
            "",
        ),
        (
            changed(("metadata.annotations.deployment.kubernetes.io/revision", "1", "2")),
            [
                {
                    **obj("Deployment", "web"),
                    "metadata": {
                        "name": "web",
                        "namespace": "n",
                        "annotations": {"deployment.kubernetes.io/revision": "2"},
                    },
                }
            ],
            HAPPENED,
            "",
        ),
        (PODS, [pod("a", **NEW), pod("b", **NEW)], HAPPENED, ""),
        (PODS, [pod("a", **NEW)], NOT_YET, "1 of 2 are there"),
        (PODS, [pod("a", **NEW), pod("b")], NOT_YET, "1 of 2 are there"),
        (PODS, [pod("a", **NEW), pod("b", **NEW), pod("c", **NEW)], DIFFERENTLY, "3 of 2 are there"),
        (replace(PODS, about=Object("Pod", "n", "a"), count=1), [pod("z", **NEW)], HAPPENED, ""),
        (Difference("deleted", Object("Pod", "n", "a"), "", 1, ()), [], HAPPENED, ""),
        (Difference("deleted", Object("Pod", "n", "a"), "", 1, ()), [pod("a")], NOT_YET, "it is still there"),
        (
            Difference("deleted", Object("Pod", "n", "a"), "", 1, ()),
            [pod("a", deleting=LATER)],
            NOT_YET,
            "it is being deleted",
        ),
        (
            Difference("deleted", Object("Pod", "n", "a"), "", 1, ()),
            [pod("a", **NEW)],
            DIFFERENTLY,
            "another one of this name was created at 2026-01-01T10:01:00Z",
        ),
        (Difference("replaced", Object("Pod", "n", "a"), "", 1, ()), [pod("a", **NEW)], HAPPENED, ""),
        (
            Difference("replaced", Object("Pod", "n", "a"), "", 1, ()),
            [pod("a")],
            NOT_YET,
            "it is still the one that was there",
        ),
        (Difference("replaced", Object("Pod", "n", "a"), "", 1, ()), [], NOT_YET, "it is not there"),
        (
            Difference("replaced", Object("Pod", "n", "a"), "", 1, (Field("spec.nodeName", "x", "y"),)),
            [pod("a", **NEW, spec={"nodeName": "z"})],
            HAPPENED,  # the scheduler chose another node
            "",
        ),
        (Difference("created", Object("ReplicaSet", "n", "r"), "", 1, ()), [], NOT_YET, "it is not there"),
        (Difference("created", Object("ReplicaSet", "n", "r"), "", 1, ()), [obj("ReplicaSet", "r")], HAPPENED, ""),
        (Difference("kept", Object("ReplicaSet", "n", "r"), "", 1, ()), [obj("ReplicaSet", "r")], HAPPENED, ""),
        (Difference("kept", Object("ReplicaSet", "n", "r"), "", 1, ()), [], DIFFERENTLY, "it was deleted"),
        (Difference("missing", Object("ReplicaSet", "n", "r"), "", 1, ()), [], HAPPENED, ""),
        (
            Difference("missing", Object("ReplicaSet", "n", "r"), "", 1, ()),
            [obj("ReplicaSet", "r")],
            DIFFERENTLY,
            "it is there",
        ),
        (Difference("missing", Object("Pod", "n", ""), "", 2, ()), [], UNKNOWN, "the names are generated"),
        (
            Difference("changed", Object("Secret", "n", "s"), "", 1, ()),
            [],
            UNKNOWN,
            "objects of this kind were not read",
        ),
        (
            changed(("endpoints", [{"a": 1}], "[…"), about=Object("EndpointSlice", "n", "s")),
            [obj("EndpointSlice", "s", endpoints=[{"addresses": ["9.9.9.9"]}])],
            HAPPENED,  # addresses are others in each run
            "",
        ),
        (
            changed(("metadata.annotations", None, {"a": "b"}), about=Object("EndpointSlice", "n", "s")),
            [obj("EndpointSlice", "s")],
            HAPPENED,  # the time of a trigger
            "",
        ),
    ],
)
def test_a_planned_difference(planned: Difference, docs: list[dict[str, Any]], state: str, detail: str) -> None:
    (step,) = compare(answer(planned), cluster(*docs)).steps
    assert (step.state, step.detail) == (state, detail)


def test_after_its_time_what_is_on_its_way_is_another_way() -> None:
    planned = changed(("status.readyReplicas", 3, 5), ("spec.replicas", 3, 5))
    doc = obj("Deployment", "web", changed="2026-01-01T10:01:00Z", spec={"replicas": 5}, status={"readyReplicas": 4})
    soon, late = (compare(answer(planned), cluster(doc, at=at)) for at in (LATER, "2026-01-01T12:00:00Z"))
    assert (soon.steps[0].state, soon.late, soon.as_planned, soon.complete) == (NOT_YET, False, True, False)
    assert (late.steps[0].state, late.late, late.as_planned) == (DIFFERENTLY, True, False)
    assert (soon.begun_at, soon.elapsed_s) == ("2026-01-01T10:01:00Z", 240.0)


def test_nothing_has_begun() -> None:
    found = compare(answer(SCALED), cluster(obj("Deployment", "web", spec={"replicas": 3}), at="2026-01-09T00:00:00Z"))
    assert (found.begun_at, found.late, found.as_planned, found.complete) == ("", False, True, False)


@pytest.mark.parametrize(
    ("doc", "expected"),
    [
        (obj("Deployment", "api", changed="2026-01-01T10:01:00Z", by="helm"), ("changed", "api", "helm", 1)),
        (obj("Deployment", "api", changed="2026-01-01T09:59:59Z"), None),
        (with_version(obj("Deployment", "api", made=PLANNED_AT), "100"), None),  # of the same second
        (with_version(obj("Deployment", "api", made=PLANNED_AT), "101"), ("created", "api", "", 1)),
        (obj("Deployment", "api", **NEW), ("created", "api", "", 1)),
        (obj("Deployment", "api", deleting="2026-01-01T10:01:00Z"), ("deleting", "api", "", 1)),
        (obj("EndpointSlice", "api", **NEW), None),
        (
            {
                **obj("Deployment", "api", **NEW),
                "metadata": {"name": "api", "namespace": "z", "creationTimestamp": LATER},
            },
            None,
        ),
        ({"kind": "Node", "metadata": {"name": "api", "creationTimestamp": LATER}}, ("created", "api", "", 1)),
        (pod("api", **NEW), ("created", "api", "", 1)),
    ],
)
def test_what_nobody_planned(doc: dict[str, Any], expected: tuple[str, str, str, int] | None) -> None:
    found = compare(answer(SCALED), cluster(doc, obj("Deployment", "web", spec={"replicas": 5})))
    assert [(one.what, one.about.name, one.by, one.count) for one in found.unexpected] == (
        [expected] if expected else []
    )
    assert found.as_planned is (expected is None)


def volume(name: str, namespace: str) -> dict[str, Any]:
    claim = {"claimRef": {"namespace": namespace, "name": "c"}} if namespace else {}
    return {"kind": "PersistentVolume", "metadata": {"name": name, "creationTimestamp": LATER}, "spec": claim}


@pytest.mark.parametrize(
    ("doc", "is_news"),
    [
        (volume("v", "n"), True),
        (volume("v", "z"), False),
        (volume("v", ""), True),
        ({**volume("v", ""), "spec": {"claimRef": "odd"}}, True),
        (obj("ConfigMap", "kube-root-ca.crt", **NEW), False),
        (obj("ConfigMap", "other", **NEW), True),
    ],
    ids=["of a claim", "of a claim elsewhere", "free", "odd", "the root CA of a namespace", "another ConfigMap"],
)
def test_what_belongs_elsewhere_and_what_each_namespace_has_is_no_news(doc: dict[str, Any], is_news: bool) -> None:
    found = compare(answer(SCALED), cluster(doc, obj("Deployment", "web", spec={"replicas": 5})))
    assert bool(found.unexpected) is is_news


def within(snapshot: Snapshot, namespace: str, *unread: str) -> Snapshot:
    """As it is read by who may list in one namespace only, and there not everything."""
    kept = {gvr: one for gvr, one in snapshot.collections.items() if one.kind not in ("Namespace", *unread)}
    gaps = (Gap("namespaces", "forbidden"), Gap("deployments.apps", "forbidden", partial=True, namespace=namespace))
    return replace(snapshot, collections=kept, gaps=gaps)


def test_what_could_not_be_read_is_unknown() -> None:
    here, there = (Difference("deleted", Object("Pod", space, "a"), "", 1, ()) for space in ("n", "z"))
    space, other = (Difference("changed", Object("Namespace", "", name), "", 1, ()) for name in ("n", "z"))
    ready = (Availability(Object("Deployment", "z", "web"), 3, 3, 2, 0.0, ((0.0, 3), (60.0, 2))),)
    saved = answer(here, there, space, other, changed(about=Object("Deployment", "z", "web")), availability=ready)
    found = compare(saved, within(cluster(obj("Deployment", "web", **NEW)), "n"))
    assert [one.state for one in found.steps] == [HAPPENED, *[UNKNOWN] * 4]
    assert found.availability == () and any("deployments.apps: forbidden" in note for note in found.notes)
    volumes = [Object(kind, "", "z") for kind in ("PersistentVolume", "VolumeAttachment")]
    read = within(cluster(*({"kind": one.kind, "metadata": {"name": "a"}} for one in volumes)), "n")
    gone = compare(answer(*(Difference("deleted", one, "", 1, ()) for one in volumes)), read)
    assert ([one.state for one in gone.steps], gone.begun_at) == ([UNKNOWN] * 2, "")
    alone = compare(answer(there), within(cluster(), "n"))
    assert (alone.begun_at, alone.as_planned) == ("", True)


@pytest.mark.parametrize("unread", ["Pod", "ReplicaSet"])
def test_without_the_pods_nobody_knows_how_many_are_ready(unread: str) -> None:
    saved = answer(SCALED, availability=(Availability(WEB, 3, 3, 2, 440.0, ((0.0, 3), (60.0, 2))),))
    web = obj("Deployment", "web", changed="2026-01-01T10:01:00Z", spec={"replicas": 5})
    found = compare(saved, within(cluster(web), "n", unread))
    assert found.availability == () and found.as_planned


def test_kinds_of_two_apis_with_one_name_are_two() -> None:
    before = cluster()
    collections = dict(before.collections)
    for group, size in (("", 1), ("serving.knative.dev", 2)):
        gvr = GVR(group, "v1", "services")
        doc = {**obj("Service", "web"), "apiVersion": gvr.group_version, "spec": {"size": size}}
        collections[gvr] = Collection(gvr, "Service", True, (Item("n", "web", "u", codec.encode(doc)),))
    about = Object("Service", "n", "web"), Object("Service.serving.knative.dev", "n", "web")
    saved = answer(*(changed(("spec.size", 0, size), about=one) for size, one in enumerate(about, 1)))
    found = compare(saved, replace(before, collections=collections))
    assert [one.state for one in found.steps] == [HAPPENED, HAPPENED]


def test_pods_of_one_owner_are_one_line() -> None:
    found = compare(
        answer(SCALED), cluster(*[pod(name, **NEW) for name in "abc"], obj("Deployment", "web", spec={"replicas": 5}))
    )
    assert [(one.about.name, one.owner, one.count) for one in found.unexpected] == [("a", "ReplicaSet/web-1", 3)]


def test_what_a_cron_job_does_meanwhile_is_no_news() -> None:
    web = obj("Deployment", "web", spec={"replicas": 5})
    made = {"made": "2026-01-01T10:01:00Z"}
    job, done = obj("Job", "tick-2", owner="CronJob/tick", **made), obj("Job", "tick-1", owner="CronJob/tick")
    done["metadata"]["deletionTimestamp"] = made["made"]
    ran = obj("Pod", "tick-2-a", owner="Job/tick-2", **made)
    found = compare(answer(SCALED), cluster(web, obj("CronJob", "tick"), done, job, ran))
    assert found.unexpected == () and found.as_planned
    new = compare(answer(SCALED), cluster(web, obj("CronJob", "tick", **made), job, ran))
    assert [one.about.kind for one in new.unexpected] == ["CronJob", "Job", "Pod"]
    alone = compare(answer(SCALED), cluster(web, job, ran))
    assert [one.about.kind for one in alone.unexpected] == ["Job", "Pod"]


def test_a_job_whose_time_has_not_come_is_not_there_yet() -> None:
    job = Difference("changed", Object("Job", "n", "tick-9"), "CronJob/tick", 1, (Field("status.ready", 1, 0),))
    web = obj("Deployment", "web", spec={"replicas": 5}, changed="2026-01-01T10:01:00Z")
    docs, times = (web, obj("Job", "tick-8")), (LATER, "2026-01-01T12:00:00Z")
    soon, late = (compare(answer(SCALED, job), cluster(*docs, at=at)) for at in times)
    assert [(one.steps[1].state, one.as_planned) for one in (soon, late)] == [(NOT_YET, True), (DIFFERENTLY, False)]


@pytest.mark.parametrize(
    ("by", "owner", "count"), [("kcm", "Deployment/web", 0), ("helm", "Deployment/web", 1), ("kcm", "", 1)]
)
def test_what_controllers_change_in_what_others_own_is_no_news(by: str, owner: str, count: int) -> None:
    """Such as a ReplicaSet that was scaled up and down again, as its Deployment was."""
    web = obj("Deployment", "web", spec={"replicas": 5})
    found = compare(answer(SCALED), cluster(web, obj("ReplicaSet", "web-1", owner=owner, changed=LATER, by=by)))
    assert len(found.unexpected) == count


def test_a_service_has_another_address_than_in_the_plan() -> None:
    address = Difference("created", Object("IPAddress", "", "10.0.0.7"), "", 1, ())
    web, made = obj("Deployment", "web", spec={"replicas": 5}), {"creationTimestamp": LATER}
    other, planned = ({"kind": "IPAddress", "metadata": {"name": name, **made}} for name in ("10.0.0.9", "10.0.0.7"))
    found = compare(answer(SCALED, address), cluster(web, other, at="2026-01-01T12:00:00Z"))
    assert [one.about for one in found.steps] == [WEB] and found.as_planned and found.complete
    same = compare(answer(SCALED, address), cluster(web, planned))
    assert [one.state for one in same.steps] == [HAPPENED, HAPPENED]


def test_volumes_of_new_claims_have_other_names_than_in_the_plan() -> None:
    attached = Difference("created", Object("VolumeAttachment", "", "csi-1"), "", 1, ())
    path = "status.volumesAttached[kubernetes.io/csi/csi.example.com^pvc-1]"
    node = Difference("changed", Object("Node", "", "a"), "", 1, (Field(path, None, {"name": "pvc-1"}),))
    web, there = obj("Deployment", "web", spec={"replicas": 5}), {"kind": "Node", "metadata": {"name": "a"}}
    found = compare(answer(SCALED, attached, node), cluster(web, there, at="2026-01-01T12:00:00Z"))
    assert [(one.about.kind, one.state) for one in found.steps] == [("Deployment", HAPPENED), ("Node", HAPPENED)]


def test_odd_metadata_harms_nobody() -> None:
    odd = {
        "kind": "Pod",
        "metadata": {"name": "odd", "namespace": "n", "creationTimestamp": "soon", "managedFields": [{}]},
    }
    worse = {"kind": "Pod", "metadata": {"name": "worse", "namespace": "n", "ownerReferences": {"a": 1}}}
    found = compare(answer(SCALED), cluster(odd, worse, obj("Deployment", "web", spec={"replicas": 5})))
    assert (found.steps[0].state, found.unexpected) == (HAPPENED, ())


@pytest.mark.parametrize(
    ("ready", "at", "state", "planned"),
    [(3, LATER, HAPPENED, 2), (1, LATER, DIFFERENTLY, 2), (2, "2026-01-01T12:00:00Z", DIFFERENTLY, 3)],
)
def test_availability(ready: int, at: str, state: str, planned: int) -> None:
    steps = ((0.0, 3), (60.0, 2), (500.0, 3))
    saved = answer(SCALED, availability=(Availability(WEB, 3, 3, 2, 440.0, steps),))
    docs = [pod(f"p{number}") for number in range(ready)]
    docs += [obj("ReplicaSet", "web-1", owner="Deployment/web"), pod("not-ready", status={})]
    docs += [obj("Deployment", "web", changed="2026-01-01T10:01:00Z", spec={"replicas": 5})]
    found = compare(saved, cluster(*docs, at=at))
    (one,) = found.availability
    assert (one.state, one.planned, one.lowest, one.final, one.found) == (state, planned, 2, 3, ready)
    assert found.as_planned is (state == HAPPENED)


def test_pods_are_those_of_their_workload_also_if_an_operator_made_that() -> None:
    db = Object("StatefulSet", "n", "db")
    scaled = Difference("changed", db, "Database/db", 1, (Field("spec.replicas", 1, 2),))
    saved = answer(scaled, availability=(Availability(db, 1, 1, 1, 0.0, ((0.0, 1), (60.0, 2))),))
    made = obj("StatefulSet", "db", owner="Database/db", changed="2026-01-01T10:01:00Z", spec={"replicas": 2})
    found = compare(saved, cluster(pod("db-0", owner="StatefulSet/db"), pod("db-1", owner="StatefulSet/db"), made))
    assert [one.found for one in found.availability] == [2]


def test_another_cluster_is_refused() -> None:
    with pytest.raises(PlanError, match="of another cluster"):
        compare(answer(SCALED), cluster(uid="cluster-2"))
    with pytest.raises(PlanError, match="later state"):
        compare(answer(SCALED), cluster(version="99"))
    unknown = compare(answer(SCALED), cluster(uid=""))
    assert any("is not known" in note for note in unknown.notes)


WHOLE = msgspec.json.encode(answer(SCALED))


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"", "is not a plan in JSON, or was cut short"),
        (WHOLE[:-9], "is not a plan in JSON, or was cut short"),
        (b"[" * 100_000, "is not a plan in JSON, or was cut short"),
        (b"\xff\xfe", "is not a plan in JSON, or was cut short"),
        (b"[]", "is not a plan in JSON, or was cut short"),
        (b"{}", "has the kind 'none'"),
        (b'{"kind": "Pod", "apiVersion": "v1"}', "has the kind 'Pod'"),
        (WHOLE.replace(b"plan.kcm.dev/v1", b"plan.kcm.dev/v2"), "has the version 'plan.kcm.dev/v2'"),
        (WHOLE.replace(b'"horizonS"', b'"horizon"'), "is not a whole plan"),
        (WHOLE.replace(PLANNED_AT.encode(), b"soon"), "is not a whole plan"),
        (WHOLE.replace(PLANNED_AT.encode(), b"\xff"), "is not a whole plan"),
        (msgspec.json.encode(answer(changes=())), "is a takeover audit"),
    ],
)
def test_what_is_no_plan_is_one_error(tmp_path: Path, data: bytes, problem: str) -> None:
    file = tmp_path / "plan.json"
    file.write_bytes(data)
    with pytest.raises(PlanError) as caught:
        read_plan(str(file))
    assert problem in str(caught.value) and "\n" not in str(caught.value) and str(file) in str(caught.value)


def test_a_file_that_is_too_large_is_not_read(tmp_path: Path) -> None:
    with (tmp_path / "plan.json").open("wb") as file:
        file.truncate(MOST_BYTES + 1)
    with pytest.raises(PlanError, match="256 MiB"):
        read_plan(str(tmp_path / "plan.json"))


def test_plans_of_earlier_versions_are_read(tmp_path: Path) -> None:
    older = msgspec.json.decode(WHOLE)
    del older["source"]["cluster"], older["availability"]
    (tmp_path / "plan.json").write_bytes(msgspec.json.encode({**older, "fromLater": 1}))
    assert read_plan(str(tmp_path / "plan.json")).differences == (SCALED,)


def test_what_has_to_be_read() -> None:
    assert needed(answer(SCALED)) == ()
    more = [replace(SCALED, about=Object(kind, "n", "x")) for kind in ("ConfigMap", "Secret", "Rollout")]
    assert needed(answer(*more)) == ("configmaps", "custom")


@given(
    st.recursive(
        st.none() | st.integers(), lambda one: st.dictionaries(st.sampled_from(["a", "a.b", "b"]), one) | st.lists(one)
    ),
    st.text("ab.[]", max_size=12),
)
def test_any_path_leads_somewhere_or_nowhere(value: Any, path: str) -> None:
    _at(value, path)


REFUSED = {"type": "ReplicaFailure", "message": 'pods "web-1-abcde" is forbidden', "lastTransitionTime": PLANNED_AT}
TAINT = [{"key": "node.kubernetes.io/unschedulable", "timeAdded": PLANNED_AT}]


@pytest.mark.parametrize(
    ("planned", "found", "same"),
    [
        (5, 5, True),
        (5, 4, False),
        (5, "5", False),
        (None, [], True),
        (None, 0, False),
        (PLANNED_AT, LATER, True),
        ("a 37d0dc72-d670-4dba-a71a-bc32986f97db", "a a37cacb2-59d7-42f3-8cfd-ba75be8d7023", True),
        (REFUSED, {**REFUSED, "message": 'pods "web-1-fghij" is \\"forbidden\\"', "lastTransitionTime": LATER}, True),
        (REFUSED, {**REFUSED, "type": "Available"}, False),
        (TAINT, [{**TAINT[0], "timeAdded": LATER}], True),
        (TAINT, [{**TAINT[0], "key": "a"}], False),
        (short([REFUSED] * 9), short([{**REFUSED, "message": "a longer one " * 5}] * 9), True),
        (short([REFUSED] * 9), short([{**REFUSED, "type": "Available"}] * 9), False),
        (short("x" * 999), short("x" * 999 + "y"), True),  # the rest was not saved
        (short("x" * 999), "y", False),
    ],
)
def test_values_that_no_plan_knows_are_left_out(planned: object, found: object, same: bool) -> None:
    assert is_same_value(planned, found) is is_same_value(found, planned) is same


# -- a whole cluster


def beside(number: int) -> Comparison:
    return compare(planned(), lived()[number])


def test_a_plan_that_came_true() -> None:
    found = beside(2)
    assert found.as_planned and found.complete, [step for step in found.steps if step.state != HAPPENED]
    assert found.count(HAPPENED) == len(found.steps) > 6
    web = next(one for one in found.availability if one.about.kind == "Deployment")
    assert (web.found, web.final, web.state) == (6, 6, HAPPENED)


def test_a_plan_under_way() -> None:
    found = beside(1)
    assert found.as_planned and not found.complete
    assert 0 < found.count(NOT_YET) < len(found.steps)
    assert found.begun_at and 0 <= found.elapsed_s < 10


def test_a_plan_that_has_not_begun() -> None:
    found = beside(0)
    assert (found.count(NOT_YET), found.begun_at) == (len(found.steps), "")


def test_what_others_did_afterwards_is_seen() -> None:
    found = beside(3)
    assert not found.as_planned
    wrong = {str(step.about) for step in found.steps if step.state == DIFFERENTLY}
    assert f"Deployment {NAMESPACE}/web" in wrong
    made = {(one.what, one.about.kind) for one in found.unexpected}
    assert {("created", "Deployment"), ("created", "Pod")} <= made
    assert parse_time(format_time(lived()[3].taken_at)) - parse_time(found.begun_at) > timedelta(seconds=90)


def test_a_saved_plan_is_read_as_it_was(tmp_path: Path) -> None:
    (tmp_path / "plan.json").write_bytes(planned().json())
    assert compare(read_plan(str(tmp_path / "plan.json")), lived()[2]).steps == beside(2).steps
