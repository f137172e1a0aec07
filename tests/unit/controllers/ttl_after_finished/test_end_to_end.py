"""The controller in a whole sandbox, on virtual time. Jobs are finished by their status alone."""

import random
from functools import partial
from typing import Any

import pytest

from kcm_cli.component.metrics import Registry
from kcm_cli.controllers.ttl_after_finished.config import TTLAfterFinishedConfig
from kcm_cli.machinery.times import format_time
from kcm_cli.planning.actions import MERGE
from kcm_cli.rest.errors import NotFound
from kcm_cli.rest.transport import Transport
from tests.kit.controlling import Faulty, controllers, metric
from tests.kit.faults import Meanwhile, Refusing
from tests.kit.world import World, resource

pytestmark = pytest.mark.cluster(alone=True)

JOBS = resource("jobs", "batch")


class Story:
    """Jobs and their end."""

    def __init__(self, world: World) -> None:
        self.world = world

    def running(self, transport: Transport | None = None, **options: Any) -> Any:
        config = TTLAfterFinishedConfig()
        return controllers(self.world, config, names=["ttl-after-finished-controller"], transport=transport, **options)

    async def job(self, name: str, ttl: int | None = 60, **metadata: Any) -> None:
        template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}
        spec: dict[str, Any] = {"template": template, "suspend": True}
        if ttl is not None:
            spec["ttlSecondsAfterFinished"] = ttl
        await self.world.create(JOBS, {"metadata": {"name": name, **metadata}, "spec": spec})

    async def end(self, name: str, kind: str = "Failed") -> None:
        now = format_time(self.world.clock.now())
        types = ["FailureTarget", "Failed"] if kind == "Failed" else ["SuccessCriteriaMet", "Complete"]
        status: dict[str, Any] = {
            "startTime": now,
            "conditions": [{"type": type_, "status": "True", "lastTransitionTime": now} for type_ in types],
        }
        if kind == "Complete":
            status["completionTime"] = now
        body = {"status": status}
        await self.world.client.patch(JOBS, "default", name, body, content_type=MERGE, subresource="status")

    async def is_deleted(self, name: str) -> bool:
        try:
            found = await self.world.get(JOBS, name)
        except NotFound:
            return True
        return "deletionTimestamp" in found["metadata"]


@pytest.fixture
def story(world: World) -> Story:
    return Story(world)


async def test_jobs_are_deleted_after_their_ttl(world: World, story: Story):
    async with story.running():
        for name, ttl in (("short", 30), ("long", 90), ("ever", None), ("running", 30), ("at-once", 0)):
            await story.job(name, ttl)
        for name, kind in (("short", "Failed"), ("long", "Complete"), ("ever", "Failed"), ("at-once", "Complete")):
            await story.end(name, kind)
        everyone = ("short", "long", "ever", "running", "at-once")
        await world.wait(2)
        assert [name for name in everyone if await story.is_deleted(name)] == ["at-once"]
        await world.wait(20)
        assert not await story.is_deleted("short")
        await world.wait(15)
        assert [name for name in everyone if await story.is_deleted(name)] == ["short", "at-once"]
        await world.wait(100)
        assert [name for name in everyone if await story.is_deleted(name)] == ["short", "long", "at-once"]


async def test_the_delay_of_a_deletion_is_measured(world: World):
    story, metrics, broken = Story(world), Registry(), [True]
    transport = Refusing(world.server.transport(), lambda request: broken[0] and request.method == "DELETE")
    async with story.running(transport, metrics=metrics):
        await story.job("j", 30)
        await story.end("j")
        await world.wait(90)
        broken[0] = False
        await world.wait(60)
        assert await story.is_deleted("j")
    name = "ttl_after_finished_controller_job_deletion_duration_seconds"
    assert metric(metrics, f"{name}_count") == 1
    assert 60 <= metric(metrics, f"{name}_sum") <= 120


async def test_a_job_that_replaces_an_expired_one_is_kept(world: World, story: Story):
    """It is created between the read and the deletion, which has the uid of the first one."""

    async def replace() -> None:
        await world.delete(JOBS, "j", propagation="Background")
        await story.job("j", 30)

    transport = Meanwhile(world.server.transport(), "DELETE", "/jobs/j", replace)
    async with story.running(transport):
        await story.job("j", 30)
        await story.end("j")
        await world.wait(90)
        assert transport.happened
        assert not await story.is_deleted("j")


async def test_a_changed_ttl_counts(world: World, story: Story):
    async with story.running():
        for name in ("longer", "never", "sooner"):
            await story.job(name)
            await story.end(name)
        await world.wait(20)
        await world.patch(JOBS, "longer", {"spec": {"ttlSecondsAfterFinished": 200}})
        await world.patch(JOBS, "never", {"spec": {"ttlSecondsAfterFinished": None}})
        await world.patch(JOBS, "sooner", {"spec": {"ttlSecondsAfterFinished": 25}})
        await world.wait(10)
        assert await story.is_deleted("sooner")
        await world.wait(120)
        assert not await story.is_deleted("longer")
        assert not await story.is_deleted("never")
        await world.wait(100)
        assert await story.is_deleted("longer")
        assert not await story.is_deleted("never")


@pytest.mark.parametrize(
    ("change", "gone"),
    [
        pytest.param({"ttlSecondsAfterFinished": 300}, False, id="prolonged"),
        pytest.param({"ttlSecondsAfterFinished": None}, False, id="taken back"),
    ],
)
async def test_a_ttl_changed_just_before_the_deletion_counts(world: World, story: Story, change, gone):
    """The Job is read afresh before it is deleted."""
    changed = partial(world.patch, JOBS, "j", {"spec": change})
    transport = Meanwhile(world.server.transport(), "GET", "/jobs/j", changed)
    async with story.running(transport):
        await story.job("j")
        await story.end("j")
        await world.wait(100)
        assert transport.happened
        assert await story.is_deleted("j") is gone


async def test_a_job_deleted_by_another_client(world: World, story: Story):
    deleted = partial(world.delete, JOBS, "j", propagation="Background")
    transport = Meanwhile(world.server.transport(), "GET", "/jobs/j", deleted)
    async with story.running(transport):
        await story.job("j")
        await story.end("j")
        await world.wait(100)
        assert transport.happened
        assert await story.is_deleted("j")


@pytest.mark.parametrize("seed", range(2))
async def test_lost_requests_and_answers(world: World, story: Story, seed):
    faulty = Faulty(world.server.transport(), random.Random(seed), 0.6)
    async with story.running(faulty):
        for number in range(5):
            await story.job(f"j{number}", 10)
            await story.end(f"j{number}")
        await world.wait(60)
        assert faulty.faults
        assert all([await story.is_deleted(f"j{number}") for number in range(5)])
