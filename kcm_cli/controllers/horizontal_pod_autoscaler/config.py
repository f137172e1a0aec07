"""Options of the horizontal-pod-autoscaler-controller."""

from dataclasses import dataclass

from kcm_cli.component.kinds import FLOAT
from kcm_cli.component.options import concurrency, duration, option


@dataclass(frozen=True, slots=True)
class HorizontalPodAutoscalerConfig:
    """Options of the horizontal-pod-autoscaler controller."""

    concurrent_syncs: int = concurrency(
        "HorizontalPodAutoscalers",
        5,
        flag="concurrent-horizontal-pod-autoscaler-syncs",
        key="ConcurrentHorizontalPodAutoscalerSyncs",
        minimum=1,
    )
    sync_period_s: float = duration(
        15.0,
        flag="horizontal-pod-autoscaler-sync-period",
        key="HorizontalPodAutoscalerSyncPeriod",
        help="How often metrics are read and the number of replicas is decided.",
    )
    downscale_stabilization_s: float = duration(
        300.0,
        flag="horizontal-pod-autoscaler-downscale-stabilization",
        key="HorizontalPodAutoscalerDownscaleStabilizationWindow",
        help=("How far back to look when scaling down: no fewer replicas than the largest number wanted in that time."),
    )
    tolerance: float = option(
        FLOAT,
        0.1,
        flag="horizontal-pod-autoscaler-tolerance",
        key="HorizontalPodAutoscalerTolerance",
        help="How far the ratio of a metric to its target may be from 1 before anything is scaled.",
    )
    cpu_initialization_period_s: float = duration(
        300.0,
        flag="horizontal-pod-autoscaler-cpu-initialization-period",
        key="HorizontalPodAutoscalerCPUInitializationPeriod",
        help="How long after a pod's start its CPU samples may be left out.",
    )
    initial_readiness_delay_s: float = duration(
        30.0,
        flag="horizontal-pod-autoscaler-initial-readiness-delay",
        key="HorizontalPodAutoscalerInitialReadinessDelay",
        help="How long after a pod's start a change of readiness counts as its first readiness.",
    )
