"""A write that is refused for good, by a policy or a quota, does not keep a status from being told.

Each scenario changes a workload while all is well, to see which writes that takes. Then each of these is refused.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from kcm_cli.controllers.cronjob.config import CronJobConfig
from kcm_cli.controllers.daemonset.config import DaemonSetConfig
from kcm_cli.controllers.deployment.config import DeploymentConfig
from kcm_cli.controllers.horizontal_pod_autoscaler.config import HorizontalPodAutoscalerConfig
from kcm_cli.controllers.job.config import JobConfig
from kcm_cli.controllers.replicaset.config import ReplicaSetConfig
from kcm_cli.controllers.replicationcontroller.config import ReplicationControllerConfig
from kcm_cli.controllers.statefulset.config import StatefulSetConfig
from kcm_cli.manager.controller_map import CONTROLLERS
from kcm_cli.sandbox.apiserver.entrance import Answer, Asked, Proceed
from tests.kit.controlling import controllers
from tests.kit.faults import refusal
from tests.kit.places import ROOT
from tests.kit.world import NODES, PODS, World, resource

Step = Callable[[World], Awaitable[None]]
DEPLOYMENTS, REPLICA_SETS = resource("deployments", "apps"), resource("replicasets", "apps")
STATEFUL_SETS, DAEMON_SETS = resource("statefulsets", "apps"), resource("daemonsets", "apps")
REPLICATION_CONTROLLERS = resource("replicationcontrollers")
JOBS, CRON_JOBS = resource("jobs", "batch"), resource("cronjobs", "batch")
AUTOSCALERS = resource("horizontalpodautoscalers", "autoscaling", "v2")

CONFIGS = (
    CronJobConfig(), DaemonSetConfig(), DeploymentConfig(), HorizontalPodAutoscalerConfig(), JobConfig(),
    ReplicaSetConfig(), ReplicationControllerConfig(), StatefulSetConfig(),
)  # fmt: skip


@dataclass(frozen=True)
class Scenario:
    """make: before the refusal. change: under it. told: whether the status is right, given whether the present
    generation can be observed."""

    controllers: tuple[str, ...]
    make: Step
    change: Step
    told: Callable[[World, bool], Awaitable[None]]


def template(image: str = "i:1", **spec: Any) -> dict[str, Any]:
    pod = {"containers": [{"name": "c", "image": image}], "terminationGracePeriodSeconds": 1, **spec}
    return {"metadata": {"labels": {"app": "web"}}, "spec": pod}


def selected(**spec: Any) -> dict[str, Any]:
    return {"selector": {"matchLabels": {"app": "web"}}, "template": template(), **spec}


async def owned(world: World, owner: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The living pods that an object controls and selects."""
    return [
        pod
        for pod in await world.items(PODS)
        if any(ref["uid"] == owner["metadata"]["uid"] for ref in pod["metadata"].get("ownerReferences", ()))
        and "deletionTimestamp" not in pod["metadata"]
        and pod["status"].get("phase") not in ("Succeeded", "Failed")
        and pod["metadata"]["labels"].get("app") == "web"
    ]


async def pods_of(world: World, name: str) -> list[str]:
    names = [pod["metadata"]["name"] for pod in await world.items(PODS)]
    return sorted(found for found in names if found.startswith(name))


async def disturb(world: World, name: str) -> None:
    """One pod is deleted, one loses its label, and a stranger has it."""
    first, second, *_ = await pods_of(world, name)
    await world.delete(PODS, first)
    await world.patch(PODS, second, {"metadata": {"labels": {"app": "other"}}})
    await world.pod(f"{name}-7", {"labels": {"app": "web"}})


async def lose_a_pod(world: World) -> None:
    """The oldest pod is deleted, and another one could not start."""
    for node in await world.items(NODES):
        await world.patch(NODES, node["metadata"]["name"], {"spec": {"unschedulable": True}})
    oldest = min(await world.items(PODS), key=lambda pod: pod["metadata"]["creationTimestamp"])
    await world.delete(PODS, oldest["metadata"]["name"])


def observed(obj: Mapping[str, Any], *, now: bool) -> None:
    generation = obj["metadata"]["generation"]
    assert (obj["status"].get("observedGeneration", 0) == generation) is now, obj["status"]


async def counted(world: World, obj: dict[str, Any]) -> None:
    mine = await owned(world, obj)
    conditions = [pod["status"].get("conditions", ()) for pod in mine]
    ready = [each for each in conditions if any(c["type"] == "Ready" and c["status"] == "True" for c in each)]
    found = obj["status"].get("replicas", 0), obj["status"].get("readyReplicas", 0)
    assert found == (len(mine), len(ready)), obj["status"]


# -- ReplicaSets and ReplicationControllers


