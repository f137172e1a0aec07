"""The scenarios: what is set up in a namespace of its own with nodes of its own, and what is then done."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from kcm_cli.plan import (
    AddNode,
    Apply,
    Change,
    Delete,
    Drain,
    FailNode,
    RemoveNode,
    Scale,
    SetImage,
    Target,
)

Tree = dict[str, Any]
POOL = "pool"
SANDBOX = "sandbox.kcm.dev"


@dataclass(frozen=True)
class Scenario:
    """nodes: zone letters, one for each node. ready_s: until things are quiet. watched_s: after the change."""

    name: str
    setup: tuple[Tree, ...]
    changes: tuple[Change, ...]
    nodes: str = "aa"
    ready_s: float = 20.0
    watched_s: float = 40.0


class Space:
    """Makes the objects of one scenario."""

    def __init__(self, name: str) -> None:
        self.name = name

    def node(self, number: int) -> str:
        return f"{self.name}-{number}"

    def target(self, kind: str, name: str) -> Target:
        return Target(kind, name, self.name if kind not in ("namespace", "node") else "")

    def doc(self, api: str, kind: str, name: str, spec: Tree | None = None, **more: Any) -> Tree:
        metadata: Tree = {"name": name, "namespace": self.name, **more.pop("metadata", {})}
        doc: Tree = {"apiVersion": api, "kind": kind, "metadata": metadata, **more}
        return doc if spec is None else {**doc, "spec": spec}

    def template(self, app: str, image: str = "app:1", notes: Tree | None = None, **spec: Any) -> Tree:
        cpu = spec.pop("cpu", "100m")
        volumes = spec.pop("mounts", None)
        container: Tree = {"name": "c", "image": image, "resources": {"requests": {"cpu": cpu, "memory": "64Mi"}}}
        if volumes:
            container["volumeMounts"] = volumes
        soon = [
            {"key": f"node.kubernetes.io/{why}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 15}
            for why in ("not-ready", "unreachable")
        ]
        metadata: Tree = {"labels": {"app": app}}
        if notes:
            metadata["annotations"] = {f"{SANDBOX}/{key}": value for key, value in notes.items()}
        whole = {"containers": [container], "nodeSelector": {POOL: self.name}, "tolerations": soon, **spec}
        return {"metadata": metadata, "spec": whole}

    def deployment(self, name: str, replicas: int, template: Tree | None = None, **spec: Any) -> Tree:
        whole = {"replicas": replicas, "selector": {"matchLabels": {"app": name}}, **spec}
        return self.doc("apps/v1", "Deployment", name, {**whole, "template": template or self.template(name)})

    def stateful_set(self, name: str, replicas: int, template: Tree | None = None, **spec: Any) -> Tree:
        whole = {"replicas": replicas, "serviceName": name, "selector": {"matchLabels": {"app": name}}, **spec}
        return self.doc("apps/v1", "StatefulSet", name, {**whole, "template": template or self.template(name)})

    def daemon_set(self, name: str, **spec: Any) -> Tree:
        whole = {"selector": {"matchLabels": {"app": name}}, "template": self.template(name), **spec}
        return self.doc("apps/v1", "DaemonSet", name, whole)

    def job(self, name: str, notes: Tree | None = None, **spec: Any) -> Tree:
        template = self.template(name, notes=notes or {"run-time": "3s"}, restartPolicy="Never")
        return self.doc("batch/v1", "Job", name, {**spec, "template": template})

    def cron_job(self, name: str, schedule: str, **spec: Any) -> Tree:
        job = {"template": self.template(name, notes={"run-time": "3s"}, restartPolicy="Never")}
        return self.doc("batch/v1", "CronJob", name, {"schedule": schedule, "jobTemplate": {"spec": job}, **spec})

    def budget(self, name: str, **spec: Any) -> Tree:
        return self.doc("policy/v1", "PodDisruptionBudget", name, {"selector": {"matchLabels": {"app": name}}, **spec})

    def service(self, name: str, **spec: Any) -> Tree:
        return self.doc("v1", "Service", name, {"selector": {"app": name}, "ports": [{"port": 80}], **spec})


Made = tuple[Sequence[Tree], Sequence[Change]]
_MAKERS: dict[str, tuple[Callable[[Space], Made], Tree]] = {}


def scenario(**settings: Any) -> Callable[[Callable[[Space], Made]], Callable[[Space], Made]]:
    def keep(make: Callable[[Space], Made]) -> Callable[[Space], Made]:
        _MAKERS[make.__name__.replace("_", "-")] = make, settings
        return make

    return keep


def scenarios() -> list[Scenario]:
    """All of them."""
    made = []
    for name, (make, settings) in _MAKERS.items():
        setup, changes = make(Space(name))
        made.append(Scenario(name, tuple(setup), tuple(changes), **settings))
    return made


# -- deployments


@scenario()
def roll_out(s: Space) -> Made:
    return [s.deployment("web", 4), s.service("web")], [SetImage(s.target("deploy", "web"), "app:2")]


@scenario()
def roll_out_one_by_one(s: Space) -> Made:
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}}
    return [s.deployment("web", 3, strategy=strategy)], [SetImage(s.target("deploy", "web"), "app:2")]


@scenario()
def roll_out_by_recreation(s: Space) -> Made:
    return [s.deployment("web", 3, strategy={"type": "Recreate"})], [SetImage(s.target("deploy", "web"), "app:2")]


@scenario()
def roll_out_of_slow_pods(s: Space) -> Made:
    slow = s.template("web", notes={"ready-delay": "4s"})
    newer = s.template("web", "app:2", notes={"ready-delay": "4s"})
    return [s.deployment("web", 3, slow)], [Apply(s.deployment("web", 3, newer))]


@scenario(watched_s=60.0)
def roll_out_that_hangs(s: Space) -> Made:
    bad = s.template("web", "app:2", notes={"ready-delay": "never"})
    return [s.deployment("web", 3, progressDeadlineSeconds=20)], [
        Apply(s.deployment("web", 3, bad, progressDeadlineSeconds=20))
    ]


@scenario(watched_s=60.0)
def roll_out_with_min_ready(s: Space) -> Made:
    return [s.deployment("web", 2, minReadySeconds=8)], [SetImage(s.target("deploy", "web"), "app:2")]


@scenario()
def roll_out_paused(s: Space) -> Made:
    return [s.deployment("web", 2, paused=True)], [SetImage(s.target("deploy", "web"), "app:2")]


@scenario()
def scale_up(s: Space) -> Made:
    return [s.deployment("web", 2), s.service("web")], [Scale(s.target("deploy", "web"), 7)]


@scenario()
def scale_down(s: Space) -> Made:
    return [s.deployment("web", 7), s.service("web")], [Scale(s.target("deploy", "web"), 2)]


@scenario()
def scale_to_nothing(s: Space) -> Made:
    return [s.deployment("web", 3), s.budget("web", minAvailable=1)], [Scale(s.target("deploy", "web"), 0)]


@scenario()
def scale_beyond_capacity(s: Space) -> Made:
    template = s.template("web", cpu="3")
    return [s.deployment("web", 1, template)], [Scale(s.target("deploy", "web"), 6)]


@scenario()
def quota_too_small(s: Space) -> Made:
    quota = s.doc("v1", "ResourceQuota", "few", {"hard": {"pods": "3"}})
    return [quota, s.deployment("web", 2)], [Scale(s.target("deploy", "web"), 6)]


@scenario()
def quota_of_cpu(s: Space) -> Made:
    quota = s.doc("v1", "ResourceQuota", "cpu", {"hard": {"requests.cpu": "350m"}})
    return [quota, s.deployment("web", 2)], [Scale(s.target("deploy", "web"), 5)]


@scenario()
def delete_deployment(s: Space) -> Made:
    return [s.deployment("web", 3), s.service("web")], [Delete(s.target("deploy", "web"))]


@scenario()
def delete_one_and_scale_another(s: Space) -> Made:
    twice = [s.deployment("web", 2), s.deployment("api", 2)]
    return twice, [Delete(s.target("deploy", "api")), Scale(s.target("deploy", "web"), 3)]


@scenario()
def new_deployment_with_service_and_budget(s: Space) -> Made:
    new = [s.deployment("web", 3), s.service("web"), s.budget("web", minAvailable=2)]
    return [s.deployment("old", 1)], [Apply(doc) for doc in new]


@scenario()
def service_selects_others(s: Space) -> Made:
    setup = [s.deployment("blue", 2), s.deployment("green", 3), s.service("web", selector={"app": "blue"})]
    return setup, [Apply(s.service("web", selector={"app": "green"}))]


@scenario()
def delete_service(s: Space) -> Made:
    return [s.deployment("web", 2), s.service("web")], [Delete(s.target("service", "web"))]


@scenario()
def bare_replica_set(s: Space) -> Made:
    template = s.template("web")
    spec = {"replicas": 2, "selector": {"matchLabels": {"app": "web"}}, "template": template}
    return [s.doc("apps/v1", "ReplicaSet", "web", spec)], [Scale(s.target("rs", "web"), 5)]


@scenario()
def replication_controller(s: Space) -> Made:
    spec = {"replicas": 2, "selector": {"app": "web"}, "template": s.template("web")}
    return [s.doc("v1", "ReplicationController", "web", spec)], [Scale(s.target("rc", "web"), 4)]


# -- stateful sets and daemon sets


@scenario()
def stateful_set_grows(s: Space) -> Made:
    return [s.stateful_set("db", 2)], [Scale(s.target("sts", "db"), 4)]


@scenario()
def stateful_set_shrinks(s: Space) -> Made:
    return [s.stateful_set("db", 4)], [Scale(s.target("sts", "db"), 1)]


@scenario()
def stateful_set_rolls(s: Space) -> Made:
    return [s.stateful_set("db", 3)], [SetImage(s.target("sts", "db"), "app:2")]


@scenario()
def stateful_set_with_partition(s: Space) -> Made:
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"partition": 2}}
    return [s.stateful_set("db", 3, updateStrategy=strategy)], [SetImage(s.target("sts", "db"), "app:2")]


@scenario()
def stateful_set_on_delete(s: Space) -> Made:
    return [s.stateful_set("db", 2, updateStrategy={"type": "OnDelete"})], [SetImage(s.target("sts", "db"), "app:2")]


@scenario()
def stateful_set_in_parallel(s: Space) -> Made:
    return [s.stateful_set("db", 1, podManagementPolicy="Parallel")], [Scale(s.target("sts", "db"), 4)]


@scenario()
def stateful_set_with_volumes(s: Space) -> Made:
    claim = {"metadata": {"name": "data"}, "spec": _claim()}
    template = s.template("db", mounts=[{"name": "data", "mountPath": "/data"}])
    return [s.stateful_set("db", 1, template, volumeClaimTemplates=[claim])], [Scale(s.target("sts", "db"), 2)]


@scenario()
def delete_stateful_set(s: Space) -> Made:
    return [s.stateful_set("db", 3)], [Delete(s.target("sts", "db"))]


@scenario()
def daemon_set_rolls(s: Space) -> Made:
    return [s.daemon_set("agent", template=s.template("agent"))], [SetImage(s.target("ds", "agent"), "app:2")]


@scenario(nodes="aaa")
def new_daemon_set(s: Space) -> Made:
    return [s.deployment("web", 1)], [Apply(s.daemon_set("agent", template=s.template("agent")))]


def _claim() -> Tree:
    return {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "standard",
        "resources": {"requests": {"storage": "1Gi"}},
    }


@scenario()
def new_claim_of_a_deployment(s: Space) -> Made:
    volume = {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}
    template = s.template("web", mounts=[{"name": "data", "mountPath": "/data"}], volumes=[volume])
    claim = s.doc("v1", "PersistentVolumeClaim", "data", _claim())
    return [s.deployment("old", 1)], [Apply(claim), Apply(s.deployment("web", 1, template))]


# -- jobs


@scenario()
def new_job(s: Space) -> Made:
    return [s.deployment("web", 1)], [Apply(s.job("work", completions=4, parallelism=2))]


@scenario()
def new_indexed_job(s: Space) -> Made:
    return [s.deployment("web", 1)], [Apply(s.job("work", completions=3, parallelism=3, completionMode="Indexed"))]


@scenario(watched_s=75.0)
def job_that_fails(s: Space) -> Made:
    job = s.job("work", {"run-time": "2s", "exit-code": "1"}, backoffLimit=2)
    return [s.deployment("web", 1)], [Apply(job)]


@scenario(watched_s=60.0)
def job_with_ttl(s: Space) -> Made:
    return [s.deployment("web", 1)], [Apply(s.job("work", completions=1, ttlSecondsAfterFinished=10))]


@scenario()
def job_resumed(s: Space) -> Made:
    held = s.job("work", completions=2, suspend=True)
    return [held], [Apply(s.job("work", completions=2, suspend=False))]


@scenario()
def delete_running_job(s: Space) -> Made:
    return [s.job("work", {"run-time": "10m"}, completions=2, parallelism=2)], [Delete(s.target("job", "work"))]


@scenario(watched_s=200.0)
def cron_job(s: Space) -> Made:
    return [s.deployment("web", 1)], [Apply(s.cron_job("tick", "* * * * *", successfulJobsHistoryLimit=1))]


@scenario(watched_s=130.0)
def cron_job_that_replaces(s: Space) -> Made:
    job = s.cron_job("tick", "* * * * *", concurrencyPolicy="Replace")
    template = job["spec"]["jobTemplate"]["spec"]["template"]
    template["metadata"]["annotations"] = {f"{SANDBOX}/run-time": "10m"}
    return [s.deployment("web", 1)], [Apply(job)]


# -- namespaces


@scenario()
def delete_namespace(s: Space) -> Made:
    return [s.deployment("web", 2), s.service("web"), s.job("work")], [Delete(Target("namespace", s.name))]


@scenario(watched_s=60.0)
def delete_namespace_with_finalizer(s: Space) -> Made:
    held = s.service("held")
    held["metadata"]["finalizers"] = ["example.com/hold"]
    return [s.deployment("web", 1), held], [Delete(Target("namespace", s.name))]


@scenario()
def new_namespace(s: Space) -> Made:
    name = f"{s.name}-more"
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    other = Space(name)
    deployment = other.deployment("web", 1)
    deployment["spec"]["template"]["spec"]["nodeSelector"] = {POOL: s.name}
    return [s.deployment("web", 1)], [Apply(namespace), Apply(deployment)]


# -- nodes


@scenario(nodes="aaa")
def drain(s: Space) -> Made:
    return [s.deployment("web", 6), s.service("web")], [Drain(s.node(1))]


@scenario(nodes="aaa", watched_s=60.0)
def drain_with_budget(s: Space) -> Made:
    template = s.template("web", notes={"ready-delay": "3s"})
    return [s.deployment("web", 6, template), s.budget("web", maxUnavailable=1)], [Drain(s.node(1))]


@scenario(nodes="aaa")
def drain_that_is_blocked(s: Space) -> Made:
    return [s.deployment("web", 4), s.budget("web", minAvailable=4)], [Drain(s.node(1))]


@scenario(nodes="aaa")
def drain_of_stateful_set(s: Space) -> Made:
    return [s.stateful_set("db", 3), s.daemon_set("agent", template=s.template("agent"))], [Drain(s.node(1))]


@scenario(nodes="aa")
def drain_without_room(s: Space) -> Made:
    return [s.deployment("web", 2, s.template("web", cpu="3"))], [Drain(s.node(1))]


@scenario(nodes="abc", watched_s=110.0)
def node_lost(s: Space) -> Made:
    return [s.deployment("web", 6), s.service("web")], [FailNode(s.node(1))]


@scenario(nodes="abc", watched_s=110.0)
def node_with_stateful_set_lost(s: Space) -> Made:
    return [s.stateful_set("db", 3)], [FailNode(s.node(1))]


@scenario(nodes="aabb", watched_s=110.0)
def zone_lost(s: Space) -> Made:
    return [s.deployment("web", 8)], [FailNode(s.node(1)), FailNode(s.node(2))]


@scenario(nodes="aaa", watched_s=90.0)
def node_removed(s: Space) -> Made:
    return [s.deployment("web", 6), s.service("web")], [RemoveNode(s.node(1))]


@scenario(nodes="a")
def node_added(s: Space) -> Made:
    return [s.deployment("web", 3, s.template("web", cpu="3"))], [AddNode(s.node(1), 2)]


@scenario(nodes="a")
def node_added_for_daemon_set(s: Space) -> Made:
    return [s.daemon_set("agent", template=s.template("agent"))], [AddNode(s.node(1))]
