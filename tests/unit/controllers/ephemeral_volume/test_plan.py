"""The claims that are created for a pod."""

import pytest

from kcm_cli.api.core import PERSISTENT_VOLUME_CLAIMS, PODS
from kcm_cli.controllers.ephemeral_volume import plan
from kcm_cli.machinery import codec

SPEC = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, "newer": {"field": 1}}
GOING = {"deletionTimestamp": "2026-01-01T00:00:00Z"}


def pod(template=None, **metadata):
    volumes = [{"name": "e", "emptyDir": {}}, {"name": "v", "persistentVolumeClaim": {"claimName": "x"}}]
    volumes.append({"name": "data", "ephemeral": {"volumeClaimTemplate": template or {"spec": SPEC}}})
    doc = {"metadata": {"name": "p", "namespace": "d", "uid": "u", **metadata}, "spec": {"volumes": volumes}}
    return PODS.decode(codec.encode(doc))


def claim(owner="", controller=True):
    refs = [{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": owner, "controller": controller}] if owner else []
    doc = {"metadata": {"name": "p-data", "namespace": "d", "ownerReferences": refs}}
    return PERSISTENT_VOLUME_CLAIMS.decode(codec.encode(doc))


def only(user):
    (volume,) = plan.ephemeral(user)
    return volume


def test_only_ephemeral_volumes_of_pods_that_are_not_deleted_count():
    assert only(pod()).name == "data"
    assert plan.ephemeral(pod(**GOING)) == []


def test_a_claim_is_created_from_the_template_and_owned_by_the_pod():
    metadata = {"labels": {"l": "1"}, "annotations": {"a": "2"}, "finalizers": ["example.com/not-taken"]}
    user = pod({"metadata": metadata, "spec": SPEC})
    action = plan.plan(user, only(user), None)
    assert action.namespace == "d"
    owner = {
        "apiVersion": "v1",
        "kind": "Pod",
        "name": "p",
        "uid": "u",
        "controller": True,
        "blockOwnerDeletion": True,
    }
    assert action.body == {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "p-data", "labels": {"l": "1"}, "annotations": {"a": "2"}, "ownerReferences": [owner]},
        "spec": SPEC,
    }


def test_an_existing_claim_is_not_created():
    user = pod()
    assert plan.plan(user, only(user), claim("u")) is None


@pytest.mark.parametrize(
    "other", [claim(), claim("v"), claim("u", False)], ids=["without an owner", "another pod's", "owned"]
)
def test_a_claim_of_another_owner_is_not_used(other):
    user = pod()
    with pytest.raises(plan.NotOwner) as caught:
        plan.plan(user, only(user), other)
    assert str(caught.value) == "PVC d/p-data was not created for pod d/p (pod is not owner)"
