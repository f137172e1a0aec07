"""Commands that print what a program knows of itself: its variables, its user, its host.

Each takes the shell that runs it and its words, and returns its exit code.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from kcm_cli.sandbox.nodes import file_commands
from kcm_cli.sandbox.nodes.shell import Unknown
from kcm_cli.sandbox.nodes.variables import Variables

READING = frozenset(("env", "printenv"))
"""They read the variables in their environment."""


class Shell(file_commands.Shell, Protocol):
    """The shell that runs a command."""

    variables: Variables


def env(shell: Shell, words: Sequence[str]) -> int:
    """``env`` without words."""
    if words[1:]:
        raise Unknown
    known = shell.variables.passed_on()
    if known:
        shell.say("".join(f"{name}={value}\n" for name, value in known.items()))
    return 0


def printenv(shell: Shell, words: Sequence[str]) -> int:
    """``printenv``, as far as the variables are known."""
    if not words[1:]:
        return env(shell, words)
    known = shell.variables.passed_on()
    for name in words[1:]:
        if name not in known:
            raise Unknown
        shell.say(f"{known[name]}\n")
    return 0


def user(shell: Shell, words: Sequence[str]) -> int:
    """``id``."""
    known = shell.variables.identity(words[1][1:] if len(words) == 2 else "") if len(words) <= 2 else None
    return _said(shell, known)


def hostname(shell: Shell, words: Sequence[str]) -> int:
    known = shell.variables.hostname(words[1] if len(words) == 2 else "") if len(words) <= 2 else None
    return _said(shell, known)


def _said(shell: Shell, known: str | None) -> int:
    if known is None:
        return shell.output_unknown()
    shell.say(f"{known}\n")
    return 0


COMMANDS: Mapping[str, Callable[[Shell, Sequence[str]], int]] = {
    "env": env,
    "printenv": printenv,
    "id": user,
    "hostname": hostname,
}
