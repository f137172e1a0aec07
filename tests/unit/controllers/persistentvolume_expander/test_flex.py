"""The steps of expanding FlexVolumes."""

from datetime import UTC, datetime

import pytest

from kcm_cli.api.core import PERSISTENT_VOLUME_CLAIMS
from kcm_cli.api.storage import PERSISTENT_VOLUMES
from kcm_cli.controllers.persistentvolume_expander import plan
from kcm_cli.controllers.persistentvolume_expander.plan import Growth, Step
from kcm_cli.machinery import codec

NOW = datetime(2026, 1, 1, tzinfo=UTC)
AT = "2026-01-01T00:00:00Z"


def claim(asks="2Gi", has="1Gi", state=None, allocated=None, conditions=()):
    status = {"capacity": {"storage": has}, "conditions": list(conditions)}
    if state:
        status["allocatedResourceStatuses"] = {"storage": state}
    if allocated:
        status["allocatedResources"] = {"storage": allocated}
    spec = {"resources": {"requests": {"storage": asks}}}
    metadata = {"name": "c", "namespace": "d", "uid": "u", "resourceVersion": "7"}
    return PERSISTENT_VOLUME_CLAIMS.decode(codec.encode({"metadata": metadata, "spec": spec, "status": status}))


def volume(size="1Gi", annotations=None):
    doc = {"metadata": {"name": "v", "uid": "w", "annotations": annotations}, "spec": {"capacity": {"storage": size}}}
    return PERSISTENT_VOLUMES.decode(codec.encode(doc))


@pytest.mark.parametrize(
    ("wanting", "size", "expected"),
    [
        pytest.param(claim(), "1Gi", (Step.ALL, "2Gi"), id="new"),
        pytest.param(claim("2Gi", "1Gi", plan.INFEASIBLE, "3Gi"), "1Gi", (Step.ALL, "2Gi"), id="less"),
        pytest.param(claim("5Gi", "1Gi", plan.IN_PROGRESS, "3Gi"), "1Gi", (Step.ALL, "3Gi"), id="begun"),
        pytest.param(claim("5Gi", "1Gi", plan.NODE_PENDING, "3Gi"), "3Gi", (Step.ALL, "3Gi"), id="more meanwhile"),
        pytest.param(claim(state=plan.NODE_PENDING), "2Gi", (Step.NOTHING, "2Gi"), id="the node will"),
        pytest.param(claim(state=plan.NODE_IN_PROGRESS), "2Gi", (Step.NOTHING, "2Gi"), id="the node does"),
        pytest.param(claim(state=plan.NODE_INFEASIBLE), "2Gi", (Step.NODE, "2Gi"), id="the node could not"),
        pytest.param(claim("2Gi", "1Gi", plan.IN_PROGRESS, "2Gi"), "2Gi", (Step.ALL, "2Gi"), id="half done"),
        pytest.param(claim(allocated="3Gi"), "3Gi", (Step.ALL, "3Gi"), id="begun, without a state"),
        pytest.param(claim(), "2Gi", (Step.ALL, "2Gi"), id="the volume is there"),
    ],
)
def test_next_step_of_an_expansion(wanting, size, expected):
    assert plan.plan_growth(wanting, volume(size)) == Growth(*expected)


@pytest.mark.parametrize(
    ("has", "size", "expected"), [("2Gi", "2Gi", True), ("1Gi", "2Gi", False), ("2Gi", "3Gi", False)]
)
def test_the_expansion_on_the_node_is_complete(has, size, expected):
    assert plan.is_complete(claim(has=has), volume(size)) is expected


def test_a_claim_whose_expansion_starts():
    others = [{"type": "NodeResizeError", "status": "True"}, {"type": "Unused", "status": "True"}]
    patch = plan.started(claim(conditions=others), "example.com/flex", "2Gi", NOW)
    assert (patch.subresource, patch.body["metadata"]) == (
        "status",
        {"resourceVersion": "7", "uid": "u", "annotations": {plan.RESIZER: "example.com/flex"}},
    )
    assert patch.body["status"] == {
        "allocatedResources": {"storage": "2Gi"},
        "allocatedResourceStatuses": {"storage": "ControllerResizeInProgress"},
        "conditions": [
            {"type": "NodeResizeError", "$patch": "delete"},
            {"type": "Resizing", "status": "True", "lastProbeTime": None, "lastTransitionTime": AT},
        ],
        "$setElementOrder/conditions": [{"type": "Unused"}, {"type": "Resizing"}],
    }


def test_a_claim_that_waits_for_its_node_keeps_its_conditions():
    patch = plan.waiting_for_node(claim(conditions=[{"type": "Resizing", "status": "True"}]), NOW)
    (condition,) = patch.body["status"]["conditions"]
    assert (condition["type"], condition["message"]) == (
        "FileSystemResizePending",
        "Waiting for user to (re-)start a pod to finish file system resize of volume on node.",
    )
    again = plan.waiting_for_node(claim(conditions=[{"type": "FileSystemResizePending", "status": "True"}]), NOW)
    assert again.body["status"] == {"allocatedResourceStatuses": {"storage": "NodeResizePending"}}


def test_a_block_claim_is_complete():
    patch = plan.finished(claim(conditions=[{"type": "Resizing", "status": "True"}]), "2Gi")
    assert patch.body["status"] == {
        "capacity": {"storage": "2Gi"},
        "allocatedResourceStatuses": {"storage": None},
        "conditions": [{"type": "Resizing", "$patch": "delete"}],
    }


def test_patches_of_a_volume():
    assert plan.resized(volume(), "2Gi").body == {"metadata": {"uid": "w"}, "spec": {"capacity": {"storage": "2Gi"}}}
    assert plan.resized(volume("2048Mi"), "2Gi") is None
    kept = {plan.PRE_RESIZE_CAPACITY: "1Gi"}
    assert plan.remembered(claim(), volume()).body == {"metadata": {"uid": "w", "annotations": kept}}
    assert plan.remembered(claim(), volume(annotations=kept)) is None
    assert plan.forgotten(volume()).body["metadata"]["annotations"] == {plan.PRE_RESIZE_CAPACITY: None}
