"""Reclaiming of volumes after the deletion of claims, in a whole sandbox."""

from dataclasses import replace
from pathlib import Path

import pytest

from kcm_cli.component.metrics import Registry
from kcm_cli.controllers.persistentvolume_binder import controller
from kcm_cli.controllers.persistentvolume_binder.controller import VolumeBinder
from kcm_cli.engine.context import ControllerContext
from tests.kit.controlling import controllers
from tests.kit.faults import Held, Noting
from tests.kit.world import World
from tests.unit.controllers.persistentvolume_binder.storage import (
    CLAIMS,
    CONFIG,
    NAME,
    PODS,
    VOLUMES,
    make_claim,
    make_class,
    make_volume,
    phase,
    remove,
)

RECYCLER = "recycler-for-v"
RECYCLE = {"persistentVolumeReclaimPolicy": "Recycle"}
DELETE = {"persistentVolumeReclaimPolicy": "Delete"}


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """One that may be deleted, as it is below /tmp."""
    made = tmp_path / "volume"
    (made / "inner").mkdir(parents=True)
    (made / "inner" / "file").write_text("x")
    assert str(made).startswith("/tmp/")
    return made


async def release(world: World) -> None:
    """A claim binds the volume ``v`` and is deleted."""
    await make_claim(world, "c")
    await world.wait(30)
    assert await phase(world, VOLUMES, "v") == "Bound"
    await remove(world, CLAIMS, "c")


async def end(world: World, phase_: str, message: str = "") -> None:
    """The recycler's pod ends so."""
    status = {"status": {"phase": phase_, "message": message}}
    await world.client.patch(PODS, "default", RECYCLER, status, subresource="status")


async def messages(world: World, reason: str, name: str = "v") -> list[str]:
    return [message for each, message in await world.events(name) if each == reason]


async def recycling(world: World) -> None:
    """As ``release``, up to the pod; no kubelet takes part."""
    await make_volume(world, "v", **RECYCLE)
    await release(world)
    await world.wait(1)
    assert (await world.get(PODS, RECYCLER))["spec"]["activeDeadlineSeconds"] == 300


@pytest.mark.cluster(nodes=0)
async def test_a_recycled_volume_is_available_for_the_next_claim(world: World):
    async with controllers(world, CONFIG, names=[NAME]):
        await recycling(world)
        assert await phase(world, VOLUMES, "v") == "Released"
        await end(world, "Succeeded")
        await world.wait(20)
        assert await phase(world, VOLUMES, "v") == "Available"
        assert await world.is_deleted(RECYCLER)
        assert await messages(world, "VolumeRecycled") == ["Volume recycled"]
        await make_claim(world, "next")
        await world.wait(20)
        assert await phase(world, CLAIMS, "next") == "Bound"


async def test_a_recycler_runs_on_a_simulated_node(world: World):
    async with controllers(world, CONFIG, names=[NAME]):
        await make_volume(world, "v", **RECYCLE)
        await release(world)
        await world.wait(5)
        assert "Recycler pod: Container started" in await messages(world, "RecyclerPod")
        await world.wait(20)
        assert await phase(world, VOLUMES, "v") == "Available"


@pytest.mark.cluster(nodes=0)
@pytest.mark.parametrize(
    ("message", "expected"), [("it broke", "it broke"), ("", "pod failed, pod.Status.Message unknown")]
)
async def test_failed_recycling_is_retried(world: World, message, expected):
    async with controllers(world, CONFIG, names=[NAME]):
        await recycling(world)
        await end(world, "Failed", message)
        await world.wait(1)
        text = f"Recycle failed: failed to recycle volume: {expected}"
        assert (await world.get(VOLUMES, "v"))["status"]["message"] == text
        assert await messages(world, "VolumeFailedRecycle") == [text]
        await world.wait(30)
        await end(world, "Succeeded")
        await world.wait(20)
        status = (await world.get(VOLUMES, "v"))["status"]
        assert (status["phase"], "message" in status) == ("Available", False)


