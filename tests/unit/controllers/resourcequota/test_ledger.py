"""Incremental totals equal those of a full recount, after any changes in any order, also while they are measured."""

import random
from collections.abc import Coroutine
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

from kcm_cli.api.core import PERSISTENT_VOLUME_CLAIMS, PODS, SERVICES
from kcm_cli.api.devices import DEVICE_CLASSES, RESOURCE_CLAIMS
from kcm_cli.controllers.resourcequota import ledger
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
    """A ledger that observes each change, beside caches for a full recount. Each measurement is interrupted after a few
    objects, and what happens then happens in the middle of it."""

    def __init__(self) -> None:
        super().__init__()
        self.now = datetime(2026, 1, 1, tzinfo=UTC)
        self.stores: dict[GroupResource, Store[Object]] = {kind: Store() for kind in RESOURCES}
        self.stores[CLAIM_KIND].add_index(BY_POD, by_pod)
        self.classes = DeviceClasses()
        self.lookups = Lookups(
            lambda kind, key: self.stores[kind].get(key),
            lambda kind, namespace: (obj.key for obj in self.stores[kind].by_index(NAMESPACE, namespace)),
            lambda uid: self.stores[CLAIM_KIND].by_index(BY_POD, uid),
            lambda: self.classes,
            lambda: self.now,
        )
        self.ledger = Ledger(self.lookups, Features())
        self.measuring: list[tuple[str, Coroutine[Any, Any, None]]] = []
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
        self.stores[kind].put(obj)
        self.ledger.touch(kind, obj)

    @rule(kind=st.sampled_from(list(RESOURCES)), namespace=NAMESPACES, name=NAMES)
    def deleted(self, kind: GroupResource, namespace: str, name: str) -> None:
        obj = self.stores[kind].pop(f"{namespace}/{name}")
        if obj is not None:
            self.ledger.touch(kind, obj)

    @rule(kind=st.sampled_from(list(RESOURCES)), namespace=NAMESPACES)
    def asked_for(self, kind: GroupResource, namespace: str) -> None:
        """A quota is created."""
        self.ledger.keep(kind, namespace)

    @rule(namespace=NAMESPACES)
    def no_quotas(self, namespace: str) -> None:
        self.ledger.forget(namespace)

    @rule()
    def resync(self) -> None:
        for _ in self.ledger.restart():
            pass

    @rule(seconds=st.integers(1, 60))
    def time_passes(self, seconds: int) -> None:
        self.now += timedelta(seconds=seconds)

    @rule(extended=st.none() | st.just("example.com/gpu"))
    def classes_change(self, extended: str | None) -> None:
        doc = {"metadata": {"name": "gpu"}, "spec": {"extendedResourceName": extended} if extended else {}}
        self.classes = device_classes([DEVICE_CLASSES.decode(codec.encode(doc))])
        self.ledger.touch_all(CLAIM_KIND)

    @rule(namespace=NAMESPACES)
    def measurement_begins(self, namespace: str) -> None:
        self.measuring.append((namespace, self.ledger.settle(RESOURCES, namespace)))

    @rule(which=st.integers(0, 3))
    def measurement_goes_on(self, which: int) -> None:
        """To the next interruption. What a measurement that has ended returns equals a recount."""
        if not self.measuring:
            return
        namespace, running = self.measuring.pop(which % len(self.measuring))
        try:
            running.send(None)
            self.measuring.append((namespace, running))
        except StopIteration:
            self.equal_to_a_recount(namespace)

    def teardown(self) -> None:
        while self.measuring:
            self.measurement_goes_on(0)
        for namespace in ("a", "b"):
            finish(self.ledger.settle(RESOURCES, namespace))
            self.equal_to_a_recount(namespace)

    def equal_to_a_recount(self, namespace: str) -> None:
        fresh = Ledger(self.lookups, Features())
        kept = [kind for kind in RESOURCES if self.ledger.keeps(kind, namespace)]
        for kind in kept:
            fresh.keep(kind, namespace)
        finish(fresh.settle(kept, namespace))
        for kind in kept:
            for asked in SCOPES:
                used = {n: a for n, a in self.ledger.used(kind, namespace, asked).items() if a}
                assert used == {n: a for n, a in fresh.used(kind, namespace, asked).items() if a}


