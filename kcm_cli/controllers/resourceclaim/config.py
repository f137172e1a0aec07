"""Options of the resourceclaim-controller."""

from dataclasses import dataclass

from kcm_cli.component.options import concurrency


@dataclass(frozen=True)
class ResourceClaimConfig:
    """Options of the resourceclaim controller."""

    concurrent_syncs: int = concurrency(
        "ResourceClaims and pods", 50, flag="concurrent-resourceclaim-syncs", key="ConcurrentSyncs", minimum=1
    )
