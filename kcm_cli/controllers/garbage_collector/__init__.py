from kcm_cli.controllers.garbage_collector.config import GarbageCollectorConfig
from kcm_cli.engine.descriptor import Descriptor

DESCRIPTOR = Descriptor(
    name="garbage-collector-controller",
    alias="garbagecollector",
    client="generic-garbage-collector",
    options=GarbageCollectorConfig,
    ends_jobs=True,
)
