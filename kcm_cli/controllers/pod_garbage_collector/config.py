"""Options of the pod-garbage-collector-controller."""

from kcm_cli.component.options import OptionGroup, option
from kcm_cli.component.value_types import INT32


class PodGarbageCollectorConfig(OptionGroup):
    terminated_pod_threshold: int = option(
        INT32,
        12500,
        flag="terminated-pod-gc-threshold",
        key="TerminatedPodGCThreshold",
        help=(
            "Number of terminated pods above which the oldest are deleted. 0 or less: terminated pods are not deleted."
        ),
    )
