"""The Typer command ``kcm``: the manager and the subcommands.

Typer handles commands, completion and exits. ``component.flagset`` parses the manager's flags, because Click supports
neither ``--flag=false`` nor ``-v2`` nor several errors at once. For completion, the same declarations become Typer
parameters on demand.
"""

import importlib
from difflib import get_close_matches
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from kcm_cli.cli.manager import run_manager
from kcm_cli.cli.subcommands import SUBCOMMANDS, Subcommand
from kcm_cli.component.flagset import Parsed
from kcm_cli.manager.options import flag_set

_COMPLETION_FLAGS = frozenset({"--install-completion", "--show-completion"})


class ManagerGroup(TyperGroup):
    """Parses the manager's flags as pflag does. A first argument that names a subcommand selects it."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        names_command = bool(args) and any(command.name == args[0] for command in SUBCOMMANDS)
        if ctx.resilient_parsing or names_command or not _COMPLETION_FLAGS.isdisjoint(args):
            return list(super().parse_args(ctx, args))
        ctx.obj = flag_set().parse(args)
        _look_for_commands(ctx.obj)
        ctx.args = []
        return []

    def list_commands(self, ctx: Any) -> list[str]:
        return [command.name for command in SUBCOMMANDS]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        return next((_load(command) for command in SUBCOMMANDS if command.name == cmd_name), None)

    def get_params(self, ctx: Any) -> list[Any]:
        own = super().get_params(ctx)
        if not ctx.resilient_parsing:
            return own
        # imported here: only completion needs parameters
        from kcm_cli.cli.parameters import parameters

        taken = {name for parameter in own for name in parameter.opts}
        return [p for p in parameters() if taken.isdisjoint(p.opts)] + own


class PlainCommand(TyperCommand):
    """A subcommand whose module parses its own arguments: ``main(arguments)`` returns the exit code,
    ``completion(arguments)`` the flags and words that may come next."""

    module: str

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        ctx.args = list(args)
        return []

    def get_params(self, ctx: Any) -> list[Any]:
        if not ctx.resilient_parsing:
            return []
        # imported here: only completion needs parameters
        from kcm_cli.cli.parameters import made

        return list(made(*importlib.import_module(self.module).completion(ctx.args)))

    def invoke(self, ctx: Any) -> Any:
        try:
            raise typer.Exit(importlib.import_module(self.module).main(ctx.args))
        except ModuleNotFoundError as error:
            raise _missing(str(self.name), error) from error


def _missing(command: str, error: ModuleNotFoundError) -> Exception:
    """The error about a missing module: a package that is not installed, or a defect if the module is kcm's own."""
    if (error.name or "").partition(".")[0] in ("", "kcm_cli"):
        return error
    return typer.TyperException(
        f"kcm {command} needs the package {error.name}, which is not installed: reinstall kcm with its dependencies"
    )


def _look_for_commands(parsed: Parsed) -> None:
    """Report arguments that look like misplaced or misspelt subcommands."""
    names = [command.name for command in SUBCOMMANDS]
    for word in list(parsed.rest):
        if near := get_close_matches(word, names, n=1):
            parsed.rest.remove(word)
            hint = f"did you mean kcm {near[0]}?" if word != near[0] else f"it goes first: kcm {word} [flags]"
            parsed.problems.append(f"unexpected argument: {word} ({hint})")


def _load(command: Subcommand) -> Any:
    loaded = PlainCommand(command.name, short_help=command.help, add_help_option=False)
    loaded.module = command.module
    return loaded


app = typer.Typer(
    name="kcm",
    cls=ManagerGroup,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": []},
)


@app.callback(invoke_without_command=True)
def manager(ctx: typer.Context) -> None:
    """Run the controllers."""
    if ctx.invoked_subcommand is None:
        raise typer.Exit(run_manager(ctx.obj))
