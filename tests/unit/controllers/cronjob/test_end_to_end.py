"""The controller with that of Jobs in a whole sandbox, on virtual time: it is midnight, Thursday 1 January 2026."""

import random
from typing import Any

import pytest

from kcm_cli.controllers.cronjob import local_zone
from kcm_cli.controllers.cronjob.config import CronJobConfig
from kcm_cli.controllers.job.config import JobConfig
from kcm_cli.rest.transport import Request, Response, Transport
from tests.kit.controlling import Faulty, controllers
from tests.kit.faults import Rewriting, refusal
from tests.kit.world import World, resource

CRON_JOBS = resource("cronjobs", "batch")
JOBS = resource("jobs", "batch")
NAMESPACES = resource("namespaces", namespaced=False)
MINUTE = 60.0
PODS = {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}


@pytest.fixture(autouse=True)
def utc(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "UTC")


class Story:
    """A CronJob ``c`` that runs every ten minutes; a run takes a minute by default."""

    def __init__(self, world: World) -> None:
        self.world = world

    def running(self, transport: Transport | None = None) -> Any:
        names = ["cronjob-controller", "job-controller"]
        return controllers(self.world, CronJobConfig(), JobConfig(), names=names, transport=transport)

    async def make(self, run_time: str = "60s", exit_code: int = 0, **spec: Any) -> None:
        annotations = {"sandbox.kcm.dev/run-time": run_time, "sandbox.kcm.dev/exit-code": str(exit_code)}
        template = {"spec": {"backoffLimit": 0, "template": {"metadata": {"annotations": annotations}, "spec": PODS}}}
        full = {"schedule": "*/10 * * * *", "jobTemplate": template} | spec
        await self.world.create(CRON_JOBS, {"metadata": {"name": "c"}, "spec": full})

    async def jobs(self) -> dict[str, str]:
        """Scheduled minute and state of each Job: running, Complete or Failed."""
        items = await self.world.items(JOBS)
        found = {}
        for item in items:
            time = item["metadata"]["annotations"]["batch.kubernetes.io/cronjob-scheduled-timestamp"]
            ended = [c["type"] for c in item.get("status", {}).get("conditions", []) if c["status"] == "True"]
            found[time[11:16]] = next((t for t in ended if t in ("Complete", "Failed")), "running")
        return found

    async def status(self) -> dict[str, Any]:
        return (await self.world.get(CRON_JOBS, "c")).get("status", {})  # type: ignore[no-any-return]

    async def reasons(self) -> list[str]:
        return [reason for reason, _ in await self.world.events("c")]


@pytest.fixture
def story(world: World) -> Story:
    return Story(world)


async def test_jobs_run_on_schedule_and_history_is_limited(world: World, story: Story):
    async with story.running():
        await story.make(successfulJobsHistoryLimit=2)
        await world.wait(5 * MINUTE)
        assert await story.jobs() == {}
        await world.wait(5.5 * MINUTE)
        assert await story.jobs() == {"00:10": "running"}
        assert [entry["name"][:2] for entry in (await story.status())["active"]] == ["c-"]
        await world.wait(1.5 * MINUTE)
        assert await story.jobs() == {"00:10": "Complete"}
        status = await story.status()
        assert "active" not in status
        assert status["lastScheduleTime"] == "2026-01-01T00:10:00Z"
        assert status["lastSuccessfulTime"].startswith("2026-01-01T00:11:")
        await world.wait(30 * MINUTE)
        assert await story.jobs() == {"00:30": "Complete", "00:40": "Complete"}
        assert {"SuccessfulCreate", "SawCompletedJob", "SuccessfulDelete"} <= set(await story.reasons())


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        pytest.param("Allow", {"00:10": "running", "00:20": "running", "00:30": "running"}, id="Allow"),
        pytest.param("Forbid", {"00:10": "running"}, id="Forbid"),
        pytest.param("Replace", {"00:30": "running"}, id="Replace"),
    ],
)
async def test_concurrency_policies(world: World, story: Story, policy, expected):
    async with story.running():
        await story.make("5000s", concurrencyPolicy=policy)
        await world.wait(32 * MINUTE)
        assert await story.jobs() == expected
        assert ("JobAlreadyActive" in await story.reasons()) is (policy == "Forbid")


async def test_a_forbidden_run_starts_when_the_running_job_ends(world: World, story: Story):
    async with story.running():
        await story.make("1500s", concurrencyPolicy="Forbid")
        await world.wait(45 * MINUTE)
        assert await story.jobs() == {"00:10": "Complete", "00:30": "running"}


