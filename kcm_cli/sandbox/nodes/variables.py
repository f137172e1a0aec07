"""The variables of a shell, and what it puts in their place: expansions, as POSIX calls them.

A script is expanded twice. What is the same from its beginning to its end (variables that it does not set, contents of
files that others have made, names of the host) is put in before it is parsed; what it sets itself when a command runs.
A text in which a shell would find something to do is held, and put in once the words of a command are known.
"""

import re
from collections.abc import Mapping

import msgspec
from msgspec.structs import replace

from kcm_cli.sandbox.nodes import shell
from kcm_cli.sandbox.nodes.filesystem import PER_CHARACTER, FileSystem
from kcm_cli.sandbox.nodes.shell import Unknown

_PER_SCRIPT = 16.0
"""What a character of a script costs, in files that are looked at."""
_LONGEST_VALUE = 1024
_VARIABLE = re.compile(r"\$(?:\{(\w+)(?::\?[\w ]*)?\}|(\w+))", re.ASCII)
_DEFAULT = re.compile(r"\$\{(\w+)(:?)-([\w./:@,+-]*)\}", re.ASCII)
_NAMED = re.compile(r"\$(?:\{(\w+)(?:(:?)-([\w./:@,+-]*))?\}|(\w+))", re.ASCII)
_ASSIGNMENT, _LOOP = re.compile(r"\b(\w+)="), re.compile(r"\b(?:for|read)\b")
_PLAIN = re.compile(r"[\w./:-]{0,256}", re.ASCII)
_ARITHMETIC = re.compile(r"\$(?:\(\(\s*|\(expr\s+)(-?\d{1,9})\s*([-+*/%])\s*(-?\d{1,9})\s*\)\)?", re.ASCII)
_SUM = re.compile("\x0e(\\w+)([-+*/%])(\\w+)\x0e")
_CONTENT = re.compile(r"\$\(\s*(?:cat|<)\s+(/[\w./-]+)\s*\)|`\s*cat\s+(/[\w./-]+)\s*`", re.ASCII)
_HOSTNAME = re.compile(r"\$\(\s*hostname(?:\s+(-[fs]))?\s*\)|`\s*hostname(?:\s+(-[fs]))?\s*`")
_ID = re.compile(r"\$\(\s*id\s+-([ug])\s*\)|`\s*id\s+-([ug])\s*`")
_END_OF_WORD = re.compile(r"[^\s;&|<>(](?<!(?<![^\s;&|<>(])\d)(?=[<>])")
"""What stands before ``<`` or ``>`` and belongs to another word: not a digit alone, which says what is redirected."""
_HELD = re.compile("\x06(\\d+)\x06")
_MARKS = re.compile("[\x01-\x07\x0e-\x17]")
"""Characters with a meaning of their own here, which no script has."""
_QUOTED = re.compile(r"'[^']*'|\"(?:[^\"\\]|\\.)*\"|\\.|(?<![^\s;&|(])#[^\n]*", re.DOTALL)
"""Texts in quotation marks, characters after a backslash, and comments."""
_TO_MARKS = str.maketrans("$<>|&;()", "\x0f\x10\x11\x12\x13\x14\x15\x16")
_FROM_MARKS = {to: at for at, to in _TO_MARKS.items()}
_TO_MARKS_IN_QUOTES = {at: to for at, to in _TO_MARKS.items() if at != ord("$")}
"""Quoted characters, which no shell reads anything into, and back."""