@pytest.mark.cluster(nodes=0)
async def test_a_recycler_of_a_former_manager_is_restarted(world: World):
    async with controllers(world, CONFIG, names=[NAME]):
        await recycling(world)
        before = (await world.get(PODS, RECYCLER))["metadata"]["uid"]
    async with controllers(world, CONFIG, names=[NAME]):
        await world.wait(60)
        assert (await world.get(PODS, RECYCLER))["metadata"]["uid"] != before
        await end(world, "Succeeded")
        await world.wait(20)
        assert await phase(world, VOLUMES, "v") == "Available"


@pytest.mark.cluster(nodes=0)
async def test_a_recycler_deleted_by_another_client_is_restarted(world: World):
    async with controllers(world, CONFIG, names=[NAME]):
        await recycling(world)
        await world.delete(PODS, RECYCLER, grace_s=0)
        await world.wait(1)
        assert "recycler pod was deleted" in (await world.get(VOLUMES, "v"))["status"]["message"]
        await world.wait(30)
        assert not await world.is_deleted(RECYCLER)


@pytest.mark.cluster(nodes=0)
async def test_a_volume_in_use_is_not_recycled(world: World):
    async with controllers(world, CONFIG, names=[NAME]):
        await world.pod("user", {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]})
        await make_volume(world, "v", **RECYCLE)
        await release(world)
        await world.wait(30)
        assert (await messages(world, "VolumeFailedRecycle"))[0] == "Volume is used by pods: default/user"
        assert await world.is_deleted(RECYCLER)
        await world.delete(PODS, "user", grace_s=0)
        await world.wait(30)
        assert not await world.is_deleted(RECYCLER)


async def test_a_directory_is_deleted_with_its_volume(world: World, directory):
    registry = Registry()
    async with controllers(world, CONFIG, names=[NAME], metrics=registry):
        await make_volume(world, "v", hostPath={"path": str(directory)}, **DELETE)
        await release(world)
        await world.wait(30)
        assert (await world.get(VOLUMES, "v"))["metadata"]["deletionTimestamp"]
        await world.patch(VOLUMES, "v", {"metadata": {"finalizers": None}})
        await world.wait(5)
    assert not directory.exists()
    assert directory.parent.exists()
    text = registry.expose().decode()
    assert (
        'volume_operation_total_seconds_count{operation_name="delete",plugin_name="kubernetes.io/host-path"} 1' in text
    )


async def test_disks_of_simulated_nodes_are_not_local(world: World, directory):
    async with controllers(world, CONFIG, names=[NAME], simulated=True):
        await make_volume(world, "v", hostPath={"path": str(directory)}, **DELETE)
        await release(world)
        await world.wait(30)
        assert (await world.get(VOLUMES, "v"))["metadata"]["deletionTimestamp"]
    assert (directory / "inner" / "file").exists()


@pytest.mark.parametrize("path", ["/srv/x", "/srv/tmp/x", "/tmp/", "/tmp"])
async def test_nothing_outside_tmp_is_deleted(world: World, path):
    async with controllers(world, CONFIG, names=[NAME]):
        await make_volume(world, "v", hostPath={"path": path}, **DELETE)
        await release(world)
        await world.wait(60)
        text = f"host_path deleter only supports /tmp/.+ but received provided {path}"
        assert (await world.get(VOLUMES, "v"))["status"]["message"] == text
        assert await messages(world, "VolumeFailedDelete") == [text]


async def test_a_volume_without_a_deleter_fails(world: World):
    async with controllers(world, CONFIG, names=[NAME]):
        await make_volume(world, "v", **DELETE)
        await release(world)
        await world.wait(5)
        assert await phase(world, VOLUMES, "v") == "Failed"
        text = 'error getting deleter volume plugin for volume "v": no deletable volume plugin matched'
        assert await messages(world, "VolumeFailedDelete") == [text]


async def test_a_volume_with_an_unknown_policy_fails(world: World):
    """API servers reject it; it may have been stored by a later release."""
    async with controllers(world, CONFIG, names=[NAME]):
        await make_volume(world, "v", persistentVolumeReclaimPolicy="Retain")
        await release(world)
        await world.wait(5)
        odd = world.server.store.get(VOLUMES.gvr, "", "v").copy()
        odd["spec"]["persistentVolumeReclaimPolicy"] = "Archive"
        world.server.store.update(VOLUMES.gvr, "", "v", odd)
        await world.wait(20)
        assert await phase(world, VOLUMES, "v") == "Failed"
        text = "Volume has unrecognized PersistentVolumeReclaimPolicy"
        assert await messages(world, "VolumeUnknownReclaimPolicy") == [text]


