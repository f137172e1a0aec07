"""Parses shell scripts: what scripts of containers need of POSIX (docs/sandbox.md). Pure.

The work is linear in the length of a script, and its size and depth are bounded.
"""

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Never

import msgspec

from kcm_cli.sandbox.programs.errors import Incomplete, Malformed, TooMuch, Unsupported

MOST_CHARACTERS, MOST_DEPTH = 1 << 16, 32
_MOST_CACHED, _MOST_SCRIPTS = 2048, 512
"""The limits for the length and the number of scripts that stay parsed."""


class Text(msgspec.Struct, frozen=True):
    """Literal text. ``quoted``: as for the other parts, it is not split into fields, and no pattern."""

    text: str
    quoted: bool = False


class Parameter(msgspec.Struct, frozen=True):
    """``$name`` or ``${name}``, or one with an operator such as ``:-`` and its word."""

    name: str
    operator: str = ""
    word: "Word" = ()
    quoted: bool = False


class Substitution(msgspec.Struct, frozen=True):
    """``$(commands)``"""

    commands: "List"
    quoted: bool = False


class Arithmetic(msgspec.Struct, frozen=True):
    """``$((expression))``"""

    expression: "Word"
    quoted: bool = False


Part = Text | Parameter | Substitution | Arithmetic
Word = tuple[Part, ...]


class Redirect(msgspec.Struct, frozen=True):
    """``operator``: ``<``, ``>``, ``>>``, ``<&``, ``>&`` with the word; ``<<`` with the document."""

    descriptor: int
    operator: str
    word: Word


class Simple(msgspec.Struct, frozen=True):
    assignments: tuple[tuple[str, Word], ...]
    words: tuple[Word, ...]
    redirects: tuple[Redirect, ...]


class Pipeline(msgspec.Struct, frozen=True):
    """Commands each of which reads the output of the previous one."""

    commands: tuple["Command", ...]
    negated: bool = False


class Choice(msgspec.Struct, frozen=True):
    branches: tuple[tuple["List", "List"], ...]
    otherwise: "List | None"


class Loop(msgspec.Struct, frozen=True):
    """A loop while the success of ``condition`` is ``wanted``."""

    condition: "List"
    wanted: bool
    body: "List"


class For(msgspec.Struct, frozen=True):
    """``words``: None for the parameters of the script."""

    variable: str
    words: tuple[Word, ...] | None
    body: "List"


class Group(msgspec.Struct, frozen=True):
    """``subshell``: it has variables of its own."""

    commands: "List"
    subshell: bool = False


class Function(msgspec.Struct, frozen=True):
    name: str
    body: "Command"


class Background(msgspec.Struct, frozen=True):
    commands: "List"


class Redirected(msgspec.Struct, frozen=True):
    command: "Command"
    redirects: tuple[Redirect, ...]


Command = Simple | Pipeline | Choice | Loop | For | Group | Function | Background | Redirected
List = tuple[tuple[str, Command], ...]
"""Commands, each with the operator before it: ``;``, ``&&`` or ``||``."""

_WORD_END = frozenset(" \t\r\n;&|()<>")
_PLAIN = re.compile(r"[^\s;&|()<>\"'\\$`]+")
_IN_QUOTES = re.compile(r"[^\"\\$`]+")
_IN_BRACES = re.compile(r"[^}\"'\\$`]+")
_IN_SUM = re.compile(r"[^()\"'\\$`]+")
_IN_DOCUMENT = re.compile(r"[^\\$`]+")
_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_PARAMETER = re.compile(r"[A-Za-z_]\w*|[0-9]+|[?$!#@*-]", re.ASCII)
_SHORT = re.compile(r"[A-Za-z_]\w*|[0-9?$!#@*-]", re.ASCII)
_IN_BACKTICKS = re.compile(r"[^`\\]+")
_TOKEN = re.compile(r"\n|&&|\|\||;;|[^\s;&|()<>]{1,100}|.", re.DOTALL)
_OPERATOR = re.compile(r":?[-=?+]")
ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)=", re.ASCII)
_REDIRECT = re.compile(r"(\d?)(<<-|<<|>>|<&|>&|>\||<|>)")
_ASSIGNED, _TAKING = re.compile(r"\b(\w+)="), re.compile(r"\bfor[ \t]+(\w+)")
_BOTH = re.compile(r"&>>?")
_RESERVED = re.compile(r"(?:if|then|elif|else|fi|for|while|until|do|done|case|in|function|[{}!])(?=[\s;&|()<>]|\Z)")
_COMMENT = re.compile(r"#[^\n]*")
_BLANK = re.compile(r"(?:[ \t\r]|\\\n)+")


