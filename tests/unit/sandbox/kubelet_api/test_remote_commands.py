"""Commands that say how much input they read, and commands on terminals."""

import asyncio
from typing import Any, cast

import pytest

from kcm_cli.component.clock import LoopClock
from kcm_cli.machinery import codec
from kcm_cli.machinery.codec import Doc
from kcm_cli.sandbox.apiserver.store import Store
from kcm_cli.sandbox.apiserver.store.stored import Recent, Stored
from kcm_cli.sandbox.kubelet_api.commands import Commands
from kcm_cli.sandbox.kubelet_api.pods import Pod
from kcm_cli.sandbox.kubelet_api.remote_commands import _COUNTED, RemoteCommands, ended
from kcm_cli.sandbox.streams.pipe import Pipe
from kcm_cli.sandbox.streams.remote import Console, Wanted


class Terminal:
    """A client with a terminal, and what it shows."""

    def __init__(self) -> None:
        self.wanted = Wanted(stdin=True, stdout=True, stderr=True, tty=True)
        self.stdin = Pipe()
        self.shown = ""

    async def write(self, data: bytes, *, error: bool = False) -> None:
        self.shown += data.decode()


async def told(*command: str, typed: tuple[str, ...] = (), pause_s: float = 5.0) -> tuple[str, Doc | None]:
    """What a terminal shows of a command with these keys, with a pause before each and after the last one, and the end
    of the command if there is one then."""
    clock, client = LoopClock(), Terminal()
    issue: Any = None
    container = {"name": "c", "image": "i", "env": [{"name": "A", "value": "a"}]}
    doc = {"metadata": {"name": "p", "namespace": "d", "uid": "u"}, "spec": {"containers": [container]}}
    of = Pod(Stored("d", "p", 1, codec.encode(doc), Recent(1 << 20)), lambda view: view.annotations)
    remote = RemoteCommands(Commands(Store(), clock, issue), clock)
    work = asyncio.ensure_future(
        remote.on_terminal(of, of.view.spec.containers[0], command, cast(Console, client)),
    )
    for keys in typed:
        await clock.sleep(pause_s)
        await client.stdin.write(keys.encode())
    await clock.sleep(pause_s)
    over = work.result() if work.done() else None
    work.cancel()
    await asyncio.wait([work])
    return client.shown, over


@pytest.mark.parametrize(
    "command", [("sleep", "1000"), ("sh", "-c", "while true; do sleep 1; done"), ("tail", "-f", "/dev/null")]
)
async def test_a_key_interrupts_a_command(command: tuple[str, ...]) -> None:
    assert await told(*command, typed=("x",)) == ("", None)
    assert await told(*command, typed=("x", "\x03")) == ("^C\r\n", ended(130))


async def test_a_command_reads_what_is_typed() -> None:
    wrote, counted = "cat > /tmp/f; wc -l < /tmp/f", "a\r\nbc\b \bd\r\n"
    assert await told("sh", "-c", wrote, typed=("a\r", "bc\x7fd\r", "\x04")) == (f"{counted}2\r\n", ended(0))
    assert await told("sh", "-c", wrote, typed=("a\r", "b\x03")) == ("a\r\nb^C\r\n", ended(130))


async def test_a_shell_that_a_command_starts_finds_its_folder_and_variables() -> None:
    command = ("sh", "-c", "export B=b C; D=d; cd /tmp && exec env E=e bash")
    shown, over = await told(*command, typed=("echo $A$B$C$D$E; pwd\r", "exit 3\r"))
    assert shown == "/tmp # echo $A$B$C$D$E; pwd\r\nabe\r\n/tmp\r\n/tmp # exit 3\r\n"
    assert over == ended(3)


@pytest.mark.parametrize(
    ("script", "size"),
    [
        ("head -c 9", "9"),
        ("mkdir -p '/a b' && head -c 9 > '/a b/c'", "9"),
        ("head -c 9 | tar -xmf - -C /", "9"),
        ("exec 3>&1; mkdir -p /a && head -c 9 > /a/b", "9"),
        ("""mkdir -p '/a (1)' && head -c 9 > '/a (1)/it'"'"'s;'""", "9"),
        ('head -c 9 > "$(cat)"', None),
        ("head -c 9; cat", None),
        ("head -c 9 && cat", None),
        ("head -c 9 > /a; head -c 9 > /b", None),
        ("head -c 9 > /$(cat)", None),
        ("head -c 9 /d/f", None),
        ("head -c $N", None),
        ("mkdir -p `cat` && head -c 9", None),
    ],
)
def test_what_clients_run_that_cannot_close_the_input(script: str, size: str | None) -> None:
    found = _COUNTED.fullmatch(script)
    assert (None if found is None else found[1]) == size
