"""The selectors of a pod's Services and controllers, and default spreading by them."""

from typing import Any

import pytest

from kcm_cli.machinery import codec
from kcm_cli.machinery.labels import Selector
from kcm_cli.runtime.store import Store
from kcm_cli.sandbox.scheduler import workloads
from kcm_cli.sandbox.scheduler.workloads import Workloads
from kcm_cli.sandbox.views import SERVICES
from tests.unit.sandbox.scheduler.build import choices, node_doc, pod, state_of

MAP = {"spec": {"selector": {"app": "a"}}}
FULL = {"spec": {"selector": {"matchExpressions": [{"key": "app", "operator": "In", "values": ["a", "b"]}]}}}


def store_of(kind: Any, *docs: dict) -> Store[Any]:
    store: Store[Any] = Store()
    for doc in docs:
        store.put(kind.decode(codec.encode({"metadata": {"namespace": "default", "name": "x"}, **doc})))
    return store


def known(**docs: dict) -> Workloads:
    kinds = {
        "services": SERVICES,
        "replication_controllers": workloads.REPLICATION_CONTROLLERS,
        "replica_sets": workloads.REPLICA_SETS,
        "stateful_sets": workloads.STATEFUL_SETS,
    }
    return Workloads(*(store_of(kind, *([docs[name]] if name in docs else [])) for name, kind in kinds.items()))


def owned(kind: str, api_version: str = "apps/v1", labels: dict | None = None) -> Any:
    owner = {"apiVersion": api_version, "kind": kind, "name": "x", "uid": "u", "controller": True}
    return pod("p", {"app": "a"} if labels is None else labels, metadata={"ownerReferences": [owner]})


@pytest.mark.parametrize(
    ("docs", "info", "expected"),
    [
        pytest.param({}, pod("p", {"app": "a"}), "", id="nothing"),
        pytest.param({"services": MAP}, pod("p", {"app": "a", "v": "1"}), "app=a", id="service"),
        pytest.param({"services": MAP}, pod("p", {"app": "b"}), "", id="another's service"),
        pytest.param({"services": {"spec": {}}}, pod("p"), "", id="service without a selector"),
        pytest.param({"services": {"spec": {"selector": {}}}}, pod("p"), "", id="service that selects all"),
        pytest.param({"replica_sets": FULL}, owned("ReplicaSet"), "app in (a,b)", id="ReplicaSet"),
        pytest.param({"stateful_sets": FULL}, owned("StatefulSet"), "app in (a,b)", id="StatefulSet"),
        pytest.param({"replication_controllers": MAP}, owned("ReplicationController", "v1"), "app=a", id="RC"),
        pytest.param({"replica_sets": FULL}, owned("ReplicaSet", "other/v1"), "", id="another group's ReplicaSet"),
        pytest.param({}, owned("ReplicaSet"), "", id="owner gone"),
        pytest.param({"replica_sets": FULL, "services": MAP}, owned("ReplicaSet"), "app=a,app in (a,b)", id="both"),
        pytest.param({"replica_sets": FULL}, owned("Job", "batch/v1"), "", id="owner of another kind"),
    ],
)
def test_selectors_of_services_and_controllers(docs, info, expected):
    assert str(known(**docs).selector_for(info.pod)) == expected


def test_selectors_follow_services_and_controllers():
    stores = known(replica_sets=FULL)
    info = owned("ReplicaSet")
    assert str(stores.selector_for(info.pod)) == "app in (a,b)"
    stores.services.put(SERVICES.decode(codec.encode({"metadata": {"namespace": "default", "name": "s"}, **MAP})))
    assert str(stores.selector_for(info.pod)) == "app=a,app in (a,b)"
    stores.replica_sets.pop("default/x")
    assert str(stores.selector_for(info.pod)) == "app=a"
    stores.services.pop("default/s")
    assert str(stores.selector_for(info.pod)) == ""


def test_not_every_service_is_compared_with_a_pod(monkeypatch):
    stores = known()
    for number in range(200):
        doc = {"metadata": {"namespace": "default", "name": f"s{number}"}, "spec": {"selector": {"app": f"a{number}"}}}
        stores.services.put(SERVICES.decode(codec.encode(doc)))
    compared = []
    matches = Selector.matches
    monkeypatch.setattr(Selector, "matches", lambda self, labels: compared.append(self) or matches(self, labels))
    assert str(stores.selector_for(pod("p", {"app": "a7", "v": "1"}).pod)) == "app=a7"
    assert len(compared) == 1


def test_pods_of_a_workload_are_spread():
    busy = pod("busy", {"app": "other"}, cpu="2")
    state = state_of(node_doc("a"), node_doc("b"), pods={"a": [owned("ReplicaSet")], "b": [busy]})
    assert choices(pod("q", {"app": "a"}), state) == {"a"}
    state.selector_for = known(services=MAP).selector_for
    assert choices(pod("q", {"app": "a"}), state) == {"b"}
