"""The takeover audit of a cluster with many kinds, settled by the Go manager (tests/plans/whole.py)."""

from collections.abc import Callable
from functools import cache
from typing import Any

import pytest
from msgspec.structs import replace

from kcm_cli.api.resource import GVR
from kcm_cli.machinery import codec
from kcm_cli.plan import Options, Snapshot, load, plan
from kcm_cli.plan.snapshot import Item
from tests.plans.whole import FILE, NAME

Tree = dict[str, Any]
Line = tuple[str, str, str, str]
DYING = f"{NAME}-dying"
PODS, SETS = GVR("", "v1", "pods"), GVR("apps", "v1", "replicasets")
NAMESPACES, CONFIG_MAPS = GVR("", "v1", "namespaces"), GVR("", "v1", "configmaps")


@cache
def whole() -> Snapshot:
    return load(FILE)


def settled() -> Snapshot:
    """Without the namespace that hangs."""
    return edited(
        {
            gvr: lambda items: [item for item in items if DYING not in (item.name, item.namespace)]
            for gvr in whole().collections
        }
    )


def edited(changes: dict[GVR, Callable[[list[Item]], list[Item]]], of: Snapshot | None = None) -> Snapshot:
    found = dict((of or whole()).collections)
    for gvr, change in changes.items():
        found[gvr] = replace(found[gvr], items=tuple(change(list(found[gvr].items))))
    return replace(of or whole(), collections=found)


def written(snapshot: Snapshot, horizon_s: float = 300.0) -> set[Line]:
    """Controller, verb, resource and object of what is not routine, before a rollout's deadline passes."""
    answer = plan(snapshot, (), Options(horizon_s=horizon_s))
    return {(one.controller, one.verb, one.resource, str(one.about)) for one in answer.audit}


def like(item: Item, name: str, change: Callable[[Tree], object]) -> Item:
    """A copy under another name."""
    doc: Tree = item.doc
    doc["metadata"] |= {"name": name, "uid": f"uid-of-{name}"}
    change(doc)
    return replace(item, name=name, uid=f"uid-of-{name}", data=codec.encode(doc))


def test_the_cluster_has_objects_of_many_kinds() -> None:
    kinds = {gvr.plural for gvr, one in whole().collections.items() if one.items}
    assert {
        "deployments", "replicasets", "statefulsets", "daemonsets", "jobs", "cronjobs", "replicationcontrollers",
        "horizontalpodautoscalers", "poddisruptionbudgets", "persistentvolumes", "persistentvolumeclaims",
        "storageclasses", "volumeattachments", "endpointslices", "resourcequotas", "resourceclaims",
        "certificatesigningrequests", "serviceaccounts", "clusterroles", "validatingadmissionpolicies", "things",
    } <= kinds  # fmt: skip


def test_nothing_is_written_to_a_settled_cluster() -> None:
    assert written(settled()) == set()


def test_a_stuck_namespace_is_retried() -> None:
    lines = written(whole())
    assert {(controller, verb) for controller, verb, _, _ in lines} == {("namespace-controller", "deletecollection")}
    assert all(about.endswith(f" {DYING}/") for _, _, _, about in lines)


def test_an_orphaned_replica_set_is_deleted_with_its_pods() -> None:
    def orphan(doc: Tree) -> None:
        doc["metadata"]["ownerReferences"][0] |= {"name": "gone", "uid": "gone"}

    def of_orphan(doc: Tree) -> None:
        doc["metadata"]["ownerReferences"][0] |= {"name": "lost", "uid": "uid-of-lost"}

    set_ = next(item for item in whole().items(SETS) if item.name.startswith("web-"))
    pod = next(item for item in whole().items(PODS) if item.name.startswith("web-"))
    broken = edited({SETS: lambda items: [*items, like(set_, "lost", orphan)]}, settled())
    broken = edited({PODS: lambda items: [*items, like(pod, "lost-1", of_orphan)]}, broken)
    lines = {line for line in written(broken) if "lost" in line[3]}
    assert ("generic-garbage-collector", "delete", "replicasets.apps", f"ReplicaSet {NAME}/lost") in lines
    assert {line[0] for line in lines} <= {"generic-garbage-collector", "replicaset-controller"}


