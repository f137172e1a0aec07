"""Updates of pods: what can change, and the diff in errors."""

import pytest

from kcm_cli.planning.qos import qos_class
from tests.unit.sandbox.apiserver.strategy import kit

_START = (
    "spec: Forbidden: pod updates may not change fields other than `spec.containers[*].image`,"
    "`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing "
    "tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)\n"
)
_CPU = {"requests": {"cpu": "1"}, "limits": {"cpu": "2"}}


def test_an_image_can_change():
    old = kit.stored(kit.PODS, kit.pod())
    assert kit.update_problems(kit.PODS, old, kit.changed(old, spec__containers__0__image="j")) == []


def test_other_changes_are_refused_with_a_difference():
    old = kit.stored(kit.PODS, kit.pod({"nodeName": "a"}))
    found = kit.update_problems(kit.PODS, old, kit.changed(old, spec__nodeName="b"))
    assert len(found) == 1 and found[0].startswith(_START)
    assert '- "NodeName": "a",\n+ "NodeName": "b",\n' in found[0]


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        pytest.param(None, 5, [], id="set"),
        pytest.param(5, 3, [], id="shorter"),
        pytest.param(3, 5, ["Invalid value: 5: must be less than or equal to previous value"], id="longer"),
    ],
)
def test_deadline(before, after, expected):
    spec = {} if before is None else {"activeDeadlineSeconds": before}
    old = kit.stored(kit.PODS, kit.pod(spec))
    found = kit.update_problems(kit.PODS, old, kit.changed(old, spec__activeDeadlineSeconds=after))
    assert found == [f"spec.activeDeadlineSeconds: {text}" for text in expected]


def test_tolerations_can_only_be_added():
    old = kit.stored(kit.PODS, kit.pod({"tolerations": [{"key": "a", "operator": "Exists"}]}))
    more = [{"key": "b", "operator": "Exists"}]
    both = old["spec"]["tolerations"] + more
    assert kit.update_problems(kit.PODS, old, kit.changed(old, spec__tolerations=both)) == []
    found = kit.update_problems(kit.PODS, old, kit.changed(old, spec__tolerations=more))
    assert found[0] == (
        "spec.tolerations: Forbidden: existing toleration can not be modified except its tolerationSeconds"
    )


def test_a_gated_pod_can_be_narrowed():
    old = kit.stored(kit.PODS, kit.pod({"schedulingGates": [{"name": "g"}], "nodeSelector": {"a": "1"}}))
    assert kit.update_problems(kit.PODS, old, kit.changed(old, spec__nodeSelector={"a": "1", "b": "2"})) == []
    found = kit.update_problems(kit.PODS, old, kit.changed(old, spec__nodeSelector={"b": "2"}))
    assert found == [
        'spec.nodeSelector: Invalid value: {"b":"2"}: '
        "only additions to spec.nodeSelector are allowed (no mutations or deletions)"
    ]


def test_a_status_cannot_restart_a_terminated_container():
    old = kit.stored(kit.PODS, kit.pod({"restartPolicy": "Never"}))
    old["status"]["containerStatuses"] = [{"name": "c", "state": {"terminated": {"exitCode": 1}}}]
    new = kit.changed(old, status__containerStatuses=[{"name": "c", "state": {"running": {}}}])
    found = kit.rules(kit.PODS).validate_status(new, old)
    assert [(error.field, error.message) for error in found] == [
        ("status.containerStatuses[0].state", "Forbidden: may not be transitioned to non-terminated state")
    ]


def test_existing_ephemeral_containers_stay():
    old = kit.stored(kit.PODS, kit.pod())
    rules = kit.rules(kit.PODS, "ephemeralcontainers")
    old["spec"]["ephemeralContainers"] = [
        {"name": "e", "image": "i", "imagePullPolicy": "Always", "terminationMessagePolicy": "File"}
    ]
    new = kit.changed(old, spec__ephemeralContainers=None)
    rules.prepare_update(new, old)
    texts = [error.message for error in rules.validate_update(new, old)]
    assert texts == ['Forbidden: existing ephemeral containers "e" may not be removed\n']


@pytest.mark.parametrize("field", ["lifecycle", "livenessProbe", "restartPolicy"])
def test_an_ephemeral_container_does_not_state_even_empty_fields(field):
    old = kit.stored(kit.PODS, kit.pod())
    rules = kit.rules(kit.PODS, "ephemeralcontainers")
    found = {"name": "e", "image": "i", "imagePullPolicy": "Always", "terminationMessagePolicy": "File"}
    stated: object = "" if field == "restartPolicy" else {}
    new = kit.changed(old, spec__ephemeralContainers=[{**found, field: stated}])
    rules.prepare_update(new, old)
    fields = [error.field for error in rules.validate_update(new, old)]
    assert f"spec.ephemeralContainers[0].{field}" in fields


def test_a_resize_changes_amounts_but_not_the_class():
    old = kit.stored(kit.PODS, kit.pod(container={"resources": _CPU}))
    rules = kit.rules(kit.PODS, "resize")
    new = kit.changed(old, spec__containers__0__resources__requests__cpu="500m", spec__priority=3)
    rules.prepare_update(new, old)
    assert rules.validate_update(new, old) == []
    assert "priority" not in new["spec"] and new["metadata"]["generation"] == 2
    worse = kit.changed(old, spec__containers__0__resources__requests__cpu="2")
    worse["spec"]["containers"][0]["resources"]["limits"]["memory"] = "1Gi"
    worse["spec"]["containers"][0]["resources"]["requests"]["memory"] = "1Gi"
    rules.prepare_update(worse, old)
    assert qos_class(worse["spec"]) == "Guaranteed"
    assert 'Invalid value: "Burstable": Pod QOS Class may not change as a result of resizing' in [
        error.message for error in rules.validate_update(worse, old)
    ]


def test_a_container_with_claims_is_not_resized():
    claims = [{"name": "gpu", "resourceClaimName": "g"}]
    old = kit.stored(kit.PODS, kit.pod({"resourceClaims": claims}, container={"resources": _CPU}))
    rules = kit.rules(kit.PODS, "resize")
    with_claims = kit.changed(old, spec__containers__0__resources__claims=[{"name": "gpu"}])
    assert rules.validate_update(with_claims, old) == []
    resized = kit.changed(with_claims, spec__containers__0__resources__requests__cpu="500m")
    assert "Forbidden: only cpu and memory resources are mutable" in [
        error.message for error in rules.validate_update(resized, with_claims)
    ]
