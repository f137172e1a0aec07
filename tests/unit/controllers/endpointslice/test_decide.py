"""The writes of one sync of a Service."""

import msgspec
import pytest

from kcm_cli.api.discovery import ENDPOINT_SLICES, EndpointConditions
from kcm_cli.controllers.endpointslice.plan import plan
from kcm_cli.controllers.endpointslice.plan.desired import address_types
from kcm_cli.planning.actions import Create, Update
from kcm_cli.planning.endpoints.slices import Efficiency
from tests.kit.growth import grows_linearly
from tests.unit.controllers.endpointslice.making import apply, many, settled, snapshot, verbs, writes
from tests.unit.planning.endpoints.making import pod, service


def test_a_service_without_pods_has_an_empty_slice():
    (slice_,) = settled(snapshot())
    assert (slice_.members, slice_.ports, slice_.address_type) == ((), (), "IPv4")
    assert slice_.labels == {
        "kubernetes.io/service-name": "web",
        "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io",
    }
    (owner,) = slice_.metadata.owner_references
    assert (owner.api_version, owner.kind, owner.name, owner.controller) == ("v1", "Service", "web", True)
    assert slice_.metadata.generate_name == "web-"


@pytest.mark.parametrize("pods", [[], [pod("a")], many(250)], ids=["none", "one", "many"])
def test_a_second_sync_writes_nothing(pods):
    assert writes(snapshot(pods, settled(snapshot(pods)))) == []


def test_the_empty_slice_is_filled_and_emptied_in_place():
    slices = settled(snapshot())
    done = writes(snapshot([pod("a")], slices))
    assert verbs(done) == ["Update"]
    slices = apply(slices, done)
    assert slices[0].ports[0].port == 80
    done = writes(snapshot([], slices))
    assert verbs(done) == ["Update"]
    (slice_,) = apply(slices, done)
    assert (slice_.members, slice_.ports) == ((), ())


@pytest.mark.parametrize(
    ("options", "publishes", "wanted"),
    [
        pytest.param({}, False, (True, True, False), id="ready"),
        pytest.param({"ready": False}, False, (False, False, False), id="unready"),
        pytest.param({"ready": None}, False, (False, False, False), id="no word on readiness"),
        pytest.param({"deleted": True}, False, (False, True, True), id="terminating"),
        pytest.param({"ready": False}, True, (True, False, False), id="unready, published"),
        pytest.param({"deleted": True}, True, (True, True, True), id="terminating, published"),
    ],
)
def test_conditions(options, publishes, wanted):
    subject = service(publishNotReadyAddresses=publishes)
    (slice_,) = settled(snapshot([pod("a", **options)], subject=subject))
    assert slice_.members[0].conditions == EndpointConditions(*wanted)


def test_an_endpoint_names_pod_node_zone_and_host():
    (slice_,) = settled(snapshot([pod("a", hostname="h", subdomain="web", node="n2")]))
    (endpoint,) = slice_.members
    assert (endpoint.addresses, endpoint.node_name, endpoint.zone, endpoint.hostname) == (
        ("10.0.0.1",),
        "n2",
        "z2",
        "h",
    )
    assert (endpoint.target_ref.kind, endpoint.target_ref.name, endpoint.target_ref.uid) == ("Pod", "a", "uid-a")


def test_pods_of_unknown_nodes_are_left_out_and_reported():
    shot = snapshot([pod("a"), pod("b", "10.0.0.2", node="nowhere")])
    (slice_,) = settled(shot)
    assert [endpoint.target_ref.name for endpoint in slice_.members] == ["a"]
    assert plan(shot, "IPv4").problems == ("skipping Pod b for Service ns/web: Node nowhere Not Found",)


def test_pods_of_unknown_nodes_stay_where_all_addresses_are_published():
    shot = snapshot([pod("b", node="nowhere")], subject=service(publishNotReadyAddresses=True))
    assert len(settled(shot)[0].members) == 1
    assert plan(shot, "IPv4").problems == ()


