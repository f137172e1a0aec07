"""What users do, kind by kind, for the controllers to follow: each story is a list of steps."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from kcm_cli.api.apps import DEPLOYMENTS, STATEFUL_SETS
from kcm_cli.api.batch import JOBS
from kcm_cli.api.core import NAMESPACES, PERSISTENT_VOLUME_CLAIMS
from kcm_cli.planning.actions import MERGE
from tests.simulation.workload import deployment, job, stateful_set, template
from tests.simulation.world import NAMESPACE, World

Tree = dict[str, Any]
Step = Callable[[World], Awaitable[None]]


def made(path: str, doc: Tree) -> Step:
    async def step(world: World) -> None:
        await world.create(path, doc)

    return step


def patched(resource: Any, name: str, body: Tree) -> Step:
    async def step(world: World) -> None:
        await world.client.patch(resource, NAMESPACE, name, body, content_type=MERGE)

    return step


def gone(resource: Any, name: str, propagation: str = "Background") -> Step:
    async def step(world: World) -> None:
        namespace = "" if resource is NAMESPACES else NAMESPACE
        await world.client.delete(resource, namespace, name, propagation=propagation)

    return step


def together(*steps: Step) -> Step:
    async def step(world: World) -> None:
        for one in steps:
            await one(world)

    return step


def of(version: str, kind: str, name: str, **fields: Any) -> Tree:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name, "namespace": NAMESPACE}, **fields}


def claiming() -> Tree:
    doc = stateful_set("db", 2)
    size = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    doc["spec"]["volumeClaimTemplates"] = [{"metadata": {"name": "data"}, "spec": size}]
    doc["spec"]["persistentVolumeClaimRetentionPolicy"] = {"whenDeleted": "Delete", "whenScaled": "Delete"}
    doc["spec"]["template"]["spec"]["containers"][0]["volumeMounts"] = [{"name": "data", "mountPath": "/data"}]
    return doc


def daemon_set() -> Tree:
    spec = {"selector": {"matchLabels": {"app": "agent"}}, "template": template("agent", "v1")}
    return of("apps/v1", "DaemonSet", "agent", spec=spec)


SERVICE = of("v1", "Service", "web", spec={"selector": {"app": "web"}, "ports": [{"port": 80}]})
BUDGET = of(
    "policy/v1", "PodDisruptionBudget", "web", spec={"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}}
)
QUOTA = of("v1", "ResourceQuota", "all", spec={"hard": {"pods": "10", "count/deployments.apps": "5"}})
CONTROLLER = of(
    "v1",
    "ReplicationController",
    "rc",
    spec={"replicas": 2, "selector": {"app": "rc"}, "template": template("rc", "v1")},
)
SPACE: Tree = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "extra"}}
LASTING = {**job("work", 3)}
LASTING["spec"] = {**LASTING["spec"], "ttlSecondsAfterFinished": 60}

STORIES: Mapping[str, Sequence[Step]] = {
    "deployment": (
        made("apps/v1/deployments", deployment("web", 2)),
        patched(DEPLOYMENTS, "web", {"spec": {"template": template("web", "v2")}}),
        patched(DEPLOYMENTS, "web", {"spec": {"replicas": 1}}),
        gone(DEPLOYMENTS, "web", "Foreground"),
    ),
    "statefulset": (
        made("apps/v1/statefulsets", claiming()),
        patched(STATEFUL_SETS, "db", {"spec": {"template": template("db", "v2")}}),
        patched(STATEFUL_SETS, "db", {"spec": {"replicas": 1}}),
        gone(STATEFUL_SETS, "db"),
    ),
    "daemonset": (made("apps/v1/daemonsets", daemon_set()),),
    "job": (made("batch/v1/jobs", LASTING), together(made("batch/v1/jobs", job("short", 2)), gone(JOBS, "short"))),
    "service": (
        together(
            made("apps/v1/deployments", deployment("web", 2)),
            made("v1/services", SERVICE),
            made("policy/v1/poddisruptionbudgets", BUDGET),
            made("v1/resourcequotas", QUOTA),
        ),
        gone(DEPLOYMENTS, "web"),
    ),
    "replicationcontroller": (made("v1/replicationcontrollers", CONTROLLER),),
    "namespace": (made("v1/namespaces", SPACE), gone(NAMESPACES, "extra")),
    "claim": (
        made(
            "v1/persistentvolumeclaims",
            of(
                "v1",
                "PersistentVolumeClaim",
                "c",
                spec={"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
            ),
        ),
        gone(PERSISTENT_VOLUME_CLAIMS, "c"),
    ),
}
