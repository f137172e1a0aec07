"""Views of the coordination.k8s.io group."""

import msgspec

from kcm_cli.api.resource import GVR, Resource
from kcm_cli.machinery.meta import Object, View


class LeaseSpec(View, frozen=True, gc=False):
    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    renew_time: str | None = None


class Lease(Object, frozen=True, gc=False, kw_only=True):
    spec: LeaseSpec = msgspec.field(default_factory=LeaseSpec)


LEASES = Resource(GVR("coordination.k8s.io", "v1", "leases"), "Lease", Lease)


class LeaseCandidateSpec(View, frozen=True, gc=False):
    ping_time: str | None = None
    renew_time: str | None = None


class LeaseCandidate(Object, frozen=True, gc=False, kw_only=True):
    spec: LeaseCandidateSpec = msgspec.field(default_factory=LeaseCandidateSpec)


LEASE_CANDIDATES = Resource(
    GVR("coordination.k8s.io", "v1beta1", "leasecandidates"), "LeaseCandidate", LeaseCandidate, keeps_raw=True
)
