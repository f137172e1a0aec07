"""Expands the words of a shell: parameters, substitutions, arithmetic, fields, file names.

None: the value is unknown.
"""

import re
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from functools import partial

from kcm_cli.sandbox.programs import arithmetic
from kcm_cli.sandbox.programs.arithmetic import DividedByZero
from kcm_cli.sandbox.programs.errors import Malformed, TooMuch, Unknown, Unsupported
from kcm_cli.sandbox.programs.filesystem import PER_CHARACTER
from kcm_cli.sandbox.programs.shell import FIRST_NUMBER, Shell
from kcm_cli.sandbox.programs.syntax import Arithmetic, Parameter, Part, Simple, Substitution, Text, Word

_WILD = re.compile(r"[*?\[]")
_PECULIAR = re.compile(r"\\|\[\^|\[[:.=]|\[\[[*?\[]\]")
"""What shells read otherwise than ``fnmatch``."""
_BLANKS = re.compile(r"[ \t\n]+")
_MOST_FIELDS = 10_000
_PER_FIELD, _PER_PATTERN = 8, 32
"""The cost of a field, and of a character of a pattern, which is compiled."""


class Expansion:
    """The expansion of one command. ``code``: the exit code of its last substitution."""

    def __init__(self, shell: Shell) -> None:
        self._shell = shell
        self._variables = shell.variables
        self._last = shell.code
        self.code = 0

    def fields(self, words: Sequence[Word]) -> list[str | None]:
        """The fields of words, split and with file names."""
        found: list[str | None] = []
        if self._shell.called.endswith("bash") and any(map(_has_braces, words)):
            raise Unsupported("{…}")
        for word in words:
            if len(word) == 1 and isinstance(word[0], Text) and (word[0].quoted or not _is_pattern(word[0].text)):
                found.append(word[0].text)
                continue
            before = len(found)
            for text, pattern in _Fields(self, word):
                if text is None or not pattern:
                    found.append(text)
                else:
                    found += self._files(text, pattern)
            if len(found) > _MOST_FIELDS:
                raise TooMuch
            self._shell.fs.work.spend((len(found) - before) * _PER_FIELD)
        return found

    def string(self, word: Word) -> str | None:
        """A word that is not split."""
        found: list[str] = []
        for part in word:
            value = part.text if isinstance(part, Text) else self.value(part)
            if isinstance(value, tuple):
                value = _joined(value)
            if value is None:
                return None
            self._shell.fs.work.spend(len(value) * PER_CHARACTER)
            found.append(value)
        return "".join(found)

    # -- values

    def value(self, part: Part) -> "str | tuple[str | None, ...] | None":
        """The value of a part; several for ``$@``."""
        match part:
            case Text(text):
                return text
            case Parameter():
                return self._parameter(part)
            case Substitution(commands):
                return self._substituted(part, len(commands))
            case Arithmetic(expression):
                return self._computed(expression)

    def _substituted(self, part: Substitution, count: int) -> str | None:
        shell = self._shell
        command = part.commands[0][1] if count == 1 else None
        is_read = isinstance(command, Simple) and not command.words and not command.assignments
        if is_read and isinstance(command, Simple) and [each.operator for each in command.redirects] == ["<"]:
            path = self.string(command.redirects[0].word)
            try:
                found = None if path is None else shell.fs.content(shell.place(path))
            except OSError:
                shell.say(f"{shell.called}: can't open {path}: no such file\n", error=True)
                self.code, found = 1, ""
            except Unknown:
                found = None
            return None if found is None else found.rstrip("\n")
        captured = shell.captured(partial(shell.run_list, part.commands))
        self.code = shell.code
        text = captured.text()
        if text is not None:
            shell.fs.work.spend(len(text) * PER_CHARACTER)
        return None if text is None else text.rstrip("\n")

    def _computed(self, expression: Word) -> str | None:
        text = self.string(expression)
        if text is None:
            return None
        try:
            return str(arithmetic.evaluate(text, self._number_of))
        except _NoValue:
            return None
        except DividedByZero:
            self._shell.fail("divide by zero")
        except Malformed as error:
            if not self._shell.assumes:
                raise
            self._shell.fail(str(error))

    def _number_of(self, name: str) -> str:
        _, value = self._named(name)
        if value is None:
            raise _NoValue
        return value

    def _parameter(self, part: Parameter) -> "str | tuple[str | None, ...] | None":
        name, operator = part.name, part.operator
        if name in ("@", "*") and not operator:
            values = self._variables.parameters
            if name == "@" or not part.quoted:
                return values
            return _joined(values)
        is_set, value = self._named(name)
        if not operator:
            if not is_set and value is not None and self._shell.must_be_set:
                self._shell.fail(f"{name}: parameter not set")
            return value
        missing = self._missing(part)
        return None if missing is None else self._or_word(part, value, missing=missing)

    def _missing(self, part: Parameter) -> bool | None:
        """Whether a parameter is not set, or empty where that counts as well; None if that is unknown."""
        is_set, value = self._named(part.name)
        if part.operator[0] == ":" and is_set:
            return None if value is None else not value
        return not is_set

    def _or_word(self, part: Parameter, value: str | None, *, missing: bool) -> str | None:
        """A value, or the word instead: ``-``, ``+``, ``=``, ``?``."""
        kind = part.operator[-1]
        if kind == "+":
            return "" if missing else self.string(part.word)
        if not missing:
            return value
        found = self.string(part.word)
        if kind == "=":
            self._variables.put(part.name, found)
        if kind == "?" and value is not None:
            or_null = " or null" if part.operator[0] == ":" else ""
            self._shell.fail(f"{part.name}: {found or f'parameter not set{or_null}'}")
        return None if kind == "?" else found

    def chosen(self, part: Part) -> Word | None:
        """The word that stands for a parameter outside of quotation marks, a default or an alternative; None if the
        value does."""
        if not isinstance(part, Parameter) or part.quoted or part.operator[-1:] not in ("-", "+"):
            return None
        return part.word if self._missing(part) == (part.operator[-1] == "-") else None

    def _named(self, name: str) -> tuple[bool, str | None]:
        """Whether a parameter is set, and its value."""
        variables, shell = self._variables, self._shell
        if name.isdigit():
            if name == "0":
                return True, variables.zero
            number = int(name) if len(name) < 6 else len(variables.parameters) + 1
            there = number <= len(variables.parameters)
            return there, variables.parameters[number - 1] if there else ""
        match name:
            case "?":
                return True, str(self._last)
            case "#":
                return True, str(len(variables.parameters))
            case "$":
                return True, str(FIRST_NUMBER if shell.assumes else 1)
            case "!":
                return bool(shell.jobs), str(FIRST_NUMBER + shell.jobs[-1].number) if shell.jobs else ""
            case "-":
                return True, "".join(sign for sign, on in (("e", shell.strict), ("u", shell.must_be_set)) if on)
            case "@" | "*":
                values = variables.parameters
                return bool(values), _joined(values)
            case "PWD":
                return True, shell.folder or None
        if variables.has(name):
            return True, variables.get(name)
        return False, "" if shell.lacks_unset or name in variables.mine else None

    # -- file names

    def _files(self, text: str, pattern: str) -> list[str | None]:
        """The files that match a pattern, or the text itself; None if the files are unknown."""
        shell = self._shell
        folder, slash, last = pattern.rpartition("/")
        if _WILD.search(folder.replace("[*]", "").replace("[?]", "").replace("[[]", "")):
            return [None]
        shown, _, _ = text.rpartition("/")
        try:
            place = shell.place(f"{shown}{slash}")
            if not place.startswith("/"):
                raise Unknown
            names = shell.fs.names(place)
        except OSError:
            return [text]
        except TooMuch:
            raise
        except Unknown:  # few files have such names
            return [None if "*" in last.replace("[*]", "") else text]
        if _PECULIAR.search(last):
            raise Unsupported(f"the pattern {text}")
        shell.fs.work.spend((_PER_PATTERN + len(names) * PER_CHARACTER) * len(last))
        found: list[str | None] = [f"{shown}{slash}{name}" for name in names if _matches(name, last)]
        return found or [text]


