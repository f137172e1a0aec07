import itertools

import pytest

from kcm_cli.api.discovery import SlicePort
from kcm_cli.api.endpoints import EndpointPort
from kcm_cli.machinery.hashes import fnv128a
from kcm_cli.planning.endpoints.ports import find_port, ordered_ports, ordered_slice_ports, slice_ports
from tests.unit.planning.endpoints.making import pod, service

NAMED = {"ports": [{"name": "http", "containerPort": 8080}, {"name": "http", "containerPort": 53, "protocol": "UDP"}]}
SIDECAR = {"name": "s", "ports": [{"name": "side", "containerPort": 777}]}


@pytest.mark.parametrize(
    ("target", "protocol", "wanted"),
    [
        pytest.param(99, "TCP", 99, id="number"),
        pytest.param(None, "TCP", 0, id="none"),
        pytest.param("http", "TCP", 8080, id="name"),
        pytest.param("http", "UDP", 53, id="name of the same protocol"),
        pytest.param("http", "SCTP", None, id="name of no such protocol"),
        pytest.param("side", "TCP", 777, id="sidecar"),
        pytest.param("once", "TCP", None, id="init container that ends"),
        pytest.param("other", "TCP", None, id="unknown name"),
    ],
)
def test_find_port(target, protocol, wanted):
    once = {"name": "i", "ports": [{"name": "once", "containerPort": 1}]}
    subject = pod(
        "a", containers=[{"name": "c", **NAMED}], initContainers=[once, {**SIDECAR, "restartPolicy": "Always"}]
    )
    port = service(ports=[{"port": 80, "targetPort": target, "protocol": protocol}]).spec.ports[0]
    assert find_port(subject, port) == wanted


def test_a_port_that_a_pod_lacks_is_left_out():
    two = service(ports=[{"port": 80, "targetPort": "http"}, {"name": "n", "port": 81, "targetPort": 81}])
    assert slice_ports(two, pod("a")) == (SlicePort("n", "TCP", 81),)
    assert slice_ports(service(ports=[], clusterIP="None"), pod("a")) == ()


def test_hash_is_that_of_go():
    """Computed with k8s.io/utils/dump and hash/fnv of v1.36."""
    text = "(v1.EndpointPort){Name:(*string)http Protocol:(*v1.Protocol)TCP Port:(*int32)80 AppProtocol:(*string)x/y}"
    assert f"{fnv128a(text.encode()):032x}" == "ea9066a2fb70399cb9ded91cba4bc076"


def test_slice_ports_are_in_the_order_of_their_go_hashes():
    named = SlicePort("http", "TCP", 80, "x/y")  # ea90…
    plain = SlicePort("", "TCP", 80)  # 73b5…
    for order in itertools.permutations((named, plain)):
        assert ordered_slice_ports(order) == (plain, named)


def test_ports_of_endpoints_are_in_the_order_of_their_go_hashes():
    named = EndpointPort("http", 80, "TCP", "x/y")  # accb…
    plain = EndpointPort("", 80, "TCP")  # 19cb…
    for order in itertools.permutations((named, plain)):
        assert ordered_ports(order) == (plain, named)
