"""Formats help: sections of flags, wrapped to the terminal's width, and to a readable one in pipes.

The layout is pflag's: six columns for the shorthand, the name, the type, and the text with the default in a second
column, or below the flag on narrow terminals.
"""

import os
import shutil
import sys
import textwrap
from collections.abc import Iterable, Iterator
from itertools import groupby

from kcm_cli.cli.subcommands import Exits
from kcm_cli.component.flagset import Flag, FlagSet
from kcm_cli.machinery.quoting import quote

LEAST_WIDTH = 24
_PIPE_WIDTH = 100
_NARROW = 50
_INDENT, _NARROW_INDENT = 16, 8


def width() -> int:
    """COLUMNS, or the width of the terminal on standard output, or 100 in a pipe: a pager shows what it gets."""
    return shutil.get_terminal_size((_PIPE_WIDTH, 24)).columns


def is_bold() -> bool:
    """Whether titles may be bold: on a terminal that can, unless NO_COLOR is set (https://no-color.org)."""
    plain = os.environ.get("NO_COLOR", "") or os.environ.get("TERM", "") in ("", "dumb")
    return sys.stdout.isatty() and not plain


def help_text(about: str, flags: FlagSet | Iterable[Flag], exits: Exits = ()) -> str:
    """The output of --help. about: see ``parts``."""
    columns = width()
    text, commands = parts(about)
    lines = [*wrapped(text, columns, 0), "", "Usage:"]
    for command in commands:
        lines += wrapped(command, columns, hanging=6) if len(command) > columns - 2 else [f"  {command}"]
    if exits:
        lines += ["", *wrapped(f"Exit codes: {', '.join(f'{code} {why}' for code, why in exits)}.", columns, 0)]
    return "\n".join([*lines, *sections(flags, columns)]) + "\n"


def parts(about: str) -> tuple[str, list[str]]:
    """The description of a command, and its usage lines, which follow after a line ``Usage:``."""
    text, _, commands = about.partition("\n\nUsage:\n")
    return " ".join(text.split()), [line.strip() for line in commands.splitlines()]


def sections(flags: FlagSet | Iterable[Flag], columns: int, *, bold: bool = False) -> Iterator[str]:
    """The lines of all sections with visible flags."""
    visible = [flag for flag in flags if not flag.hidden]
    for section, members in groupby(visible, key=lambda flag: flag.section):
        yield from title(f"{section} flags", bold=bold)
        for flag in members:
            yield from _flag_lines(flag, columns)


def title(text: str, *, bold: bool = False) -> Iterator[str]:
    """The lines of a section's title."""
    yield ""
    yield f"\x1b[1m{text}:\x1b[0m" if bold else f"{text}:"
    yield ""


def wrapped(text: str, columns: int, indent: int = 2, *, hanging: int | None = None) -> list[str]:
    """The lines of a text; one line below LEAST_WIDTH columns. Words are not broken, so that they can be copied.
    hanging: the indent of all lines but the first."""
    pad = " " * indent
    if columns < LEAST_WIDTH:
        return [pad + text]
    return textwrap.wrap(
        text,
        columns,
        initial_indent=pad,
        subsequent_indent=pad if hanging is None else " " * hanging,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _flag_lines(flag: Flag, columns: int) -> Iterator[str]:
    head = _head(flag)
    text = flag_text(flag)
    if columns < LEAST_WIDTH:
        yield f"{head}   {text}"
        return
    yield head
    yield from wrapped(text, columns, _INDENT if columns >= _NARROW else _NARROW_INDENT)


def _head(flag: Flag) -> str:
    letter = f"-{flag.shorthand}, " if flag.shorthand else "    "
    head = f"  {letter}--{flag.name}"
    if flag.kind.word == "bool":
        return head
    if flag.kind.bare is not None:
        return f"{head} {flag.kind.word}[={flag.kind.bare}]"
    return f"{head} {flag.kind.word}"


def flag_text(flag: Flag) -> str:
    """The help of a flag, with its default."""
    if flag.default == flag.kind.zero or flag.default in ("", ()):
        return flag.help
    shown = flag.kind.show(flag.default)
    return f"{flag.help} (default {quote(shown) if flag.kind.quoted else shown})"