def parse(script: str) -> List:
    """Parse a script. Raises Malformed, Incomplete (more lines may complete it), Unsupported, TooMuch."""
    if len(script) > MOST_CHARACTERS:
        raise TooMuch
    return _parsed(script) if len(script) <= _MOST_CACHED else _Parser(script).script()


@lru_cache(_MOST_SCRIPTS)
def _parsed(script: str) -> List:
    return _Parser(script).script()


@lru_cache(_MOST_SCRIPTS)
def _assigned(script: str) -> frozenset[str]:
    return frozenset((*_TAKING.findall(script), *_ASSIGNED.findall(script)))


def assigned(script: str) -> frozenset[str]:
    """The variables that a script may set."""
    return _assigned(script) if len(script) <= _MOST_CACHED else _assigned.__wrapped__(script)


class _Parser:
    def __init__(self, text: str, depth: int = 0) -> None:
        self._text = text
        self._at = 0
        self._depth = depth
        self._documents = (-1, -1)
        """The end of a line that here-documents follow, and their end."""

    def script(self) -> List:
        found = self._list()
        if self._at < len(self._text):
            self._unexpected()
        return found

    # -- lists of commands

    def _list(self) -> List:
        """Commands up to a word or character that ends them."""
        self._deeper()
        found: list[tuple[str, Command]] = []
        before, first = ";", 0
        while True:
            self._gap()
            if self._ends_list():
                break
            found.append((before, self._pipeline()))
            self._blank()
            sign = self._sign("&&", "||", ";", "&", "\n")
            if sign in ("&&", "||"):
                before = sign
                self._gap()
                if self._at >= len(self._text):
                    raise Incomplete("end of file")
                if self._ends_list():
                    self._unexpected()
                continue
            if sign == "&":
                found[first:] = [(";", Background(tuple(found[first:])))]
            before, first = ";", len(found)
            if not sign:
                break
        self._depth -= 1
        return tuple(found)

    def _ends_list(self) -> bool:
        if self._at >= len(self._text) or self._text[self._at] == ")":
            return True
        return self._reserved() in ("then", "elif", "else", "fi", "do", "done", "}")

    def _pipeline(self) -> Command:
        negated = False
        while self._reserved() == "!":
            self._keyword("!")
            negated = not negated
        commands = [self._command()]
        while True:
            self._blank()
            if self._text.startswith("||", self._at) or not self._text.startswith("|", self._at):
                break
            self._at += 1
            if self._text.startswith("&", self._at):
                raise Unsupported("|&")
            self._gap()
            commands.append(self._command())
        return commands[0] if len(commands) == 1 and not negated else Pipeline(tuple(commands), negated)

    def _command(self) -> Command:
        self._blank()
        if self._at >= len(self._text):
            raise Incomplete("end of file")
        command = self._compound()
        if command is None:
            return self._simple()
        redirects: list[Redirect] = []
        self._blank()
        while self._redirect(redirects):
            self._blank()
        return Redirected(command, tuple(redirects)) if redirects and not isinstance(command, Function) else command

    def _compound(self) -> Command | None:
        if self._text.startswith("((", self._at):
            raise Unsupported("((")
        if self._text.startswith("(", self._at):
            self._at += 1
            body = self._list()
            self._character(")")
            return Group(self._full(body), subshell=True)
        word = self._reserved()
        if not word:
            return None
        self._keyword(word)
        match word:
            case "{":
                body = self._list()
                self._keyword("}")
                return Group(self._full(body))
            case "if":
                return self._choice()
            case "for":
                return self._for()
            case "while" | "until":
                condition = self._full(self._list())
                return Loop(condition, word == "while", self._body())
            case "case" | "function":
                raise Unsupported(word)
        raise Malformed(f'unexpected "{word}"')

    def _choice(self) -> Choice:
        branches: list[tuple[List, List]] = []
        while True:
            condition = self._full(self._list())
            self._keyword("then")
            branches.append((condition, self._full(self._list())))
            closing = self._keyword("elif", "else", "fi")
            if closing == "fi":
                return Choice(tuple(branches), None)
            if closing == "else":
                otherwise = self._full(self._list())
                self._keyword("fi")
                return Choice(tuple(branches), otherwise)

    def _for(self) -> For:
        self._blank()
        name = self._match(_NAME)
        self._gap()
        words: list[Word] | None = None
        if self._reserved() == "in":
            self._keyword("in")
            words = []
            self._blank()
            while (word := self._word()) is not None:
                words.append(word)
                self._blank()
        self._sign(";", "\n")
        return For(name, None if words is None else tuple(words), self._body())

    def _body(self) -> List:
        self._gap()
        self._keyword("do")
        body = self._full(self._list())
        self._keyword("done")
        return body

    def _function(self, name: str) -> Function:
        self._gap()
        body = self._compound()
        if body is None:
            self._unexpected()
        return Function(name, body)

    def _parentheses(self) -> None:
        self._character("(")
        self._blank()
        self._character(")")

    def _simple(self) -> Command:
        assignments: list[tuple[str, Word]] = []
        words: list[Word] = []
        redirects: list[Redirect] = []
        while True:
            self._blank()
            if self._redirect(redirects):
                continue
            match = ASSIGNMENT.match(self._text, self._at) if not words else None
            if match is not None:
                self._at = match.end()
                if self._text.startswith("(", self._at):
                    raise Unsupported("an array")
                assignments.append((match[1], self._word() or ()))
                continue
            word = self._word()
            if word is None:
                break
            if len(word) == 1 and not words and not assignments and not redirects and self._is_function(word[0]):
                self._blank()
                self._parentheses()
                return self._function(word[0].text if isinstance(word[0], Text) else "")
            words.append(word)
        if not (assignments or words or redirects):
            self._unexpected()
        return Simple(tuple(assignments), tuple(words), tuple(redirects))

    def _is_function(self, part: Part) -> bool:
        if not isinstance(part, Text) or part.quoted:
            return False
        blank = _BLANK.match(self._text, self._at)
        return self._text.startswith("(", blank.end() if blank is not None else self._at)

    def _redirect(self, found: list[Redirect]) -> bool:
        """Read a redirection, if there is one."""
        if (both := _BOTH.match(self._text, self._at)) is not None:
            self._at = both.end()
            target = self._target()
            found.append(Redirect(1, both[0][1:], target))
            found.append(Redirect(2, ">&", (Text("1"),)))
            return True
        match = _REDIRECT.match(self._text, self._at)
        if match is None:
            return False
        self._at = match.end()
        operator = match[2]
        descriptor = int(match[1]) if match[1] else 0 if operator[0] == "<" else 1
        if self._text.startswith("(", self._at):
            raise Unsupported("a process substitution")
        if operator in ("<<", "<<-") and self._text.startswith("<", self._at):
            raise Unsupported("<<<")
        if operator in ("<<", "<<-"):
            self._blank()
            begin = self._at
            word = self._target()
            if not all(isinstance(part, Text) for part in word):
                raise Malformed("the end of a document")
            end = "".join(part.text for part in word if isinstance(part, Text))
            quoted = any(sign in self._text[begin : self._at] for sign in "\"'\\")
            found.append(Redirect(descriptor, "<<", self._document(end, quoted=quoted, tabs=operator == "<<-")))
        else:
            found.append(Redirect(descriptor, ">" if operator == ">|" else operator, self._target()))
        return True

    def _target(self) -> Word:
        self._blank()
        word = self._word()
        if word is None:
            self._unexpected()
        return word

    def _document(self, end: str, *, quoted: bool, tabs: bool) -> Word:
        """The here-document that follows the current line, or the previous one that does. Raises Incomplete."""
        line_end, at = self._documents
        if line_end < self._at:
            line_end = self._text.find("\n", self._at)
            at = line_end + 1
        if line_end < 0:
            raise Incomplete("a document without its end")
        lines: list[str] = []
        while True:
            if at >= len(self._text):
                raise Incomplete("a document without its end")
            stop = self._text.find("\n", at)
            stop = len(self._text) if stop < 0 else stop
            line = self._text[at:stop]
            at = min(stop + 1, len(self._text))
            line = line.lstrip("\t") if tabs else line
            if line == end:
                break
            lines.append(f"{line}\n")
        self._documents = line_end, at
        text = "".join(lines)
        return (Text(text, True),) if quoted else _Parser(text, self._depth + 1).whole_document()

    def whole_document(self) -> Word:
        """The text as a here-document whose parameters are expanded."""
        return self._parts(_IN_DOCUMENT, lambda: self._at >= len(self._text), "\\$`\n")

    # -- words

    def _word(self) -> Word | None:
        """The word that begins here; None if there is none."""
        if self._at >= len(self._text) or self._text[self._at] in _WORD_END:
            return None
        found: list[Part] = []
        if self._text[self._at] == "~":
            after = self._text[self._at + 1 : self._at + 2]
            if not after or after == "/" or after in _WORD_END:
                self._at += 1
                found.append(Parameter("HOME", quoted=True))
        while self._at < len(self._text) and self._text[self._at] not in _WORD_END:
            if (plain := _PLAIN.match(self._text, self._at)) is not None:
                self._at = plain.end()
                found.append(Text(plain[0]))
                continue
            sign = self._text[self._at]
            if sign == "'":
                found.append(self._single_quoted())
            elif sign == '"':
                found += self._double_quoted()
            elif sign == "\\":
                if self._text.startswith("\n", self._at + 1):
                    self._at += 2
                    continue
                if self._at + 1 >= len(self._text):
                    raise Incomplete("end of file")
                found.append(Text(self._text[self._at + 1], True))
                self._at += 2
            elif self._text.startswith(("$'", '$"'), self._at):
                raise Unsupported("$'")
            else:
                found.append(self._dollar(quoted=False))
        return tuple(found)

    def _single_quoted(self) -> Text:
        end = self._text.find("'", self._at + 1)
        if end < 0:
            raise Incomplete("unterminated quoted string")
        found = Text(self._text[self._at + 1 : end], True)
        self._at = end + 1
        return found

    def _double_quoted(self) -> Word:
        self._at += 1
        found = self._parts(_IN_QUOTES, lambda: self._text.startswith('"', self._at), '"\\$`\n')
        self._at += 1
        return found or (Text("", True),)

    def _parts(self, plain: re.Pattern[str], ends: Callable[[], bool], escaped: str, *, quoted: bool = True) -> Word:
        """Quoted parts until an end. escaped: the characters before which a backslash is removed."""
        found: list[Part] = []
        while not ends():
            if self._at >= len(self._text):
                raise Incomplete("unterminated quoted string")
            if (match := plain.match(self._text, self._at)) is not None:
                self._at = match.end()
                found.append(Text(match[0], quoted))
                continue
            sign = self._text[self._at]
            after = self._text[self._at + 1 : self._at + 2]
            if sign == "\\":
                if not after:
                    raise Incomplete("end of file")
                self._at += 2
                if after in escaped:
                    found.append(Text("" if after == "\n" else after, True))
                else:
                    found.append(Text(f"\\{after}" if quoted else after, True))
            elif sign in "$`":
                found.append(self._dollar(quoted=quoted))
            elif sign == '"' and not quoted:
                found += self._double_quoted()
            elif sign == "'" and not quoted:
                found.append(self._single_quoted())
            else:
                self._at += 1
                found.append(Text(sign, quoted))
        return tuple(found)

    def _dollar(self, *, quoted: bool) -> Part:
        """What begins with ``$`` or a backtick."""
        self._deeper()
        try:
            return self._expansion(quoted=quoted)
        finally:
            self._depth -= 1

    def _expansion(self, *, quoted: bool) -> Part:
        text, at = self._text, self._at
        if text[at] == "`":
            return self._backticks(quoted=quoted)
        if text.startswith("$((", at):
            return self._arithmetic(quoted=quoted)
        if text.startswith("$(", at):
            self._at += 2
            commands = self._list()
            self._character(")")
            return Substitution(commands, quoted)
        if text.startswith("${", at):
            return self._braces(quoted=quoted)
        match = _SHORT.match(text, at + 1)
        if match is None:
            self._at += 1
            return Text("$", True)
        self._at = match.end()
        return Parameter(match[0], quoted=quoted)

    def _backticks(self, *, quoted: bool) -> Part:
        found: list[str] = []
        at = self._at + 1
        while True:
            if (match := _IN_BACKTICKS.match(self._text, at)) is not None:
                found.append(match[0])
                at = match.end()
            if at >= len(self._text):
                raise Incomplete("unterminated quoted string")
            if self._text[at] == "`":
                break
            after = self._text[at + 1 : at + 2]
            found.append(after if after and after in ('`\\$"' if quoted else "`\\$") else f"\\{after}")
            at += 2
        self._at = at + 1
        try:
            return Substitution(_Parser("".join(found), self._depth + 1).script(), quoted)
        except Incomplete as error:
            raise Malformed(*error.args) from None

    def _arithmetic(self, *, quoted: bool) -> Part:
        """``$((…))``. A subshell in a substitution is written ``$( (…) )``."""
        open_ = 0
        self._at += 3

        def ends() -> bool:
            nonlocal open_
            while self._at < len(self._text) and self._text[self._at] in "()":
                if self._text[self._at] == "(":
                    open_ += 1
                elif open_ == 0:
                    return True
                else:
                    open_ -= 1
                inside.append(Text(self._text[self._at], True))
                self._at += 1
            return False

        inside: list[Part] = []
        while not ends():
            if self._at >= len(self._text):
                raise Incomplete("unterminated arithmetic")
            inside += self._parts(_IN_SUM, lambda: self._text[self._at : self._at + 1] in "()", '"\\$`\n')
        if not self._text.startswith("))", self._at):
            self._unexpected()
        self._at += 2
        return Arithmetic(tuple(inside), quoted)

    def _braces(self, *, quoted: bool) -> Part:
        self._at += 2
        name = self._match(_PARAMETER)
        match = _OPERATOR.match(self._text, self._at)
        if match is None:
            if self._at < len(self._text) and self._text[self._at] != "}":
                raise Unsupported(f"${{{name}{self._text[self._at]}…}}")
            self._character("}")
            return Parameter(name, quoted=quoted)
        self._at = match.end()
        word = self._parts(_IN_BRACES, lambda: self._text.startswith("}", self._at), '}"\\$`\n', quoted=quoted)
        self._at += 1
        return Parameter(name, match[0], word, quoted)

    # -- characters

    def _deeper(self) -> None:
        self._depth += 1
        if self._depth > MOST_DEPTH:
            raise TooMuch

    def _blank(self) -> None:
        """Skip blanks, comments and lines that go on."""
        if (match := _BLANK.match(self._text, self._at)) is not None:
            self._at = match.end()
        begins = self._at == 0 or self._text[self._at - 1] in _WORD_END
        if begins and (match := _COMMENT.match(self._text, self._at)) is not None:
            self._at = match.end()

    def _gap(self) -> None:
        """Skip blanks and newlines."""
        self._blank()
        while self._text.startswith("\n", self._at):
            self._newline()
            self._blank()

    def _newline(self) -> None:
        """Skip the end of a line, and the here-documents that follow it."""
        line_end, after = self._documents
        self._at = after if self._at == line_end else self._at + 1

    def _sign(self, *signs: str) -> str:
        """Take the first of these signs that is next; empty if there is none."""
        for sign in signs:
            if self._text.startswith(sign, self._at):
                if sign == "\n":
                    self._newline()
                else:
                    self._at += len(sign)
                return sign
        return ""

    def _character(self, sign: str) -> None:
        self._gap()
        if not self._sign(sign):
            self._unexpected()

    def _match(self, pattern: re.Pattern[str]) -> str:
        match = pattern.match(self._text, self._at)
        if match is None:
            self._unexpected()
        self._at = match.end()
        return match[0]

    def _reserved(self) -> str:
        match = _RESERVED.match(self._text, self._at)
        return "" if match is None else match[0]

    def _keyword(self, *words: str) -> str:
        self._gap()
        word = self._reserved()
        if word not in words:
            self._unexpected()
        self._at += len(word)
        return word

    def _full(self, commands: List) -> List:
        if not commands:
            self._unexpected()
        return commands

    def _unexpected(self) -> Never:
        if self._at >= len(self._text):
            raise Incomplete("end of file")
        match = _TOKEN.match(self._text, self._at)
        shown = "newline" if match is None or match[0] == "\n" else f'"{match[0]}"'
        raise Malformed(f"unexpected {shown}")
