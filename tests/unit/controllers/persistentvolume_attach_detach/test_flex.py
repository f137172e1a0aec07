"""FlexVolume drivers: real executables, on real time."""

import asyncio
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from kcm_cli.api.core import Pod
from kcm_cli.component.volume_config import VolumeConfig
from kcm_cli.controllers.persistentvolume_attach_detach import flex as flex_module
from kcm_cli.controllers.persistentvolume_attach_detach.config import AttachDetachConfig
from kcm_cli.controllers.persistentvolume_attach_detach.flex import FlexDrivers, FlexError
from kcm_cli.controllers.persistentvolume_attach_detach.world import World as AttachDetachWorld
from kcm_cli.planning.volumes.attachable import AttachableVolume
from tests.kit.controlling import controllers
from tests.kit.world import NODES, PODS, World
from tests.unit.controllers.persistentvolume_attach_detach.storage import bound, reported, using

GOOD = """#!/bin/sh
echo "$@" >> "$(dirname "$0")/calls"
case "$1" in
init) echo '{"status": "Success", "capabilities": {"attach": true}}';;
attach) echo '{"status": "Success", "device": "/dev/'$(basename "$3")'"}';;
isattached) echo '{"status": "Success", "attached": true}';;
detach) echo '{"status": "Success"}';;
*) echo '{"status": "Not supported"}'; exit 1;;
esac
"""


def install(folder: Path, name: str, script: str) -> Path:
    path = folder / name.replace("/", "~") / name.rpartition("/")[2]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(script)
    path.chmod(0o755)
    return path


def says(status: str, more: str = "", code: int = 0) -> str:
    return f'#!/bin/sh\necho \'{{"status": "{status}"{more}}}\'; exit {code}\n'


@pytest.mark.real_time
async def test_a_driver_is_discovered_used_and_removed(tmp_path):
    changes = []
    drivers = FlexDrivers(str(tmp_path), lambda: changes.append(1))
    await drivers.scan()
    assert not drivers.attaches("example.com/disk") and not changes
    path = install(tmp_path, "example.com/disk", GOOD)
    await drivers.scan()
    assert drivers.attaches("example.com/disk") and len(changes) == 1
    options = {"b": "2", "a": "1"}
    assert await drivers.attach("example.com/disk", options, "n1") == "/dev/n1"
    assert await drivers.is_attached("example.com/disk", options, "n1")
    await drivers.detach("example.com/disk", "v", "n1")
    await drivers.scan()  # nothing has changed: it is not asked again
    calls = (path.parent / "calls").read_text().splitlines()
    assert calls == ["init", 'attach {"a":"1","b":"2"} n1', 'isattached {"a":"1","b":"2"} n1', "detach v n1"]
    path.unlink()
    await drivers.scan()
    assert not drivers.attaches("example.com/disk") and len(changes) == 2
    with pytest.raises(FlexError, match="no volume plugin matched name: example.com/disk"):
        await drivers.attach("example.com/disk", {}, "n1")


@pytest.mark.real_time
@pytest.mark.parametrize(
    ("script", "expected"),
    [
        (says("Success"), True),
        (says("Success", ', "capabilities": {"attach": false}'), False),
        (says("Success", ', "Capabilities": {"attach": false}'), False),
        (says("Failure", ', "message": "no"'), False),
        (says("Success", code=3), False),
        ("#!/bin/sh\necho hello\n", False),
        ("#!/no/such/shell\n", False),
        ("#!/bin/sh\nprintf '\\377'\n", False),
    ],
)
async def test_drivers_that_attach(tmp_path, script, expected):
    install(tmp_path, "v/d", script)
    install(tmp_path, "v/other", GOOD)
    (tmp_path / ".hidden").mkdir()
    drivers = FlexDrivers(str(tmp_path), lambda: None)
    await drivers.scan()
    assert drivers.attaches("v/d") is expected
    assert drivers.attaches("v/other")


@pytest.mark.real_time
async def test_unsupported_operations_of_a_driver_are_skipped(tmp_path):
    path = install(tmp_path, "v/d", says("Success"))
    drivers = FlexDrivers(str(tmp_path), lambda: None)
    await drivers.scan()
    path.write_text(says("Not supported", code=1))
    assert await drivers.attach("v/d", {}, "n") == ""
    assert await drivers.is_attached("v/d", {}, "n") is True
    await drivers.detach("v/d", "v", "n")
    path.write_text(says("Failure", ', "message": "full"', code=1))
    with pytest.raises(FlexError, match="attach command failed, status: Failure, reason: full"):
        await drivers.attach("v/d", {}, "n")


@pytest.mark.real_time
async def test_an_unresponsive_driver_is_killed(tmp_path, monkeypatch):
    monkeypatch.setattr(flex_module, "TIMEOUT_S", 0.3)
    path = install(tmp_path, "v/d", says("Success"))
    drivers = FlexDrivers(str(tmp_path), lambda: None)
    await drivers.scan()
    path.write_text('#!/bin/sh\necho $$ > "$(dirname "$0")/pid"\nexec sleep 60\n')
    with pytest.raises(FlexError, match="attach command timed out"):
        await drivers.attach("v/d", {}, "n")
    pid = int((path.parent / "pid").read_text())
    assert not Path(f"/proc/{pid}").exists()  # it has ended, and was waited for


