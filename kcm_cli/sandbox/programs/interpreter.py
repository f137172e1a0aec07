"""Interprets parsed shell scripts (``syntax``) and the programs that they start."""

import contextlib
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import cast

from msgspec.structs import replace

from kcm_cli.sandbox.programs import builtins, environment_commands, file_commands, syntax, text_commands
from kcm_cli.sandbox.programs.control import Ended, Jump, NotFound, Returned
from kcm_cli.sandbox.programs.errors import Refused, TooMuch, Unknown, Unsupported
from kcm_cli.sandbox.programs.execution import Execution, Opened, Written
from kcm_cli.sandbox.programs.expansion import Expansion
from kcm_cli.sandbox.programs.shell import AWAY, ERRORS, LEAVE, OUTPUT, SCRIPT_ERROR, Job, Shell, Sink
from kcm_cli.sandbox.programs.tar_command import tar

_PER_COMMAND, _PER_WORD = 64, 8
"""The cost of a command and of a word (see ``filesystem.Work``)."""
SHELLS = frozenset(("sh", "bash", "ash", "dash"))
_FOLDERS = frozenset(("", "/bin", "/usr/bin", "/usr/local/bin", "/sbin", "/usr/sbin"))
_DEVICE = re.compile(r"/dev/(null|zero|full|tty|random|urandom|stdin|stdout|stderr|fd/.*)")
_MOST_NESTED = 64
"""The limit for nested commands, also in functions and shells."""
_TOLERANT = frozenset(("echo", "printf", ":", "true", "false"))
"""Commands that run with unknown arguments."""


class _Unopened(Exception):
    """A file to read from does not exist."""


def _when(written: Written) -> float:
    return written.at_s


def program_name(word: str) -> str:
    """The name of a program, without a usual folder of programs."""
    folder, _, name = word.rpartition("/")
    return name if folder in _FOLDERS and (folder or "/" not in word) else word


