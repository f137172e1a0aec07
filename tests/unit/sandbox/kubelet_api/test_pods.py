"""What a stored pod says about the runs of its containers."""

import pytest

from kcm_cli.machinery import codec
from kcm_cli.sandbox.apiserver.store.stored import Recent, Stored
from kcm_cli.sandbox.kubelet_api.pods import Pod

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
    assert other.no_logs("c", previous=False) == 'container "c" in pod "p" is not available'
    assert other.no_logs("c", previous=True) == 'previous terminated container "c" in pod "p" not found'


ENDED = {"terminated": {"exitCode": 1, "startedAt": "2020-01-01T00:00:00Z", "finishedAt": "2020-01-01T00:00:01Z"}}


@pytest.mark.parametrize(
    ("state", "latest"),
    [({"waiting": {"reason": "CrashLoopBackOff"}}, 2), ({"running": {"startedAt": "2020-01-01T00:00:02Z"}}, 1)],
    ids=["waits for its restart", "runs again"],
)
def test_the_previous_run_of_a_container_that_waits_is_its_latest(state: dict[str, object], latest: int) -> None:
    found = pod({"containerStatuses": [{"name": "c", "restartCount": 1, "state": state, "lastState": ENDED}]})
    before = found.run("c", previous=True)
    assert before is not None and before.number == latest


def pod(status: dict[str, object]) -> Pod:
    doc = {"metadata": {"name": "p", "namespace": "d"}, "spec": {"containers": [{"name": "c"}]}, "status": status}
    return Pod(Stored("d", "p", 1, codec.encode(doc), Recent(1 << 20)), lambda view: view.annotations)
