"""The incidents. Each lives in a namespace and on nodes of its own, called as it is.

``alice`` is who does it. ``observed`` and ``audited`` are parts of the first five lines of who watched, and of an audit
log with bodies; a part that starts with - must not be there. ``LISTED``, ``OF_METADATA`` and ``RING`` are the same for
an observer that comes afterwards, a log of the level Metadata, and kcm's record: less, or something else. ``EXACT`` is
for the record of a sandbox, to which its API server, scheduler and kubelets contribute: nothing in it is inferred.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tests.kit.space import Space, Tree


@dataclass(frozen=True)
class Incident:
    """setup: what is there before. acts: what is then done, as arguments of kubectl, or manifests that are applied.
    target: KIND/NAME; of pods that go, one whose name begins so. nodes: how many. wait_s: until it has happened.
    observed_target: for an observer, if it has to ask for another object."""

    name: str
    setup: Callable[[Space], Sequence[Tree]]
    acts: Callable[[Space], Sequence[str | Tree]]
    target: str
    observed: tuple[str, ...]
    audited: tuple[str, ...]
    nodes: int = 2
    wait_s: float = 30.0
    observed_target: str = ""


def _web(s: Space, replicas: int = 2, **spec: Any) -> Tree:
    return s.deployment("web", replicas, s.template("web", terminationGracePeriodSeconds=1, **spec))


def _vip(s: Space) -> Tree:
    return s.deployment("vip", 1, s.template("vip", cpu="3", priorityClassName="system-cluster-critical"))


def _low(s: Space) -> Tree:
    return s.deployment("low", 1, s.template("low", cpu="3", terminationGracePeriodSeconds=1))


def _policy(s: Space) -> Sequence[Tree]:
    api, name = "admissionregistration.k8s.io/v1", f"{s.name}.example.com"
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
    here = {"matchLabels": {"kubernetes.io/metadata.name": s.name}}
    spec = {"matchConstraints": {"resourceRules": [rule]}, "validations": [{"expression": "false", "message": "no"}]}
    binding = {"policyName": name, "validationActions": ["Deny"], "matchResources": {"namespaceSelector": here}}
    return [
        {"apiVersion": api, "kind": "ValidatingAdmissionPolicy", "metadata": {"name": name}, "spec": spec},
        {"apiVersion": api, "kind": "ValidatingAdmissionPolicyBinding", "metadata": {"name": name}, "spec": binding},
    ]


def _webhook(s: Space) -> Tree:
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
    hook = {
        "name": "guard.example.com",
        "clientConfig": {"url": "https://127.0.0.1:1/"},
        "rules": [rule],
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": s.name}},
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "timeoutSeconds": 1,
    }
    head = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration"}
    return {**head, "metadata": {"name": s.name}, "webhooks": [hook]}


INCIDENTS = (
    Incident(
        "preemption",
        lambda s: [_low(s)],
        lambda s: [_vip(s)],
        "pod/low",
        ("by kube-scheduler", "vip"),
        ("by kube-scheduler", "known: audit log", "preemption/vip"),
        nodes=1,
    ),
    Incident(
        "eviction",
        lambda s: [_web(s)],
        lambda s: ["drain {name}-1 --ignore-daemonsets"],
        "pod/web",
        ("eviction", "inferred"),
        ("evicted by alice", "known: audit log"),
    ),
    Incident(
        "taint",
        lambda s: [_web(s)],
        lambda s: ["taint node {name}-1 example.com/away=yes:NoExecute"],
        "pod/web",
        ("by taint-eviction-controller", "example.com/away:NoExecute"),
        ("by node-controller", "Node taint-1", "by alice"),
    ),
    Incident(
        "pod-gc",
        lambda s: [_web(s)],
        lambda s: ["delete node {name}-1"],
        "pod/web",
        ("by pod-garbage-collector-controller", "Node pod-gc-1 was deleted"),
        ("by pod-garbage-collector-controller", "Node pod-gc-1 was deleted by alice"),
        wait_s=80.0,
    ),
    Incident(
        "job-ttl",
        lambda s: [],
        lambda s: [s.job("work", completions=1, ttlSecondsAfterFinished=5)],
        "job/work",
        ("ttl-after-finished-controller", "Complete=True"),
        ("deleted by ttl-after-finished-controller", "known: audit log"),
        wait_s=40.0,
    ),
    Incident(
        "job-deadline",
        lambda s: [],
        lambda s: [s.job("work", {"run-time": "10m"}, completions=1, activeDeadlineSeconds=15)],
        "pod/work",
        ("deleted by job-controller", "inferred"),
        ("deleted by job-controller", "known: audit log"),
        wait_s=40.0,
    ),
    Incident(
        "job-suspended",
        lambda s: [s.job("work", {"run-time": "10m"}, completions=1)],
        lambda s: ['patch job work --type=merge -p {"spec":{"suspend":true}}'],
        "pod/work",
        ("deleted by job-controller", "Job job-suspended/work was changed", "kubectl"),
        ("deleted by job-controller", "Job job-suspended/work was changed by alice"),
    ),
    Incident(
        "scale-down",
        lambda s: [_web(s, 3)],
        lambda s: ["scale deploy web --replicas=1"],
        "pod/web",
        ("by replicaset-controller", "deployment-controller", "Deployment scale-down/web was scaled by kubectl"),
        ("deleted by replicaset-controller", "Deployment scale-down/web was scaled by alice"),
    ),
    Incident(
        "rollout",
        lambda s: [_web(s)],
        lambda s: ["set image deploy/web c=app:2"],
        "pod/web",
        ("by replicaset-controller", "Deployment rollout/web was changed by kubectl"),
        ("deleted by replicaset-controller", "Deployment rollout/web was changed by alice"),
    ),
    Incident(
        "node-loss",
        lambda s: [_web(s)],
        lambda s: ["annotate node {name}-1 sandbox.kcm.dev/failed=true"],
        "pod/web",
        ("by taint-eviction-controller", "Node node-loss-1"),
        ("by node-controller", "Node node-loss-1 was tainted by node-controller"),
        wait_s=100.0,
    ),
    Incident(
        "collector",
        lambda s: [_web(s)],
        lambda s: ["delete deploy web"],
        "pod/web",
        ("garbage-collector-controller", "ReplicaSet", "Deployment collector/web was deleted"),
        ("deleted by garbage-collector-controller", "Deployment collector/web was deleted by alice"),
    ),
    Incident(
        "namespace",
        lambda s: [_web(s)],
        lambda s: ["delete namespace {name} --wait=false"],
        "pod/web",
        ("namespace-controller", "Namespace namespace was"),
        ("by namespace-controller", "Namespace namespace was deleted by alice"),
    ),
    Incident(
        "by-hand",
        lambda s: [_web(s, 1)],
        lambda s: ["delete pod --all"],
        "pod/web",
        ("unknown: nothing says who did it",),
        ("deleted by alice", "known: audit log"),
    ),
    Incident(
        "quota",
        lambda s: [s.doc("v1", "ResourceQuota", "small", {"hard": {"pods": "1"}})],
        lambda s: [_web(s, 3)],
        "deploy/web",
        ("replicaset-controller was refused", "exceeded quota: small", "Deployment quota/web was created"),
        ("replicaset-controller was refused", "exceeded quota small", "Deployment quota/web was created by alice"),
    ),
    Incident(
        "webhook",
        lambda s: [_webhook(s)],
        lambda s: [_web(s)],
        "deploy/web",
        ("replicaset-controller was refused", "guard.example.com", "Deployment webhook/web was created"),
        ("replicaset-controller was refused", "guard.example.com", "Deployment webhook/web was created by alice"),
        wait_s=45.0,
    ),
    Incident(
        "policy",
        _policy,
        lambda s: [_web(s)],
        "deploy/web",
        ("replicaset-controller was refused", "ValidatingAdmissionPolicy", "policy.example.com"),
        ("replicaset-controller was refused", "ValidatingAdmissionPolicy policy.example.com"),
    ),
    Incident(
        "budget",
        lambda s: [_web(s), s.budget("web", minAvailable=2)],
        lambda s: ["drain {name}-1 --ignore-daemonsets --timeout=15s"],
        "pod/web",
        ("PodDisruptionBudget budget/web", "DisruptionAllowed=False"),
        ("alice was refused", "create Pod/eviction: 429"),
        observed_target="pdb/web",
    ),
    Incident(
        "image",
        lambda s: [],
        lambda s: [s.deployment("web", 1, s.template("web", notes={"pull-error": "no such image"}))],
        "deploy/web",
        ("Pull", "image app:1", "replicaset-controller", "Deployment image/web was created"),
        ("Pull", "image app:1", "kubelet of image-", "Deployment image/web was created by alice"),
    ),
    Incident(
        "crash",
        lambda s: [],
        lambda s: [s.deployment("web", 1, s.template("web", notes={"run-time": "1s", "exit-code": "1"}))],
        "deploy/web",
        ("CrashLoopBackOff", "Error, exit code 1", "Deployment crash/web was created"),
        ("CrashLoopBackOff", "Error, exit code 1", "kubelet of crash-", "Deployment crash/web was created by alice"),
        wait_s=45.0,
    ),
    Incident(
        "unschedulable",
        lambda s: [],
        lambda s: [s.deployment("web", 1, s.template("web", cpu="64"))],
        "deploy/web",
        ("Insufficient cpu", "Deployment unschedulable/web was created"),
        ("Insufficient cpu", "kube-scheduler", "Deployment unschedulable/web was created by alice"),
    ),
    Incident(
        "flapping",
        lambda s: [_web(s)],
        lambda s: [
            s.autoscaler("web", _cpu(), least=2, behavior={"scaleDown": {"stabilizationWindowSeconds": 0}}),
            "load 200",
            "load 20",
            "load 200",
            "load 20",
        ],
        "deploy/web",
        ("horizontal-pod-autoscaler-controller", "scaled", "All metrics below target"),
        ("horizontal-pod-autoscaler-controller", "scaled", "All metrics below target", "known: audit log"),
    ),
    Incident(
        "pressure",
        lambda s: [_web(s)],
        lambda s: ["annotate node {name}-1 sandbox.kcm.dev/pressure=memory"],
        "pod/web",
        ("evicted by kubelet", "Evicted"),
        ("evicted by kubelet of pressure-1",),
    ),
    Incident(
        "daemon-set",
        lambda s: [s.daemon_set("agent")],
        lambda s: ["label node {name}-1 pool-"],
        "pod/agent",
        ("by daemonset-controller", "Node daemon-set-1 was changed", "its labels: -pool"),
        ("deleted by daemonset-controller", "Node daemon-set-1 was changed by alice: its labels: -pool"),
    ),
    Incident(
        "stateful-set",
        lambda s: [s.stateful_set("db", 2)],
        lambda s: ["scale sts db --replicas=1"],
        "pod/db",
        ("by statefulset-controller", "StatefulSet stateful-set/db was scaled by kubectl"),
        ("deleted by statefulset-controller", "StatefulSet stateful-set/db was scaled by alice"),
        wait_s=50.0,
    ),
)


def _cpu() -> Tree:
    target = {"type": "Utilization", "averageUtilization": 80}
    return {"type": "Resource", "resource": {"name": "cpu", "target": target}}


UNKNOWN = ("unknown: nothing says who did it", "- by ")
LISTED: dict[str, tuple[str, ...]] = {
    "eviction": UNKNOWN,
    "taint": ("by taint-eviction-controller", "-kubelet"),
    "pod-gc": UNKNOWN,
    "job-ttl": UNKNOWN,
    "job-suspended": ("deleted by job-controller", "kubectl-patch"),
    "scale-down": ("by replicaset-controller", "by deployment-controller: from 3 to 1", "was scaled by kubectl"),
    "collector": ("by garbage-collector-controller", "inferred: what is left", "Deployment collector/web was deleted"),
    "namespace": ("is unknown",),
    "by-hand": UNKNOWN,
    "daemon-set": ("by daemonset-controller", "-unknown"),
}
OF_METADATA: dict[str, tuple[str, ...]] = {
    "preemption": ("by kube-scheduler", "known: audit log"),
    "daemon-set": ("deleted by daemonset-controller", "Node daemon-set-1 was changed by alice"),
    "flapping": ("horizontal-pod-autoscaler-controller", "scaled", "known: audit log"),
    "taint": ("by node-controller", "unknown: what it followed from was not seen"),
    "node-loss": ("by node-controller", "unknown: what it followed from was not seen"),
    "job-ttl": ("deleted by ttl-after-finished-controller",),
    "image": ("its status was written by deployment-controller", "-inferred"),
    "crash": ("its status was written by deployment-controller", "-inferred"),
    "unschedulable": ("its status was written by deployment-controller", "-inferred"),
    "pressure": ("its status was written by kubelet of pressure-1",),
}
RING: dict[str, tuple[str, ...]] = {
    "eviction": ('for "EvictionByEvictionAPI"', "a change by another client"),
    "taint": ("deleted by taint-eviction-controller", "Node taint-1", "by kubectl"),
    "pod-gc": ("deleted by pod-garbage-collector-controller", "node pod-gc-1 is gone"),
    "job-ttl": ("deleted by ttl-after-finished-controller", "ttlSecondsAfterFinished=5"),
    "job-deadline": ("deleted by job-controller", "DeadlineExceeded", "by kubectl"),
    "job-suspended": ("deleted by job-controller", "job is suspended", "by kubectl"),
    "scale-down": ("deleted by replicaset-controller", "scaled from 3 to 1", "was scaled by kubectl"),
    "rollout": ("deleted by replicaset-controller", "scaled from", "by kubectl"),
    "node-loss": ("deleted by taint-eviction-controller", "NoExecute taint", "node is unreachable"),
    "collector": (
        "deleted by garbage-collector-controller",
        "no owner is left",
        "Deployment collector/web was deleted",
    ),
    "namespace": ("deleted by namespace-controller", "Namespace namespace was marked for deletion"),
    "by-hand": ("a change by another client", "-inferred: Event"),
    "quota": ("replicaset-controller: create Pod", "exceeded quota small", "by kubectl"),
    "webhook": ("replicaset-controller: create Pod", "guard.example.com", "by kubectl"),
    "policy": ("replicaset-controller: create Pod", "ValidatingAdmissionPolicy policy.example.com", "by kubectl"),
    "budget": ("PodDisruptionBudget budget/web", "DisruptionAllowed=False"),
    "image": ("ImagePull", "image app:1", "Deployment image/web was created by kubectl"),
    "crash": ("CrashLoopBackOff", "Deployment crash/web was created by kubectl"),
    "unschedulable": ("Insufficient cpu", "Deployment unschedulable/web was created by kubectl"),
    "daemon-set": ("deleted by daemonset-controller", "node should not run it", "Node daemon-set-1"),
    "stateful-set": ("deleted by statefulset-controller", "scale down", "was scaled by kubectl"),
}
_ALICE = "alice (kubectl/v1.36.0): patch"
_BY_ALICE = "alice (kubectl/v1.36.0)"
EXACT: dict[str, tuple[str, ...]] = {
    "preemption": (
        "deleted by kube-scheduler",
        "preempted by preemption/vip",
        f"{_ALICE} Deployment preemption/vip: 201",
    ),
    "eviction": (f"evicted by {_BY_ALICE}",),
    "taint": ("deleted by taint-eviction-controller", f"{_ALICE} Node taint-1"),
    "pod-gc": ("deleted by pod-garbage-collector-controller", "node pod-gc-1 is gone"),
    "job-ttl": ("deleted by ttl-after-finished-controller", f"{_ALICE} Job job-ttl/work"),
    "job-deadline": ("deleted by job-controller", "DeadlineExceeded", f"{_ALICE} Job job-deadline/work"),
    "job-suspended": ("deleted by job-controller", "job is suspended", f"{_ALICE} Job job-suspended/work"),
    "scale-down": (
        "deleted by replicaset-controller",
        "scaled from 3 to 1",
        f"{_ALICE} Deployment/scale scale-down/web",
    ),
    "rollout": ("deleted by replicaset-controller", "scaled from", f"{_ALICE} Deployment rollout/web"),
    "node-loss": ("deleted by taint-eviction-controller", "NoExecute taint", "node is unreachable"),
    "collector": ("deleted by garbage-collector-controller", f"{_BY_ALICE}: delete Deployment collector/web"),
    "namespace": ("deleted by namespace-controller", f"{_BY_ALICE}: delete Namespace namespace"),
    "by-hand": (f"deleted by {_BY_ALICE}",),
    "quota": ("replicaset-controller: create Pod", "exceeded quota small", f"{_ALICE} Deployment quota/web"),
    "webhook": ("replicaset-controller: create Pod", "guard.example.com", f"{_ALICE} Deployment webhook/web"),
    "policy": (
        "replicaset-controller: create Pod",
        "ValidatingAdmissionPolicy policy",
        f"{_ALICE} Deployment policy/web",
    ),
    "budget": (f"{_BY_ALICE}: create Pod/eviction", "REFUSED 429 TooManyRequests"),
    "image": ("ImagePull", "image app:1", f"{_ALICE} Deployment image/web"),
    "crash": ("CrashLoopBackOff", f"{_ALICE} Deployment crash/web"),
    "unschedulable": ("Insufficient cpu", f"{_ALICE} Deployment unschedulable/web"),
    "flapping": ("horizontal-pod-autoscaler-controller", "scaled (", f"{_ALICE} HorizontalPodAutoscaler flapping/web"),
    "pressure": ("evicted by kubelet of pressure-1", "low on resource: memory", f"{_ALICE} Node pressure-1"),
    "daemon-set": ("deleted by daemonset-controller", "node should not run it", f"{_ALICE} Node daemon-set-1"),
    "stateful-set": ("deleted by statefulset-controller", "scale down", f"{_ALICE} StatefulSet/scale stateful-set/db"),
}
