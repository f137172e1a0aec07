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
from tests.kit.space import POOL, SANDBOX, Space, Tree


@dataclass(frozen=True)
class Scenario:
    """nodes: zone letters, one for each node. ready_s: until things are quiet. watched_s: after the change.
    load: the CPU that the pods of a Deployment use together before it, in thousandths."""

    name: str
    setup: tuple[Tree, ...]
    changes: tuple[Change, ...]
    nodes: str = "aa"
    ready_s: float = 20.0
    watched_s: float = 40.0
    load: tuple[tuple[str, int], ...] = ()


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


# -- more deployments


@scenario()
def roll_out_resumed(s: Space) -> Made:
    held = s.deployment("web", 2, paused=True)
    return [held], [Apply(s.deployment("web", 2, s.template("web", "app:2"), paused=False))]


@scenario()
def roll_out_all_at_once(s: Space) -> Made:
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "100%", "maxUnavailable": "100%"}}
    return [s.deployment("web", 4, strategy=strategy)], [SetImage(s.target("deploy", "web"), "app:2")]


@scenario(watched_s=60.0)
def roll_out_and_scale(s: Space) -> Made:
    web = s.target("deploy", "web")
    return [s.deployment("web", 4), s.budget("web", minAvailable=2)], [SetImage(web, "app:2"), Scale(web, 8)]


@scenario()
def roll_out_without_history(s: Space) -> Made:
    return [s.deployment("web", 2, revisionHistoryLimit=0)], [SetImage(s.target("deploy", "web"), "app:2")]


@scenario()
def roll_out_of_an_image_that_cannot_be_named(s: Space) -> Made:
    return [s.deployment("web", 3)], [SetImage(s.target("deploy", "web"), "App:?")]


@scenario()
def template_labels_only(s: Space) -> Made:
    template = s.template("web")
    template["metadata"]["labels"]["tier"] = "front"
    return [s.deployment("web", 2), s.service("web")], [Apply(s.deployment("web", 2, template))]


@scenario()
def replica_set_of_a_deployment_deleted(s: Space) -> Made:
    spec = {"replicas": 2, "selector": {"matchLabels": {"app": "bare"}}, "template": s.template("bare")}
    return [s.doc("apps/v1", "ReplicaSet", "bare", spec), s.deployment("web", 2)], [Delete(s.target("rs", "bare"))]


@scenario()
def delete_deployment_as_orphan(s: Space) -> Made:
    return [s.deployment("web", 3)], [Delete(s.target("deploy", "web"), "Orphan")]


@scenario()
def delete_deployment_in_foreground(s: Space) -> Made:
    return [s.deployment("web", 3), s.service("web")], [Delete(s.target("deploy", "web"), "Foreground")]


@scenario()
def delete_job_as_orphan(s: Space) -> Made:
    return [s.job("work", {"run-time": "10m"}, completions=2, parallelism=2)], [
        Delete(s.target("job", "work"), "Orphan")
    ]


@scenario()
def pods_adopted(s: Space) -> Made:
    pods = [s.doc("v1", "Pod", f"loose-{number}", s.template("web")["spec"]) for number in range(2)]
    for pod in pods:
        pod["metadata"]["labels"] = {"app": "web"}
    spec = {"replicas": 3, "selector": {"matchLabels": {"app": "web"}}, "template": s.template("web")}
    return pods, [Apply(s.doc("apps/v1", "ReplicaSet", "web", spec))]


@scenario()
def pod_evicted_for_others(s: Space) -> Made:
    first = s.template("low", cpu="3")
    second = s.template("high", cpu="3", priorityClassName="system-cluster-critical")
    return [s.deployment("low", 2, first)], [Apply(s.deployment("high", 1, second))]


# -- autoscalers


def _cpu(percent: int) -> Tree:
    return {
        "type": "Resource",
        "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": percent}},
    }


@scenario(watched_s=100.0, load=(("web", 80),))
def autoscaler_moved_up(s: Space) -> Made:
    return [s.deployment("web", 2), s.autoscaler("web", _cpu(50))], [s.load("web", 180)]


@scenario(watched_s=100.0, load=(("web", 320),))
def autoscaler_moved_down(s: Space) -> Made:
    down = {"scaleDown": {"stabilizationWindowSeconds": 0}}
    return [s.deployment("web", 8), s.autoscaler("web", _cpu(50), behavior=down)], [s.load("web", 10)]


@scenario(watched_s=100.0, load=(("web", 80),))
def autoscaler_at_its_limit(s: Space) -> Made:
    return [s.deployment("web", 2), s.autoscaler("web", _cpu(50), most=3)], [s.load("web", 400)]


