"""Interprets simple commands and shell scripts of them (``shell``): pipelines, loops, functions, jobs and traps.

Time, depth and output are bounded for all commands.
"""

import contextlib
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from fnmatch import fnmatchcase
from itertools import pairwise
from posixpath import normpath
from typing import cast

import msgspec
from msgspec.structs import replace

from kcm_cli.sandbox.nodes import environment_commands, file_commands, shell, text_commands
from kcm_cli.sandbox.nodes.filesystem import PER_CHARACTER, Files, FileSystem, Refused
from kcm_cli.sandbox.nodes.outcomes import Outcome, Written
from kcm_cli.sandbox.nodes.shell import Unknown
from kcm_cli.sandbox.nodes.tar_command import tar
from kcm_cli.sandbox.nodes.variables import Variables

MOST_STEPS, MOST_OUTPUT = 2000, 4 << 20
_PER_COMMAND, _PER_WORD = 64, 8
"""The cost of a command and of a word (see ``filesystem.Work``)."""
_LONGEST_PATH = 4096
_LONG_S = 1e9
_MOST_STAGES = 32
_SHELLS = frozenset(("sh", "bash", "ash", "dash"))
_FOLDERS = frozenset(("", "/bin", "/usr/bin", "/usr/local/bin"))
_SILENT = frozenset((":", "true", "export", "umask", "sync", "set"))
_OUTPUT_UNKNOWN = frozenset(("whoami", "pwd", "uname"))
"""They succeed; their output is unknown."""
_OPTIONS = {"errexit": "e", "nounset": "u", "xtrace": "x", "pipefail": ""}
"""Named options of shells, and their letters."""
_OF_A_SHELL = frozenset(("exit", "cd", "set", "trap", "export", "wait", "exec"))
_BUILT_IN = frozenset((":", "export", "cd", "umask", "trap", "set", "wait"))
_UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_SPAN = re.compile(r"(\d+(?:\.\d*)?|\.\d+)([smhd]?)", re.ASCII)
_SETTING = re.compile(r"[A-Za-z_]\w*=")
_PIPE = "|"
"""The name of the file that stands for a pipe."""
_OUTPUT, _ERRORS, _AWAY = "output", "errors", ""
_DEVICE = re.compile(r"/dev/(null|zero|full|tty|random|urandom|stdin|stdout|stderr|fd/.*)")
_WILD = re.compile(r"[*?\[]")
_STOP, _LEAVE = "TERM", "EXIT"
_INTERRUPTED = 143
"""The exit code of a command that SIGTERM has ended."""
_MOST_NESTED = 64
"""The limit for nested commands, also in functions and shells."""


class _Unopened(Exception):
    """A file to read from does not exist."""


class _Ended(Exception):
    """The shell has exited, or waits forever."""


def _when(written: Written) -> float:
    return written.at_s


def _name(word: str) -> str:
    folder, _, name = word.rpartition("/")
    return name if folder in _FOLDERS and (folder or "/" not in word) else word


