"""Options of the node-lifecycle-controller."""

from kcm_cli.component.options import OptionGroup, duration, option
from kcm_cli.component.value_types import FLOAT32, INT32


class NodeLifecycleConfig(OptionGroup):
    eviction_rate: float = option(
        FLOAT32,
        0.1,
        flag="node-eviction-rate",
        key="NodeEvictionRate",
        unit="nodes/s",
        help=(
            "Nodes per second whose pods are evicted when nodes fail in a healthy zone. Nodes "
            "without a zone label form one zone."
        ),
    )
    secondary_eviction_rate: float = option(
        FLOAT32,
        0.01,
        flag="secondary-node-eviction-rate",
        key="SecondaryNodeEvictionRate",
        unit="nodes/s",
        help="The same for an unhealthy zone. Treated as 0 if the cluster is not large.",
    )
    startup_grace_period_s: float = duration(
        60.0,
        flag="node-startup-grace-period",
        key="NodeStartupGracePeriod",
        help="How long a new node may not report its status before it is marked as unhealthy.",
    )
    monitor_grace_period_s: float = duration(
        50.0,
        flag="node-monitor-grace-period",
        key="NodeMonitorGracePeriod",
        help=(
            "How long a running node may not report its status before it is marked as unhealthy. "
            "Should be several times the period in which kubelets report."
        ),
    )
    pod_eviction_timeout_s: float = duration(
        0.0,
        key="PodEvictionTimeout",
        help="No effect: pods are evicted by taints.",
    )
    large_cluster_size_threshold: int = option(
        INT32,
        50,
        flag="large-cluster-size-threshold",
        key="LargeClusterSizeThreshold",
        help="A cluster with more nodes than this is large, for the eviction rates.",
    )
    unhealthy_zone_threshold: float = option(
        FLOAT32,
        0.55,
        flag="unhealthy-zone-threshold",
        key="UnhealthyZoneThreshold",
        help=("Share of nodes in a zone that must be not ready, and at least three, for the zone to be unhealthy."),
    )
