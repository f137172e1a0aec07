"""Provisioning of volumes, in a whole sandbox."""

from dataclasses import replace
from pathlib import Path

import pytest

from kcm_cli.component.metrics import Registry
from kcm_cli.component.volume_config import VolumeConfig
from kcm_cli.controllers.persistentvolume_binder import plugins
from kcm_cli.rest.transport import Request
from tests.kit.controlling import controllers
from tests.kit.faults import Refusing
from tests.kit.world import World
from tests.unit.controllers.persistentvolume_binder.storage import (
    CLAIMS,
    CONFIG,
    NAME,
    VOLUMES,
    make_claim,
    make_class,
    phase,
)

HOST_PATH = "kubernetes.io/host-path"
HERE = VolumeConfig(enable_host_path_provisioning=True)
ASKED = {"volume.beta.kubernetes.io/storage-provisioner", "volume.kubernetes.io/storage-provisioner"}


async def events_of(world: World, name: str = "c") -> set[tuple[str, str]]:
    return {(reason, message) for reason, message in await world.events(name)}


async def test_an_external_provisioner_is_requested_and_reported(world: World):
    await make_class(world, "gold")
    await make_class(world, "moved", "kubernetes.io/aws-ebs")
    async with controllers(world, CONFIG, names=[NAME]):
        await make_claim(world, "c")
        await make_claim(world, "m", storageClassName="moved")
        await world.wait(5)
        annotations = (await world.get(CLAIMS, "c"))["metadata"]["annotations"]
        assert {key: annotations[key] for key in ASKED} == dict.fromkeys(ASKED, "example.com/x")
        ((reason, message),) = await events_of(world)
        assert (reason, "'example.com/x'" in message) == ("ExternalProvisioning", True)
        annotations = (await world.get(CLAIMS, "m"))["metadata"]["annotations"]
        assert {key: annotations[key] for key in ASKED} == dict.fromkeys(ASKED, "ebs.csi.aws.com")


async def test_a_provisioner_is_requested_soon_after_a_failed_request(world: World):
    """As after a conflict with another client's write. The next pass is 15 s later."""
    await make_class(world, "gold")

    def refuses(request: Request) -> bool:
        return request.method == "PUT" and request.path.endswith("/c") and not transport.refused

    transport = Refusing(world.server.transport(), refuses)
    async with controllers(world, CONFIG, names=[NAME], transport=transport):
        await world.wait(1)
        await make_claim(world, "c")
        await world.wait(2)
        assert transport.refused == 1
        assert (await world.get(CLAIMS, "c"))["metadata"].get("annotations", {}).keys() >= ASKED


async def test_without_dynamic_provisioning_no_provisioner_is_requested(world: World):
    await make_class(world, "gold")
    config = VolumeConfig(enable_dynamic_provisioning=False)
    async with controllers(world, config, names=[NAME]):
        await make_claim(world, "c")
        await world.wait(30)
        assert "annotations" not in (await world.get(CLAIMS, "c"))["metadata"]
        assert await events_of(world) == set()


REFUSALS = [
    pytest.param(None, {}, {}, 'storageclass.storage.k8s.io "gold" not found', id="no class"),
    pytest.param("kubernetes.io/nfs", {}, {}, "no provisionable volume plugin matched", id="no provisioner"),
    pytest.param(
        HOST_PATH,
        {},
        {},
        f'Failed to create provisioner: provisioning in volume plugin "{HOST_PATH}" is disabled',
        id="switched off",
    ),
    pytest.param(
        HOST_PATH,
        {"mountOptions": ["a", "b"]},
        {},
        'Mount options are not supported by the provisioner but StorageClass "gold" has mount options [a b]',
        id="mount options",
    ),
    pytest.param(
        HOST_PATH,
        {},
        {"dataSource": {"kind": "PersistentVolumeClaim", "name": "other"}},
        f'plugin "{HOST_PATH}" is not a CSI plugin. Only CSI plugin can provision a claim with a datasource',
        id="data source",
    ),
]


@pytest.mark.parametrize(("provisioner", "class_", "claim", "expected"), REFUSALS)
async def test_failed_provisioning_is_reported(world: World, provisioner, class_, claim, expected):
    if provisioner is not None:
        await make_class(world, "gold", provisioner, **class_)
    async with controllers(world, CONFIG, names=[NAME]):
        await make_claim(world, "c", **claim)
        await world.wait(5)
        assert await events_of(world) == {("ProvisioningFailed", expected)}
        assert await phase(world, CLAIMS, "c") == "Pending"