class Interpreter(Shell):
    """Runs what a shell reads, and programs."""

    # -- the run of a program

    def runs(self, words: Sequence[str]) -> None:
        """Run the program of a container to its end. Raises Unknown, NotFound."""
        if not words:
            raise Unknown
        if not self.has(words[0]):
            raise NotFound(words[0])
        with contextlib.suppress(Ended):
            self.code = self.program(list(words))
        if self.job_count:  # background jobs end with it
            self.output = sorted((each for each in self.output if each.at_s <= self.elapsed_s), key=_when)

    def outcome(self, problem: str = "") -> Execution:
        """The outcome after a run, also after one that cost too much."""
        self.fs.work.done = 0
        self.stage()
        return Execution(
            self.elapsed_s,
            self.code,
            self.fs.texts,
            tuple(self.output),
            frozenset(self.fs.gone),
            tuple(self.stages) if self.staged else (),
            self.repeated,
            self.is_cut,
            self.output_known,
            tuple(self.signals),
            self.shell,
            problem,
        )

    def program(self, words: Sequence[str]) -> int:
        """Run one program; returns its exit code. Raises NotFound."""
        self.fs.work.spend(len(words) * _PER_WORD)
        self.count()
        name = program_name(words[0])
        run = PROGRAMS.get(name) or (BUILT_IN.get(words[0]) if self.depth else None)
        if run is None:
            raise NotFound(words[0])
        try:
            return run(self, words)
        except Refused as refused:
            self.say(f"{name}: {refused}\n", error=True)
            return 1

    def run_shell(self, words: Sequence[str]) -> int:
        """``sh -c SCRIPT [NAME [ARGUMENT…]]`` or ``sh FILE [ARGUMENT…]``."""
        self.depth += 1
        if self.depth > syntax.MOST_DEPTH:
            raise TooMuch
        given, rest = builtins.shell_options(words[1:])
        rest = rest[1:] if rest[:1] == ["--"] else rest
        if given.keys() - set("ceuxPEli"):
            raise Unsupported(" ".join(words))
        zero, text = words[0], None
        if "c" in given:
            if not rest:
                raise Unknown
            text, zero, parameters = rest[0], (rest[1] if rest[1:] else zero), rest[2:]
        elif rest:
            try:
                text, zero, parameters = self.fs.content(self.place(rest[0])), rest[0], rest[1:]
            except OSError:
                self.say(f"{words[0]}: can't open '{rest[0]}': No such file or directory\n", error=True)
                self.depth -= 1
                return SCRIPT_ERROR
        elif self.has_terminal:
            self.shell, self.code = Opened(tuple(words), self.folder, self.variables.passed_on()), 0
            raise Ended
        elif self.input is not None:
            text, self.input, parameters = self.input, "", []
        else:
            raise Unknown
        outer = replace(self)
        self.called, self.pipefail = words[0], "P" in given
        self.strict, self.must_be_set, self.traced = (given.get(letter, False) for letter in "eux")
        self.functions, self.variables = {}, self.variables.inherited() if self.depth > 1 else self.variables.copied()
        self.variables.zero, self.variables.parameters = zero, tuple(parameters)
        self.code = 0
        try:
            self.run_script(self.parsed(text))
        except Ended:
            if self.depth == 1 or self.elapsed_s == math.inf:
                raise
        self.called, self.pipefail, self.strict = outer.called, outer.pipefail, outer.strict
        self.must_be_set, self.traced = outer.must_be_set, outer.traced
        self.functions, self.variables, self.folder = outer.functions, outer.variables, outer.folder
        self.depth -= 1
        return self.code

    def run_script(self, commands: syntax.List) -> None:
        """Run the commands of a script, and its trap for EXIT."""
        ended: Ended | None = None
        try:
            self.run_list(commands)
        except (Ended, Jump, Returned) as end:
            ended = end if isinstance(end, Ended) else None
        last = self.traps.pop(LEAVE, "") if self.depth == 1 and self.elapsed_s < math.inf else ""
        if last:
            code = self.code
            self.run_list(self.parsed(last))  # it may exit, too
            self.code = code
        if ended is not None:
            raise ended

    # -- commands

    def run_list(self, commands: syntax.List, *, tested: bool = False) -> None:
        for index, (before, command) in enumerate(commands):
            if (before == "&&" and self.code != 0) or (before == "||" and self.code == 0):
                continue
            followed = index + 1 < len(commands) and commands[index + 1][0] != ";"
            self.run(command, tested=tested or followed)
            ends = isinstance(command, syntax.Simple | syntax.Redirected) or (
                isinstance(command, syntax.Pipeline)
                and not command.negated
                or (isinstance(command, syntax.Group) and command.subshell)
            )
            if self.code != 0 and self.strict and ends and not tested and not followed:
                raise Ended

    def run(self, command: syntax.Command, *, tested: bool = False) -> None:
        """Run one command."""
        self.fs.work.spend(_PER_COMMAND)
        if self.nested >= _MOST_NESTED:
            raise TooMuch
        self.nested += 1
        try:
            self._carry_out(command, tested=tested)
        finally:
            self.nested -= 1

    def _carry_out(self, command: syntax.Command, *, tested: bool) -> None:
        match command:
            case syntax.Simple():
                self.tested = tested
                self._simple(command)
            case syntax.Pipeline(commands, negated) if len(commands) > 1:
                self._pipe(commands)
                self.code = int(not self.code) if negated else self.code
            case syntax.Pipeline(commands):
                self.run(commands[0], tested=True)
                self.code = int(not self.code)
            case syntax.Group(commands, True):
                self.subshell(partial(self.run_list, commands, tested=tested))
            case syntax.Group(commands):
                self.run_list(commands, tested=tested)
            case syntax.Redirected():
                self._run_redirected(command, tested=tested)
            case syntax.Choice():
                self._choose(command, tested=tested)
            case syntax.Loop() | syntax.For():
                self._loop(command, tested=tested)
            case syntax.Background(commands):
                self._start(commands)
            case syntax.Function(name, body):
                self.functions[name] = body
                self.code = 0

    def _run_redirected(self, command: syntax.Redirected, *, tested: bool) -> None:
        with self._redirected(command.redirects) as opened:
            if opened:
                self.run(command.command, tested=tested)

    def _pipe(self, commands: Sequence[syntax.Command]) -> None:
        """Run a pipeline. Only the last command may take time."""
        began_s, failed, rest = self.elapsed_s, 0, self.input
        for index, command in enumerate(commands):
            if self.elapsed_s > began_s:
                raise Unknown
            run = partial(self.run, command, tested=True)
            if index + 1 == len(commands):
                self.subshell(run)
                failed = self.code or failed
                break
            found = self.captured(run)
            failed = self.code or failed
            rest = rest if index else self.input
            self.input = found.text()
        self.input = rest
        if self.pipefail:
            self.code = failed

    def _choose(self, choice: syntax.Choice, *, tested: bool) -> None:
        for condition, body in choice.branches:
            self.run_list(condition, tested=True)
            if self.code == 0:
                self.run_list(body, tested=tested)
                return
        if choice.otherwise is not None:
            self.run_list(choice.otherwise, tested=tested)
        else:
            self.code = 0

    def _loop(self, loop: syntax.Loop | syntax.For, *, tested: bool) -> None:
        condition, values = (loop.condition, []) if isinstance(loop, syntax.Loop) else (None, self._values(loop))
        self.code = done = last = 0
        texts: list[str] = []
        while condition is not None or done < len(values):
            self.fs.work.spend(len(self.fs.texts) + len(self.variables.values))
            if isinstance(loop, syntax.For):
                self.variables.put(loop.variable, values[done])
            before, stages, variables = dict(self.fs.texts), len(self.stages), dict(self.variables.values)
            began_s, shown, times, rest = self.elapsed_s, len(self.output), self.times, self.input
            try:
                if isinstance(loop, syntax.Loop):
                    self.run_list(loop.condition, tested=True)
                    if (self.code == 0) != loop.wanted:
                        self.code = last
                        return
                self.run_list(loop.body, tested=tested)
            except Jump as jump:
                if jump.levels > 1:
                    raise Jump(jump.levels - 1, goes_on=jump.goes_on) from None
                if not jump.goes_on:
                    return
            done, last = done + 1, self.code
            same = times == self.times and before.keys() == self.fs.texts.keys() and variables == self.variables.values
            same = same and rest == self.input
            earlier, texts = texts, [each.text for each in self.output[shown:]]
            if same and self.until_s < math.inf and before != self.fs.texts:
                same = earlier == texts  # otherwise the output depends on files that change
            if condition is not None and same and self.asked_s == math.inf:
                for path in [path for path, text in self.fs.texts.items() if text != before[path]]:
                    self.fs.texts[path] = None  # it grows
                self.staged = self.staged and len(self.stages) <= stages + 1
                self.again = began_s, self.elapsed_s - began_s
                self.repeated = shown, self.elapsed_s - began_s
                self.traps.clear()
                self.rest(math.inf)  # all further iterations are equal
            self.count()

    def _values(self, loop: syntax.For) -> list[str]:
        found = self.variables.parameters if loop.words is None else Expansion(self).fields(loop.words)
        values = [value for value in found if value is not None]
        if len(values) < len(found):
            raise Unknown
        return values

    def _start(self, commands: syntax.List) -> None:
        """Run commands in the background. They may take time or write files, not both."""
        before, spent = self.fs.now(), self.steps
        job = replace(
            self, output=[], variables=self.variables.copied(), functions=dict(self.functions), stages=[], traps={},
            rests=[], jobs=[], asked_s=math.inf, input="",
        )  # fmt: skip
        with contextlib.suppress(Ended):
            job.run_script(commands)
        if job.elapsed_s > self.elapsed_s and (job.fs.now() != before or job.jobs):
            raise Unknown
        self.steps, self.written = max(job.steps, spent), job.written
        self.output_known = self.output_known and job.output_known
        self.output += job.output
        self.job_count += 1
        self.jobs.append(Job(self.job_count, job.elapsed_s, job.code))
        self.code = 0

    # -- simple commands

    def _simple(self, command: syntax.Simple) -> None:
        self.fs.work.spend((len(command.words) + len(command.assignments)) * _PER_WORD)
        code = self.code
        expansion = Expansion(self)
        declared, words = self._declared(expansion, command.words)
        given = [(name, expansion.string(word)) for name, word in command.assignments]
        if self.traced:
            self._trace(given, words)
        self.code = code
        with self._redirected(command.redirects, keeps=words[:1] == ["exec"] and len(words) == 1) as opened:
            if not opened:
                return
            if not words:
                for name, value in given:
                    self.variables.put(name, value)
                self.code = expansion.code
            else:
                self._ordinary(words, given)
                for name, value in declared:
                    self.variables.put(name, value)

    def _declared(
        self, expansion: Expansion, words: Sequence[syntax.Word]
    ) -> tuple[list[tuple[str, str | None]], list[str | None]]:
        """The fields of words. The arguments ``NAME=VALUE`` of ``export`` are assignments, of which only the names are
        fields."""
        if not words or len(words[0]) != 1 or not isinstance(words[0][0], syntax.Text):
            return [], expansion.fields(words)
        if words[0][0].text != "export":
            return [], expansion.fields(words)
        declared: list[tuple[str, str | None]] = []
        fields: list[str | None] = []
        for word in words:
            first = word[0]
            match = syntax.ASSIGNMENT.match(first.text) if isinstance(first, syntax.Text) else None
            if match is None or not isinstance(first, syntax.Text):
                fields += expansion.fields((word,))
            else:
                fields.append(match[1])
                declared.append((match[1], expansion.string((syntax.Text(first.text[match.end() :], True), *word[1:]))))
        return declared, fields

    def _trace(self, given: Sequence[tuple[str, str | None]], words: Sequence[str | None]) -> None:
        shown = [f"{name}={builtins.quoted(value)}" for name, value in given] + [
            builtins.quoted(word) for word in words
        ]
        if any(value is None for _, value in given) or None in words:
            self.lose(self.sinks[1])
        self.say(f"+ {' '.join(shown)}\n", error=True)

    def _ordinary(self, words: Sequence[str | None], given: Sequence[tuple[str, str | None]]) -> None:
        name = words[0]
        if name is None:
            raise Unknown
        if None in words and not (name in _TOLERANT or name in self.functions):
            raise Unknown
        if name in self.functions:
            if given:
                raise Unsupported("an assignment before a function")
            self._call(words)
            return
        if None in words and name in ("echo", "printf"):
            self.code = self.output_unknown()
            return
        known = cast("Sequence[str]", words)
        if name in BUILT_IN and name not in PROGRAMS:
            self.count()
            for variable, value in given:  # as of special built-in commands
                self.variables.put(variable, value)
            self.code = BUILT_IN[name](self, known)
            return
        outer, self.variables.given = self.variables.given, {**self.variables.given, **dict(given)}
        try:
            self.code = self.launched(known)
        finally:
            self.variables.given = outer

    def launched(self, words: Sequence[str]) -> int:
        try:
            return self.program(words)
        except NotFound as missing:
            return self.not_found(missing.word)

    def has(self, word: str) -> bool:
        name = program_name(word)
        if name in _NOT_SIMULATED:
            raise Unsupported(name)
        return name in PROGRAMS

    def has_at(self, path: str) -> bool | None:
        folder, _, name = path.rpartition("/")
        if not self.assumes or not folder or folder not in _FOLDERS:
            return None
        return folder in ("/bin", "/usr/bin") and self.has(name)

    def not_found(self, word: str) -> int:
        """The exit code of a program that an image does not have. Raises Unknown if it may have it."""
        self.has(word)
        if not self.assumes or ("/" in word and self.fs.may_be_there(self.place(word))):
            raise NotFound(word)
        shown = "command not found" if self.called.endswith("bash") and "/" not in word else "not found"
        self.say(f"{self.called}: {word}: {shown}\n", error=True)
        return 127

    def _call(self, words: Sequence[str | None]) -> None:
        """Call a function of the script."""
        self.count()
        outer, self.variables.parameters = self.variables.parameters, tuple(words[1:])
        try:
            self.run(self.functions[str(words[0])], tested=self.tested)
        except Returned:
            pass
        finally:
            self.variables.parameters = outer

    # -- redirections

    @contextlib.contextmanager
    def _redirected(self, redirects: Sequence[syntax.Redirect], *, keeps: bool = False) -> Iterator[bool]:
        """Apply redirections for a while; whether all files could be opened. keeps: for the rest of the script."""
        sinks, given = self.sinks, self.input
        try:
            opened = self._open(redirects)
            yield opened
        finally:
            if not keeps:
                self.sinks = sinks
                if any(each.descriptor == 0 for each in redirects):
                    self.input = given

    def _open(self, redirects: Sequence[syntax.Redirect]) -> bool:
        try:
            for each in redirects:
                self._redirect(each)
        except Refused as refused:
            self.say(f"{self.called}: can't create {refused}\n", error=True)
        except _Unopened as missing:
            self.say(f"{self.called}: can't open {missing}: no such file\n", error=True)
        else:
            return True
        self.code = 1
        return False

    def _redirect(self, redirect: syntax.Redirect) -> None:
        target = Expansion(self).string(redirect.word)
        if redirect.operator == "<<":
            self.input = target
            return
        if redirect.descriptor > 2 and redirect.operator == ">&" and target in ("1", "2"):
            return  # what writes to it later is unknown
        if target is None or redirect.descriptor > 2:
            raise Unknown
        if redirect.descriptor == 0:
            if redirect.operator == "<&":
                return
            self.input = self._read(target)
            return
        output, errors = self.sinks
        if redirect.operator == ">&":
            if target not in ("1", "2"):
                raise Unknown
            sink = self.sinks[int(target) - 1]
        else:
            sink = self._opened(target, new=redirect.operator == ">")
        self.sinks = (sink, errors) if redirect.descriptor == 1 else (output, sink)

    def _read(self, path: str) -> str | None:
        """The content of a file that is read; None if it is unknown. Raises _Unopened."""
        shown, path = path, self.place(path)
        if path in ("/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"):
            return self.input
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

    def _opened(self, path: str, *, new: bool) -> Sink:
        shown, path = path, self.place(path)
        if path in ("/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"):
            return self.sinks[0]
        if path in ("/dev/stderr", "/dev/fd/2", "/proc/self/fd/2"):
            return self.sinks[1]
        if path in ("/proc/1/fd/1", "/proc/1/fd/2"):
            if self.assumes:
                raise Unknown  # it goes into the log of the container
            return OUTPUT if path.endswith("1") else ERRORS
        if not path.startswith("/") or _DEVICE.fullmatch(path):
            return AWAY
        if self.fs.is_folder(path):
            raise Refused(f"{shown}: Is a directory")
        self.fs.make(self.fs.writable(path, shown), "" if new else self.fs.texts.get(path, ""))
        return path


