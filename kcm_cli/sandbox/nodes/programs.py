"""What a simple command does: when it ends, and with which exit code.

``sleep``, ``true``, ``false``, ``echo`` and the like, and shell scripts of them with ``;``, ``&&``, ``||``, ``!``,
``if``, ``for``, ``while``, ``exit`` and tests of files. Anything else is unknown. Pure, and bounded in time and depth
whatever a pod says.

upstream: third_party/forked/golang/expansion/expand.go, pkg/kubelet/container/helpers.go#ExpandContainerCommandAndArgs
"""

import math
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

MOST_CHARACTERS, MOST_DEPTH, MOST_STEPS = 4096, 16, 2000
_LONG_S = 1e9
_SHELLS = frozenset(("sh", "bash", "ash", "dash"))
_FOLDERS = frozenset(("", "/bin", "/usr/bin", "/usr/local/bin"))
_WELL = frozenset(
    (":", "true", "echo", "printf", "date", "env", "printenv", "hostname", "id", "whoami", "pwd", "uname", "mkdir")
    + ("export", "cd", "umask", "trap", "sync", "touch", "set")
)
_BUILT_IN = frozenset((":", "export", "cd", "umask", "trap", "set"))
_UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_SPAN = re.compile(r"(\d+\.?\d*|\.\d+)([smhd]?)", re.ASCII)
_REFERENCE = re.compile(r"\$\$|\$\(([^)]*)\)")
_VARIABLE = re.compile(r"\$(?:\{(\w+)\}|(\w+))", re.ASCII)
_PLAIN = re.compile(r"[\w./:-]*", re.ASCII)
_REDIRECTION = re.compile(r"(\d?)(>>?|<)(&\d|\s*[\w./-]+)", re.ASCII)
_INTO_FILE = "\x01"
"""Stands where the output of a command goes to a file."""
_ARITHMETIC = re.compile(r"\$(?:\(\(\s*|\(expr\s+)(-?\d{1,9})\s*([-+*/%])\s*(-?\d{1,9})\s*\)\)?", re.ASCII)
_SUBSTITUTION = re.compile(r"\$\([^()]*\)|`[^`]*`")
_PUNCTUATION = ";&|()<>\n"
_WRITERS = frozenset(("echo", "printf"))
_ESCAPED, _ESCAPES = re.compile(r"\\([nt\\])"), {"n": "\n", "t": "\t", "\\": "\\"}
_OPENING = frozenset(("if", "while", "until", "for", "{", "!"))
_CLOSING = frozenset(("then", "elif", "else", "fi", "do", "done", "}"))


@dataclass(frozen=True, slots=True)
class Outcome:
    """Seconds until the command ends (infinite: not by itself), its exit code, and the files that there are then."""

    lasts_s: float
    code: int
    files: frozenset[str] = frozenset()
    output: tuple[tuple[float, str], ...] = ()
    """What echo and printf write, each with the seconds after which they do."""


class _Unknown(Exception):
    """Nobody can say what this does."""


class _Ended(Exception):
    """The shell has exited, or stays where it is for ever."""


def expand(text: str, env: Mapping[str, str]) -> str:
    """``$(NAME)`` replaced as in a container's command and args; unknown names stay, ``$$`` is a dollar."""

    def value(match: re.Match[str]) -> str:
        return "$" if match[0] == "$$" else env.get(match[1], match[0])

    return _REFERENCE.sub(value, text)


def outcome(
    words: Sequence[str],
    env: Mapping[str, str],
    scratch: tuple[str, ...] = (),
    files: frozenset[str] = frozenset(),
) -> Outcome | None:
    """What a program with its arguments does; None where that is unknown.

    env: the variables that are known. scratch: folders in which there are only the files that the program makes, and
    ``files``, absolute paths.
    """
    if not words or _name(words[0]) not in _SHELLS | _WELL | {"sleep", "false"} or _name(words[0]) in _BUILT_IN:
        return None
    machine = _Shell(env, scratch, set(files))
    try:
        code = machine.program(words)
    except _Ended:
        code = machine.code
    except _Unknown:
        return None
    return Outcome(machine.elapsed_s, code, frozenset(machine.files), tuple(machine.output))


def _name(word: str) -> str:
    folder, _, name = word.rpartition("/")
    return name if folder in _FOLDERS and (folder or "/" not in word) else word


