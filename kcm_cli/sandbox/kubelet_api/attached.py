"""Containers whose program reads its input, and clients that attach to them.

A container has an input with ``stdin``. With ``stdinOnce`` it ends with the first client, and the program with it.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime

import msgspec

from kcm_cli.component.clock import Clock
from kcm_cli.machinery.codec import Doc
from kcm_cli.sandbox.kubelet_api.commands import Commands
from kcm_cli.sandbox.kubelet_api.keys import INTERRUPTED, Keys
from kcm_cli.sandbox.kubelet_api.pods import Pod, Run
from kcm_cli.sandbox.kubelet_api.remote_commands import RemoteCommands, bare, ended, is_shell
from kcm_cli.sandbox.nodes.container_program import is_pause, program_of
from kcm_cli.sandbox.programs.execution import Written
from kcm_cli.sandbox.streams.pipe import Pipe
from kcm_cli.sandbox.streams.remote import Console
from kcm_cli.sandbox.views import SimulatedContainer

CAT = (("cat",), ("cat", "-"), ("/bin/cat",))
_SHELL = ("sh",)
"""The program of an image that is run with an input and no command."""
_MOST_RUNS, _MOST_WRITTEN = 64, 1 << 20
"""The limits for runs whose output is kept, but for those with clients, and for the bytes of each."""
Key = tuple[str, str, int]
"""The uid of a pod, the name of a container, and the number of its run."""
RunOutput = tuple[datetime, tuple[Written, ...]]
"""When a run began, and what was written in it."""


class _Record(msgspec.Struct):
    """What was written in a run since ``began``, and its bytes. ``users``: clients that attach to it or follow it;
    wakes: called when there is more."""

    began: datetime
    written: list[Written] = msgspec.field(default_factory=list)
    size: int = 0
    users: int = 0
    wakes: list[Callable[[], None]] = msgspec.field(default_factory=list)

    def add(self, now: datetime, data: bytes, *, error: bool) -> None:
        """Keep what there is room for."""
        if data := data[: _MOST_WRITTEN - self.size]:
            self.size += len(data)
            at_s = max(0.0, (now - self.began).total_seconds())
            self.written.append(Written(at_s, data.decode("utf-8", "surrogateescape"), error))
            for wake in self.wakes:
                wake()

    def put(self, written: Sequence[Written]) -> None:
        """Replace all that was written."""
        self.written[:] = written
        self.size = sum(len(text.encode("utf-8", "surrogateescape")) for _, text, _ in written)


class AttachedPrograms:
    """Runs the programs that read their input while clients are attached, and keeps what they write."""

    def __init__(self, commands: Commands, remote: RemoteCommands, clock: Clock) -> None:
        self._commands = commands
        self._remote = remote
        self._clock = clock
        self._written: OrderedDict[Key, _Record] = OrderedDict()
        """The output of runs, the last one with a new client at the end."""

    @property
    def outputs(self) -> Mapping[Key, RunOutput]:
        """What programs have written."""
        return {key: (one.began, tuple(one.written)) for key, one in self._written.items()}

    @outputs.setter
    def outputs(self, outputs: Mapping[Key, RunOutput]) -> None:
        for key in [key for key, one in self._written.items() if key not in outputs and not one.users]:
            del self._written[key]
        for key, one in self._written.items():
            one.put(outputs[key][1] if key in outputs else ())
        for key, (began, written) in outputs.items():
            if key not in self._written:
                self._written[key] = record = _Record(began)
                record.put(written)

    def waits(self, pod: Pod, container: SimulatedContainer) -> bool:
        """Whether a container's program waits for its input."""
        return bool(self._words(pod, container))

    def written(self, pod: Pod, name: str, run: Run) -> Sequence[Written]:
        """What a program has written in a run of a container."""
        record = self._written.get((pod.view.uid, name, run.number))
        return () if record is None else record.written

    @contextmanager
    def followed(self, pod: Pod, name: str, run: Run, wake: Callable[[], None]) -> Iterator[Sequence[Written]]:
        """What a program has written in a run of a container, which grows. ``wake`` is called when it has."""
        with self._record(pod, name, run) as record:
            record.wakes.append(wake)
            try:
                yield record.written
            finally:
                record.wakes.remove(wake)

    async def attach(self, pod: Pod, container: SimulatedContainer, run: Run, console: Console) -> Doc:
        """Run the program with the input of a client, and end the container when it ends."""
        with self._record(pod, container.name, run) as record:
            return await self._attach(pod, container, _Recorded(console, record, self._clock))

    async def _attach(self, pod: Pod, container: SimulatedContainer, recorded: "_Recorded") -> Doc:
        words = self._words(pod, container)
        if bare(words) in CAT:
            found = await echoed(recorded, is_first=True)
        elif is_shell(words):
            shell = self._remote.terminal if recorded.wanted.tty else self._remote.script
            found = await shell(pod, container, words, recorded)
        else:
            found = await self._remote.input(pod, container, words, recorded)
        if container.stdin_once or not recorded.input.over:
            self._commands.ended(pod.key, container.name, _code(found))
        return found

    def _words(self, pod: Pod, container: SimulatedContainer) -> tuple[str, ...]:
        """The program that waits for its input; empty if none does."""
        if not container.stdin or is_pause(container):
            return ()
        began = self._commands.began(pod, pod.run(container.name, previous=False))
        words = program_of(container, pod.view, self._commands.objects, began=began).words or _SHELL
        if bare(words) in CAT or is_shell(words):
            return words
        reads = container.stdin_once and self._commands.started(pod, container, "").reads(words)
        return words if reads else ()

    @contextmanager
    def _record(self, pod: Pod, name: str, run: Run) -> Iterator[_Record]:
        """The output of a run, for a client."""
        key = (pod.view.uid, name, run.number)
        found = self._written.setdefault(key, _Record(run.started))
        self._written.move_to_end(key)
        found.users += 1
        unused = [each for each, one in self._written.items() if not one.users]
        for each in unused[: max(0, len(self._written) - _MOST_RUNS)]:
            del self._written[each]
        try:
            yield found
        finally:
            found.users -= 1


