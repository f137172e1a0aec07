"""Deliberate differences from upstream (docs/deviations.md) in the requests of controllers, on virtual time."""

import json
import random
from contextlib import contextmanager
from dataclasses import replace

import pytest

from kcm_cli.api.apps import DAEMON_SETS, DEPLOYMENTS, REPLICA_SETS
from kcm_cli.api.batch import CRON_JOBS, JOBS
from kcm_cli.api.core import REPLICATION_CONTROLLERS
from kcm_cli.api.policy import POD_DISRUPTION_BUDGETS
from kcm_cli.controllers.cronjob.config import CronJobConfig
from kcm_cli.controllers.daemonset import controller as daemonset
from kcm_cli.controllers.daemonset.config import DaemonSetConfig
from kcm_cli.controllers.deployment.config import DeploymentConfig
from kcm_cli.controllers.disruption import controller as disruption
from kcm_cli.controllers.job.config import JobConfig
from kcm_cli.controllers.persistentvolume_binder import controller as binder
from kcm_cli.controllers.persistentvolume_binder.config import PersistentVolumeBinderConfig
from kcm_cli.controllers.persistentvolume_binder.plugins import HostPaths
from kcm_cli.controllers.replicaset.config import ReplicaSetConfig
from kcm_cli.controllers.replicationcontroller.config import ReplicationControllerConfig
from kcm_cli.rest.transport import Request
from tests.kit.controlling import controllers
from tests.kit.faults import Refusing
from tests.kit.world import PODS, World
from tests.unit.controllers.storageversion_garbage_collector.test_end_to_end import (
    LEASES,
    SYSTEM,
    add,
    prepare,
    servers,
)
from tests.unit.controllers.storageversion_garbage_collector.test_end_to_end import running as collecting

TEMPLATE = {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
SELECTED = {"selector": {"matchLabels": {"app": "a"}}, "template": TEMPLATE}


class Recording(Refusing):
    """Keeps each request with the time at which it was sent."""

    def __init__(self, world: World) -> None:
        super().__init__(world.server.transport(), lambda request: False, self._keep)
        self._clock = world.clock
        self.sent: list[tuple[float, Request]] = []

    async def _keep(self, request: Request) -> None:
        self.sent.append((self._clock.monotonic(), request))

    def times(self, method: str, suffix: str) -> list[float]:
        return [at for at, request in self.sent if request.method == method and request.path.endswith(suffix)]


async def test_the_status_of_a_large_daemonset_is_not_written_at_every_sync(world: World, monkeypatch):
    monkeypatch.setattr(daemonset, "REPORT_PAUSE_PER_POD_S", 1.0)  # three nodes for hundreds
    sent = Recording(world)
    async with controllers(world, DaemonSetConfig(), names=["daemonset-controller"], transport=sent):
        await world.create(DAEMON_SETS, {"metadata": {"name": "d"}, "spec": SELECTED})
        await world.wait(60)
        for number in range(20):
            pod = (await world.items(PODS))[number % 3]["metadata"]["name"]
            await world.delete(PODS, pod, grace_s=0)
            await world.wait(0.05)
        await world.wait(60)
        writes = sent.times("PUT", "/daemonsets/d/status")
        assert len(writes) > 3
        pauses = [after - before for before, after in zip(writes, writes[1:], strict=False)]
        assert min(pauses) >= daemonset.REPORT_PAUSE_S
        assert (await world.get(DAEMON_SETS, "d"))["status"]["numberReady"] == 3


async def test_a_budget_of_many_pods_is_not_synced_at_every_change(world: World, monkeypatch):
    monkeypatch.setattr(disruption, "MANY", 1)
    monkeypatch.setattr(disruption, "REST_PER_POD_S", 0.05)  # one pod for thousands
    sent = Recording(world)
    async with controllers(world, names=["disruption-controller"], transport=sent):
        spec = {"minAvailable": 1, "selector": {"matchLabels": {"app": "a"}}}
        await world.create(POD_DISRUPTION_BUDGETS, {"metadata": {"name": "b"}, "spec": spec})
        for number in range(12):
            await world.pod(f"p{number}", {"labels": {"app": "a"}})
        await world.wait(60)
        assert (await world.get(POD_DISRUPTION_BUDGETS, "b"))["status"]["currentHealthy"] == 12
        sent.sent.clear()
        for number in range(12):
            await world.delete(PODS, f"p{number}", grace_s=0)
            await world.wait(0.1)
        await world.wait(1)
        writes = sent.times("PUT", "/poddisruptionbudgets/b/status")
        assert writes[1] - writes[0] > 10 * disruption.REST_PER_POD_S
        assert 3 <= len(writes) <= 7
        assert (await world.get(POD_DISRUPTION_BUDGETS, "b"))["status"]["currentHealthy"] == 0


async def test_deletions_of_pods_and_jobs_have_uid_preconditions(world: World):
    sent = Recording(world)
    configs = (DeploymentConfig(), ReplicaSetConfig(), DaemonSetConfig(), JobConfig(), CronJobConfig())
    names = ("deployment", "replicaset", "daemonset", "job", "cronjob")
    async with controllers(world, *configs, names=[f"{name}-controller" for name in names], transport=sent):
        await world.create(DEPLOYMENTS, {"metadata": {"name": "a"}, "spec": SELECTED | {"replicas": 3}})
        await world.create(DAEMON_SETS, {"metadata": {"name": "d"}, "spec": SELECTED})
        run = {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}
        never = {"annotations": {"sandbox.kcm.dev/run-time": "never"}}
        job = {"template": {"metadata": never, "spec": run}, "parallelism": 3, "completions": 3}
        await world.create(JOBS, {"metadata": {"name": "j"}, "spec": job})
        cron = {"schedule": "* * * * *", "concurrencyPolicy": "Replace", "jobTemplate": {"spec": job}}
        await world.create(CRON_JOBS, {"metadata": {"name": "c"}, "spec": cron})
        await world.wait(150)
        await world.patch(DEPLOYMENTS, "a", {"spec": {"replicas": 1}})
        await world.patch(JOBS, "j", {"spec": {"suspend": True}})
        changed = {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [{"name": "c", "image": "j"}]}}
        await world.patch(DAEMON_SETS, "d", {"spec": {"template": changed}})
        await world.wait(60)
    deletions = [request for _, request in sent.sent if request.method == "DELETE"]
    assert {request.path.rsplit("/", 2)[1] for request in deletions} == {"pods", "jobs"}
    for request in deletions:
        assert json.loads(request.body)["preconditions"]["uid"], request.path


