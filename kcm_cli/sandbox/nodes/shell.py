"""Parses shell scripts of simple commands.

The language has ``;``, ``&&``, ``||``, ``!``, ``&``, ``|``, groups, functions, ``if``, ``for``, ``while``,
here-documents and redirections. Size and depth are bounded.
"""

import re
import shlex
from collections.abc import Iterable

import msgspec

MOST_CHARACTERS, MOST_DEPTH = 4096, 16
INTO_FILE, ONTO_FILE, TO_ERRORS, ERRORS_TO_OUTPUT, ERRORS_AWAY = "\x01", "\x02", "\x03", "\x04", "\x05"
"""Words that redirect output. The first two are followed by the file."""
INPUT, COMPUTED, FROM_FILE = "\x07", "\x0e", "\x17"
"""``INPUT`` begins a word with the input of a command, ``FROM_FILE`` one with the file of its input. Between two
``COMPUTED`` is an arithmetic expression."""
_REDIRECTION = re.compile(r"(\d?)(>>?|<)(&\d|\s*[\"']?[\w./-]+[\"']?)", re.ASCII)
_ITSELF = {"1": ("&1", "/dev/stdout", "/proc/1/fd/1"), "2": ("&2", "/dev/stderr", "/proc/1/fd/2")}
_SAME_INPUT = ("/dev/stdin", "/dev/fd/0", "/proc/self/fd/0")
_SUBSTITUTION = re.compile(r"\$\([^()]*\)|`[^`]*`")
_HERE = re.compile(r"<<(-?)[ \t]*([\w.]+|'[\w.]+'|\"[\w.]+\")([^\n]*)\n", re.ASCII)
_VARIABLE = r"\$?\w+|\$\{\w+\}"
_SUM = re.compile(
    rf"\$(?:\(\(\s*({_VARIABLE})\s*([-+*/%])\s*({_VARIABLE})\s*\)\)"
    rf"|\(expr\s+({_VARIABLE})\s+([-+/%])\s+({_VARIABLE})\s*\))",
    re.ASCII,
)
_PUNCTUATION = ";&|()<>\n"
_OPENING = frozenset(("if", "while", "until", "for", "{", "!"))
_CLOSING = frozenset(("then", "elif", "else", "fi", "do", "done", "}"))


class Unknown(Exception):
    """The result is unknown."""


class Simple(msgspec.Struct, frozen=True):
    words: tuple[str, ...]


class Choice(msgspec.Struct, frozen=True):
    branches: tuple[tuple["List", "List"], ...]
    otherwise: "List | None"


class Loop(msgspec.Struct, frozen=True):
    """A loop while the success of ``condition`` is ``wanted``; without a condition, one over ``values``."""

    condition: "List | None"
    wanted: bool
    variable: str
    values: tuple[str, ...]
    body: "List"


class Negated(msgspec.Struct, frozen=True):
    command: "Command"


class Background(msgspec.Struct, frozen=True):
    """Commands that run in the background."""

    commands: "List"


class Function(msgspec.Struct, frozen=True):
    name: str
    body: "List"


class Pipeline(msgspec.Struct, frozen=True):
    """Commands each of which reads the output of the previous one."""

    commands: tuple[Simple, ...]


Command = Simple | Pipeline | Choice | Loop | Negated | Background | Function | tuple[tuple[str, object], ...]
List = tuple[tuple[str, Command], ...]
"""Commands, each with the operator before it: ``;``, ``&&`` or ``||``."""


def parse(script: str) -> List:
    """Parse a script. Raises Unknown."""
    return _Parser(_tokens(script)).script()


def _tokens(script: str) -> list[str]:
    if len(script) > MOST_CHARACTERS:
        raise Unknown
    script, documents = _without_documents(script)
    lines = (line for line in script.replace("\\\n", " ").split("\n") if not line.lstrip().startswith("#"))
    text = _SUBSTITUTION.sub("$_", _SUM.sub(_to_compute, _REDIRECTION.sub(_redirected, "\n".join(lines))))
    lexer = shlex.shlex(text, posix=True, punctuation_chars=_PUNCTUATION)
    lexer.whitespace, lexer.whitespace_split, lexer.commenters = " \t\r", True, ""
    try:
        tokens = [_operator(token) if token and not token.strip(_PUNCTUATION) else token for token in lexer]
        return [f"{INPUT}{documents[int(token[1:])]}" if token[:1] == INPUT else token for token in tokens]
    except ValueError:  # an unterminated quotation
        raise Unknown from None


def _without_documents(script: str) -> tuple[str, list[str]]:
    """The script with a word instead of each here-document, and the documents. Raises Unknown."""
    documents: list[str] = []
    while (match := _HERE.search(script, 0, script.rfind("\n") + 1)) is not None:
        tabs, word, rest = match.groups()
        lines: list[str] = []
        end = match.end()
        while True:
            line, newline, _ = script[end:].partition("\n")
            end += len(line) + len(newline)
            line = line.lstrip("\t") if tabs else line
            if line == word.strip("'\""):
                break
            if not newline:
                raise Unknown
            lines.append(f"{line}\n")
        text = "".join(lines)
        quoted = word[0] in "'\""
        if "`" in text or "\\" in text or "$(" in text or "\x06" in text or (quoted and "$" in text):
            raise Unknown
        script = f"{script[: match.start()]} {INPUT}{len(documents)} {rest}\n{script[end:]}"
        documents.append(text)
    return script, documents


