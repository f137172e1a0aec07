"""The scripts that complete command lines of kcm in shells: printed and installed by Typer.

Typer runs nothing else. The manager and the subcommands parse their own arguments (``component.flagset``), because
Click supports neither ``--flag=false`` nor ``-v2`` nor several errors at once.
"""

from collections.abc import Sequence

import typer

from kcm_cli.cli.manager import fail

INSTALL, SHOW = "--install-completion", "--show-completion"

app = typer.Typer(name="kcm", rich_markup_mode=None, pretty_exceptions_enable=False)


@app.callback(invoke_without_command=True)
def kcm() -> None:
    """Run the controllers."""


def main(arguments: Sequence[str], variable: str) -> int:
    """Print or install the script of a shell; returns the exit code. variable: of the environment, which names it."""
    if arguments[:1] == [INSTALL] and len(arguments) > 1:
        shown = f"{SHOW}={arguments[1]}"
        return fail([f"{INSTALL} takes no shell: run it in that shell, or take the script of kcm {shown}"])
    command = typer.main.get_command(app)
    try:
        return int(command.main(list(arguments), prog_name="kcm", complete_var=variable, standalone_mode=False) or 0)
    except typer.TyperException as error:
        return fail([error.format_message()])
    except typer.Abort:
        return fail(["aborted"])
