"""The subcommands and their modules, which are imported on demand.

Each module has ``main(arguments)``, which returns the exit code, and ``completion(arguments)``, the flags and words
that may come next.
"""

import msgspec


class Subcommand(msgspec.Struct, frozen=True):
    """A subcommand."""

    name: str
    module: str
    help: str


SUBCOMMANDS = (
    Subcommand("sandbox", "kcm_cli.cli.sandbox", "Run a local control plane with the manager on it."),
    Subcommand("top", "kcm_cli.cli.top", "Watch what a controller manager does."),
    Subcommand("trace", "kcm_cli.cli.trace", "Show why something happened, and what followed."),
    Subcommand("bug-report", "kcm_cli.cli.bug_report", "Gather what there is to know about a manager."),
    Subcommand("plan", "kcm_cli.cli.plan", "Show what the controllers would do to a cluster."),
)