class Variables(msgspec.Struct):
    """What one shell knows.

    env: what it found when it started, as far as that is known. values: what its script has set; None: to what is
    unknown. own: the variables that its script may set. exported: those of them that its programs find; these are not
    in ``env``. given: what is set for one command. held: texts that are put in once the words are known.
    """

    env: Mapping[str, str]
    fs: FileSystem
    values: dict[str, str | None] = msgspec.field(default_factory=dict)
    own: frozenset[str] = frozenset()
    exported: frozenset[str] = frozenset()
    given: Mapping[str, str] = msgspec.field(default_factory=dict)
    held: list[str] = msgspec.field(default_factory=list)

    def copied(self) -> "Variables":
        """For a shell that goes its own way from here."""
        return replace(self, values=dict(self.values))

    def inherited(self) -> "Variables":
        """Those of a shell within this one: what this one exports, and nothing else that it has set."""
        env = self.passed_on()
        shared = self.exported | self.env.keys()
        hidden = {
            name: None if value is None and name in shared else ""
            for name, value in self.values.items()
            if name not in env
        }
        return Variables(env, self.fs, hidden, frozenset(hidden), held=self.held)

    def passed_on(self) -> dict[str, str]:
        """What a program finds, as far as it is known."""
        self.fs.work.spend(len(self.env) + len(self.exported))
        found = {name: self.values.get(name, self.env.get(name)) for name in (*self.env, *sorted(self.exported))}
        return {**{name: value for name, value in found.items() if value is not None}, **self.given}

    def get(self, name: str) -> str | None:
        """None: unknown, or not set."""
        return self.values[name] if name in self.values else self.env.get(name)

    def assign(self, word: str) -> None:
        """``NAME=value``. A value that is not known makes the variable unknown."""
        name, _, value = word.translate(_FROM_MARKS).partition("=")
        known = "$" not in value and "`" not in value and len(value) <= _LONGEST_VALUE
        self.values[name] = value if known else None

    def are_own(self, text: str) -> bool:
        """Whether the script sets all that the text names."""
        return "$" not in _NAMED.sub(lambda match: "" if (match[1] or match[4]) in self.own else "$", text)

    def identity(self, option: str) -> str | None:
        """What ``id`` says with an option, by its letter. None: it is the image's, as are the groups of root."""
        volumes = self.fs.volumes
        if volumes is None or option not in ("", "u", "g", "G"):
            return None
        user, group = volumes.user, volumes.group
        if option in ("u", "g"):
            known = user if option == "u" else group
            return None if known is None else str(known)
        if not user or group is None:
            return None
        groups = [group, *sorted(set(volumes.groups) - {group})]
        if option == "G":
            return " ".join(map(str, groups))
        return f"uid={user} gid={_group(group)} groups={','.join(map(_group, groups))}"

    def hostname(self, option: str) -> str | None:
        """What ``hostname`` says with an option. None: unknown."""
        if option in ("-f", "--fqdn", "--long"):
            return None if self.fs.volumes is None else self.fs.volumes.fqdn
        name = self.env.get("HOSTNAME")
        if option in ("-s", "--short"):
            return None if name is None else name.partition(".")[0]
        return None if option else name

    def expanded(self, script: str) -> str:
        """A script with all that is the same from its beginning to its end. Raises Unknown."""
        self.fs.work.spend(len(script) * _PER_SCRIPT)
        if len(script) > shell.MOST_CHARACTERS or _MARKS.search(script):
            raise Unknown
        if "<<" not in script:
            script = _END_OF_WORD.sub(r"\g<0> ", _QUOTED.sub(_quoted, script))
        assigned, taken = _assigned(script)
        self.own |= assigned
        for name in taken:
            self.values[name] = None

        def value(match: re.Match[str]) -> str:
            name = match[1] or match[2]
            known = None if name in self.own else self.env.get(name)
            if not known and "?" in match[0]:
                return match[0]  # the shell ends
            return match[0] if known is None else self._hold(known, match)

        def default(match: re.Match[str]) -> str:
            if match[1] in self.own:
                return match[0]
            known = self.env.get(match[1])
            return self._hold(known, match) if known or (known is not None and not match[2]) else match[3]

        def content(match: re.Match[str]) -> str:
            try:
                found = self.fs.of_volumes(lambda volumes: volumes.read(match[1] or match[2]))
            except (OSError, Unknown):
                return match[0]
            return self._hold(found.decode("utf-8", "surrogateescape").rstrip("\n"), match)

        def host(match: re.Match[str]) -> str:
            known = self.hostname(match[1] or match[2] or "")
            return match[0] if known is None else self._hold(known, match)

        def identity(match: re.Match[str]) -> str:
            known = self.identity(match[1] or match[2])
            return match[0] if known is None else known

        script = _ID.sub(identity, script)
        named = _HOSTNAME.sub(host, _DEFAULT.sub(default, _VARIABLE.sub(value, script)))
        return _ARITHMETIC.sub(_computed, _CONTENT.sub(content, named))

    def filled(self, word: str, code: int) -> str:
        """A word of a command that runs now. code: the exit code of the command before."""
        word = word.replace("$?", str(code))
        if self.own and "$" in word:
            word = _NAMED.sub(self._set_here, word)
            self.fs.work.spend(len(word) * PER_CHARACTER)
        if shell.COMPUTED in word:
            word = _SUM.sub(self._sum, word)
        word = word.translate(_FROM_MARKS)
        if not self.held or "\x06" not in word:
            return word
        word = _HELD.sub(lambda match: self.held[int(match[1])], word)
        self.fs.work.spend(len(word) * PER_CHARACTER)
        return word

    def _hold(self, text: str, match: re.Match[str]) -> str:
        """The text, or what stands for it where a shell would read something into it. Without quotation marks spaces
        and lines become one space. Raises Unknown."""
        if _MARKS.search(text):
            raise Unknown
        self.fs.work.spend(len(text) * PER_CHARACTER * 4)  # each is looked at
        if match.string.count('"', 0, match.start()) % 2 == 0:
            text = " ".join(text.split())
        if _PLAIN.fullmatch(text):
            return text
        self.held.append(text)
        return f"\x06{len(self.held) - 1}\x06"

    def _set_here(self, match: re.Match[str]) -> str:
        """A variable that the script has set, or what stands in its place."""
        name = match[1] or match[4]
        if name not in self.own:
            return match[0]
        known = self.get(name)
        if known or (known is not None and match[2] != ":"):
            self.fs.work.spend(len(known) * PER_CHARACTER)
            return known
        unset = known is not None or name not in self.values
        return match[3] if unset and match[3] is not None else match[0]

    def _sum(self, match: re.Match[str]) -> str:
        """The sum of what variables are then, or what stands for the unknown."""
        numbers = [text if text.isdigit() else self.get(text) or "" for text in (match[1], match[3])]
        return _result(numbers[0], match[2], numbers[1]) or "$_"


