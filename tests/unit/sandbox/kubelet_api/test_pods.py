"""What a stored pod says about the runs of its containers, and its changes."""

import asyncio
from datetime import UTC, datetime

import pytest

from kcm_cli.machinery import codec
from kcm_cli.sandbox.apiserver.store import Store
from kcm_cli.sandbox.apiserver.store.stored import Recent, Stored
from kcm_cli.sandbox.kubelet_api.pods import PODS, Pod, Run, failed_kubelet, shown_since, until
from kcm_cli.sandbox.views import NODES

WAITS = 'container "c" in pod "p" is waiting to start'
STATES = {
    f"{WAITS}: image can't be pulled": {"state": {"waiting": {"reason": "ErrImagePull"}}},
    f"{WAITS}: trying and failing to pull image": {"state": {"waiting": {"reason": "ImagePullBackOff"}}},
    f"{WAITS}: ContainerCreating": {"state": {"waiting": {"reason": "ContainerCreating"}}},
    f"{WAITS}: CreateContainerConfigError": {"state": {"waiting": {"reason": "CreateContainerConfigError"}}},
    f"{WAITS} - no logs yet": {},
}


@pytest.mark.parametrize("text", STATES)
@pytest.mark.parametrize("kind", ["containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"])
def test_why_there_are_no_logs(text: str, kind: str) -> None:
    found = pod({kind: [{"name": "c", **STATES[text]}]})
    assert found.run("c", previous=False) is None
    assert found.no_logs("c", previous=False) == text
    assert found.no_logs("c", previous=True) == 'previous terminated container "c" in pod "p" not found'


def test_a_container_without_a_status_is_not_available() -> None:
    assert pod({}).no_logs("c", previous=False) == f"{WAITS}: ContainerCreating"
    other = pod({"containerStatuses": [{"name": "d", "state": {"waiting": {}}}]})
    rejected = pod({"phase": "Failed", "reason": "OutOfcpu"})
    for previous in (False, True):
        assert other.no_logs("c", previous=previous) == 'container "c" in pod "p" is not available'
        assert rejected.no_logs("c", previous=previous) == 'container "c" in pod "p" is not available'


TIMES = {"startedAt": "2020-01-01T00:00:00Z", "finishedAt": "2020-01-01T00:00:01Z"}
ENDED = {"terminated": {"exitCode": 1, "containerID": "containerd://1", **TIMES}}
LOST = {"terminated": {"exitCode": 137, "reason": "ContainerStatusUnknown", "startedAt": None, "finishedAt": None}}


@pytest.mark.parametrize(
    ("status", "last"),
    [
        ({"state": LOST}, None),
        ({"state": LOST, "lastState": ENDED}, 1),
        ({"state": {"waiting": {}}, "lastState": LOST}, None),
    ],
)
def test_a_container_that_was_not_found_has_no_log_of_its_own(status: dict[str, object], last: int | None) -> None:
    found = pod({"containerStatuses": [{"name": "c", "restartCount": 0, **status}]})
    run = found.run("c", previous=False)
    assert (run.number if run is not None else None) == last
    assert found.no_logs("c", previous=False) == 'container "c" in pod "p" is terminated'


def test_since_when_a_run_is_shown() -> None:
    store = Store()
    store.create(PODS, "d", "p", shown("p"))
    versions = [{"containerID": "containerd://1"}] * 2 + [{"containerID": "containerd://2", "lastState": ENDED}] * 2
    for at, each in enumerate(versions):
        changed = {**shown("p"), "status": {"containerStatuses": [{"name": "c", "at": at, **each}]}}
        store.update(PODS, "d", "p", changed)
    first, now = store.revision - 3, datetime(2026, 1, 1, tzinfo=UTC)
    for number, revision in ((1, first), (2, first + 2)):
        found = shown_since(store, pod({}), Run(now, None, number, f"containerd://{number}"))
        assert found is not None and found.revision == revision
    assert shown_since(store, pod({}), Run(now, None, 3, "containerd://3")) is None
    store.compact(first + 1)
    found = shown_since(store, pod({}), Run(now, None, 1, "containerd://1"))
    assert found is not None and found.revision == first + 1


@pytest.mark.parametrize(
    ("state", "latest"),
    [({"waiting": {"reason": "CrashLoopBackOff"}}, 2), ({"running": {"startedAt": "2020-01-01T00:00:02Z"}}, 1)],
    ids=["waits for its restart", "runs again"],
)
def test_the_previous_run_of_a_container_that_waits_is_its_latest(state: dict[str, object], latest: int) -> None:
    found = pod({"containerStatuses": [{"name": "c", "restartCount": 1, "state": state, "lastState": ENDED}]})
    before = found.run("c", previous=True)
    assert before is not None and before.number == latest


async def test_changes_of_other_pods_are_not_looked_at() -> None:
    store = Store()
    store.create(PODS, "d", "p", shown("p"))
    looked = list[int]()

    def gone() -> bool:
        looked.append(store.revision)
        return store.get(PODS, "d", "p") is None

    waiting = asyncio.ensure_future(until(store, pod({}), gone))
    for number in range(20):
        await asyncio.sleep(0)
        store.create(PODS, "d", f"q{number}", shown(f"q{number}"))
    await asyncio.sleep(0)
    assert len(looked) == 1
    store.delete(PODS, "d", "p")
    await asyncio.wait_for(waiting, 5)
    assert len(looked) == 2 and not store.watchers()


async def test_a_change_among_more_than_are_kept_is_noticed() -> None:
    store = Store(keep=10)
    store.create(PODS, "d", "p", shown("p"))
    waiting = asyncio.ensure_future(until(store, pod({}), lambda: store.get(PODS, "d", "p") is None))
    await asyncio.sleep(0)
    for number in range(50):
        store.create(PODS, "d", f"q{number}", shown(f"q{number}"))
    await asyncio.sleep(0)
    assert not waiting.done()
    store.delete(PODS, "d", "p")
    for number in range(50):
        store.delete(PODS, "d", f"q{number}")
    await asyncio.wait_for(waiting, 5)
    assert not store.watchers()


@pytest.mark.parametrize(
    ("addresses", "where"),
    [
        ([{"type": "Hostname", "address": "h"}, {"type": "InternalIP", "address": "10.0.0.1"}], "10.0.0.1:10250"),
        ([{"type": "InternalIP", "address": ""}, {"type": "InternalIP"}, {}], "n:10250"),
        (None, "n:10250"),
    ],
)
def test_where_a_kubelet_that_has_stopped_would_be(addresses: object, where: str) -> None:
    store = Store()
    stopped = {"sandbox.kcm.dev/simulated": "true", "sandbox.kcm.dev/failed": "true"}
    node = {"metadata": {"name": "n", "annotations": stopped}, "status": {"addresses": addresses}}
    store.create(NODES.gvr, "", "n", node)
    assert failed_kubelet(store, pod({}, nodeName="n")) == where


def shown(name: str) -> dict[str, object]:
    return {"metadata": {"name": name, "namespace": "d"}, "spec": {"containers": [{"name": "c"}]}}


def pod(status: dict[str, object], **spec: object) -> Pod:
    doc = {**shown("p"), "spec": {"containers": [{"name": "c"}], **spec}, "status": status}
    return Pod(Stored("d", "p", 1, codec.encode(doc), Recent(1 << 20)), lambda view: view.annotations)
