"""Which version of a pod a simulated kubelet refers to."""

from typing import Any

import pytest
from msgspec.structs import replace

from kcm_cli.machinery import codec
from kcm_cli.sandbox.nodes.agents import Agent
from kcm_cli.sandbox.nodes.images import Images
from kcm_cli.sandbox.nodes.kubelet import Life
from kcm_cli.sandbox.nodes.machine import PodState
from kcm_cli.sandbox.nodes.script import PodScript
from kcm_cli.sandbox.nodes.status import PodAddresses
from kcm_cli.sandbox.views import PODS, SimulatedPod


def pod(version: str, **more: Any) -> SimulatedPod:
    metadata = {"name": "p", "namespace": "n", "uid": "1", "resourceVersion": version, **more.pop("metadata", {})}
    doc = {"metadata": metadata, "spec": {"containers": [{"name": "c", "image": "i"}]}, **more}
    return PODS.decode(codec.encode(doc))


def life(of: SimulatedPod) -> Life:
    agent = Agent("node", 1, "10.244.0.0/24", Images())
    script, state = PodScript((), 0.0, 0.0, 0.0), PodState(0.0, ())
    return Life(of.uid, agent, of, script, state, PodAddresses("", ""), (), of.spec)


def test_the_version_with_its_own_status_replaces_the_one_before() -> None:
    old, new = pod("1"), pod("2", status={"phase": "Running"})
    one = life(old)
    one.share(new)
    assert one.pod is new
    assert one.granted is new.spec


@pytest.mark.parametrize(
    "changes",
    [
        {"metadata": {"annotations": {"sandbox.kcm.dev/run-time": "1s"}}},
        {"metadata": {"ownerReferences": [{"apiVersion": "v1", "kind": "K", "name": "o", "uid": "2"}]}},
        {"spec": {"containers": [{"name": "c", "image": "new"}]}},
    ],
)
def test_a_change_by_another_client_waits_for_the_sync_that_compares(changes: dict[str, Any]) -> None:
    old = pod("1")
    one = life(old)
    one.share(pod("3", status={"phase": "Running"}, **changes))
    assert one.pod is old


def test_allocated_resources_that_are_not_those_of_the_spec_stay() -> None:
    old, new = pod("1"), pod("2", status={"phase": "Running"})
    one = life(old)
    one.granted = replace(old.spec)
    kept = one.granted
    one.share(new)
    assert one.granted is kept