def _assigned(script: str) -> tuple[set[str], set[str]]:
    """The variables that a script may set, and those of them that it does not set to a word."""
    taken: set[str] = set()
    for line in re.split(r"[;\n]", script):
        _, *loops = _LOOP.split(line, maxsplit=1)
        taken.update(word for loop in loops for word in re.findall(r"\w+", loop))
    return taken | set(_ASSIGNMENT.findall(script)), taken


def _quoted(match: re.Match[str]) -> str:
    """A quoted text with marks for what would mean something without quotation."""
    text = match[0]
    if text[0] == "'":
        return text.translate(_TO_MARKS)
    if text[0] == "#":
        return ""
    if text[0] == "\\":
        return text[1:].translate(_TO_MARKS) if ord(text[1]) in _TO_MARKS else text
    text = re.sub(r"\\.", lambda each: "\x0f" if each[0] == r"\$" else each[0], text, flags=re.DOTALL)
    return text if "$(" in text or "`" in text else text.translate(_TO_MARKS_IN_QUOTES)


def _group(number: int) -> str:
    return "0(root)" if number == 0 else str(number)


def _computed(match: re.Match[str]) -> str:
    return _result(match[1], match[2], match[3]) or match[0]


def _result(left: str, operator: str, right: str) -> str:
    """Empty where there is none."""
    if not all(re.fullmatch(r"-?\d{1,9}", number, re.ASCII) for number in (left, right)):
        return ""
    a, b = int(left), int(right)
    if operator in "/%":
        if b == 0:
            return ""
        quotient = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
        return str(quotient if operator == "/" else a - quotient * b)
    return str({"+": a + b, "-": a - b, "*": a * b}[operator])
