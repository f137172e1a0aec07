"""The commands beside the manager itself: where each is, so that it is imported only when it is asked for.

Each module has ``app``, a ``typer.Typer`` with one command (or a group of them); a ``plain`` one has
``main(arguments) -> exit code`` and ``completion(arguments)`` instead.
"""

import msgspec


class Subcommand(msgspec.Struct, frozen=True):
    """A command of our own."""

    name: str
    module: str
    help: str
    plain: bool = False


SUBCOMMANDS = (
    Subcommand("sandbox", "kcm_cli.cli.sandbox", "Run a local control plane with the manager on it.", plain=True),
    Subcommand("plan", "kcm_cli.cli.plan", "Show what the controllers would do to a cluster.", plain=True),
)
