"""Objects of managers and API servers of 1.28 to 1.33, without later fields, are not changed."""

import copy
from typing import Any

import pytest

from kcm_cli.api.apps import DAEMON_SETS, DEPLOYMENTS, STATEFUL_SETS
from kcm_cli.api.batch import CRON_JOBS, JOBS
from kcm_cli.api.core import PERSISTENT_VOLUME_CLAIMS, PODS, SERVICES
from kcm_cli.api.discovery import ENDPOINT_SLICES
from kcm_cli.api.policy import POD_DISRUPTION_BUDGETS
from kcm_cli.api.resource import Resource
from kcm_cli.controllers.cronjob.config import CronJobConfig
from kcm_cli.controllers.daemonset.config import DaemonSetConfig
from kcm_cli.controllers.deployment.config import DeploymentConfig
from kcm_cli.controllers.endpointslice.config import EndpointSliceConfig
from kcm_cli.controllers.job.config import JobConfig
from kcm_cli.controllers.replicaset.config import ReplicaSetConfig
from kcm_cli.controllers.statefulset.config import StatefulSetConfig
from tests.kit.controlling import controllers
from tests.kit.faults import Noting
from tests.kit.world import World

Doc = dict[str, Any]
NAMES = (
    *("deployment-controller", "replicaset-controller", "statefulset-controller", "daemonset-controller"),
    *("job-controller", "cronjob-controller", "endpointslice-controller", "disruption-controller"),
    "persistentvolumeclaim-protection-controller",
)
CONFIGS = (
    *(DeploymentConfig(), ReplicaSetConfig(), StatefulSetConfig(), DaemonSetConfig()),
    *(JobConfig(), CronJobConfig(), EndpointSliceConfig()),
)
LABELS = {"app": "a"}
PODS_OF = {"metadata": {"labels": LABELS}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
SELECTED = {"selector": {"matchLabels": LABELS}, "template": PODS_OF}
JOB = {"template": {"spec": {**PODS_OF["spec"], "restartPolicy": "Never"}}}
CLAIM = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
MADE: tuple[tuple[Resource[Any], Doc], ...] = (
    (DEPLOYMENTS, {**SELECTED, "replicas": 2}),
    (STATEFUL_SETS, {**SELECTED, "serviceName": "none", "replicas": 1}),
    (DAEMON_SETS, SELECTED),
    (JOBS, {**JOB, "suspend": True}),
    (CRON_JOBS, {"schedule": "0 0 1 1 *", "jobTemplate": {"spec": JOB}}),
    (SERVICES, {"selector": LABELS, "ports": [{"port": 80}]}),
    (POD_DISRUPTION_BUDGETS, {"selector": {"matchLabels": LABELS}, "minAvailable": 1}),
    (PERSISTENT_VOLUME_CLAIMS, {**CLAIM, "storageClassName": "none"}),
)
LATER: dict[str, tuple[Resource[Any], tuple[tuple[str, ...], ...]]] = {
    "a Deployment": (DEPLOYMENTS, (("spec", "paused"), ("spec", "minReadySeconds"), ("status", "collisionCount"))),
    "a StatefulSet": (
        STATEFUL_SETS,
        (("spec", "persistentVolumeClaimRetentionPolicy"), ("spec", "ordinals"), ("spec", "minReadySeconds")),
    ),
    "a DaemonSet": (DAEMON_SETS, (("spec", "updateStrategy", "rollingUpdate", "maxSurge"),)),
    "a Job": (
        JOBS,
        (
            *(("spec", "podReplacementPolicy"), ("spec", "completionMode"), ("spec", "manualSelector")),
            *(("status", "uncountedTerminatedPods"), ("spec", "managedBy")),
        ),
    ),
    "a CronJob": (CRON_JOBS, (("spec", "timeZone"), ("spec", "jobTemplate", "metadata"))),
    "a PodDisruptionBudget": (
        POD_DISRUPTION_BUDGETS,
        (("spec", "unhealthyPodEvictionPolicy"), ("status", "disruptedPods")),
    ),
    "a claim": (PERSISTENT_VOLUME_CLAIMS, (("spec", "volumeMode"), ("status", "allocatedResourceStatuses"))),
    "a slice": (ENDPOINT_SLICES, (("metadata", "annotations"),)),
    "a Service": (SERVICES, (("spec", "trafficDistribution"), ("spec", "internalTrafficPolicy"))),
    "a pod": (PODS, (("status", "resize"), ("status", "observedGeneration"), ("metadata", "generation"))),
}


def without(doc: Doc, path: tuple[str, ...]) -> None:
    *folders, last = path
    for folder in folders:
        doc = doc.get(folder) or {}
    doc.pop(last, None)


@pytest.mark.parametrize("whole", [True, False], ids=["absent", "null"])
async def test_objects_of_older_servers_are_not_changed(world: World, whole: bool) -> None:
    """The fields of LATER are absent, or null, as a server that knows them not, or an old client, leaves them."""
    noting = Noting(world.server.transport())
    async with controllers(world, *CONFIGS, names=NAMES, transport=noting):
        for kind, spec in MADE:
            head = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": kind.kind.lower()}}
            await world.client.create(kind, "default", {**head, "spec": copy.deepcopy(spec)})
        await world.wait(60)
    assert len(noting.written()) > 10
    noting.sent.clear()
    for kind, paths in LATER.values():
        for stored in world.server.store.list(kind.gvr, "default"):
            doc = copy.deepcopy(stored.doc)
            for path in paths:
                without(doc, path)
                if not whole and path[:-1] in ((), ("spec",), ("status",)):
                    doc.setdefault(path[0], {})[path[-1]] = None
            world.server.store.update(kind.gvr, "default", stored.name, doc)
    async with controllers(world, *CONFIGS, names=NAMES, transport=noting):
        await world.wait(300)
    assert noting.written() == []