async def make_replica_set(world: World) -> None:
    await world.create(REPLICA_SETS, {"metadata": {"name": "web"}, "spec": selected(replicas=3)})


async def make_rc(world: World) -> None:
    spec = {"replicas": 3, "selector": {"app": "web"}, "template": template()}
    await world.create(REPLICATION_CONTROLLERS, {"metadata": {"name": "web"}, "spec": spec})


def rescale(kind: Any) -> Step:
    async def step(world: World) -> None:
        await disturb(world, "web")
        await world.wait(20)
        await world.patch(kind, "web", {"spec": {"replicas": 1}})
        await world.wait(5)
        await world.patch(kind, "web", {"spec": {"replicas": 4}})

    return step


def replicas_told(kind: Any) -> Callable[[World, bool], Awaitable[None]]:
    async def told(world: World, now: bool) -> None:
        obj = await world.get(kind, "web")
        observed(obj, now=now)
        await counted(world, obj)

    return told


# -- Deployments


async def make_deployment(world: World) -> None:
    spec = selected(replicas=3, progressDeadlineSeconds=100)
    await world.create(DEPLOYMENTS, {"metadata": {"name": "web"}, "spec": spec})


async def roll(world: World) -> None:
    """A stranger's ReplicaSet is adopted, one is released, and a new template is rolled out."""
    labels = {"app": "web", "pod-template-hash": "stranger"}
    odd = {**template("i:0"), "metadata": {"labels": labels}}
    spec = {"replicas": 0, "selector": {"matchLabels": labels}, "template": odd}
    for name in ("web-stranger", "web-released"):
        await world.create(REPLICA_SETS, {"metadata": {"name": name, "labels": labels}, "spec": spec})
    await world.wait(5)
    await world.patch(REPLICA_SETS, "web-released", {"metadata": {"labels": {"app": "other"}}})
    await world.patch(DEPLOYMENTS, "web", {"spec": {"template": template("i:2")}})
    await world.wait(60)
    await world.patch(DEPLOYMENTS, "web", {"spec": {"revisionHistoryLimit": 0}})
    await world.wait(10)
    await lose_a_pod(world)


async def deployment_told(world: World, now: bool) -> None:
    obj = await world.get(DEPLOYMENTS, "web")
    observed(obj, now=now)
    mine = [rs for rs in await world.items(REPLICA_SETS) if rs["metadata"].get("ownerReferences")]
    for field in ("replicas", "readyReplicas", "availableReplicas"):
        assert obj["status"].get(field, 0) == sum(rs["status"].get(field, 0) for rs in mine), obj["status"]
    reasons = {c["type"]: c["reason"] for c in obj["status"]["conditions"]}
    ends = ("NewReplicaSetAvailable", "ProgressDeadlineExceeded" if now else "ReplicaSetCreateError")
    assert reasons["Progressing"] in ends, reasons


# -- DaemonSets


async def make_daemon_set(world: World) -> None:
    await world.create(DAEMON_SETS, {"metadata": {"name": "web"}, "spec": selected(revisionHistoryLimit=0)})


async def roll_daemons(world: World) -> None:
    await disturb(world, "web")
    await world.wait(10)
    for image in ("i:2", "i:3"):
        await world.patch(DAEMON_SETS, "web", {"spec": {"template": template(image)}})
        await world.wait(60)
    await world.patch(DAEMON_SETS, "web", {"spec": {"template": template("i:3", nodeSelector={"no": "where"})}})
    await world.wait(10)
    for name in (await pods_of(world, "web"))[:1]:
        await world.delete(PODS, name)


async def daemons_told(world: World, now: bool) -> None:
    obj = await world.get(DAEMON_SETS, "web")
    observed(obj, now=now)
    mine = await owned(world, obj)
    status = obj["status"]
    nodes = {pod["spec"]["nodeName"] for pod in mine}
    assert status["currentNumberScheduled"] + status["numberMisscheduled"] == len(nodes), status


# -- StatefulSets


async def make_stateful_set(world: World) -> None:
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1"}}}
    policy = {"whenDeleted": "Delete", "whenScaled": "Delete"}
    spec = selected(
        replicas=3,
        serviceName="web",
        revisionHistoryLimit=0,
        podManagementPolicy="Parallel",
        volumeClaimTemplates=[{"metadata": {"name": "data"}, "spec": claim}],
        persistentVolumeClaimRetentionPolicy=policy,
    )
    await world.create(STATEFUL_SETS, {"metadata": {"name": "web"}, "spec": spec})


