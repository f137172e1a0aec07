"""What the resourceclaim controller reads of its caches."""

from dataclasses import dataclass

from kcm_cli.api.core import Pod
from kcm_cli.api.devices import ResourceClaim
from kcm_cli.api.scheduling import PodGroup
from kcm_cli.planning.resource_claims import POD_CLAIM, group_key
from kcm_cli.runtime.store import CONTROLLER_UID, Store


@dataclass(frozen=True, slots=True)
class Snapshot:
    """``pod_groups``: None where they are not followed (gate DRAWorkloadResourceClaims)."""

    claims: Store[ResourceClaim]
    pod_groups: Store[PodGroup] | None

    @property
    def groups(self) -> bool:
        return self.pod_groups is not None

    def claim(self, namespace: str, name: str) -> ResourceClaim | None:
        return self.claims.get(f"{namespace}/{name}")

    def made_for(self, owner: Pod | PodGroup, entry: str) -> ResourceClaim | None:
        """The claim that was made for an entry of its owner's list."""
        owned = self.claims.by_index(CONTROLLER_UID, owner.uid)
        return next((claim for claim in owned if claim.annotations.get(POD_CLAIM) == entry), None)

    def group(self, pod: Pod) -> PodGroup | None:
        """The PodGroup of a pod, if the cache has it."""
        return self.pod_groups.get(group_key(pod)) if self.pod_groups is not None else None
