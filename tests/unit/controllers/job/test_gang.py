"""Gang scheduling: the Jobs that get a Workload and a PodGroup, and the contents of these."""

import json
from typing import Any

import pytest

from kcm_cli.api.batch import JOBS
from kcm_cli.api.scheduling import POD_GROUPS, WORKLOADS, Workload
from kcm_cli.controllers.job.config import JobConfig
from kcm_cli.controllers.job.plan import gang
from kcm_cli.machinery import codec
from kcm_cli.rest.transport import Around
from tests.kit.alpha import serve
from tests.kit.controlling import controllers
from tests.kit.world import World, resource
from tests.unit.controllers.job.conftest import MakeJob, MakePod

TOGETHER: dict[str, Any] = {"completionMode": "Indexed", "completions": 3, "parallelism": 3}
UID = "77466b23-e218-41dd-92b6-ce9ca38f0255"


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param({}, True, id="all at once"),
        pytest.param({"completionMode": "NonIndexed"}, False, id="not indexed"),
        pytest.param({"completions": 4}, False, id="not all at once"),
        pytest.param({"completions": 1, "parallelism": 1}, False, id="one"),
        pytest.param({"parallelism": None, "completions": None}, False, id="not set"),
        pytest.param({"template": {"spec": {"schedulingGroup": {"podGroupName": "g"}}}}, False, id="grouped already"),
    ],
)
def test_jobs_that_get_a_pod_group(spec: dict[str, Any], expected: bool, make_job: MakeJob) -> None:
    assert gang.is_gang(make_job(**(TOGETHER | spec))) is expected


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        pytest.param({}, True, id="new"),
        pytest.param({"startTime": "2026-01-02T03:00:00Z"}, False, id="started"),
        pytest.param({"succeeded": 1}, False, id="a success"),
        pytest.param({"failed": 1}, False, id="a failure"),
        pytest.param({"conditions": [{"type": "Suspended", "status": "True"}]}, False, id="suspended"),
        pytest.param({"conditions": [{"type": "Suspended", "status": "False"}]}, False, id="resumed"),
    ],
)
def test_only_before_the_first_start(status: dict[str, Any], expected: bool, make_job: MakeJob) -> None:
    assert gang.is_new(make_job(status={"startTime": None} | status, **TOGETHER), ()) is expected


def test_not_for_jobs_with_pods(make_job: MakeJob, make_pod: MakePod) -> None:
    assert not gang.is_new(make_job(status={"startTime": None}, **TOGETHER), (make_pod("p"),))


def test_the_names_are_those_of_the_go_binary(make_job: MakeJob) -> None:
    job = make_job(metadata={"name": "gang", "uid": UID}, **TOGETHER)
    assert gang.workload_name(job) == "gang-58f5ff5766"
    assert gang.pod_group_name("gang-58f5ff5766", "gang-pgt-0") == "gang-58f5ff5766-gang-pgt-0-549487f9f7"


@pytest.mark.parametrize(
    ("workload", "template", "kept"),
    [
        pytest.param("w" * 200, "t" * 10, (200, 10), id="both fit"),
        pytest.param("w" * 250, "t" * 10, (None, 10), id="a long workload"),
        pytest.param("w" * 10, "t" * 250, (10, None), id="a long template"),
        pytest.param("w" * 250, "t" * 250, (None, None), id="both long"),
    ],
)
def test_long_names_are_truncated(workload: str, template: str, kept: tuple[int | None, int | None]) -> None:
    first, second, suffix = gang.pod_group_name(workload, template).split("-")
    room = 253 - len(suffix) - 2
    for length, other, found in ((kept[0], kept[1], first), (kept[1], kept[0], second)):
        if length is not None:
            assert len(found) == length
        elif other is not None:
            assert len(found) == room - other
    if kept == (None, None):
        assert (len(first), len(second)) == (room - room // 2, room // 2)


def test_contents_of_workload_and_pod_group(make_job: MakeJob) -> None:
    job = make_job(metadata={"name": "gang", "uid": UID}, **TOGETHER)
    doc = gang.workload_of(job)
    assert doc["spec"] == {
        "controllerRef": {"apiGroup": "batch", "kind": "Job", "name": "gang"},
        "podGroupTemplates": [{"name": "gang-pgt-0", "schedulingPolicy": {"gang": {"minCount": 3}}}],
    }
    workload = codec.decode(codec.encode({**doc, "metadata": {**_metadata(doc), "uid": "w-uid"}}), Workload)
    assert gang.job_of(workload) == "ns/gang"
    group = gang.pod_group_of(job, workload)
    owner = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "name": "gang",
        "uid": UID,
        "controller": True,
        "blockOwnerDeletion": True,
    }
    theirs = {
        "apiVersion": "scheduling.k8s.io/v1alpha2",
        "kind": "Workload",
        "name": "gang-58f5ff5766",
        "uid": "w-uid",
    }
    assert _metadata(group)["ownerReferences"] == [owner, theirs]
    assert group["spec"] == {
        "podGroupTemplateRef": {"workload": {"workloadName": "gang-58f5ff5766", "podGroupTemplateName": "gang-pgt-0"}},
        "schedulingPolicy": {"gang": {"minCount": 3}},
    }


