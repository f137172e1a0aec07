"""Extended resources of DeviceClasses: the classes, the claim, and the nodes that fit."""

import random
from typing import Any

import pytest

from kcm_cli.machinery import codec
from kcm_cli.runtime.store import Store
from kcm_cli.sandbox.scheduler.decide import Placement, decide
from kcm_cli.sandbox.scheduler.devices.extended import ExtendedClaim, extended_claim, offers
from kcm_cli.sandbox.scheduler.devices.state import DeviceState
from kcm_cli.sandbox.scheduler.devices.views import CLAIMS, Claim, DeviceClass, Slice
from kcm_cli.sandbox.scheduler.podinfo import PodInfo
from kcm_cli.sandbox.scheduler.state import ClusterState
from kcm_cli.sandbox.scheduler.verdict import FitError
from kcm_cli.sandbox.views import NODES
from tests.unit.sandbox.scheduler.build import node_doc, pod, volumes_of
from tests.unit.sandbox.scheduler.devices.making import claim, class_of, slice_of

Doc = dict[str, Any]
GPU, NIC = "x.com/gpu", "x.com/nic"
IMPLICIT = "deviceclass.resource.kubernetes.io/gpu"
CLASSES = {GPU: "gpu", NIC: "nic"}


def a_class(name: str, resource: str | None = None, created: str = "2026-01-01T00:00:00Z") -> DeviceClass:
    doc: Doc = {"metadata": {"name": name, "creationTimestamp": created}, "spec": {}}
    if resource is not None:
        doc["spec"]["extendedResourceName"] = resource
    return codec.decode(codec.encode(doc), DeviceClass)


@pytest.mark.parametrize(
    ("classes", "expected"),
    [
        pytest.param([a_class("gpu")], {IMPLICIT: "gpu"}, id="each by its own name"),
        pytest.param([a_class("gpu", GPU)], {IMPLICIT: "gpu", GPU: "gpu"}, id="by the name that it gives"),
        pytest.param([a_class("gpu", "cpu")], {IMPLICIT: "gpu"}, id="a name that stands for no devices"),
        pytest.param([a_class("a", GPU), a_class("b", GPU, "2026-01-02T00:00:00Z")], {GPU: "b"}, id="the newer one"),
        pytest.param([a_class("b", GPU, "2026-01-02T00:00:00Z"), a_class("a", GPU)], {GPU: "b"}, id="in any order"),
        pytest.param([a_class("b", GPU), a_class("a", GPU)], {GPU: "a"}, id="of one age the first by name"),
    ],
)
def test_what_classes_offer(classes, expected):
    found = offers(classes)
    assert {name: found[name] for name in expected} == expected
    assert "cpu" not in found and len(found) == len(classes) + (GPU in found)


def container(name: str, *, always: bool = False, **counts: int) -> Doc:
    """``gpu`` and ``nic``: the requested numbers."""
    requests = {"cpu": "1"} | {f"x.com/{key}": str(count) for key, count in counts.items()}
    return {"name": name, "resources": {"requests": requests}} | ({"restartPolicy": "Always"} if always else {})


def asked(made: ExtendedClaim | None) -> tuple[Doc, set[tuple[str, str, str]]]:
    """Class and count of each request, and the request of each container."""
    if made is None:
        return {}, set()
    requests = {one.name: one.exactly for one in made.claim.spec.devices.requests}
    mapped = [(one["containerName"], one["resourceName"], one["requestName"]) for one in made.mappings]
    assert len(set(mapped)) == len(mapped) and list(requests) == sorted(requests)
    return {name: (one.device_class_name, one.count) for name, one in requests.items() if one}, set(mapped)


