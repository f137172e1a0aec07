"""The first lines and the exit code of plans: what the reader decides by."""

import re
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from msgspec.structs import replace

from kcm_cli.cli.plan import main
from kcm_cli.machinery.labels import EVERYTHING
from kcm_cli.plan import (
    Apply,
    Delete,
    Drain,
    FailNode,
    Options,
    PlanError,
    Scale,
    SetImage,
    Target,
    plan,
    save,
)
from kcm_cli.plan.answer import Object
from kcm_cli.plan.planning import _problems
from kcm_cli.plan.refusals import Refusal
from kcm_cli.plan.shown_part import Shown
from kcm_cli.plan.simulation import Simulation
from kcm_cli.plan.snapshot import Gap, Snapshot
from kcm_cli.planning.actions import MERGE
from kcm_cli.rest.transport import Request
from kcm_cli.sandbox.nodes.shape import CAPACITY
from kcm_cli.sandbox.views import NODES, PODS
from tests.kit.simulation import NAMESPACE, World
from tests.kit.workload import deployment, job, stateful_set
from tests.unit.plan.clusters import service, settled, snapshot_of

Tree = dict[str, Any]
ALL = "pending,stuck,unavailable,no-endpoints,data,pdb,quota,refused,image,failed,drain"
WEB = Target("deploy", "web", NAMESPACE)


class Ran:
    """A run of the command. verdict: its line; problems: those lines."""

    def __init__(self, code: int, out: str) -> None:
        self.code = code
        lines = [line.rstrip() for line in out.splitlines()]
        blanks = [number for number, line in enumerate(lines) if not line] or [len(lines)]
        self.head = lines[: blanks[0]]
        self.verdict = lines[blanks[0] + 1] if blanks[0] + 1 < len(lines) else ""
        self.text = "\n".join(lines)


Run = Callable[..., Ran]


