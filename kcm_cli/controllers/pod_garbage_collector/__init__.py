from kcm_cli.controllers.pod_garbage_collector.config import PodGarbageCollectorConfig
from kcm_cli.engine.descriptor import Descriptor

DESCRIPTOR = Descriptor(
    name="pod-garbage-collector-controller",
    alias="podgc",
    client="pod-garbage-collector",
    key="PodGCController",
    options=PodGarbageCollectorConfig,
)
