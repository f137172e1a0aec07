"""Statuses that depend on the pod only."""

from kcm_cli.machinery import codec
from kcm_cli.sandbox.nodes import resizing
from kcm_cli.sandbox.nodes.admission import Rejection
from kcm_cli.sandbox.nodes.status import rejected
from kcm_cli.sandbox.views import PODS


def test_a_rejected_pod_keeps_only_conditions_of_others():
    conditions = [{"type": "PodScheduled", "status": "True"}, {"type": "DisruptionTarget", "status": "True"}]
    doc = {"metadata": {"name": "p", "generation": 3}, "status": {"conditions": conditions}}
    status = rejected(PODS.decode(codec.encode(doc)), Rejection("OutOfcpu", "no room"), 0.0)
    assert status == {
        "observedGeneration": 3,
        "phase": "Failed",
        "conditions": [{"$patch": "delete", "type": "PodScheduled"}],
        "reason": "OutOfcpu",
        "message": "Pod was rejected: no room",
        "startTime": "1970-01-01T00:00:00Z",
    }


def test_allocated_resources_survive_a_restart_of_the_kubelet():
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "4"}}}
    held = {"name": "c", "resources": {"requests": {"cpu": "1"}}}
    pending = [{"type": "PodResizePending", "status": "True", "reason": "Deferred"}]
    doc = {
        "metadata": {"name": "p"},
        "spec": {"containers": [container]},
        "status": {"containerStatuses": [held], "conditions": pending},
    }
    pod = PODS.decode(codec.encode(doc))
    granted = resizing.granted_before(pod)
    assert resizing.differs(pod.spec, granted.spec)
    (shown,) = resizing.with_granted(pod, granted.spec).spec.containers
    assert shown.resources is not None
    assert shown.resources.requests == {"cpu": "1"}
