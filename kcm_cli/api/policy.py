"""Views of the policy group."""

import msgspec

from kcm_cli.api.core import Condition
from kcm_cli.api.resource import GVR, Resource
from kcm_cli.machinery.labels import LabelSelector
from kcm_cli.machinery.meta import Object, View


class PodDisruptionBudgetSpec(View, frozen=True, gc=False):
    min_available: int | str | None = None
    max_unavailable: int | str | None = None
    selector: LabelSelector | None = None


class PodDisruptionBudgetStatus(View, frozen=True, gc=False):
    """``disrupted_pods``: the time of the granted eviction (RFC 3339) by name of the pod."""

    observed_generation: int = 0
    disrupted_pods: dict[str, str] | None = None
    disruptions_allowed: int = 0
    current_healthy: int = 0
    desired_healthy: int = 0
    expected_pods: int = 0
    conditions: tuple[Condition, ...] = ()


class PodDisruptionBudget(Object, frozen=True, gc=False, kw_only=True):
    spec: PodDisruptionBudgetSpec = msgspec.field(default_factory=PodDisruptionBudgetSpec)
    status: PodDisruptionBudgetStatus = msgspec.field(default_factory=PodDisruptionBudgetStatus)


POD_DISRUPTION_BUDGETS = Resource(
    GVR("policy", "v1", "poddisruptionbudgets"), "PodDisruptionBudget", PodDisruptionBudget, keeps_raw=True
)
