"""The desired and the actual state, and operations."""

import pytest

from kcm_cli.api.core import PODS
from kcm_cli.component.clock import LoopClock
from kcm_cli.controllers.persistentvolume_attach_detach.operations import ATTACH, DETACH, Operations
from kcm_cli.controllers.persistentvolume_attach_detach.states import ActualState, DesiredState
from kcm_cli.machinery import codec
from kcm_cli.planning.volumes.attachable import AttachableVolume

A = AttachableVolume("u/a", "a", "u")
B = AttachableVolume("u/b", "b", "u")


def pod(uid, node="n1"):
    return PODS.decode(codec.encode({"metadata": {"name": uid, "uid": uid}, "spec": {"nodeName": node}}))


# -- desired


def test_a_volume_is_desired_until_its_last_pod_is_removed():
    desired = DesiredState()
    assert [desired.add(pod("p"), A), desired.add(pod("p"), A), desired.add(pod("q"), A)] == [True, False, True]
    assert desired.remove_pod("p") == ["u/a"]
    assert desired.nodes_of("u/a") == ("n1",)
    assert desired.remove_pod("q") == ["u/a"]
    assert (desired.nodes_of("u/a"), list(desired), desired.remove_pod("q")) == ((), [], [])


def test_a_node_is_managed_while_pods_need_volumes_there():
    desired = DesiredState()
    assert (desired.add_node("n1"), desired.add_node("n1")) == (True, False)
    desired.add(pod("p"), A)
    desired.remove_node("n1")
    assert desired.manages("n1")
    desired.remove_pod("p")
    desired.remove_node("n1")
    assert not desired.manages("n1")


def test_a_volume_that_is_no_longer_attached_does_not_affect_others():
    desired = DesiredState()
    for volume in (A, B):
        desired.add(pod("p"), volume)
        desired.add(pod("q", "n2"), volume)
    desired.remove_volume("u/a")
    assert (desired.nodes_of("u/a"), desired.nodes_of("u/b")) == ((), ("n1", "n2"))
    assert desired.remove_pod("p") == ["u/b"]


def test_pods_are_found_by_volume_and_node():
    desired = DesiredState()
    desired.add(pod("p"), A)
    desired.add(pod("q", "n2"), A)
    assert [one.uid for one in desired.pods_on("u/a", ["n2", "n3"])] == ["q"]


# -- actual


def test_a_new_attachment_is_mounted_only_if_the_node_says_so():
    """So that the volume of a pod that is deleted before it has started is detached without waiting for the node."""
    actual = ActualState()
    actual.set_in_use("n1", ["u/b"])
    actual.attached("u/a", A, "n1")
    actual.attached("u/b", A, "n1")
    assert (actual.in_use("u/a", "n1"), actual.in_use("u/b", "n1")) == (False, True)
    actual.set_in_use("n1", ["u/a"])
    assert (actual.in_use("u/a", "n1"), actual.in_use("u/b", "n1")) == (True, False)


def test_the_node_status_has_only_certain_volumes():
    actual = ActualState()
    assert actual.reports("n1") is None
    actual.uncertain("u/a", A, "n1")
    assert (actual.reports("n1"), actual.confirmed_nodes("u/a")) == (None, [])
    actual.attached("u/b", None, "n1", "/dev/x")
    actual.attached("u/a", A, "n1")
    assert actual.reports("n1") == [("u/a", ""), ("u/b", "/dev/x")]
    actual.unreport("u/a", "n1")
    assert actual.reports("n1") == [("u/b", "/dev/x")]
    actual.report("u/c", "n1")  # not attached at all
    actual.detached("u/b", "n1")
    assert actual.reports("n1") == []


def test_detached_volumes_are_removed():
    actual = ActualState()
    actual.attached("u/a", A, "n1")
    actual.attached("u/a", A, "n2")
    actual.detached("u/a", "n1")
    actual.detached("u/a", "n1")
    assert (actual.nodes_of("u/a"), actual.on_node("n1"), actual.on_node("n2")) == (("n2",), (), ("u/a",))
    actual.detached("u/a", "n2")
    assert (actual.get("u/a"), list(actual)) == (None, [])
    actual.forget_node("n1")
    assert actual.reports("n1") is None


# -- operations


@pytest.fixture
def clock():
    return LoopClock()


@pytest.fixture
def operations(clock):
    return Operations(clock)


async def test_an_operation_on_a_whole_volume_excludes_all_others(operations):
    operations.start("v", "", ATTACH)
    assert operations.pending("v", "") and operations.pending("v", "n1") and not operations.pending("w", "")
    operations.end("v", "", failed=False)
    operations.start("v", "n1", ATTACH)
    assert operations.pending("v", "") and not operations.pending("v", "n2")


async def test_the_backoff_of_failures_doubles(operations, clock):
    waits = []
    for _ in range(10):
        operations.start("v", "", ATTACH)
        operations.end("v", "", failed=True)
        waits.append(round(operations.wait_s("v", "", ATTACH), 3))
        await clock.sleep(waits[-1])
        assert operations.wait_s("v", "", ATTACH) == 0
    assert waits == [0.5, 1, 2, 4, 8, 16, 32, 64, 122, 122]


async def test_the_backoff_is_per_operation_and_reset_by_success(operations):
    operations.start("v", "", ATTACH)
    operations.end("v", "", failed=True)
    assert operations.wait_s("v", "", DETACH) == 0
    operations.start("v", "", DETACH)
    operations.end("v", "", failed=False)
    assert operations.wait_s("v", "", ATTACH) == 0


async def test_unknown_operations_are_dropped_unless_pending(operations):
    operations.start("v", "n1", ATTACH)
    operations.start("v", "n2", ATTACH)
    operations.end("v", "n1", failed=True)
    operations.drop("v")
    assert operations.wait_s("v", "n1", ATTACH) == 0
    assert operations.pending("v", "n2")