async def test_after_suspension_only_the_latest_run_starts(world: World, story: Story):
    async with story.running():
        await story.make(suspend=True)
        await world.wait(35 * MINUTE)
        assert await story.jobs() == {}
        await world.patch(CRON_JOBS, "c", {"spec": {"suspend": False}})
        await world.wait(1 * MINUTE)
        assert list(await story.jobs()) == ["00:30"]


@pytest.mark.parametrize(
    ("deadline", "expected"),
    [pytest.param(600, ["00:30"], id="in time"), pytest.param(60, [], id="too late")],
)
async def test_a_missed_start_time(world: World, story: Story, deadline, expected):
    await story.make(startingDeadlineSeconds=deadline)
    await world.wait(35 * MINUTE)
    async with story.running():
        await world.wait(10)
        assert list(await story.jobs()) == expected


async def test_a_changed_schedule_takes_effect_at_once(world: World, story: Story):
    async with story.running():
        await story.make(schedule="0 12 * * *")
        await world.wait(15 * MINUTE)
        await world.patch(CRON_JOBS, "c", {"spec": {"schedule": "*/20 * * * *"}})
        await world.wait(10 * MINUTE)
        assert list(await story.jobs()) == ["00:20"]


async def test_a_time_zone(world: World, story: Story):
    async with story.running():
        await story.make(schedule="30 5 * * *", timeZone="Asia/Kolkata")
        await world.wait(61 * MINUTE)
        assert list(await story.jobs()) == []
        await world.patch(CRON_JOBS, "c", {"spec": {"schedule": "0 7 * * *"}})
        await world.wait(35 * MINUTE)
        assert list(await story.jobs()) == ["07:00"]


async def test_failed_jobs_have_their_history_limit(world: World, story: Story):
    async with story.running():
        await story.make(exit_code=1, failedJobsHistoryLimit=1)
        await world.wait(35 * MINUTE)
        assert await story.jobs() == {"00:30": "Failed"}
        assert "lastSuccessfulTime" not in await story.status()


async def test_a_missing_job_is_removed_from_active(world: World, story: Story):
    async with story.running():
        await story.make("5000s", concurrencyPolicy="Forbid")
        await world.wait(11 * MINUTE)
        (entry,) = (await story.status())["active"]
        await world.delete(JOBS, entry["name"], propagation="Background")
        await world.wait(10)
        assert "active" not in await story.status()
        assert "MissingJob" in await story.reasons()
        await world.wait(10 * MINUTE)
        assert list(await story.jobs()) == ["00:20"]


async def test_an_active_entry_without_a_name_does_not_stop_the_cronjob(world: World, story: Story):
    """Whoever may write the status can write such a one."""
    await story.make()
    doc = world.server.store.get(CRON_JOBS.gvr, "default", "c").copy()
    doc["status"] = {"active": [{"kind": "Job", "namespace": "default", "name": "ghost", "uid": "u"}, {}]}
    world.server.store.update(CRON_JOBS.gvr, "default", "c", doc)
    async with story.running():
        await world.wait(15 * MINUTE)
        assert await story.jobs() == {"00:10": "Complete"}
        assert not (await story.status()).get("active")


async def test_a_failed_creation_is_reported_and_retried(world: World, story: Story):
    broken = [True]

    def answer(request: Request) -> Response | None:
        if broken[0] and request.method == "POST" and request.path.endswith("/jobs"):
            return refusal(403, "Forbidden", "not now")
        return None

    async with story.running(Rewriting(world.server.transport(), answer=answer)):
        await story.make()
        await world.wait(11 * MINUTE)
        assert await story.jobs() == {}
        assert ("FailedCreate", "Error creating job: not now") in await world.events("c")
        broken[0] = False
        await world.wait(5 * MINUTE)
        assert list(await story.jobs()) == ["00:10"]


async def test_a_job_missing_in_the_status_is_not_created_twice(world: World, story: Story):
    """The status could not be written; the Job of that time is found by its name."""
    broken = [True]

    def answer(request: Request) -> Response | None:
        if broken[0] and request.method == "PUT" and request.path.endswith("/cronjobs/c/status"):
            return refusal(500, "InternalError")
        return None

    async with story.running(Rewriting(world.server.transport(), answer=answer)):
        await story.make("5000s")
        await world.wait(11 * MINUTE)
        assert list(await story.jobs()) == ["00:10"]
        assert not (await story.status()).get("active")
        broken[0] = False
        await world.wait(3 * MINUTE)
        assert len((await story.status())["active"]) == 1
        assert list(await story.jobs()) == ["00:10"]