@pytest.fixture
def run(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.delenv("COLUMNS", raising=False)

    def run(snapshot: Snapshot, *arguments: str, manifests: Sequence[Tree] = (), fail_on: str = ALL) -> Ran:
        save(snapshot, tmp_path / "cluster.kcm")
        words = ["--snapshot", str(tmp_path / "cluster.kcm"), "--fail-on", fail_on, *arguments]
        words += [] if "--for" in arguments else ["--for", "5m"]
        if manifests:
            (tmp_path / "app.yaml").write_text(yaml.safe_dump_all(manifests))
            words += ["-f", str(tmp_path / "app.yaml")]
        code = main(words)
        captured = capsys.readouterr()
        return Ran(code, captured.out or captured.err)

    return run


def with_spec(doc: Tree, **spec: object) -> Tree:
    doc["spec"] |= spec
    return doc


def resources(doc: Tree, **amounts: str) -> Tree:
    doc["spec"]["template"]["spec"]["containers"][0]["resources"] = {"requests": amounts}
    return doc


async def create(world: World, path: str, doc: Tree) -> None:
    await world.create(path, doc)


# -- P4: quotas


def quota(**hard: str) -> Tree:
    metadata = {"name": "quota", "namespace": NAMESPACE}
    return {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata, "spec": {"hard": hard}}


@cache
def under_quota(name: str, value: str) -> Snapshot:
    async def story(world: World) -> None:
        await world.create("apps/v1/deployments", deployment("web", 2))
        await world.clock.sleep(60)
        await world.create("v1/resourcequotas", quota(**{name: value}))
        await world.clock.sleep(60)

    return snapshot_of(story)


@pytest.mark.parametrize(
    ("name", "value", "why"),
    [
        ("pods", "3", "exceeded quota: quota, requested: pods=1, used: pods=3, limited: pods=3"),
        ("limits.cpu", "4", "failed quota: quota: must specify limits.cpu for: c"),
    ],
)
def test_every_refusal_by_quota_is_of_one_kind(run: Run, name: str, value: str, why: str) -> None:
    ran = run(under_quota(name, value), "--scale", f"{NAMESPACE}/deploy/web=5", fail_on="quota")
    assert ran.code == 3
    assert ran.verdict == "2 problems: 1 object is over its quota, 1 object does not finish"
    (line,) = [line for line in ran.text.splitlines() if line.startswith("  quota ")]  # one for the whole workload
    assert line.startswith(f"  quota   Deployment {NAMESPACE}/web: ") and why in line and "web-" not in line


# -- P5: what was bad before, and gets worse


@cache
def degraded() -> Snapshot:
    async def story(world: World) -> None:
        await world.clock.sleep(5)
        for name in ("node-1", "node-2", "node-3"):
            body = {"metadata": {"annotations": {CAPACITY: "cpu=2"}}}
            await world.client.patch(NODES, "", name, body, content_type=MERGE)
        doc = with_spec(resources(deployment("web", 6), cpu="1200m"), progressDeadlineSeconds=60)
        await world.create("apps/v1/deployments", doc)
        await world.clock.sleep(180)

    return snapshot_of(story)


def test_a_rollout_that_hangs_is_a_problem_of_a_degraded_workload_too(run: Run) -> None:
    unchanged = run(degraded(), "--scale", f"{NAMESPACE}/deploy/web=6", "--for", "10m")
    assert (unchanged.code, unchanged.verdict) == (0, "Nothing ends differently.")
    assert unchanged.text.count("(so without the change, too)") == 2
    ran = run(degraded(), "--set-image", f"{NAMESPACE}/deploy/web=v1@sha256:{'0' * 64}", "--for", "10m")
    assert ran.code == 3
    assert "1 object does not finish" in ran.verdict
    (line,) = [line for line in ran.text.splitlines() if line.startswith("  stuck ")]
    assert "replicas updated" in line and "(so without the change, too)" not in line
    assert "of its pods are Pending: 0/3 nodes are available: 3 Insufficient cpu" in line


# -- P6: ConfigMaps and Secrets


def with_references(*, optional: bool = False, **sources: str) -> Tree:
    doc = deployment("web", 2, image="v1")
    container = doc["spec"]["template"]["spec"]["containers"][0]
    container["envFrom"] = [{f"{kind}Ref": {"name": name, "optional": optional}} for kind, name in sources.items()]
    return doc


@cache
def with_settings(*include: str) -> Snapshot:
    async def story(world: World) -> None:
        metadata = {"name": "settings", "namespace": NAMESPACE}
        await world.create("v1/configmaps", {"metadata": metadata, "data": {"a": "1"}})
        await world.create("apps/v1/deployments", with_references(configMap="settings"))
        await world.clock.sleep(60)

    return snapshot_of(story, include=include)


def test_a_configmap_that_is_known_to_be_missing_keeps_pods_from_starting(run: Run) -> None:
    ran = run(with_settings("configmaps"), manifests=[with_references(configMap="other")], fail_on="stuck")
    assert (ran.code, ran.verdict) == (3, "1 problem: 1 object does not finish")
    assert 'wait: CreateContainerConfigError (configmap "other" not found)' in ran.text


def test_what_was_not_read_is_assumed(run: Run) -> None:
    ran = run(with_settings(), manifests=[with_references(configMap="other")])
    wanted = f"ConfigMap {NAMESPACE}/other, which was not read, exists"
    assert (ran.code, ran.verdict) == (0, f"The change brings no problems, if {wanted}.")
    ran = run(with_settings("configmaps"), manifests=[with_references(secret="password")])
    assert ran.verdict.endswith(f"if Secret {NAMESPACE}/password, which was not read, exists.")


def test_what_running_pods_use_is_not_doubted(run: Run) -> None:
    for include in ((), ("configmaps",)):
        ran = run(with_settings(*include), "--scale", f"{NAMESPACE}/deploy/web=4")
        assert (ran.code, ran.verdict) == (0, "The change brings no problems.")
    ran = run(with_settings("configmaps"), manifests=[with_references(configMap="other", optional=True)])
    assert (ran.code, ran.verdict) == (0, "The change brings no problems.")


def test_a_configmap_of_the_same_manifests_is_there(run: Run) -> None:
    made = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "other", "namespace": NAMESPACE}}
    for manifests in ([with_references(configMap="other"), made], [made, with_references(configMap="other")]):
        for include in ((), ("configmaps",)):
            ran = run(with_settings(*include), manifests=manifests)
            assert (ran.code, ran.verdict) == (0, "The change brings no problems.")


