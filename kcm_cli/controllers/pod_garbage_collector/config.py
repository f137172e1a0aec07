"""Options of the pod-garbage-collector-controller."""

from dataclasses import dataclass

from kcm_cli.component.kinds import INT32
from kcm_cli.component.options import option


@dataclass(frozen=True)
class PodGarbageCollectorConfig:
    terminated_pod_threshold: int = option(
        INT32,
        12500,
        flag="terminated-pod-gc-threshold",
        key="TerminatedPodGCThreshold",
        help=(
            "Number of terminated pods above which the oldest are deleted. 0 or less: terminated pods are not deleted."
        ),
    )
