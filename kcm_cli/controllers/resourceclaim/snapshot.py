"""What the resourceclaim controller reads of its caches."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from kcm_cli.api.core import Pod
from kcm_cli.api.devices import ResourceClaim
from kcm_cli.api.scheduling import PodGroup
from kcm_cli.planning.resource_claims import POD_CLAIM, group_key

T = TypeVar("T", covariant=True)
OWNER = "controller"
"""Index of claims by the uid of the object that controls them."""


class Known(Protocol[T]):
    """A cache, as far as it is read here."""

    def get(self, key: str) -> T | None: ...
    def by_index(self, index: str, value: str) -> Sequence[T]: ...


@dataclass(frozen=True, slots=True)
class Snapshot:
    """``pod_groups``: None where they are not followed (gate DRAWorkloadResourceClaims)."""

    claims: Known[ResourceClaim]
    pod_groups: Known[PodGroup] | None

    @property
    def groups(self) -> bool:
        return self.pod_groups is not None

    def claim(self, namespace: str, name: str) -> ResourceClaim | None:
        return self.claims.get(f"{namespace}/{name}")

    def made_for(self, owner: Pod | PodGroup, entry: str) -> ResourceClaim | None:
        """The claim that was made for an entry of its owner's list."""
        owned = self.claims.by_index(OWNER, owner.uid)
        return next((claim for claim in owned if claim.annotations.get(POD_CLAIM) == entry), None)

    def group(self, pod: Pod) -> PodGroup | None:
        """The PodGroup of a pod, if the cache has it."""
        return self.pod_groups.get(group_key(pod)) if self.pod_groups is not None else None
