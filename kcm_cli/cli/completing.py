"""Completion: what may come next on a command line, in the form that the shell's script takes.

The scripts are Typer's (``kcm --show-completion``). The answers are not, because Typer completes no value behind ``=``,
which is how flags of Kubernetes are usually written. Flags of the manager behind ``--`` are completed as those of kcm.
"""

import importlib
import re
import shlex
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from kcm_cli.cli.subcommands import SUBCOMMANDS
from kcm_cli.component.featuregates import known_gates
from kcm_cli.component.flagset import Flag, FlagSet, before_dashes
from kcm_cli.component.value_types import BOOL, LEVEL
from kcm_cli.manager.controller_map import all_controllers
from kcm_cli.manager.options import flag_set

_BASH_WORDS, _BASH_AT = "COMP_WORDS", "COMP_CWORD"
_LINE, _FISH_ACTION, _POWERSHELL_WORD = (
    "_TYPER_COMPLETE_ARGS",
    "_TYPER_COMPLETE_FISH_ACTION",
    "_TYPER_COMPLETE_WORD_TO_COMPLETE",
)
_BREAKS = frozenset("=:")


class Typed(msgspec.Struct, frozen=True):
    """The words behind ``kcm`` up to the cursor; the last one is to be completed and may be empty.

    done: how many characters of the last word the shell counts as another word.
    """

    words: tuple[str, ...]
    done: int = 0


class Candidate(msgspec.Struct, frozen=True):
    """What the last word may become."""

    word: str
    help: str = ""


def main(environment: Mapping[str, str]) -> int:
    """Answer a completion script; returns the exit code, which tells fish whether there is anything but files."""
    shell = environment["_KCM_COMPLETE"].removeprefix("complete_")
    found = candidates(typed(shell, environment))
    if environment.get(_FISH_ACTION) == "is-args":
        return 0 if found else 1
    sys.stdout.write(_FORMATS.get(shell, _words)(found))
    return 0


def typed(shell: str, environment: Mapping[str, str]) -> Typed:
    """The command line that a shell sent."""
    if shell == "bash":
        at = int(environment[_BASH_AT])
        parts = _split(environment[_BASH_WORDS])
        return _joined([*parts[:at], *(parts[at : at + 1] or [""])][1:])
    line = environment.get(_LINE, "")
    words = _split(line)[1:]
    if environment.get(_POWERSHELL_WORD) == "" or line.endswith(" ") or not words:
        words.append("")
    return Typed(tuple(words))


def candidates(line: Typed) -> tuple[Candidate, ...]:
    """What the last word may become, without what the shell has already."""
    *before, last = line.words or ("",)
    flags, commands = _place(before)
    found = [one for one in _candidates(flags, commands, before, last) if one.word.startswith(last)]
    return tuple(Candidate(one.word[line.done :], one.help) for one in found)


def _place(before: Sequence[str]) -> tuple[FlagSet, Iterable[Candidate]]:
    """The flags and other words that are accepted after these words."""
    named = next((one for one in SUBCOMMANDS if before[:1] == [one.name]), None)
    words, _ = before_dashes(before)
    if named is None or (named.name == "sandbox" and len(words) < len(before)):
        return flag_set(), () if before else (Candidate(one.name, one.help) for one in SUBCOMMANDS)
    module = importlib.import_module(named.module)
    flags, others = module.completion(words[1:]) if hasattr(module, "completion") else (module.FLAGS, ())
    return flags, (Candidate(one) for one in others)


def _candidates(flags: FlagSet, commands: Iterable[Candidate], before: Sequence[str], last: str) -> Iterable[Candidate]:
    name, equals, value = last.partition("=")
    if equals and (flag := _flag(flags, name)) is not None:
        return (Candidate(f"{name}={one}") for one in _values(flag, value))
    if before and (flag := _flag(flags, before[-1])) is not None and flag.kind.bare is None:
        return (Candidate(one) for one in _values(flag, last))
    if last.startswith("-"):
        return (Candidate(f"--{flag.name}", flag.help) for flag in flags if not flag.hidden)
    return commands


def _flag(flags: FlagSet, word: str) -> Flag | None:
    """The flag that a word is, as --name or -n."""
    if word.startswith("--"):
        return flags.get(word[2:])
    return flags.letter(word[1:]) if word.startswith("-") else None


def _values(flag: Flag, value: str) -> Iterator[str]:
    """Values for the last item of a comma-separated list."""
    before, comma, _ = value.rpartition(",")
    return (f"{before}{comma}{one}" for one in _items(flag))


def _items(flag: Flag) -> Sequence[str]:
    if flag.name == "controllers":
        # without '*' alone, which bash would replace by the names of files
        names = [descriptor.name for descriptor in all_controllers()]
        return (*names, *(f"-{name}" for name in names))
    if flag.name == "feature-gates":
        return [f"{name}={value}" for name in known_gates() for value in ("true", "false")]
    if flag.kind is LEVEL:
        return [str(level) for level in range(11)]
    return ("true", "false") if flag.kind is BOOL else flag.choices


def _split(text: str) -> list[str]:
    """The words of a line whose last quotation may be open."""
    lexer = shlex.shlex(text, posix=True)
    lexer.whitespace_split, lexer.commenters = True, ""
    words: list[str] = []
    try:
        words.extend(lexer)
    except ValueError:
        words.append(lexer.token)
    return words


def _joined(parts: Sequence[str]) -> Typed:
    """The words that bash split at = and :, which it sends as words of their own."""
    words: list[str] = []
    done, glue = 0, False
    for part in parts:
        breaks = bool(part) and _BREAKS.issuperset(part)
        if words and (breaks or (glue and part)):
            done = len(words[-1]) + (len(part) if breaks else 0)
            words[-1] += part
        else:
            done = 0
            words.append(part)
        glue = breaks
    return Typed(tuple(words), done)


def _words(found: Sequence[Candidate]) -> str:
    return "\n".join(one.word for one in found)


def _zsh(found: Sequence[Candidate]) -> str:
    """A command that the script evaluates. What precedes a file or the last item of a list is set aside, since zsh
    takes it as a part of the name, and its * as a pattern."""
    if not found:
        return "compset -P '--*='; _files"
    aside = "compset -P '*,'; " if "," in found[0].word else ""
    return f"{aside}_arguments '*: :(({' '.join(map(_described, found))}))'"


def _described(one: Candidate) -> str:
    shown = f'"{_quoted(one.word.rpartition(",")[2])}"'
    return f'{shown}:"{_quoted(one.help)}"' if one.help else shown


def _quoted(text: str) -> str:
    """A text in double quotes inside of single ones. Colons separate a word from its description."""
    return re.sub(r'([\\"$`:])', r"\\\1", text).replace("'", "'\\''")


def _fish(found: Sequence[Candidate]) -> str:
    return "\n".join(f"{one.word}\t{one.help}" if one.help else one.word for one in found)


def _powershell(found: Sequence[Candidate]) -> str:
    return "\n".join(f"{one.word}:::{one.help or ' '}" for one in found)


_FORMATS = {"zsh": _zsh, "fish": _fish, "powershell": _powershell, "pwsh": _powershell}
