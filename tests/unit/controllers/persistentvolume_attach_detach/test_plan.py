"""When volumes are attached and detached, and messages."""

import pytest

from kcm_cli.api.core import NODES, PODS
from kcm_cli.controllers.persistentvolume_attach_detach import plan
from kcm_cli.controllers.persistentvolume_attach_detach.plan import (
    MAX_UNMOUNT_S,
    Attach,
    Detach,
    NeededVolume,
    UnneededVolume,
)
from kcm_cli.machinery import codec


def node(ready="True", *taints):
    conditions = [{"type": "Ready", "status": ready}] if ready else []
    doc = {"spec": {"taints": [{"key": key, "effect": "NoExecute"} for key in taints]}}
    return NODES.decode(codec.encode({**doc, "status": {"conditions": conditions}}))


def pod(name="p", namespace="d"):
    return PODS.decode(codec.encode({"metadata": {"name": name, "namespace": namespace}}))


READY, LOST = node(), node("Unknown")
OUT = node("Unknown", "node.kubernetes.io/out-of-service")


@pytest.mark.parametrize(
    ("mounted", "at", "waited_s", "forces", "expected"),
    [
        pytest.param(False, READY, 0, True, Detach.SAFELY, id="unmounted"),
        pytest.param(False, LOST, 0, True, Detach.SAFELY, id="unmounted, not ready"),
        pytest.param(False, None, 0, True, Detach.SAFELY, id="unmounted, no node"),
        pytest.param(True, READY, 0, True, Detach.WAIT, id="mounted"),
        pytest.param(True, READY, 9999, True, Detach.WAIT, id="mounted for long, ready"),
        pytest.param(True, LOST, 360, True, Detach.WAIT, id="mounted for six minutes"),
        pytest.param(True, LOST, 360.1, True, Detach.TIMEOUT, id="mounted for more"),
        pytest.param(True, None, 361, True, Detach.TIMEOUT, id="mounted for more, no node"),
        pytest.param(True, node(""), 361, True, Detach.TIMEOUT, id="a node without status"),
        pytest.param(True, LOST, 361, False, Detach.WAIT, id="mounted for more, never forced"),
        pytest.param(False, READY, 361, True, Detach.TIMEOUT, id="unmounted late"),
        pytest.param(False, READY, 361, False, Detach.SAFELY, id="unmounted late, never forced"),
        pytest.param(True, OUT, 0, True, Detach.OUT_OF_SERVICE, id="out of service"),
        pytest.param(True, OUT, 0, False, Detach.OUT_OF_SERVICE, id="out of service, never forced"),
        pytest.param(True, OUT, 361, True, Detach.TIMEOUT, id="out of service for long"),
        pytest.param(True, node("True", "other"), 0, True, Detach.WAIT, id="another taint"),
    ],
)
def test_the_way_volumes_are_detached(mounted, at, waited_s, forces, expected):
    volume = unneeded(node=at, waited_s=waited_s, mounted=mounted, force_on_timeout=forces)
    assert plan.plan_detach(volume)[0] is expected


def unneeded(**changes):
    """A mounted volume of a ready node."""
    free = {"known_plugin": True, "pending": False, "backoff_s": 0.0, "may_be_needed": False, "force_on_timeout": True}
    return UnneededVolume(**{**free, "node": READY, "mounted": True, "waited_s": 0.0, **changes})


@pytest.mark.parametrize(
    ("volume", "expected"),
    [
        pytest.param(unneeded(mounted=False, known_plugin=False), (Detach.NO, None), id="of an unknown plugin"),
        pytest.param(unneeded(mounted=False, pending=True), (Detach.NO, None), id="an operation is pending"),
        pytest.param(unneeded(mounted=False, pending=True, backoff_s=2), (Detach.NO, None), id="again"),
        pytest.param(unneeded(mounted=False, backoff_s=2), (Detach.NO, 2), id="failed before"),
        pytest.param(unneeded(mounted=False, may_be_needed=True), (Detach.NO, 60), id="a pod is undecodable"),
        pytest.param(unneeded(mounted=False, may_be_needed=True, backoff_s=2), (Detach.NO, 60), id="and it failed"),
        pytest.param(unneeded(node=OUT, may_be_needed=True), (Detach.NO, 60), id="and the node is out of service"),
        pytest.param(unneeded(), (Detach.WAIT, 360.1), id="mounted"),
        pytest.param(unneeded(waited_s=MAX_UNMOUNT_S), (Detach.WAIT, 0.1), id="mounted to the last moment"),
        pytest.param(unneeded(waited_s=361), (Detach.WAIT, None), id="mounted for long: the node will say"),
        pytest.param(unneeded(force_on_timeout=False), (Detach.WAIT, None), id="mounted, never forced"),
        pytest.param(unneeded(mounted=False), (Detach.SAFELY, None), id="unmounted"),
    ],
)
def test_volumes_that_are_detached(volume, expected):
    decision, after_s = plan.plan_detach(volume)
    assert (decision, after_s) == (expected[0], None if expected[1] is None else pytest.approx(expected[1]))


def needed(**changes):
    """A volume that is attached to no node."""
    free = {"pending": False, "attached": False, "in_use_elsewhere": False, "backoff_s": 0.0}
    return NeededVolume(**{**free, **changes})


@pytest.mark.parametrize(
    ("volume", "expected"),
    [
        pytest.param(needed(), (Attach.START, None), id="free"),
        pytest.param(needed(pending=True), (Attach.NO, None), id="an operation is pending"),
        pytest.param(needed(pending=True, attached=True), (Attach.NO, None), id="being detached"),
        pytest.param(needed(attached=True), (Attach.ATTACHED, None), id="attached"),
        pytest.param(needed(backoff_s=2, attached=True), (Attach.ATTACHED, None), id="attached, failed before"),
        pytest.param(needed(in_use_elsewhere=True), (Attach.MULTI_ATTACH_ERROR, None), id="attached elsewhere"),
        pytest.param(
            needed(backoff_s=2, in_use_elsewhere=True), (Attach.MULTI_ATTACH_ERROR, None), id="elsewhere, failed before"
        ),
        pytest.param(needed(backoff_s=2), (Attach.NO, 2), id="failed before"),
    ],
)
def test_volumes_that_are_attached(volume, expected):
    assert plan.plan_attach(volume) == expected


@pytest.mark.parametrize(
    ("users", "expected"),
    [
        ([], "Volume is already exclusively attached to one node and can't be attached to another"),
        ([pod(name="b"), pod(name="a")], "Volume is already used by pod(s) a, b"),
        ([pod(namespace="e")], "Volume is already used by 1 pod(s) in different namespaces"),
        (
            [pod(name="a"), pod(namespace="e"), pod(namespace="f")],
            "Volume is already used by pod(s) a and 2 pod(s) in different namespaces",
        ),
    ],
)
def test_messages_for_volumes_in_use(users, expected):
    (notice,) = plan.attached_elsewhere([pod()], "v", users)
    assert (notice.type, notice.reason) == ("Warning", "FailedAttachVolume")
    assert notice.message == f'Multi-Attach error for volume "v" {expected}'
