"""The completed configuration of a run. Options, flags and files are not read afterwards.

``load`` does all steps: arguments → values (file below flags) → options → problems → completion.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace  # noqa: TID251  # option groups are dataclasses

import msgspec

from kcm_cli.component import featuregates, options
from kcm_cli.component.auth_config import AuthenticationConfig, AuthorizationConfig
from kcm_cli.component.featuregates import FeatureGates
from kcm_cli.component.flagset import Parsed
from kcm_cli.component.leader_config import DEFAULT_MIGRATION, FORMER_LOCKS, LOCK, LeaderMigrationConfig
from kcm_cli.component.logs_config import LogsConfig
from kcm_cli.component.metrics_config import MetricsConfig
from kcm_cli.component.serving_config import ServingConfig
from kcm_cli.component.version import OWN_VERSION, EffectiveVersion, effective_version
from kcm_cli.controllers.node_ipam.config import NodeIPAMConfig
from kcm_cli.manager import inert
from kcm_cli.manager.config_files import component_values, leader_migration
from kcm_cli.manager.controller_map import all_controllers, installed
from kcm_cli.manager.options import ComponentConfig, Options, bindings, flag_set
from kcm_cli.manager.validation import problems_of


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
    that overrides the kubeconfig's; empty for none. flags: all flags with their values as text, for the log at the
    start and /flagz. warnings: what to log at the start.
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
    flags: Mapping[str, str]
    warnings: tuple[str, ...]

    def by_type(self) -> dict[type, object]:
        """The groups of options by their type, with which each controller finds its own."""
        return {type(part): part for part in options.parts(self.component)}


def load(args: Sequence[str]) -> Config:
    """Complete the configuration of a command line. Raises ConfigError with all errors."""
    return complete(flag_set().parse(args))


def complete(parsed: Parsed) -> Config:
    """Complete the configuration of parsed flags. Raises ConfigError with all errors."""
    problems = [*parsed.problems, *(f"unexpected argument: {arg} (see kcm --help)" for arg in parsed.rest)]
    chosen, warnings = parsed.values, parsed.warnings
    tree, file_problems = _options(chosen)
    problems += file_problems
    tree, lock_warnings = _present_lock(tree)
    gates = featuregates.FeatureGates(())
    version = EffectiveVersion()
    try:
        version = effective_version(tree.manager.emulated_versions, tree.manager.min_compatibility_versions)
    except ValueError as error:
        problems.append(str(error))
    resolved = featuregates.resolve(tree.manager.feature_gates, version)
    problems += [*version.problems(), *resolved.problems, *problems_of(tree, resolved.gates)]
    gates = resolved.gates
    if problems:
        raise ConfigError(problems, None if parsed.problems else tree.logs)
    component = _completed(tree)
    return Config(
        component=component,
        serving=tree.serving,
        authentication=tree.authentication,
        authorization=tree.authorization,
        metrics=tree.metrics,
        logs=tree.logs,
        gates=gates,
        version=version,
        git_version=_reported(str(chosen.get("version", "false"))),
        controllers=all_controllers().selected(component.generic.controllers),
        master=tree.server_address.master,
        shutdown_timeout_s=tree.manager.shutdown_timeout_s,
        warm_standby=tree.standby.warm_standby,
        flags=_flag_texts(tree, chosen),
        warnings=(*installed().problems, *warnings, *lock_warnings, *resolved.warnings, *inert.warnings(tree, chosen)),
    )


def _options(chosen: Mapping[str, object]) -> tuple[Options, list[str]]:
    """The options from defaults, files and flags, in ascending precedence."""
    values: dict[options.Path, object] = {}
    problems: list[str] = []
    if chosen.get("config"):
        given, problems = component_values(str(chosen["config"]))
        values.update(given)
    values.update({b.path: chosen[b.option.flag] for b in bindings() if b.option.flag in chosen})
    tree = options.build(Options, values)
    migration, migration_problems = _migration(tree)
    generic = replace(tree.component.generic, leader_migration=migration)
    tree = replace(tree, component=replace(tree.component, generic=generic))
    return tree, problems + migration_problems


def _migration(tree: Options) -> tuple[LeaderMigrationConfig, list[str]]:
    generic, name = tree.component.generic, tree.leader_migration.config_file
    if not generic.leader_migration_enabled:
        return generic.leader_migration, []
    if name:
        return leader_migration(name)
    empty = generic.leader_migration == LeaderMigrationConfig()
    return (DEFAULT_MIGRATION if empty else generic.leader_migration), []


def _present_lock(tree: Options) -> tuple[Options, list[str]]:
    """The options with lock types of earlier releases replaced by leases, and a warning for that."""
    election = tree.component.generic.leader_election
    if election.resource_lock not in FORMER_LOCKS:
        return tree, []
    warning = (
        f'leader-elect-resource-lock={election.resource_lock} no longer does anything: the only lock left is "{LOCK}", '
        "which is used"
    )
    generic = replace(tree.component.generic, leader_election=replace(election, resource_lock=LOCK))
    return replace(tree, component=replace(tree.component, generic=generic)), [warning]


def _completed(tree: Options) -> ComponentConfig:
    component = tree.component
    generic = replace(component.generic, controllers=all_controllers().canonical(component.generic.controllers))
    ipam: NodeIPAMConfig = component.controllers.node_ipam
    first, comma, second = ipam.service_cidr.partition(",")
    if comma:
        ipam = replace(ipam, service_cidr=first.strip(), secondary_service_cidr=second.strip())
    return replace(component, generic=generic, controllers=replace(component.controllers, node_ipam=ipam))


def _reported(requested: str) -> str:
    return requested if requested.startswith("v") else OWN_VERSION


def _flag_texts(tree: Options, chosen: Mapping[str, object]) -> dict[str, str]:
    values = {flag.name: chosen.get(flag.name, flag.default) for flag in flag_set()}
    for binding in bindings():
        if binding.option.flag in values:
            values[binding.option.flag] = options.read(tree, binding.path)
    flags = flag_set()
    return {name: flags[name].kind.show(values[name]) for name in sorted(values)}