def test_a_pod_of_a_deleted_node_is_deleted() -> None:
    def lost(doc: Tree) -> None:
        doc["metadata"].pop("ownerReferences", None)
        doc["metadata"]["labels"] = {}
        doc["spec"]["nodeName"] = "gone"

    pod = next(item for item in whole().items(PODS) if item.name.startswith("web-"))
    broken = edited({PODS: lambda items: [*items, like(pod, "lost", lost)]}, settled())
    lines = {line for line in written(broken) if "quota" not in line[2]}
    assert lines == {
        ("pod-garbage-collector", "patch", "pods/status", f"Pod {NAME}/lost"),
        ("pod-garbage-collector", "delete", "pods", f"Pod {NAME}/lost"),
    }


@pytest.mark.parametrize("include", ["configmaps", "custom"])
def test_without_optional_kinds_the_plan_is_the_same(include: str) -> None:
    """Controllers that need them are disabled."""
    dropped = {
        gvr for gvr in whole().collections
        if gvr == CONFIG_MAPS or gvr.group in ("example.com", "apiextensions.k8s.io")
    }  # fmt: skip
    kept = {gvr: one for gvr, one in settled().collections.items() if (gvr in dropped) != (include == "custom")}
    kept |= {gvr: one for gvr, one in settled().collections.items() if gvr not in dropped}
    assert written(replace(settled(), collections=kept)) == set()


POD_SPEC = (
    *("resources", "hostnameOverride", "resourceClaims", "schedulingGroup", "enableServiceLinks", "schedulerName"),
    *("dnsPolicy", "preemptionPolicy", "securityContext", "terminationGracePeriodSeconds", "overhead", "os"),
    *("containers.*.resizePolicy", "containers.*.restartPolicyRules", "containers.*.terminationMessagePolicy"),
    *("containers.*.terminationMessagePath", "containers.*.imagePullPolicy"),
)
OLDER = {
    "pods": (
        *("metadata.generation", "status.observedGeneration", "status.conditions.*.observedGeneration"),
        *("status.resize", "status.resources", "status.allocatedResources", "status.hostIPs", "status.podIPs.*.x"),
        *("status.resourceClaimStatuses", "status.extendedResourceClaimStatus"),
        *(
            f"status.containerStatuses.*.{field}"
            for field in ("resources", "allocatedResources", "user", "volumeMounts")
        ),
        *("status.containerStatuses.*.allocatedResourcesStatus", "status.containerStatuses.*.stopSignal"),
        *(f"spec.{field}" for field in POD_SPEC),
    ),
    "nodes": (
        *("status.features", "status.declaredFeatures", "status.runtimeHandlers", "status.config"),
        *("status.nodeInfo.swap", "status.nodeInfo.machineID", "status.images", "status.daemonEndpoints"),
    ),
    "services": (
        *("spec.internalTrafficPolicy", "spec.trafficDistribution", "spec.allocateLoadBalancerNodePorts"),
        *("spec.sessionAffinity", "spec.ports.*.appProtocol", "status.conditions", "status.loadBalancer"),
    ),
    "endpoints": ("subsets.*.ports.*.appProtocol",),
    "endpointslices": ("endpoints.*.hints", "endpoints.*.deprecatedTopology", "metadata.annotations"),
    "persistentvolumes": (
        *("spec.volumeMode", "spec.volumeAttributesClassName", "spec.nodeAffinity.x", "status.lastPhaseTransitionTime"),
        "status.reason",
    ),
    "persistentvolumeclaims": (
        *("spec.volumeMode", "spec.volumeAttributesClassName", "spec.dataSourceRef", "status.conditions"),
        *("status.allocatedResources", "status.allocatedResourceStatuses", "status.modifyVolumeStatus"),
        "status.currentVolumeAttributesClassName",
    ),
    "replicationcontrollers": ("spec.minReadySeconds", "status.conditions"),
    "deployments": ("spec.minReadySeconds", "status.collisionCount"),
    "replicasets": ("spec.minReadySeconds", "status.conditions"),
    "statefulsets": (
        *("spec.persistentVolumeClaimRetentionPolicy", "spec.ordinals", "spec.minReadySeconds"),
        *("spec.updateStrategy.rollingUpdate.maxUnavailable", "spec.volumeClaimTemplates.*.status"),
        *("spec.volumeClaimTemplates.*.spec.volumeMode", "status.collisionCount"),
    ),
    "daemonsets": ("spec.updateStrategy.rollingUpdate.maxSurge", "spec.minReadySeconds", "status.collisionCount"),
    "jobs": (
        *("spec.podReplacementPolicy", "spec.completionMode", "spec.manualSelector", "spec.managedBy"),
        *("spec.successPolicy", "spec.podFailurePolicy", "spec.backoffLimitPerIndex", "spec.maxFailedIndexes"),
        *("status.uncountedTerminatedPods", "status.failedIndexes"),
    ),
    "cronjobs": (
        *("spec.timeZone", "spec.startingDeadlineSeconds", "spec.jobTemplate.metadata"),
        "spec.concurrencyPolicy",
        *(f"spec.jobTemplate.spec.{field}" for field in ("podReplacementPolicy", "completionMode", "manualSelector")),
    ),
    "horizontalpodautoscalers": (
        *("spec.behavior", "status.observedGeneration"),
        *(
            f"spec.behavior.{way}.{field}"
            for way in ("scaleUp", "scaleDown")
            for field in ("tolerance", "selectPolicy")
        ),
    ),
    "poddisruptionbudgets": ("spec.unhealthyPodEvictionPolicy", "status.disruptedPods"),
    "resourcequotas": ("spec.scopes", "spec.scopeSelector"),
    "resourceclaims": (
        *("status.devices", "status.allocation.allocationTimestamp", "spec.devices.config"),
        *("spec.devices.requests.*.exactly.tolerations", "spec.devices.requests.*.exactly.adminAccess"),
    ),
    "csidrivers": (
        *(f"spec.{field}" for field in ("seLinuxMount", "requiresRepublish", "fsGroupPolicy", "storageCapacity")),
        *("spec.tokenRequests", "spec.nodeAllocatableUpdatePeriodSeconds", "spec.serviceAccountTokenInSecrets"),
    ),
    "volumeattachments": ("status.attachmentMetadata", "spec.source.inlineVolumeSpec", "status.attachError"),
    "storageclasses": ("allowVolumeExpansion", "volumeBindingMode.x", "mountOptions", "allowedTopologies"),
    "leases": ("spec.strategy", "spec.preferredHolder"),
    "namespaces": ("status.conditions", "spec.x"),
    "certificatesigningrequests": ("spec.expirationSeconds",),
    "serviceaccounts": ("secrets", "imagePullSecrets", "automountServiceAccountToken"),
    "validatingadmissionpolicies": ("spec.variables", "spec.matchConditions", "spec.matchConstraints.matchPolicy"),
    "ipaddresses": ("metadata.managedFields",),
    "servicecidrs": ("metadata.managedFields",),
}
"""What servers of 1.28 to 1.35 know nothing of, or fill in by now where it is absent. ``x``: there is nothing."""


