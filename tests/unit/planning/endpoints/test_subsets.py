from hypothesis import given
from hypothesis import strategies as st

from kcm_cli.api.core import ObjectReference
from kcm_cli.api.endpoints import EndpointAddress, EndpointPort, EndpointSubset
from kcm_cli.planning.endpoints.subsets import repack
from tests.kit.growth import grows_linearly

A, B, C = (EndpointAddress(f"10.0.0.{n}") for n in (1, 2, 3))
HTTP, DNS = EndpointPort("http", 80, "TCP"), EndpointPort("dns", 53, "UDP")


def test_equal_addresses_share_a_subset():
    packed = repack([EndpointSubset((A,), (), (HTTP,)), EndpointSubset((A,), (), (DNS,))])
    assert [(subset.addresses, set(subset.ports)) for subset in packed] == [((A,), {HTTP, DNS})]


def test_equal_ports_share_a_subset():
    packed = repack([EndpointSubset((B,), (C,), (HTTP,)), EndpointSubset((A,), (), (HTTP,))])
    assert packed == (EndpointSubset((A, B), (C,), (HTTP,)),)


def test_different_states_do_not_share_a_subset():
    packed = repack([EndpointSubset((A,), (), (HTTP,)), EndpointSubset((), (A,), (DNS,))])
    assert set(packed) == {EndpointSubset((A,), (), (HTTP,)), EndpointSubset((), (A,), (DNS,))}


def test_unready_counts_before_ready():
    assert repack([EndpointSubset((A,), (A,), (HTTP,))]) == (EndpointSubset((), (A,), (HTTP,)),)


def test_no_ports_is_a_set_of_ports():
    assert repack([EndpointSubset((A, B)), EndpointSubset((C,))]) == (EndpointSubset((A, B, C)),)


def test_one_address_of_two_targets_is_two():
    one = EndpointAddress("10.0.0.1", target_ref=ObjectReference(uid="1"))
    two = EndpointAddress("10.0.0.1", target_ref=ObjectReference(uid="2"))
    assert repack([EndpointSubset((two, one), (), (HTTP,))]) == (EndpointSubset((one, two), (), (HTTP,)),)


def test_versions_of_targets_are_set_only_if_requested():
    address = EndpointAddress("10.0.0.1", target_ref=ObjectReference(uid="1", resource_version="7"))
    subsets = [EndpointSubset((address,))]
    assert repack(subsets)[0].addresses[0].target_ref == ObjectReference(uid="1")
    assert repack(subsets, versions=True)[0].addresses[0].target_ref == address.target_ref


addresses = st.lists(st.sampled_from((A, B, C)), max_size=3, unique=True).map(tuple)
subsets = st.lists(
    st.builds(
        EndpointSubset, addresses, addresses, st.lists(st.sampled_from((HTTP, DNS)), max_size=2, unique=True).map(tuple)
    ),
    max_size=4,
)


@given(subsets, st.randoms())
def test_the_layout_is_independent_of_order_and_idempotent(given_subsets, rng):
    packed = repack(given_subsets)
    shuffled = list(given_subsets)
    rng.shuffle(shuffled)
    assert repack(shuffled) == packed
    assert repack(packed) == packed


@given(subsets)
def test_no_address_twice_on_a_port(given_subsets):
    placed = [
        (address.ip, port)
        for subset in repack(given_subsets)
        for address in (*subset.addresses, *subset.not_ready_addresses)
        for port in subset.ports or (None,)
    ]
    assert len(placed) == len(set(placed))


def test_the_cost_is_that_of_reading_addresses_and_ports_once():
    """Not of each address on each port: whoever writes Endpoints may list thousands of both."""

    def prepare(count):
        addresses = tuple(EndpointAddress(f"10.0.{number // 250}.{number % 250}") for number in range(count))
        ports = tuple(EndpointPort(f"p{number}", number, "TCP") for number in range(count))
        return lambda: repack([EndpointSubset(addresses, (), ports), EndpointSubset((), addresses[:1], ports)])

    assert grows_linearly(prepare, 150)
