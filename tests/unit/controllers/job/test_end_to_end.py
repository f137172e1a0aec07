"""The controller in a whole sandbox, on virtual time: counters only grow, and all finalizers are removed."""

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from kcm_cli.component.clock import Clock
from kcm_cli.component.metrics import Registry
from kcm_cli.controllers.job.config import JobConfig
from kcm_cli.planning.actions import MERGE
from kcm_cli.rest.transport import Around, Request, Response, Stream, Transport
from tests.kit.controlling import Faulty, controllers, metric
from tests.kit.faults import Meanwhile, Refusing, Rewriting, refusal
from tests.kit.world import PODS, World, resource

JOBS = resource("jobs", "batch")
FINALIZER = "batch.kubernetes.io/job-tracking"
CONTAINER = {"name": "c", "image": "i"}


class Story:
    """A Job ``work``; its pods run for ten seconds."""

    def __init__(self, world: World) -> None:
        self.world = world

    def running(self, transport: Transport | None = None, metrics: Registry | None = None) -> Any:
        return controllers(self.world, JobConfig(), names=["job-controller"], transport=transport, metrics=metrics)

    async def make(self, exit_code: int = 0, run_time: str = "10s", **spec: Any) -> None:
        annotations = {"sandbox.kcm.dev/run-time": run_time, "sandbox.kcm.dev/exit-code": str(exit_code)}
        pod = {
            "restartPolicy": "Never",
            "containers": [{"name": "c", "image": "i"}],
            "terminationGracePeriodSeconds": 1,
        }
        full = {"template": {"metadata": {"annotations": annotations}, "spec": pod}} | spec
        await self.world.create(JOBS, {"metadata": {"name": "work"}, "spec": full})

    async def status(self) -> dict[str, Any]:
        return (await self.world.get(JOBS, "work")).get("status", {})  # type: ignore[no-any-return]

    async def ended(self) -> str:
        conditions = (await self.status()).get("conditions", [])
        found = [c["type"] for c in conditions if c["status"] == "True" and c["type"] in ("Complete", "Failed")]
        return found[0] if found else ""

    async def pods(self) -> list[dict[str, Any]]:
        return await self.world.items(PODS)

    async def held(self) -> list[str]:
        return [
            pod["metadata"]["name"] for pod in await self.pods() if FINALIZER in pod["metadata"].get("finalizers", [])
        ]

    @asynccontextmanager
    async def watched(self) -> AsyncIterator[None]:
        """While inside, every status that is seen is compared with the one before."""

        async def watch() -> None:
            before: dict[str, Any] = {}
            while True:
                status = await self.status()
                check_growth(before, status)
                before = status
                await self.world.wait(0.5)

        task = asyncio.create_task(watch())
        try:
            yield
            assert not task.done()
        finally:
            task.cancel()
            await asyncio.wait([task])
        if not task.cancelled() and task.exception() is not None:
            raise task.exception()  # type: ignore[misc]


@pytest.fixture
def story(world: World) -> Story:
    return Story(world)


def numbers(text: str) -> set[int]:
    """``1,3-5`` as a set."""
    found: set[int] = set()
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        found.update(range(int(first), int(last or first) + 1))
    return found


def check_growth(before: dict[str, Any], after: dict[str, Any]) -> None:
    """Nothing that was counted is counted less, and no uid is both waiting and forgotten."""
    for counter in ("succeeded", "failed"):
        assert after.get(counter, 0) >= before.get(counter, 0), (counter, before, after)
    for indexes in ("completedIndexes", "failedIndexes"):
        old, new = (numbers(status.get(indexes, "")) for status in (before, after))
        assert old <= new, (indexes, before, after)
    gone = {c["type"] for c in before.get("conditions", []) if c["status"] == "True"}
    assert gone - {"Suspended"} <= {c["type"] for c in after.get("conditions", [])}