def test_a_missing_volume_and_a_missing_key(run: Run) -> None:
    doc = deployment("web", 1)
    pod = doc["spec"]["template"]["spec"]
    pod["volumes"] = [{"name": "v", "configMap": {"name": "gone"}}]
    ran = run(with_settings("configmaps"), manifests=[doc])
    assert ran.code == 3
    assert 'cannot start: MountVolume.SetUp failed for volume "v" : configmap "gone" not found' in ran.text
    key = {"configMapKeyRef": {"name": "settings", "key": "b"}}
    doc = deployment("web", 1)
    doc["spec"]["template"]["spec"]["containers"][0]["env"] = [{"name": "B", "valueFrom": key}]
    ran = run(with_settings("configmaps"), manifests=[doc])
    assert f"couldn't find key b in ConfigMap {NAMESPACE}/settings" in ran.text and ran.code == 3
    ran = run(with_settings(), manifests=[doc])
    assert ran.verdict.endswith(f"if ConfigMap {NAMESPACE}/settings, which was not read, has the key b.")


@pytest.mark.parametrize("of_pod", [True, False])
def test_a_root_user_that_the_pod_itself_forbids(run: Run, of_pod: bool) -> None:
    """A kubelet starts no container as root whose context says that it is not root."""
    doc = deployment("web", 1)
    pod = doc["spec"]["template"]["spec"]
    (pod if of_pod else pod["containers"][0])["securityContext"] = {"runAsUser": 0}
    pod.setdefault("securityContext", {})["runAsNonRoot"] = True
    ran = run(with_settings(), manifests=[doc])
    assert ran.code == 3
    assert "wait: CreateContainerConfigError (container's runAsUser breaks non-root policy" in ran.text
    pod["containers"][0]["securityContext"] = {"runAsUser": 1}
    assert run(with_settings(), manifests=[doc]).code == 0


def test_bare_pods_and_jobs_that_cannot_start_are_stuck(run: Run) -> None:
    doc = job("work", 1)
    doc["spec"]["template"]["spec"]["containers"][0]["envFrom"] = [{"configMapRef": {"name": "gone"}}]
    pod = {"metadata": {"name": "bare", "namespace": NAMESPACE}, "spec": doc["spec"]["template"]["spec"]}
    pod = {"apiVersion": "v1", "kind": "Pod", **pod}
    ran = run(with_settings("configmaps"), manifests=[doc, pod])
    assert (ran.code, ran.verdict) == (3, "2 problems: 2 objects do not finish")


# -- P7: pods of Jobs


@cache
def with_job() -> Snapshot:
    async def story(world: World) -> None:
        doc = job("work", 3)
        doc["spec"]["parallelism"] = 3
        doc["spec"]["template"]["metadata"]["annotations"] = {"sandbox.kcm.dev/run-time": "10h"}
        await world.create("batch/v1/jobs", doc)
        await world.create("batch/v1/jobs", job("over", 3))
        await world.clock.sleep(60)

    return snapshot_of(story)


def test_how_evicted_pods_of_jobs_end_is_an_assumption(run: Run) -> None:
    ran = run(with_job(), *(word for name in ("node-1", "node-2") for word in ("--drain", name)), "--for", "10m")
    assumed = f"evicted pods of Job {NAMESPACE}/work end as failed, not with exit code 0 in the second after SIGTERM"
    assert (ran.code, ran.verdict) == (0, f"The change brings no problems, if {assumed}.")
    assert f"evicted pods of Job {NAMESPACE}/over" not in ran.text  # they had ended


# -- U15: the audit


def test_regular_work_is_apart_from_that_of_a_takeover(run: Run) -> None:
    async def story(world: World) -> None:
        once = job("x", 1)["spec"]
        spec = {"schedule": "* * * * *", "jobTemplate": {"spec": once}}
        metadata = {"name": "tick", "namespace": NAMESPACE}
        await world.create("batch/v1/cronjobs", {"metadata": metadata, "spec": spec})
        await world.create("apps/v1/deployments", deployment("web", 2))
        await world.clock.sleep(150)

    snapshot = snapshot_of(story)
    answer = plan(snapshot, (), Options(300))
    assert {one.controller for one in answer.audit} >= {"cronjob-controller", "job-controller"}
    assert [one for one in answer.audit if not one.scheduled] == []
    assert not answer.changed
    ran = run(snapshot)
    assert "writes of routine and" in ran.verdict and "regular work of CronJobs and autoscalers" in ran.verdict


