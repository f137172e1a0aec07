"""Options of the garbage-collector-controller."""

from dataclasses import dataclass
from typing import ClassVar

from kcm_cli.component.kinds import BOOL, GROUP_RESOURCES, INT32
from kcm_cli.component.options import option


@dataclass(frozen=True, slots=True)
class GarbageCollectorConfig:
    """Options of the garbage-collector controller."""

    SECTION: ClassVar[str] = "Garbage-collector-controller"
    KEY: ClassVar[str] = "GarbageCollectorController"

    enabled: bool = option(
        BOOL,
        True,
        flag="enable-garbage-collector",
        key="EnableGarbageCollector",
        help="Delete objects whose owners are gone. Must agree with the API server's flag of the same name.",
    )
    concurrent_syncs: int = option(
        INT32,
        20,
        flag="concurrent-gc-syncs",
        key="ConcurrentGCSyncs",
        help=(
            "How many objects to be collected are worked on at the same time. More makes the controller "
            "quicker to respond and uses more CPU and network."
        ),
    )
    ignored_resources: tuple[tuple[str, str], ...] = option(
        GROUP_RESOURCES,
        (("", "events"), ("events.k8s.io", "events")),
        key="GCIgnoredResources",
        help="Group and plural of the resources that are never looked at.",
    )
