"""Incremental totals equal those of a full recount, after any changes in any order."""

from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from kcm_cli.api.core import PERSISTENT_VOLUME_CLAIMS, PODS, SERVICES
from kcm_cli.api.devices import DEVICE_CLASSES, RESOURCE_CLAIMS
from kcm_cli.controllers.resourcequota.ledger import Ledger, Lookups
from kcm_cli.controllers.resourcequota.plan import Features, GroupResource
from kcm_cli.machinery import codec
from kcm_cli.machinery.meta import Object
from kcm_cli.planning.quota.devices import BY_POD, CLAIM_KIND, DEVICES, IMPLICIT, DeviceClasses, by_pod, device_classes
from kcm_cli.planning.quota.scopes import Requirement
from kcm_cli.planning.resource_claims import EXTENDED
from kcm_cli.runtime.store import NAMESPACE, Store

RESOURCES: dict[GroupResource, Any] = {
    ("", "pods"): PODS,
    ("", "services"): SERVICES,
    ("", "persistentvolumeclaims"): PERSISTENT_VOLUME_CLAIMS,
    CLAIM_KIND: RESOURCE_CLAIMS,
}
NAMESPACES = st.sampled_from(["a", "b"])
NAMES = st.sampled_from([f"n{n}" for n in range(5)])
AMOUNTS = st.sampled_from(["1", "250m", "64Mi", "1Gi", "0", "1e3", "unreadable"])
SCOPES = [
    (),
    (Requirement("BestEffort"),),
    (Requirement("NotBestEffort"), Requirement("Terminating")),
    (Requirement("PriorityClass", "In", ("high",)),),
    (Requirement("PriorityClass", "NotIn", ("high",)),),
    (Requirement("CrossNamespacePodAffinity"),),
    (Requirement("VolumeAttributesClass", "In", ("gold",)),),
    (Requirement("VolumeAttributesClass", "DoesNotExist"),),
]
AFFINITY = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"namespaces": ["x"]}]}}
PODS_OF = st.builds(
    lambda cpu, memory, optional, phase, grace, given_cpu, claim: {
        "spec": {
            "containers": [{"name": "c", "resources": {"requests": {"cpu": cpu, "example.com/gpu": "1"},
                                                       "limits": {"memory": memory}}}],
            **optional,
        },
        "status": {
            "phase": phase,
            **({"containerStatuses": [{"name": "c", "resources": {"requests": {"cpu": given_cpu}}}]} if given_cpu
               else {}),
            **({"extendedResourceClaimStatus": {"resourceClaimName": claim}} if claim else {}),
        },
        "grace": grace,
    },
    AMOUNTS,
    AMOUNTS,
    st.fixed_dictionaries({}, optional={
        "activeDeadlineSeconds": st.integers(0, 3), "priorityClassName": st.sampled_from(["high", "low"]),
        "resources": st.just({"requests": {"cpu": "7"}}), "affinity": st.just(AFFINITY)}),
    st.sampled_from(["Pending", "Running", "Succeeded", "Failed"]),
    st.none() | st.integers(0, 90) | st.just(10**15),
    st.none() | AMOUNTS,
    st.none() | NAMES,
)  # fmt: skip
SERVICES_OF = st.builds(
    lambda type_, ports, allocate: {
        "spec": {"type": type_, "ports": [{"port": n + 1} for n in range(ports)],
                 "allocateLoadBalancerNodePorts": allocate}
    },
    st.sampled_from(["ClusterIP", "NodePort", "LoadBalancer", "Other"]),
    st.integers(0, 3),
    st.booleans(),
)  # fmt: skip
VOLUME_CLAIMS_OF = st.builds(
    lambda size, given, storage_class, classes: {
        "spec": {"resources": {"requests": {"storage": size}}, "storageClassName": storage_class,
                 "volumeAttributesClassName": classes[0]},
        "status": {"allocatedResources": {"storage": given}, "currentVolumeAttributesClassName": classes[1]},
    },
    AMOUNTS,
    AMOUNTS,
    st.sampled_from(["fast", "slow"]),
    st.tuples(st.sampled_from(["", "gold", "silver"]), st.sampled_from(["", "gold", "silver"])),
)  # fmt: skip
DEVICE_CLAIMS_OF = st.builds(
    lambda requests, owner, extended: {
        "spec": {"devices": {"requests": [
            {"exactly": {"deviceClassName": name, "allocationMode": "ExactCount", "count": count}}
            for name, count in requests]}},
        "owner": owner if extended else None,
    },
    st.lists(st.tuples(st.sampled_from(["gpu", "tpu"]), st.integers(1, 3)), max_size=3),
    st.none() | NAMES,
    st.booleans(),
)  # fmt: skip
DOCUMENTS = {("", "pods"): PODS_OF, ("", "services"): SERVICES_OF, ("", "persistentvolumeclaims"): VOLUME_CLAIMS_OF,
             CLAIM_KIND: DEVICE_CLAIMS_OF}  # fmt: skip
