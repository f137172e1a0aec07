"""Gives commands in containers what a client sends: a shell its script, line by line, others their whole input."""

import re
from math import inf

from kcm_cli.component.clock import Clock
from kcm_cli.machinery.codec import Doc
from kcm_cli.sandbox.nodes.outcomes import Outcome
from kcm_cli.sandbox.nodes.script import PREFIX
from kcm_cli.sandbox.nodes.tar_command import is_whole
from kcm_cli.sandbox.streams.commands import Commands
from kcm_cli.sandbox.streams.pods import Pod
from kcm_cli.sandbox.streams.remote import Console
from kcm_cli.sandbox.views import SimulatedContainer

EXEC = "exec"
WHY = "nothing runs in the containers of a sandbox"
SHELLS = (("sh",), ("/bin/sh",), ("bash",), ("/bin/bash",))
_MOST_SCRIPT, _MOST_CHUNKS = 1 << 14, 64
"""The limits for the script of a shell, in bytes, and for the parts after which it is run."""
_MOST_INPUT = 8 << 20
"""The limit for the input of a command, in bytes. The result of a command that gets more is unknown."""
_MOST_SHOWN = 1000
"""The characters of a command that a message has."""
_WHOLE = re.compile(rb"\btrap\b|&\s|\\\n\Z")
"""What depends on the end of a script, or of a line that goes on."""


class Feeding:
    """See the module."""

    def __init__(self, commands: Commands, clock: Clock) -> None:
        self._commands = commands
        self._clock = clock

    async def script(self, pod: Pod, container: SimulatedContainer, shell: tuple[str, ...], console: Console) -> Doc:
        """Run a shell with the script that the client sends, line by line, up to its end or a line with ``exit``.

        What has been sent is run again from the start, and only the new part of its output is written.
        """
        sent, ends, started, played, chunks = b"", False, self._commands.started(pod, container), 0, 0
        known: Outcome | None = None
        passed_s = 0.0
        while not ends:
            data, chunks = await console.stdin.read(), chunks + 1
            sent += data
            last = sent.rstrip().rpartition(b"\n")[2].split(b" ")[0]
            ends = not data or len(sent) >= _MOST_SCRIPT or (sent.endswith(b"\n") and last == b"exit")
            if not ends and (not sent.endswith(b"\n") or chunks > _MOST_CHUNKS or _WHOLE.search(sent)):
                continue
            command = (*shell, "-c", sent.decode("utf-8", "surrogateescape"))
            known = started.outcome(command)
            if known is not None and (ends or known.lasts_s == inf):
                known = known if self._commands.keep(started, known) else None
            if known is not None:
                await self.play(known, console, played, passed_s)
                played, passed_s = len(known.output), known.lasts_s
        if known is None:
            await console.write(f"{no_response(command, container.name)}\n".encode("utf-8", "replace"), error=True)
            return ended(127)
        return ended(known.code)

    async def input(self, pod: Pod, container: SimulatedContainer, command: tuple[str, ...], console: Console) -> Doc:
        """Run a command with all that the client sends as its standard input, ``tar`` with the archive."""
        sent, unpacks = b"", bare(command)[0].endswith("tar")
        while len(sent) < _MOST_INPUT and (data := await console.stdin.read()):
            sent += data
            if unpacks and is_whole(sent):
                break
        text = sent.decode("utf-8", "surrogateescape")
        known = self._commands.run(pod, container, command, text) if len(sent) < _MOST_INPUT else None
        if known is None:
            await console.write(f"{no_response(command, container.name)}\n".encode("utf-8", "replace"), error=True)
            return ended(127)
        return ended(await self.play(known, console))

    async def play(self, known: Outcome, console: Console, played: int = 0, passed_s: float = 0.0) -> int:
        """Write the output of a simple command at its times; returns the exit code. ``played``: the number of outputs
        that have been written, in ``passed_s``."""
        for at_s, text, error in known.output[played:]:
            await self._clock.sleep(at_s - passed_s)
            passed_s = at_s
            await console.write(text.encode("utf-8", "surrogateescape"), error=error)
        while known.lasts_s == inf:
            await self._clock.sleep(3600.0)
        await self._clock.sleep(known.lasts_s - passed_s)
        return known.code


def bare(command: tuple[str, ...]) -> tuple[str, ...]:
    """The only command of a shell's script, or the command itself."""
    is_script = len(command) == 3 and command[:1] in SHELLS and command[1] == "-c"
    return tuple(command[2].split()) if is_script else command


def no_response(command: tuple[str, ...], container: str) -> str:
    """The error of a command whose result is unknown."""
    what = " ".join(command)[:_MOST_SHOWN] or "attach"
    return f"{what}: {WHY}; set a response with the annotation {PREFIX}{EXEC}.{container}"


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