async def test_a_cronjob_that_replaces_its_jobs_does_not_get_them(world: World):
    sent = Recording(world)
    async with controllers(world, CronJobConfig(), names=["cronjob-controller"], transport=sent):
        run = {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}
        job = {"spec": {"template": {"spec": run}}}
        spec = {"schedule": "* * * * *", "concurrencyPolicy": "Replace", "jobTemplate": job}
        await world.create(CRON_JOBS, {"metadata": {"name": "c"}, "spec": spec})
        await world.wait(200)
    deleted = [request for _, request in sent.sent if request.method == "DELETE"]
    assert len(deleted) == 2
    assert [request for _, request in sent.sent if request.method == "GET" and "/jobs/" in request.path] == []


@pytest.mark.cluster(nodes=0)
async def test_entries_are_kept_while_the_lease_of_their_server_cannot_be_decoded(world: World):
    await prepare(world)
    asked = []

    def refuses(request: Request) -> bool:
        watching = dict(request.query).get("watch") == "true" or request.path.endswith("/leases")
        if watching and "leases" in request.path:
            return world.clock.monotonic() > 100
        if request.path.endswith("/leases/new") and len(asked) < 3:
            asked.append(request)
            return True
        return False

    async with collecting(world, Refusing(world.server.transport(), refuses)):
        await world.wait(700)
        labels = {"apiserver.kubernetes.io/identity": "kube-apiserver"}
        await world.create(LEASES, {"metadata": {"name": "new", "labels": labels}, "spec": {}}, SYSTEM)
        await add(world, "x", "new")
        await world.wait(60)
        assert (len(asked), await servers(world)) == (3, {"x": ["new"]})


async def test_the_reconciler_pauses_with_a_period_of_zero(world: World, monkeypatch):
    passes, resync = [0], binder.VolumeBinder.resync

    async def counted(controller: binder.VolumeBinder) -> None:
        passes[0] += 1
        if passes[0] > 1000:
            pytest.fail("there is no pause: virtual time does not go on")
        await resync(controller)

    (declared,) = binder.CONTROLLER.passes
    monkeypatch.setattr(binder, "CONTROLLER", replace(binder.CONTROLLER, passes=(replace(declared, step=counted),)))
    config = PersistentVolumeBinderConfig(sync_period_s=0.0)
    async with controllers(world, config, names=["persistentvolume-binder-controller"]):
        await world.wait(5)
    assert 10 < passes[0] < 100


@pytest.mark.parametrize("path", ["/data/tmp/x", "/tmp/../etc", "/tmp/"])
async def test_only_directories_under_tmp_are_deleted(world: World, path):
    with pytest.raises(OSError, match="host_path deleter only supports"):
        await HostPaths(random.Random(1), simulated=True).delete(path)


@contextmanager
def in_storage(world, resource):
    """The stored document of ``x``, to be changed as no API server would."""
    doc = world.server.store.get(resource.gvr, "default", "x").copy()
    yield doc
    world.server.store.update(resource.gvr, "default", "x", doc)


@pytest.mark.parametrize("labels", [None, {"app": "b"}], ids=["no labels", "others"])
@pytest.mark.parametrize(
    ("resource", "name", "config", "makes"),
    [
        (DEPLOYMENTS, "deployment-controller", DeploymentConfig(), REPLICA_SETS),
        (REPLICA_SETS, "replicaset-controller", ReplicaSetConfig(), PODS),
        (REPLICATION_CONTROLLERS, "replicationcontroller-controller", ReplicationControllerConfig(), PODS),
        (DAEMON_SETS, "daemonset-controller", DaemonSetConfig(), PODS),
    ],
)
async def test_an_owner_that_does_not_select_its_template_creates_nothing(
    world: World, resource, name, config, makes, labels
):
    """API servers refuse it; it may have been stored before they did."""
    spec = SELECTED if resource is not REPLICATION_CONTROLLERS else {**SELECTED, "selector": {"app": "a"}}
    await world.create(resource, {"metadata": {"name": "x"}, "spec": spec})
    with in_storage(world, resource) as doc:
        doc["spec"]["template"]["metadata"]["labels"] = labels
    async with controllers(world, config, names=[name]):
        await world.wait(120)
        assert await world.items(makes) == []