@scenario(watched_s=100.0, load=(("web", 80),))
def autoscaler_by_value_and_service(s: Space) -> Made:
    value = {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "AverageValue", "averageValue": "50m"}}}
    setup = [s.deployment("web", 2), s.service("web"), s.budget("web", maxUnavailable=1), s.autoscaler("web", value)]
    return setup, [s.load("web", 150)]


@scenario(watched_s=90.0, load=(("web", 80),))
def autoscaler_applied(s: Space) -> Made:
    return [s.deployment("web", 1), s.autoscaler("web", _cpu(50), least=1)], [
        Apply(s.autoscaler("web", _cpu(50), least=4, most=8))
    ]


@scenario(watched_s=60.0, load=(("web", 80),))
def autoscaler_against_a_scale(s: Space) -> Made:
    return [s.deployment("web", 2), s.autoscaler("web", _cpu(50))], [Scale(s.target("deploy", "web"), 12)]


# -- more stateful sets and daemon sets


@scenario()
def stateful_set_partition_lowered(s: Space) -> Made:
    def set_(partition: int, image: str) -> Tree:
        strategy = {"type": "RollingUpdate", "rollingUpdate": {"partition": partition}}
        return s.stateful_set("db", 3, s.template("db", image), updateStrategy=strategy)

    return [set_(0, "app:1"), set_(2, "app:2")], [Apply(set_(0, "app:2"))]


@scenario()
def stateful_set_with_claims_deleted(s: Space) -> Made:
    claim = {"metadata": {"name": "data"}, "spec": _claim()}
    template = s.template("db", mounts=[{"name": "data", "mountPath": "/data"}])
    policy = {"whenDeleted": "Delete", "whenScaled": "Delete"}
    set_ = s.stateful_set("db", 3, template, volumeClaimTemplates=[claim], persistentVolumeClaimRetentionPolicy=policy)
    return [set_], [Scale(s.target("sts", "db"), 1)]


@scenario()
def stateful_set_beyond_capacity(s: Space) -> Made:
    return [s.stateful_set("db", 1, s.template("db", cpu="3"))], [Scale(s.target("sts", "db"), 4)]


@scenario(watched_s=60.0)
def stateful_set_that_hangs(s: Space) -> Made:
    bad = s.template("db", "app:2", notes={"ready-delay": "never"})
    return [s.stateful_set("db", 3)], [Apply(s.stateful_set("db", 3, bad))]


@scenario()
def delete_stateful_set_as_orphan(s: Space) -> Made:
    return [s.stateful_set("db", 2)], [Delete(s.target("sts", "db"), "Orphan")]


@scenario(nodes="aaa")
def daemon_set_with_surge(s: Space) -> Made:
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}
    return [s.daemon_set("agent", updateStrategy=strategy)], [SetImage(s.target("ds", "agent"), "app:2")]


@scenario()
def daemon_set_on_delete(s: Space) -> Made:
    return [s.daemon_set("agent", updateStrategy={"type": "OnDelete"})], [SetImage(s.target("ds", "agent"), "app:2")]


@scenario(nodes="aaa", watched_s=90.0)
def node_of_daemon_set_removed(s: Space) -> Made:
    return [s.daemon_set("agent"), s.deployment("web", 3)], [RemoveNode(s.node(1))]


@scenario()
def delete_daemon_set_in_foreground(s: Space) -> Made:
    return [s.daemon_set("agent")], [Delete(s.target("ds", "agent"), "Foreground")]


@scenario()
def new_controller_of_replicas(s: Space) -> Made:
    spec = {"replicas": 2, "selector": {"app": "web"}, "template": s.template("web")}
    return [s.service("web")], [Apply(s.doc("v1", "ReplicationController", "web", spec))]


# -- more jobs


@scenario(watched_s=60.0)
def job_that_fails_by_policy(s: Space) -> Made:
    rule = {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [3]}}
    job = s.job("work", {"run-time": "2s", "exit-code": "3"}, backoffLimit=6, podFailurePolicy={"rules": [rule]})
    return [s.deployment("web", 1)], [Apply(job)]


@scenario(watched_s=60.0)
def job_that_fails_by_index(s: Space) -> Made:
    notes = {"run-time": "2s", "exit-code": "1"}
    more = {"completionMode": "Indexed", "backoffLimitPerIndex": 0, "maxFailedIndexes": 2}
    return [s.deployment("web", 1)], [Apply(s.job("work", notes, completions=2, parallelism=2, **more))]


@scenario()
def job_with_success_policy(s: Space) -> Made:
    policy = {"rules": [{"succeededIndexes": "0"}]}
    more = {"completionMode": "Indexed", "successPolicy": policy}
    return [s.deployment("web", 1)], [Apply(s.job("work", completions=3, parallelism=1, **more))]