class Interpreter(msgspec.Struct):
    variables: Variables
    fs: FileSystem
    folder: str
    """The working directory; empty if it is unknown."""
    until_s: float = math.inf
    elapsed_s: float = 0.0
    code: int = 0
    strict: bool = False
    called: str = "sh"
    """The name of the shell, as it was called."""
    steps: int = 0
    depth: int = 0
    output: list[Written] = msgspec.field(default_factory=list)
    written: int = 0
    sinks: tuple[str, str] = (_OUTPUT, _ERRORS)
    """The targets of output and errors: the container's, none, or a file."""
    stages: list[tuple[float, Files, frozenset[str]]] = msgspec.field(default_factory=list)
    staged: bool = True
    """Whether the stages are complete."""
    functions: dict[str, shell.List] = msgspec.field(default_factory=dict)
    nested: int = 0
    """The number of nested commands."""
    pipefail: bool = False
    """Whether the failure of any command of a pipeline is its failure."""
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
    """As in ``Outcome``."""
    times: int = 0
    """How often it has read the clock."""
    has_jobs: bool = False
    """Whether it has had background jobs."""
    jobs: list[tuple[float, int]] = msgspec.field(default_factory=list)
    """The background jobs that it has not waited for: their ends and exit codes."""
    input: str | None = None
    """The rest of the standard input; None if it is unknown."""
    began: datetime | None = None
    """When it started; None if that is unknown."""

    def stage(self) -> None:
        """Record the files before time passes."""
        last = self.stages[-1] if self.stages else None
        files, gone = self.fs.now()
        if self.staged and (last is None or last[1:] != (files, gone)):
            if last is not None and last[0] >= self.elapsed_s:
                self.stages.pop()
            self.stages.append((self.elapsed_s, files, gone))
            self.staged = len(self.stages) <= _MOST_STAGES

    def runs(self, words: Sequence[str]) -> bool:
        """Run the program of a container to its end; returns whether it is known."""
        if not words or _name(words[0]) not in _PROGRAMS or _name(words[0]) in _BUILT_IN:
            return False
        try:
            with contextlib.suppress(_Ended):
                self.code = self.program(words)
        except Unknown:
            return False
        if self.has_jobs:  # background jobs end with it
            self.output = sorted((each for each in self.output if each.at_s <= self.elapsed_s), key=_when)
        return True

    def outcome(self) -> Outcome:
        """The outcome after a run."""
        self.stage()
        stages = tuple(self.stages) if self.staged else ()
        output, gone = tuple(self.output), frozenset(self.fs.gone)
        return Outcome(
            self.elapsed_s, self.code, self.fs.texts, output, gone, stages, self.repeated, is_cut=self.is_cut
        )

    def program(self, words: Sequence[str]) -> int:
        """Run one program; returns its exit code."""
        self.fs.work.spend(len(words) * _PER_WORD)
        self.steps += 1
        if self.steps > MOST_STEPS:
            raise Unknown
        run = _PROGRAMS.get(_name(words[0]))
        if run is None:
            raise Unknown
        try:
            return run(self, words)
        except Refused as refused:
            self.say(f"{_name(words[0])}: {refused}\n", error=True)
            return 1

    def silent(self, _: Sequence[str]) -> int:
        return 0

    def false(self, _: Sequence[str]) -> int:
        return 1

    def now(self) -> datetime | None:
        self.times += self.began is not None
        return None if self.began is None else self.began + timedelta(seconds=self.elapsed_s)

    def output_unknown(self, _: Sequence[str] = ()) -> int:
        if self.sinks[0] in self.fs.texts:
            self.fs.texts[self.sinks[0]] = None
        return 0

    def cd(self, words: Sequence[str]) -> int:
        """Change the working directory. Unknown folders are assumed to exist."""
        place = self.place(words[1]) if len(words) == 2 and not words[1].startswith("-") else ""
        self.folder = place if place.startswith("/") and "$" not in place else ""
        return 0

    def place(self, path: str) -> str:
        """The absolute path, or ``path`` if the working directory is unknown. Raises Unknown if it is too long."""
        path = path if path.startswith("/") or not self.folder else f"{self.folder}/{path}"
        if len(path) > _LONGEST_PATH:
            raise Unknown
        return normpath(f"/{path.lstrip('/')}") if path.startswith("/") else path

    def tail(self, words: Sequence[str]) -> int:
        """``tail``; with ``-f /dev/null`` it waits forever."""
        if len(words) != 3 or words[1] not in ("-f", "-F") or words[2] != "/dev/null":
            return text_commands.tail(self, words)
        self._pass(math.inf)
        return 0

    def paths(self, words: Sequence[str]) -> Iterator[tuple[str, str]]:
        """The paths in words, with wildcards expanded, and their absolute paths."""
        if not words:
            raise Unknown
        for word in words:
            path = self.place(word)
            if not path.startswith("/") or word.startswith("-") or "$" in word:
                raise Unknown
            if not self.depth or not _WILD.search(word):
                yield word, path
                continue
            folder, slash, pattern = word.rpartition("/")
            if _WILD.search(folder):
                raise Unknown
            try:
                found = [name for name in self.fs.names(self.place(f"{folder}{slash}")) if _fits(name, pattern)]
            except OSError:
                found = []
            for shown in [f"{folder}{slash}{name}" for name in found] or [word]:
                yield shown, self.place(shown)

    def say(self, text: str, *, error: bool = False) -> None:
        sink = self.sinks[1 if error else 0]
        self.written += len(text)
        if self.written > MOST_OUTPUT:
            raise Unknown
        if sink in (_OUTPUT, _ERRORS):
            self.output.append(Written(self.elapsed_s, text, sink == _ERRORS))
        elif sink in self.fs.texts:  # it may have been removed
            before = self.fs.texts[sink]
            self.fs.work.spend(len(before or "") * PER_CHARACTER)
            self.fs.texts[sink] = None if before is None else before + text

    def run_shell(self, words: Sequence[str]) -> int:
        outer_called, self.called, words = self.called, words[0], words[1:]
        self.depth += 1
        if self.depth > shell.MOST_DEPTH:
            raise Unknown
        options, words, pipefail = "", list(words), False
        while words and words[0].startswith("-") and words[0] != "--":
            options, words = options + words[0][1:], words[1:]
            if options.endswith("o"):
                named, words = "".join(words[:1]), words[1:]
                options, pipefail = options[:-1] + _OPTIONS.get(named, "o"), pipefail or named == "pipefail"
        words = words[1:] if words and words[0] == "--" else words
        if "c" not in options or not words or set(options) - set("ceuxl"):
            raise Unknown
        outer_pipefail, self.pipefail = self.pipefail, pipefail
        outer = self.strict, self.functions, self.variables
        self.strict, self.functions = "e" in options, {}
        self.variables = self.variables.inherited() if self.depth > 1 else self.variables.copied()
        try:
            self._script(shell.parse(self.variables.expanded(words[0])))
        except _Ended:
            if self.depth == 1 or self.elapsed_s == math.inf:
                raise
        self.strict, self.functions, self.variables = outer
        self.called, self.pipefail = outer_called, outer_pipefail
        self.depth -= 1
        return self.code

    def _script(self, commands: shell.List) -> None:
        """Run a script, and its trap for EXIT."""
        ended: _Ended | None = None
        try:
            self.run_list(commands)
        except _Ended as end:
            ended = end
        last = self.traps.pop(_LEAVE, "") if self.depth == 1 and self.elapsed_s < math.inf else ""
        if last:
            code = self.code
            self.run_list(shell.parse(last))  # it may exit, too
            self.code = code
        if ended is not None:
            raise ended

    def trap(self, words: Sequence[str]) -> int:
        """Set traps of the first shell, which alone gets signals."""
        if len(words) < 3 or words[1].startswith("-") or self.depth != 1:
            for name in map(_signal, words[2:] if self.depth == 1 and words[1:2] == ["-"] else ()):
                self.traps.pop(name, None)
            return 0
        handler = self.variables.expanded(words[1])
        if not self.variables.are_own(handler.replace("$?", "")):
            raise Unknown
        for name in map(_signal, words[2:]):
            self.traps[name] = handler
        return 0

    def wait(self, words: Sequence[str]) -> int:
        """Wait for all background jobs, or for the only one."""
        if any(word.startswith("-") for word in words) or (words[1:] and len(self.jobs) > 1):
            raise Unknown
        end_s = max((end_s for end_s, _ in self.jobs), default=self.elapsed_s)
        code = self.jobs[0][1] if words[1:] and self.jobs else 0
        if self._pass(max(0.0, end_s - self.elapsed_s), waits=True):
            return _INTERRUPTED
        self.jobs.clear()
        return code

    def _start(self, commands: shell.List) -> None:
        """Run commands in the background. They may take time or write files, not both."""
        before, spent = self.fs.now(), self.steps
        variables = self.variables.copied()
        job = replace(self, output=[], variables=variables, stages=[], traps={}, rests=[], jobs=[], asked_s=math.inf)
        job.input = ""
        with contextlib.suppress(_Ended):
            job._script(commands)
        if job.elapsed_s > self.elapsed_s and (job.fs.now() != before or job.jobs):
            raise Unknown
        self.steps, self.written = max(job.steps, spent), job.written
        self.output += job.output
        self.jobs.append((job.elapsed_s, job.code))
        self.has_jobs, self.code = True, 0

    def sleep(self, words: Sequence[str]) -> int:
        total = 0.0
        for word in words[1:]:
            if "$" in word:
                raise Unknown
            if word in ("inf", "infinity"):
                total = math.inf
                continue
            span = _SPAN.fullmatch(word)
            if span is None:
                return 1
            total += float(span[1]) * _UNITS[span[2]]
        if not words[1:]:
            return 1
        self._pass(total)
        return 0

    def _pass(self, seconds: float, *, waits: bool = False) -> bool:
        """Let time pass; returns whether a signal was handled. waits: signals interrupt it."""
        self.stage()
        end_s = self.elapsed_s + seconds
        handler = self.traps.get(_STOP)
        asked = handler is not None and self.elapsed_s <= self.asked_s < end_s
        if handler is not None and seconds > 0:
            self.rests.append((self.elapsed_s, end_s, waits))
        self.elapsed_s = self.asked_s if asked and waits and handler else end_s
        if self.elapsed_s > min(_LONG_S, self.until_s):
            self.is_cut = self.elapsed_s <= _LONG_S
            self.elapsed_s = math.inf
            raise _Ended
        if asked:
            self.asked_s = math.inf
        if not asked or not handler:
            return False
        self.code = _INTERRUPTED if waits else 0
        self.run_list(shell.parse(handler))
        return True

    def run_list(self, commands: shell.List, *, tested: bool = False) -> None:
        """Run commands. tested: their exit code is tested, so that ``set -e`` does not apply."""
        for index, (before, command) in enumerate(commands):
            if (before == "&&" and self.code != 0) or (before == "||" and self.code == 0):
                continue
            followed = index + 1 < len(commands) and commands[index + 1][0] != ";"
            self._run(command, tested=tested or followed)
            simple = isinstance(command, shell.Simple | shell.Pipeline)
            if self.code != 0 and self.strict and simple and not tested and not followed:
                raise _Ended

    def _run(self, command: shell.Command, *, tested: bool) -> None:
        self.fs.work.spend(_PER_COMMAND)
        if self.nested >= _MOST_NESTED:
            raise Unknown
        self.nested += 1
        try:
            self._carry_out(command, tested=tested)
        finally:
            self.nested -= 1

    def _carry_out(self, command: shell.Command, *, tested: bool) -> None:
        match command:
            case shell.Simple(words):
                self.tested = tested
                self._simple(words)
            case shell.Pipeline(commands):
                self._pipe(commands)
            case shell.Negated(inner):
                self._run(inner, tested=True)
                self.code = 0 if self.code else 1
            case shell.Choice():
                self._choose(command, tested=tested)
            case shell.Loop():
                self._loop(command, tested=tested)
            case shell.Background(commands):
                self._start(commands)
            case shell.Function(name, body):
                self.functions[name] = body
                self.code = 0
            case _:
                self.run_list(cast("shell.List", command), tested=tested)

    def _pipe(self, commands: Sequence[shell.Simple]) -> None:
        """Run a pipeline. Only the last command may take time."""
        sinks, began_s, text, failed, rest = self.sinks, self.elapsed_s, "", 0, self.input
        for index, command in enumerate(commands):
            name = command.words[0]
            if name in _OF_A_SHELL or name in self.functions or _SETTING.match(name):
                raise Unknown  # it runs in a subshell
            last = index + 1 == len(commands)
            if self.elapsed_s > began_s or "$" in text:
                raise Unknown
            self.input = text if index else rest
            self.fs.texts[_PIPE] = ""
            self.sinks = sinks[0] if last else _PIPE, sinks[1]
            self.tested = True
            try:
                self._simple(command.words)
            finally:
                self.sinks = sinks
                written = self.fs.texts.pop(_PIPE)
            if written is None:
                raise Unknown
            text, failed = written, self.code or failed
            rest = rest if index else self.input
        self.input = rest
        if self.pipefail:
            self.code = failed

    def _choose(self, choice: shell.Choice, *, tested: bool) -> None:
        for condition, body in choice.branches:
            self.run_list(condition, tested=True)
            if self.code == 0:
                self.run_list(body, tested=tested)
                return
        if choice.otherwise is not None:
            self.run_list(choice.otherwise, tested=tested)
        else:
            self.code = 0

    def _loop(self, loop: shell.Loop, *, tested: bool) -> None:
        self.code = done = last = 0
        texts: list[str] = []
        while loop.condition is not None or done < len(loop.values):
            self.fs.work.spend(len(self.fs.texts))
            if loop.condition is None:
                self.variables.assign(f"{loop.variable}={loop.values[done]}")
            before, stages, variables = dict(self.fs.texts), len(self.stages), dict(self.variables.values)
            began_s, shown, times = self.elapsed_s, len(self.output), self.times
            if loop.condition is not None:
                self.run_list(loop.condition, tested=True)
                if (self.code == 0) != loop.wanted:
                    self.code = last
                    return
            self.run_list(loop.body, tested=tested)
            done, last = done + 1, self.code
            same = times == self.times and before.keys() == self.fs.texts.keys() and variables == self.variables.values
            earlier, texts = texts, [each.text for each in self.output[shown:]]
            if same and self.until_s < math.inf and before != self.fs.texts:
                same = earlier == texts  # otherwise the output depends on files that change
            if loop.condition is not None and same and self.asked_s == math.inf:
                for path in [path for path, text in self.fs.texts.items() if text != before[path]]:
                    self.fs.texts[path] = None  # it grows
                self.staged = self.staged and len(self.stages) <= stages + 1
                self.again = began_s, self.elapsed_s - began_s
                self.repeated = shown, self.elapsed_s - began_s
                self.traps.clear()
                self._pass(math.inf)  # all further iterations are equal
            self.steps += 1
            if self.steps > MOST_STEPS:
                raise Unknown

    def _simple(self, words: Sequence[str]) -> None:
        outer, given = self.sinks, self.input
        try:
            self._ordinary([self.variables.filled(word, self.code) for word in words if not self._redirects(word)])
        except Refused as refused:
            self.say(f"{self.called}: can't create {refused}\n", error=True)
            self.code = 1
        except _Unopened as missing:
            self.say(f"{self.called}: can't open {missing}: no such file\n", error=True)
            self.code = 1
        finally:
            self.sinks = outer
            if any(word[:1] in (shell.FROM_FILE, shell.INPUT) for word in words):
                self.input = given

    def _redirects(self, word: str) -> bool:
        """Apply a word if it is a redirection; returns whether it is one."""
        output, errors = self.sinks
        match word[:1]:
            case shell.INTO_FILE | shell.ONTO_FILE:
                output = self._opened(word[1:], new=word[0] == shell.INTO_FILE)
            case shell.TO_ERRORS:
                output = errors
            case shell.ERRORS_TO_OUTPUT:
                errors = output
            case shell.ERRORS_AWAY:
                errors = _AWAY
            case shell.FROM_FILE:
                self.input = self._read(word[1:])
            case shell.INPUT:
                self.input = self.variables.filled(word[1:], self.code)
                if "$" in self.input:
                    raise Unknown
            case _:
                return False
        self.sinks = output, errors
        return True

    def _read(self, path: str) -> str | None:
        """The content of a file that is read; None if it is unknown. Raises _Unopened."""
        shown, path = path, self.place(path)
        if path == "/dev/null":
            return ""
        if not path.startswith("/") or _DEVICE.fullmatch(path):
            return None
        try:
            return self.fs.content(path)
        except FileNotFoundError:
            raise _Unopened(shown) from None
        except (OSError, Unknown):
            return None

    def _opened(self, path: str, *, new: bool) -> str:
        shown, path = path, self.place(path)
        if not path.startswith("/") or _DEVICE.fullmatch(path):
            return _AWAY
        if self.fs.is_folder(path):
            raise Refused(f"{shown}: Is a directory")
        self.fs.make(self.fs.writable(path, shown), "" if new else self.fs.texts.get(path, ""))
        return path

    def _ordinary(self, words: Sequence[str]) -> None:
        self.fs.work.spend(len(words) * _PER_WORD)
        first = next((at for at, word in enumerate(words) if not _SETTING.match(word)), len(words))
        if first == len(words):
            for word in words:
                self.variables.assign(word)
        given, words = words[:first], words[first:]
        if words and words[0] == "exec":
            if len(words) > 1:
                self.traps.clear()
                self.code = self._with(given, words[1:])
                raise _Ended
            raise Unknown
        if not words:
            self.code = 0
        elif words[0] == "exit":
            self._exit(words[1:])
        elif words[0] == "[[":
            self.code = file_commands.test(self, words)
        elif words[0] in self.functions:
            self._call((*words, *given))
        else:
            if words[0] == "set":
                self._set(words[1:])
            elif words[0] == "export":
                self.variables.exported |= {word.partition("=")[0] for word in words[1:] if not word.startswith("-")}
                for word in filter(_SETTING.match, words[1:]):
                    self.variables.assign(word)
            self.code = self._with(given, words)

    def _with(self, given: Sequence[str], words: Sequence[str]) -> int:
        """Run one program with these variables; returns its exit code."""
        if (
            any("$" in word or "`" in word for word in given)
            and _name(words[0]) in _SHELLS | environment_commands.READING
        ):
            raise Unknown
        self.variables.given = dict((name, value) for name, _, value in (word.partition("=") for word in given))
        try:
            return self.program(words)
        finally:
            self.variables.given = {}

    def _call(self, words: Sequence[str]) -> None:
        """Call a function of the script, without arguments or variables."""
        self.steps += 1
        if words[1:]:
            raise Unknown
        self.code = 0
        self.run_list(self.functions[words[0]], tested=self.tested)

    def _exit(self, words: Sequence[str]) -> None:
        if words:
            if not re.fullmatch(r"\d{1,9}", words[0], re.ASCII):
                raise Unknown
            self.code = int(words[0]) % 256
        raise _Ended

    def _set(self, words: Sequence[str]) -> None:
        for before, word in pairwise(("", *words)):
            if word == "pipefail":
                self.pipefail = before.startswith("-")
            option = "-e" if word == "errexit" and before[-1:] == "o" else word
            if option.startswith("-") and "e" in option:
                self.strict = True
            elif option.startswith("+") and "e" in option:
                self.strict = False


def _fits(name: str, pattern: str) -> bool:
    return fnmatchcase(name, pattern) and (not name.startswith(".") or pattern.startswith("."))


def _signal(name: str) -> str:
    name = name.upper().removeprefix("SIG")
    return {"15": _STOP, "0": _LEAVE}.get(name, name)


_PROGRAMS: Mapping[str, Callable[[Interpreter, Sequence[str]], int]] = {
    **dict.fromkeys(_SILENT, Interpreter.silent),
    **dict.fromkeys(_OUTPUT_UNKNOWN, Interpreter.output_unknown),
    **dict.fromkeys(_SHELLS, Interpreter.run_shell),
    **environment_commands.COMMANDS,
    **file_commands.COMMANDS,
    **text_commands.COMMANDS,
    "tar": tar,
    "cd": Interpreter.cd,
    "tail": Interpreter.tail,
    "sleep": Interpreter.sleep,
    "trap": Interpreter.trap,
    "wait": Interpreter.wait,
    "false": Interpreter.false,
}
