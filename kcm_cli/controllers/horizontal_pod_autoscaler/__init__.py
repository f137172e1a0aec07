from kcm_cli.controllers.horizontal_pod_autoscaler.config import HorizontalPodAutoscalerConfig
from kcm_cli.engine.descriptor import Descriptor

DESCRIPTOR = Descriptor(
    name="horizontal-pod-autoscaler-controller",
    alias="horizontalpodautoscaling",
    client="horizontal-pod-autoscaler",
    source="horizontal-pod-autoscaler",
    key="HPAController",
    options=HorizontalPodAutoscalerConfig,
    regular=True,
)