def test_pods_with_different_ports_are_in_different_slices():
    subject = service(ports=[{"name": "p", "port": 80, "targetPort": "http", "protocol": "TCP"}])
    pods = [
        pod(name, containers=[{"name": "c", "ports": [{"name": "http", "containerPort": number}]}])
        for name, number in (("a", 8080), ("b", 9090))
    ]
    pods.append(pod("c"))
    slices = settled(snapshot(pods, subject=subject))
    assert {tuple(port.port for port in slice_.ports): len(slice_.members) for slice_ in slices} == {
        (8080,): 1,
        (9090,): 1,
        (): 1,
    }


class TestFamilies:
    @pytest.mark.parametrize(
        ("spec", "wanted"),
        [
            pytest.param({"ipFamilies": ["IPv4"]}, ("IPv4",), id="one"),
            pytest.param({"ipFamilies": ["IPv6", "IPv4"]}, ("IPv4", "IPv6"), id="both"),
            pytest.param({"ipFamilies": [], "clusterIP": "10.0.0.1"}, ("IPv4",), id="guessed from the address"),
            pytest.param({"ipFamilies": [], "clusterIP": "fd00::1"}, ("IPv6",), id="guessed from the IPv6 address"),
            pytest.param({"ipFamilies": [], "clusterIP": "None"}, ("IPv4", "IPv6"), id="headless"),
        ],
    )
    def test_of_a_service(self, spec, wanted):
        assert address_types(service(**spec)) == wanted

    def test_each_has_its_slices(self):
        pods = [pod("a", "10.0.0.1", "fd00::1"), pod("b", "10.0.0.2")]
        subject = service(ipFamilies=["IPv4", "IPv6"])
        four = settled(snapshot(pods, subject=subject), "IPv4")
        (six,) = settled(snapshot(pods, subject=subject), "IPv6")
        assert len(four[0].members) == 2
        assert [endpoint.addresses for endpoint in six.members] == [("fd00::1",)]
        assert writes(snapshot(pods, [*four, msgspec.structs.replace(six)], subject), "IPv6") == []


class TestLabels:
    def test_follow_the_service(self):
        slices = settled(snapshot([pod("a")], subject=service(labels={"a": "b"})))
        done = writes(snapshot([pod("a")], slices, service(labels={"c": "d"})))
        assert verbs(done) == ["Update"]
        labels = apply(slices, done)[0].labels
        assert labels["c"] == "d"
        assert "a" not in labels

    def test_reserved_ones_are_not_taken_over(self):
        reserved = {"kubernetes.io/service-name": "x", "service.kubernetes.io/headless": "x"}
        slices = settled(snapshot([pod("a")], subject=service(labels=reserved)))
        assert slices[0].labels["kubernetes.io/service-name"] == "web"
        assert "service.kubernetes.io/headless" not in slices[0].labels
        assert writes(snapshot([pod("a")], slices, service(labels=reserved))) == []

    def test_headless_services_are_marked(self):
        (slice_,) = settled(snapshot(subject=service(clusterIP="None")))
        assert slice_.labels["service.kubernetes.io/headless"] == ""

    @pytest.mark.parametrize(("before", "after"), [("None", "10.0.0.1"), ("10.0.0.1", "None")])
    def test_that_mark_alone_is_no_reason_to_write(self, before, after):
        for pods in ([], [pod("a")]):
            slices = settled(snapshot(pods, subject=service(clusterIP=before)))
            assert writes(snapshot(pods, slices, service(clusterIP=after))) == []

    def test_of_an_empty_slice_follow_as_well(self):
        slices = settled(snapshot(subject=service(labels={"a": "b"})))
        slices = apply(slices, writes(snapshot(slices=slices, subject=service(labels={"c": ""}))))
        assert slices[0].labels["c"] == ""
        assert "a" not in slices[0].labels


