"""The variables of a shell, and the expansions of POSIX.

A script is expanded twice. What does not change while it runs (variables that it does not set, contents of volumes,
names of the host) is expanded before it is parsed; what it sets, when a command runs. A value with characters that a
shell would interpret is held, and inserted when the words of a command are known.
"""

import re
from collections.abc import Mapping

import msgspec
from msgspec.structs import replace

from kcm_cli.sandbox.nodes import shell, text_commands
from kcm_cli.sandbox.nodes.filesystem import PER_CHARACTER, FileSystem
from kcm_cli.sandbox.nodes.shell import Unknown

_PER_SCRIPT = 16.0
"""The cost of a character of a script (see ``filesystem.Work``)."""
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
_SEQ = re.compile(r"\$\(\s*seq((?:\s+-?\d{1,9}){1,3})\s*\)|`\s*seq((?:\s+-?\d{1,9}){1,3})\s*`", re.ASCII)
_ID = re.compile(r"\$\(\s*id\s+-([ug])\s*\)|`\s*id\s+-([ug])\s*`")
_END_OF_WORD = re.compile(r"[^\s;&|<>(](?<!(?<![^\s;&|<>(])\d)(?=[<>])")
"""The end of a word before ``<`` or ``>``, but not a digit alone, which is the descriptor that is redirected."""
_HELD = re.compile("\x06(\\d+)\x06")
_MARKS = re.compile("[\x01-\x07\x0e-\x17]")
"""Characters that are marks here. Scripts with these are unknown."""
_QUOTED = re.compile(r"'[^']*'|\"(?:[^\"\\]|\\.)*\"|\\.|(?<![^\s;&|(])#[^\n]*", re.DOTALL)
"""Texts in quotation marks, characters after a backslash, and comments."""
_TO_MARKS = str.maketrans("$<>|&;()", "\x0f\x10\x11\x12\x13\x14\x15\x16")
_FROM_MARKS = {to: at for at, to in _TO_MARKS.items()}
_TO_MARKS_IN_QUOTES = {at: to for at, to in _TO_MARKS.items() if at != ord("$")}
"""Marks for quoted characters, which a shell does not interpret, and the reverse."""