LIVES = [
    pytest.param({"completions": 6, "parallelism": 3}, "Complete", (6, 0), id="completions"),
    pytest.param({"completions": 6, "parallelism": 4, "completionMode": "Indexed"}, "Complete", (6, 0), id="indexed"),
    pytest.param({"parallelism": 3}, "Complete", (3, 0), id="work queue"),
    pytest.param({"completions": 3, "backoffLimit": 2, "exit_code": 1}, "Failed", (0, 3), id="backoffLimit"),
    pytest.param({"completions": 3, "parallelism": 3, "completionMode": "Indexed", "backoffLimitPerIndex": 1,
                  "exit_code": 1}, "Failed", (0, 6), id="backoffLimitPerIndex"),
]  # fmt: skip


@pytest.mark.parametrize(("spec", "end", "counted"), LIVES)
@pytest.mark.parametrize("share", [0.0, 0.2], ids=["no faults", "faults"])
async def test_lifecycle(world: World, story: Story, spec, end, counted, share):
    faulty = Faulty(world.server.transport(), random.Random(4), share)
    async with story.running(faulty):
        await story.make(**spec)
        async with story.watched():
            await world.wait(900 if share else 200)
        status = await story.status()
        assert await story.ended() == end
        assert (status.get("succeeded", 0), status.get("failed", 0)) == counted
        assert status["uncountedTerminatedPods"] == {}
        assert await story.held() == []
        assert bool(faulty.faults) is bool(share)


@pytest.mark.parametrize("seed", range(3))
async def test_every_pod_is_counted_once(world: World, story: Story, seed):
    """Pods are deleted, lose their finalizer or their label; the controller is restarted and loses answers."""
    rng = random.Random(seed)
    faulty = Faulty(world.server.transport(), random.Random(seed), 0.1)
    await story.make(completions=8, parallelism=4, backoffLimit=100)
    async with story.watched():
        for _ in range(6):
            async with story.running(faulty):
                for _ in range(4):
                    await world.wait(rng.random() * 8)
                    live = [p for p in await story.pods() if p["status"].get("phase") in ("Running", "Pending")]
                    if live and rng.random() < 0.7:
                        await world.client.delete(PODS, "default", rng.choice(live)["metadata"]["name"])
                    if rng.random() < 0.2:
                        await world.patch(JOBS, "work", {"spec": {"parallelism": rng.randint(1, 5)}})
        async with story.running():
            await world.wait(600)
    status = await story.status()
    assert await story.ended() == "Complete"
    assert status["succeeded"] == 8
    assert await story.held() == []


