"""Options of the manager as a whole: the generic, debugging and cloud sections."""

from collections.abc import Iterator
from typing import ClassVar

from kcm_cli.component.client_config import ClientConnectionConfig
from kcm_cli.component.leader_config import LeaderElectionConfig, LeaderMigrationConfig
from kcm_cli.component.options import OptionGroup, duration, group, option
from kcm_cli.component.value_types import BOOL, INT32, IP, MULTIMAP, STRING, STRINGS
from kcm_cli.component.version import BINARY, FLOOR


class DebuggingConfig(OptionGroup):
    """Profiles under /debug/pprof."""

    SECTION: ClassVar[str] = "Debugging"

    profiling: bool = option(
        BOOL, True, flag="profiling", key="enableProfiling", help="Serve profiles under /debug/pprof/."
    )
    contention_profiling: bool = option(
        BOOL,
        False,
        flag="contention-profiling",
        key="enableContentionProfiling",
        help=(
            "Enable the block and mutex profiles. No effect: kcm's controllers share one thread, so "
            "that both profiles stay empty."
        ),
    )


class LeaderMigrationOptions(OptionGroup):
    """Whether controllers may be led under a second lock; the file itself is read when the config is completed."""

    SECTION: ClassVar[str] = "Leader-migration"

    config_file: str = option(
        STRING,
        "",
        flag="leader-migration-config",
        help=(
            "File with the component that runs each controller under the second lock. Without it, "
            "upstream's default applies. Needs --enable-leader-migration."
        ),
    )


class GenericConfig(OptionGroup):
    """Options of the whole manager."""

    SECTION: ClassVar[str] = "Generic"

    port: int = option(INT32, 0, key="Port", help="No effect: plain HTTP is no longer served.")
    address: str = option(IP, "0.0.0.0", key="Address", help="No effect: plain HTTP is no longer served.")
    min_resync_period_s: float = duration(
        12 * 3600.0,
        flag="min-resync-period",
        key="MinResyncPeriod",
        help=("Resync period of informers. Each informer takes a random period between one and two times this value."),
    )
    client_connection: ClientConnectionConfig = group(ClientConnectionConfig, key="ClientConnection")
    controller_start_interval_s: float = duration(
        0.0,
        flag="controller-start-interval",
        key="ControllerStartInterval",
        help="How long to wait between the starts of two controllers.",
    )
    leader_election: LeaderElectionConfig = group(LeaderElectionConfig, key="LeaderElection")
    controllers: tuple[str, ...] = option(
        STRINGS,
        ("*",),
        flag="controllers",
        key="Controllers",
        help=("Controllers to run. '*' enables all that are on by default, 'foo' enables foo, '-foo' disables foo."),
    )
    debugging: DebuggingConfig = group(DebuggingConfig, key="Debugging")
    leader_migration_enabled: bool = option(
        BOOL,
        False,
        flag="enable-leader-migration",
        key="LeaderMigrationEnabled",
        section="Leader-migration",
        help=(
            "Use a second lock for controllers that migrate to a cloud controller manager, so that "
            "they are never without a leader."
        ),
    )
    leader_migration: LeaderMigrationConfig = group(LeaderMigrationConfig, key="LeaderMigration")


class CloudProviderConfig(OptionGroup):
    """The cloud provider, which can only be external."""

    SECTION: ClassVar[str] = "Generic"

    name: str = option(
        STRING,
        "",
        flag="cloud-provider",
        key="Name",
        choices=("external",),
        help="Cloud provider: empty for none, or external if a cloud controller manager runs.",
    )
    config_file: str = option(
        STRING,
        "",
        flag="cloud-config",
        key="CloudConfigFile",
        help=("Configuration file of the cloud provider. No effect: only cloud controller managers read it."),
    )

    def problems(self) -> Iterator[str]:
        if self.name not in ("", "external"):
            yield (
                f'cloud provider "{self.name}" was specified, but built-in cloud providers are disabled. '
                "Please set --cloud-provider=external and migrate to an external cloud provider"
            )