def test_what_is_wrong_in_a_cluster_is_nothing_that_an_audit_would_change(run: Run) -> None:
    async def story(world: World) -> None:
        web = deployment("web", 1)
        web["spec"]["template"]["spec"]["nodeSelector"] = {"disk": "none"}
        await world.create("apps/v1/deployments", web)
        await world.clock.sleep(700)

    snapshot = snapshot_of(story)
    ran = run(snapshot, "--detailed-exitcode", fail_on="failed")
    assert (ran.code, "pending Deployment" in ran.text) == (0, True), ran.text
    assert ran.verdict.startswith("Nothing is written but Leases")
    assert run(snapshot, "--detailed-exitcode", fail_on="pending").code == 3


# -- U5: namespaces


def test_a_namespace_does_not_hide_problems_from_the_verdict(run: Run) -> None:
    ran = run(settled(), "--drain", "node-1", "-n", "default", "--for", "10m", fail_on="pdb")
    assert ran.code == 3
    assert ran.verdict == "2 problems: 1 node is not drained, 1 eviction is blocked by a disruption budget"
    assert f"pdb     Pod {NAMESPACE}/db-" in ran.text and "(not in what is listed below)" in ran.text
    ran = run(settled(), "--drain", "node-1", "-l", "app=nothing", "--for", "10m", fail_on="pdb")
    assert ran.code == 3


def test_a_namespace_does_not_hide_changes_from_the_verdict(run: Run) -> None:
    for words in (("-n", "default"), ("-l", "app=nothing")):
        ran = run(settled(), "--scale", f"{NAMESPACE}/deploy/web=6", "--detailed-exitcode", *words)
        assert (ran.code, ran.verdict) == (2, "The change brings no problems.")
        assert " more outside of what -n and -l select" in ran.text
        ran = run(settled(), "--scale", f"{NAMESPACE}/deploy/web=5", "--detailed-exitcode", *words)
        assert (ran.code, ran.verdict) == (0, "Nothing ends differently.")
    all_of_it = plan(settled(), [Scale(WEB, 6)], Options(60))
    some = plan(settled(), [Scale(WEB, 6)], Options(60, selector="app=nothing"))
    assert all_of_it.unlisted == 0 and some.unlisted == len(all_of_it.differences) - len(some.differences) > 0


def test_an_unknown_namespace_is_an_error(run: Run) -> None:
    ran = run(settled(), "--drain", "node-1", "-n", "sinn")
    assert ran.code == 1 and 'namespaces "sinn" not found' in ran.text
    made = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "new"}}
    assert run(settled(), "-n", "new", manifests=[made]).code == 0
    with pytest.raises(PlanError, match='namespaces "x" not found'):
        plan(settled(), (), Options(60, namespace="x"))


# -- U7: losses


def test_a_service_that_loses_its_endpoints(run: Run) -> None:
    ran = run(settled(), "--delete", f"{NAMESPACE}/deploy/web", fail_on="no-endpoints")
    assert (ran.code, ran.verdict) == (3, "1 problem: 1 Service loses its endpoints")
    assert f"no-endpoints Service {NAMESPACE}/web: it loses all its ready endpoints" in ran.text
    ran = run(settled(), "--scale", f"{NAMESPACE}/deploy/web=0", fail_on="no-endpoints")
    assert ran.code == 3


def test_a_service_that_selects_another_application(run: Run) -> None:
    doc = service("web")
    doc["spec"]["selector"] = {"app": "api"}
    ran = run(settled(), "--force-conflicts", manifests=[doc])
    assert ran.code == 3
    assert f"it serves Deployment {NAMESPACE}/api instead of Deployment {NAMESPACE}/web" in ran.text
    ran = run(settled(), manifests=[{**service("new"), "spec": {"selector": {"app": "wep"}, "ports": [{"port": 80}]}}])
    assert ran.code == 3 and "it has no ready endpoints" in ran.text


@cache
def with_webhook(policy: str) -> Snapshot:
    """A cluster with a webhook in one pod. It is asked about nothing that there is."""

    async def story(world: World) -> None:
        await world.create("apps/v1/deployments", deployment("hook", 1))
        await world.create("v1/services", service("hook"))
        rules = [{"apiGroups": ["example.com"], "apiVersions": ["v1"], "resources": ["things"], "operations": ["*"]}]
        config = {"service": {"name": "hook", "namespace": NAMESPACE}}
        hook = {"name": "hook.example.com", "clientConfig": config, "rules": rules, "failurePolicy": policy}
        hook |= {"sideEffects": "None", "admissionReviewVersions": ["v1"]}
        doc = {"metadata": {"name": "hooks"}, "webhooks": [hook]}
        await world.create("admissionregistration.k8s.io/v1/validatingwebhookconfigurations", doc, namespace="")
        await world.clock.sleep(60)

    return snapshot_of(story)


