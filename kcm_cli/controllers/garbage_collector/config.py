"""Options of the garbage-collector-controller."""

from kcm_cli.component.options import OptionGroup, concurrency, option
from kcm_cli.component.value_types import BOOL, GROUP_RESOURCES


class GarbageCollectorConfig(OptionGroup):
    enabled: bool = option(
        BOOL,
        True,
        flag="enable-garbage-collector",
        key="EnableGarbageCollector",
        help=(
            "Delete objects whose owners no longer exist. Must have the same value as the flag of "
            "this name of kube-apiserver."
        ),
    )
    concurrent_syncs: int = concurrency(
        "objects to be collected", 20, flag="concurrent-gc-syncs", key="ConcurrentGCSyncs"
    )
    ignored_resources: tuple[tuple[str, str], ...] = option(
        GROUP_RESOURCES,
        (("", "events"), ("events.k8s.io", "events")),
        key="GCIgnoredResources",
        help="Resources that are never collected, by group and plural name.",
    )
