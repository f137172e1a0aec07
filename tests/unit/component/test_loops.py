"""The event loop of a process."""

import asyncio
import gc
import sys

import pytest
import uvloop

from kcm_cli.component import loops
from kcm_cli.component.loops import new_event_loop


def test_uvloop_is_used_if_installed():
    loop = new_event_loop()
    assert isinstance(loop, uvloop.Loop)
    loop.close()


def test_asyncio_is_used_without_uvloop(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "uvloop", None)
    loop = new_event_loop()
    assert isinstance(loop, asyncio.SelectorEventLoop)
    loop.run_until_complete(asyncio.sleep(0))
    loop.close()


def test_garbage_collection_is_configured_and_restored(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(loops.gc, "freeze", lambda: None)  # for good, in a process that goes on here
    before = gc.get_threshold()

    async def main() -> tuple[int, int, int]:
        await asyncio.sleep(0)
        return gc.get_threshold()

    assert loops.run_process(main()) != before
    assert gc.get_threshold() == before


def test_a_process_that_ends_does_not_look_at_its_objects_again(monkeypatch: pytest.MonkeyPatch):
    """Python would, as soon as its own thresholds are back."""
    thresholds: list[tuple[int, int, int]] = []
    monkeypatch.setattr(loops.gc, "freeze", lambda: thresholds.append(gc.get_threshold()))
    before = gc.get_threshold()

    async def main() -> int:
        await asyncio.sleep(0)
        return len(thresholds)

    during = loops.run_process(main())
    assert len(thresholds) > during
    assert thresholds[-1] != before