@scenario(watched_s=60.0)
def job_past_its_deadline(s: Space) -> Made:
    job = s.job("work", {"run-time": "10m"}, completions=2, parallelism=2, activeDeadlineSeconds=10)
    return [s.deployment("web", 1)], [Apply(job)]


@scenario()
def job_suspended(s: Space) -> Made:
    notes = {"run-time": "10m"}
    running = s.job("work", notes, completions=2, parallelism=2, suspend=False)
    return [running], [Apply(s.job("work", notes, completions=2, parallelism=2, suspend=True))]


@scenario(watched_s=60.0)
def job_drained(s: Space) -> Made:
    return [s.job("work", {"run-time": "10m"}, completions=2, parallelism=2)], [Drain(s.node(1))]


@scenario(watched_s=60.0)
def job_drained_and_ignored(s: Space) -> Made:
    rule = {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}
    more = {"podFailurePolicy": {"rules": [rule]}, "backoffLimit": 0, "podReplacementPolicy": "Failed"}
    return [s.job("work", {"run-time": "10m"}, completions=2, parallelism=2, **more)], [Drain(s.node(1))]


@scenario(watched_s=200.0)
def cron_job_that_forbids(s: Space) -> Made:
    job = s.cron_job("tick", "* * * * *", concurrencyPolicy="Forbid")
    job["spec"]["jobTemplate"]["spec"]["template"]["metadata"]["annotations"] = {f"{SANDBOX}/run-time": "90s"}
    return [s.deployment("web", 1)], [Apply(job)]


@scenario(watched_s=130.0)
def cron_job_suspended(s: Space) -> Made:
    return [s.cron_job("tick", "* * * * *", suspend=False)], [Apply(s.cron_job("tick", "* * * * *", suspend=True))]


@scenario(watched_s=130.0)
def cron_job_resumed(s: Space) -> Made:
    return [s.cron_job("tick", "* * * * *", suspend=True)], [Apply(s.cron_job("tick", "* * * * *", suspend=False))]


@scenario(watched_s=190.0)
def cron_job_of_failures(s: Space) -> Made:
    job = s.cron_job("tick", "* * * * *", failedJobsHistoryLimit=1)
    spec = job["spec"]["jobTemplate"]["spec"]
    spec["backoffLimit"] = 0
    spec["template"]["metadata"]["annotations"] = {f"{SANDBOX}/run-time": "2s", f"{SANDBOX}/exit-code": "1"}
    return [s.deployment("web", 1)], [Apply(job)]


@scenario()
def delete_cron_job(s: Space) -> Made:
    job = s.cron_job("tick", "* * * * *")
    job["spec"]["jobTemplate"]["spec"]["template"]["metadata"]["annotations"] = {f"{SANDBOX}/run-time": "10m"}
    return [job], [Delete(s.target("cronjob", "tick"))]


# -- more of nodes


@scenario()
def node_cordoned(s: Space) -> Made:
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": s.node(1)}, "spec": {"unschedulable": True}}
    return [s.deployment("web", 2), s.daemon_set("agent")], [Apply(node), Scale(s.target("deploy", "web"), 6)]


@scenario(watched_s=60.0)
def node_tainted(s: Space) -> Made:
    taint = {"key": "example.com/away", "effect": "NoExecute"}
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": s.node(1)}, "spec": {"taints": [taint]}}
    return [s.deployment("web", 4), s.daemon_set("agent")], [Apply(node)]


@scenario(nodes="aa", watched_s=60.0)
def drain_with_volumes(s: Space) -> Made:
    claim = {"metadata": {"name": "data"}, "spec": _claim()}
    template = s.template("db", mounts=[{"name": "data", "mountPath": "/data"}])
    return [s.stateful_set("db", 2, template, volumeClaimTemplates=[claim])], [Drain(s.node(1))]


@scenario(nodes="aa")
def drain_of_unhealthy_pods(s: Space) -> Made:
    template = s.template("web", notes={"ready-delay": "never"})
    budget = s.budget("web", minAvailable=1, unhealthyPodEvictionPolicy="AlwaysAllow")
    return [s.deployment("web", 2, template), budget], [Drain(s.node(1))]


@scenario(nodes="aa")
def drain_of_unhealthy_pods_blocked(s: Space) -> Made:
    template = s.template("web", notes={"ready-delay": "never"})
    budget = s.budget("web", minAvailable=1, unhealthyPodEvictionPolicy="IfHealthyBudget")
    return [s.deployment("web", 2, template), budget], [Drain(s.node(1))]