@pytest.mark.parametrize("policy", ["Fail", "Ignore"])
def test_a_webhook_that_is_gone_refuses_what_it_is_asked_about(run: Run, policy: str) -> None:
    """Also for as long as its only pod moves: then it may be what refuses the pod that takes its place."""
    (node,) = {item.doc["spec"]["nodeName"] for item in with_webhook(policy).items(PODS.gvr)}  # type: ignore[index]
    moved = run(with_webhook(policy), "--drain", str(node), fail_on="no-endpoints")
    asked = "webhook hook.example.com (failurePolicy Fail) refuses what it is asked about"
    if policy == "Ignore":
        assert moved.code == 0
    else:
        assert (moved.code, moved.verdict) == (3, "1 problem: 1 Service loses its endpoints")
        assert re.search(
            rf"Service {NAMESPACE}/hook: it has no ready endpoint for [1-9]\d?s: {re.escape(asked)}", moved.text
        )
    gone = run(with_webhook(policy), "--scale", f"{NAMESPACE}/deploy/hook=0", fail_on="no-endpoints")
    assert (asked in gone.text) == (policy == "Fail") and gone.code == 3
    assert (asked in run(with_webhook(policy), "--delete", f"{NAMESPACE}/svc/hook").text) == (policy == "Fail")
    assert asked not in run(with_webhook(policy), "--set-image", f"{NAMESPACE}/deploy/hook=v2").text


def test_a_deleted_service_and_a_rollout_lose_nothing(run: Run) -> None:
    assert run(settled(), "--delete", f"{NAMESPACE}/service/web").code == 0
    ran = run(settled(), "--delete", f"{NAMESPACE}/deploy/web", "--cascade", "orphan", fail_on="no-endpoints")
    assert (ran.code, ran.verdict) == (0, "The change brings no problems.")
    assert run(settled(), "--set-image", f"{NAMESPACE}/deploy/web=v2").code == 0


@cache
def with_volumes() -> Snapshot:
    async def story(world: World) -> None:
        claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
        template = {"metadata": {"name": "data"}, "spec": claim}
        doc = with_spec(stateful_set("store", 2), volumeClaimTemplates=[template])
        await world.create("apps/v1/statefulsets", doc)
        await world.clock.sleep(90)

    return snapshot_of(story)


def test_lost_volumes_are_a_problem(run: Run) -> None:
    ran = run(with_volumes(), "--delete", f"namespace/{NAMESPACE}", "--for", "10m", fail_on="data")
    assert ran.code == 3
    assert "2 volumes are lost" in ran.verdict
    assert "data    PersistentVolume pvc-" in ran.text and "is deleted with its data" in ran.text
    ran = run(with_volumes(), "--delete", f"{NAMESPACE}/sts/store", fail_on="data")
    assert ran.code == 0  # the claims stay
    ran = run(with_volumes(), "--delete", f"{NAMESPACE}/pvc/data-store-0", fail_on="data")
    assert ran.code == 3
    assert (
        f"PersistentVolumeClaim {NAMESPACE}/data-store-0: the claim is deleted, as soon as nothing uses it; "
        "its volume pvc-" in ran.text
    )
    assert "is deleted with it, and so is the data" in ran.text


def with_claim(**more: Any) -> Tree:
    """A Deployment whose pod has a volume that one node may have."""
    doc = {**deployment("files", 1), "apiVersion": "apps/v1", "kind": "Deployment"}
    volume = {"name": "v", "persistentVolumeClaim": {"claimName": "data"}}
    doc["spec"]["template"]["spec"] |= {"volumes": [volume], **more}
    return doc


@cache
def with_a_volume() -> Snapshot:
    async def story(world: World) -> None:
        spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
        metadata = {"name": "data", "namespace": NAMESPACE}
        await world.create("v1/persistentvolumeclaims", {"metadata": metadata, "spec": spec})
        await world.create("apps/v1/deployments", with_claim())
        await world.clock.sleep(90)

    return snapshot_of(story)


