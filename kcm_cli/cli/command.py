"""The Typer application ``kcm``: the subcommands, and the scripts that complete command lines in shells.

The modules of subcommands parse their own arguments. A command line of flags alone is the manager's and does not come
here (``cli.main``): ``component.flagset`` parses it, because Click supports neither ``--flag=false`` nor ``-v2`` nor
several errors at once.
"""

import importlib
from collections.abc import Sequence
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from kcm_cli.cli.manager import fail
from kcm_cli.cli.subcommands import SUBCOMMANDS, Subcommand
from kcm_cli.component.garbage import loading

_INSTALL, _SHOW = "--install-completion", "--show-completion"


class Subcommands(TyperGroup):
    """Loads a subcommand's module when it is run."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args[:1] == [_INSTALL] and len(args) > 1:
            raise typer.TyperException(
                f"{_INSTALL} takes no shell: run it in that shell, or take the script of kcm {_SHOW}={args[1]}"
            )
        return list(super().parse_args(ctx, args))

    def list_commands(self, ctx: Any) -> list[str]:
        return [command.name for command in SUBCOMMANDS]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        return next((_plain(command) for command in SUBCOMMANDS if command.name == cmd_name), None)


class PlainCommand(TyperCommand):
    """A subcommand whose module parses its own arguments: ``main(arguments)`` returns the exit code."""

    module: str

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        ctx.args = list(args)
        return []

    def invoke(self, ctx: Any) -> Any:
        try:
            with loading():
                module = importlib.import_module(self.module)
            raise typer.Exit(module.main(ctx.args))
        except ModuleNotFoundError as error:
            if (error.name or "").partition(".")[0] in ("", "kcm_cli"):
                raise  # a defect
            missing = f"the package {error.name}, which is not installed: reinstall kcm with its dependencies"
            raise typer.TyperException(f"kcm {self.name} needs {missing}") from error


def _plain(command: Subcommand) -> Any:
    plain = PlainCommand(command.name, short_help=command.help, add_help_option=False)
    plain.module = command.module
    return plain


app = typer.Typer(
    name="kcm",
    cls=Subcommands,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": []},
)


@app.callback()
def kcm() -> None:
    """Run the controllers."""


def main(arguments: Sequence[str], variable: str) -> int:
    """Run a subcommand, or print or install a script; returns the exit code.

    variable: of the environment; where it is set, it names the shell whose script is wanted.
    """
    command = typer.main.get_command(app)
    try:
        return int(command.main(list(arguments), prog_name="kcm", complete_var=variable, standalone_mode=False) or 0)
    except typer.TyperException as error:
        return fail([error.format_message()])
    except typer.Abort:
        return fail(["aborted"])