@scenario(nodes="aabbcc", watched_s=110.0)
def zone_of_three_lost(s: Space) -> Made:
    spread = {"maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "ScheduleAnyway"}
    spread["labelSelector"] = {"matchLabels": {"app": "web"}}
    setup = [
        s.deployment("web", 6, s.template("web", topologySpreadConstraints=[spread])),
        s.service("web"),
        s.budget("web", maxUnavailable=1),
        s.stateful_set("db", 3),
        s.daemon_set("agent"),
    ]
    return setup, [FailNode(s.node(1)), FailNode(s.node(2))]


@scenario(nodes="aaa", watched_s=110.0)
def node_lost_with_jobs_and_volumes(s: Space) -> Made:
    claim = {"metadata": {"name": "data"}, "spec": _claim()}
    template = s.template("db", mounts=[{"name": "data", "mountPath": "/data"}])
    setup = [
        s.stateful_set("db", 3, template, volumeClaimTemplates=[claim]),
        s.job("work", {"run-time": "10m"}, completions=3, parallelism=3),
    ]
    return setup, [FailNode(s.node(1))]


# -- services, budgets, quotas, volumes and namespaces


@scenario()
def service_without_selector(s: Space) -> Made:
    service = s.service("outer")
    service["spec"].pop("selector")
    subsets = [{"addresses": [{"ip": "192.0.2.7"}], "ports": [{"port": 80}]}]
    endpoints = s.doc("v1", "Endpoints", "outer", subsets=subsets)
    return [s.deployment("web", 1)], [Apply(service), Apply(endpoints)]


@scenario()
def service_of_unready_pods(s: Space) -> Made:
    template = s.template("web", notes={"ready-delay": "never"})
    headless = s.service("web", clusterIP="None", publishNotReadyAddresses=True)
    return [s.deployment("web", 2, template)], [Apply(headless)]


@scenario()
def budget_changed(s: Space) -> Made:
    return [s.deployment("web", 3), s.budget("web", minAvailable=1)], [Apply(s.budget("web", minAvailable=3))]


@scenario()
def quota_added(s: Space) -> Made:
    quota = s.doc("v1", "ResourceQuota", "few", {"hard": {"pods": "3", "count/services": "2"}})
    return [s.deployment("web", 3), s.service("web")], [Apply(quota), Scale(s.target("deploy", "web"), 4)]


@scenario()
def limit_range_added(s: Space) -> Made:
    limits = [{"type": "Container", "max": {"cpu": "50m"}}]
    change = [Apply(s.doc("v1", "LimitRange", "small", {"limits": limits})), Scale(s.target("deploy", "web"), 3)]
    return [s.deployment("web", 2)], change


@scenario()
def claim_in_use_deleted(s: Space) -> Made:
    volume = {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}
    template = s.template("web", mounts=[{"name": "data", "mountPath": "/data"}], volumes=[volume])
    claim = s.doc("v1", "PersistentVolumeClaim", "data", _claim())
    return [claim, s.deployment("web", 1, template)], [Delete(s.target("pvc", "data"))]


@scenario()
def claim_and_pod_deleted(s: Space) -> Made:
    volume = {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}
    template = s.template("web", mounts=[{"name": "data", "mountPath": "/data"}], volumes=[volume])
    claim = s.doc("v1", "PersistentVolumeClaim", "data", _claim())
    return [claim, s.deployment("web", 1, template)], [
        Delete(s.target("deploy", "web")),
        Delete(s.target("pvc", "data")),
    ]


@scenario(watched_s=60.0)
def delete_namespace_with_everything(s: Space) -> Made:
    claim = {"metadata": {"name": "data"}, "spec": _claim()}
    template = s.template("db", mounts=[{"name": "data", "mountPath": "/data"}])
    setup = [
        s.stateful_set("db", 2, template, volumeClaimTemplates=[claim]),
        s.daemon_set("agent"),
        s.cron_job("tick", "0 0 1 1 *"),
        s.budget("db", minAvailable=1),
        s.doc("v1", "ResourceQuota", "few", {"hard": {"pods": "30"}}),
    ]
    return setup, [Delete(Target("namespace", s.name))]


@scenario(watched_s=60.0)
def delete_namespace_with_held_pod(s: Space) -> Made:
    pod = s.doc("v1", "Pod", "held", s.template("held")["spec"])
    pod["metadata"]["finalizers"] = ["example.com/hold"]
    return [pod], [Delete(Target("namespace", s.name))]


@scenario()
def service_account_deleted(s: Space) -> Made:
    return [s.deployment("web", 1)], [Delete(s.target("serviceaccount", "default"))]


@scenario()
def pod_deleted(s: Space) -> Made:
    return [s.stateful_set("db", 2), s.budget("db", minAvailable=1)], [Delete(s.target("pod", "db-0"))]
