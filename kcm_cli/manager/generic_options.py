"""The options that do not belong to a controller.

upstream: cmd/kube-controller-manager/app/options, staging/src/k8s.io/controller-manager/options
"""

from kcm_cli.component.auth_config import AuthenticationConfig, AuthorizationConfig
from kcm_cli.component.client_config import ServerAddressConfig
from kcm_cli.component.flagset import Flag
from kcm_cli.component.generic_config import (
    GenericConfig,
    KubeCloudSharedConfig,
    LeaderMigrationOptions,
    ManagerConfig,
    StandbyConfig,
    TracingOptions,
)
from kcm_cli.component.logs_config import LogsConfig
from kcm_cli.component.metrics_config import MetricsConfig
from kcm_cli.component.options import OptionGroup, group
from kcm_cli.component.serving_config import ServingConfig
from kcm_cli.component.value_types import BOOL, STRING, STRING_OR_BARE, VERSION


class GenericComponentConfig(OptionGroup):
    """The fields of KubeControllerManagerConfiguration that do not belong to a controller."""

    generic: GenericConfig = group(GenericConfig, key="Generic")
    kube_cloud_shared: KubeCloudSharedConfig = group(KubeCloudSharedConfig, key="KubeCloudShared")


class FlagOptions(OptionGroup):
    """The options that have flags only."""

    leader_migration: LeaderMigrationOptions = group(LeaderMigrationOptions)
    manager: ManagerConfig = group(ManagerConfig)
    standby: StandbyConfig = group(StandbyConfig)
    tracing: TracingOptions = group(TracingOptions)
    serving: ServingConfig = group(ServingConfig)
    authentication: AuthenticationConfig = group(AuthenticationConfig)
    authorization: AuthorizationConfig = group(AuthorizationConfig)
    metrics: MetricsConfig = group(MetricsConfig)
    logs: LogsConfig = group(LogsConfig)
    server_address: ServerAddressConfig = group(ServerAddressConfig)


PROCESS_FLAGS = (
    Flag("help", BOOL, False, "Show this help.", "Global", shorthand="h"),
    Flag(
        "version",
        VERSION,
        "false",
        "Print the version, and on standard error the API servers it is for, and exit. raw prints all details, vX.Y.Z "
        "sets the version that is reported.",
        "Global",
    ),
    Flag(
        "config",
        STRING,
        "",
        "File with a KubeControllerManagerConfiguration (kubecontrollermanager.config.k8s.io/v1alpha1) in YAML or "
        "JSON. Flags override it.",
        "Kcm",
    ),
    Flag("install-completion", BOOL, False, "Install completion for the current shell and exit.", "Kcm"),
    Flag(
        "show-completion",
        STRING_OR_BARE,
        "",
        "Print the completion script for the current shell, or for bash, zsh, fish or powershell, and exit.",
        "Kcm",
    ),
    Flag(
        "write-config-to",
        STRING,
        "",
        "Write the configuration that results from flags and --config to this file (- for standard output) and exit.",
        "Kcm",
    ),
)
"""Flags that select what the process does."""
