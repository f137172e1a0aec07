"""A restarted kubelet continues with its pods."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcm_cli.machinery import codec
from kcm_cli.sandbox.nodes import machine, script
from kcm_cli.sandbox.nodes.restore import restore
from kcm_cli.sandbox.nodes.status import Known, PodAddresses, render
from kcm_cli.sandbox.views import PODS

EPOCH = 1_800_000_000.0
PLACE = PodAddresses("10.244.1.2", "172.18.0.3")


def pod_doc(policy: str, **annotations: str) -> dict:
    return {
        "metadata": {
            "name": "p",
            "namespace": "default",
            "uid": "u",
            "annotations": {f"sandbox.kcm.dev/{k.replace('_', '-')}": v for k, v in annotations.items()},
        },
        "spec": {
            "restartPolicy": policy,
            "initContainers": [{"name": "i", "image": "x"}, {"name": "s", "image": "x", "restartPolicy": "Always"}],
            "containers": [{"name": "c", "image": "x"}],
        },
    }


@given(
    st.sampled_from(["Always", "OnFailure"]),
    st.sampled_from(
        [{}, {"exit_code": "1"}, {"run_time": "7s"}, {"restarts": "2", "run_time": "3s"}, {"start_delay": "9s"}]
    ),
    st.integers(0, 300),
)
def test_the_status_after_a_restart_is_the_status_before_it(policy: str, annotations: dict, age_s: int) -> None:
    doc = pod_doc(policy, **annotations)
    pod = PODS.decode(codec.encode(doc))
    played = script.read(pod)
    now = EPOCH + age_s
    state = machine.advance(played, machine.accept(played, EPOCH), now)
    status, _ = render(pod, played, state, PLACE, now, Known())
    again = PODS.decode(codec.encode({**doc, "status": status}))
    restored = machine.advance(played, restore(again, played, now), now)
    restored_status, _ = render(again, played, restored, PLACE, now, Known(again.status.conditions))
    # the reason why a container waits counts down with its backoff, which the status does not tell exactly
    assert _without_messages(restored_status) == _without_messages(status)


def _without_messages(status: dict) -> dict:
    for container in status["containerStatuses"]:
        container["state"].get("waiting", {}).pop("message", None)
    return status


def test_a_pod_without_status_starts() -> None:
    pod = PODS.decode(codec.encode(pod_doc("Always")))
    played = script.read(pod)
    assert restore(pod, played, EPOCH) == machine.accept(played, EPOCH)


@pytest.mark.parametrize("age_s", [10, 15, 15.5, 17, 20, 30])
def test_containers_that_are_restarted_together_all_start_again(age_s: float) -> None:
    rule = {"action": "RestartAllContainers", "exitCodes": {"operator": "In", "values": [42]}}
    again = "if [ -f /mnt/x ]; then sleep 10000; else touch /mnt/x; sleep 10; exit 42; fi"
    source = {"name": "c", "image": "x", "command": ["sh", "-c", again], "restartPolicyRules": [rule]}
    doc = pod_doc("Never")
    doc["spec"] = {
        "restartPolicy": "Never",
        "volumes": [{"name": "w", "emptyDir": {}}],
        "initContainers": [{"name": "i", "image": "x", "command": ["sleep", "5"]}],
        "containers": [
            source | {"restartPolicy": "Never", "volumeMounts": [{"name": "w", "mountPath": "/mnt"}]},
            {"name": "d", "image": "x", "command": ["sleep", "9999"]},
        ],
    }
    pod = PODS.decode(codec.encode(doc))
    played = script.read(pod)
    state = machine.advance(played, machine.accept(played, EPOCH), EPOCH + age_s)
    status, _ = render(pod, played, state, PLACE, EPOCH + age_s, Known())
    pod = PODS.decode(codec.encode({**doc, "status": status}))
    restored = machine.advance(played, restore(pod, played, EPOCH + age_s), EPOCH + age_s + 2)
    if age_s > 15:
        status, _ = render(pod, played, restored, PLACE, EPOCH + age_s + 2, Known())
        assert [each["restartCount"] for each in status["containerStatuses"]] == [1, 1]
        assert status["initContainerStatuses"][0]["restartCount"] == 1
        assert status["phase"] == ("Pending" if age_s < 20 else "Running")
    status, _ = render(pod, played, machine.advance(played, restored, EPOCH + 60), PLACE, EPOCH + 60, Known())
    assert status["phase"] == "Running"
    assert all("running" in each["state"] and each["restartCount"] == 1 for each in status["containerStatuses"])
