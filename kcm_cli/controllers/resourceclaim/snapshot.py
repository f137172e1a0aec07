"""What the resourceclaim controller reads of its caches."""

from dataclasses import dataclass

from kcm_cli.api.core import Pod
from kcm_cli.api.devices import ResourceClaim
from kcm_cli.api.scheduling import PodGroup
from kcm_cli.planning.resource_claims import group_key
from kcm_cli.runtime.store import Store


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

    def group(self, pod: Pod) -> PodGroup | None:
        """The PodGroup of a pod, if the cache has it."""
        return self.pod_groups.get(group_key(pod)) if self.pod_groups is not None else None
