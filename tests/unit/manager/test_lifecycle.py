"""Parts of a manager when another one fails."""

import asyncio
import logging
import random
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from kcm_cli.component.clock import LoopClock
from kcm_cli.engine.descriptor import Descriptor
from kcm_cli.manager import lifecycle
from kcm_cli.manager.app import manage
from kcm_cli.manager.config import load
from kcm_cli.manager.errors import RunError
from kcm_cli.manager.lifecycle import Manager, Place
from kcm_cli.manager.selection import Lock


async def test_the_migration_lock_is_kept_until_its_controllers_have_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """Though the part under the main lock has failed."""
    config, done = load(["--enable-leader-migration"]), list[str]()

    async def work(manager: Any, election: object, held: Collection[Lock]) -> None:
        try:
            if Lock.MAIN in held:
                manager.observability.running.started("one")
                await asyncio.sleep(5)
                raise RunError("failed")
            await manager._stop.wait()
            await asyncio.sleep(5)  # its controllers end
            done.append("controllers")
        finally:
            done.append("main lease" if Lock.MAIN in held else "migration lease")

    @asynccontextmanager
    async def elections(manager: object) -> AsyncIterator[object]:
        yield SimpleNamespace()

    monkeypatch.setattr(Manager, "_work", work)
    monkeypatch.setattr(Manager, "_elections", elections)
    election = SimpleNamespace(check=lambda: None)
    monkeypatch.setattr(lifecycle, "Election", lambda name, shared: election)
    stop = asyncio.Event()
    manager = Manager(config, stop, lambda why: None, LoopClock(), random.Random(1), Place(real_time=False))
    await manager._lead()
    assert done == ["main lease", "controllers", "migration lease"]
    assert isinstance(manager._failure, RunError)


async def test_a_candidate_loads_the_modules_of_its_controllers_while_it_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not later: by then its files may be those of another version."""
    config, loaded, others = load(["--controllers=*,-job,token-cleaner-controller"]), list[str](), 0
    monkeypatch.setattr(Descriptor, "load", lambda descriptor: loaded.append(descriptor.name))
    place = Place(real_time=False)
    manager = Manager(config, asyncio.Event(), lambda why: None, LoopClock(), random.Random(1), place)
    async with manager._loading():
        while "token-cleaner-controller" not in loaded:
            others += 1
            await asyncio.sleep(0)
    assert {"serviceaccount-token-controller", "deployment-controller"} <= set(loaded)
    assert set(loaded).isdisjoint({"job-controller", "node-route-controller", "selinux-warning-controller"})
    assert others > 20, "one after the other"


async def test_the_version_set_by_the_flag_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    flags = ["--version=v1.36.2-custom", "--kubeconfig=/nowhere"]
    with caplog.at_level(logging.INFO):
        config = load(flags)
        assert await manage(config, asyncio.Event(), abandon=lambda why: None) == 1
    (started,) = [record for record in caplog.records if record.getMessage() == "Starting"]
    assert vars(started)["fields"] == {"version": "v1.36.2-custom"}