def test_a_volume_that_another_node_has_keeps_a_pod_from_starting(run: Run) -> None:
    """The old pod stays until the new one is ready, which waits for its volume: the best known rollout that hangs."""
    snapshot = with_a_volume()
    (node,) = {item.doc["spec"]["nodeName"] for item in snapshot.items(PODS.gvr)}  # type: ignore[index]
    others = [one.name for one in snapshot.items(NODES.gvr) if one.name != node]
    moved = with_claim(nodeSelector={"kubernetes.io/hostname": others[0]})
    ran = run(snapshot, manifests=[moved], fail_on="stuck")
    assert (ran.code, ran.verdict) == (3, "1 problem: 1 object does not finish")
    assert re.search(r"1 of its pods cannot start: Multi-Attach error for volume .* already used by pod", ran.text)
    moved["spec"]["strategy"] = {"type": "Recreate"}
    assert run(snapshot, manifests=[moved], fail_on="stuck").code == 0
    assert run(snapshot, "--drain", str(node)).code == 0
    lost = run(snapshot, "--fail-node", str(node), "--for", "30m", fail_on="stuck")  # its kubelet unmounts nothing
    assert lost.code == 3 and "Multi-Attach error for volume" in lost.text
    all_of_them = [word for name in (node, *others) for word in ("--drain", str(name))]
    assert run(snapshot, *all_of_them, "--add-node", str(node), fail_on="stuck").code == 0


def test_without_what_attaches_volumes_no_pod_waits_for_one(run: Run) -> None:
    """Controllers that do not run in the plan, and nodes whose kubelets attach volumes themselves."""
    snapshot = with_a_volume()
    (node,) = {item.doc["spec"]["nodeName"] for item in snapshot.items(PODS.gvr)}  # type: ignore[index]
    gaps = (*snapshot.gaps, Gap("volumeattachments.storage.k8s.io", "forbidden"))
    kept = {gvr: one for gvr, one in snapshot.collections.items() if gvr.plural != "volumeattachments"}
    nodes = snapshot.collections[NODES.gvr]
    annotated = b'"volumes.kubernetes.io/controller-managed-attach-detach"'
    alone = tuple(replace(one, data=one.data.replace(annotated, b'"other"')) for one in nodes.items)
    without = "--controllers=*,-persistentvolume-attach-detach-controller"
    for of, words in (
        (replace(snapshot, gaps=gaps, collections=kept), ()),
        (snapshot, (without,)),
        (replace(snapshot, collections={**snapshot.collections, NODES.gvr: replace(nodes, items=alone)}), ()),
    ):
        assert run(of, "--drain", str(node), *words, fail_on="stuck").code == 0


def test_objects_that_the_api_server_creates_anew_are_named(run: Run) -> None:
    restored = "the API server creates Service default/kubernetes anew within a minute"
    assert restored in run(settled(), "--delete", "default/svc/kubernetes").text
    assert restored not in run(settled(), "--delete", f"{NAMESPACE}/deploy/web").text


def test_a_lost_target_breaks_its_autoscaler(run: Run) -> None:
    async def story(world: World) -> None:
        await world.create("apps/v1/deployments", resources(deployment("web", 2), cpu="100m"))
        target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
        metric = {
            "type": "Resource",
            "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}},
        }
        spec = {"scaleTargetRef": target, "minReplicas": 2, "maxReplicas": 5, "metrics": [metric]}
        metadata = {"name": "web", "namespace": NAMESPACE}
        await world.create("autoscaling/v2/horizontalpodautoscalers", {"metadata": metadata, "spec": spec})
        await world.clock.sleep(120)

    ran = run(snapshot_of(story), "--delete", f"{NAMESPACE}/deploy/web", fail_on="stuck")
    assert ran.code == 3
    assert f"HorizontalPodAutoscaler {NAMESPACE}/web: it does not scale: FailedGetScale" in ran.text


# -- for a while


def test_too_few_ready_pods_for_long(run: Run) -> None:
    async def story(world: World) -> None:
        await world.create("apps/v1/deployments", deployment("web", 6))
        await world.clock.sleep(60)

    ran = run(snapshot_of(story), "--fail-node", "node-2", "--for", "15m", fail_on="unavailable")
    assert ran.code == 3
    assert "1 workload has too few Ready pods for long" in ran.verdict
    assert "only 4 of 6 replicas are Ready for 5m" in ran.text


def test_a_rollout_and_a_drain_are_not_too_few_for_long(run: Run) -> None:
    assert run(settled(), "--set-image", f"{NAMESPACE}/deploy/web=v2", fail_on="unavailable,stuck").code == 0
    assert run(settled(), "--drain", "node-1", fail_on="unavailable,stuck").code == 0


