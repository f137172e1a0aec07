"""Command line flags as pflag takes them.

``--flag value``, ``--flag=value``, ``--flag`` for a boolean, ``-v 2``, ``-v=2``, ``-v2``. In names ``_`` and ``-`` are
the same. ``--`` ends the flags. A repeated list or map is extended; of other repeated flags the last value counts.
Guarantee: parsing continues after an error, so that all errors are reported together.

upstream: github.com/spf13/pflag, staging/src/k8s.io/component-base/cli/flag
"""

from collections.abc import Container, Iterable, Iterator, Sequence
from difflib import get_close_matches

import msgspec

from kcm_cli.component.value_types import ValueType
from kcm_cli.machinery.quoting import quote


def before_dashes(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """The arguments before and after ``--``."""
    words = list(arguments)
    cut = words.index("--") if "--" in words else len(words)
    return words[:cut], words[cut + 1 :]


class Flag(msgspec.Struct, frozen=True):
    """One option: its flag, and its field in the configuration file.

    name: the flag; empty for an option without one. section: the heading in the help. hidden: accepted, but not in the
    help. deprecated: the warning when it is used. choices: the allowed values, for completion and docs. unit: of a
    number, for docs. key: the field, with dots for nesting; empty for an option without one. minimum, maximum:
    inclusive bounds, which ``options.problems`` checks.
    """

    name: str
    kind: ValueType
    default: object
    help: str = ""
    section: str = ""
    shorthand: str = ""
    hidden: bool = False
    deprecated: str = ""
    choices: tuple[str, ...] = ()
    unit: str = ""
    key: str = ""
    minimum: int | None = None
    maximum: int | None = None


class Parsed(msgspec.Struct):
    """A parsed command line. ``values``: the given flags, by name. ``rest``: the other arguments."""

    values: dict[str, object] = msgspec.field(default_factory=dict)
    rest: list[str] = msgspec.field(default_factory=list)
    problems: list[str] = msgspec.field(default_factory=list)
    warnings: list[str] = msgspec.field(default_factory=list)


def unexpected(parsed: Parsed, command: str) -> Iterator[str]:
    """The errors about arguments of a command that takes none."""
    for word in parsed.rest:
        hint = "a bool is set with =: --flag=false" if word in ("true", "false") else f"see {command} --help"
        yield f"unexpected argument: {word} ({hint})"


def not_utf8(parsed: Parsed, paths: Container[str] = ()) -> Iterator[str]:
    """The errors about words that are no text in UTF-8. paths: the flags that name files, whose names may be any."""
    for name, value in parsed.values.items():
        for word in value if isinstance(value, tuple) else (value,):
            if name not in paths and isinstance(word, str) and not _is_utf8(word):
                yield f'--{name}: "{word}" is not UTF-8'
    yield from (f'"{word}" is not UTF-8' for word in parsed.rest if not _is_utf8(word))


def _is_utf8(word: str) -> bool:
    try:
        word.encode()
    except UnicodeEncodeError:  # Python keeps such bytes as halves of pairs
        return False
    return True


def normalize(name: str) -> str:
    """The canonical spelling of a flag's name."""
    return name.replace("_", "-")


class FlagSet:
    """Flags by name, in the order in which they were given.

    Raises ValueError for a name or letter used twice, and for a name that cannot be given.
    """

    def __init__(self, flags: Iterable[Flag]) -> None:
        self._flags: dict[str, Flag] = {}
        self._letters: dict[str, Flag] = {}
        for flag in flags:
            if flag.name != normalize(flag.name):
                raise ValueError(f"--{flag.name}: words are joined by -")
            if flag.name in self._flags:
                raise ValueError(f"there is another flag --{flag.name}")
            if flag.shorthand and flag.shorthand in self._letters:
                raise ValueError(f"--{flag.name}: there is another flag -{flag.shorthand}")
            self._flags[flag.name] = flag
            if flag.shorthand:
                self._letters[flag.shorthand] = flag

    def __iter__(self) -> Iterator[Flag]:
        return iter(self._flags.values())

    def __getitem__(self, name: str) -> Flag:
        return self._flags[name]

    def get(self, name: str) -> Flag | None:
        """The flag of this name, in any spelling."""
        return self._flags.get(normalize(name))

    def parse(self, args: Sequence[str]) -> Parsed:
        """Read arguments; never raises."""
        return _Parser(self, args).run()

    def values_of(self, parsed: Parsed) -> dict[str, object]:
        """The values of all flags by name: the given ones, and else the defaults."""
        return {flag.name: parsed.values.get(flag.name, flag.default) for flag in self}

    def letter(self, letter: str) -> Flag | None:
        """The flag of a one-letter form."""
        return self._letters.get(letter)

    def hint(self, name: str) -> str:
        """A suggestion for an unknown flag (its name or letter), to be appended to the error."""
        visible = [flag.name for flag in self._flags.values() if not flag.hidden]
        near = get_close_matches(normalize(name), visible, n=1)
        return f" (did you mean --{near[0]}?)" if near else ""


class _Parser:
    """One run over the arguments."""

    def __init__(self, flags: FlagSet, args: Sequence[str]) -> None:
        self._flags = flags
        self._args = list(args)
        self._at = 0
        self._found = Parsed()

    def run(self) -> Parsed:
        while self._at < len(self._args):
            arg = self._args[self._at]
            self._at += 1
            if arg == "--":
                self._found.rest += self._args[self._at :]
                break
            if arg.startswith("--"):
                self._long(arg[2:])
            elif arg.startswith("-") and len(arg) > 1:
                self._letters(arg[1:])
            else:
                self._found.rest.append(arg)
        return self._found

    def _long(self, body: str) -> None:
        name, equals, text = body.partition("=")
        if not name or name.startswith("-"):
            self._found.problems.append(f"bad flag syntax: --{body}")
            return
        flag = self._flags.get(name)
        if flag is None:
            self._unknown(name, bool(equals))
            return
        self._take(flag, f"--{flag.name}", text if equals else None)

    def _letters(self, body: str) -> None:
        while body:
            letter, body = body[0], body[1:]
            flag = self._flags.letter(letter)
            if flag is None:
                hint = self._flags.hint(letter)
                self._found.problems.append(f"unknown shorthand flag: {quote(letter)} in -{letter}{body}{hint}")
                return
            shown = f"-{letter}, --{flag.name}"
            if body.startswith("="):
                self._take(flag, shown, body[1:])
                return
            if flag.kind.bare is None:
                self._take(flag, shown, body or None)
                return
            self._take(flag, shown, None)

    def _take(self, flag: Flag, shown: str, text: str | None) -> None:
        if text is None:
            text = flag.kind.bare if flag.kind.bare is not None else self._next()
        if text is None:
            self._found.problems.append(f"flag needs an argument: {shown}")
            return
        self._set(flag, shown, text)

    def _next(self) -> str | None:
        if self._at >= len(self._args):
            return None
        self._at += 1
        return self._args[self._at - 1]

    def _set(self, flag: Flag, shown: str, text: str) -> None:
        if flag.kind.blank_keeps and not text:
            return
        try:
            value = flag.kind.parse(text)
        except ValueError as error:
            self._found.problems.append(f"invalid argument {quote(text)} for {quote(shown)} flag: {error}")
            return
        values = self._found.values
        if flag.kind.join is not None and flag.name in values:
            value = flag.kind.join(values[flag.name], value)
        if flag.deprecated and flag.name not in values:
            self._found.warnings.append(f"Flag --{flag.name} has been deprecated, {flag.deprecated}")
        values[flag.name] = value

    def _unknown(self, name: str, has_value: bool) -> None:
        self._found.problems.append(f"unknown flag: --{name}{self._flags.hint(name)}")
        following = self._args[self._at : self._at + 1]
        if not has_value and following and not following[0].startswith("-"):
            self._at += 1  # most likely its value, not a mistake of its own
