"""The volumes that are attached, and their names."""

import pytest

from kcm_cli.api.core import PERSISTENT_VOLUME_CLAIMS, PODS
from kcm_cli.api.storage import CSI_DRIVERS, PERSISTENT_VOLUMES
from kcm_cli.machinery import codec
from kcm_cli.planning.volumes import attachable

CSI = {"csi": {"driver": "d.example.com", "volumeHandle": "h"}}
UNIQUE = "kubernetes.io/csi/d.example.com^h"


def decoded(resource, doc):
    return resource.decode(codec.encode(doc))


def volume(source=None, modes=("ReadWriteOnce",), claim="uid"):
    ref = {"claimRef": {"namespace": "d", "name": "c", "uid": claim}} if claim else {}
    spec = {"accessModes": list(modes), **(source or CSI), **ref}
    return decoded(PERSISTENT_VOLUMES, {"metadata": {"name": "v"}, "spec": spec})


def claim(phase="Bound", name="v", owner=""):
    refs = [{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": owner, "controller": True}] if owner else []
    metadata = {"name": "c", "namespace": "d", "uid": "uid", "ownerReferences": refs}
    spec = {"volumeName": name}
    return decoded(PERSISTENT_VOLUME_CLAIMS, {"metadata": metadata, "spec": spec, "status": {"phase": phase}})


def pod(**source):
    metadata = {"name": "p", "namespace": "d", "uid": "pod"}
    return decoded(PODS, {"metadata": metadata, "spec": {"volumes": [{"name": "data", **source}]}})


NAMED = pod(persistentVolumeClaim={"claimName": "c"})
EPHEMERAL = pod(ephemeral={"volumeClaimTemplate": {}})


def found(user, known_claim, known_volume):
    claims = {"d/c": known_claim, "d/p-data": known_claim}
    return attachable.of_pod_volume(user, user.spec.volumes[0], claims.get, {"v": known_volume}.get)


def test_a_claim_leads_to_its_volume():
    assert found(NAMED, claim(), volume()) == attachable.AttachableVolume(
        UNIQUE, "v", "kubernetes.io/csi", False, "d.example.com", "h"
    )


@pytest.mark.parametrize(
    ("user", "known_claim", "known_volume"),
    [
        pytest.param(NAMED, None, volume(), id="no claim"),
        pytest.param(NAMED, claim("Pending"), volume(), id="not bound"),
        pytest.param(NAMED, claim(name=""), volume(), id="no volume's name"),
        pytest.param(NAMED, claim(), None, id="no volume"),
        pytest.param(NAMED, claim(), volume(claim=""), id="a volume without a claim"),
        pytest.param(NAMED, claim(), volume(claim="other"), id="a volume of another claim"),
        pytest.param(NAMED, claim(), volume({"nfs": {"server": "s", "path": "/"}}), id="never attached"),
        pytest.param(EPHEMERAL, claim(), volume(), id="created by another client"),
        pytest.param(EPHEMERAL, claim(owner="other"), volume(), id="created for another pod"),
        pytest.param(pod(emptyDir={}), claim(), volume(), id="no claim is named"),
        pytest.param(pod(csi={"driver": "d"}), claim(), volume(), id="inline"),
        pytest.param(pod(fc={}), claim(), volume(), id="without a name"),
    ],
)
def test_volumes_that_are_not_attached(user, known_claim, known_volume):
    assert found(user, known_claim, known_volume) is None


def test_an_ephemeral_volume_is_attached_if_its_claim_is_owned_by_the_pod():
    assert found(EPHEMERAL, claim(owner="pod"), volume()).unique_name == UNIQUE


@pytest.mark.parametrize(
    ("modes", "shared"),
    [
        ((), True),
        (("ReadWriteOnce",), False),
        (("ReadWriteOncePod",), False),
        (("ReadWriteOnce", "ReadOnlyMany"), True),
        (("ReadWriteMany",), True),
    ],
)
def test_volumes_that_can_be_shared(modes, shared):
    assert attachable.of_volume(volume(modes=modes)).shared is shared


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ({"iscsi": {"targetPortal": "10.0.0.1", "iqn": "iqn.x"}}, "kubernetes.io/iscsi/10.0.0.1:iqn.x:0"),
        ({"fc": {"targetWWNs": ["a", "b"], "lun": 0}}, "kubernetes.io/fc/[a b]:0"),
        ({"fc": {"targetWWNs": ["a"], "wwids": ["w"]}}, "kubernetes.io/fc/[w]"),
        ({"cinder": {"volumeID": "c"}}, "kubernetes.io/csi/cinder.csi.openstack.org^c"),
    ],
)
def test_unique_names(source, name):
    made = attachable.of_volume(volume(source))
    assert made.unique_name == name
    assert attachable.plugin_of(name)[0] == made.plugin


def test_a_volume_that_its_driver_cannot_know_is_not_attached():
    assert attachable.of_volume(volume({"awsElasticBlockStore": {"volumeID": "aws://zone/odd"}})) is None


@pytest.mark.parametrize(("said", "attached"), [(None, True), (True, True), (False, False)])
def test_drivers_can_skip_attaching(said, attached):
    driver = decoded(CSI_DRIVERS, {"metadata": {"name": "d"}, "spec": {"attachRequired": said}})
    assert attachable.is_attached_by(driver) is attached


def test_an_unknown_driver_attaches():
    assert attachable.is_attached_by(None)


def test_the_name_of_an_attachment_is_a_hash_of_what_is_attached_where():
    expected = "csi-bf00c1a8390d248b3d2cf999edcf90407ea15c756d80e7f004a227d25e1a3492"
    assert attachable.attachment_name("d.example.com", "h", "n1") == expected


@pytest.mark.parametrize("name", ["", "volume", "vendor/plugin"])
def test_other_names_have_no_plugin(name):
    assert attachable.plugin_of(name) == ("", "")