# -- the shape of a script


@dataclass(frozen=True, slots=True)
class _Simple:
    words: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Choice:
    branches: tuple[tuple["_List", "_List"], ...]
    otherwise: "_List | None"


@dataclass(frozen=True, slots=True)
class _Loop:
    """``times``: how often at most; infinite for while and until. ``wanted``: whether it goes on while this holds."""

    condition: "_List | None"
    wanted: bool
    times: float
    body: "_List"


@dataclass(frozen=True, slots=True)
class _Negated:
    command: "_Command"


_Command = _Simple | _Choice | _Loop | _Negated | tuple[tuple[str, object], ...]
_List = tuple[tuple[str, _Command], ...]
"""Commands, each with what stands before it: ``;``, ``&&`` or ``||``."""


def _tokens(script: str) -> list[str]:
    if len(script) > MOST_CHARACTERS:
        raise _Unknown
    lines = (line for line in script.replace("\\\n", " ").split("\n") if not line.lstrip().startswith("#"))
    text = _SUBSTITUTION.sub("$_", _REDIRECTION.sub(_redirected, "\n".join(lines)))
    lexer = shlex.shlex(text, posix=True, punctuation_chars=_PUNCTUATION)
    lexer.whitespace, lexer.whitespace_split, lexer.commenters = " \t\r", True, ""
    try:
        return [_operator(token) if token and not token.strip(_PUNCTUATION) else token for token in lexer]
    except ValueError:  # a quotation that does not end
        raise _Unknown from None


def _redirected(match: re.Match[str]) -> str:
    into_file = match[1] in ("", "1") and match[2] != "<" and not match[3].startswith("&")
    return f" {_INTO_FILE} " if into_file else " "


def _operator(token: str) -> str:
    bare = token.replace("\n", ";").strip(";")
    if bare in ("&&", "||"):
        return bare
    if bare:
        raise _Unknown
    return ";"


class _Parser:
    def __init__(self, tokens: list[str]) -> None:
        self._tokens = tokens
        self._at = 0
        self._depth = 0

    def script(self) -> _List:
        parsed = self._list()
        if self._at < len(self._tokens):
            raise _Unknown
        return parsed

    def _peek(self) -> str:
        return self._tokens[self._at] if self._at < len(self._tokens) else ""

    def _take(self, *expected: str) -> str:
        token = self._peek()
        if self._at >= len(self._tokens) or (expected and token not in expected):
            raise _Unknown
        self._at += 1
        return token

    def _deeper(self) -> None:
        self._depth += 1
        if self._depth > MOST_DEPTH:
            raise _Unknown

    def _list(self) -> _List:
        self._deeper()
        found: list[tuple[str, _Command]] = []
        before = ";"
        while self._at < len(self._tokens) and self._peek() not in _CLOSING:
            if self._peek() == ";":
                self._at += 1
                continue
            found.append((before, self._command()))
            if self._at < len(self._tokens) and self._peek() not in _CLOSING:
                before = self._take(";", "&&", "||")
        self._depth -= 1
        return tuple(found)

    def _command(self) -> _Command:
        word = self._peek()
        if word not in _OPENING:
            return self._simple()
        self._at += 1
        if word == "!":
            self._deeper()
            negated = _Negated(self._command())
            self._depth -= 1
            return negated
        if word == "{":
            group = self._list()
            self._take("}")
            return group
        if word == "if":
            return self._choice()
        if word == "for":
            return self._for()
        condition = self._list()
        return _Loop(condition, word == "while", math.inf, self._body())

    def _simple(self) -> _Simple:
        words: list[str] = []
        while self._at < len(self._tokens) and self._peek() not in (";", "&&", "||"):
            words.append(self._take())
        if not words:
            raise _Unknown
        return _Simple(tuple(words))

    def _choice(self) -> _Choice:
        branches: list[tuple[_List, _List]] = []
        while True:
            condition = self._list()
            self._take("then")
            branches.append((condition, self._list()))
            closing = self._take("elif", "else", "fi")
            if closing == "fi":
                return _Choice(tuple(branches), None)
            if closing == "else":
                otherwise = self._list()
                self._take("fi")
                return _Choice(tuple(branches), otherwise)

    def _for(self) -> _Loop:
        self._take()
        self._take("in")
        words = self._simple().words
        self._take(";")
        return _Loop(None, True, _count(words), self._body())

    def _body(self) -> _List:
        self._take("do")
        body = self._list()
        self._take("done")
        return body


