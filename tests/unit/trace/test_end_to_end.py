"""What controllers do in a sandbox, on virtual time, as kcm trace tells it."""

from kcm_cli.controllers.deployment.config import DeploymentConfig
from kcm_cli.controllers.garbage_collector.config import GarbageCollectorConfig
from kcm_cli.controllers.job.config import JobConfig
from kcm_cli.controllers.pod_garbage_collector.config import PodGarbageCollectorConfig
from kcm_cli.controllers.replicaset.config import ReplicaSetConfig
from kcm_cli.controllers.ttl_after_finished.config import TTLAfterFinishedConfig
from kcm_cli.runtime.cause_ring import CauseRing, Wrote
from kcm_cli.trace.join import AT_START, OTHERS, Target, Trace, trace
from kcm_cli.trace.text import HEAD, head, tree
from tests.kit.controlling import controllers
from tests.kit.world import NODES, PODS, World, resource

DEPLOYMENTS, REPLICA_SETS = resource("deployments", "apps"), resource("replicasets", "apps")
QUOTAS, JOBS = resource("resourcequotas"), resource("jobs", "batch")
WORKLOADS = ["deployment-controller", "replicaset-controller"]
LIVE = "Deployment default/web"


def traced(ring: CauseRing, word: str) -> Trace:
    kind, _, name = word.partition("/")
    taken = ring.snapshot()
    return trace(taken.entries(), Target(kind, "default", name), forgotten=taken.forgotten)


def told(ring: CauseRing, word: str) -> str:
    """The first five lines without their times."""
    lines = head(traced(ring, word))
    assert 0 < len(lines) <= HEAD
    return "\n".join(lines)


async def deployment(world: World, replicas: int = 2) -> None:
    template = {
        "metadata": {"labels": {"app": "web"}},
        "spec": {"containers": [{"name": "c", "image": "i"}], "terminationGracePeriodSeconds": 1},
    }
    spec = {"replicas": replicas, "selector": {"matchLabels": {"app": "web"}}, "template": template}
    await world.create(DEPLOYMENTS, {"metadata": {"name": "web"}, "spec": spec})


async def names(world: World) -> list[str]:
    return [pod["metadata"]["name"] for pod in await world.items(PODS)]


async def test_a_deployment_leads_to_pods_and_scaling_down_deletes_them(world: World):
    ring = CauseRing(world.clock)
    async with controllers(world, DeploymentConfig(), ReplicaSetConfig(), names=WORKLOADS, causes=ring):
        await world.wait(5)  # the caches are filled
        await deployment(world)
        await world.wait(30)
        first, second = await names(world)
        text = "\n".join(tree(traced(ring, "deploy/web")))
        assert f"{LIVE} was created" in text and OTHERS in text
        created = told(ring, f"po/{first}")
        for part in ("replicaset-controller", "deployment-controller", f"{LIVE} was created", OTHERS):
            assert part in created, created

        await world.patch(DEPLOYMENTS, "web", {"spec": {"replicas": 1}})
        await world.wait(30)
        (left,) = await names(world)
        gone = told(ring, f"pod/{first if left == second else second}")
        for part in ("was deleted by replicaset-controller", "deployment-controller: ", LIVE, OTHERS):
            assert part in gone, gone
        assert "was deleted" not in told(ring, f"pods/{left}")
        await world.delete(PODS, left)
        await world.wait(30)
        by_a_client = told(ring, f"pods/{left}")
        assert "deleted: Pod" in by_a_client and OTHERS in by_a_client, by_a_client


async def test_the_collector_deletes_what_an_owner_leaves(world: World):
    ring = CauseRing(world.clock)
    configs = (DeploymentConfig(), ReplicaSetConfig(), GarbageCollectorConfig())
    names_ = [*WORKLOADS, "garbage-collector-controller"]
    async with controllers(world, *configs, names=names_, causes=ring):
        await world.wait(5)
        await deployment(world, 1)
        await world.wait(30)
        (pod,) = await names(world)
        await world.delete(DEPLOYMENTS, "web")
        await world.wait(60)
        assert await names(world) == []
        text = told(ring, f"pod/{pod}")
        assert "was deleted by garbage-collector-controller" in text, text
        assert "garbage-collector-controller: delete ReplicaSet" in text and f"{LIVE} was deleted" in text, text
        assert OTHERS in text, text


