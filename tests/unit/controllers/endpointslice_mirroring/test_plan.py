"""The EndpointSlices that mirror Endpoints."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kcm_cli.api.discovery import EndpointSlice
from kcm_cli.api.endpoints import ENDPOINTS, Endpoints
from kcm_cli.controllers.endpointslice_mirroring.plan import Mirroring, Snapshot, mirrorable, plan
from kcm_cli.machinery import codec
from kcm_cli.planning.actions import Action
from tests.unit.controllers.endpointslice.making import apply, verbs

HTTP = {"name": "http", "port": 80, "protocol": "TCP"}
DNS = {"name": "dns", "port": 53, "protocol": "UDP"}


def endpoints(*subsets: dict[str, Any], **metadata: Any) -> Endpoints:
    full = {"name": "ext", "namespace": "ns", "uid": "e1", **metadata}
    return ENDPOINTS.decode(codec.encode({"metadata": full, "subsets": subsets}))


def subset(*ips: str, ports: Any = (HTTP,), unready: Any = ()) -> dict[str, Any]:
    return {
        "addresses": [{"ip": ip} for ip in ips],
        "notReadyAddresses": [{"ip": ip} for ip in unready],
        "ports": list(ports),
    }


def decided(subject: Endpoints, slices: Any = (), limit: int = 1000) -> tuple[Mirroring, list[Action]]:
    decision = plan(Snapshot(subject, tuple(slices), limit))
    return decision, [action for stage in decision.stages for action in stage.actions]


def settled(subject: Endpoints, slices: Any = (), limit: int = 1000) -> list[EndpointSlice]:
    return apply(slices, decided(subject, slices, limit)[1])


def shown(slices: list[EndpointSlice]) -> list[Any]:
    return sorted(
        (
            slice_.address_type,
            [port.port for port in slice_.ports],
            [(endpoint.addresses[0], endpoint.ready) for endpoint in slice_.members],
        )
        for slice_ in slices
    )


def test_each_family_and_port_set_has_its_slices():
    subject = endpoints(subset("10.0.0.1", "fd00::1", unready=["10.0.0.2"]), subset("10.0.0.3", ports=[DNS]))
    assert shown(settled(subject)) == [
        ("IPv4", [53], [("10.0.0.3", True)]),
        ("IPv4", [80], [("10.0.0.1", True), ("10.0.0.2", False)]),
        ("IPv6", [80], [("fd00::1", True)]),
    ]


def test_an_endpoint_keeps_host_node_and_target():
    target = {"kind": "Pod", "name": "p", "namespace": "ns", "resourceVersion": "7"}
    address = {"ip": "10.0.0.1", "hostname": "h", "nodeName": "n", "targetRef": target}
    (slice_,) = settled(endpoints({"addresses": [address], "ports": [HTTP]}))
    (endpoint,) = slice_.members
    assert (endpoint.hostname, endpoint.node_name, endpoint.target_ref.resource_version) == ("h", "n", "7")
    assert (endpoint.conditions.ready, endpoint.conditions.serving, endpoint.conditions.terminating) == (
        True,
        None,
        None,
    )


def test_labels_and_annotations_are_copied():
    annotations = {
        "k": "v",
        "kubectl.kubernetes.io/last-applied-configuration": "x",
        "endpoints.kubernetes.io/last-change-trigger-time": "x",
    }
    subject = endpoints(subset("10.0.0.1"), labels={"a": "b"}, annotations=annotations)
    (slice_,) = settled(subject)
    assert slice_.annotations == {"k": "v"}
    assert slice_.labels == {
        "a": "b",
        "kubernetes.io/service-name": "ext",
        "endpointslice.kubernetes.io/managed-by": "endpointslicemirroring-controller.k8s.io",
    }
    (owner,) = slice_.metadata.owner_references
    assert (owner.kind, owner.name, owner.uid) == ("Endpoints", "ext", "e1")


@pytest.mark.parametrize("label", ["kubernetes.io/service-name", "endpointslice.kubernetes.io/managed-by"])
def test_a_label_that_endpoints_share_with_slices_is_no_reason_to_write(label):
    """As those have that were copied from a slice."""
    subject = endpoints(subset("10.0.0.1"), labels={"a": "b", label: "theirs"})
    slices = settled(subject)
    assert slices[0].labels == settled(endpoints(subset("10.0.0.1"), labels={"a": "b"}))[0].labels
    assert decided(subject, slices)[1] == []


@pytest.mark.parametrize(
    ("after", "wanted"),
    [
        pytest.param(endpoints(subset("10.0.0.1")), [], id="nothing"),
        pytest.param(endpoints(subset("10.0.0.2")), ["Update"], id="other address"),
        pytest.param(endpoints(subset(unready=["10.0.0.1"])), ["Update"], id="readiness"),
        pytest.param(endpoints(subset("10.0.0.1"), labels={"a": "b"}), ["Update"], id="label"),
        pytest.param(endpoints(subset("10.0.0.1"), annotations={"a": "b"}), ["Update"], id="annotation"),
        pytest.param(endpoints(subset("10.0.0.1", ports=[DNS])), ["Update"], id="other ports: the slice is reused"),
        pytest.param(endpoints(subset("fd00::1")), ["Create", "Delete"], id="other family: it cannot be"),
        pytest.param(endpoints(subset("10.0.0.1"), uid="e2"), ["Update"], id="new Endpoints of the name"),
        pytest.param(endpoints(), ["Delete"], id="no addresses"),
    ],
)
def test_changes(after, wanted):
    slices = settled(endpoints(subset("10.0.0.1")))
    done = decided(after, slices)[1]
    assert verbs(done) == wanted
    assert shown(apply(slices, done)) == shown(settled(after))
    assert decided(after, apply(slices, done))[1] == []


def test_other_ports_of_both_families_are_written_into_the_slices_that_exist():
    ips = ("10.0.0.1", "fd00::1")
    slices = settled(endpoints(subset(*ips), subset("10.0.0.2", "fd00::2", ports=[{**HTTP, "port": 81}])))
    after = endpoints(subset(*ips, ports=[DNS]), subset("10.0.0.2", "fd00::2", ports=[{**DNS, "port": 54}]))
    done = decided(after, slices)[1]
    assert verbs(done) == ["Update"] * 4
    assert shown(apply(slices, done)) == shown(settled(after))


def test_slices_with_the_same_ports_are_merged():
    (one,) = settled(endpoints(subset("10.0.0.1")))
    two = apply([one], decided(endpoints(subset("10.0.0.2")))[1])
    assert len(two) == 2
    assert shown(settled(endpoints(subset("10.0.0.1")), two)) == [("IPv4", [80], [("10.0.0.1", True)])]


def test_endpoints_being_deleted_get_no_new_slices():
    subject = endpoints(subset("10.0.0.1"), deletionTimestamp="2026-01-01T00:00:00Z")
    assert decided(subject)[1] == []


def test_skipped_addresses_are_counted_and_reported():
    decision, _ = decided(endpoints(subset("10.0.0.1", "nonsense", "10.0.0.2", unready=["10.0.0.3"])), limit=2)
    assert (decision.added, decision.skipped) == (2, 2)
    assert [(notice.reason, notice.message) for notice in decision.notices] == [
        (
            "TooManyAddressesToMirror",
            "A max of 2 addresses can be mirrored to EndpointSlices per Endpoints subset. 2 addresses were skipped",
        ),
    ]
    decision, _ = decided(endpoints(subset("10.0.0.1", "nonsense")))
    assert [notice.message for notice in decision.notices] == [
        "Skipped 1 invalid IP addresses when mirroring to EndpointSlices"
    ]


@pytest.mark.parametrize(
    ("metadata", "wanted"),
    [
        pytest.param({}, True, id="ordinary"),
        pytest.param({"labels": {"endpointslice.kubernetes.io/skip-mirror": "true"}}, False, id="skip-mirror"),
        pytest.param({"labels": {"endpointslice.kubernetes.io/skip-mirror": "false"}}, True, id="does not ask"),
        pytest.param({"annotations": {"control-plane.alpha.kubernetes.io/leader": "{}"}}, False, id="lock"),
    ],
)
def test_endpoints_that_are_mirrored(metadata, wanted):
    assert mirrorable(endpoints(**metadata)) is wanted


addresses = st.lists(
    st.sampled_from([f"10.0.0.{n}" for n in range(6)] + ["fd00::1", "fd00::2"]), max_size=5, unique=True
)
parts = st.builds(
    lambda ready, unready, ports: subset(*ready, ports=ports, unready=unready),
    addresses,
    addresses,
    st.sampled_from([[], [HTTP], [DNS], [HTTP, DNS]]),
)


@settings(deadline=None, max_examples=60)
@given(st.lists(st.lists(parts, max_size=3), min_size=1, max_size=4), st.integers(1, 4))
def test_any_sequence_of_changes(history, limit):
    slices: list[EndpointSlice] = []
    for subsets in history:
        subject = endpoints(*subsets)
        slices = settled(subject, slices, limit)
        assert decided(subject, slices, limit)[1] == []
        groups = [(slice_.address_type, slice_.ports) for slice_ in slices]
        assert len(groups) == len(set(groups))
        for slice_ in slices:
            found = [endpoint.addresses for endpoint in slice_.members]
            assert len(found) == len(set(found))
            assert 0 < len(found) <= limit