async def test_nothing_is_kept_of_operations_of_deleted_objects(world: World, monkeypatch):
    made: list[VolumeBinder] = []

    def make(context: ControllerContext) -> VolumeBinder:
        made.append(VolumeBinder(context))
        return made[-1]

    monkeypatch.setattr(controller, "CONTROLLER", replace(controller.CONTROLLER, make=make))
    await make_class(world, "host", "kubernetes.io/host-path")
    async with controllers(world, CONFIG, names=[NAME]):
        await make_volume(world, "v", hostPath={"path": "/srv/x"}, **DELETE)
        await release(world)
        await make_claim(world, "p", storageClassName="host")
        await world.wait(30)
        state = vars(made[0])
        parts = [vars(state[name])["operations"] for name in ("_reclaimer", "_provisioner")]
        assert [len(vars(operations)["_backoff"]) for operations in parts] == [1, 1]
        await remove(world, VOLUMES, "v")
        await remove(world, CLAIMS, "p")
        await world.wait(5)
        assert [len(vars(operations)["_backoff"]) for operations in parts] == [0, 0]
        assert not vars(state["_metrics"])["_started"]


@pytest.mark.parametrize(
    ("policy", "state"), [("Retain", "Released"), ("Retain", "Failed"), ("Delete", "Released"), ("Delete", "Failed")]
)
async def test_a_volume_that_is_left_to_others_causes_no_request(world: World, policy, state):
    """One that is retained, or that an external provisioner fails to delete; its claim has been made again."""
    transport = Noting(world.server.transport())
    async with controllers(world, CONFIG, names=[NAME], transport=transport):
        source = {"csi": {"driver": "d.example.com", "volumeHandle": "h"}}
        await make_volume(world, "v", persistentVolumeReclaimPolicy=policy, **source)
        await release(world)
        await world.wait(30)
        assert await phase(world, VOLUMES, "v") == "Released"
        await world.client.patch(VOLUMES, "", "v", {"status": {"phase": state}}, subresource="status")
        await make_claim(world, "c")
        await world.wait(30)
        transport.sent.clear()
        await world.wait(120)
        assert [one.path for one in transport.sent if one.path.endswith(("/persistentvolumeclaims/c", "/v"))] == []
        assert await phase(world, VOLUMES, "v") == state


async def test_a_claim_missing_in_the_cache_keeps_its_volume(world: World):
    """A volume that another client created for it and bound to it."""
    async with controllers(world, CONFIG, names=[NAME]):
        ref = {"namespace": "default", "name": "c", "uid": "11111111-1111-1111-1111-111111111111"}
        await make_volume(world, "v", claimRef=ref)
        await world.wait(5)
        assert await phase(world, VOLUMES, "v") == "Released"
        await make_claim(world, "d")
        uid = (await world.get(CLAIMS, "d"))["metadata"]["uid"]
        await make_volume(world, "w", claimRef={"namespace": "default", "name": "d", "uid": uid})
        await world.wait(5)
        assert await phase(world, VOLUMES, "w") == "Bound"


async def test_a_failed_volume_whose_claim_is_missing_in_the_cache_is_not_deleted(world: World, directory):
    held = Held(world.server.transport(), world.clock, "/api/v1/persistentvolumeclaims")
    async with controllers(world, CONFIG, names=[NAME], transport=held):
        await world.wait(5)
        held.hold()
        await make_claim(world, "c", volumeName="v")
        uid = (await world.get(CLAIMS, "c"))["metadata"]["uid"]
        ref = {"namespace": "default", "name": "c", "uid": uid}
        await make_volume(world, "v", hostPath={"path": str(directory)}, claimRef=ref, **DELETE)
        await world.client.patch(VOLUMES, "", "v", {"status": {"phase": "Failed"}}, subresource="status")
        await world.wait(60)
        assert directory.exists()
        held.release()
        await world.wait(30)
        assert await phase(world, VOLUMES, "v") == "Bound"
        await remove(world, CLAIMS, "c")
        await world.wait(30)
        assert not directory.exists()
