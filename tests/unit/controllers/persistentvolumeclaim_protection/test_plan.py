"""The pods that keep a claim."""

from datetime import UTC, datetime

import pytest

from kcm_cli.api.core import PERSISTENT_VOLUME_CLAIMS, PODS
from kcm_cli.controllers.persistentvolumeclaim_protection import plan
from kcm_cli.machinery import codec
from kcm_cli.planning.pod_claims import claims_of

NAMED = {"name": "v", "persistentVolumeClaim": {"claimName": "data"}}
EPHEMERAL = {"name": "data", "ephemeral": {"volumeClaimTemplate": {}}}
GOING = {"deletionTimestamp": "2026-01-01T00:00:00Z"}


def pod(*volumes, node="n1", phase="Running", status=None, **metadata):
    doc = {
        "metadata": {"name": "p", "namespace": "d", "uid": "pod", **metadata},
        "spec": {"nodeName": node, "volumes": [{"name": "e", "emptyDir": {}}, *volumes]},
        "status": {"phase": phase, **(status or {})},
    }
    return PODS.decode(codec.encode(doc))


def claim(name, owner=None):
    refs = [{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": owner, "controller": True}] if owner else []
    doc = {"metadata": {"name": name, "namespace": "d", "ownerReferences": refs}}
    return PERSISTENT_VOLUME_CLAIMS.decode(codec.encode(doc))


def test_the_claims_of_a_pod_are_named_or_ephemeral():
    assert claims_of(pod(NAMED, EPHEMERAL)) == ("d/data", "d/p-data")
    assert claims_of(pod()) == ()


@pytest.mark.parametrize(
    ("user", "wanted", "expected"),
    [
        pytest.param(pod(NAMED), claim("data"), True, id="named"),
        pytest.param(pod(NAMED), claim("other"), False, id="another claim"),
        pytest.param(pod(NAMED, node=""), claim("data"), False, id="on no node"),
        pytest.param(pod(NAMED, phase="Succeeded"), claim("data"), True, id="ended"),
        pytest.param(pod(NAMED, **GOING, deletionGracePeriodSeconds=0), claim("data"), True, id="shut down"),
        pytest.param(pod(EPHEMERAL), claim("p-data", "pod"), True, id="created for it"),
        pytest.param(pod(EPHEMERAL), claim("p-data", "other"), False, id="created for another of its name"),
        pytest.param(pod(EPHEMERAL), claim("p-data"), False, id="created by another client"),
        pytest.param(pod(EPHEMERAL, **GOING, deletionGracePeriodSeconds=30), claim("p-data", "pod"), True, id="going"),
        pytest.param(
            pod(EPHEMERAL, **GOING, deletionGracePeriodSeconds=0),
            claim("p-data", "pod"),
            False,
            id="created, shut down",
        ),
    ],
)
def test_pods_that_use_a_claim(user, wanted, expected):
    assert plan.uses(user, wanted) is expected


ENDED = {"containerStatuses": [{"name": "c", "state": {"terminated": {}}}]}
RUNS = {"containerStatuses": [{"name": "c", "state": {"running": {}}}]}
WAITS = {"containerStatuses": [{"name": "c", "state": {"waiting": {}}}]}
DEBUGGED = {**ENDED, "ephemeralContainerStatuses": RUNS["containerStatuses"]}


@pytest.mark.parametrize(
    ("user", "wanted", "expected"),
    [
        pytest.param(pod(NAMED), claim("data"), True, id="named"),
        pytest.param(pod(NAMED), claim("other"), False, id="another claim"),
        pytest.param(pod(NAMED, node=""), claim("data"), True, id="on no node"),
        pytest.param(pod(NAMED, phase="Succeeded"), claim("data"), False, id="ended"),
        pytest.param(pod(NAMED, status=RUNS, **GOING), claim("data"), True, id="going"),
        pytest.param(pod(NAMED, status=ENDED, **GOING), claim("data"), False, id="going, and all has ended"),
        pytest.param(pod(NAMED, status=WAITS, **GOING), claim("data"), False, id="going, and never started"),
        pytest.param(pod(NAMED, status=DEBUGGED, **GOING), claim("data"), True, id="going, and debugged"),
        pytest.param(pod(EPHEMERAL), claim("p-data", "pod"), True, id="created for it"),
        pytest.param(pod(EPHEMERAL), claim("p-data", "other"), False, id="created for another of its name"),
    ],
)
def test_pods_that_refer_to_a_claim(user, wanted, expected):
    assert plan.refers(user, wanted) is expected


def test_the_condition_keeps_its_place_among_unknown_ones():
    conditions = [{"type": "A", "new": 1}, {"type": "Unused", "status": "True"}, {"type": "B"}]
    doc = {"metadata": {"name": "c", "namespace": "d"}, "status": {"conditions": conditions}}
    subject = PERSISTENT_VOLUME_CLAIMS.decode(codec.encode(doc))
    assert plan.says_unused(subject) is True and plan.says_unused(claim("x")) is None
    [written] = plan.status(subject, datetime(2026, 1, 1, tzinfo=UTC), unused=False).changes.values()
    assert [written[0], written[2]] == [conditions[0], conditions[2]]
    assert written[1] == {
        "type": "Unused",
        "status": "False",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
        "reason": "PodUsingPVC",
        "message": "A pod is currently referencing this PVC",
    }


@pytest.mark.parametrize(
    ("user", "expected"),
    [(pod(), False), (pod(node=""), True), (pod(phase="Failed"), True), (pod(**GOING), True)],
    ids=["running", "on no node", "ended", "going"],
)
def test_changes_of_pods_that_can_free_a_claim(user, expected):
    assert plan.may_free(user) is expected