async def test_failed_operations_back_off(world: World):
    await make_class(world, "gold", HOST_PATH)
    registry = Registry()
    config = replace(CONFIG, sync_period_s=1.0)
    async with controllers(world, config, names=[NAME], metrics=registry):
        await make_claim(world, "c")
        await world.wait(100)
    (line,) = [
        line for line in registry.expose().decode().splitlines() if line.startswith("volume_operation_errors_total{")
    ]
    assert 6 <= float(line.split()[-1]) <= 9


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The parent of provisioned directories."""
    monkeypatch.setattr(plugins, "ROOT", str(tmp_path))
    return tmp_path


async def test_a_provisioned_directory_is_bound_and_deleted_with_the_claim(world: World, root):
    await make_class(world, "gold", HOST_PATH)
    registry = Registry()
    async with controllers(world, HERE, names=[NAME], metrics=registry):
        await make_claim(world, "c", "3Gi")
        await world.wait(30)
        claim = await world.get(CLAIMS, "c")
        volume = await world.get(VOLUMES, f"pvc-{claim['metadata']['uid']}")
        assert (claim["status"]["phase"], volume["status"]["phase"]) == ("Bound", "Bound")
        assert volume["spec"]["capacity"] == {"storage": "3Gi"}
        assert volume["metadata"]["finalizers"] == ["kubernetes.io/pv-controller", "kubernetes.io/pv-protection"]
        assert [path.is_dir() for path in root.iterdir()] == [True]
        await world.patch(CLAIMS, "c", {"metadata": {"finalizers": None}})
        await world.delete(CLAIMS, "c")
        await world.wait(30)
        left = (await world.get(VOLUMES, volume["metadata"]["name"]))["metadata"]
        assert (left["finalizers"], "deletionTimestamp" in left) == (["kubernetes.io/pv-protection"], True)
        assert list(root.iterdir()) == []
    text = registry.expose().decode()
    assert 'volume_operation_total_seconds_count{operation_name="provision",plugin_name="' in text
    assert text.count("storage_operation_duration_seconds_count") == 2


async def test_a_directory_is_deleted_if_its_volume_cannot_be_created(world: World, root):
    await make_class(world, "gold", HOST_PATH)

    def refuses(request: Request) -> bool:
        return request.method == "POST" and request.path.endswith("/persistentvolumes")

    transport = Refusing(world.server.transport(), refuses)
    async with controllers(world, HERE, names=[NAME], transport=transport):
        await make_claim(world, "c")
        await world.wait(55)
        assert transport.refused >= 5
        assert any("Deleting the volume." in message for _, message in await events_of(world))
        assert len(list(root.iterdir())) <= 1  # the next try may be under way


async def test_a_directory_that_cannot_be_deleted_is_reported(world: World, root, monkeypatch):
    def denied(path: str) -> None:
        raise PermissionError("denied")

    monkeypatch.setattr(plugins, "_remove", denied)
    await make_class(world, "gold", HOST_PATH)
    transport = Refusing(world.server.transport(), lambda r: r.method == "POST" and "persistentvolumes" in r.path)
    async with controllers(world, HERE, names=[NAME], transport=transport):
        await make_claim(world, "c")
        await world.wait(55)
        text = "Error cleaning provisioned volume for claim default/c: denied. Please delete manually."
        assert ("ProvisioningCleanupFailed", text) in await events_of(world)


async def test_no_directory_is_created_for_a_block_volume(world: World, root):
    await make_class(world, "gold", HOST_PATH)
    async with controllers(world, HERE, names=[NAME]):
        node = {"annotations": {"volume.kubernetes.io/selected-node": "node-1"}}
        await make_claim(world, "c", volumeMode="Block", metadata=node)
        await world.wait(2)
        why = f"{HOST_PATH} does not support block volume provisioning"
        text = f'Failed to provision volume with StorageClass "gold": {why}'
        assert ("ProvisioningFailed", text) in await events_of(world)
        annotations = (await world.get(CLAIMS, "c"))["metadata"]["annotations"]
        assert "volume.kubernetes.io/selected-node" not in annotations
        assert list(root.iterdir()) == []
