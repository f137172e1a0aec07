"""Pods and their controllers."""

from typing import Any

from kcm_cli.sandbox.usage.api import MetricsApi
from tests.kit.simulation import World
from tests.kit.workload import deployment, job, stateful_set, template
from tests.simulation.stories.kit import (
    NODES,
    PODS,
    Step,
    Story,
    Tree,
    create,
    create_doc,
    delete,
    kind,
    patch,
    pod_spec,
    together,
    until,
)

DEPLOYMENTS, STATEFUL_SETS = kind("apps/v1/deployments"), kind("apps/v1/statefulsets")
DAEMON_SETS, REPLICA_SETS = kind("apps/v1/daemonsets"), kind("apps/v1/replicasets")
CONTROLLERS = kind("v1/replicationcontrollers")
JOBS, CRON_JOBS = kind("batch/v1/jobs"), kind("batch/v1/cronjobs")
AUTOSCALERS = kind("autoscaling/v2/horizontalpodautoscalers")
BUDGETS, QUOTAS = kind("policy/v1/poddisruptionbudgets"), kind("v1/resourcequotas")


def claiming() -> Tree:
    doc = stateful_set("db", 2)
    size = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    doc["spec"]["volumeClaimTemplates"] = [{"metadata": {"name": "data"}, "spec": size}]
    doc["spec"]["persistentVolumeClaimRetentionPolicy"] = {"whenDeleted": "Delete", "whenScaled": "Delete"}
    doc["spec"]["template"]["spec"]["containers"][0]["volumeMounts"] = [{"name": "data", "mountPath": "/data"}]
    return doc


def selected(name: str, version: str = "v1", **spec: Any) -> Tree:
    return {"selector": {"matchLabels": {"app": name}}, "template": template(name, version), **spec}


def ending(name: str, code: int, completions: int = 1, **spec: Any) -> Tree:
    """A Job whose pods end with this code."""
    doc = job(name, completions)
    doc["spec"]["template"]["metadata"]["annotations"]["sandbox.kcm.dev/exit-code"] = str(code)
    doc["spec"] |= spec
    return doc


def metered(world: World) -> Any:
    world.server.api.aggregate(MetricsApi(world.server.store, world.clock))


async def meters(world: World) -> None:
    """Install a metrics server."""
    world.server.api.aggregate(MetricsApi(world.server.store, world.clock))


def loaded(total: str) -> Tree:
    return {"annotations": {"sandbox.kcm.dev/cpu-total": total}}


def busy() -> Tree:
    doc = deployment("web", 1)
    doc["metadata"] |= loaded("400m")
    doc["spec"]["template"]["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "100m"}}
    return doc


def rebuilt(count: str) -> Step:
    return patch(DAEMON_SETS, "agent", {"spec": {"template": template("agent", count)}})


CPU = {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}}
SCALED = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
LASTING = ending("work", 0, 3, ttlSecondsAfterFinished=60)
RUN = ending("run", 0)["spec"]
NIGHTLY = {
    "schedule": "5,10,15 * * * *",
    "successfulJobsHistoryLimit": 1,
    "jobTemplate": {"spec": {**RUN, "backoffLimit": 0}},
}

