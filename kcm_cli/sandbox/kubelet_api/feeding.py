"""Runs commands in containers for clients that send input: a shell gets its script line by line, others all of it."""

import asyncio
import re
from collections import deque
from collections.abc import AsyncIterator, Coroutine
from hashlib import sha256
from math import inf

from kcm_cli.component.clock import Clock
from kcm_cli.machinery.codec import Doc
from kcm_cli.sandbox.kubelet_api.commands import Commands
from kcm_cli.sandbox.kubelet_api.pods import Pod
from kcm_cli.sandbox.nodes.annotations import EXEC, PREFIX
from kcm_cli.sandbox.programs.execution import Execution
from kcm_cli.sandbox.programs.interpreter import SHELLS, program_name
from kcm_cli.sandbox.programs.simulate import RUNTIME, Session
from kcm_cli.sandbox.programs.tar_command import Arriving
from kcm_cli.sandbox.streams.remote import Console
from kcm_cli.sandbox.views import SimulatedContainer

WHY = "nothing runs in the containers of a sandbox"
_MOST_LINE, _MOST_PARSED = 1 << 16, 1 << 20
"""The limits for a line of a script, and for the characters that are parsed until its lines are a whole command."""
MOST_INPUT = 8 << 20
"""The limit for the input of a command, in bytes. What a longer one contains is unknown."""
_GOES_ON = re.compile(r"(?<!\\)(?:\\\\)*\\\n\Z")
"""The end of a line that goes on."""
_TOO_LONG = "a command that is too long cannot be simulated\n"
_NO_ROOM = "the files that the command writes are too large to be kept\n"
_QUOTED = r"""'[^']*'|"[^"$`]*\""""
_COUNTED = re.compile(
    rf"(?:exec 3>&1; )?(?:mkdir -p (?:{_QUOTED}|[^;&|<>$`()'\"])+ && )?"
    rf"head -c ?([0-9]{{1,9}})(?: [|>](?:{_QUOTED}|[^;&<$`()'\"])*)?"
)
"""What clients run that cannot close the input: inspect_k8s_sandbox, and Ansible's k8s_cp."""
_OF_INPUT = frozenset(("-l", "-i", "-il", "-li", "--login", "-s"))
_INTERRUPT, _END, _ESCAPE = 3, 4, 27
_ERASE, _ENTER = (8, 127), (10, 13)
_INTERRUPTED, _CANNOT = 130, 126