class LatePods(Around):
    """That a pod was deleted is news three seconds late."""

    def __init__(self, inner: Transport, clock: Clock) -> None:
        super().__init__(inner)
        self._clock = clock

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[Stream]:
        async with self._inner.stream(request) as stream:
            late = request.path.endswith("/pods")
            yield Stream(stream.status, stream.headers, self._late(stream.chunks)) if late else stream

    async def _late(self, chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        async for chunk in chunks:
            for line in chunk.splitlines(keepends=True):
                if b'"DELETED"' in line:
                    await self._clock.sleep(3)
                yield line


class OldPods(LatePods):
    """Watches of pods that lag behind. ``patched``: the paths of patches."""

    def __init__(self, inner: Transport, clock: Clock) -> None:
        super().__init__(inner, clock)
        self.patched: list[str] = []

    async def send(self, request: Request) -> Response:
        if request.method == "PATCH" and "/pods/" in request.path:
            self.patched.append(request.path)
        return await super().send(request)

    async def _late(self, chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        async for chunk in chunks:
            await self._clock.sleep(0.3)
            yield chunk


async def test_a_deleted_pod_is_counted_once_also_if_its_end_is_seen_late(world: World, story: Story):
    """The removal of its finalizer deletes it, and is answered with the version before."""
    async with story.running(LatePods(world.server.transport(), world.clock)):
        await story.make(run_time="1000s", parallelism=1, completions=9)
        await world.wait(60)
        for pod in await story.pods():
            await world.client.delete(PODS, "default", pod["metadata"]["name"])
        await world.wait(120)
        status = await story.status()
        assert status.get("succeeded", 0) + status.get("failed", 0) == 1


async def test_finalizers_of_a_finished_job_are_removed_once(world: World):
    """Also where its end is seen before the change of its pods."""
    story, transport = Story(world), OldPods(world.server.transport(), world.clock)
    async with story.running(transport):
        await story.make(completions=3, parallelism=3)
        await world.wait(60)
        assert await story.ended() == "Complete"
        assert await story.held() == []
    assert len(transport.patched) == len(set(transport.patched)) == 3


async def test_suspending_and_resuming(world: World, story: Story):
    async with story.running():
        await story.make(run_time="100s", completions=2, parallelism=2)
        async with story.watched():
            await world.wait(20)
            await world.patch(JOBS, "work", {"spec": {"suspend": True}})
            await world.wait(30)
            assert (await story.status()).get("active", 0) == 0
            assert not await story.held()
            await world.patch(JOBS, "work", {"spec": {"suspend": False}})
            await world.wait(200)
        assert await story.ended() == "Complete"


async def test_a_suspended_job_ends_when_all_that_is_wanted_is_done(world: World, story: Story):
    """It has no startTime any more, without which an API server refuses its end (kubernetes#132144)."""
    async with story.running():
        await story.make(run_time="100s", completions=2, parallelism=2, completionMode="Indexed")
        await world.wait(20)
        name = next(pod["metadata"]["name"] for pod in await story.pods() if "-0-" in pod["metadata"]["name"])
        ended = {"status": {"phase": "Succeeded"}}
        await world.client.patch(PODS, "default", name, ended, content_type=MERGE, subresource="status")
        await world.wait(5)
        await world.patch(JOBS, "work", {"spec": {"suspend": True}})
        await world.wait(5)
        assert "startTime" not in await story.status()
        await world.patch(JOBS, "work", {"spec": {"completions": 1, "parallelism": 1}})
        await world.wait(10)
        assert await story.ended() == "Complete"


async def test_pods_of_a_deleted_job_lose_their_finalizer(world: World, story: Story):
    async with story.running():
        await story.make(run_time="1000s", completions=2, parallelism=2)
        await world.wait(20)
        assert len(await story.held()) == 2
        await world.patch(JOBS, "work", {"metadata": {"finalizers": None}})
        await world.delete(JOBS, "work", propagation="Background")
        await world.wait(30)
        assert await story.held() == []
        assert len(await story.pods()) == 2


async def test_finalizers_of_a_deleted_job_are_removed_in_the_end(world: World):
    """Also where the first attempts fail."""
    story, broken = Story(world), False
    refusing = Refusing(world.server.transport(), lambda sent: broken and sent.method == "PATCH")
    async with story.running(refusing):
        await story.make(run_time="1000s", completions=2, parallelism=2)
        await world.wait(20)
        broken = True
        await world.delete(JOBS, "work", propagation="Background")
        await world.wait(30)
        assert (refusing.refused > 1, len(await story.held())) == (True, 2)
        broken = False
        await world.wait(60)
        assert await story.held() == []


async def test_orphan_pods_lose_their_finalizer_or_are_adopted(world: World, story: Story):
    metadata = {"finalizers": [FINALIZER], "labels": {"x": "y"}}
    spec = {"containers": [{"name": "c", "image": "i"}]}
    await world.create(PODS, {"metadata": metadata | {"name": "stray"}, "spec": spec})
    foreign = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "u", "controller": True}
    await world.create(PODS, {"metadata": metadata | {"name": "foreign", "ownerReferences": [foreign]}, "spec": spec})
    async with story.running():
        await world.wait(10)
        assert await story.held() == ["foreign"]
        await story.make(
            run_time="1000s",
            completions=2,
            parallelism=2,
            manualSelector=True,
            selector={"matchLabels": {"mine": "1"}},
            template={
                "metadata": {"labels": {"mine": "1"}},
                "spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]},
            },
        )
        await world.wait(20)
        await world.pod("late", {"labels": {"mine": "1"}, "restartPolicy": "Never"})
        await world.wait(20)
        owners = {p["metadata"]["name"]: p["metadata"].get("ownerReferences", []) for p in await story.pods()}
        adopted = [name for name, refs in owners.items() if refs and refs[0]["kind"] == "Job"]
        assert len(adopted) == 2
        released = adopted[0]
        await world.patch(PODS, released, {"metadata": {"labels": {"mine": "2"}}})
        await world.wait(20)
        assert released not in await story.held()


async def test_a_job_that_is_recreated_during_a_sync_has_its_pods(world: World):
    """The sync of the first one, which adopts a pod meanwhile, then expects pods that belong to no Job any more."""
    story = Story(world)
    template = {
        "metadata": {"labels": {"mine": "1"}},
        "spec": {"restartPolicy": "Never", "containers": [CONTAINER]},
    }
    spec = {"manualSelector": True, "selector": {"matchLabels": {"mine": "1"}}, "template": template}

    async def recreate() -> None:
        await world.delete(JOBS, "work", propagation="Background")
        await world.wait(1)
        await story.make(**spec)

    transport = Meanwhile(world.server.transport(), "PATCH", "/pods/stray", recreate)
    await world.pod("stray", {"labels": {"mine": "1"}, "restartPolicy": "Never"}, run_time="1000s")
    async with story.running(transport):
        await story.make(**spec, parallelism=3, completions=3)
        await world.wait(60)
        assert (transport.happened, await story.ended()) == (True, "Complete")


async def test_a_changed_annotation_does_not_make_an_index_run_twice(world: World, story: Story):
    """kubernetes#140839"""
    async with story.running():
        await story.make(run_time="60s", completionMode="Indexed", completions=2, parallelism=1)
        await world.wait(20)
        (pod,) = await story.pods()
        annotations = {"batch.kubernetes.io/job-completion-index": "1"}
        await world.patch(PODS, pod["metadata"]["name"], {"metadata": {"annotations": annotations}})
        await world.wait(200)
        assert sorted(pod["metadata"]["name"][:7] for pod in await story.pods()) == ["work-0-", "work-1-"]
        assert (await story.status())["completedIndexes"] == "0,1"
        assert await story.ended() == "Complete"


@pytest.mark.parametrize("meanwhile", ["adopted", "succeeded"])
async def test_a_pod_that_changes_meanwhile_keeps_its_finalizer(world: World, meanwhile):
    """An orphan that was adopted again, and a surplus pod that has succeeded: their results would not be counted."""
    story, done = Story(world), False

    async def before(sent: Request) -> None:
        nonlocal done
        if done or sent.method != "PATCH" or b"$deleteFromPrimitiveList/finalizers" not in sent.body:
            return
        done, name = True, sent.path.rpartition("/")[2]
        if meanwhile == "adopted":
            await world.patch(PODS, name, {"metadata": {"ownerReferences": references}})
        else:
            body = {"status": {"phase": "Succeeded"}}
            await world.client.patch(PODS, "default", name, body, content_type=MERGE, subresource="status")

    async with story.running(Refusing(world.server.transport(), lambda sent: False, before)):
        await story.make(run_time="60s", completions=4, parallelism=2)
        await world.wait(20)
        pod, _ = await story.pods()
        references = pod["metadata"]["ownerReferences"]
        if meanwhile == "adopted":
            await world.patch(PODS, pod["metadata"]["name"], {"metadata": {"ownerReferences": None}})
            await world.wait(5)
            assert pod["metadata"]["name"] in await story.held()
        else:
            await world.patch(JOBS, "work", {"spec": {"parallelism": 1}})
            await world.wait(5)
            assert (await story.status())["succeeded"] == 1
        assert done
        await world.wait(300)
        assert (await story.ended(), (await story.status())["succeeded"]) == ("Complete", 4)
        assert len(await story.pods()) == 4


async def test_a_suspended_job_can_be_changed_right_after_its_creation(world: World, story: Story):
    """MultiKueue and upstream's own tests update such a Job at the version that its creation returned."""
    async with story.running():
        await world.wait(1)
        await story.make(suspend=True)
        version = (await world.get(JOBS, "work"))["metadata"]["resourceVersion"]
        await world.wait(0.05)
        assert (await world.get(JOBS, "work"))["metadata"]["resourceVersion"] == version
        await world.wait(0.1)
        assert [found["type"] for found in (await story.status())["conditions"]] == ["Suspended"]
        await world.patch(JOBS, "work", {"spec": {"suspend": False}})
        await world.wait(0.01)
        assert len(await story.pods()) == 1


@pytest.mark.parametrize(
    ("policy", "script", "end"),
    [
        ("Never", "sleep 2; exit 1", "Failed"),
        ("OnFailure", "exit 1", "Failed"),
        ("Never", "sleep 2 && true", "Complete"),
        ("OnFailure", "if [[ -r /data/x ]]; then exit 0; else touch /data/x; exit 1; fi", "Complete"),
    ],
)
async def test_a_job_ends_like_its_command(world: World, story: Story, policy: str, script: str, end: str) -> None:
    async with story.running():
        mounts = [{"name": "data", "mountPath": "/data"}]
        container = {"name": "c", "image": "busybox", "command": ["sh", "-c", script], "volumeMounts": mounts}
        pod = {"restartPolicy": policy, "containers": [container], "volumes": [{"name": "data", "emptyDir": {}}]}
        await story.make(backoffLimit=2, template={"spec": pod})
        await world.wait(120)
        assert await story.ended() == end


async def test_the_deadline_is_kept_although_no_pod_can_be_created(world: World, story: Story):
    """As upstream, and not when the next pod is tried, up to a minute later."""
    await story.make(activeDeadlineSeconds=40)
    pods = Refusing(world.server.transport(), lambda sent: sent.method == "POST" and sent.path.endswith("/pods"))
    async with story.running(pods):
        await world.wait(38)
        assert (await story.ended(), pods.refused > 2) == ("", True)
        await world.wait(5)
        assert await story.ended() == "Failed"


async def test_a_failed_pod_is_counted_and_replaced_while_another_one_runs(world: World, story: Story):
    """The delay of the replacement, 10 s and then 20 s, holds up neither the counters nor the finalizer."""
    script = "[ $JOB_COMPLETION_INDEX = 0 ] && exit 1; sleep 3600"
    container = {"name": "c", "image": "busybox", "command": ["sh", "-c", script]}
    template = {"spec": {"restartPolicy": "Never", "containers": [container]}}
    async with story.running():
        await story.make(completions=2, parallelism=2, completionMode="Indexed", backoffLimit=9, template=template)
        for pods, failed, seconds in ((2, 1, 9), (3, 2, 15), (4, 3, 22)):
            await world.wait(seconds)
            status = await story.status()
            seen = (len(await story.pods()), status.get("failed"), status.get("active"), status.get("ready"))
            assert seen == (pods, failed, 1, 1)
            assert status["uncountedTerminatedPods"] == {}
            assert len(await story.held()) == 1


async def test_a_replacement_is_not_delayed_by_status_writes_that_fail(world: World):
    """It is due 10 s after the failure; the retries of the failing key are at 1, 3, 7 and 15 s."""

    def refuses(sent: Request) -> bool:
        return sent.path.endswith("/work/status") and b'"failed":["' in (sent.body or b"")

    story, refusing = Story(world), Refusing(world.server.transport(), refuses)
    async with story.running(refusing):
        await story.make(run_time="2s", exit_code=1)
        await world.wait(10)
        assert (refusing.refused > 2, len(await story.pods())) == (True, 1)
        await world.wait(5)
        assert len(await story.pods()) == 2


@pytest.mark.parametrize(
    ("spec", "events", "reason", "result"),
    [
        pytest.param({"completions": 2}, [("Normal", "Completed", "Job completed")],
                     "CompletionsReached", "succeeded", id="complete"),
        pytest.param({"backoffLimit": 0, "exit_code": 1},
                     [("Warning", "BackoffLimitExceeded", "Job has reached the specified backoff limit")],
                     "BackoffLimitExceeded", "failed", id="failed"),
    ],
)  # fmt: skip
async def test_events_and_metrics_of_a_job_that_ends(world: World, spec, events, reason, result):
    metrics, story = Registry(), Story(world)
    pods = spec.get("completions", 1)
    async with story.running(metrics=metrics):
        await story.make(**spec)
        await world.wait(120)
    emitted = [(e["type"], e["reason"], e["message"]) for e in await world.items(resource("events"))
            if e["involvedObject"]["kind"] == "Job"]  # fmt: skip
    assert [event for event in emitted if event[1] != "SuccessfulCreate"] == events
    assert sum(event[:2] == ("Normal", "SuccessfulCreate") for event in emitted) == pods
    prefix = "job_controller_"
    assert metric(metrics, f"{prefix}jobs_finished_total") == 1
    ended = {"completion_mode": "NonIndexed", "result": result}
    assert metric(metrics, f"{prefix}jobs_finished_total", reason=reason, **ended) == 1
    assert metric(metrics, f"{prefix}job_pods_finished_total", **ended) == pods
    assert metric(metrics, f"{prefix}job_pods_creation_total", reason="new", status="succeeded") == pods
    for event in ("add", "delete"):
        assert metric(metrics, f"{prefix}terminated_pods_tracking_finalizer_total", event=event) == pods
    synced = {"completion_mode": "NonIndexed", "result": "success"}
    assert metric(metrics, f"{prefix}job_syncs_total", action="pods_created", **synced) == pods
    assert metric(metrics, f"{prefix}job_syncs_total", result="error") == 0
    count = metric(metrics, f"{prefix}job_sync_duration_seconds_count")
    assert count == metric(metrics, f"{prefix}job_syncs_total") > pods


async def test_more_successes_than_completions_are_reported(world: World, story: Story):
    async with story.running():
        await story.make(completions=3, parallelism=3, run_time="never")
        await world.wait(5)
        (first, *_) = await story.pods()
        adopted = {"name": "one-more", "labels": first["metadata"]["labels"], "finalizers": [FINALIZER]}
        spec = {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}
        await world.create(PODS, {"metadata": adopted, "spec": spec})
        for pod in await story.pods():
            name, ended = pod["metadata"]["name"], {"status": {"phase": "Succeeded"}}
            await world.client.patch(PODS, "default", name, ended, content_type=MERGE, subresource="status")
        await world.wait(30)
    messages = [text for reason, text in await world.events("work") if reason == "TooManySucceededPods"]
    assert messages == ["Too many succeeded pods running after completion count reached"]


@pytest.mark.parametrize(("causes", "counted"), [([], True), ([{"reason": "NamespaceTerminating"}], False)])
async def test_pods_that_a_terminating_namespace_refuses_are_no_failed_creations(
    world: World, story: Story, causes, counted
):
    def answer(request: Request) -> Response | None:
        made = request.method == "POST" and request.path.endswith("/pods")
        return refusal(403, "Forbidden", causes=causes) if made else None

    metrics = Registry()
    async with story.running(Rewriting(world.server.transport(), answer=answer), metrics):
        await story.make(completions=2, parallelism=2)
        await world.wait(5)
        failed = metric(metrics, "job_controller_job_pods_creation_total", status="failed")
        assert (failed > 0) is counted
        assert metric(metrics, "job_controller_job_pods_creation_total", status="succeeded") == 0
