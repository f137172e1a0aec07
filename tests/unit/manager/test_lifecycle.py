"""What one part of a manager does where another one fails."""

import asyncio
import random
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from kcm_cli.component import virtual
from kcm_cli.component.clock import LoopClock
from kcm_cli.manager import lifecycle
from kcm_cli.manager.config import load
from kcm_cli.manager.config_controllers import known_of
from kcm_cli.manager.controller_map import CONTROLLERS
from kcm_cli.manager.errors import RunError
from kcm_cli.manager.lifecycle import Manager, Place
from kcm_cli.manager.migration import Lock


def test_the_migration_lock_is_kept_until_its_controllers_have_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """Though the part under the main lock has failed."""
    config, done = load(["--enable-leader-migration"], known_of(CONTROLLERS)), list[str]()

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

    async def main() -> None:
        stop = asyncio.Event()
        manager = Manager(config, stop, lambda why: None, LoopClock(), random.Random(1), Place(real_time=False))
        try:
            await manager._lead()
        finally:
            manager._thread.loop.close()
        assert done == ["main lease", "controllers", "migration lease"]
        assert isinstance(manager._failure, RunError)

    virtual.run(main())