def test_pods_that_are_evicted_for_ever(run: Run) -> None:
    async def story(world: World) -> None:
        doc = deployment("web", 2)
        pod = doc["spec"]["template"]["spec"]
        pod["nodeSelector"] = {"kubernetes.io/hostname": "node-1"}
        away = {"key": "example.com/away", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 12}
        pod["tolerations"] = [away]
        await world.create("apps/v1/deployments", doc)
        await world.clock.sleep(60)

    taints = [{"key": "example.com/away", "effect": "NoExecute"}]
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "node-1"}, "spec": {"taints": taints}}
    ran = run(snapshot_of(story), "--server-side", manifests=[node], fail_on="stuck")
    assert (ran.code, ran.verdict) == (3, "1 problem: 1 object does not finish")
    assert f"stuck   Deployment {NAMESPACE}/web: it does not come to rest: " in ran.text


# -- texts


def test_a_partition_and_its_kin_are_told_with_the_change(run: Run) -> None:
    async def story(world: World) -> None:
        rolling = {"type": "RollingUpdate", "rollingUpdate": {"partition": 2}}
        await world.create("apps/v1/statefulsets", with_spec(stateful_set("part", 3), updateStrategy=rolling))
        manual = {"type": "OnDelete"}
        await world.create("apps/v1/statefulsets", with_spec(stateful_set("manual", 2), updateStrategy=manual))
        await world.create("apps/v1/deployments", with_spec(deployment("paused", 2), paused=True))
        await world.clock.sleep(60)

    images = {"sts/part": "v2", "sts/manual": "v2", "deploy/paused": "v2"}
    words = [word for name, image in images.items() for word in ("--set-image", f"{NAMESPACE}/{name}={image}")]
    ran = run(snapshot_of(story), *words)
    assert ran.head[1:] == [
        "  set image sts/part v2 (partition 2: 2 of 3 replicas keep the old template)",
        "  set image sts/manual v2 (updateStrategy OnDelete: no pod is replaced until it is deleted)",
        "  set image deploy/paused v2 (the Deployment is paused: no pod is replaced)",
    ]
    assert f"StatefulSet {NAMESPACE}/part is complete: 1 of 3 replicas updated, by its partition" in ran.text


def test_a_stateful_set_is_complete_once(run: Run) -> None:
    ran = run(settled(), "--set-image", f"{NAMESPACE}/sts/db=v2")
    lines = [line.strip() for line in ran.text.splitlines()]
    (complete,) = [line for line in lines if line.endswith(f"StatefulSet {NAMESPACE}/db is complete")]
    ready = [line for line in lines if f"of StatefulSet {NAMESPACE}/db is Ready" in line or "are Ready" in line]
    assert lines.index(complete) > max(lines.index(line) for line in ready)


def test_causes_come_before_their_effects() -> None:
    answer = plan(settled(), [Drain("node-1")], Options(60))
    first = next(one.what for one in answer.timeline if one.what in ("terminating", "gone", "evicted"))
    assert first == "evicted"


def test_who_preempts_is_told() -> None:
    async def story(world: World) -> None:
        await world.clock.sleep(5)
        for name in ("node-1", "node-2", "node-3"):
            body = {"metadata": {"annotations": {CAPACITY: "cpu=2"}}}
            await world.client.patch(NODES, "", name, body, content_type=MERGE)
        path, headers = "/apis/scheduling.k8s.io/v1/priorityclasses", {"content-type": "application/json"}
        await world.client.call(Request("POST", path, (), headers, b'{"metadata":{"name":"high"},"value":1000}'))
        await world.create("apps/v1/deployments", resources(deployment("low", 3), cpu="1500m"))
        await world.clock.sleep(60)

    vip = resources(deployment("vip", 1), cpu="1500m")
    vip["spec"]["template"]["spec"]["priorityClassName"] = "high"
    answer = plan(snapshot_of(story), [Apply(vip)], Options(60))
    (happened,) = [one for one in answer.timeline if one.what == "preempted"]
    assert (str(happened.about), happened.detail) == (f"Deployment {NAMESPACE}/low", f"by Deployment {NAMESPACE}/vip")


