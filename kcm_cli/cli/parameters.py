"""The manager's flags as Typer parameters, made from their declarations: what shell completion reads."""

import inspect
from collections.abc import Callable, Iterable
from functools import cache
from typing import Any

import typer

from kcm_cli.component.featuregates import known_gates
from kcm_cli.component.flagset import Flag
from kcm_cli.manager.controller_map import all_controllers
from kcm_cli.manager.options import flag_set


@cache
def parameters() -> tuple[Any, ...]:
    """One parameter for each visible flag."""

    def manager() -> None:
        """Stands for the manager while Typer reads its signature."""

    manager.__signature__ = inspect.Signature([_parameter(flag) for flag in flag_set() if not flag.hidden])  # type: ignore[attr-defined]  # what inspect reads
    carrier = typer.Typer(add_completion=False)
    carrier.command()(manager)
    return tuple(typer.main.get_command(carrier).params)


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
        flag.name.replace("-", "_"),
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
    """Completes the last item of a list with commas between."""
    if not values:
        return None

    def complete(incomplete: str) -> list[str]:
        before, comma, last = incomplete.rpartition(",")
        return [f"{before}{comma}{value}" for value in values if value.startswith(last)]

    return complete