WRITES = st.sampled_from(list(DOCUMENTS)).flatmap(lambda kind: st.tuples(st.just(kind), DOCUMENTS[kind]))


class Ledgers(RuleBasedStateMachine):
    """A ledger that observes each change, beside caches for a full recount."""

    def __init__(self) -> None:
        super().__init__()
        self.now = datetime(2026, 1, 1, tzinfo=UTC)
        self.stores: dict[GroupResource, Store[Object]] = {kind: Store() for kind in RESOURCES}
        self.stores[CLAIM_KIND].add_index(BY_POD, by_pod)
        self.classes = DeviceClasses()
        self.lookups = Lookups(
            lambda kind, key: self.stores[kind].get(key),
            lambda uid: self.stores[CLAIM_KIND].by_index(BY_POD, uid),
            lambda: self.classes,
        )
        self.ledger = Ledger(self.lookups, Features())
        self.number = 0

    def decode(self, kind: GroupResource, namespace: str, name: str, doc: dict[str, Any]) -> Object:
        self.number += 1
        meta: dict[str, Any] = {"name": name, "namespace": namespace, "uid": f"{namespace}-{name}",
                                "resourceVersion": str(self.number),
                                "creationTimestamp": f"2026-01-01T00:00:{self.number % 3:02}Z"}  # fmt: skip
        if doc.get("grace") is not None:
            meta |= {"deletionTimestamp": self.now.strftime("%Y-%m-%dT%H:%M:%SZ")}
            meta |= {"deletionGracePeriodSeconds": doc["grace"]}
        if doc.get("owner"):
            meta["annotations"] = {EXTENDED: "true"}
            owner = {"apiVersion": "v1", "kind": "Pod", "name": doc["owner"], "uid": f"{namespace}-{doc['owner']}"}
            meta["ownerReferences"] = [owner | {"controller": True}]
        body = {key: doc[key] for key in ("spec", "status") if key in doc}
        found: Object = RESOURCES[kind].decode(codec.encode({"metadata": meta, **body}))
        return found

    @rule(namespace=NAMESPACES, name=NAMES, write=WRITES)
    def written(self, namespace: str, name: str, write: tuple[GroupResource, dict[str, Any]]) -> None:
        kind, doc = write
        obj = self.decode(kind, namespace, name, doc)
        old = self.stores[kind].put(obj)
        if old is None:
            self.ledger.put(kind, obj, self.now)
        else:
            self.ledger.update(kind, old, obj, self.now)

    @rule(kind=st.sampled_from(list(RESOURCES)), namespace=NAMESPACES, name=NAMES)
    def deleted(self, kind: GroupResource, namespace: str, name: str) -> None:
        obj = self.stores[kind].pop(f"{namespace}/{name}")
        if obj is not None:
            self.ledger.drop(kind, obj, self.now)

    @rule(kind=st.sampled_from(list(RESOURCES)), namespace=NAMESPACES)
    def asked_for(self, kind: GroupResource, namespace: str) -> None:
        """A quota is created, or relisted: all objects are added, known ones again."""
        self.ledger.keep(kind, namespace)
        for obj in self.stores[kind].by_index(NAMESPACE, namespace):
            self.ledger.put(kind, obj, self.now)

    @rule(namespace=NAMESPACES)
    def no_quotas(self, namespace: str) -> None:
        self.ledger.forget(namespace)

    @rule(seconds=st.integers(1, 60))
    def time_passes(self, seconds: int) -> None:
        self.now += timedelta(seconds=seconds)

    @rule(extended=st.none() | st.just("example.com/gpu"))
    def classes_change(self, extended: str | None) -> None:
        doc = {"metadata": {"name": "gpu"}, "spec": {"extendedResourceName": extended} if extended else {}}
        self.classes = device_classes([DEVICE_CLASSES.decode(codec.encode(doc))])
        for namespace in self.ledger.kept(CLAIM_KIND):
            self.asked_for(CLAIM_KIND, namespace)

    @invariant()
    def equal_to_a_recount(self) -> None:
        fresh = Ledger(self.lookups, Features())
        for kind, store in self.stores.items():
            for namespace in self.ledger.kept(kind):
                fresh.keep(kind, namespace)
                for obj in store.by_index(NAMESPACE, namespace):
                    fresh.put(kind, obj, self.now)
                for asked in SCOPES:
                    kept = {n: a for n, a in self.ledger.used(kind, namespace, asked, self.now).items() if a}
                    assert kept == {n: a for n, a in fresh.used(kind, namespace, asked, self.now).items() if a}


