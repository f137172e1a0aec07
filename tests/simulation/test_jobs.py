"""Jobs and CronJobs on virtual time: counters under faults, and a day of runs."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import pytest

from kcm_cli.sandbox.apiserver.entry.fault import Fault
from kcm_cli.sandbox.nodes.agents import NodeOptions
from tests.kit.simulation import NAMESPACE, World, simulate
from tests.kit.workload import job

COMPLETIONS = 12
FINALIZER = "batch.kubernetes.io/job-tracking"
LIMIT_S = 1800.0
DAY_S = 24 * 3600.0
FAULTS = [
    pytest.param([], id="nothing"),
    pytest.param([Fault("away", start_s=4, for_s=60)], id="the-server-is-away-for-a-minute"),
    pytest.param([Fault("cut", after_s=1, broken=True)], id="watches-break-every-second"),
    pytest.param([Fault("expire", every=2), Fault("cut", after_s=3)], id="every-other-watch-is-too-old"),
    pytest.param([Fault("throttle", every=3, retry_after_s=2)], id="429-with-retry-after"),
    pytest.param([Fault("conflict", every=2)], id="every-other-write-conflicts"),
    pytest.param([Fault("lose", chance=0.1), Fault("conflict", chance=0.1)], id="answers-are-lost"),
    pytest.param([Fault("delay", delay_s=(0.05, 0.5))], id="everything-is-slow"),
]


async def ended(world: World, name: str) -> dict[str, Any]:
    """The status of a Job once it is over."""
    for _ in range(int(LIMIT_S)):
        for doc in world.objects("batch/v1/jobs"):
            tree: dict[str, Any] = dict(doc)
            conditions = {c["type"] for c in tree.get("status", {}).get("conditions", ())}
            if tree["metadata"]["name"] == name and conditions & {"Complete", "Failed"}:
                return dict(tree["status"])
        await world.clock.sleep(1.0)
    raise AssertionError(f"{name} did not end: {world.objects('batch/v1/jobs')}")


async def stopped(manager: "asyncio.Task[None]") -> None:
    manager.cancel()
    with suppress(asyncio.CancelledError):
        await manager


def check_counted(world: World, status: dict[str, Any]) -> None:
    """The counters are those of the pods that are there, and nothing holds these pods any more."""
    pods: list[dict[str, Any]] = [dict(pod) for pod in world.objects("v1/pods")]
    assert status["succeeded"] == COMPLETIONS == sum(pod["status"]["phase"] == "Succeeded" for pod in pods)
    assert not [pod for pod in pods if FINALIZER in pod["metadata"].get("finalizers", ())]
    assert status["uncountedTerminatedPods"] == {}
    assert status.get("active", 0) == status["terminating"] == status["ready"] == 0


@pytest.mark.parametrize("faults", FAULTS)
def test_each_pod_is_counted_once_under_faults(faults: list[Fault]) -> None:
    async def story(world: World) -> None:
        manager = world.manager(faults)
        await world.create("batch/v1/jobs", job("work", COMPLETIONS))
        check_counted(world, await ended(world, "work"))
        await stopped(manager)

    simulate(5, story)


@pytest.mark.parametrize("seed", range(4))
def test_each_pod_is_counted_once_by_killed_managers(seed: int) -> None:
    async def story(world: World) -> None:
        faults = [Fault("delay", delay_s=(0.001, 0.05))]
        manager = world.manager(faults)
        await world.create("batch/v1/jobs", job("work", COMPLETIONS))
        for _ in range(12):
            await world.clock.sleep(world.rng.uniform(0.5, 4))
            await stopped(manager)
            manager = world.manager(faults)
        check_counted(world, await ended(world, "work"))
        await stopped(manager)

    simulate(seed, story)


@pytest.mark.parametrize("seed", range(3))
def test_no_work_is_done_twice_when_answers_are_lost(seed: int) -> None:
    """A creation that may have taken effect is not repeated before the cache shows whether it did."""

    async def story(world: World) -> None:
        away = [Fault("away", start_s=3 + 9 * count, for_s=2) for count in range(20)]
        manager = world.manager([Fault("lose", chance=0.3), *away])
        await world.create("batch/v1/jobs", job("work", COMPLETIONS))
        check_counted(world, await ended(world, "work"))
        await stopped(manager)

    simulate(seed, story)


def failing(name: str, **spec: Any) -> dict[str, Any]:
    """A Job whose pods fail after five seconds."""
    doc = job(name, 1)
    doc["spec"] |= spec
    doc["spec"]["template"]["metadata"]["annotations"]["sandbox.kcm.dev/exit-code"] = "3"
    return doc


def test_failures_are_retried_with_backoff() -> None:
    async def story(world: World) -> None:
        manager = world.manager()
        await world.create("batch/v1/jobs", failing("work", backoffLimit=3))
        status = await ended(world, "work")
        assert status["failed"] == 4
        assert [c["reason"] for c in status["conditions"]] == ["BackoffLimitExceeded"] * 2
        assert 70 + 4 * 5 <= world.clock.monotonic() < 70 + 4 * 15  # 10, 20 and 40 s apart
        await stopped(manager)

    simulate(1, story)


def test_each_index_has_its_backoff_limit() -> None:
    async def story(world: World) -> None:
        manager = world.manager()
        limits = {"completionMode": "Indexed", "completions": 4, "backoffLimitPerIndex": 1}
        await world.create("batch/v1/jobs", failing("work", **limits))
        status = await ended(world, "work")
        assert (status["failed"], status["failedIndexes"]) == (8, "0-3")
        assert status["conditions"][-1]["reason"] == "FailedIndexes"
        await stopped(manager)

    simulate(2, story)


def without_nodes(story: Callable[[World], Awaitable[None]]) -> None:
    """Run a story on a cluster whose pods never run, so that long times cost no heartbeats."""
    simulate(1, story, NodeOptions(count=0))


def test_a_day_of_runs_every_five_minutes() -> None:
    """Each time starts one Job; of the finished ones three are kept."""
    names: set[str] = set()
    template = {"spec": job("x", 0)["spec"]}
    doc = {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": "tick", "namespace": NAMESPACE},
        "spec": {"schedule": "*/5 * * * *", "timeZone": "Europe/Berlin", "jobTemplate": template},
    }

    async def story(world: World) -> None:
        manager = world.manager(only=("cronjob", "job"))
        await world.create("batch/v1/cronjobs", doc)
        while world.clock.monotonic() < DAY_S:
            await world.clock.sleep(290.0)
            jobs: list[dict[str, Any]] = [dict(found) for found in world.objects("batch/v1/jobs")]
            assert len(jobs) <= 4
            names.update(found["metadata"]["name"] for found in jobs)
        await stopped(manager)

    without_nodes(story)
    times = sorted(int(name.removeprefix("tick-")) for name in names)
    assert times == list(range(times[0], times[0] + 5 * len(times), 5))
    assert len(times) >= 24 * 12