def _joined(values: Sequence[str | None]) -> str | None:
    return None if None in values else " ".join(value for value in values if value is not None)


class _NoValue(Exception):
    """A variable in an expression has an unknown value."""


class _Fields:
    """The fields of one word, each with a pattern (empty: it is none)."""

    def __init__(self, expansion: Expansion, word: Word) -> None:
        self._found: list[tuple[str | None, str]] = []
        self._text: list[str] = []
        self._pattern: list[str] = []
        self._is_open = self._is_wild = self._is_unknown = False
        self._expand(expansion, word)
        self._close()

    def _expand(self, expansion: Expansion, word: Word, *, splits: bool = False) -> None:
        """Add the parts of a word. splits: literal text is split, too."""
        for part in word:
            chosen = expansion.chosen(part)
            if chosen is not None:
                self._expand(expansion, chosen, splits=True)
                continue
            value = part.text if isinstance(part, Text) else expansion.value(part)
            if isinstance(value, tuple):
                for index, each in enumerate(value):
                    if index:
                        self._close()
                    self._add(each, quoted=part.quoted)
                self._is_open = self._is_open or (bool(value) and part.quoted)
            elif part.quoted or (isinstance(part, Text) and not splits):
                self._put(value, quoted=part.quoted)
            else:
                self._add(value, quoted=False)

    def __iter__(self) -> Iterator[tuple[str | None, str]]:
        return iter(self._found)

    def _put(self, value: str | None, *, quoted: bool) -> None:
        """Add to the current field."""
        self._is_open = True
        if value is None:
            self._is_unknown = True
            return
        self._text.append(value)
        self._is_wild = self._is_wild or (not quoted and _is_pattern(value))
        self._pattern.append(escaped(value) if quoted else value)

    def _add(self, value: str | None, *, quoted: bool) -> None:
        """Add a value, split into fields at blanks unless it is quoted."""
        if quoted or value is None:
            self._put(value, quoted=quoted)
            return
        for index, field in enumerate(_BLANKS.split(value)):
            if index:
                self._close()
            if field:
                self._put(field, quoted=False)

    def _close(self) -> None:
        if self._is_open:
            text = None if self._is_unknown else "".join(self._text)
            self._found.append((text, "".join(self._pattern) if self._is_wild else ""))
        self._text, self._pattern = [], []
        self._is_open = self._is_wild = self._is_unknown = False


def _is_pattern(text: str) -> bool:
    return "*" in text or "?" in text or ("[" in text and "]" in text)


def escaped(text: str) -> str:
    """A text as a pattern that matches it only."""
    return _WILD.sub(r"[\g<0>]", text)


def _matches(name: str, pattern: str) -> bool:
    return fnmatchcase(name, pattern) and (not name.startswith(".") or pattern.startswith("."))


def _has_braces(word: Word) -> bool:
    """Whether bash makes other words of one such as ``{a,b}`` or ``{1..3}``."""
    text = "".join(part.text for part in word if isinstance(part, Text) and not part.quoted)
    inside = text[text.find("{") : max(0, text.rfind("}"))]
    return "," in inside or ".." in inside
