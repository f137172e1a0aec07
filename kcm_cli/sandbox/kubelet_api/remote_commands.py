"""Runs commands in containers for connected clients, as those of ``kubectl exec`` and ``attach``.

A shell gets its script line by line, other commands get all of the input.
"""

import re
from collections import deque
from hashlib import sha256
from math import inf

from kcm_cli.component.clock import Clock
from kcm_cli.machinery.codec import Doc
from kcm_cli.sandbox.kubelet_api.commands import Commands
from kcm_cli.sandbox.kubelet_api.keys import INTERRUPTED, MOST_LINE, Keys
from kcm_cli.sandbox.kubelet_api.pods import Pod
from kcm_cli.sandbox.nodes.annotations import EXEC, PREFIX
from kcm_cli.sandbox.programs.execution import Execution, Opened
from kcm_cli.sandbox.programs.interpreter import SHELLS, program_name
from kcm_cli.sandbox.programs.simulate import RUNTIME, Session
from kcm_cli.sandbox.programs.tar_command import Arriving
from kcm_cli.sandbox.streams.remote import Console
from kcm_cli.sandbox.views import SimulatedContainer

WHY = "nothing runs in the containers of a sandbox"
_MOST_PARSED = 1 << 20
"""The limit for the characters that are parsed until the lines of a script are a whole command."""
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
_CANNOT = 126


class RemoteCommands:
    """See the module."""

    def __init__(self, commands: Commands, clock: Clock) -> None:
        self._commands = commands
        self._clock = clock

    async def script(self, pod: Pod, container: SimulatedContainer, shell: tuple[str, ...], console: Console) -> Doc:
        """Run a shell with the script that the client sends. Each line is run as it comes, until the input ends or
        ``exit`` is called."""
        typed = _Typed(self._commands, self._clock, pod, container, Opened(shell), interactive=False)
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
            if len(rest) > MOST_LINE:
                await console.write(f"{shell[0]}: {_TOO_LONG}".encode(), error=True)
                return ended(_CANNOT)
        known, _ = typed.line(_text(rest), last=True)
        if known is not None:
            await self.play(known, console, typed.where, typed.passed_s)
        return ended(typed.code)

    # -- terminals

    async def terminal(self, pod: Pod, container: SimulatedContainer, shell: tuple[str, ...], console: Console) -> Doc:
        """Run a shell on a terminal: with a prompt, an echo, erasure and interrupts."""
        return await self._prompted(pod, container, Opened(shell), console, Keys(console))

    async def on_terminal(
        self, pod: Pod, container: SimulatedContainer, command: tuple[str, ...], console: Console
    ) -> Doc:
        """Run another command on a terminal: with what is typed, if it reads that. A key interrupts it, and a shell
        that it starts last goes on."""
        keys, sent = Keys(console), bytearray()
        if self._commands.started(pod, container, "", on_terminal=True).reads(command):
            async for line in keys.lines():
                if line is None:
                    return ended(INTERRUPTED)
                sent += line if len(sent) < MOST_INPUT else b""
        known = self._commands.run(pod, container, command, _text(sent), on_terminal=True)
        if await keys.interrupts(self.play(known, console, (pod.key, container.name)), by_end=False):
            return ended(INTERRUPTED)
        if known.shell is not None:
            return await self._prompted(pod, container, known.shell, console, keys)
        return failed(known.problem, container.name) if known.problem else ended(known.code)

    async def _prompted(
        self, pod: Pod, container: SimulatedContainer, shell: Opened, console: Console, keys: Keys
    ) -> Doc:
        typed = _Typed(self._commands, self._clock, pod, container, shell, interactive=True)
        await console.write(typed.prompt)
        async for line in keys.lines():
            if line is None:
                typed.interrupt()
            else:
                known, ended_ = typed.line(_text(line))
                if known is not None and await keys.interrupts(self.play(known, console, typed.where, typed.passed_s)):
                    typed.interrupt()
                    ended_ = False
                if ended_:
                    return ended(typed.code)
            await console.write(typed.prompt)
        if not keys.ended:
            await console.write(b"\r\n")
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
        shell: Opened,
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
        self._session.interrupt(self._clock.monotonic() - self._began_s, INTERRUPTED)


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
