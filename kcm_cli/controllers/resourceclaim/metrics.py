"""The metrics of the controller: created claims, and existing claims.

upstream: pkg/controller/resourceclaim/metrics/metrics.go
"""

from collections import Counter

from kcm_cli.api.devices import ResourceClaim
from kcm_cli.component.metrics import Family, Gauge, Registry
from kcm_cli.component.metrics.families import Families
from kcm_cli.component.metrics.instruments import Description
from kcm_cli.controllers.resourceclaim.plan import has_admin_access
from kcm_cli.planning.resource_claims import EXTENDED, POD_CLAIM
from kcm_cli.runtime.store import Store

_CLAIMS = Description(
    "resourceclaim_controller_resource_claims",
    "gauge",
    "Number of ResourceClaims, by allocation, admin access, and what they were created for: "
    "a template (resource_claim_template), extended resources (extended_resource), or by hand (empty).",
    ("allocated", "admin_access", "source"),
)


class ResourceClaimMetrics:
    """The metrics resourceclaim_controller_*. Existing claims are counted when they are scraped."""

    def __init__(self, registry: Registry, claims: Store[ResourceClaim]) -> None:
        self._claims = claims
        self._creates = registry.counter(
            "resourceclaim_controller_creates_total",
            "Number of attempts to create a ResourceClaim, by result and admin access.",
            labels=("status", "admin_access"),
        )
        registry.add(self)

    def created(self, *, admin_access: bool, success: bool) -> None:
        self._creates.labels("success" if success else "failure", _word(admin_access)).inc()

    def collect(self) -> Families:
        """Count the existing claims. Called on the server's thread."""
        family = Family(_CLAIMS, Gauge)
        for labels, count in Counter(_labels(claim) for claim in self._claims.list()).items():
            family.labels(*labels).set(count)
        yield from family.collect()


def _labels(claim: ResourceClaim) -> tuple[str, str, str]:
    allocated = claim.status.allocation is not None
    return _word(allocated), _word(has_admin_access(claim.spec.devices.requests)), _source(claim)


def _source(claim: ResourceClaim) -> str:
    if claim.annotations.get(EXTENDED) == "true":
        return "extended_resource"
    return "resource_claim_template" if claim.annotations.get(POD_CLAIM) else ""


def _word(value: object) -> str:
    return "true" if value else "false"