async def test_jobs_of_other_owners_are_reported_and_not_changed(world: World, story: Story):
    async with story.running():
        await story.make()
        await world.wait(1)
        uid = (await world.get(CRON_JOBS, "c"))["metadata"]["uid"]
        owner = {"apiVersion": "batch/v1", "kind": "CronJob", "name": "c", "uid": uid, "controller": True}
        pod = {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}
        metadata = {"name": "own", "ownerReferences": [owner]}
        await world.create(JOBS, {"metadata": metadata, "spec": {"template": {"spec": pod}}})
        await world.wait(5)
        assert "UnexpectedJob" in await story.reasons()
        assert "active" not in await story.status()


async def test_a_job_whose_start_could_not_be_recorded_is_not_unexpected(world: World):
    """The sync that created it could not write the status. The next one knows it by its name."""
    story, broken = Story(world), [True]

    def answer(request: Request) -> Response | None:
        return refusal(500, "InternalError") if broken[0] and request.path.endswith("/c/status") else None

    async with story.running(Rewriting(world.server.transport(), answer=answer)):
        await story.make(run_time="300s")
        await world.wait(10 * MINUTE + 2)
        assert await story.jobs() == {"00:10": "running"}
        broken[0] = False
        await world.wait(MINUTE)
        status = await story.status()
        assert (len(status["active"]), status["lastScheduleTime"]) == (1, "2026-01-01T00:10:00Z")
        await world.wait(10 * MINUTE)
        assert await story.jobs() == {"00:10": "Complete", "00:20": "running"}
        assert "UnexpectedJob" not in await story.reasons()


async def test_the_next_time_is_kept_while_jobs_are_refused(world: World):
    """The retries of a failing key are up to 1,000 s apart."""
    story, broken = Story(world), [True]

    def answer(request: Request) -> Response | None:
        created = request.method == "POST" and request.path.endswith("/jobs")
        return refusal(403, "Forbidden") if broken[0] and created else None

    async with story.running(Rewriting(world.server.transport(), answer=answer)):
        await story.make()
        await world.wait(59 * MINUTE)
        broken[0] = False
        await world.wait(2 * MINUTE)
        assert "01:00" in await story.jobs()


async def test_jobs_of_a_former_cronjob_of_this_name_are_left_alone(world: World, story: Story):
    """Neither reported nor deleted: the garbage collector does that."""
    async with story.running():
        await story.make(successfulJobsHistoryLimit=0)
        for kind, name in (("CronJob", "former"), ("Team", "foreign")):
            owner = {"apiVersion": "batch/v1", "kind": kind, "name": "c", "uid": name, "controller": True}
            metadata = {"name": name, "ownerReferences": [owner]}
            await world.create(JOBS, {"metadata": metadata, "spec": {"template": {"spec": PODS}}})
        await world.wait(MINUTE)
        assert await story.reasons() == []
        assert len(await world.items(JOBS)) == 2


async def test_a_manager_whose_clock_is_behind_runs_nothing_twice(world: World, story: Story):
    """The run of 00:10 has ended, and its Job is gone, as with a TTL."""
    await story.make()
    body = {"status": {"lastScheduleTime": "2026-01-01T00:10:00Z"}}
    merge = "application/merge-patch+json"
    await world.client.patch(CRON_JOBS, "default", "c", body, content_type=merge, subresource="status")
    async with story.running():
        await world.wait(15 * MINUTE)
        assert await story.jobs() == {}
        await world.wait(10 * MINUTE)
        assert await story.jobs() == {"00:20": "Complete"}


async def test_jobs_of_another_namespace_are_none_of_a_cronjob(world: World, story: Story):
    """Another tenant may write the uid into a reference: no history is deleted for it, and no run recorded."""
    async with story.running():
        await story.make(successfulJobsHistoryLimit=1)
        await world.wait(12 * MINUTE)
        uid = (await world.get(CRON_JOBS, "c"))["metadata"]["uid"]
        owner = {"apiVersion": "batch/v1", "kind": "CronJob", "name": "c", "uid": uid, "controller": True}
        made = {"batch.kubernetes.io/cronjob-scheduled-timestamp": "2096-01-01T00:00:00Z"}
        metadata = {"name": "c-66270000", "namespace": "tenant", "annotations": made, "ownerReferences": [owner]}
        await world.create(NAMESPACES, {"metadata": {"name": "tenant"}}, "")
        job = {"metadata": metadata, "spec": {"suspend": True, "template": {"spec": PODS}}}
        await world.create(JOBS, job, "tenant")
        await world.wait(9 * MINUTE)
        assert (await story.status())["lastScheduleTime"] == "2026-01-01T00:20:00Z"
        assert "UnexpectedJob" not in await story.reasons()


