"""The subcommands and their modules, which are imported on demand.

Each module has ``main(arguments)``, which returns the exit code, and ``FLAGS`` or, if other words may come next than
these, ``completion(arguments)``, which returns the flags and words.
"""

from collections.abc import Sequence

import msgspec

Exits = tuple[tuple[int, str], ...]
USUAL_EXITS: Exits = ((0, "success"), (1, "an error, which is printed"))
MANAGER_EXITS: Exits = (
    (0, "stopped by SIGTERM or SIGINT, or help or the version printed"),
    (1, "an error, which is printed or logged; the lease was lost; a second SIGTERM or SIGINT"),
    (2, "SIGQUIT, after the stacks of all threads and tasks"),
)


class Subcommand(msgspec.Struct, frozen=True):
    """A subcommand. exits: its exit codes with their meanings."""

    name: str
    module: str
    help: str
    exits: Exits = USUAL_EXITS


SUBCOMMANDS = (
    Subcommand(
        "sandbox",
        "kcm_cli.cli.sandbox",
        "Run a local control plane with the manager on it.",
        ((0, "stopped by SIGTERM, SIGINT or SIGHUP"), (1, "an error, which is printed or logged")),
    ),
    Subcommand("top", "kcm_cli.cli.top", "Watch what a controller manager does."),
    Subcommand("trace", "kcm_cli.cli.trace", "Show why something happened, and what followed."),
    Subcommand("bug-report", "kcm_cli.cli.bug_report", "Gather what there is to know about a manager."),
    Subcommand(
        "plan",
        "kcm_cli.cli.plan",
        "Show what the controllers would do to a cluster.",
        (
            (0, "success"),
            (1, "an error, which is printed"),
            (2, "something changes (--detailed-exitcode), or not all has happened yet (--compare)"),
            (3, "a condition of --fail-on holds, or it did not happen as planned (--compare)"),
        ),
    ),
)


def is_named(arguments: Sequence[str]) -> bool:
    """Whether the first argument is a subcommand."""
    return any(arguments[:1] == [command.name] for command in SUBCOMMANDS)


def subcommand(name: str) -> Subcommand:
    """The subcommand of this name."""
    return next(one for one in SUBCOMMANDS if one.name == name)
