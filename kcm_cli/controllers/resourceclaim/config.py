"""Options of the resourceclaim-controller."""

from kcm_cli.component.options import OptionGroup, concurrency


class ResourceClaimConfig(OptionGroup):
    concurrent_syncs: int = concurrency(
        "ResourceClaims and pods", 50, "concurrent-resourceclaim-syncs", "ConcurrentSyncs", minimum=1
    )
