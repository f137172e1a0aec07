"""Patches of the status of pods."""

from kcm_cli.machinery import codec
from kcm_cli.sandbox.nodes.conditions import Reported
from kcm_cli.sandbox.nodes.status_patches import with_removed_reasons
from kcm_cli.sandbox.views import PODS


def test_only_reasons_that_a_condition_had_are_removed():
    conditions = [{"type": "Initialized", "status": "False", "reason": "A"}, {"type": "Ready", "status": "True"}]
    pod = PODS.decode(codec.encode({"metadata": {"name": "p"}, "status": {"conditions": conditions}}))
    status = {"conditions": [{"type": type_} for type_ in ("Initialized", "Ready", "ContainersReady")]}
    found = with_removed_reasons(status, pod, [Reported("ContainersReady", "False", message="not yet")])
    nothing = {"reason": None, "message": None}
    assert found["conditions"] == [
        {**nothing, "type": "Initialized"},
        {"type": "Ready"},
        {**nothing, "type": "ContainersReady"},
    ]
    assert with_removed_reasons(status, PODS.decode(b'{"metadata":{"name":"p"}}'), ()) is status
