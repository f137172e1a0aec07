"""Labels and annotations of mirrored slices, and which Endpoints are mirrored at all.

upstream: pkg/controller/endpointslicemirroring/utils.go
"""

from kcm_cli.api.discovery import MANAGED_BY, SERVICE_NAME, SKIP_MIRROR, EndpointSlice
from kcm_cli.api.endpoints import Endpoints
from kcm_cli.planning.endpoints.slices import without
from kcm_cli.planning.endpoints.trigger_time import ANNOTATION as TRIGGER_TIME

MANAGER = "endpointslicemirroring-controller.k8s.io"
LEADER = "control-plane.alpha.kubernetes.io/leader"
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


def mirrorable(endpoints: Endpoints) -> bool:
    """Not those that ask to be left out, nor those that are a lock."""
    return endpoints.labels.get(SKIP_MIRROR) != "true" and LEADER not in endpoints.annotations


def labels(endpoints: Endpoints) -> dict[str, str]:
    """The labels that the mirrored slices ought to have."""
    return {**endpoints.labels, SERVICE_NAME: endpoints.name, MANAGED_BY: MANAGER}


def annotations(endpoints: Endpoints) -> dict[str, str]:
    """The annotations that the mirrored slices ought to have."""
    return without(endpoints.annotations, TRIGGER_TIME, LAST_APPLIED)


def dressed(slice_: EndpointSlice, endpoints: Endpoints) -> bool:
    """Whether a slice has the labels and annotations of its Endpoints."""
    bare = without(slice_.labels, MANAGED_BY, SERVICE_NAME)
    return bare == endpoints.labels and slice_.annotations == annotations(endpoints)
