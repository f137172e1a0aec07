import asyncio
import socket
import threading
from pathlib import Path

import pytest

from kcm_cli.component.health import HealthChecks
from kcm_cli.component.leader_config import DEFAULT_MIGRATION
from kcm_cli.component.metrics import Registry
from kcm_cli.manager import notify as notify_module
from kcm_cli.manager.loop_thread import LoopThread
from kcm_cli.manager.notify import READY, notify
from kcm_cli.manager.running import RunningControllers
from kcm_cli.manager.selection import Lock, locks

pytestmark = pytest.mark.real_time


def test_migration_puts_controllers_under_locks() -> None:
    leaders = (("a", "kube-controller-manager"), ("b", "*"), ("c", "cloud-controller-manager"), ("old", "*"))
    found = locks(leaders, {"old": "new"})
    assert found == {"a": Lock.MIGRATION, "b": Lock.MIGRATION, "c": Lock.ELSEWHERE, "new": Lock.MIGRATION}
    assert len(locks(DEFAULT_MIGRATION.controller_leaders, {})) == 3


def test_systemd_is_notified(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
        listener.bind(str(tmp_path / "s"))
        assert notify(READY, {"NOTIFY_SOCKET": str(tmp_path / "s")})
        assert listener.recv(100) == b"READY=1"


def test_a_listener_that_does_not_read_holds_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notify_module, "PATIENCE_S", 0.05)
    path = str(tmp_path / "s")
    with (
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener,
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as other,
    ):
        listener.bind(path)
        other.setblocking(False)
        with pytest.raises(BlockingIOError):
            while True:
                other.sendto(b"x", path)
        assert not notify(READY, {"NOTIFY_SOCKET": path})


@pytest.mark.parametrize("address", ["", "relative", "/nobody/listens"])
def test_without_systemd_nothing_is_sent(address: str) -> None:
    assert not notify(READY, {"NOTIFY_SOCKET": address})


def test_running_controllers_are_listed() -> None:
    health, registry = HealthChecks(), Registry()
    running = RunningControllers(health, registry)
    running.built("a-controller")
    running.built("a-controller")
    running.built("node-ipam-controller", "nodeipam")
    running.started("a-controller")
    running.started("node-ipam-controller")
    assert health.names == ("a-controller", "node-ipam-controller")
    line = 'running_managed_controllers{manager="kube-controller-manager",name="nodeipam"}'
    assert f"{line} 1\n" in registry.expose().decode()
    assert "a-controller" not in registry.expose().decode()
    running.ended("a-controller", stopped=True)
    running.ended("node-ipam-controller", stopped=True)
    assert f"{line} 0\n" in registry.expose().decode()
    assert health.evaluate().healthy


def test_a_controller_that_ended_is_unhealthy_until_it_is_restarted() -> None:
    health = HealthChecks()
    running = RunningControllers(health, Registry())
    running.built("a-controller")
    running.ended("a-controller", stopped=False)
    assert health.evaluate().failed == ("a-controller",)
    running.built("a-controller")
    assert health.evaluate().healthy


async def test_a_separate_loop_runs_tasks_and_stops() -> None:
    thread = LoopThread("t")
    thread.start()
    ended: list[str] = []

    async def forever() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("cancelled")

    async def answer() -> int:
        return 42

    thread.submit(forever())
    assert await thread.call(answer()) == 42
    await thread.stop()
    assert ended == ["cancelled"]


async def test_a_separate_loop_stops_where_no_thread_can_start(monkeypatch: pytest.MonkeyPatch) -> None:
    def none_left(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    thread = LoopThread("t")
    thread.start()
    loop = thread.loop
    with monkeypatch.context() as limited:
        limited.setattr(threading.Thread, "start", none_left)
        await thread.stop()
    assert loop.is_closed()
