"""A shell, or one program: its state, and what the commands that it runs do with it.

Time, depth and output are bounded for all commands. Values that are not known are None, and everything that depends on
one raises Unknown, except output, which is then unknown as a whole.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta
from posixpath import normpath
from typing import Never

import msgspec
from msgspec.structs import replace

from kcm_cli.sandbox.programs import syntax
from kcm_cli.sandbox.programs.control import Captured, Ended, Failed, Jump, Returned
from kcm_cli.sandbox.programs.errors import Malformed, TooMuch, Unknown, Unsupported
from kcm_cli.sandbox.programs.execution import Opened, Written
from kcm_cli.sandbox.programs.filesystem import PER_CHARACTER, Files, FileSystem
from kcm_cli.sandbox.programs.variables import Variables

MOST_STEPS, MOST_OUTPUT = 2000, 4 << 20
_LONGEST_PATH = 4096
_LONG_S = 1e9
_MOST_STAGES = 32
OUTPUT, ERRORS, AWAY = "output", "errors", "away"
STOP, LEAVE = "TERM", "EXIT"
INTERRUPTED = 143
"""The exit code of a command that SIGTERM has ended."""
SCRIPT_ERROR = 2
FIRST_NUMBER = 7
"""The number of the process of a command in a container, and that of its first job less one."""
Sink = str | Captured
"""Where output goes: the container's output or errors, nowhere, a file by its path, or text that is captured."""


class Job(msgspec.Struct):
    """Commands in the background that have not been waited for."""

    number: int
    ends_s: float
    code: int