def test_times_are_those_after_the_change(run: Run) -> None:
    ran = run(settled(), "--scale", f"{NAMESPACE}/deploy/web=6", "--for", "1m")
    taken = settled().taken_at
    begins = taken.replace(second=taken.second + 5) if taken.second < 55 else None
    if begins is not None:
        assert ran.head[0].startswith(f"Plan for 1m from {begins:%Y-%m-%dT%H:%M:%SZ} (")
        assert f"read at {taken:%Y-%m-%dT%H:%M:%SZ}" in ran.head[0]


def test_every_request_of_a_change_may_be_rejected() -> None:
    async def story(world: World) -> None:
        await world.create("apps/v1/deployments", deployment("web", 2))
        path, headers = "/apis/admissionregistration.k8s.io/v1/", {"content-type": "application/json"}
        rules = [{"apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*/*"], "operations": ["UPDATE", "DELETE"]}]
        spec: Tree = {"matchConstraints": {"resourceRules": rules}, "validations": [{"expression": USERS}]}
        from kcm_cli.machinery import codec

        for plural, doc in (
            ("validatingadmissionpolicies", {"metadata": {"name": "no"}, "spec": spec}),
            (
                "validatingadmissionpolicybindings",
                {"metadata": {"name": "no"}, "spec": {"policyName": "no", "validationActions": ["Deny"]}},
            ),
        ):
            await world.client.call(Request("POST", path + plural, (), headers, codec.encode(doc)))
        await world.clock.sleep(60)

    changes = (
        Scale(WEB, 3),
        SetImage(WEB, "v2"),
        Delete(WEB),
        Apply(deployment("web", 5)),
        Drain("node-1"),
        FailNode("node-2"),
    )
    snapshot = snapshot_of(story)
    for change in changes:
        answer = plan(snapshot, [change], Options(30))
        kinds = {one.kind for one in answer.problems}
        if not isinstance(change, FailNode):
            assert kinds & {"refused", "drain"}, change


USERS = "request.userInfo.username != 'system:kubectl'"


# -- workloads that belong to an operator's object


@cache
def operated() -> Snapshot:
    """A workload of each kind, each of which an object of an operator controls."""

    async def story(world: World) -> None:
        for path, doc in (("statefulsets", stateful_set("db", 2)), ("deployments", deployment("api", 2))):
            ref = {"apiVersion": "example.com/v1", "kind": "Database", "name": "db", "uid": "0", "controller": True}
            doc["metadata"]["ownerReferences"] = [ref]
            await world.create(f"apps/v1/{path}", doc)
        await world.clock.sleep(60)

    return snapshot_of(story)


@pytest.mark.parametrize("word", ["sts/db", "deploy/api"])
def test_a_workload_of_an_operator_is_judged_as_any_other(run: Run, word: str) -> None:
    metadata = {"name": "most", "namespace": NAMESPACE}
    limits = {"limits": [{"type": "Pod", "max": {"memory": "1Mi"}}]}
    most = {"apiVersion": "v1", "kind": "LimitRange", "metadata": metadata, "spec": limits}
    ran = run(operated(), "--scale", f"{NAMESPACE}/{word}=3", manifests=[most])
    assert (ran.code, ran.verdict) == (3, "1 problem: 1 object does not finish")
    assert "maximum memory usage per Pod is 1Mi" in ran.text


# -- what was not read


def test_what_may_not_be_read_is_assumed_to_make_no_difference(run: Run) -> None:
    refused = tuple(Gap(name, "forbidden") for name in ("networkpolicies.networking.k8s.io", "nodes"))
    snapshot = replace(settled(), gaps=(*settled().gaps, *refused, Gap("pods", "only those of one", partial=True)))
    missing = "objects of other namespaces, nodes, networkpolicies.networking.k8s.io"
    for count, verdict in ((4, "The change brings no problems"), (3, "Nothing ends differently")):
        ran = run(snapshot, "--scale", f"{NAMESPACE}/deploy/api={count}")
        assert (ran.code, ran.verdict) == (0, f"{verdict}, if what could not be read makes no difference: {missing}.")


def test_several_problems_of_one_object_are_compared_each_with_its_like() -> None:
    api = Object("Deployment", NAMESPACE, "api")
    both = [Refusal("stuck", api, "1 of 2 replicas updated", (1, 1, 0)), Refusal("stuck", api, "as those that it has")]
    without, with_change = (Simulation(0.0, [], [], [], {}, {}, both, {}, {}) for _ in range(2))
    (one,) = _problems([(without, with_change)], Shown("", EVERYTHING, settled(), ()))
    assert one.already