async def test_the_ttl_of_a_job(world: World):
    ring = CauseRing(world.clock)
    names, configs = ["job-controller", "ttl-after-finished-controller"], (JobConfig(), TTLAfterFinishedConfig())
    async with controllers(world, *configs, names=names, causes=ring):
        template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}
        template["metadata"] = {"annotations": {"sandbox.kcm.dev/run-time": "5s"}}
        spec = {"template": template, "ttlSecondsAfterFinished": 60}
        await world.create(JOBS, {"metadata": {"name": "once"}, "spec": spec})
        await world.wait(120)
        assert "deletionTimestamp" in (await world.get(JOBS, "once"))["metadata"]  # its finalizer is the collector's
        text = told(ring, "job/once")
        assert "Job default/once was deleted by ttl-after-finished-controller" in text, text
        assert "job-controller: " in text and "status changed" in text, text


async def test_a_quota_that_refuses_pods(world: World):
    ring = CauseRing(world.clock)
    hard = {"hard": {"pods": "1"}}
    await world.create(QUOTAS, {"metadata": {"name": "small"}, "spec": hard})
    status = {"metadata": {"name": "small"}, "spec": hard, "status": {**hard, "used": {"pods": "0"}}}
    await world.client.update(QUOTAS, "default", "small", status, subresource="status")
    async with controllers(world, DeploymentConfig(), ReplicaSetConfig(), names=WORKLOADS, causes=ring):
        await world.wait(5)  # the caches are filled
        await deployment(world, 3)
        await world.wait(60)
        assert len(await names(world)) == 1
        text = told(ring, "deploy/web")
        for part in ("replicaset-controller: create Pod", "REFUSED 403", "exceeded quota small", LIVE):
            assert part in text, text
        assert "retried after" in "\n".join(tree(traced(ring, "deploy/web")))


async def test_after_a_restart_what_came_before_is_unknown(world: World):
    arguments = {"names": WORKLOADS}
    async with controllers(world, DeploymentConfig(), ReplicaSetConfig(), **arguments):
        await deployment(world)
        await world.wait(30)
        await world.patch(DEPLOYMENTS, "web", {"metadata": {"annotations": {"seen": "no"}}})
    await world.patch(DEPLOYMENTS, "web", {"spec": {"replicas": 1}})  # nobody runs who could see it
    ring = CauseRing(world.clock)
    before = set(await names(world))
    async with controllers(world, DeploymentConfig(), ReplicaSetConfig(), **arguments, causes=ring):
        await world.wait(30)
        (gone,) = before - {*await names(world)}
        text = told(ring, f"pod/{gone}")
        assert "deleted by replicaset-controller" in text and AT_START in text, text
        assert OTHERS not in text, text
        assert "is unknown" in told(ring, "pod/other")


async def test_what_the_ring_holds_has_no_part_of_a_body(world: World):
    ring = CauseRing(world.clock)
    async with controllers(world, DeploymentConfig(), ReplicaSetConfig(), names=WORKLOADS, causes=ring):
        template = {
            "metadata": {"labels": {"app": "web"}, "annotations": {"note": "sesame-annotation"}},
            "spec": {"containers": [{"name": "c", "image": "i", "env": [{"name": "P", "value": "sesame-env"}]}]},
        }
        spec = {"selector": {"matchLabels": {"app": "web"}}, "template": template}
        await world.create(DEPLOYMENTS, {"metadata": {"name": "web"}, "spec": spec})
        await world.wait(30)
    taken = ring.snapshot()
    assert any(isinstance(entry, Wrote) and entry.code == 201 for entry in taken.entries())
    assert not any(b"sesame" in entry for entry in taken.encoded)


async def test_a_pod_goes_with_its_node(world: World):
    """The sweep that deletes it comes a minute later; its cause is the deletion of the node."""
    ring = CauseRing(world.clock)
    await world.pod("p")
    await world.pod("other")
    await world.wait(10)
    node = await world.node_of("p")
    async with controllers(world, PodGarbageCollectorConfig(), names=["pod-garbage-collector-controller"], causes=ring):
        await world.wait(25)
        await world.delete(NODES, node)
        await world.wait(90)
        assert await world.is_deleted("p")
        story = told(ring, "po/p")
        assert "pod-garbage-collector-controller" in story and f"Node {node} was deleted" in story, story
        assert "unknown" not in story, story