class Shell(msgspec.Struct):
    """One shell, or one program. ``assumes``: programs and variables that are not known do not exist, as in a small
    image; otherwise they are unknown."""

    variables: Variables
    fs: FileSystem
    folder: str
    """The working directory; empty if it is unknown."""
    assumes: bool = False
    until_s: float = math.inf
    elapsed_s: float = 0.0
    code: int = 0
    strict: bool = False
    must_be_set: bool = False
    traced: bool = False
    pipefail: bool = False
    """Whether the failure of any command of a pipeline is its failure."""
    called: str = "sh"
    """The name of the shell, as it was called."""
    steps: int = 0
    depth: int = 0
    output: list[Written] = msgspec.field(default_factory=list)
    output_known: bool = True
    written: int = 0
    sinks: tuple[Sink, Sink] = (OUTPUT, ERRORS)
    stages: list[tuple[float, Files, frozenset[str]]] = msgspec.field(default_factory=list)
    staged: bool = True
    """Whether the stages are complete."""
    functions: dict[str, syntax.Command] = msgspec.field(default_factory=dict)
    nested: int = 0
    """The number of nested commands."""
    tested: bool = False
    """Whether the exit code of the current command is tested, so that ``set -e`` does not apply."""
    traps: dict[str, str] = msgspec.field(default_factory=dict)
    """The first shell's handlers of signals, by name; empty: the signal is ignored."""
    asked_s: float = math.inf
    """When SIGTERM arrives."""
    rests: list[tuple[float, float, bool]] = msgspec.field(default_factory=list)
    """The intervals in which it waits: their start, end, and whether a signal interrupts them."""
    again: tuple[float, float] = (math.inf, 0.0)
    """The start of an endless loop whose iterations are equal, and the duration of one."""
    repeated: tuple[int, float] = (0, 0.0)
    is_cut: bool = False
    """As in ``Execution``."""
    times: int = 0
    """How often it has read the clock."""
    jobs: list[Job] = msgspec.field(default_factory=list)
    job_count: int = 0
    """How many background jobs it has had."""
    signals: list[tuple[float, str]] = msgspec.field(default_factory=list)
    """The signals that it has sent to the container's first process, and when."""
    input: str | None = None
    """The rest of the standard input; None if it is unknown."""
    began: datetime | None = None
    """When it started; None if that is unknown."""
    lacks_unset: bool = False
    """Whether variables that are not known are not set; otherwise the image may set them."""
    has_terminal: bool = False
    """Whether the input is a terminal."""
    shell: Opened | None = None
    """The shell that it has started on its terminal, after which it does nothing."""
    has_long_input: bool = False
    """Whether the input is unknown since it is too long."""

    # -- what runs commands (``interpreter``)

    def run_list(self, commands: syntax.List, *, tested: bool = False) -> None:
        """Run commands. tested: their exit code is tested, so that ``set -e`` does not apply."""
        raise NotImplementedError

    def launched(self, words: Sequence[str]) -> int:
        """Run one program, also one of the shell but no function; returns its exit code."""
        raise NotImplementedError

    def has(self, word: str) -> bool:
        """Whether there is a program with this name. Raises Unsupported if an image may well have it."""
        raise NotImplementedError

    def has_at(self, path: str) -> bool | None:
        """Whether an image has a program at a path; None if it may have any file there. Raises Unsupported as above."""
        raise NotImplementedError

    # -- what commands use

    def stage(self) -> None:
        """Record the files before time passes."""
        last = self.stages[-1] if self.stages else None
        files, gone = self.fs.now()
        if self.staged and (last is None or last[1:] != (files, gone)):
            if last is not None and last[0] >= self.elapsed_s:
                self.stages.pop()
            self.stages.append((self.elapsed_s, files, gone))
            self.staged = len(self.stages) <= _MOST_STAGES

    def count(self) -> None:
        """Count a step. Raises TooMuch."""
        self.steps += 1
        if self.steps > MOST_STEPS:
            raise TooMuch

    def parsed(self, text: str) -> syntax.List:
        """A script as commands. Where programs are assumed, an error in it ends the shell, as in a real one."""
        self.fs.work.spend(len(text) * 4)
        try:
            self.variables.mine |= syntax.assigned(text)
            return syntax.parse(text)
        except Malformed as error:
            if not self.assumes:
                raise Unknown from error
            self.fail(f"syntax error: {error}")

    def fail(self, message: str, code: int = SCRIPT_ERROR) -> Never:
        """End the shell with an error."""
        self.say(f"{self.called}: {message}\n", error=True)
        self.code = code
        raise Failed

    def now(self) -> datetime | None:
        self.times += self.began is not None
        return None if self.began is None else self.began + timedelta(seconds=self.elapsed_s)

    def output_unknown(self, _: Sequence[str] = ()) -> int:
        """Succeed with unknown output."""
        self.lose(self.sinks[0])
        return 0

    def lose(self, sink: Sink) -> None:
        if isinstance(sink, Captured):
            sink.known = False
        elif sink in (OUTPUT, ERRORS):
            self.output_known = False
        elif sink in self.fs.texts:
            self.fs.texts[sink] = None

    def say(self, text: str, *, error: bool = False) -> None:
        sink = self.sinks[1 if error else 0]
        self.written += len(text)
        if self.written > MOST_OUTPUT:
            if isinstance(sink, Captured) or sink in (OUTPUT, ERRORS):
                raise TooMuch
            self.lose(sink)
        elif isinstance(sink, Captured):
            sink.texts.append(text)
        elif sink in (OUTPUT, ERRORS):
            self.output.append(Written(self.elapsed_s, text, sink == ERRORS))
        elif sink in self.fs.texts:  # it may have been removed
            before = self.fs.texts[sink]
            self.fs.work.spend(len(before or "") * PER_CHARACTER)
            self.fs.texts[sink] = None if before is None else before + text

    def place(self, path: str) -> str:
        """The absolute path, or ``path`` if the working directory is unknown. Raises TooMuch if it is too long."""
        path = path if path.startswith("/") or not self.folder else f"{self.folder}/{path}"
        if len(path) > _LONGEST_PATH:
            raise TooMuch
        return normpath(f"/{path.lstrip('/')}") if path.startswith("/") else path

    def paths(self, words: Sequence[str]) -> Iterator[tuple[str, str]]:
        """The paths in words, and their absolute paths."""
        if not words:
            raise Unknown
        for word in words:
            path = self.place(word)
            if word.startswith("-") or not path.startswith("/"):
                raise Unknown
            yield word, path

    def rest(self, seconds: float, *, waits: bool = False) -> bool:
        """Let time pass; returns whether a signal was handled. waits: signals interrupt it."""
        self.stage()
        end_s = self.elapsed_s + seconds
        handler = self.traps.get(STOP)
        asked = handler is not None and self.elapsed_s <= self.asked_s < end_s
        if handler is not None and seconds > 0:
            self.rests.append((self.elapsed_s, end_s, waits))
        self.elapsed_s = self.asked_s if asked and waits and handler else end_s
        if self.elapsed_s > min(_LONG_S, self.until_s):
            self.is_cut = self.elapsed_s <= _LONG_S
            self.elapsed_s = math.inf
            raise Ended
        if asked:
            self.asked_s = math.inf
        if not asked or not handler:
            return False
        self.code = INTERRUPTED if waits else 0
        self.run_list(self.parsed(handler))
        return True

    def subshell(self, run: Callable[[], None]) -> None:
        """Run something in a shell of its own, which sees the variables of this one."""
        outer = replace(self)
        self.variables, self.functions, self.traps = self.variables.copied(), dict(self.functions), {}
        try:
            run()
        except Ended:
            if self.elapsed_s == math.inf:
                raise
        except (Jump, Returned):
            pass
        finally:
            self.variables, self.functions, self.traps = outer.variables, outer.functions, outer.traps
            self.folder, self.strict, self.must_be_set = outer.folder, outer.strict, outer.must_be_set
            self.traced, self.pipefail = outer.traced, outer.pipefail

    def captured(self, run: Callable[[], None]) -> Captured:
        """What a subshell writes to its output."""
        found, sinks = Captured(), self.sinks
        self.sinks = found, sinks[1]
        try:
            self.subshell(run)
        except Ended:
            if found.texts or not found.known:
                raise Unknown from None  # it is read as it comes
            raise
        finally:
            self.sinks = sinks
        return found


def options(words: Sequence[str], known: str) -> tuple[str, list[str]]:
    """The letters of a command's options, and its other words. Raises Unsupported for others than the known ones."""
    letters, rest = "", iter(words[1:])
    others: list[str] = []
    for word in rest:
        if word == "--":
            others += rest
        elif word.startswith("-") and word != "-":
            if set(word[1:]) - set(known):
                raise Unsupported(f"{words[0].rpartition('/')[2]} {word}")
            letters += word[1:]
        else:
            others.append(word)
    return letters, others
