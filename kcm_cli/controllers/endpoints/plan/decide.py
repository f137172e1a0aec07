"""Whether the Endpoints of a Service are created, updated or left as they are.

upstream: pkg/controller/endpoint/endpoints_controller.go#syncService
"""

from collections.abc import Mapping

from kcm_cli.api.core import Service
from kcm_cli.api.endpoints import ENDPOINTS, Endpoints
from kcm_cli.controllers.endpoints.plan.addresses import subsets_of
from kcm_cli.controllers.endpoints.plan.capacity import CAPACITY, size, truncated
from kcm_cli.controllers.endpoints.snapshot import Snapshot
from kcm_cli.machinery.codec import Doc
from kcm_cli.planning.actions import Create, EventRef, Notice, Path, Update, Value, ref_to
from kcm_cli.planning.endpoints.ports import has_cluster_ip
from kcm_cli.planning.endpoints.slices import without
from kcm_cli.planning.endpoints.subsets import Subsets, repack
from kcm_cli.planning.endpoints.trigger_time import annotated

MANAGER = "endpoint-controller"
MANAGED_BY = "endpoints.kubernetes.io/managed-by"
HEADLESS = "service.kubernetes.io/headless"
OVER_CAPACITY = "endpoints.kubernetes.io/over-capacity"
_TRUNCATED = "truncated"


def plan(snapshot: Snapshot) -> Create | Update | None:
    """The one write that is needed, if any."""
    wanted = subsets_of(snapshot)
    existing = snapshot.endpoints
    if existing is None:
        return _creation(snapshot, wanted)
    if _as_wanted(existing, snapshot.service, wanted):
        return None
    service = snapshot.service
    changes: dict[Path, Value] = {
        ("metadata", "labels"): _labels(service),
        ("metadata", "annotations"): _annotations(existing.annotations, snapshot, wanted),
        ("subsets",): truncated(wanted),
    }
    text = f"Failed to update endpoint {service.key}: {{error}}"
    failed = Notice(ref_to(ENDPOINTS, existing), "Warning", "FailedToUpdateEndpoint", text)
    return Update(ENDPOINTS, existing, changes, failed=failed)


def _creation(snapshot: Snapshot, wanted: Subsets) -> Create:
    service = snapshot.service
    metadata: Doc = {"name": service.name, "namespace": service.namespace, "labels": _labels(service)}
    annotations = _annotations({}, snapshot, wanted)
    if annotations:
        metadata["annotations"] = annotations
    body: Doc = {"apiVersion": ENDPOINTS.api_version, "kind": ENDPOINTS.kind, "metadata": metadata}
    if wanted:
        body["subsets"] = truncated(wanted)
    ref = EventRef(ENDPOINTS.api_version, ENDPOINTS.kind, service.namespace, service.name, "")
    text = f"Failed to create endpoint for service {service.key}: {{error}}"
    return Create(ENDPOINTS, service.namespace, body, failed=Notice(ref, "Warning", "FailedToCreateEndpoint", text))


def _as_wanted(existing: Endpoints, service: Service, wanted: Subsets) -> bool:
    """Whether nothing that matters differs: subsets in whatever layout, labels, and the word on capacity."""
    over = size(wanted) > CAPACITY
    said = existing.annotations.get(OVER_CAPACITY)
    if said != (_TRUNCATED if over else None):
        return False
    if existing.labels.get(MANAGED_BY) != MANAGER:
        return False
    if without(existing.labels, HEADLESS, MANAGED_BY) != without(service.labels, HEADLESS, MANAGED_BY):
        return False
    shown = existing.subsets
    if over:
        wanted = repack(truncated(wanted))
    return shown == wanted or repack(shown) == wanted


def _labels(service: Service) -> dict[str, str]:
    """The Service's labels and the controller's own."""
    labels = without(service.labels, HEADLESS)
    if not has_cluster_ip(service):
        labels[HEADLESS] = ""
    labels[MANAGED_BY] = MANAGER
    return labels


def _annotations(current: Mapping[str, str], snapshot: Snapshot, wanted: Subsets) -> dict[str, str]:
    annotations = annotated(without(current, OVER_CAPACITY), snapshot.trigger_time)
    if size(wanted) > CAPACITY:
        annotations[OVER_CAPACITY] = _TRUNCATED
    return annotations
