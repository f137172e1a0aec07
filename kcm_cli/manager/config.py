"""The completed configuration of a run. Options, flags and files are not read afterwards.

``load`` does all steps: arguments → values (file below flags) → options → problems → completion.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace  # noqa: TID251  # option groups are dataclasses
from typing import TYPE_CHECKING, Any

import msgspec

from kcm_cli.component import featuregates, options
from kcm_cli.component.auth_config import AuthenticationConfig, AuthorizationConfig
from kcm_cli.component.featuregates import FeatureGates
from kcm_cli.component.flagset import Parsed, unexpected
from kcm_cli.component.leader_config import DEFAULT_MIGRATION, LeaderMigrationConfig
from kcm_cli.component.logs_config import LogsConfig
from kcm_cli.component.metrics_config import MetricsConfig
from kcm_cli.component.serving_config import ServingConfig
from kcm_cli.component.version import OWN_VERSION, EffectiveVersion, effective_version
from kcm_cli.manager import without_effect
from kcm_cli.manager.config_files import component_values, leader_migration
from kcm_cli.manager.config_files import tracing as read_tracing
from kcm_cli.manager.controller_map import all_controllers, installed
from kcm_cli.manager.options import ComponentConfig, Options, bindings, flag_set
from kcm_cli.manager.validation import problems_of

if TYPE_CHECKING:
    from kcm_cli.component.tracing_config import TracingConfig


class ConfigError(Exception):
    """The command line or the configuration file is invalid; one line for each error.

    logs: how to log the errors; None if the logging flags themselves are invalid.
    """

    def __init__(self, problems: Sequence[str], logs: LogsConfig | None = None) -> None:
        self.problems = tuple(problems)
        self.logs = logs
        super().__init__("; ".join(self.problems))


class Config(msgspec.Struct, frozen=True):
    """Everything that a run uses.

    component: the configuration that /configz shows. Controllers get their part of it, which has the name of their
    folder. controllers: the names of the controllers to run, by name. master: an address of the API server
    that overrides the kubeconfig's; empty for none. tracing: where spans are sent; None for nowhere. flags: all
    flags with their values as text, for the log at the start and /flagz. warnings: what to log at the start.
    """

    component: ComponentConfig
    serving: ServingConfig
    authentication: AuthenticationConfig
    authorization: AuthorizationConfig
    metrics: MetricsConfig
    logs: LogsConfig
    gates: FeatureGates
    version: EffectiveVersion
    git_version: str
    controllers: tuple[str, ...]
    master: str
    shutdown_timeout_s: float
    warm_standby: bool
    tracing: "TracingConfig | None"
    flags: Mapping[str, str]
    warnings: tuple[str, ...]

    def by_type(self) -> dict[type, object]:
        """The groups of options by their type, with which each controller finds its own."""
        return {type(part): part for part in options.parts(self.component)}


def load(args: Sequence[str]) -> Config:
    """Complete the configuration of a command line. Raises ConfigError with all errors."""
    return complete(flag_set().parse(args))


def complete(parsed: Parsed) -> Config:
    """Complete the configuration of parsed flags. Raises ConfigError: all errors, and controllers that are left out."""
    problems = [*parsed.problems, *unexpected(parsed, "kcm")]
    given, file_problems = _given(parsed)
    tree = options.build(Options, given)
    problems += [*file_problems, *options.problems(tree)]
    version = EffectiveVersion()
    try:
        version = effective_version(tree.manager.emulated_versions, tree.manager.min_compatibility_versions)
    except ValueError as error:
        problems.append(str(error))
    resolved = featuregates.resolve(tree.manager.feature_gates, version)
    component, migration_problems = _completed(tree)
    tracing, tracing_problems = read_tracing(tree.tracing.config_file) if tree.tracing.config_file else (None, [])
    problems += [*version.problems(), *resolved.problems, *problems_of(tree, resolved.gates)]
    problems += [*migration_problems, *tracing_problems]
    if problems:
        raise ConfigError([*problems, *installed().problems], None if parsed.problems else tree.logs)
    return Config(
        component=component,
        serving=tree.serving,
        authentication=tree.authentication,
        authorization=tree.authorization,
        metrics=tree.metrics,
        logs=tree.logs,
        gates=resolved.gates,
        version=version,
        git_version=_reported(str(parsed.values.get("version", "false"))),
        controllers=all_controllers().selected(component.generic.controllers),
        master=tree.server_address.master,
        shutdown_timeout_s=tree.manager.shutdown_timeout_s,
        warm_standby=tree.standby.warm_standby,
        tracing=tracing,
        flags=_flag_texts(given, parsed),
        warnings=(
            *installed().problems,
            *parsed.warnings,
            *resolved.warnings,
            *(tracing.warnings() if tracing is not None else ()),
            *without_effect.warnings(given, parsed.values),
        ),
    )


def _given(parsed: Parsed) -> tuple[dict[options.Path, Any], list[str]]:
    """The values of the configuration file and, above them, of the flags, by attribute path, and the file's errors."""
    values: dict[options.Path, Any] = {}
    problems: list[str] = []
    if parsed.values.get("config"):
        given, problems = component_values(str(parsed.values["config"]))
        values |= given
    chosen = parsed.values
    values |= {one.path: chosen[one.option.name] for one in bindings() if one.option.name in chosen}
    return values, problems


def _completed(tree: Options) -> tuple[ComponentConfig, list[str]]:
    """The component configuration with the names of controllers and with the content of the leader migration file,
    and the errors of that file."""
    component, problems = tree.component, list[str]()
    generic, name = component.generic, tree.leader_migration.config_file
    migration = generic.leader_migration
    if generic.leader_migration_enabled and name:
        migration, problems = leader_migration(name)
    elif generic.leader_migration_enabled and migration == LeaderMigrationConfig():
        migration = DEFAULT_MIGRATION
    named = all_controllers().canonical(generic.controllers)
    return replace(component, generic=replace(generic, controllers=named, leader_migration=migration)), problems


def _reported(requested: str) -> str:
    return requested if requested.startswith("v") else OWN_VERSION


def _flag_texts(given: Mapping[options.Path, object], parsed: Parsed) -> dict[str, str]:
    values = flag_set().values_of(parsed)
    values |= {one.option.name: given[one.path] for one in bindings() if one.option.name and one.path in given}
    return {name: flag_set()[name].kind.show(values[name]) for name in sorted(values)}