TestLedgers = Ledgers.TestCase
TestLedgers.settings = settings(max_examples=20, stateful_step_count=30, deadline=None)


def test_objects_with_equal_usage_share_their_entry() -> None:
    machine = Ledgers()
    machine.ledger.keep(("", "pods"), "a")
    doc = {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]}}
    for number in range(3):
        machine.written("a", f"p{number}", (("", "pods"), doc))
    totals = machine.ledger._totals["a"]["", "pods"]
    assert len({id(totals.get(key)) for key in totals}) == 1


def test_a_claim_is_charged_to_the_extended_resources_of_its_classes() -> None:
    machine = Ledgers()
    machine.classes_change("example.com/gpu")
    machine.ledger.keep(CLAIM_KIND, "a")
    requests = [{"exactly": {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 3}}]
    machine.written("a", "c", (CLAIM_KIND, {"spec": {"devices": {"requests": requests}}}))
    used = machine.ledger.used(CLAIM_KIND, "a", (), machine.now)
    assert {name: str(amount) for name, amount in used.items()} == {
        "count/resourceclaims.resource.k8s.io": "1",
        f"gpu{DEVICES}": "3",
        f"requests.{IMPLICIT}gpu": "3",
        "requests.example.com/gpu": "3",
    }
    gate_off = Ledger(machine.lookups, Features(extended_resources=False))
    gate_off.keep(CLAIM_KIND, "a")
    for obj in machine.stores[CLAIM_KIND]:
        gate_off.put(CLAIM_KIND, obj, machine.now)
    assert gate_off.used(CLAIM_KIND, "a", (), machine.now).keys() == {
        "count/resourceclaims.resource.k8s.io", f"gpu{DEVICES}"}  # fmt: skip


def test_deleted_pods_with_long_grace_periods_are_dropped():
    ledgers = Ledgers()
    ledgers.ledger.keep(("", "pods"), "a")
    doc = {"spec": {"containers": []}, "grace": 10**9}
    for number in range(1000):
        pod = ledgers.decode(("", "pods"), "a", f"p{number}", doc)
        ledgers.ledger.put(("", "pods"), pod, ledgers.now)
        ledgers.ledger.put(("", "pods"), pod, ledgers.now)
        ledgers.ledger.drop(("", "pods"), pod, ledgers.now)
    assert len(ledgers.ledger._due["a"]) <= 200


def test_a_pod_that_remains_is_measured_when_its_deletion_is_overdue():
    """Also after the entries of other pods were removed."""
    ledgers, pods = Ledgers(), ("", "pods")
    ledgers.ledger.keep(pods, "a")
    ledgers.written("a", "stays", (pods, {"spec": {"containers": []}, "grace": 30}))
    for number in range(1000):
        pod = ledgers.decode(pods, "a", f"p{number}", {"spec": {"containers": []}, "grace": 10**9})
        ledgers.ledger.put(pods, pod, ledgers.now)
        ledgers.ledger.drop(pods, pod, ledgers.now)
    assert ledgers.ledger.used(pods, "a", (), ledgers.now)["pods"].value() == 1
    ledgers.time_passes(31)
    ledgers.equal_to_a_recount()
    assert "pods" not in ledgers.ledger.used(pods, "a", (), ledgers.now)
