"""Options of the horizontal-pod-autoscaler-controller."""

from collections.abc import Iterator

from kcm_cli.component.options import OptionGroup, concurrency, duration, option
from kcm_cli.component.value_types import FLOAT


class HorizontalPodAutoscalerConfig(OptionGroup):
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
        help="How often to read metrics and compute the number of replicas.",
    )
    downscale_stabilization_s: float = duration(
        300.0,
        flag="horizontal-pod-autoscaler-downscale-stabilization",
        key="HorizontalPodAutoscalerDownscaleStabilizationWindow",
        help=(
            "Stabilization window for scaling down: the number of replicas does not fall below the "
            "highest recommendation in this period."
        ),
    )
    tolerance: float = option(
        FLOAT,
        0.1,
        flag="horizontal-pod-autoscaler-tolerance",
        key="HorizontalPodAutoscalerTolerance",
        help=(
            "Scale only if the ratio of the current to the target value of a metric differs from 1 by more than this."
        ),
    )
    cpu_initialization_period_s: float = duration(
        300.0,
        flag="horizontal-pod-autoscaler-cpu-initialization-period",
        key="HorizontalPodAutoscalerCPUInitializationPeriod",
        help="Period after a pod's start in which its CPU samples may be skipped.",
    )
    initial_readiness_delay_s: float = duration(
        30.0,
        flag="horizontal-pod-autoscaler-initial-readiness-delay",
        key="HorizontalPodAutoscalerInitialReadinessDelay",
        help="Period after a pod's start in which any change of readiness counts as the first one.",
    )

    def problems(self) -> Iterator[str]:
        if self.sync_period_s <= 0:
            yield "horizontal-pod-autoscaler-sync-period must be greater than zero"