@pytest.mark.real_time
async def test_a_child_of_a_killed_driver_keeps_no_pipe_open(tmp_path, monkeypatch):
    monkeypatch.setattr(flex_module, "TIMEOUT_S", 0.3)
    monkeypatch.setattr(flex_module, "_TO_END_S", 0.1)
    path = install(tmp_path, "v/d", says("Success"))
    drivers = FlexDrivers(str(tmp_path), lambda: None)
    await drivers.scan()
    path.write_text('#!/bin/sh\nsleep 60 &\necho $! > "$(dirname "$0")/child"\nwait\n')
    before = len(os.listdir("/proc/self/fd"))
    try:
        with pytest.raises(FlexError, match="attach command timed out"):
            await drivers.attach("v/d", {}, "n")
        await asyncio.sleep(0.1)
        assert len(os.listdir("/proc/self/fd")) == before
    finally:
        os.kill(int((path.parent / "child").read_text()), signal.SIGKILL)


WAITING = """#!/bin/sh
for i in 0 1 2 3 4 5 6 7 8 9; do
  if [ -e "$(dirname "$0")/../example.com~b/calls" ]; then echo '{"status": "Success"}'; exit; fi
  sleep 0.5
done
echo '{"status": "Failure"}'
"""


@pytest.mark.real_time
async def test_a_slow_driver_does_not_block_others(tmp_path):
    """Nothing is attached before all drivers are initialised. The first waits for the second."""
    install(tmp_path, "example.com/a", WAITING)
    install(tmp_path, "example.com/b", GOOD)
    drivers = FlexDrivers(str(tmp_path), lambda: None)
    await drivers.scan()
    assert drivers.attaches("example.com/a") and drivers.attaches("example.com/b")


async def until(world: World, done) -> None:
    for _ in range(400):
        if await done():
            return
        time.sleep(0.02)  # for the process
        await world.wait(0.1)
    raise AssertionError("not in time")


async def test_volumes_attached_before_a_driver_is_installed_are_detached_by_it(world: World, tmp_path):
    volumes = [{"name": "example.com/disk/d", "devicePath": "/dev/x"}]
    status = {"status": {"volumesAttached": volumes}}
    await world.client.patch(NODES, "", "node-1", status, subresource="status")
    configs = (AttachDetachConfig(), VolumeConfig(flex_volume_plugin_dir=os.fspath(tmp_path)))
    async with controllers(world, *configs, names=["persistentvolume-attach-detach-controller"]):
        await world.wait(15)
        assert await reported(world) == ["example.com/disk/d"]
        calls = install(tmp_path, "example.com/disk", GOOD).parent / "calls"

        async def detached() -> bool:
            return calls.exists() and "detach d node-1" in calls.read_text().splitlines()

        await until(world, detached)


async def test_only_pods_that_can_use_a_new_driver_are_processed(world: World, tmp_path, monkeypatch):
    looked: list[str] = []
    look = AttachDetachWorld._found

    def counted(self: AttachDetachWorld, pod: Pod) -> Iterator[AttachableVolume]:
        looked.append(pod.name)
        return look(self, pod)

    monkeypatch.setattr(AttachDetachWorld, "_found", counted)
    disk = {"flexVolume": {"driver": "example.com/disk"}}
    await world.pod("plain", using("none"))
    await world.pod("own", using("", volumes=[{"name": "d", **disk}]))
    await bound(world, "c", source=disk)
    await world.pod("bound", using("c"))
    configs = (AttachDetachConfig(), VolumeConfig(flex_volume_plugin_dir=os.fspath(tmp_path)))
    async with controllers(world, *configs, names=["persistentvolume-attach-detach-controller"]):
        await world.wait(5)
        looked.clear()
        install(tmp_path, "example.com/disk", GOOD)

        async def attached() -> bool:
            return len(await reported(world)) == 2

        await until(world, attached)
    assert set(looked) == {"bound", "own"}


async def test_a_pod_with_a_volume_of_a_driver(world: World, tmp_path):
    """Time is virtual, the driver's is not: the loop is given real time between its steps."""
    calls = install(tmp_path, "example.com/disk", GOOD).parent / "calls"
    flex = {"driver": "example.com/disk", "fsType": "ext4", "options": {"size": "1"}}
    volumes = [{"name": "d", "flexVolume": flex}, {"name": "o", "flexVolume": {"driver": "example.com/unknown"}}]
    configs = (AttachDetachConfig(), VolumeConfig(flex_volume_plugin_dir=os.fspath(tmp_path)))
    async with controllers(world, *configs, names=["persistentvolume-attach-detach-controller"]):
        await world.pod("p", using("", volumes=volumes))

        async def attached() -> bool:
            return await reported(world) == ["example.com/disk/d"]

        await until(world, attached)
        node = await world.get(NODES, "node-1")
        assert node["status"]["volumesAttached"] == [{"name": "example.com/disk/d", "devicePath": "/dev/node-1"}]
        await world.delete(PODS, "p")

        async def detached() -> bool:
            return "detach d node-1" in calls.read_text().splitlines()

        await until(world, detached)
    options = '{"kubernetes.io/fsType":"ext4","kubernetes.io/pvOrVolumeName":"d","kubernetes.io/readwrite":"rw"'
    assert f'attach {options},"size":"1"}} node-1' in calls.read_text().splitlines()