class Feeding:
    """See the module."""

    def __init__(self, commands: Commands, clock: Clock) -> None:
        self._commands = commands
        self._clock = clock

    async def script(self, pod: Pod, container: SimulatedContainer, shell: tuple[str, ...], console: Console) -> Doc:
        """Run a shell with the script that the client sends. Each line is run as it comes, until the input ends or
        ``exit`` is called."""
        typed = _Typed(self._commands, self._clock, pod, container, shell, interactive=False)
        rest = bytearray()
        while data := await console.stdin.read():
            rest += data
            *lines, last = rest.split(b"\n")
            rest = last
            for line in lines:
                known, ended_ = typed.line(_text(line) + "\n")
                if known is not None:
                    await self.play(known, console, typed.where, typed.passed_s)
                if ended_:
                    return ended(typed.code)
            if len(rest) > _MOST_LINE:
                await console.write(f"{shell[0]}: {_TOO_LONG}".encode(), error=True)
                return ended(_CANNOT)
        known, _ = typed.line(_text(rest), last=True)
        if known is not None:
            await self.play(known, console, typed.where, typed.passed_s)
        return ended(typed.code)

    # -- terminals

    async def terminal(self, pod: Pod, container: SimulatedContainer, shell: tuple[str, ...], console: Console) -> Doc:
        """Run a shell on a terminal: with a prompt, an echo, erasure and interrupts."""
        typed = _Typed(self._commands, self._clock, pod, container, shell, interactive=True)
        keys, line = _Keys(console), bytearray()
        await console.write(typed.prompt)
        async for key in keys:
            if key in _ENTER:
                await console.write(b"\r\n")
                known, ended_ = typed.line(_text(line) + "\n")
                line.clear()
                if known is not None and await keys.interrupts(self.play(known, console, typed.where, typed.passed_s)):
                    typed.interrupt()
                    ended_ = False
                if ended_:
                    break
                await console.write(typed.prompt)
            elif key in _ERASE:
                if line:
                    line[:] = _text(line)[:-1].encode("utf-8", "surrogateescape")
                    await console.write(b"\b \b")
            elif key == _INTERRUPT:
                typed.interrupt()
                line.clear()
                await console.write(b"^C\r\n" + typed.prompt)
            elif key == _END:
                if not line:
                    await console.write(b"\r\n")
                    break
            elif key >= 32 or key == 9:
                line.append(key)
                await console.write(bytes([key]))
                if len(line) > _MOST_LINE:
                    line.clear()
        return ended(typed.code)

    async def input(self, pod: Pod, container: SimulatedContainer, command: tuple[str, ...], console: Console) -> Doc:
        """Run a command with all that the client sends as its standard input, ``tar`` with the archive, and ``head -c``
        with as much as it reads."""
        sent, is_long = bytearray(), False
        archive = Arriving() if program_name("".join(bare(command)[:1])) == "tar" else None
        counted, size = _COUNTED.fullmatch(" ".join(bare(command))), 0
        while (counted is None or size < int(counted[1])) and (data := await console.stdin.read()):
            size += len(data)
            if size > MOST_INPUT:
                is_long = True  # the rest is read, and not kept
                sent.clear()
            if not is_long:
                sent += data
                if archive is not None and archive.is_whole(sent):
                    break
        known = self._commands.run(pod, container, command, None if is_long else _text(sent), is_long=is_long)
        return await self.carried_out(known, console, (pod.key, container.name))

    async def carried_out(self, known: Execution, console: Console, where: tuple[str, str]) -> Doc:
        """Write the output of a command; returns its end, or the error if it cannot be simulated."""
        code = await self.play(known, console, where)
        return failed(known.problem, where[1]) if known.problem else ended(code)

    async def play(self, known: Execution, console: Console, where: tuple[str, str], passed_s: float = 0.0) -> int:
        """Write the output of a command at its times, and send its signals; returns the exit code. where: pod and
        container. ``passed_s``: the time since it started."""
        signals = deque(known.signals)
        for at_s, text, error in known.output:
            passed_s = await self._signal(signals, where, passed_s, at_s)
            data = text.encode("utf-8", "surrogateescape")
            await console.write(data.replace(b"\n", b"\r\n") if console.wanted.tty else data, error=error)
        passed_s = await self._signal(signals, where, passed_s, known.lasts_s)
        return known.code

    async def _signal(
        self, signals: deque[tuple[float, str]], where: tuple[str, str], passed_s: float, until_s: float
    ) -> float:
        """Wait until a time, and send the signals until then; returns the time."""
        while signals and signals[0][0] <= until_s:
            at_s, name = signals.popleft()
            await self._clock.sleep(max(0.0, at_s - passed_s))
            passed_s = max(passed_s, at_s)
            self._commands.signalled(*where, name)
        while until_s == inf:
            await self._clock.sleep(3600.0)
        await self._clock.sleep(max(0.0, until_s - passed_s))
        return max(passed_s, until_s)


class _Typed:
    """A shell with the lines that a client sends."""

    def __init__(
        self,
        commands: Commands,
        clock: Clock,
        pod: Pod,
        container: SimulatedContainer,
        shell: tuple[str, ...],
        *,
        interactive: bool,
    ) -> None:
        self._commands = commands
        self._clock = clock
        self._began_s = clock.monotonic()
        self._pod, self._container = pod, container
        self._started = commands.started(pod, container, "")
        program = self._started.program
        self._session: Session = program.session(shell, self._started.there, interactive=interactive)
        self._pending, self._parsed = "", 0
        self.passed_s = 0.0
        """The time from the start of the shell to that of the last line."""
        self.where = pod.key, container.name

    @property
    def code(self) -> int:
        return self._session.code

    @property
    def prompt(self) -> bytes:
        """The prompt of a small shell."""
        if self._pending:
            return b"> "
        host = self._started.program.volumes
        sign = "$" if host is not None and host.user else "#"
        folder, home = self._session.folder, self._started.program.env.get("HOME")
        return f"{'~' if folder == home else folder} {sign} ".encode()

    def line(self, text: str, *, last: bool = False) -> tuple[Execution | None, bool]:
        """Run a line, when the command that it belongs to is complete; returns the outcome, and whether the shell has
        ended. last: it is the last one."""
        self._pending += text
        if self._parsed + len(self._pending) > _MOST_PARSED:
            self._pending, self._parsed = "", 0
            return self._session.refused(_TOO_LONG), last
        if not last and _GOES_ON.search(self._pending):
            return None, False
        self._parsed += len(self._pending)
        self._started = self._commands.started(self._pod, self._container, "")
        self.passed_s = self._clock.monotonic() - self._began_s
        found = self._session.feed(self._pending, self._started.there, self.passed_s, last=last)
        if found is None:
            return None, False
        self._pending, self._parsed = "", 0
        known, is_over = found
        if not self._commands.keep(self._started, known):
            return self._session.refused(_NO_ROOM), is_over
        return known, is_over

    def interrupt(self) -> None:
        """Drop the current line, and end the command that runs."""
        self._pending, self._parsed = "", 0
        self._session.interrupt(self._clock.monotonic() - self._began_s, _INTERRUPTED)