PROGRAMS: Mapping[str, Callable[[Interpreter, Sequence[str]], int]] = {
    **dict.fromkeys(SHELLS, Interpreter.run_shell),
    **environment_commands.COMMANDS,
    **file_commands.COMMANDS,
    **text_commands.COMMANDS,
    **builtins.PROGRAMS,
    "tar": tar,
}
"""What an image is assumed to have."""
_NOT_SIMULATED = frozenset(
    (
        ".", "alias", "arch", "awk", "basename", "builtin", "chroot", "cksum", "cmp", "comm", "cut", "declare", "df",
        "diff", "dirname", "du", "egrep", "eval", "expand", "factor", "fgrep", "flock", "fold", "getopts", "groups",
        "gunzip", "gzip", "hash", "hostid", "install", "let", "link", "ln", "local", "logname", "mapfile", "md5sum",
        "mkfifo", "mknod", "mktemp", "more", "mount", "nice", "nl", "nohup", "nproc", "od", "paste", "pidof", "ps",
        "read", "readlink", "readonly", "realpath", "rev", "rmdir", "sed", "setsid", "sha1sum", "sha256sum",
        "sha512sum", "shift", "shopt", "shuf", "source", "split", "stat", "stty", "sum", "tac", "timeout", "times",
        "tr", "truncate", "tty", "type", "typeset", "ulimit", "umask", "umount", "unalias", "uname", "uniq", "unlink",
        "unset", "uptime", "xargs", "yes", "zcat",
    )
)  # fmt: skip
"""What shells, and images with a shell, have besides."""
BUILT_IN: Mapping[str, Callable[[Interpreter, Sequence[str]], int]] = builtins.BUILT_IN
"""The commands of shells that are no programs."""