def _metadata(doc: Any) -> dict[str, Any]:
    metadata: dict[str, Any] = doc["metadata"]
    return metadata


# In a sandbox, where custom resources stand for the alpha API.

GATES = [("", "GenericWorkload=true"), ("", "WorkloadWithJob=true")]


class Story(Around):
    """A Job ``gang`` and the bodies of the pods that were created for it."""

    def __init__(self, world: World) -> None:
        self.world = world
        super().__init__(world.server.transport())
        self.pods: list[dict[str, Any]] = []

    async def send(self, request: Any) -> Any:
        if request.method == "POST" and request.path.endswith("/pods"):
            self.pods.append(json.loads(request.body))
        return await self._inner.send(request)

    def running(self, gates: list[tuple[str, str]]) -> Any:
        return controllers(self.world, JobConfig(), names=["job-controller"], gates=gates, transport=self)

    async def serve(self) -> None:
        await serve(self.world, WORKLOADS, POD_GROUPS)

    async def job(self, **spec: Any) -> None:
        pod = {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}
        template = {
            "metadata": {"annotations": {"sandbox.kcm.dev/run-time": "20s", "sandbox.kcm.dev/exit-code": "1"}},
            "spec": pod,
        }
        await self.world.create(
            JOBS, {"metadata": {"name": "gang"}, "spec": {"template": template, **TOGETHER, **spec}}
        )

    async def names(self, kind: Any) -> list[str]:
        listed = json.loads(await self.world.client.list_page(kind, "default"))
        return [item["metadata"]["name"] for item in listed["items"]]

    def groups(self) -> set[str | None]:
        return {(pod["spec"].get("schedulingGroup") or {}).get("podGroupName") for pod in self.pods}


GROUPS = resource("podgroups", "scheduling.k8s.io", "v1alpha2")


async def test_all_pods_join_one_group(world: World):
    story = Story(world)
    await story.serve()
    async with story.running(GATES):
        await story.job()
        await world.wait(120)
        assert len(story.pods) > 3  # they fail, and those that follow join, too
        workloads, groups = await story.names(WORKLOADS), await story.names(GROUPS)
        assert len(workloads) == 1 and story.groups() == set(groups) and len(groups) == 1
        text = f"Created Workload {workloads[0]} for Job gang"
        assert ("WorkloadCreated", text) in await world.events("gang")


@pytest.mark.parametrize(
    ("gates", "spec"),
    [
        pytest.param([], {}, id="the gate is off"),
        pytest.param(GATES, {"parallelism": 2}, id="not all at once"),
    ],
)
async def test_jobs_without_a_pod_group(world: World, gates, spec):
    story = Story(world)
    await story.serve()
    async with story.running(gates):
        await story.job(**spec)
        await world.wait(5)
        assert story.groups() == {None}
        assert await story.names(WORKLOADS) == []


@pytest.mark.parametrize(
    ("count", "templates"),
    [
        pytest.param(1, [{"name": "t", "schedulingPolicy": {"basic": {}}}], id="another owner's"),
        pytest.param(2, [{"name": "t", "schedulingPolicy": {"basic": {}}}], id="several"),
    ],
)
async def test_ambiguous_groups_are_not_used(world: World, count, templates):
    story = Story(world)
    await story.serve()
    ref = {"apiGroup": "batch", "kind": "Job", "name": "gang"}
    for number in range(count):
        doc = {
            "apiVersion": "scheduling.k8s.io/v1alpha2",
            "kind": "Workload",
            "metadata": {"name": f"w{number}"},
            "spec": {"controllerRef": ref, "podGroupTemplates": templates},
        }
        await world.create(WORKLOADS, doc)
    async with story.running(GATES):
        await world.wait(2)
        await story.job()
        await world.wait(5)
        assert len(story.pods) == 3 and story.groups() == {None}
        assert len(await story.names(WORKLOADS)) == count
        assert await story.names(GROUPS) == []