def finish(running: Coroutine[Any, Any, None]) -> None:
    """Run a coroutine that only yields."""
    try:
        while True:
            running.send(None)
    except StopIteration:
        return


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Measurements are interrupted after each second object."""
    monkeypatch.setattr(ledger, "AT_ONCE", 2)


class TestLedgers(Ledgers.TestCase):  # type: ignore[name-defined,misc]
    settings = settings(max_examples=30, stateful_step_count=50, deadline=None)


PODS_KIND: GroupResource = ("", "pods")


def plain_pod(cpu: int, labels: int = 0) -> dict[str, Any]:
    status = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True", "reason": str(labels)}]}
    return {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": str(cpu)}}}]}, "status": status}


def test_a_quota_that_is_filled_while_its_pods_change() -> None:
    """2,000 orders of updates (most of which change no usage), deletions, creations, second fills and resyncs."""
    docs = [plain_pod(cpu, labels) for cpu in (1, 2) for labels in (0, 1)]
    for seed in range(2_000):
        rng, machine = random.Random(seed), Ledgers()
        for number in range(5):
            machine.written("a", f"n{number}", (PODS_KIND, docs[0]))
        machine.ledger.keep(PODS_KIND, "a")
        fills = [machine.ledger.settle([PODS_KIND], "a")]
        while fills:
            match rng.randrange(8):
                case 0 | 1 | 2:
                    machine.written("a", f"n{rng.randrange(5)}", (PODS_KIND, rng.choice(docs)))
                case 3:
                    machine.deleted(PODS_KIND, "a", f"n{rng.randrange(5)}")
                case 4 if len(fills) < 2 and machine.number < 30:
                    fills.append(machine.ledger.settle([PODS_KIND], "a"))
                case 5 if machine.number < 30:
                    machine.resync()
                case _:
                    running = fills.pop(rng.randrange(len(fills)))
                    try:
                        running.send(None)
                        fills.append(running)
                    except StopIteration:
                        cpus = [
                            int(pod.spec.containers[0].resources.requests["cpu"]) for pod in machine.stores[PODS_KIND]
                        ]
                        used = machine.ledger.used(PODS_KIND, "a", ())
                        found = [int(used[name].value()) if name in used else 0 for name in ("pods", "requests.cpu")]
                        assert found == [len(cpus), sum(cpus)], seed


def test_claims_whose_pods_siblings_and_classes_change() -> None:
    """What changes a claim's charge is also a change of its pod, of another claim of that pod, and of its class."""
    requests = [{"exactly": {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 3}}]
    kinds, differing = [PODS_KIND, CLAIM_KIND], 0
    for seed in range(500):
        rng, machine, before = random.Random(seed), Ledgers(), None
        for kind in kinds:
            machine.ledger.keep(kind, "a")
        for _ in range(20):
            match rng.randrange(6):
                case 0:
                    claim = {"spec": {"devices": {"requests": requests}}, "owner": "p"}
                    machine.written("a", rng.choice(["one", "two"]), (CLAIM_KIND, claim))
                case 1:
                    machine.deleted(CLAIM_KIND, "a", rng.choice(["one", "two"]))
                case 2:
                    resources = {"requests": {"example.com/gpu": rng.choice("12")}}
                    pod = {
                        "spec": {"containers": [{"name": "c", "resources": resources}]},
                        "grace": rng.choice([None, 9]),
                    }
                    pod["status"] = {"extendedResourceClaimStatus": {"resourceClaimName": rng.choice(["one", "two"])}}
                    machine.written("a", "p", (PODS_KIND, pod))
                case 3:
                    machine.deleted(PODS_KIND, "a", "p")
                case 4:
                    machine.classes_change(rng.choice([None, "example.com/gpu"]))
                case _:
                    machine.time_passes(5)
            finish(machine.ledger.settle(kinds, "a"))
            machine.equal_to_a_recount("a")
            used = machine.ledger.used(CLAIM_KIND, "a", ())
            differing += used != before
            before = used
    assert differing > 1000