def _count(words: Iterable[str]) -> int:
    total = 0
    for word in words:
        span = re.fullmatch(r"\{(\d{1,6})\.\.(\d{1,6})\}", word, re.ASCII)
        if span is None and any(character in word for character in "$*?[{"):
            raise _Unknown
        total += 1 if span is None else abs(int(span[2]) - int(span[1])) + 1
    return total


# -- what it does


@dataclass(slots=True)
class _Shell:
    env: Mapping[str, str]
    scratch: tuple[str, ...]
    files: set[str]
    elapsed_s: float = 0.0
    code: int = 0
    strict: bool = False
    steps: int = 0
    depth: int = 0
    output: list[tuple[float, str]] = field(default_factory=list)

    def program(self, words: Sequence[str]) -> int:
        """Run one program; its exit code."""
        self.steps += 1
        if self.steps > MOST_STEPS:
            raise _Unknown
        name = _name(words[0])
        rest = words[1:]
        if name in _SHELLS:
            return self._shell(rest)
        if name == "sleep":
            return self._sleep(rest)
        if name == "false":
            return 1
        if name == "touch":
            self._touch(rest)
        if name in ("echo", "printf"):
            self._write(name, rest)
        if name in ("env", "date") and any(not word.startswith(("-", "+")) for word in rest):
            raise _Unknown
        if name in _WELL:
            return 0
        raise _Unknown

    def _shell(self, words: Sequence[str]) -> int:
        self.depth += 1
        if self.depth > MOST_DEPTH:
            raise _Unknown
        options = ""
        while words and words[0].startswith("-") and words[0] != "--":
            options, words = options + words[0][1:], words[1:]
        words = words[1:] if words and words[0] == "--" else words
        if "c" not in options or not words or set(options) - set("ceuxl"):
            raise _Unknown
        outer, self.strict = self.strict, "e" in options
        try:
            self.list(_Parser(_tokens(self._substituted(words[0]))).script())
        except _Ended:
            if self.depth == 1 or self.elapsed_s == math.inf:
                raise
        self.strict = outer
        self.depth -= 1
        return self.code

    def _substituted(self, script: str) -> str:
        def value(match: re.Match[str]) -> str:
            known = self.env.get(match[1] or match[2])
            return known if known is not None and _PLAIN.fullmatch(known) else match[0]

        return _ARITHMETIC.sub(_computed, _VARIABLE.sub(value, script))

    def _sleep(self, words: Sequence[str]) -> int:
        total = 0.0
        for word in words:
            if "$" in word:
                raise _Unknown
            if word in ("inf", "infinity"):
                total = math.inf
                continue
            span = _SPAN.fullmatch(word)
            if span is None:
                return 1
            total += float(span[1]) * _UNITS[span[2]]
        if not words:
            return 1
        self._pass(total)
        return 0

    def _pass(self, seconds: float) -> None:
        self.elapsed_s += seconds
        if self.elapsed_s > _LONG_S:
            self.elapsed_s = math.inf
            raise _Ended

    def _write(self, name: str, words: Sequence[str]) -> None:
        if _INTO_FILE in words:
            return
        end = "\n"
        if name == "printf":
            words, end = [_ESCAPED.sub(lambda match: _ESCAPES[match[1]], word) for word in words[:1]], ""
        elif words and words[0] == "-n":
            words, end = words[1:], ""
        self.output.append((self.elapsed_s, " ".join(words) + end))

    def _touch(self, words: Sequence[str]) -> None:
        if any("$" in word for word in words):
            raise _Unknown
        self.files.update(word for word in words if not word.startswith("-"))

    def list(self, commands: _List, *, tested: bool = False) -> None:
        """Run commands. tested: their failure is looked at, so ``set -e`` does not end the shell."""
        for index, (before, command) in enumerate(commands):
            if (before == "&&" and self.code != 0) or (before == "||" and self.code == 0):
                continue
            followed = index + 1 < len(commands) and commands[index + 1][0] != ";"
            self._run(command, tested=tested or followed)
            simple = isinstance(command, _Simple)
            if self.code != 0 and self.strict and simple and not tested and not followed:
                raise _Ended

    def _run(self, command: _Command, *, tested: bool) -> None:
        match command:
            case _Simple(words):
                self._simple(words)
            case _Negated(inner):
                self._run(inner, tested=True)
                self.code = 0 if self.code else 1
            case _Choice():
                self._choose(command, tested=tested)
            case _Loop():
                self._loop(command, tested=tested)
            case _:
                self.list(command, tested=tested)  # type: ignore[arg-type]

    def _choose(self, choice: _Choice, *, tested: bool) -> None:
        for condition, body in choice.branches:
            self.list(condition, tested=True)
            if self.code == 0:
                self.list(body, tested=tested)
                return
        self.code = 0
        if choice.otherwise is not None:
            self.list(choice.otherwise, tested=tested)

    def _loop(self, loop: _Loop, *, tested: bool) -> None:
        self.code = 0
        done = 0
        while done < loop.times:
            before = frozenset(self.files)
            if loop.condition is not None:
                self.list(loop.condition, tested=True)
                if (self.code == 0) != loop.wanted:
                    self.code = 0
                    return
            self.list(loop.body, tested=tested)
            done += 1
            if loop.condition is not None and before == self.files:
                self._pass(math.inf)  # the next round finds what this one found
            self.steps += 1
            if self.steps > MOST_STEPS:
                raise _Unknown

    def _simple(self, words: Sequence[str]) -> None:
        words = [*words] if words[0] in _WRITERS else [word for word in words if word != _INTO_FILE]
        while words and re.match(r"[A-Za-z_]\w*=", words[0]):
            words.pop(0)
        if words and words[0] == "exec":
            if len(words) > 1:
                self.code = self.program(words[1:])
                raise _Ended
            raise _Unknown
        if not words:
            self.code = 0
        elif words[0] == "exit":
            self._exit(words[1:])
        elif words[0] in ("[", "[[", "test"):
            self.code = 0 if self._test(words) else 1
        else:
            if words[0] == "set":
                self._set(words[1:])
            self.code = self.program(words)

    def _exit(self, words: Sequence[str]) -> None:
        if words and words[0] != "$?":
            if not re.fullmatch(r"\d{1,9}", words[0], re.ASCII):
                raise _Unknown
            self.code = int(words[0]) % 256
        raise _Ended

    def _set(self, words: Sequence[str]) -> None:
        for word in words:
            if word.startswith("-") and "e" in word:
                self.strict = True
            elif word.startswith("+") and "e" in word:
                self.strict = False

    def _test(self, words: Sequence[str]) -> bool:
        closing = {"[": "]", "[[": "]]"}.get(words[0])
        if closing is not None and words[-1] != closing:
            raise _Unknown
        rest = list(words[1:-1] if closing is not None else words[1:])
        negated = bool(rest) and rest[0] == "!"
        rest = rest[1:] if negated else rest
        if any("$" in word for word in rest):
            raise _Unknown
        match rest:
            case ["-e" | "-f" | "-r" | "-s", path]:
                holds = path in self.files
                if not holds and not path.startswith(("/tmp/", *(f"{folder}/" for folder in self.scratch))):
                    raise _Unknown
            case ["-n", text]:
                holds = bool(text)
            case ["-z", text]:
                holds = not text
            case [left, "=" | "==", right]:
                holds = left == right
            case [left, "!=", right]:
                holds = left != right
            case [left, "-eq" | "-ne" | "-lt" | "-le" | "-gt" | "-ge" as name, right]:
                holds = _compares(left, name, right)
            case _:
                raise _Unknown
        return holds != negated


def _compares(left: str, name: str, right: str) -> bool:
    if not all(re.fullmatch(r"-?\d{1,18}", number, re.ASCII) for number in (left, right)):
        raise _Unknown
    a, b = int(left), int(right)
    return {"-eq": a == b, "-ne": a != b, "-lt": a < b, "-le": a <= b, "-gt": a > b, "-ge": a >= b}[name]


def _computed(match: re.Match[str]) -> str:
    a, b = int(match[1]), int(match[3])
    if match[2] in "/%":
        if b == 0:
            return match[0]
        quotient = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
        return str(quotient if match[2] == "/" else a - quotient * b)
    return str({"+": a + b, "-": a - b, "*": a * b}[match[2]])