STORIES = {
    "deployment": Story(
        about=("deployment", "replicaset", "garbage-collector"),
        nodes=3,
        steps=(
            create_doc(DEPLOYMENTS, deployment("web", 2)),
            patch(DEPLOYMENTS, "web", {"spec": {"template": template("web", "v2")}}),
            patch(DEPLOYMENTS, "web", {"spec": {"replicas": 1}}),
            delete(DEPLOYMENTS, "web", "Foreground"),
        ),
    ),
    "orphans": Story(
        about=("replicaset", "garbage-collector"),
        steps=(
            create_doc(REPLICA_SETS, {"metadata": {"name": "web"}, "spec": selected("web", replicas=2)}),
            delete(REPLICA_SETS, "web", "Orphan"),
            create_doc(REPLICA_SETS, {"metadata": {"name": "heir"}, "spec": selected("web", replicas=1)}),
            patch(REPLICA_SETS, "heir", {"spec": {"replicas": 0}}),
        ),
    ),
    "statefulset": Story(
        about=("statefulset", "garbage-collector", "persistentvolume-binder", "persistentvolumeclaim-protection"),
        nodes=3,
        steps=(
            create_doc(STATEFUL_SETS, claiming()),
            patch(STATEFUL_SETS, "db", {"spec": {"template": template("db", "v2")}}),
            patch(STATEFUL_SETS, "db", {"spec": {"replicas": 1}}),
            delete(STATEFUL_SETS, "db"),
        ),
    ),
    "daemonset": Story(
        about=("daemonset", "garbage-collector"),
        nodes=2,
        steps=(
            create(DAEMON_SETS, "agent", spec=selected("agent")),
            rebuilt("v2"),
            patch(NODES, "node-1", {"metadata": {"labels": {"pool": "other"}}}),
            patch(DAEMON_SETS, "agent", {"spec": {"template": {"spec": {"nodeSelector": {"pool": "other"}}}}}),
            delete(DAEMON_SETS, "agent"),
        ),
    ),
    "job": Story(
        about=("job", "ttl-after-finished", "garbage-collector"),
        nodes=3,
        steps=(
            create_doc(JOBS, LASTING),
            together(create_doc(JOBS, job("short", 2)), delete(JOBS, "short")),
        ),
    ),
    "failing-job": Story(
        about=("job",),
        nodes=1,
        steps=(
            create_doc(JOBS, ending("bad", 1, backoffLimit=1)),
            create_doc(JOBS, ending("parts", 0, 2, completionMode="Indexed")),
            create_doc(JOBS, ending("held", 0, suspend=True)),
            patch(JOBS, "held", {"spec": {"suspend": False}}),
        ),
    ),
    "cronjob": Story(
        about=("cronjob", "job"),
        nodes=1,
        steps=(
            create(CRON_JOBS, "nightly", spec=NIGHTLY),
            until(450),
            until(1200),
            patch(CRON_JOBS, "nightly", {"spec": {"suspend": True}}),
            delete(CRON_JOBS, "nightly"),
        ),
    ),
    "replicationcontroller": Story(
        about=("replicationcontroller",),
        nodes=1,
        steps=(
            create(
                CONTROLLERS, "rc", spec={"replicas": 2, "selector": {"app": "rc"}, "template": template("rc", "v1")}
            ),
            patch(CONTROLLERS, "rc", {"spec": {"replicas": 1}}),
        ),
    ),
    "autoscaler": Story(
        about=("horizontal-pod-autoscaler", "deployment"),
        nodes=1,
        before=(meters,),
        flags=("--horizontal-pod-autoscaler-cpu-initialization-period=0s",),
        steps=(
            create_doc(DEPLOYMENTS, busy()),
            create(AUTOSCALERS, "web", spec={"scaleTargetRef": SCALED, "maxReplicas": 10, "metrics": [CPU]}),
            until(480),
            patch(DEPLOYMENTS, "web", {"metadata": loaded("80m")}),
            until(1200),
        ),
    ),
    "disruption": Story(
        about=("disruption", "resourcequota"),
        nodes=1,
        steps=(
            create(BUDGETS, "web", spec={"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}}),
            create(QUOTAS, "all", spec={"hard": {"pods": "10", "count/deployments.apps": "5"}}),
            create_doc(DEPLOYMENTS, deployment("web", 2)),
            patch(BUDGETS, "web", {"spec": {"minAvailable": 2}}),
            patch(QUOTAS, "all", {"spec": {"hard": {"pods": "5"}}}),
            delete(DEPLOYMENTS, "web"),
        ),
    ),
    "finished-pods": Story(
        about=("pod-garbage-collector",),
        nodes=1,
        flags=("--terminated-pod-gc-threshold=1",),
        steps=(
            together(
                *(
                    create(
                        PODS,
                        name,
                        metadata={"annotations": {"sandbox.kcm.dev/run-time": f"{5 + number}s"}},
                        spec=pod_spec(restartPolicy="Never"),
                    )
                    for number, name in enumerate(("a", "b", "c"))
                )
            ),
        ),
    ),
}
