import itertools

import pytest

from kcm_cli.api.discovery import SlicePort
from kcm_cli.api.endpoints import EndpointPort
from kcm_cli.machinery.hashes import fnv128a
from kcm_cli.planning.endpoints.ports import PodPorts, ordered_ports, ordered_slice_ports
from tests.kit.growth import grows_linearly
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
def test_the_number_of_a_port(target, protocol, wanted):
    once = {"name": "i", "ports": [{"name": "once", "containerPort": 1}]}
    subject = pod(
        "a", containers=[{"name": "c", **NAMED}], initContainers=[once, {**SIDECAR, "restartPolicy": "Always"}]
    )
    ports = numbers(service(ports=[{"port": 80, "targetPort": target, "protocol": protocol}]))
    assert ports.of(subject) == (() if wanted is None else (("", wanted),))


def numbers(subject):
    """Finds the names and numbers of the ports of a Service."""
    return PodPorts(subject, lambda found: tuple((port.name, number) for port, number in found))


def test_a_port_that_a_pod_lacks_is_left_out():
    two = numbers(service(ports=[{"port": 80, "targetPort": "http"}, {"name": "n", "port": 81, "targetPort": 81}]))
    assert two.of(pod("a")) == (("n", 81),)
    assert two.of(pod("b", containers=[{"name": "c", **NAMED}])) == (("", 8080), ("n", 81))
    assert numbers(service(ports=[], clusterIP="None")).of(pod("a")) == ()


def test_the_first_port_of_a_name_counts():
    ports = [{"name": "http", "containerPort": number} for number in (1, 2)]
    named = numbers(service(ports=[{"port": 80, "targetPort": "http"}]))
    assert named.of(pod("a", containers=[{"name": "c", "ports": ports}, {"name": "d", **NAMED}])) == (("", 1),)


def test_pods_of_the_same_ports_share_a_result():
    named = numbers(service(ports=[{"port": 80, "targetPort": "http"}, {"name": "n", "port": 81, "targetPort": 81}]))
    first = named.of(pod("a", containers=[{"name": "c", **NAMED}]))
    assert named.of(pod("b", containers=[{"name": "x"}, {"name": "c", **NAMED}])) is first
    for number in range(1000):
        ports = [{"name": "http", "containerPort": number}]
        assert named.of(pod("c", containers=[{"name": "c", "ports": ports}])) == (("", number), ("n", 81))
    assert len(named._known) < 1000


def test_many_named_ports_are_each_looked_up_once():
    def prepare(count):
        ports = [{"name": f"p{n}", "containerPort": n + 1} for n in range(count)]
        wanted = [{"name": f"p{n}", "port": n + 1, "targetPort": f"p{n}", "protocol": "TCP"} for n in range(count)]
        subject, asked = pod("a", containers=[{"name": "c", "ports": ports}]), service(ports=wanted)
        return lambda: numbers(asked).of(subject)

    assert grows_linearly(prepare, 200)


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
