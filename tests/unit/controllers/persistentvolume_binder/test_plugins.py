"""The plugins that provision, recycle and delete a volume."""

import pytest

from kcm_cli.controllers.persistentvolume_binder import plugins
from tests.unit.planning.volumes.objects import volume

HOST_PATH, NFS = {"hostPath": {"path": "/tmp/x"}}, {"nfs": {"server": "h", "path": "/x"}}
CSI = {"csi": {"driver": "a.b", "volumeHandle": "x"}}
BY = "pv.kubernetes.io/provisioned-by"


@pytest.mark.parametrize(
    ("provisioner", "expected"),
    [
        pytest.param("kubernetes.io/host-path", "kubernetes.io/host-path", id="here"),
        pytest.param("example.com/x", "", id="outside"),
        pytest.param("kubernetes.io/aws-ebs", "", id="migrated"),
        pytest.param("kubernetes.io/nfs", "no provisionable volume plugin matched", id="cannot"),
        pytest.param(
            "kubernetes.io/no-provisioner", "no volume plugin matched name: kubernetes.io/no-provisioner", id="nobody"
        ),
    ],
)
def test_volumes_are_created(provisioner, expected):
    try:
        assert plugins.provisions(provisioner) == expected
    except plugins.NoPlugin as error:
        assert str(error) == expected


def deleted(annotations=None, **source):
    return volume(metadata={"annotations": annotations or {}}, **source)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param(deleted(**HOST_PATH), "kubernetes.io/host-path", id="here"),
        pytest.param(deleted({BY: "kubernetes.io/host-path"}, **HOST_PATH), "kubernetes.io/host-path", id="made here"),
        pytest.param(deleted({BY: "example.com/x"}, **HOST_PATH), "", id="made outside"),
        pytest.param(deleted({BY: ""}, **HOST_PATH), "kubernetes.io/host-path", id="made by nobody"),
        pytest.param(deleted(**CSI), "", id="CSI"),
        pytest.param(deleted({"pv.kubernetes.io/migrated-to": "x"}, **NFS), "", id="migrated"),
        pytest.param(
            deleted(**NFS),
            'error getting deleter volume plugin for volume "v": no deletable volume plugin matched',
            id="NFS",
        ),
        pytest.param(
            deleted(local={"path": "/x"}),
            'error getting deleter volume plugin for volume "v": no volume plugin matched',
            id="unknown",
        ),
        pytest.param(
            deleted({BY: "kubernetes.io/x"}, **HOST_PATH),
            "no volume plugin matched name: kubernetes.io/x",
            id="made by what is no more",
        ),
        pytest.param(
            deleted({BY: "kubernetes.io/nfs"}, **NFS), "no deletable volume plugin matched", id="made by who cannot"
        ),
    ],
)
def test_volumes_are_deleted(given, expected):
    try:
        assert plugins.deletes(given) == expected
    except plugins.NoPlugin as error:
        assert str(error) == expected
