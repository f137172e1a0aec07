"""Views of scheduling.k8s.io/v1alpha2: groups of pods that are scheduled together."""

import msgspec

from kcm_cli.api.core import PodResourceClaim, PodResourceClaimStatus
from kcm_cli.api.resource import GVR, Resource
from kcm_cli.machinery.codec import Doc
from kcm_cli.machinery.meta import Object, View


class LocalReference(View, frozen=True, gc=False):
    """TypedLocalObjectReference."""

    api_group: str = ""
    kind: str = ""
    name: str = ""


class PodGroupTemplate(View, frozen=True, gc=False):
    """The policy is copied whole."""

    name: str = ""
    scheduling_policy: Doc = msgspec.field(default_factory=dict)


class WorkloadSpec(View, frozen=True, gc=False):
    controller_ref: LocalReference | None = None
    pod_group_templates: tuple[PodGroupTemplate, ...] = ()


class Workload(Object, frozen=True, gc=False, kw_only=True):
    spec: WorkloadSpec = msgspec.field(default_factory=WorkloadSpec)


class WorkloadReference(View, frozen=True, gc=False):
    """WorkloadPodGroupTemplateReference."""

    workload_name: str = ""


class TemplateReference(View, frozen=True, gc=False):
    """PodGroupTemplateReference."""

    workload: WorkloadReference | None = None


class PodGroupSpec(View, frozen=True, gc=False):
    pod_group_template_ref: TemplateReference | None = None
    resource_claims: tuple[PodResourceClaim, ...] = ()


class PodGroupStatus(View, frozen=True, gc=False):
    resource_claim_statuses: tuple[PodResourceClaimStatus, ...] = ()


class PodGroup(Object, frozen=True, gc=False, kw_only=True):
    spec: PodGroupSpec = msgspec.field(default_factory=PodGroupSpec)
    status: PodGroupStatus = msgspec.field(default_factory=PodGroupStatus)


WORKLOADS = Resource(GVR("scheduling.k8s.io", "v1alpha2", "workloads"), "Workload", Workload)
POD_GROUPS = Resource(GVR("scheduling.k8s.io", "v1alpha2", "podgroups"), "PodGroup", PodGroup, keeps_raw=True)