async def roll_in_order(world: World) -> None:
    for image in ("i:2", "i:3"):
        await world.patch(STATEFUL_SETS, "web", {"spec": {"template": template(image)}})
        await world.wait(60)
    await world.patch(PODS, "web-1", {"metadata": {"labels": {"statefulset.kubernetes.io/pod-name": "odd"}}})
    await world.pod("web-3", {"labels": {"app": "web"}})
    await world.wait(10)
    await world.delete(PODS, "web-0")
    await world.wait(10)
    await world.patch(STATEFUL_SETS, "web", {"spec": {"replicas": 5}})
    await world.wait(10)
    await world.patch(STATEFUL_SETS, "web", {"spec": {"replicas": 2}})


async def stateful_told(world: World, now: bool) -> None:
    obj = await world.get(STATEFUL_SETS, "web")
    observed(obj, now=now)
    await counted(world, obj)


# -- Jobs


async def make_job(world: World) -> None:
    spec = selected(manualSelector=True, completions=9, parallelism=4)
    spec["template"] = template(restartPolicy="Never")
    spec["template"]["metadata"]["annotations"] = {"sandbox.kcm.dev/run-time": "3000s"}
    await world.create(JOBS, {"metadata": {"name": "web"}, "spec": spec})


async def work(world: World) -> None:
    first, *_ = await pods_of(world, "web")
    await world.client.patch(PODS, "default", first, {"status": {"phase": "Succeeded"}}, subresource="status")
    await world.wait(5)
    _, *rest = await pods_of(world, "web")
    await world.patch(PODS, rest[0], {"metadata": {"labels": {"app": "other"}}})
    await world.pod("web-7", {"labels": {"app": "web"}, "restartPolicy": "Never"}, run_time="3000s")
    await world.wait(10)
    await world.patch(JOBS, "web", {"spec": {"parallelism": 1}})


async def job_told(world: World, now: bool) -> None:
    obj = await world.get(JOBS, "web")
    status = obj["status"]
    assert status["active"] == len(await owned(world, obj)), status
    waiting = len(status["uncountedTerminatedPods"].get("succeeded", ()))
    assert status.get("succeeded", 0) + waiting == 1, status


# -- CronJobs and autoscalers


