"""Random lives of Indexed Jobs: whatever their pods do and people want, each index is counted as it ended."""

import random
from collections import Counter
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from kcm_cli.controllers.job.config import JobConfig
from kcm_cli.planning.actions import MERGE
from kcm_cli.rest.errors import Conflict
from kcm_cli.sandbox.apiserver.security.certificates import Certificates
from tests.kit.controlling import Faulty, controllers
from tests.kit.lives import RESTART, Act, Doc, Judged, live
from tests.kit.world import PODS, World, running_world
from tests.unit.controllers.job.test_end_to_end import FINALIZER, JOBS, numbers

INDEX = "batch.kubernetes.io/job-completion-index"
SPECS = [
    {"backoffLimit": 50},
    {"backoffLimit": 50, "podReplacementPolicy": "Failed"},
    {"backoffLimitPerIndex": 1},
    {"backoffLimitPerIndex": 2, "podReplacementPolicy": "Failed", "maxFailedIndexes": 1},
    {
        "backoffLimitPerIndex": 3,
        "podFailurePolicy": {
            "rules": [
                {"action": "FailIndex", "onExitCodes": {"operator": "In", "values": [42]}},
                {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]},
            ]
        },
    },
    {"backoffLimit": 50, "successPolicy": {"rules": [{"succeededCount": 2}]}},
]
which = st.integers(0, 3)
ACTS: st.SearchStrategy[Act] = st.one_of(
    st.tuples(st.just("succeed"), which),
    st.tuples(st.just("fail"), which),
    st.tuples(st.just("delete"), which),
    st.tuples(st.just("stop"), st.sampled_from(["Failed", "Succeeded"])),
    st.tuples(st.just("suspend"), st.booleans()),
    st.tuples(st.just("parallelism"), st.integers(0, 4)),
    st.tuples(st.just("resize"), st.integers(2, 4)),
    st.tuples(st.just("wait"), st.sampled_from([0.5, 2.0, 15.0, 45.0])),
    st.tuples(st.just(RESTART), st.none()),
)


