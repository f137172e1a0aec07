"""What programs write to clients that attach to them."""

import asyncio
from datetime import UTC, datetime
from typing import Any, cast

import pytest

from kcm_cli.component.clock import LoopClock
from kcm_cli.machinery import codec
from kcm_cli.sandbox.apiserver.store import Store
from kcm_cli.sandbox.apiserver.store.stored import Recent, Stored
from kcm_cli.sandbox.kubelet_api import attached
from kcm_cli.sandbox.kubelet_api.attached import AttachedPrograms
from kcm_cli.sandbox.kubelet_api.commands import Commands
from kcm_cli.sandbox.kubelet_api.pods import Pod, Run
from kcm_cli.sandbox.kubelet_api.remote_commands import RemoteCommands
from kcm_cli.sandbox.streams.pipe import Pipe
from kcm_cli.sandbox.streams.remote import Console, Wanted

RUN = Run(datetime(2026, 1, 2, tzinfo=UTC), None)


class Client:
    """The streams of a client that reads everything."""

    def __init__(self) -> None:
        self.wanted = Wanted(stdin=True, stdout=True, stderr=True, tty=False)
        self.stdin = Pipe()

    async def write(self, data: bytes, *, error: bool = False) -> None:
        pass


def made() -> AttachedPrograms:
    store, clock = Store(), LoopClock(RUN.started)
    issue: Any = None
    commands = Commands(store, clock, issue)
    return AttachedPrograms(commands, RemoteCommands(commands, clock), clock)


def pod(name: str) -> Pod:
    container = {"name": "c", "image": "i", "command": ["cat"], "stdin": True}
    doc = {"metadata": {"name": name, "namespace": "d", "uid": name}, "spec": {"containers": [container]}}
    return Pod(Stored("d", name, 1, codec.encode(doc), Recent(1 << 20)), lambda view: view.annotations)


async def attach(known: AttachedPrograms, name: str, sent: bytes) -> None:
    client, of = Client(), pod(name)
    await client.stdin.write(sent)
    client.stdin.end()
    await known.attach(of, of.view.spec.containers[0], RUN, cast(Console, client))


def output(known: AttachedPrograms, name: str) -> str:
    return "".join(text for _, text, _ in known.written(pod(name), "c", RUN))


async def test_runs_with_clients_are_kept() -> None:
    known, client, of = made(), Client(), pod("open")
    staying = asyncio.ensure_future(known.attach(of, of.view.spec.containers[0], RUN, cast(Console, client)))
    await asyncio.sleep(0)
    for number in range(100):
        await attach(known, str(number), b"a\n")
    await client.stdin.write(b"late\n")
    client.stdin.end()
    await staying
    assert output(known, "open") == "late\n"
    assert (output(known, "0"), output(known, "99")) == ("", "a\n")


async def test_a_run_with_a_new_client_is_kept_longer() -> None:
    known = made()
    await attach(known, "again", b"a\n")
    for number in range(60):
        await attach(known, str(number), b"a\n")
    await attach(known, "again", b"b\n")
    for number in range(60, 100):
        await attach(known, str(number), b"a\n")
    assert output(known, "again") == "a\nb\n"


async def test_long_output_has_no_holes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attached, "_MOST_WRITTEN", 10)
    known = made()
    for part in (b"12345678", b"abcdef", b"z"):
        await attach(known, "p", part)
    assert output(known, "p") == "12345678ab"
