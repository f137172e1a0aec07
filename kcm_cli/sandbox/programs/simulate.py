"""What programs of containers do: their end, exit code, output and files.

It knows shells and common programs (``interpreter.PROGRAMS``). Pure.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

from msgspec.structs import replace

from kcm_cli.machinery.quoting import quote
from kcm_cli.sandbox.programs.control import Ended, Failed, Jump, NotFound, Returned
from kcm_cli.sandbox.programs.errors import Incomplete, TooMuch, Unknown, Unsupported
from kcm_cli.sandbox.programs.execution import Execution, Opened, Written
from kcm_cli.sandbox.programs.filesystem import FileSystem, Host, There, Work
from kcm_cli.sandbox.programs.interpreter import Interpreter
from kcm_cli.sandbox.programs.shell import LEAVE, MOST_STEPS
from kcm_cli.sandbox.programs.signals import Reaction, Signals
from kcm_cli.sandbox.programs.syntax import parse
from kcm_cli.sandbox.programs.variables import Variables

MOST_WORK = 1 << 20
"""The limit for the work of a program (see ``filesystem.Work``)."""
_MOST_SHARED = 4 * MOST_WORK
"""The limit for the work of all programs of a pod."""
_SHARED: ContextVar[Work | None] = ContextVar("shared work", default=None)
_MOST_RESTS = 16
"""The limit for intervals in which a program waits."""
_NO_MORE = "[no more of this log is known: its script takes too many steps]\n"
_SHELL_FAILS = 126
Environment = Mapping[str, str | None]
"""The variables of a program; None: the value is unknown."""


@contextmanager
def sharing() -> Iterator[None]:
    """Limits the work of all programs that are simulated inside: those of a pod, which are read in one turn. What costs
    more is unknown."""
    token = _SHARED.set(Work(_MOST_SHARED))
    try:
        yield
    finally:
        _SHARED.reset(token)


def simulate(
    words: Sequence[str],
    env: Environment,
    files: There,
    until_s: float = math.inf,
    host: Host | None = None,
    most_work: float = MOST_WORK,
) -> Execution | None:
    """The outcome of a container's program with its arguments; None if it is unknown, as for programs of an image.

    files: what it finds. until_s: when the simulation ends. most_work: programs that cost more are unknown, too.
    """
    machine = _machine(files, env, host, Work(most_work, shared=_SHARED.get()))
    machine.until_s = until_s
    try:
        machine.runs(words)
        return machine.outcome()
    except Unknown:
        return None


def answer(words: Sequence[str], env: Environment, files: There, host: Host | None = None) -> Execution:
    """The outcome of a command in a container. The image is assumed to have the programs that are known here and no
    others. ``problem`` tells why the rest of a command cannot be simulated."""
    machine = _machine(files, env, host, Work(MOST_WORK), assumes=True)
    try:
        machine.runs(words)
    except NotFound as missing:
        return machine.outcome(not_started(missing.word, machine))
    except Unknown as why:
        return machine.outcome(unsimulated(words, why))
    return machine.outcome("" if machine.output_known else unsimulated(words, Unknown()))


def not_started(word: str, machine: Interpreter) -> str:
    """The error of a container runtime that cannot start a program."""
    shown = quote(word)
    if "/" not in word:
        return f"{RUNTIME}: exec: {shown}: executable file not found in $PATH"
    if machine.fs.may_be_there(machine.place(word)):
        return unsimulated((word,), Unknown())
    return f"{RUNTIME}: exec: {shown}: stat {word}: no such file or directory"


RUNTIME = "OCI runtime exec failed: exec failed: unable to start container process"


def unsimulated(words: Sequence[str], why: Unknown) -> str:
    """The error of a command that is known, but not what it does."""
    if isinstance(why, Unsupported):
        reason = f"{why} is not simulated"
    elif isinstance(why, TooMuch):
        reason = "it takes too many steps or too much input"
    else:
        reason = "it needs what is not known"
    return f"the sandbox cannot simulate {quote(' '.join(words)[:_MOST_SHOWN])}: {reason}"


_MOST_SHOWN = 1000


def log(words: Sequence[str], env: Environment, files: There, until_s: float, host: Host | None = None) -> Execution:
    """As ``simulate``, but variables that are not known do not exist. Of a program that takes too many steps only the
    output up to the limit is known. Raises Unknown."""
    work = Work(MOST_WORK)
    machine = _machine(files, env, host, work)
    machine.until_s, machine.lacks_unset = until_s, True
    try:
        machine.runs(words)
        if machine.output_known:
            return machine.outcome()
    except Unknown:
        if machine.steps <= MOST_STEPS and work.done <= MOST_WORK:
            raise
    if not machine.output_known:
        raise Unknown
    return Execution(math.inf, 0, output=(*machine.output, Written(machine.elapsed_s, _NO_MORE)))


def reactions(words: Sequence[str], env: Environment, files: There, host: Host | None = None) -> Signals | None:
    """How a program reacts to SIGTERM; None if it sets no trap for it, or if that is unknown."""
    if not any("trap" in word for word in words):
        return None
    work = Work(MOST_WORK, shared=_SHARED.get())
    machine = _machine(files, env, host, work)
    try:
        machine.runs(words)
    except Unknown:
        return None
    if not machine.rests or len(machine.rests) > _MOST_RESTS:
        return None
    found: list[Reaction] = []
    for from_s, until_s, at_once in machine.rests:
        asked = _machine(files, env, host, work)
        asked.asked_s = from_s + min(0.5, (until_s - from_s) / 2)
        since_s = asked.asked_s if at_once else until_s
        try:
            asked.runs(words)
        except Unknown:
            return None
        after_s = math.inf if math.isinf(asked.elapsed_s) else asked.elapsed_s - since_s
        changed = [(at_s - since_s, files, gone) for at_s, files, gone in asked.stages if at_s >= since_s]
        found.append(Reaction(from_s, until_s, at_once, after_s, asked.code, tuple(changed) if asked.staged else ()))
    return Signals(tuple(found), *machine.again)


class Session:
    """A shell that reads its script line by line."""

    def __init__(
        self, shell: Opened, env: Environment, files: There, host: Host | None = None, *, interactive: bool = False
    ) -> None:
        """interactive: errors do not end it."""
        self._interactive = interactive
        own = env if shell.env is None else shell.env
        self._machine = _machine(files, own, host, Work(MOST_WORK), assumes=True)
        self._machine.folder = shell.folder or self._machine.folder
        self._machine.called = self._machine.variables.zero = shell.words[0]
        self._machine.depth, self._machine.input = 1, ""

    @property
    def code(self) -> int:
        """The exit code of the last command."""
        return self._machine.code

    @property
    def folder(self) -> str:
        """The working directory."""
        return self._machine.folder

    def feed(self, script: str, files: There, at_s: float, *, last: bool = False) -> tuple[Execution, bool] | None:
        """Run the next lines, at a time since the start. files: what they find. last: no more lines follow.

        Returns the outcome, with the output of these lines only, and whether the shell has ended; None if more lines
        have to complete them.
        """
        machine = self._machine
        machine.fs.texts, machine.fs.gone, machine.fs.scratch = dict(files.files), set(files.gone), files.scratch
        machine.fs.work.done = machine.steps = machine.written = 0
        machine.output, machine.stages, machine.signals, machine.output_known = [], [], [], True
        machine.elapsed_s = max(machine.elapsed_s, at_s)
        before = replace(machine)
        try:
            parse(script)
        except Incomplete:
            if not last:
                return None
        except Unknown:
            pass  # it is reported below
        try:
            ended = self._run(script)
            if (ended or last) and machine.elapsed_s < math.inf and (leaving := machine.traps.pop(LEAVE, "")):
                code = machine.code
                if not self._run(leaving):
                    machine.code = code
        except Unknown as why:
            ended, machine = False, replace(before, output=machine.output, elapsed_s=machine.elapsed_s)
            machine.code, self._machine = _SHELL_FAILS, machine
            machine.fs.work.done = 0
            machine.say(f"{machine.called}: {unsimulated((script.strip(),), why)}\n", error=True)
        return machine.outcome(), ended

    def refused(self, message: str) -> Execution:
        """The outcome of lines that are not run."""
        self._machine.code = _SHELL_FAILS
        text = f"{self._machine.called}: {message}"
        return Execution(self._machine.elapsed_s, _SHELL_FAILS, output=(Written(self._machine.elapsed_s, text, True),))

    def interrupt(self, at_s: float, code: int) -> None:
        """End the command that runs."""
        self._machine.elapsed_s, self._machine.code = at_s, code

    def _run(self, script: str) -> bool:
        """Run lines; returns whether the shell has ended. Raises Unknown."""
        machine = self._machine
        try:
            machine.run_list(machine.parsed(script))
        except Failed:
            return not self._interactive
        except Ended:
            return True
        except (Jump, Returned):
            pass
        if not machine.output_known:
            raise Unknown
        return False


def _machine(there: There, env: Environment, host: Host | None, work: Work, *, assumes: bool = False) -> Interpreter:
    files = FileSystem(dict(there.files), there.scratch, set(there.gone), host, work)
    folder = host.working_dir if host is not None and host.working_dir else "/" if assumes else ""
    machine = Interpreter(Variables(env, work), files, folder, assumes, began=there.began, input=there.input)
    machine.has_long_input, machine.lacks_unset = there.has_long_input, assumes
    machine.has_terminal = there.has_terminal
    return machine