async def make_cron_job(world: World) -> None:
    template = {"spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}}}
    spec = {"schedule": "* * * * *", "concurrencyPolicy": "Replace", "successfulJobsHistoryLimit": 0}
    await world.create(CRON_JOBS, {"metadata": {"name": "web"}, "spec": {**spec, "jobTemplate": template}})


async def let_run(world: World) -> None:
    for job in await world.items(JOBS):
        if not job["status"].get("conditions"):
            ended = {"type": "Complete", "status": "True"}
            met = {"type": "SuccessCriteriaMet", "status": "True"}
            time = {"startTime": "2026-01-01T00:01:00Z", "completionTime": "2026-01-01T00:01:01Z"}
            body = {"status": {"conditions": [met, ended], **time}}
            await world.client.patch(JOBS, "default", job["metadata"]["name"], body, subresource="status")
    await world.wait(130)


async def cron_told(world: World, now: bool) -> None:
    status = (await world.get(CRON_JOBS, "web"))["status"]
    assert "lastSuccessfulTime" in status
    running = {job["metadata"]["uid"] for job in await world.items(JOBS) if not job["status"].get("conditions")}
    assert {entry["uid"] for entry in status.get("active", ())} == running


async def make_autoscaler(world: World) -> None:
    await make_deployment(world)
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    await world.create(AUTOSCALERS, {"metadata": {"name": "web"}, "spec": {"scaleTargetRef": target, "maxReplicas": 5}})


async def lower_bounds(world: World) -> None:
    await world.patch(AUTOSCALERS, "web", {"spec": {"maxReplicas": 2}})


async def autoscaler_told(world: World, now: bool) -> None:
    conditions = (await world.get(AUTOSCALERS, "web"))["status"]["conditions"]
    reasons = {c["type"]: c["reason"] for c in conditions}
    assert reasons["AbleToScale"] == "FailedUpdateScale", reasons


SCENARIOS = {
    "replicaset": Scenario(
        ("replicaset-controller",), make_replica_set, rescale(REPLICA_SETS), replicas_told(REPLICA_SETS)
    ),
    "replicationcontroller": Scenario(
        ("replicationcontroller-controller",),
        make_rc,
        rescale(REPLICATION_CONTROLLERS),
        replicas_told(REPLICATION_CONTROLLERS),
    ),
    "deployment": Scenario(("deployment-controller", "replicaset-controller"), make_deployment, roll, deployment_told),
    "daemonset": Scenario(("daemonset-controller",), make_daemon_set, roll_daemons, daemons_told),
    "statefulset": Scenario(("statefulset-controller",), make_stateful_set, roll_in_order, stateful_told),
    "job": Scenario(("job-controller",), make_job, work, job_told),
    "cronjob": Scenario(("cronjob-controller",), make_cron_job, let_run, cron_told),
    "horizontal_pod_autoscaler": Scenario(
        ("horizontal-pod-autoscaler-controller", "deployment-controller", "replicaset-controller"),
        make_autoscaler,
        lower_bounds,
        autoscaler_told,
    ),
}

REFUSED = {
    "replicaset": {"create pods", "delete pods", "patch pods"},
    "replicationcontroller": {"create pods", "delete pods", "patch pods"},
    "deployment": {"create replicasets", "update replicasets", "delete replicasets", "patch replicasets"},
    "daemonset": {
        "create pods", "delete pods", "patch pods", "create controllerrevisions", "delete controllerrevisions",
    },
    "statefulset": {
        "create pods", "delete pods", "patch pods", "update pods", "create persistentvolumeclaims",
        "update persistentvolumeclaims", "create controllerrevisions", "delete controllerrevisions",
    },
    "job": {"create pods", "delete pods", "patch pods"},
    "cronjob": {"create jobs", "delete jobs"},
    "horizontal_pod_autoscaler": {"update deployments/scale"},
}  # fmt: skip
"""All writes of these scenarios but those of statuses, of the first controller of each."""

UNOBSERVED = {
    *((name, "patch pods") for name in ("replicaset", "replicationcontroller", "daemonset", "statefulset")),
    ("deployment", "patch replicasets"),
    ("deployment", "create replicasets"),
    ("daemonset", "create controllerrevisions"),
    ("statefulset", "create controllerrevisions"),
}
"""Where nothing can be decided about the present generation: it is not known what belongs to the owner, or there is
nothing that has its template. The counts are told all the same."""

WITHOUT = {
    "certificatesigningrequest_signing": "the certificate is the status",
    "disruption": "the status is the only write about a budget; what fails before it is a read, and is told",
    "namespace": "what remains is told: tests/unit/controllers/namespace",
    "node_lifecycle": "conditions are written before taints",
    "persistentvolume_attach_detach": "each node for itself",
    "persistentvolume_expander": "conditions are written around what is done",
    "persistentvolumeclaim_protection": "the status has nothing to do with the finalizer",
    "resourceclaim": "a claim that cannot be created is what the status would name",
    "resourcepoolstatusrequest": "only the status is written",
    "resourcequota": "only the status is written",
    "storage_version_migrator": "a failure is a condition",
    "storageversion_garbage_collector": "only the status is written",
}
"""Other controllers with statuses, and why no refused write keeps them back."""


class Refuser:
    """Refuses a kind of write for good, and records the others."""

    def __init__(self, controller: str, refused: str = "") -> None:
        client = next(one.client or one.name for one in CONTROLLERS if one.name == controller)
        self._agent, self._refused = f"/{client}", refused
        self.on, self.seen, self.times = False, set[str](), 0

    async def intercept(self, asked: Asked, proceed: Proceed) -> Answer:
        kind = f"{asked.info.verb} {asked.resource}"
        own = asked.user_agent.endswith(self._agent) and asked.request.method != "GET"
        if own and not kind.endswith("/status") and asked.resource != "events":
            self.seen.add(kind)
        if self.on and own and kind == self._refused:
            self.times += 1
            return refusal(403, "Forbidden", "refused by a policy")
        return await proceed(asked.request, None)


async def live(world: World, scenario: Scenario, refuser: Refuser) -> None:
    world.server.api.interceptors.append(refuser.intercept)
    async with controllers(world, *CONFIGS, names=scenario.controllers):
        await scenario.make(world)
        await world.wait(60)
        refuser.on = True
        await scenario.change(world)
        await world.wait(300)


@pytest.mark.parametrize("name", SCENARIOS)
async def test_the_table_has_all_writes(world: World, name):
    refuser = Refuser(SCENARIOS[name].controllers[0])
    await live(world, SCENARIOS[name], refuser)
    assert refuser.seen == REFUSED[name]


CASES = [(name, kind) for name, kinds in REFUSED.items() for kind in sorted(kinds)]


@pytest.mark.parametrize(("name", "refused"), CASES)
async def test_the_status_is_told(world: World, name, refused):
    scenario = SCENARIOS[name]
    refuser = Refuser(scenario.controllers[0], refused)
    await live(world, scenario, refuser)
    assert refuser.times > 0
    await scenario.told(world, (name, refused) not in UNOBSERVED)


def test_all_controllers_with_a_status_are_considered():
    folder = ROOT / "kcm_cli" / "controllers"
    marks = ('subresource="status"', '"status")', '"status",', "put_status(")
    found = {
        path.relative_to(folder).parts[0]
        for path in folder.rglob("*.py")
        if any(mark in path.read_text() for mark in marks)
    }
    known = (SCENARIOS.keys() | WITHOUT.keys()) - {"replicaset", "replicationcontroller"}
    assert found - {"shared"} == known, "add a scenario to SCENARIOS, or say in WITHOUT why there is none"