class _Input(Pipe):
    """The input of a client. ``over``: whether the program has read its end."""

    def __init__(self, pipe: Pipe) -> None:
        super().__init__()
        self.over = False
        self._pipe = pipe

    async def read(self) -> bytes:
        found = await self._pipe.read()
        self.over = not found
        return found


class _Recorded(Console):
    """The streams of a client, whose output is kept."""

    def __init__(self, console: Console, record: _Record, clock: Clock) -> None:
        self.wanted = console.wanted
        self.stdin = self.input = _Input(console.stdin)
        self._console, self._record, self._clock = console, record, clock

    async def write(self, data: bytes, *, error: bool = False) -> None:
        self._record.add(self._clock.now(), data, error=error)
        await self._console.write(data, error=error)


async def echoed(console: Console, *, is_first: bool = False) -> Doc:
    """``cat`` of the client's input. is_first: the first process of a container, which no key interrupts."""
    if console.wanted.tty:
        async for line in Keys(console).lines():
            if line is not None:
                await console.write(line.replace(b"\n", b"\r\n"))
            elif not is_first:
                return ended(INTERRUPTED)
        return ended(0)
    while data := await console.stdin.read():
        await console.write(data)
    return ended(0)


def _code(status: Doc) -> int:
    """The exit code of a Status (see ``remote_commands.ended``), 1 for a program that cannot be simulated."""
    if status.get("status") == "Success":
        return 0
    details = status.get("details")
    causes = details.get("causes") if isinstance(details, dict) else None
    text = str(causes[0].get("message", "")) if isinstance(causes, list) else ""
    return int(text) if text.isascii() and text.isdigit() else 1
