"""StatefulSets, pods and claims as views, and a snapshot of them."""

from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from kcm_cli.api.apps import STATEFUL_SETS, StatefulSet
from kcm_cli.api.core import PERSISTENT_VOLUME_CLAIMS, PODS, PersistentVolumeClaim, Pod
from kcm_cli.controllers.statefulset.plan.snapshot import Revision, Snapshot
from kcm_cli.machinery import codec
from kcm_cli.machinery.times import format_time

NOW = datetime(2026, 1, 1, tzinfo=UTC)
UID = "set-uid"
TEMPLATE = {
    "metadata": {"labels": {"app": "db"}},
    "spec": {"containers": [{"name": "c", "image": "i:2", "resources": {}}]},
}
OLD_TEMPLATE = {
    "metadata": {"labels": {"app": "db"}},
    "spec": {"containers": [{"name": "c", "image": "i:1", "resources": {}}]},
}
DATA = {"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"]}}

MakeSet = Callable[..., StatefulSet]
CreatePod = Callable[..., Pod]
MakeClaim = Callable[..., PersistentVolumeClaim]
MakeSnapshot = Callable[..., Snapshot]


def controlled_by(api_version: str, kind: str, name: str, uid: str, *, controller: bool = True) -> dict[str, Any]:
    return {"apiVersion": api_version, "kind": kind, "name": name, "uid": uid, "controller": controller}


def set_of(status: dict[str, Any] | None = None, *, deleting: bool = False, **spec: Any) -> StatefulSet:
    """An ordered set of three; ``spec`` changes or removes (None) fields."""
    full: dict[str, Any] = {
        "replicas": 3,
        "serviceName": "svc",
        "podManagementPolicy": "OrderedReady",
        "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}},
        "selector": {"matchLabels": {"app": "db"}},
        "template": TEMPLATE,
    } | spec
    metadata = {"name": "db", "namespace": "ns", "uid": UID, "generation": 2}
    if deleting:
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    doc = {
        "metadata": metadata,
        "spec": {name: value for name, value in full.items() if value is not None},
        "status": status or {},
    }
    return STATEFUL_SETS.decode(codec.encode(doc))


def pod_of(
    ordinal: int | str,
    state: str = "ready",
    *,
    revision: str = "new",
    deleting: bool = False,
    ready_for_s: float = 60.0,
    labels: dict[str, str] | None = None,
    claims: Iterable[str] = (),
) -> Pod:
    """A pod of the new revision, available for a minute. ``state``: ready, running, pending, failed, succeeded."""
    name = f"db-{ordinal}"
    own = {"app": "db", "controller-revision-hash": revision, "statefulset.kubernetes.io/pod-name": name}
    phase = {"pending": "Pending", "failed": "Failed", "succeeded": "Succeeded", "new": ""}.get(state, "Running")
    since = format_time(NOW - timedelta(seconds=ready_for_s))
    ready = {"type": "Ready", "status": "True" if state == "ready" else "False", "lastTransitionTime": since}
    metadata: dict[str, Any] = {
        "name": name,
        "namespace": "ns",
        "uid": f"pod-{ordinal}",
        "labels": own if labels is None else labels,
        "ownerReferences": [controlled_by("apps/v1", "StatefulSet", "db", UID)],
    }
    if deleting:
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": claim}} for claim in claims]
    doc = {
        "metadata": metadata,
        "spec": {"volumes": volumes},
        "status": {"phase": phase, "conditions": [ready]},
    }
    return PODS.decode(codec.encode(doc))


def claim_of(ordinal: int, *owners: dict[str, Any], deleting: bool = False) -> PersistentVolumeClaim:
    """The claim of an ordinal."""
    metadata: dict[str, Any] = {"name": f"data-db-{ordinal}", "namespace": "ns", "uid": f"claim-{ordinal}"}
    if owners:
        metadata["ownerReferences"] = list(owners)
    if deleting:
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    return PERSISTENT_VOLUME_CLAIMS.decode(codec.encode({"metadata": metadata}))


def take_snapshot(
    set_: StatefulSet, *pods: Pod, claims: Iterable[PersistentVolumeClaim] = (), settled: bool = False
) -> Snapshot:
    """A snapshot with revisions ``old`` and ``new``; with ``settled`` the set is wholly at ``new``."""
    new, old = Revision("new", TEMPLATE), Revision("old", OLD_TEMPLATE)
    found = {claim.name: claim for claim in claims}
    return Snapshot(set_, tuple(pods), new if settled else old, new, found)


@pytest.fixture
def make_set() -> MakeSet:
    return set_of


@pytest.fixture
def make_pod() -> CreatePod:
    return pod_of


@pytest.fixture
def make_claim() -> MakeClaim:
    return claim_of


@pytest.fixture
def snapshot_of() -> MakeSnapshot:
    return take_snapshot