def leave_out(doc: Any, path: list[str], *, null: bool) -> None:
    """Remove a field, or say that it is null, where what it belongs to is there."""
    step, *rest = path
    if step == "*":
        for item in doc or () if isinstance(doc, list) else ():
            leave_out(item, rest, null=null)
    elif not isinstance(doc, dict):
        return
    elif rest:
        leave_out(doc.get(step), rest, null=null)
    elif null:
        doc[step] = None
    else:
        doc.pop(step, None)


def test_objects_of_older_releases_are_not_written() -> None:
    """Fields are absent in one object, null in the next. Templates are spelt in many ways in
    unit/controllers/test_takeover.py."""

    def older(item: Item, paths: tuple[str, ...], *, null: bool) -> Item:
        doc: Tree = item.doc
        for path in ("metadata.managedFields", "metadata.selfLink", *paths):
            in_metadata = path.startswith("metadata")  # of which a store has no nulls
            leave_out(doc, path.split("."), null=null and not in_metadata)
        return replace(item, data=codec.encode(doc))

    def change(paths: tuple[str, ...]) -> Callable[[list[Item]], list[Item]]:
        return lambda items: [older(item, paths, null=bool(number % 2)) for number, item in enumerate(items)]

    collections = settled().collections
    assert OLDER.keys() <= {gvr.plural for gvr in collections}
    changes = {gvr: change(OLDER.get(gvr.plural, ())) for gvr, found in collections.items() if found.items}
    assert written(edited(changes, settled())) == set()