def _to_compute(match: re.Match[str]) -> str:
    left, operator, right = match.groups()[:3] if match[1] else match.groups()[3:]
    return f"{COMPUTED}{left.strip('${}')}{operator}{right.strip('${}')}{COMPUTED}"


def _redirected(match: re.Match[str]) -> str:
    to = match[3].strip().strip("\"'")
    if match[2] == "<" and match[1] in ("", "0") and to[0] != "&" and to not in _SAME_INPUT:
        return f" {FROM_FILE}{to} "
    if match[2] == "<" or match[1] not in ("", "1", "2") or to in _ITSELF.get(match[1] or "1", ()):
        return " "
    if match[1] == "2":
        return f" {ERRORS_TO_OUTPUT if to in _ITSELF['1'] else ERRORS_AWAY} "
    if to in _ITSELF["2"]:
        return f" {TO_ERRORS} "
    return f" {INTO_FILE if match[2] == '>' else ONTO_FILE}{to} "


def _operator(token: str) -> str:
    bare = token.replace("\n", ";").strip(";")
    if bare in ("&&", "||", "&", "|", "()"):
        return bare
    if bare:
        raise Unknown
    return ";"


class _Parser:
    def __init__(self, tokens: list[str]) -> None:
        self._tokens = tokens
        self._at = 0
        self._depth = 0

    def script(self) -> List:
        parsed = self._list()
        if self._at < len(self._tokens):
            raise Unknown
        return parsed

    def _peek(self) -> str:
        return self._tokens[self._at] if self._at < len(self._tokens) else ""

    def _take(self, *expected: str) -> str:
        token = self._peek()
        if self._at >= len(self._tokens) or (expected and token not in expected):
            raise Unknown
        self._at += 1
        return token

    def _deeper(self) -> None:
        self._depth += 1
        if self._depth > MOST_DEPTH:
            raise Unknown

    def _list(self) -> List:
        self._deeper()
        found: list[tuple[str, Command]] = []
        before = ";"
        while self._at < len(self._tokens) and self._peek() not in _CLOSING:
            if self._peek() == ";":
                self._at += 1
                continue
            found.append((before, self._command()))
            if self._peek() == f"{FROM_FILE}/dev/null":  # of a group, which has no input in any case
                self._at += 1
            if self._at < len(self._tokens) and self._peek() not in _CLOSING:
                before = self._take(";", "&&", "||", "&")
            if before == "&":
                first = max(index for index, (how, _) in enumerate(found) if how == ";")
                found[first:] = [(";", Background(tuple(found[first:])))]
                before = ";"
        self._depth -= 1
        return tuple(found)

    def _command(self) -> Command:
        word = self._peek()
        if word not in _OPENING:
            simple = self._simple()
            if self._peek() == "|":
                return self._pipeline(simple)
            return self._function(simple) if self._peek() == "()" else simple
        self._at += 1
        if word == "!":
            self._deeper()
            negated = Negated(self._command())
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
        return Loop(condition, word == "while", "", (), self._body())

    def _simple(self) -> Simple:
        words: list[str] = []
        while self._at < len(self._tokens) and self._peek() not in (";", "&&", "||", "&", "|", "()"):
            words.append(self._take())
        if not words:
            raise Unknown
        return Simple(tuple(words))

    def _pipeline(self, first: Simple) -> Pipeline:
        commands = [first]
        while self._peek() == "|":
            self._take()
            if self._peek() in _OPENING:
                raise Unknown
            commands.append(self._simple())
        return Pipeline(tuple(commands))

    def _function(self, named: Simple) -> Function:
        self._take("()")
        if self._peek() == ";":
            self._take()
        self._take("{")
        body = self._list()
        self._take("}")
        if len(named.words) != 1:
            raise Unknown
        return Function(named.words[0], body)

    def _choice(self) -> Choice:
        branches: list[tuple[List, List]] = []
        while True:
            condition = self._list()
            self._take("then")
            branches.append((condition, self._list()))
            closing = self._take("elif", "else", "fi")
            if closing == "fi":
                return Choice(tuple(branches), None)
            if closing == "else":
                otherwise = self._list()
                self._take("fi")
                return Choice(tuple(branches), otherwise)

    def _for(self) -> Loop:
        name = self._take()
        self._take("in")
        words = self._simple().words
        self._take(";")
        return Loop(None, True, name, _values(words), self._body())

    def _body(self) -> List:
        self._take("do")
        body = self._list()
        self._take("done")
        return body


def _values(words: Iterable[str]) -> tuple[str, ...]:
    values: list[str] = []
    for word in words:
        span = re.fullmatch(r"\{(\d{1,6})\.\.(\d{1,6})\}", word, re.ASCII)
        if span is None and any(character in word for character in "$*?[{\x06\x0e"):
            raise Unknown
        first, last = (int(span[1]), int(span[2])) if span is not None else (0, 0)
        if abs(last - first) > MOST_CHARACTERS:
            raise Unknown
        step = 1 if first <= last else -1
        values += [word] if span is None else map(str, range(first, last + step, step))
    return tuple(values)
