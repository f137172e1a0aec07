"""The labels of slices: the Service's, and three that are the controller's own.

upstream: staging/src/k8s.io/endpointslice/utils.go#setEndpointSliceLabels
"""

from collections.abc import Mapping

from kcm_cli.api.core import Service
from kcm_cli.api.discovery import MANAGED_BY, SERVICE_NAME
from kcm_cli.planning.endpoints.ports import has_cluster_ip
from kcm_cli.planning.endpoints.slices import without

MANAGER = "endpointslice-controller.k8s.io"
HEADLESS = "service.kubernetes.io/headless"
_RESERVED = (MANAGED_BY, SERVICE_NAME, HEADLESS)


def slice_labels(service: Service) -> dict[str, str]:
    """The labels that the slices of a Service ought to have."""
    labels = without(service.labels, *_RESERVED)
    if not has_cluster_ip(service):
        labels[HEADLESS] = ""
    labels[SERVICE_NAME] = service.name
    labels[MANAGED_BY] = MANAGER
    return labels


def outdated(labels: Mapping[str, str], wanted: Mapping[str, str]) -> bool:
    """Whether a slice's labels differ from the wanted ones in more than the reserved labels."""
    return without(labels, *_RESERVED) != without(wanted, *_RESERVED)