@pytest.mark.parametrize(
    ("init", "containers", "requests", "mappings"),
    [
        pytest.param(
            [],
            [container("a"), container("b", gpu=2)],
            {"container-1-request-1": ("gpu", 2)},
            {("b", GPU, "container-1-request-1")},
            id="numbered by container and by resource",
        ),
        pytest.param(
            [],
            [container("a", gpu=1, nic=3)],
            {"container-0-request-1": ("gpu", 1), "container-0-request-2": ("nic", 3)},
            {("a", GPU, "container-0-request-1"), ("a", NIC, "container-0-request-2")},
            id="several resources",
        ),
        pytest.param([], [container("a", gpu=0)], {}, set(), id="none of it"),
        pytest.param(
            [container("i", gpu=1)],
            [container("a", gpu=1), container("b", gpu=2)],
            {"container-1-request-1": ("gpu", 1), "container-2-request-1": ("gpu", 2)},
            {
                ("i", GPU, "container-1-request-1"),
                ("a", GPU, "container-1-request-1"),
                ("b", GPU, "container-2-request-1"),
            },
            id="an init container takes those of a later one",
        ),
        pytest.param(
            [container("i", gpu=3), container("j", gpu=5)],
            [container("a", gpu=2)],
            {"container-1-request-1": ("gpu", 3), "container-2-request-1": ("gpu", 2)},
            {
                ("i", GPU, "container-2-request-1"),
                ("i", GPU, "container-1-request-1"),
                ("j", GPU, "container-2-request-1"),
                ("j", GPU, "container-1-request-1"),
                ("a", GPU, "container-2-request-1"),
            },
            id="the most that init containers need beyond that",
        ),
        pytest.param(
            [container("s", always=True, gpu=1), container("i", gpu=1)],
            [container("a")],
            {"container-0-request-1": ("gpu", 1), "container-1-request-1": ("gpu", 1)},
            {("s", GPU, "container-0-request-1"), ("i", GPU, "container-1-request-1")},
            id="not those of a sidecar before it",
        ),
        pytest.param(
            [container("i", gpu=1), container("s", always=True, gpu=1)],
            [container("a")],
            {"container-1-request-1": ("gpu", 1)},
            {("s", GPU, "container-1-request-1"), ("i", GPU, "container-1-request-1")},
            id="those of a sidecar after it",
        ),
        pytest.param(
            [container("i", gpu=2), container("j", gpu=2)],
            [container("a")],
            {"container-0-request-1": ("gpu", 2)},
            {("i", GPU, "container-0-request-1"), ("j", GPU, "container-0-request-1")},
            id="init containers one after the other",
        ),
    ],
)
def test_requests(init, containers, requests, mappings):
    info = pod("p", initContainers=init, containers=containers)
    assert asked(extended_claim(info.pod, CLASSES)) == (requests, mappings)


def test_the_claim():
    made = extended_claim(pod("p", containers=[container("c", gpu=1)]).pod, CLASSES)
    assert made is not None
    doc = codec.decode_doc(made.claim.raw or b"")
    meta = doc["metadata"]
    assert made.claim.key == "default/<extended-resources>"
    assert meta["generateName"] == "p-extended-resources-"
    assert meta["annotations"] == {"resource.kubernetes.io/extended-resource-claim": "true"}
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "p", "controller": True}
    assert meta["ownerReferences"] == [owner]
    exactly = {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1}
    assert doc["spec"] == {"devices": {"requests": [{"name": "container-0-request-1", "exactly": exactly}]}}


def cluster(*slices: Slice, claims: list[Claim] | None = None, plugin: str | None = None) -> ClusterState:
    """Two nodes. A device plugin reports this number of GPUs on the second one."""
    known: Store[Claim] = Store()
    classes: Store[DeviceClass] = Store()
    published: Store[Slice] = Store()
    for one in claims or []:
        known.put(one)
    classes.put(class_of("gpu", extendedResourceName=GPU))
    for each in slices:
        published.put(each)
    state = ClusterState(devices=DeviceState(known, classes, published))
    for name in ("n1", "n2"):
        doc = node_doc(name)
        if name == "n2" and plugin is not None:
            doc["status"]["allocatable"][GPU] = plugin
        state.set_node(NODES.decode(codec.encode(doc)))
    return state


def decided(info: PodInfo, state: ClusterState) -> Placement | FitError:
    return decide(info, state, volumes_of(), random.Random(1))


ONE = pod("p", containers=[container("c", gpu=1)])
TWO = pod("p", containers=[container("c", gpu=2)])