class KubeCloudSharedConfig(OptionGroup):
    """Options that several controllers share, here and in cloud controller managers."""

    SECTION: ClassVar[str] = "Generic"

    cloud_provider: CloudProviderConfig = group(CloudProviderConfig, key="CloudProvider")
    external_cloud_volume_plugin: str = option(
        STRING,
        "",
        flag="external-cloud-volume-plugin",
        key="ExternalCloudVolumePlugin",
        help=("Volume plugin of the external cloud provider. No effect: there are no in-tree cloud plugins anymore."),
    )
    use_service_account_credentials: bool = option(
        BOOL,
        False,
        flag="use-service-account-credentials",
        key="UseServiceAccountCredentials",
        help="Give each controller the credentials of its own service account.",
    )
    allow_untagged_cloud: bool = option(
        BOOL,
        False,
        flag="allow-untagged-cloud",
        key="AllowUntaggedCloud",
        deprecated="it has no effect and will be removed.",
        help="No effect.",
    )
    route_reconciliation_period_s: float = duration(
        10.0,
        flag="route-reconciliation-period",
        key="RouteReconciliationPeriod",
        help=("How often to reconcile the cloud's routes to nodes. Used by cloud controller managers only."),
    )
    node_monitor_period_s: float = duration(
        5.0,
        flag="node-monitor-period",
        key="NodeMonitorPeriod",
        help="How often to check the health of nodes.",
    )
    cluster_name: str = option(
        STRING,
        "kubernetes",
        flag="cluster-name",
        key="ClusterName",
        help=("Name of the cluster at the cloud provider. No effect: only cloud controller managers use it."),
    )
    cluster_cidr: str = option(
        STRING,
        "",
        flag="cluster-cidr",
        key="ClusterCIDR",
        help=(
            "CIDR of pod addresses, or two separated by a comma for dual stack. Used only with --allocate-node-cidrs."
        ),
    )
    allocate_node_cidrs: bool = option(
        BOOL,
        False,
        flag="allocate-node-cidrs",
        key="AllocateNodeCIDRs",
        help="Allocate a CIDR of pod addresses to each node, from --cluster-cidr.",
    )
    cidr_allocator_type: str = option(
        STRING,
        "RangeAllocator",
        flag="cidr-allocator-type",
        key="CIDRAllocatorType",
        choices=("RangeAllocator",),
        help="Type of the CIDR allocator. RangeAllocator is the only one.",
    )
    configure_cloud_routes: bool = option(
        BOOL,
        True,
        flag="configure-cloud-routes",
        key="ConfigureCloudRoutes",
        help=("Configure routes for the nodes' CIDRs at the cloud provider. Used by cloud controller managers only."),
    )
    node_sync_period_s: float = duration(
        0.0,
        flag="node-sync-period",
        key="NodeSyncPeriod",
        deprecated="it has no effect and will be removed.",
        help="No effect.",
    )

    def problems(self) -> Iterator[str]:
        if self.cidr_allocator_type not in ("", "RangeAllocator"):
            yield (
                "built-in cloud providers are disabled. "
                f"The ipam {self.cidr_allocator_type} is not available (cidr-allocator-type)"
            )
        if self.node_monitor_period_s <= 0:
            yield "node-monitor-period must be greater than zero"


class DeprecatedConfig(OptionGroup):
    """A section of the configuration file without fields."""

    SECTION: ClassVar[str] = "Deprecated"


class ManagerConfig(OptionGroup):
    """Options that are flags alone."""

    SECTION: ClassVar[str] = "Generic"

    shutdown_timeout_s: float = duration(
        10.0,
        flag="controller-shutdown-timeout",
        help="How long to wait for the controllers to stop before the process exits. 0: no limit.",
    )
    emulated_versions: tuple[str, ...] = option(
        STRINGS,
        (),
        flag="emulated-version",
        help=(
            f"Behave like this release instead of {BINARY}: kube=1.35, or 1.35 for short. "
            f"kube={FLOOR}..{BINARY}(default:{BINARY})"
        ),
    )
    min_compatibility_versions: tuple[str, ...] = option(
        STRINGS,
        (),
        flag="min-compatibility-version",
        help=(
            "Oldest release that other components of the control plane may have, at most the "
            f"emulated version. kube={FLOOR}..{BINARY}(default:{BINARY.previous()})"
        ),
    )
    feature_gates: tuple[tuple[str, str], ...] = option(
        MULTIMAP,
        (),
        flag="feature-gates",
        help=(
            "Feature gates as Name=true|false or kube:Name=true|false, separated by commas. May be "
            "repeated. AllAlpha and AllBeta apply to all gates of that stage. docs/flags.md lists "
            "the gates."
        ),
    )


class StandbyConfig(OptionGroup):
    """What kcm does while another manager leads. kcm's own: a flag alone."""

    SECTION: ClassVar[str] = "Kcm"

    warm_standby: bool = option(
        BOOL,
        False,
        flag="warm-standby",
        help=(
            "Fill the caches and follow their changes while another manager leads, so that this one takes over at "
            "once. Nothing is written before. A standby then takes the memory, and makes the watches, of a leader's "
            "caches, and reads the lease twice as often. Not together with --enable-leader-migration; without "
            "--leader-elect it has no effect."
        ),
    )


class TracingOptions(OptionGroup):
    """Where the file is that says where to send spans; it is read when the config is completed. kcm's own: a flag
    alone, with the name of kube-apiserver's."""

    SECTION: ClassVar[str] = "Kcm"

    config_file: str = option(
        STRING,
        "",
        flag="tracing-config-file",
        help=(
            "File with a TracingConfiguration (apiserver.config.k8s.io/v1), as kube-apiserver reads: export what "
            "controllers do, and why, as OpenTelemetry spans to its endpoint. Needs the extra otel: docs/trace.md."
        ),
    )
