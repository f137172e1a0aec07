"""Which event loop a process runs on."""

import asyncio
import sys

import pytest
import uvloop

from kcm_cli.component.loops import new_event_loop


def test_uvloop_is_used_where_it_is_installed():
    loop = new_event_loop()
    assert isinstance(loop, uvloop.Loop)
    loop.close()


def test_asyncio_serves_where_it_is_not(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "uvloop", None)
    loop = new_event_loop()
    assert isinstance(loop, asyncio.SelectorEventLoop)
    loop.run_until_complete(asyncio.sleep(0))
    loop.close()
