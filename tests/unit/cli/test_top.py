"""The command line and the keys of ``kcm top``."""

import asyncio
import os
import signal
from typing import Any

import pytest

from kcm_cli.cli import top
from kcm_cli.cli.terminal import Region
from kcm_cli.cli.top import main, pressed
from kcm_cli.manager.controller_map import queue_owners
from kcm_cli.top.table import SORTS, Look


@pytest.mark.parametrize(
    ("args", "text"),
    [
        (["--server=http://x"], "--server: http://x is no address such as https://127.0.0.1:10257"),
        (["--server=https://"], "--server: https:// is no address such as https://127.0.0.1:10257"),
        (["--server=https://["], "--server: https://[ is no address such as https://127.0.0.1:10257"),
        (["--server=https://x:99999"], "--server: https://x:99999 is no address such as https://127.0.0.1:10257"),
        (["--server=https://x:y"], "--server: https://x:y is no address such as https://127.0.0.1:10257"),
        (["--server=https://m.example"], "--certificate-authority: needed for another machine"),
        (["--token=a"], "--certificate-authority: needed, as credentials would go to whoever answers; "),
        (["--kubeconfig=k"], "--certificate-authority: needed, as credentials would go to whoever answers; "),
        (["--lease=x"], "--lease: x is not NAMESPACE/NAME"),
        (["--interval=1ms"], "--interval: must be at least 100ms"),
        (["-o", "json"], "--output: json is printed with --once"),
        (["--once", "-o", "yaml"], "--output: yaml is none of text, json"),
        (["--sort=colour"], "--sort: colour is none of waiting, "),
        (
            ["--token=a", "--token-file=/nowhere", "--insecure-skip-tls-verify"],
            "--token-file: it takes the place of --token",
        ),
        (["--token-file=/nowhere"], "--token-file: cannot read /nowhere"),
        (["extra"], "unexpected argument: extra (see kcm top --help)"),
    ],
)
def test_mistakes_are_one_line(args: list[str], text: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(args) == 1
    assert capsys.readouterr().err.startswith(f"Error: {text}")


def test_a_manager_that_does_not_run(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--server=https://127.0.0.1:1", "--once"]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("Error: ") and line.endswith("(does the manager run? --server names its address)")


def test_keys_change_the_view() -> None:
    look = Look()
    for key in "sra h?p":
        assert not pressed(look, key)
    assert look.sort == SORTS[(SORTS.index("rate") + 1) % len(SORTS)]
    assert (look.reverse, look.every, look.help, look.paused) == (True, True, False, False)
    for _ in SORTS:
        pressed(look, "s")
    assert look.sort == SORTS[(SORTS.index("rate") + 1) % len(SORTS)]
    assert pressed(look, "q")


def test_a_filter_is_typed() -> None:
    look = Look()
    for key in "/qs\x7f\n":
        assert not pressed(look, key)
    assert (look.filter, look.typing) == ("q", False)
    for key in "/x\x1b":
        assert not pressed(look, key)
    assert (look.filter, look.typing) == ("", False)


def test_each_queue_of_upstream_has_its_controller() -> None:
    owners = queue_owners()
    assert owners["deployment"] == "deployment-controller" and owners["noexec_taint_pod"] == "taint-eviction-controller"


async def test_a_view_in_the_background_stops_when_it_is_suspended(monkeypatch: pytest.MonkeyPatch) -> None:
    """The signal comes while the view waits for the foreground, which is there with the next look."""
    happened: list[str] = []
    ours = iter((False, True))
    suspend, ended = signal.SIGTSTP, RuntimeError("shown")

    async def sleep(seconds: float) -> None:
        handlers[suspend]()

    def opened(region: Region) -> None:
        happened.append("opened")
        raise ended

    handlers: dict[int, Any] = {}
    loop = asyncio.get_running_loop()
    monkeypatch.setattr(loop, "add_signal_handler", handlers.__setitem__)
    monkeypatch.setattr(loop, "remove_signal_handler", handlers.pop)
    monkeypatch.setattr(Region, "is_ours", property(lambda region: next(ours)))
    monkeypatch.setattr(Region, "open", opened)
    monkeypatch.setattr(asyncio, "sleep", sleep)
    monkeypatch.setattr(os, "kill", lambda process, number: happened.append(signal.Signals(number).name))
    command: Any = top.Command
    nothing: Any = None
    with pytest.raises(RuntimeError, match="shown"):
        await top._follow(command(nothing, ("", ""), 1.0, False, False, Look()), nothing, nothing, nothing)
    assert happened == ["SIGSTOP", "opened"]
    assert not handlers
