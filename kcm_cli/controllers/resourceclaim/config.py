"""Options of the resourceclaim-controller."""

from dataclasses import dataclass

from kcm_cli.component.options import concurrency


@dataclass(frozen=True)
class ResourceClaimConfig:
    concurrent_syncs: int = concurrency(
        "ResourceClaims and pods", 50, "concurrent-resourceclaim-syncs", "ConcurrentSyncs", minimum=1
    )
