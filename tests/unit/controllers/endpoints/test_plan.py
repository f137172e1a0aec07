"""The writes to the Endpoints of a Service."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kcm_cli.api.endpoints import ENDPOINTS, Endpoints
from kcm_cli.controllers.endpoints.plan import Snapshot, plan
from kcm_cli.machinery import codec
from kcm_cli.planning.actions import Create, Update, edited
from tests.kit.growth import grows_linearly
from tests.unit.planning.endpoints.making import pod, service

MANAGED = {"endpoints.kubernetes.io/managed-by": "endpoint-controller"}


def planned(pods=(), existing=None, subject=None, time="") -> Create | Update | None:
    return plan(Snapshot(subject or service(), tuple(pods), existing, time))


def settled(pods=(), existing=None, subject=None, time="") -> Endpoints:
    """The Endpoints after the write."""
    match planned(pods, existing, subject, time):
        case Create(body=dict() as body):
            return ENDPOINTS.decode(codec.encode(body))
        case Update(obj=old, changes=changes):
            return ENDPOINTS.decode(codec.encode(edited(old, changes)))
    return existing


def shown(endpoints: Endpoints) -> Any:
    """Ready and unready addresses with the numbers of their ports."""
    return [
        (
            [address.ip for address in subset.addresses],
            [address.ip for address in subset.not_ready_addresses],
            [port.port for port in subset.ports],
        )
        for subset in endpoints.subsets
    ]


@pytest.mark.parametrize(
    ("options", "publishes", "wanted"),
    [
        pytest.param({}, False, [(["10.0.0.1"], [], [80])], id="ready"),
        pytest.param({"ready": False}, False, [([], ["10.0.0.1"], [80])], id="unready"),
        pytest.param({"ready": False}, True, [(["10.0.0.1"], [], [80])], id="unready, published"),
        pytest.param({"deleted": True}, False, [], id="terminating"),
        pytest.param({"deleted": True}, True, [(["10.0.0.1"], [], [80])], id="terminating, published"),
        pytest.param({"phase": "Failed"}, True, [], id="ended"),
        pytest.param({"node": "nowhere"}, False, [(["10.0.0.1"], [], [80])], id="unknown node"),
    ],
)
def test_states_of_pods(options, publishes, wanted):
    assert shown(settled([pod("a", **options)], subject=service(publishNotReadyAddresses=publishes))) == wanted


def test_an_address_names_pod_node_and_host():
    (subset,) = settled([pod("a", hostname="h", subdomain="web")]).subsets
    (address,) = subset.addresses
    assert (address.hostname, address.node_name) == ("h", "n1")
    assert (address.target_ref.kind, address.target_ref.name, address.target_ref.uid) == ("Pod", "a", "uid-a")


@pytest.mark.parametrize(
    ("spec", "wanted"),
    [
        pytest.param({"ipFamilies": ["IPv4", "IPv6"]}, "10.0.0.1", id="first family"),
        pytest.param({"ipFamilies": ["IPv6", "IPv4"]}, "fd00::1", id="first family, IPv6"),
        pytest.param({"ipFamilies": [], "clusterIP": "fd00::9"}, "fd00::1", id="of the Service's address"),
        pytest.param({"ipFamilies": [], "clusterIP": "None"}, "10.0.0.1", id="of the pod's address"),
    ],
)
def test_family(spec, wanted):
    endpoints = settled([pod("a", "10.0.0.1", "fd00::1")], subject=service(**spec))
    assert endpoints.subsets[0].addresses[0].ip == wanted


def test_a_pod_without_an_address_of_the_family_is_left_out():
    assert shown(settled([pod("a")], subject=service(ipFamilies=["IPv6"]))) == []


class TestPorts:
    def test_pods_without_the_named_port_serve_the_other_ports(self):
        named = [{"name": "c", "ports": [{"name": "http", "containerPort": 8080}]}]
        ports = [
            {"name": "n", "port": 80, "targetPort": "http", "protocol": "TCP"},
            {"name": "o", "port": 81, "targetPort": 81, "protocol": "TCP"},
        ]
        pods = [pod("a", "10.0.0.1", containers=named), pod("b", "10.0.0.2")]
        found = shown(settled(pods, subject=service(ports=ports)))
        assert sorted(found) == [(["10.0.0.1"], [], [8080]), (["10.0.0.1", "10.0.0.2"], [], [81])]

    def test_headless_services_need_none(self):
        assert shown(settled([pod("a")], subject=service(clusterIP="None", ports=[]))) == [(["10.0.0.1"], [], [])]
        assert shown(settled([pod("a")], subject=service(ports=[]))) == []


class TestWrites:
    def test_no_write_without_a_difference(self):
        assert planned([pod("a"), pod("b", "10.0.0.2")], settled([pod("b", "10.0.0.2"), pod("a")])) is None

    def test_no_write_for_an_equivalent_layout(self):
        existing = settled([pod("a"), pod("b", "10.0.0.2")])
        doc = codec.decode_doc(codec.encode(existing))
        (subset,) = doc["subsets"]
        doc["subsets"] = [{**subset, "addresses": [address]} for address in reversed(subset["addresses"])]
        assert planned([pod("a"), pod("b", "10.0.0.2")], ENDPOINTS.decode(codec.encode(doc))) is None

    def test_labels_of_the_service(self):
        endpoints = settled([pod("a")], subject=service(labels={"a": "b"}))
        assert endpoints.labels == {"a": "b", **MANAGED}
        changed = service(labels={"c": "d"})
        assert settled([pod("a")], endpoints, changed).labels == {"c": "d", **MANAGED}
        assert settled([pod("a")], subject=service(clusterIP="None")).labels["service.kubernetes.io/headless"] == ""

    def test_endpoints_of_another_client_are_taken_over(self):
        existing = ENDPOINTS.decode(b'{"metadata":{"name":"web","namespace":"ns","annotations":{"k":"v"}}}')
        endpoints = settled([pod("a")], existing)
        assert endpoints.labels == MANAGED
        assert endpoints.annotations == {"k": "v"}

    def test_trigger_time(self):
        key = "endpoints.kubernetes.io/last-change-trigger-time"
        endpoints = settled([pod("a")], time="2026-01-01T00:00:01Z")
        assert endpoints.annotations == {key: "2026-01-01T00:00:01Z"}
        assert planned([pod("a")], endpoints, time="2026-01-01T00:00:02Z") is None
        assert settled([pod("a", ready=False)], endpoints).annotations == {}

    def test_failures_are_reported(self):
        create = planned([pod("a")])
        ref = create.failed.ref
        assert (create.failed.reason, ref.kind, ref.namespace, ref.name) == (
            "FailedToCreateEndpoint",
            "Endpoints",
            "ns",
            "web",
        )
        assert create.failed.message == "Failed to create endpoint for service ns/web: {error}"
        update = planned([], settled([pod("a")]))
        assert (update.failed.reason, update.failed.message) == (
            "FailedToUpdateEndpoint",
            "Failed to update endpoint ns/web: {error}",
        )


@pytest.mark.parametrize("address", ["10.0.0.9", "None"])
def test_no_write_for_a_service_that_has_the_label_of_headless_ones(address):
    subject = service(labels={"service.kubernetes.io/headless": ""}, clusterIP=address)
    assert planned([pod("a")], settled([pod("a")], subject=subject), subject) is None


def many(count: int, first: int = 0, **options: Any) -> list[Any]:
    return [
        pod(f"p{n}", f"10.{n // 62500}.{n // 250 % 250}.{n % 250 + 1}", **options) for n in range(first, first + count)
    ]


def test_many_ports_of_many_pods_cost_no_more_than_both():
    """A range of ports, as of a media server, is a list in the Service."""

    def prepare(count):
        ports = [{"name": f"p{n}", "port": n + 1, "targetPort": n + 1, "protocol": "TCP"} for n in range(count)]
        pods, subject = many(count), service(ports=ports)
        existing = settled(pods, subject=subject)
        return lambda: planned(pods[1:], existing, subject)

    assert grows_linearly(prepare, 100)


class TestCapacity:
    KEY = "endpoints.kubernetes.io/over-capacity"

    def test_a_thousand_fit(self):
        endpoints = settled(many(1000))
        assert len(endpoints.subsets[0].addresses) == 1000
        assert self.KEY not in endpoints.annotations

    def test_ready_addresses_have_priority(self):
        pods = many(900) + many(300, 900, ready=False)
        (subset,) = settled(pods).subsets
        assert (len(subset.addresses), len(subset.not_ready_addresses)) == (900, 100)
        (subset,) = settled(many(1100) + many(10, 1100, ready=False)).subsets
        assert (len(subset.addresses), len(subset.not_ready_addresses)) == (1000, 0)

    def test_the_capacity_annotation_is_set_and_removed(self):
        endpoints = settled(many(1001))
        assert endpoints.annotations[self.KEY] == "truncated"
        assert planned(many(1001), endpoints) is None
        assert self.KEY not in settled(many(10), endpoints).annotations

    @pytest.mark.parametrize(
        "counts",
        [
            pytest.param([(1001, True), (1, False)], id="an unready pod beside too many ready ones"),
            pytest.param([(700, True), (700, True), (1, True)], id="no room is left by rounding"),
            pytest.param([(700, True), (400, False), (400, False), (1, False)], id="the same of unready ones"),
        ],
    )
    def test_no_subset_is_left_empty(self, counts):
        """The API server refuses such a one."""
        pods, begin = [], 0
        for index, (count, ready) in enumerate(counts):
            ports = [{"name": "http", "containerPort": 8000 + index}]
            pods += many(count, begin, ready=ready, containers=[{"name": "c", "ports": ports}])
            begin += count
        subject = service(ports=[{"port": 80, "targetPort": "http", "protocol": "TCP"}])
        for before in (None, settled(subject=subject)):
            endpoints = settled(pods, before, subject)
            assert sum(len(subset.addresses) + len(subset.not_ready_addresses) for subset in endpoints.subsets) == 1000
            assert all(subset.addresses or subset.not_ready_addresses for subset in endpoints.subsets)
            assert planned(pods, endpoints, subject) is None

    @settings(deadline=None, max_examples=10)
    @given(st.lists(st.integers(0, 700), min_size=1, max_size=4))
    def test_subsets_shrink_in_proportion(self, counts):
        pods = []
        for index, count in enumerate(counts):
            ports = [{"name": "http", "containerPort": 8000 + index}]
            pods += many(count, index * 700, containers=[{"name": "c", "ports": ports}])
        subject = service(ports=[{"port": 80, "targetPort": "http", "protocol": "TCP"}])
        endpoints = settled(pods, subject=subject)
        placed = [len(subset.addresses) for subset in endpoints.subsets]
        total = sum(counts)
        assert sum(placed) == min(total, 1000)
        if total > 1000:
            for subset in endpoints.subsets:
                share = counts[subset.ports[0].port - 8000] / total * 1000
                assert len(subset.addresses) <= share + 1