class Variables(msgspec.Struct):
    """The variables of one shell.

    env: the known ones at its start. values: those that its script has set; None: to an unknown value. own: those that
    its script may set. exported: those of them that are exported and not in ``env``. given: those of one command. held:
    texts to insert when the words are known.
    """

    env: Mapping[str, str]
    fs: FileSystem
    values: dict[str, str | None] = msgspec.field(default_factory=dict)
    own: frozenset[str] = frozenset()
    exported: frozenset[str] = frozenset()
    given: Mapping[str, str] = msgspec.field(default_factory=dict)
    held: list[str] = msgspec.field(default_factory=list)

    def copied(self) -> "Variables":
        """A copy for a subshell."""
        return replace(self, values=dict(self.values))

    def inherited(self) -> "Variables":
        """The variables of a shell that this one starts: those that it exports, and no other ones that it has set."""
        env = self.passed_on()
        shared = self.exported | self.env.keys()
        hidden = {
            name: None if value is None and name in shared else ""
            for name, value in self.values.items()
            if name not in env
        }
        return Variables(env, self.fs, hidden, frozenset(hidden), held=self.held)

    def passed_on(self) -> dict[str, str]:
        """The known variables in a program's environment."""
        self.fs.work.spend(len(self.env) + len(self.exported))
        found = {name: self.values.get(name, self.env.get(name)) for name in (*self.env, *sorted(self.exported))}
        return {**{name: value for name, value in found.items() if value is not None}, **self.given}

    def get(self, name: str) -> str | None:
        """The value; None if it is unknown or not set."""
        return self.values[name] if name in self.values else self.env.get(name)

    def assign(self, word: str) -> None:
        """Assign ``NAME=value``. An unknown value makes the variable unknown."""
        name, _, value = word.translate(_FROM_MARKS).partition("=")
        known = "$" not in value and "`" not in value and len(value) <= _LONGEST_VALUE
        self.values[name] = value if known else None

    def are_own(self, text: str) -> bool:
        """Whether the script may set all variables in a text."""
        return "$" not in _NAMED.sub(lambda match: "" if (match[1] or match[4]) in self.own else "$", text)

    def identity(self, option: str) -> str | None:
        """The output of ``id`` with an option, by its letter; None if it depends on the image, as root's groups do."""
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
        """The output of ``hostname`` with an option; None if it is unknown."""
        if option in ("-f", "--fqdn", "--long"):
            return None if self.fs.volumes is None else self.fs.volumes.fqdn
        name = self.env.get("HOSTNAME")
        if option in ("-s", "--short"):
            return None if name is None else name.partition(".")[0]
        return None if option else name

    def expanded(self, script: str) -> str:
        """Expand what does not change while the script runs. Raises Unknown."""
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
        return _ARITHMETIC.sub(_computed, _CONTENT.sub(content, _SEQ.sub(_sequence, named)))

    def filled(self, word: str, code: int) -> str:
        """A word of a command, expanded when it runs. code: the exit code of the previous command."""
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
        """The text, or a placeholder for it if a shell would interpret it. Outside of quotation marks, whitespace
        becomes one space. Raises Unknown."""
        if _MARKS.search(text):
            raise Unknown
        self.fs.work.spend(len(text) * PER_CHARACTER * 4)  # several passes
        if match.string.count('"', 0, match.start()) % 2 == 0:
            text = " ".join(text.split())
        if _PLAIN.fullmatch(text):
            return text
        self.held.append(text)
        return f"\x06{len(self.held) - 1}\x06"

    def _set_here(self, match: re.Match[str]) -> str:
        """The value of a variable that the script may set, its default, or the text itself if it is unknown."""
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
        """The result of an arithmetic expression; ``$_`` if it is unknown."""
        numbers = [text if text.isdigit() else self.get(text) or "" for text in (match[1], match[3])]
        return _result(numbers[0], match[2], numbers[1]) or "$_"


def _assigned(script: str) -> tuple[set[str], set[str]]:
    """The variables that a script may set, and those of them that are in lines with ``for`` or ``read``."""
    taken: set[str] = set()
    for line in re.split(r"[;\n]", script):
        _, *loops = _LOOP.split(line, maxsplit=1)
        taken.update(word for loop in loops for word in re.findall(r"\w+", loop))
    return taken | set(_ASSIGNMENT.findall(script)), taken


def _quoted(match: re.Match[str]) -> str:
    """A quoted text with marks for the characters that a shell does not interpret in it."""
    text = match[0]
    if text[0] == "'":
        return text.translate(_TO_MARKS)
    if text[0] == "#":
        return ""
    if text[0] == "\\":
        return text[1:].translate(_TO_MARKS) if ord(text[1]) in _TO_MARKS else text
    text = re.sub(r"\\.", lambda each: "\x0f" if each[0] == r"\$" else each[0], text, flags=re.DOTALL)
    return text if "$(" in text or "`" in text else text.translate(_TO_MARKS_IN_QUOTES)


def _sequence(match: re.Match[str]) -> str:
    """The numbers of ``seq``, outside of quotation marks. Raises Unknown."""
    if match.string.count('"', 0, match.start()) % 2:
        return match[0]
    return " ".join(map(str, text_commands.numbers((match[1] or match[2]).split())))


def _group(number: int) -> str:
    return "0(root)" if number == 0 else str(number)


def _computed(match: re.Match[str]) -> str:
    return _result(match[1], match[2], match[3]) or match[0]


def _result(left: str, operator: str, right: str) -> str:
    """The result of an operation; empty if there is none."""
    if not all(re.fullmatch(r"-?\d{1,9}", number, re.ASCII) for number in (left, right)):
        return ""
    a, b = int(left), int(right)
    if operator in "/%":
        if b == 0:
            return ""
        quotient = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
        return str(quotient if operator == "/" else a - quotient * b)
    return str({"+": a + b, "-": a - b, "*": a * b}[operator])