@pytest.mark.parametrize(
    ("info", "plugin", "slices", "node", "claims"),
    [
        pytest.param(ONE, None, [slice_of("d0")], "n1", 1, id="devices"),
        pytest.param(ONE, "1", [], "n2", 0, id="a device plugin"),
        pytest.param(TWO, "1", [slice_of("d0", "d1")], "n1", 1, id="not one of each"),
        pytest.param(ONE, "0", [slice_of("d0", nodeName="n2")], "n2", 1, id="a plugin that is gone"),
        pytest.param(ONE, "1", [slice_of("d0", nodeName="n2")], "n2", 0, id="the plugin's come first"),
        pytest.param(pod("p", containers=[container("c", gpu=0)]), None, [slice_of("d0")], "", 0, id="none of it"),
    ],
)
def test_nodes_that_fit(info, plugin, slices, node, claims):
    found = decided(info, cluster(*slices, plugin=plugin))
    assert isinstance(found, Placement)
    assert found.node == node or not node
    assert [bool(one.mappings) for one in found.reservations] == [True] * claims


def test_by_the_name_of_the_class():
    resources = {"requests": {IMPLICIT: "1"}}
    found = decided(pod("p", containers=[{"name": "c", "resources": resources}]), cluster(slice_of("d0")))
    assert isinstance(found, Placement)
    assert [dict(one) for one in found.reservations[0].mappings] == [
        {"containerName": "c", "resourceName": IMPLICIT, "requestName": "container-0-request-0"}
    ]


def test_reasons_why_no_node_fits():
    found = decided(TWO, cluster(slice_of("d0"), plugin="1"))
    assert isinstance(found, FitError)
    assert found.message() == f"0/2 nodes are available: 1 Insufficient {GPU}, 1 cannot allocate all claims."
    other = decided(pod("p", containers=[container("c", nic=1)]), cluster(slice_of("d0")))
    assert isinstance(other, FitError)
    assert other.message() == f"0/2 nodes are available: 2 Insufficient {NIC}."


def test_pods_of_one_shape_before_and_after_a_class_exists():
    state = cluster(slice_of("d0"))
    gpu = state.devices.classes.pop("gpu")
    assert gpu is not None
    assert isinstance(decided(ONE, state), FitError)
    state.devices.classes.put(gpu)
    state.devices.classes_changed()
    assert isinstance(decided(ONE, state), Placement)


def test_own_claims_and_extended_resources_get_different_devices():
    own = claim({"deviceClassName": "gpu"}, name="own")
    claims = {"resourceClaims": [{"name": "e", "resourceClaimName": "own"}], "metadata": {"namespace": "ns"}}
    both = pod("p", containers=[container("c", gpu=1)], **claims)
    assert isinstance(decided(both, cluster(slice_of("d0"), claims=[own])), FitError)
    found = decided(both, cluster(slice_of("d0", "d1"), claims=[own]))
    assert isinstance(found, Placement)
    assert [one.allocation["devices"]["results"][0]["device"] for one in found.reservations if one.allocation] == [
        "d0",
        "d1",
    ]


def test_own_claims_where_a_device_plugin_has_the_rest():
    """Upstream creates a claim without requests then, and never binds the pod."""
    own = claim({"deviceClassName": "gpu"}, name="own")
    claims = {"resourceClaims": [{"name": "e", "resourceClaimName": "own"}], "metadata": {"namespace": "ns"}}
    both = pod("p", containers=[container("c", gpu=1)], **claims)
    found = decided(both, cluster(slice_of("d0", nodeName="n2"), claims=[own], plugin="1"))
    assert isinstance(found, Placement)
    assert [(one.claim.name, one.mappings) for one in found.reservations] == [("own", ())]


def test_a_claim_of_an_earlier_attempt():
    made = extended_claim(ONE.pod, CLASSES)
    assert made is not None
    doc = codec.decode_doc(made.claim.raw or b"")
    doc["metadata"] |= {"name": "p-extended-resources-x", "uid": "real"}
    left = CLAIMS.decode(codec.encode(doc))
    found = decided(ONE, cluster(slice_of("d0"), claims=[left]))
    assert isinstance(found, FitError)
    assert found.stale == left
    assert found.message() == "0/2 nodes are available: 2 cannot schedule extended resource claim."
    others = decided(pod("q", containers=[container("c", gpu=1)]), cluster(slice_of("d0"), claims=[left]))
    assert isinstance(others, Placement)