class _Keys:
    """The bytes that a terminal sends, without the escape sequences of other keys."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._waiting: deque[int] = deque()
        self._ended = False

    async def __aiter__(self) -> AsyncIterator[int]:
        escaped = False
        while True:
            while not self._waiting:
                if self._ended or not (data := await self._console.stdin.read()):
                    return
                self._waiting += data
            key = self._waiting.popleft()
            if key == _ESCAPE:
                escaped = True
            elif not escaped:
                yield key
            elif key not in b"[O0123456789;":
                escaped = False

    async def interrupts(self, work: Coroutine[object, object, object]) -> bool:
        """Wait for work, or until the interrupt key or the end of the input ends it; returns whether that happened.
        Other keys are kept for later, as many as a line has."""
        task = asyncio.ensure_future(work)
        try:
            while not task.done() and not self._ended:
                reading = asyncio.ensure_future(self._console.stdin.read())
                await asyncio.wait((task, reading), return_when=asyncio.FIRST_COMPLETED)
                if not reading.done():
                    reading.cancel()
                    await asyncio.wait((reading,))
                data = b"" if reading.cancelled() else reading.result()
                self._ended = not data and not reading.cancelled()
                if _INTERRUPT in data:
                    self._waiting.clear()  # as terminals do
                    self._keep(data.rpartition(bytes([_INTERRUPT]))[2])
                    await self._console.write(b"^C\r\n")
                    return True
                self._keep(data)
            if task.done():
                task.result()
            return not task.done()
        finally:
            task.cancel()
            await asyncio.wait((task,))

    def _keep(self, data: bytes) -> None:
        self._waiting += data[: max(0, _MOST_LINE - len(self._waiting))]


def bare(command: tuple[str, ...]) -> tuple[str, ...]:
    """The only command of a shell's script, or the command itself."""
    is_script = len(command) == 3 and program_name(command[0]) in SHELLS and command[1] == "-c"
    return tuple(command[2].split()) if is_script else command


def is_shell(command: tuple[str, ...]) -> bool:
    """Whether a command is a shell that reads its script from the input."""
    return command[:1] != () and program_name(command[0]) in SHELLS and set(command[1:]) <= _OF_INPUT


def hint(container: str) -> str:
    """How to get a response to a command that cannot be simulated."""
    return f"set a response with the annotation {PREFIX}{EXEC}.{container}"


def ended(code: int) -> Doc:
    """The Status for an exit code."""
    if code == 0:
        return {"metadata": {}, "status": "Success"}
    return {
        "metadata": {},
        "status": "Failure",
        "message": f"command terminated with non-zero exit code: exit status {code}",
        "reason": "NonZeroExitCode",
        "details": {"causes": [{"reason": "ExitCode", "message": str(code)}]},
    }


def failed(problem: str, container: str) -> Doc:
    """The Status of a command that was not started, or cannot be simulated. A container runtime's error has its form.

    upstream: staging/src/k8s.io/cri-streaming/pkg/streaming/remotecommand/{exec,status}.go
    """
    why = problem
    if problem.startswith(RUNTIME):
        number = sha256(problem.encode("utf-8", "replace")).hexdigest()
        why = f'failed to exec in container: failed to start exec "{number}": {problem}: unknown'
    message = f"error executing command in container: {why} ({WHY}; {hint(container)})"
    return {
        "metadata": {},
        "status": "Failure",
        "message": f"Internal error occurred: {message}",
        "reason": "InternalError",
        "details": {"causes": [{"message": message}]},
        "code": 500,
    }


def _text(data: bytes | bytearray) -> str:
    return data.decode("utf-8", "surrogateescape")
