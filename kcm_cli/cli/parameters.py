"""Creates Typer parameters from declarations of flags, for shell completion."""

import inspect
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import Any

import typer

from kcm_cli.component.featuregates import known_gates
from kcm_cli.component.flagset import Flag
from kcm_cli.manager.controller_map import all_controllers
from kcm_cli.manager.options import flag_set


@cache
def parameters() -> tuple[Any, ...]:
    """One parameter for each visible flag of the manager."""
    return made(flag_set())


def made(flags: Iterable[Flag], words: tuple[str, ...] = ()) -> tuple[Any, ...]:
    """One parameter for each visible flag. ``words``: arguments that may be given beside them."""

    def command() -> None:
        """Stands for the command while Typer reads its signature."""

    declared = [_parameter(flag) for flag in flags if not flag.hidden]
    command.__signature__ = inspect.Signature([*declared, *_argument(words)])  # type: ignore[attr-defined]  # what inspect reads
    carrier = typer.Typer(add_completion=False)
    carrier.command()(command)
    return tuple(typer.main.get_command(carrier).params)


def _argument(words: tuple[str, ...]) -> Iterator[inspect.Parameter]:
    if words:
        declared = typer.Argument(None, autocompletion=_completer(words))
        yield inspect.Parameter("word", inspect.Parameter.KEYWORD_ONLY, default=declared, annotation=str)


def _parameter(flag: Flag) -> inspect.Parameter:
    names = [f"--{flag.name}"] + ([f"-{flag.shorthand}"] if flag.shorthand else [])
    truth = flag.kind.bare is not None
    declared = typer.Option(
        False if truth else None,
        *names,
        help=flag.help,
        metavar=flag.kind.word,
        show_default=False,
        autocompletion=_completer(_values(flag)),
    )
    return inspect.Parameter(
        f"flag_{flag.name.replace('-', '_')}",  # --for: a keyword is no name of a parameter
        inspect.Parameter.KEYWORD_ONLY,
        default=declared,
        annotation=bool if truth else str,
    )


def _values(flag: Flag) -> tuple[str, ...]:
    if flag.name == "controllers":
        names = [descriptor.name for descriptor in all_controllers()]
        return ("*", *names, *(f"-{name}" for name in names))
    if flag.name == "feature-gates":
        return tuple(f"{name}={value}" for name in known_gates() for value in ("true", "false"))
    return flag.choices


def _completer(values: tuple[str, ...]) -> Callable[[str], Iterable[str]] | None:
    """Completes the last item of a comma-separated list."""
    if not values:
        return None

    def complete(incomplete: str) -> list[str]:
        before, comma, last = incomplete.rpartition(",")
        return [f"{before}{comma}{value}" for value in values if value.startswith(last)]

    return complete