def test_objects_with_equal_usage_share_their_entry() -> None:
    machine = Ledgers()
    machine.ledger.keep(PODS_KIND, "a")
    for number in range(3):
        machine.written("a", f"p{number}", (PODS_KIND, plain_pod(1)))
    finish(machine.ledger.settle([PODS_KIND], "a"))
    totals = machine.ledger._places["a"][PODS_KIND].totals
    assert len({id(totals.get(key)) for key in totals}) == 1


def test_a_claim_is_charged_to_the_extended_resources_of_its_classes() -> None:
    machine = Ledgers()
    machine.classes_change("example.com/gpu")
    machine.ledger.keep(CLAIM_KIND, "a")
    requests = [{"exactly": {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 3}}]
    machine.written("a", "c", (CLAIM_KIND, {"spec": {"devices": {"requests": requests}}}))
    finish(machine.ledger.settle([CLAIM_KIND], "a"))
    used = machine.ledger.used(CLAIM_KIND, "a", ())
    assert {name: str(amount) for name, amount in used.items()} == {
        "count/resourceclaims.resource.k8s.io": "1",
        f"gpu{DEVICES}": "3",
        f"requests.{IMPLICIT}gpu": "3",
        "requests.example.com/gpu": "3",
    }
    gate_off = Ledger(machine.lookups, Features(extended_resources=False))
    gate_off.keep(CLAIM_KIND, "a")
    finish(gate_off.settle([CLAIM_KIND], "a"))
    assert gate_off.used(CLAIM_KIND, "a", ()).keys() == {"count/resourceclaims.resource.k8s.io", f"gpu{DEVICES}"}


def test_pods_that_are_gone_leave_nothing() -> None:
    """Also if nothing measures them, and whatever their grace period is."""
    machine = Ledgers()
    machine.ledger.keep(PODS_KIND, "a")
    for number in range(100):
        machine.written("a", f"p{number}", (PODS_KIND, {"spec": {"containers": []}, "grace": 10**9}))
        if number % 2:
            finish(machine.ledger.settle([PODS_KIND], "a"))
        machine.deleted(PODS_KIND, "a", f"p{number}")
    place = machine.ledger._places["a"][PODS_KIND]
    assert (len(place.totals), place.marked, place.due) == (0, set(), {})


def test_a_pod_is_measured_again_when_its_deletion_is_overdue() -> None:
    machine = Ledgers()
    machine.ledger.keep(PODS_KIND, "a")
    machine.written("a", "stays", (PODS_KIND, {"spec": {"containers": []}, "grace": 30}))
    finish(machine.ledger.settle([PODS_KIND], "a"))
    assert machine.ledger.used(PODS_KIND, "a", ())["pods"].value() == 1
    machine.time_passes(31)
    finish(machine.ledger.settle([PODS_KIND], "a"))
    assert "pods" not in machine.ledger.used(PODS_KIND, "a", ())


def test_a_pod_that_cannot_be_measured_is_not_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Ledgers()
    machine.ledger.keep(PODS_KIND, "a")
    for name in ("p", "q", "r"):
        machine.written("a", name, (PODS_KIND, plain_pod(1)))
    measure = ledger.plan.measure
    with monkeypatch.context() as broken:
        broken.setattr(
            ledger.plan, "measure", lambda kind, obj, *rest: 1 / 0 if obj.name == "q" else measure(kind, obj, *rest)
        )
        for _ in range(3):
            with pytest.raises(ZeroDivisionError):
                finish(machine.ledger.settle([PODS_KIND], "a"))
    finish(machine.ledger.settle([PODS_KIND], "a"))
    assert machine.ledger.used(PODS_KIND, "a", ())["pods"].value() == 3
