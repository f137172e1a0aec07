"""The limits for volumes of a driver in CSINodes."""

from typing import Any

import pytest

from kcm_cli.api.storage import VOLUME_ATTACHMENTS
from kcm_cli.machinery import codec
from kcm_cli.sandbox.scheduler.stores import Volumes
from kcm_cli.sandbox.storage.views import CSI_NODES
from tests.unit.sandbox.scheduler.build import node_doc, placed, pod, state_of, volumes_of

BOUND = {"pv.kubernetes.io/bind-completed": "yes"}
WAITING = {"metadata": {"name": "late"}, "provisioner": "d", "volumeBindingMode": "WaitForFirstConsumer"}
FULL = "0/1 nodes are available: 1 node(s) exceed max volume count."


def claim(name: str, **spec: Any) -> dict:
    metadata = {"name": name, "namespace": "default", "uid": name, "annotations": BOUND if spec else {}}
    return {"metadata": metadata, "spec": {"storageClassName": "late", **spec}}


def volume(name: str, driver: str = "d") -> dict:
    csi = {"driver": driver, "volumeHandle": name}
    return {"metadata": {"name": name}, "spec": {"csi": csi, "capacity": {"storage": "1Gi"}}}


def using(name: str, *claims: str):
    return pod(name, volumes=[{"name": c, "persistentVolumeClaim": {"claimName": c}} for c in claims])


def known(limit: int | None, *, attached: str = "") -> Volumes:
    """The claims a, b and c with volumes of the driver d, x of another, and new without one."""
    claims = [claim(name, volumeName=name) for name in "abcx"]
    volumes = [*(volume(name) for name in "abc"), volume("x", "other")]
    found = volumes_of([*claims, claim("new"), claim("new2")], volumes, [WAITING])
    allocatable = {"allocatable": {"count": limit}} if limit is not None else {}
    csi_node = {"metadata": {"name": "n"}, "spec": {"drivers": [{"name": "d", **allocatable}]}}
    found.csi_nodes.put(CSI_NODES.decode(codec.encode(csi_node)))
    if attached:
        spec = {"attacher": "d", "nodeName": "n", "source": {"persistentVolumeName": attached}}
        found.attachments.put(VOLUME_ATTACHMENTS.decode(codec.encode({"metadata": {"name": "va"}, "spec": spec})))
    return found


@pytest.mark.parametrize(
    ("volumes", "there", "wanted", "expected"),
    [
        pytest.param(known(1), [], ["a"], "n", id="room"),
        pytest.param(known(1), ["a"], ["b"], FULL, id="full"),
        pytest.param(known(1), ["a"], ["a"], "n", id="attached already"),
        pytest.param(known(2), ["a"], ["b", "c"], FULL, id="two more"),
        pytest.param(known(1), ["a"], ["x"], "n", id="another driver"),
        pytest.param(known(1), ["x"], ["a"], "n", id="another driver's there"),
        pytest.param(known(None), ["a"], ["b"], "n", id="no limit"),
        pytest.param(known(1), ["a"], ["new"], FULL, id="one to be made"),
        pytest.param(known(1), ["new2"], ["new"], FULL, id="one that is being made"),
        pytest.param(known(1, attached="c"), [], ["a"], FULL, id="attached for nobody"),
        pytest.param(known(2, attached="a"), ["a"], ["b"], "n", id="attached for a pod"),
    ],
)
def test_limits(volumes, there, wanted, expected):
    state = state_of(node_doc("n"), pods={"n": [using("o", *there)]})
    assert placed(using("p", *wanted), state, volumes) == expected
