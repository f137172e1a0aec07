"""The language of shells, as far as simple commands need it: a script becomes lists of commands.

``;``, ``&&``, ``||``, ``!``, groups, ``if``, ``for``, ``while``, and where output goes. Bounded in size and depth.
"""

import math
import re
import shlex
from collections.abc import Iterable

import msgspec

MOST_CHARACTERS, MOST_DEPTH = 4096, 16
INTO_FILE, ONTO_FILE, TO_ERRORS, ERRORS_TO_OUTPUT, ERRORS_AWAY = "\x01", "\x02", "\x03", "\x04", "\x05"
"""Words that say where the output of a command goes. The first two are followed by the file."""
_REDIRECTION = re.compile(r"(\d?)(>>?|<)(&\d|\s*[\"']?[\w./-]+[\"']?)", re.ASCII)
_ITSELF = {"1": ("&1", "/dev/stdout", "/proc/1/fd/1"), "2": ("&2", "/dev/stderr", "/proc/1/fd/2")}
_SUBSTITUTION = re.compile(r"\$\([^()]*\)|`[^`]*`")
_PUNCTUATION = ";&|()<>\n"
_OPENING = frozenset(("if", "while", "until", "for", "{", "!"))
_CLOSING = frozenset(("then", "elif", "else", "fi", "do", "done", "}"))


class Unknown(Exception):
    """Nobody can say what this does."""


class Simple(msgspec.Struct, frozen=True):
    words: tuple[str, ...]


class Choice(msgspec.Struct, frozen=True):
    branches: tuple[tuple["List", "List"], ...]
    otherwise: "List | None"


class Loop(msgspec.Struct, frozen=True):
    """``times``: how often at most; infinite for while and until. ``wanted``: whether it goes on while this holds."""

    condition: "List | None"
    wanted: bool
    times: float
    body: "List"


class Negated(msgspec.Struct, frozen=True):
    command: "Command"


Command = Simple | Choice | Loop | Negated | tuple[tuple[str, object], ...]
List = tuple[tuple[str, Command], ...]
"""Commands, each with what stands before it: ``;``, ``&&`` or ``||``."""


def parse(script: str) -> List:
    """Raises Unknown."""
    return _Parser(_tokens(script)).script()


def _tokens(script: str) -> list[str]:
    if len(script) > MOST_CHARACTERS:
        raise Unknown
    lines = (line for line in script.replace("\\\n", " ").split("\n") if not line.lstrip().startswith("#"))
    text = _SUBSTITUTION.sub("$_", _REDIRECTION.sub(_redirected, "\n".join(lines)))
    lexer = shlex.shlex(text, posix=True, punctuation_chars=_PUNCTUATION)
    lexer.whitespace, lexer.whitespace_split, lexer.commenters = " \t\r", True, ""
    try:
        return [_operator(token) if token and not token.strip(_PUNCTUATION) else token for token in lexer]
    except ValueError:  # a quotation that does not end
        raise Unknown from None


def _redirected(match: re.Match[str]) -> str:
    to = match[3].strip().strip("\"'")
    if match[2] == "<" or match[1] not in ("", "1", "2") or to in _ITSELF.get(match[1] or "1", ()):
        return " "
    if match[1] == "2":
        return f" {ERRORS_TO_OUTPUT if to in _ITSELF['1'] else ERRORS_AWAY} "
    if to in _ITSELF["2"]:
        return f" {TO_ERRORS} "
    return f" {INTO_FILE if match[2] == '>' else ONTO_FILE}{to} "


def _operator(token: str) -> str:
    bare = token.replace("\n", ";").strip(";")
    if bare in ("&&", "||"):
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
            if self._at < len(self._tokens) and self._peek() not in _CLOSING:
                before = self._take(";", "&&", "||")
        self._depth -= 1
        return tuple(found)

    def _command(self) -> Command:
        word = self._peek()
        if word not in _OPENING:
            return self._simple()
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
        return Loop(condition, word == "while", math.inf, self._body())

    def _simple(self) -> Simple:
        words: list[str] = []
        while self._at < len(self._tokens) and self._peek() not in (";", "&&", "||"):
            words.append(self._take())
        if not words:
            raise Unknown
        return Simple(tuple(words))

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
        self._take()
        self._take("in")
        words = self._simple().words
        self._take(";")
        return Loop(None, True, _count(words), self._body())

    def _body(self) -> List:
        self._take("do")
        body = self._list()
        self._take("done")
        return body


def _count(words: Iterable[str]) -> int:
    total = 0
    for word in words:
        span = re.fullmatch(r"\{(\d{1,6})\.\.(\d{1,6})\}", word, re.ASCII)
        if span is None and any(character in word for character in "$*?[{"):
            raise Unknown
        total += 1 if span is None else abs(int(span[2]) - int(span[1])) + 1
    return total
