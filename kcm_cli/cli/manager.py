"""The manager's command."""

import logging
import sys
import textwrap
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING

from kcm_cli.cli import show_version, usage
from kcm_cli.cli.subcommands import SUBCOMMANDS
from kcm_cli.component import featuregates, logs
from kcm_cli.component.flagset import Parsed
from kcm_cli.component.garbage import loading
from kcm_cli.component.generic_config import GenericConfig
from kcm_cli.component.leader_config import LeaderElectionConfig
from kcm_cli.component.version import raw_version
from kcm_cli.machinery.quoting import escaped, quote
from kcm_cli.manager.controller_map import all_controllers
from kcm_cli.manager.options import flag_set, flags_beside_file

if TYPE_CHECKING:
    from kcm_cli.manager.config import Config, ConfigError

log = logging.getLogger(__name__)

ABOUT = (
    "kcm runs the controllers of a Kubernetes cluster: loops that watch the state of the cluster through the API "
    "server and make the changes that bring it closer to the state asked for. It takes the place of "
    "kube-controller-manager."
)


def run_manager(arguments: Sequence[str]) -> int:
    """Run the manager, or print help or version; returns the exit code."""
    parsed = flag_set().parse(arguments)
    _look_for_commands(parsed)
    if parsed.values.get("help") and not parsed.problems:
        sys.stdout.write(help_text(usage.width(), bold=usage.is_bold()))
        return 0
    version = parsed.values.get("version", "false")
    if version in ("true", "raw") and not parsed.problems and not parsed.rest:
        if version == "raw":
            sys.stdout.write(f"{raw_version()}\n")
        else:
            show_version.show()
        return 0

    # imported here: help and version complete no configuration
    from kcm_cli.manager.config import ConfigError, complete

    try:
        config = complete(parsed)
    except ConfigError as error:
        return _refuse(error)
    target = str(parsed.values.get("write-config-to", ""))
    if not target:
        return _start(config)
    if beside := flags_beside_file(parsed):
        names = ", ".join(f"--{name}" for name in beside)
        sys.stderr.write(f"Warning: a configuration file has no fields for {names}: give them beside --config\n")
    return _write(config, target)


def _look_for_commands(parsed: Parsed) -> None:
    """Report arguments that look like misplaced or misspelt subcommands, or that are flags here."""
    names = [command.name for command in SUBCOMMANDS]
    for word in list(parsed.rest):
        if word in ("help", "version"):
            parsed.rest.remove(word)
            parsed.problems.append(f"unexpected argument: {word} (kcm --{word})")
            continue
        if near := get_close_matches(word, names, n=1):
            parsed.rest.remove(word)
            hint = f"did you mean kcm {near[0]}?" if word != near[0] else f"it goes first: kcm {word} [flags]"
            parsed.problems.append(f"unexpected argument: {word} ({hint})")


def _refuse(error: "ConfigError") -> int:
    """Report the errors: in the log if that is JSON, otherwise on standard error."""
    if error.logs is None or error.logs.format != "json":
        return fail(error.problems)
    logs.setup(error.logs)
    for problem in error.problems:
        log.error("command failed", extra={"fields": {"err": problem}})
    return 1


def fail(problems: tuple[str, ...] | list[str]) -> int:
    """Print errors to standard error, one line each, without terminal escapes; returns the exit code 1."""
    for problem in problems:
        sys.stderr.write(f"Error: {escaped(_as_typed(' '.join(problem.split())))}\n")
    return 1


def _as_typed(text: str) -> str:
    """Words of the command line in UTF-8, whatever the locale is that Python decoded them by."""
    try:
        return text.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    except UnicodeEncodeError:  # half a pair, which was in no word
        return text


def help_text(columns: int, *, bold: bool = False) -> str:
    """The output of --help."""
    about = ABOUT if columns < usage.LEAST_WIDTH else textwrap.fill(ABOUT, columns)
    lines = [about, "", "Usage:", "  kcm [flags]"]
    width = max(len(command.name) for command in SUBCOMMANDS)
    for command in SUBCOMMANDS:
        line = f"kcm {f'{command.name} [flags]':{width + 8}}  {command.help}"
        lines += [f"  {line}"] if len(line) <= columns - 2 else usage.wrapped(line, columns, hanging=6)
    lines += usage.sections(flag_set(), columns, bold=bold)
    lines += _controllers(columns, bold=bold)
    lines += _gates(columns, bold=bold)
    return "\n".join(lines) + "\n"


def _controllers(columns: int, *, bold: bool) -> Iterator[str]:
    """What --controllers may name."""
    usual = sorted(one.name for one in all_controllers() if one.default_enabled)
    others = sorted(one.name for one in all_controllers() if not one.default_enabled)
    yield from usage.title("Controllers", bold=bold)
    yield from usage.wrapped(", ".join(usual), columns)
    yield from usage.title("Controllers that are off by default", bold=bold)
    yield from usage.wrapped(", ".join(others), columns)


def _gates(columns: int, *, bold: bool) -> Iterator[str]:
    """What --feature-gates may name: a line each, in upstream's form."""
    yield from usage.title("Feature gates", bold=bold)
    for gate in featuregates.resolve(()).gates.values():
        if gate.stage in ("ALPHA", "BETA"):
            yield from usage.wrapped(
                f"kube:{gate.name}=true|false ({gate.stage} - default={str(gate.default).lower()})", columns
            )


def _write(config: "Config", target: str) -> int:
    # imported here: YAML is needed for nothing else
    from kcm_cli.manager.configz import text

    written = text(config.component, as_json=target.endswith(".json"))
    if target == "-":
        sys.stdout.write(written)
        return 0
    try:
        Path(target).write_text(written, encoding="utf-8")
    except OSError as error:
        return fail([f"cannot write the configuration to {target}: {error.strerror}"])
    return 0


def announce(config: "Config") -> None:
    """Set up logging, and log warnings and, at -v=1, the values of all flags."""
    logs.setup(config.logs)
    for warning in config.warnings:
        log.warning(warning)
    if log.isEnabledFor(logs.V1):
        for name, value in config.flags.items():
            log.log(logs.V1, "FLAG: --%s=%s", name, quote(value))


def _start(config: "Config") -> int:
    announce(config)
    if warning := lease_warning(config.component.generic):
        log.warning(warning)
    # imported here: help, version and mistakes need no server and no client
    with loading():
        from kcm_cli.manager.app import run

    return run(config)


def lease_warning(generic: GenericConfig) -> str:
    """A warning about a few controllers under the lease of a whole manager, as in a trial beside it; may be empty."""
    election, usual = generic.leader_election, LeaderElectionConfig()
    lease = (election.resource_namespace, election.resource_name)
    shared = lease == (usual.resource_namespace, usual.resource_name)
    if not election.enabled or not shared or "*" in generic.controllers:
        return ""
    named = ",".join(generic.controllers)
    return (
        f"--controllers={named} does not contain *: while kcm holds the lease {'/'.join(lease)}, no manager runs the "
        "other controllers of the cluster. Beside another manager, set --leader-elect-resource-name"
    )