def test_a_slice_of_an_earlier_service_is_deleted():
    slices = settled(snapshot([pod("a")]))
    newer = msgspec.structs.replace(service(), metadata=msgspec.structs.replace(service().metadata, uid="new"))
    done = writes(snapshot([pod("a")], slices, newer))
    assert verbs(done) == ["Create", "Delete"]


def test_a_service_being_deleted_gets_no_new_slices():
    slices = settled(snapshot([pod("a")]))
    deleted = service(deleted=True)
    assert writes(snapshot([pod("a")], subject=deleted)) == []
    assert verbs(writes(snapshot([pod("a", ready=False)], slices, deleted))) == ["Update"]


def test_trigger_time_is_written_and_removed():
    shot = snapshot([pod("a")], trigger_time="2026-01-01T00:00:01Z")
    (create,) = writes(shot)
    assert isinstance(create, Create)
    slices = apply([], [create])
    key = "endpoints.kubernetes.io/last-change-trigger-time"
    assert slices[0].annotations == {key: "2026-01-01T00:00:01Z"}
    (update,) = writes(snapshot([pod("a", ready=False)], slices))
    assert isinstance(update, Update)
    assert apply(slices, [update])[0].annotations == {}


def test_annotations_and_unknown_fields_of_a_slice_survive():
    (slice_,) = settled(snapshot([pod("a")]))
    doc = {**msgspec.json.decode(slice_.raw), "future": {"field": 1}}
    doc["metadata"]["annotations"] = {"own": "note"}
    changed = type(slice_)
    kept = msgspec.structs.replace(msgspec.json.decode(msgspec.json.encode(doc), type=changed))
    msgspec.structs.force_setattr(kept, "raw", msgspec.json.encode(doc))
    (after,) = apply([kept], writes(snapshot([pod("a", ready=False)], [kept])))
    assert after.annotations == {"own": "note"}
    assert msgspec.json.decode(after.raw)["future"] == {"field": 1}


@pytest.mark.parametrize("port", [81, None], ids=["other ports", "no endpoints are left"])
def test_annotations_of_a_slice_survive_that_it_is_used_for_something_else(port):
    (slice_,) = settled(snapshot([pod("a")], trigger_time="2026-01-01T00:00:01Z"))
    doc = msgspec.json.decode(slice_.raw)
    doc["metadata"]["annotations"] |= {"own": "note"}
    noted = ENDPOINT_SLICES.decode(msgspec.json.encode(doc))
    ports = [{"port": port, "targetPort": port, "protocol": "TCP"}]
    shot = snapshot([], [noted]) if port is None else snapshot([pod("a")], [noted], service(ports=ports))
    done = writes(shot)
    assert verbs(done) == ["Update"]
    (after,) = apply([noted], done)
    assert [one.port for one in after.ports] == ([] if port is None else [port])
    assert after.annotations == {"own": "note"}


def test_metrics():
    decision = plan(snapshot(many(150)), "IPv4")
    assert (decision.added, decision.removed) == (150, 0)
    assert list(decision.efficiency.values()) == [Efficiency(150, 2)]
    slices = settled(snapshot(many(150)))
    decision = plan(snapshot(many(100), slices), "IPv4")
    assert (decision.added, decision.removed) == (0, 50)
    assert (decision.topology, decision.distribution) == ("Disabled", "")


def test_many_ports_of_many_pods_cost_no_more_than_both():
    """A range of ports, as of a media server, is a list in the Service."""

    def prepare(count):
        ports = [{"name": f"p{n}", "port": n + 1, "targetPort": n + 1, "protocol": "TCP"} for n in range(count)]
        pods, subject = many(count), service(ports=ports)
        slices = settled(snapshot(pods, subject=subject, max_per_slice=count))
        return lambda: writes(snapshot(pods[1:], slices, subject, max_per_slice=count))

    assert grows_linearly(prepare, 100)