class Life:
    """A Job ``work`` whose pods do what the test says. ``won``: indexes with a pod that succeeded and was to count."""

    def __init__(self, world: World, spec: Doc, seed: int, share: float) -> None:
        self.world = world
        self.rng = random.Random(seed)
        self.judged = Judged(world.server.transport())
        self.transport = Faulty(self.judged, random.Random(seed), share)
        self.strict = spec.get("podReplacementPolicy") == "Failed" or "podFailurePolicy" in spec
        self.spec = spec
        self.won: set[int] = set()
        self.seen: Doc = {}

    def running(self) -> Any:
        return controllers(self.world, JobConfig(), names=["job-controller"], transport=self.transport)

    async def make(self) -> None:
        pod = {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}
        full = {"template": {"spec": pod}, "completionMode": "Indexed", "completions": 3, "parallelism": 3}
        await self.world.create(JOBS, {"metadata": {"name": "work"}, "spec": full | self.spec})

    # -- the work of kubelets and people

    async def pods(self) -> list[Doc]:
        found = await self.world.items(PODS)
        return sorted(found, key=lambda pod: (pod["metadata"]["annotations"][INDEX], pod["metadata"]["name"]))

    async def start(self) -> None:
        """Bind and start new pods."""
        for pod in await self.pods():
            name = pod["metadata"]["name"]
            if not pod["spec"].get("nodeName"):
                await self.world.bind(name, "n")
                await self.say(name, {"phase": "Running"})

    async def say(self, name: str, status: Doc) -> None:
        body = {"status": status}
        await self.world.client.patch(PODS, "default", name, body, content_type=MERGE, subresource="status")

    async def end(self, pod: Doc, phase: str) -> None:
        code = 0 if phase == "Succeeded" else self.rng.choice([1, 42])
        ended = {"exitCode": code, "finishedAt": f"{self.world.clock.now():%Y-%m-%dT%H:%M:%SZ}"}
        status: Doc = {"phase": phase, "containerStatuses": [{
            "name": "c", "image": "i", "imageID": "", "ready": False, "restartCount": 0, "state": {"terminated": ended},
        }]}  # fmt: skip
        if phase == "Failed" and self.rng.random() < 0.3:
            status["conditions"] = [{"type": "DisruptionTarget", "status": "True"}]
        job, index = await self.world.get(JOBS, "work"), int(pod["metadata"]["annotations"][INDEX])
        tracked = FINALIZER in pod["metadata"].get("finalizers", ())
        if phase == "Succeeded" and tracked and index < job["spec"]["completions"] and not await self.over():
            self.won.add(index)
        await self.say(pod["metadata"]["name"], status)

    async def act(self, act: Act) -> None:
        what, value = act
        pods = [pod for pod in await self.pods() if pod["status"].get("phase") in ("Pending", "Running")]
        living = [pod for pod in pods if "deletionTimestamp" not in pod["metadata"]]
        chosen = living[value % len(living)] if living and isinstance(value, int) else None
        match what:
            case "succeed" | "fail" if chosen is not None:
                await self.end(chosen, "Succeeded" if what == "succeed" else "Failed")
            case "delete" if chosen is not None:
                await self.world.delete(PODS, chosen["metadata"]["name"])
            case "stop":
                for pod in pods:
                    if "deletionTimestamp" in pod["metadata"]:
                        await self.stop(pod, value)
                        break
            case "suspend":
                await self.change({"suspend": value})
            case "parallelism":
                await self.change({"parallelism": value})
            case "resize":
                await self.change({"parallelism": value, "completions": value})
            case "wait":
                await self.rest(value)

    async def stop(self, pod: Doc, phase: str) -> None:
        """A pod that is being deleted has ended."""
        await self.end(pod, phase)
        await self.world.delete(PODS, pod["metadata"]["name"], grace_s=0)

    async def change(self, spec: Doc) -> None:
        """Change a Job whose end is not announced yet."""
        job = await self.world.get(JOBS, "work")
        if any(c["type"] != "Suspended" for c in job.get("status", {}).get("conditions", ())):
            return
        version = job["metadata"]["resourceVersion"]
        try:
            await self.world.patch(JOBS, "work", {"metadata": {"resourceVersion": version}, "spec": spec})
        except Conflict:
            return  # its status was written meanwhile
        if "completions" in spec:
            self.won = {index for index in self.won if index < spec["completions"]}
            self.seen = {}

    # -- what must hold

    async def rest(self, seconds: float) -> None:
        while seconds > 0:
            step = min(0.5, seconds)
            await self.world.wait(step)
            await self.start()
            await self.check()
            seconds -= step

    async def status(self) -> Doc:
        return (await self.world.get(JOBS, "work")).get("status", {})  # type: ignore[no-any-return]

    async def over(self) -> str:
        conditions = (await self.status()).get("conditions", [])
        return next(
            (c["type"] for c in conditions if c["type"] in ("Complete", "Failed") and c["status"] == "True"), ""
        )

    async def check(self) -> None:
        assert not self.judged.problems
        status, before = await self.status(), self.seen
        assert status.get("failed", 0) >= before.get("failed", 0), (before, status)
        for field in ("completedIndexes", "failedIndexes"):
            assert numbers(before.get(field, "")) <= numbers(status.get(field, "")), (before, status)
        assert not numbers(status.get("completedIndexes", "")) & numbers(status.get("failedIndexes", ""))
        self.seen = status
        present = [pod for pod in await self.pods() if pod["status"].get("phase") in ("Pending", "Running")]
        if not self.strict:
            present = [pod for pod in present if "deletionTimestamp" not in pod["metadata"]]
        counts = Counter(pod["metadata"]["annotations"][INDEX] for pod in present)
        assert max(counts.values(), default=0) <= 1, counts

    async def ends(self) -> str:
        """Let the Job end: nothing fails or is deleted any more."""
        for _ in range(60):
            await self.change({"suspend": False, "parallelism": 3})
            await self.rest(2)
            for pod in await self.pods():
                if pod["status"].get("phase") not in ("Pending", "Running"):
                    continue
                if "deletionTimestamp" in pod["metadata"]:
                    await self.stop(pod, "Failed")
                else:
                    await self.end(pod, "Succeeded")
            if end := await self.over():
                return end
            await self.world.wait(20)
        raise AssertionError(f"the Job does not end: {await self.status()} {await self.pods()}")


@settings(max_examples=12)
@given(
    st.sampled_from(SPECS), st.lists(ACTS, min_size=3, max_size=14), st.integers(0, 999), st.sampled_from([0.0, 0.1])
)
async def test_each_index_counts_as_it_ended(certificates: Certificates, spec, acts, seed, share):
    async with running_world(certificates, alone=True) as world:
        life = Life(world, spec, seed, share)
        await life.make()
        await live(life, acts, life.rest, seed)
        async with life.running():
            end = await life.ends()
            await life.rest(5)
        status = await life.status()
        completed, failed = numbers(status.get("completedIndexes", "")), numbers(status.get("failedIndexes", ""))
        completions = (await world.get(JOBS, "work"))["spec"]["completions"]
        assert life.won - failed <= completed, (life.won, status)
        assert status.get("succeeded", 0) == len(completed) and status["uncountedTerminatedPods"] == {}
        assert status.get("active", 0) == status["ready"] == status["terminating"] == 0
        assert not [p for p in await life.pods() if FINALIZER in p["metadata"].get("finalizers", ())]
        if "successPolicy" not in spec:
            assert (end == "Complete") == (completed == set(range(completions))), status