@pytest.mark.parametrize("seed", range(2))
async def test_lost_requests_and_answers(world: World, story: Story, seed):
    """No time is left out and none runs twice."""
    faulty = Faulty(world.server.transport(), random.Random(seed), 0.3)
    async with story.running(faulty):
        await story.make(successfulJobsHistoryLimit=10)
        await world.wait(65 * MINUTE)
        assert faulty.faults
        expected = {f"{hour:02}:{minute:02}" for hour, minute in [(0, m) for m in range(10, 60, 10)] + [(1, 0)]}
        assert set(await story.jobs()) == expected


@pytest.mark.parametrize(
    ("value", "name"),
    [
        pytest.param("Europe/Berlin", "Europe/Berlin", id="named"),
        pytest.param(":Europe/Berlin", "Europe/Berlin", id="with a colon"),
        pytest.param("", "UTC", id="empty"),
        pytest.param("No/Where", "UTC", id="unknown"),
    ],
)
def test_the_local_time_zone(monkeypatch, value, name):
    monkeypatch.setenv("TZ", value)
    assert str(local_zone.local_zone()) == name


def test_the_local_time_zone_without_the_variable(monkeypatch, tmp_path):
    monkeypatch.delenv("TZ")
    monkeypatch.setattr(local_zone, "_LOCALTIME", tmp_path / "none")
    assert str(local_zone.local_zone()) == "UTC"


async def replaced(world: World, story: Story, *kept: str) -> dict[str, Any]:
    """Replace the active Job by one of its name that has these metadata of it. Returns the entry of the former one."""
    (job,) = await world.items(JOBS)
    (entry,) = (await story.status())["active"]
    await world.delete(JOBS, entry["name"], propagation="Background")
    metadata = {key: job["metadata"][key] for key in ("name", *kept)}
    template = {"metadata": job["spec"]["template"]["metadata"] | {"labels": {}}, "spec": PODS}
    await world.create(JOBS, {"metadata": metadata, "spec": {"template": template}})
    return entry


@pytest.mark.parametrize(
    ("kept", "soon", "later"),
    [
        pytest.param(("annotations", "ownerReferences"), [], ["00:30"], id="the CronJob's: when it has ended"),
        pytest.param(("annotations",), ["00:20"], ["00:20"], id="another client's: at once"),
    ],
)
async def test_a_forbidding_cronjob_does_not_wait_for_a_job_that_was_replaced(
    world: World, story: Story, kept, soon, later
):
    async with story.running():
        await story.make("1500s", concurrencyPolicy="Forbid")
        await world.wait(11 * MINUTE)
    await replaced(world, story, *kept)
    async with story.running():
        await world.wait(20 * MINUTE)
        assert list(await story.jobs()) == ["00:10", *soon]
        await world.wait(10 * MINUTE)
        assert list(await story.jobs()) == ["00:10", *later]


async def test_a_forbidding_cronjob_does_not_wait_for_a_job_that_was_taken_from_it_and_has_ended(
    world: World, story: Story
):
    async with story.running():
        await story.make("1500s", concurrencyPolicy="Forbid")
        await world.wait(11 * MINUTE)
        (entry,) = (await story.status())["active"]
        await world.patch(JOBS, entry["name"], {"metadata": {"ownerReferences": None}})
        await world.wait(20 * MINUTE)
        assert await story.jobs() == {"00:10": "running"}
        await world.wait(10 * MINUTE)
        assert await story.jobs() == {"00:10": "Complete", "00:40": "running"}


@pytest.mark.parametrize(
    ("kept", "expected"),
    [
        pytest.param(("annotations", "ownerReferences"), {"00:20": "running"}, id="the CronJob's"),
        pytest.param(("annotations",), {"00:10": "running", "00:20": "running"}, id="another client's"),
    ],
)
async def test_an_active_job_that_was_recreated_does_not_stop_a_replacing_cronjob(
    world: World, story: Story, kept, expected
):
    async with story.running():
        await story.make("5000s", concurrencyPolicy="Replace")
        await world.wait(11 * MINUTE)
    entry = await replaced(world, story, *kept)
    async with story.running():
        await world.wait(11 * MINUTE)
        assert await story.jobs() == expected
        (started,) = (await story.status())["active"]
        assert started["name"] != entry["name"]
