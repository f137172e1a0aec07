"""``kcm sandbox``: what it logs, and how it ends."""

import asyncio
import logging
from typing import Any

import pytest
from msgspec.structs import replace

from kcm_cli.cli import sandbox
from kcm_cli.cli.sandbox_flags import Command
from kcm_cli.cluster import sandbox as composition
from kcm_cli.sandbox.run import SandboxOptions, SandboxServer


@pytest.mark.parametrize(("verbosity", "quiet"), [(0, True), (1, False)])
def test_the_start_of_controllers_is_told_from_verbosity_one_on(verbosity: int, quiet: bool) -> None:
    """The manager's lines at V(0) about it would push the sandbox's address off the screen."""
    about = [logging.getLogger(name) for name in sandbox._ABOUT_STARTS]
    own = [logger.level for logger in about]
    with sandbox._quiet(verbosity):
        assert [logger.level for logger in about] == ([logging.WARNING] * len(about) if quiet else own)
    assert [logger.level for logger in about] == own


@pytest.mark.real_time
async def test_a_part_that_fails_ends_it_with_an_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    class Broken:
        async def run(self) -> None:
            raise ValueError("broken")

    def composed(*parts: Any, **more: Any) -> Any:
        return replace(made(*parts, **more), storage=lambda means: Broken())

    made = composition.sandbox_cluster
    monkeypatch.setattr(composition, "sandbox_cluster", composed)
    options = SandboxOptions(port=0, nodes=1, manager=False)
    server = SandboxServer(options)
    server.prepare()
    try:
        assert await sandbox._serve(Command(options, view=False), server, asyncio.Event()) == 1
    finally:
        await server.stop()
    assert f"kcm sandbox serves on {server.url}" in capsys.readouterr().out
    (record,) = [one for one in caplog.records if one.message == "Task ended"]
    assert vars(record)["fields"] == {"task": "storage", "err": "broken"}