@pytest.mark.parametrize(
    ("resource", "name", "config", "made"),
    [
        (DEPLOYMENTS, "deployment-controller", DeploymentConfig(), REPLICA_SETS),
        (DAEMON_SETS, "daemonset-controller", DaemonSetConfig(), PODS),
    ],
)
async def test_a_selector_without_requirements_matches_a_template_without_labels(
    world: World, resource, name, config, made
):
    """As upstream: API servers admit it, and what is made gets a label of its revision."""
    selector = {"matchExpressions": [{"key": "app", "operator": "DoesNotExist"}]}
    spec = {"selector": selector, "template": {"spec": TEMPLATE["spec"]}}
    await world.create(resource, {"metadata": {"name": "x"}, "spec": spec})
    async with controllers(world, config, names=[name]):
        await world.wait(30)
        assert await world.items(made)


async def test_a_deployment_that_does_not_select_its_template_reports_it(world: World):
    await world.create(DEPLOYMENTS, {"metadata": {"name": "x"}, "spec": SELECTED})
    with in_storage(world, DEPLOYMENTS) as doc:
        doc["spec"]["template"]["metadata"]["labels"] = {"app": "b"}
    async with controllers(world, DeploymentConfig(), names=["deployment-controller"]):
        await world.wait(30)
        conditions = (await world.get(DEPLOYMENTS, "x"))["status"]["conditions"]
        (condition,) = (one for one in conditions if one["type"] == "Progressing")
        assert condition["status"] == "False"
        assert "`selector` does not match template `labels`" in condition["message"]


@pytest.mark.parametrize("mode", ["NonIndexed", "Indexed"])
@pytest.mark.parametrize(
    "change", [{"selector": None}, {"selector": {"matchLabels": {"app": "a"}}}], ids=["none", "other"]
)
async def test_a_job_that_does_not_select_its_template_creates_no_pods(world: World, mode, change):
    """API servers select a Job's pods; what was stored otherwise would release each pod and make another."""
    template = {"spec": {**TEMPLATE["spec"], "restartPolicy": "Never"}}
    spec = {"template": template, "completionMode": mode, "completions": 1}
    await world.create(JOBS, {"metadata": {"name": "x"}, "spec": spec})
    with in_storage(world, JOBS) as doc:
        doc["spec"].update(change)
    async with controllers(world, JobConfig(), names=["job-controller"]):
        await world.wait(30)
        assert await world.items(PODS) == []
        assert (await world.get(JOBS, "x"))["status"]["startTime"]


async def test_a_job_with_an_invalid_selector_keeps_its_pods(world: World):
    container = {"name": "c", "image": "i", "command": ["sleep", "1000"]}
    spec = {"template": {"spec": {"containers": [container], "restartPolicy": "Never"}}}
    await world.create(JOBS, {"metadata": {"name": "x"}, "spec": spec})
    async with controllers(world, JobConfig(), names=["job-controller"]):
        await world.wait(5)
        (pod,) = await world.items(PODS)
        with in_storage(world, JOBS) as doc:
            doc["spec"]["selector"] = {"matchExpressions": [{"key": "a", "operator": "Odd"}]}
        await world.wait(30)
        (same,) = await world.items(PODS)
        assert same["metadata"]["ownerReferences"] == pod["metadata"]["ownerReferences"]


async def test_a_daemonset_that_does_not_select_its_template_has_a_status(world: World):
    await world.create(DAEMON_SETS, {"metadata": {"name": "x"}, "spec": SELECTED})
    with in_storage(world, DAEMON_SETS) as doc:
        doc["spec"]["template"]["metadata"]["labels"] = {"app": "b"}
    async with controllers(world, DaemonSetConfig(), names=["daemonset-controller"]):
        await world.wait(30)
        stored = await world.get(DAEMON_SETS, "x")
        assert stored["status"]["desiredNumberScheduled"] == stored["status"]["numberUnavailable"] == 3
        assert stored["status"]["observedGeneration"] == stored["metadata"]["generation"]


async def test_a_deployment_without_a_selector_keeps_its_replica_sets(world: World):
    await world.create(DEPLOYMENTS, {"metadata": {"name": "x"}, "spec": SELECTED})
    async with controllers(world, DeploymentConfig(), names=["deployment-controller"]):
        await world.wait(5)
        before = await world.items(REPLICA_SETS)
        with in_storage(world, DEPLOYMENTS) as doc:
            doc["spec"]["selector"] = None
        await world.wait(30)
        assert await world.items(REPLICA_SETS) == before != []
