"""The controller in a whole sandbox, on virtual time."""

from kcm_cli.component.metrics import Registry
from tests.kit.controlling import controllers
from tests.kit.world import PODS, World
from tests.unit.controllers.persistentvolume_attach_detach.storage import DRIVERS, bound

NAME = "selinux-warning-controller"
DRIVER = "labels.example.com"
SOURCE = {"csi": {"driver": DRIVER, "volumeHandle": "h"}}


async def driver(world: World, mounts: bool = True) -> None:
    await world.create(DRIVERS, {"metadata": {"name": DRIVER}, "spec": {"seLinuxMount": mounts}})


async def mounting(world: World, name: str, claim: str, level: str, **context) -> None:
    volume = {"name": "data", "persistentVolumeClaim": {"claimName": claim}}
    mount = {"name": "data", "mountPath": "/data"}
    container = {"name": "c", "image": "nginx", "volumeMounts": [mount]}
    security = {"seLinuxOptions": {"level": level}, **context}
    body = {"volumes": [volume], "containers": [container], "securityContext": security, "nodeName": "node-1"}
    await world.pod(name, body, run_time="never", start_delay="1h")


def lines(metrics: Registry) -> list[str]:
    return [line for line in metrics.expose().decode().splitlines() if line.startswith("selinux_warning")]


def running(world: World, metrics: Registry | None = None, **options):
    return controllers(world, names=[NAME], metrics=metrics, **options)


async def test_pods_with_different_labels_get_warnings(world: World):
    await driver(world)
    await bound(world, "a", ["ReadWriteMany"], SOURCE)
    metrics = Registry()
    async with running(world, metrics):
        await mounting(world, "p", "a", "s0:c1")
        await mounting(world, "q", "a", "s0:c1")
        await world.wait(3)
        assert (await world.events("p"), lines(metrics)) == ([], [])
        await mounting(world, "r", "a", "s0:c2")
        await world.wait(3)
        text = (
            'SELinuxLabel ":::s0:c1" conflicts with pod r that uses the same volume as this pod with '
            'SELinuxLabel ":::s0:c2". If both pods land on the same node, only one of them may access the volume.'
        )
        for name in ("p", "q"):
            assert ("SELinuxLabelConflict", text) in await world.events(name)
        assert len([reason for reason, _ in await world.events("r") if reason == "SELinuxLabelConflict"]) == 2
        assert len(lines(metrics)) == 4
        await world.delete(PODS, "r", grace_s=0)
        await world.wait(3)
        assert lines(metrics) == []


async def test_without_label_mounts_nothing_conflicts(world: World):
    await driver(world)
    await bound(world, "a", ["ReadWriteMany"], SOURCE)
    metrics = Registry()
    async with running(world, metrics, emulated="1.35", gates=[("", "SELinuxMountReadWriteOncePod=false")]):
        await mounting(world, "p", "a", "s0:c1")
        await mounting(world, "q", "a", "s0:c2")
        await world.wait(3)
        assert (await world.events("p"), lines(metrics)) == ([], [])
    async with running(world, metrics, emulated="1.35"):
        await world.wait(3)
        assert len(lines(metrics)) == 2


async def test_a_driver_that_enables_label_mounts_changes_conflicts(world: World):
    await driver(world, mounts=False)
    await bound(world, "a", ["ReadWriteMany"], SOURCE)
    metrics = Registry()
    async with running(world, metrics):
        await mounting(world, "p", "a", "s0:c1")
        await mounting(world, "q", "a", "s0:c2")
        await world.wait(3)
        assert lines(metrics) == []
        await world.patch(DRIVERS, DRIVER, {"spec": {"seLinuxMount": True}})
        await world.wait(3)
        assert len(lines(metrics)) == 2
        await world.patch(DRIVERS, DRIVER, {"spec": {"seLinuxMount": False}})
        await world.wait(3)
        assert lines(metrics) == []


async def test_different_policies_and_claims_bound_late(world: World):
    await driver(world)
    async with running(world):
        await mounting(world, "p", "a", "s0:c1")
        await mounting(world, "q", "a", "s0:c1", seLinuxChangePolicy="Recursive")
        await world.wait(3)
        await bound(world, "a", ["ReadWriteMany"], SOURCE)
        await world.wait(3)
        reasons = {reason for reason, _ in await world.events("q")}
        assert {"SELinuxChangePolicyConflict", "SELinuxLabelConflict"} <= reasons


async def test_pods_that_have_ended_do_not_count(world: World):
    await driver(world)
    await bound(world, "a", ["ReadWriteMany"], SOURCE)
    metrics = Registry()
    async with running(world, metrics):
        await mounting(world, "p", "a", "s0:c1")
        await world.wait(2)
        await world.client.patch(PODS, "default", "p", {"status": {"phase": "Failed"}}, subresource="status")
        await world.wait(2)
        await mounting(world, "q", "a", "s0:c2")
        await world.wait(3)
        assert lines(metrics) == []


async def test_a_pod_that_mounts_with_two_labels_is_reported(world: World):
    mount = {"name": "data", "mountPath": "/data"}
    containers = [
        {
            "name": level,
            "image": "nginx",
            "volumeMounts": [mount],
            "securityContext": {"seLinuxOptions": {"level": f"s0:{level}"}},
        }
        for level in ("c1", "c2")
    ]
    async with running(world):
        body = {"volumes": [{"name": "data", "emptyDir": {}}], "containers": containers}
        await world.pod("p", body, start_delay="1h")
        await world.wait(3)
        text = 'Volume "data" is mounted twice with different SELinux labels inside this pod'
        assert ("MultipleSELinuxLabels", text) in await world.events("p")
