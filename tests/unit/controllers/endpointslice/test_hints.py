"""Hints: by traffic distribution, and by the zones' shares of the CPUs."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcm_cli.component.clock import LoopClock
from kcm_cli.controllers.endpointslice.plan import plan
from kcm_cli.controllers.endpointslice.plan.topology import (
    Allocation,
    exchanges,
    filed_cpus,
    overloaded,
    wants_hints,
    zone_ratios,
)
from kcm_cli.controllers.endpointslice.zones import Zones
from kcm_cli.runtime.store import Store
from kcm_cli.runtime.workqueue import WorkQueue
from tests.unit.controllers.endpointslice.making import NODES, settled, snapshot, verbs, writes
from tests.unit.planning.endpoints.making import node, pod, service

AUTO = {"service.kubernetes.io/topology-mode": "Auto"}
EVEN = {"z1": 1 / 3, "z2": 1 / 3, "z3": 1 / 3}


def spread(*counts, ready=True):
    """So many pods on each node."""
    return [
        pod(f"p{zone}{n}", f"10.{zone}.0.{n + 1}", node=f"n{zone + 1}", ready=ready)
        for zone, count in enumerate(counts)
        for n in range(count)
    ]


def hints(slices):
    """Zones and nodes that each pod's endpoint is for."""
    return {
        endpoint.target_ref.name: tuple(name.name for name in (*endpoint.hints.for_zones, *endpoint.hints.for_nodes))
        for slice_ in slices
        for endpoint in slice_.members
        if endpoint.hints is not None
    }


class TestDistribution:
    @pytest.mark.parametrize(
        ("value", "gate", "wanted"),
        [
            pytest.param("PreferClose", True, ("z1",), id="close"),
            pytest.param("PreferClose", False, ("z1",), id="close, whatever the gate"),
            pytest.param("PreferSameZone", True, ("z1",), id="same zone"),
            pytest.param("PreferSameNode", True, ("z1", "n1"), id="same node"),
            pytest.param("PreferSameZone", False, None, id="gate off"),
            pytest.param(None, True, None, id="none"),
            pytest.param("Other", True, None, id="unknown"),
        ],
    )
    def test_values(self, value, gate, wanted):
        shot = snapshot([pod("a")], subject=service(trafficDistribution=value), prefer_same=gate)
        assert hints(settled(shot)).get("a") == wanted

    def test_only_ready_endpoints_get_hints(self):
        shot = snapshot([pod("a", ready=False)], subject=service(trafficDistribution="PreferClose"))
        assert hints(settled(shot)) == {}

    def test_an_endpoint_without_a_zone_gets_no_hint(self):
        shot = snapshot([pod("a", node="bare")], nodes={"bare": node("bare")}, subject=close())
        assert hints(settled(shot)) == {}

    def test_unchanged_slices_are_not_written(self):
        slices = settled(snapshot(spread(2, 1), subject=close()))
        assert writes(snapshot(spread(2, 1), slices, close())) == []

    def test_hints_follow_the_field(self):
        slices = settled(snapshot(spread(1, 1)))
        shot = snapshot(spread(1, 1), slices, close())
        assert verbs(writes(shot)) == ["Update"]
        slices = settled(shot)
        assert verbs(writes(snapshot(spread(1, 1), slices))) == ["Update"]
        assert hints(settled(snapshot(spread(1, 1), slices))) == {}

    def test_the_annotation_overrides_the_field(self):
        subject = service(trafficDistribution="PreferClose", annotations=AUTO)
        decision = plan(snapshot([pod("a")], subject=subject), "IPv4")
        assert (decision.topology, decision.distribution) == ("Auto", "")
        assert [notice.reason for notice in decision.notices] == ["TopologyAwareHintsDisabled"]


def close():
    return service(trafficDistribution="PreferClose")


class TestTopology:
    @pytest.mark.parametrize(
        ("annotations", "wanted"),
        [
            pytest.param({}, False, id="none"),
            pytest.param(AUTO, True, id="Auto"),
            pytest.param({"service.kubernetes.io/topology-mode": "auto"}, True, id="auto"),
            pytest.param({"service.kubernetes.io/topology-mode": "AUTO"}, False, id="AUTO"),
            pytest.param({"service.kubernetes.io/topology-aware-hints": "Auto"}, True, id="older annotation"),
            pytest.param({**AUTO, "service.kubernetes.io/topology-aware-hints": "off"}, False, id="older one first"),
        ],
    )
    def test_requested_by_annotation(self, annotations, wanted):
        assert wants_hints(annotations) is wanted

    @pytest.mark.parametrize(
        ("counts", "ratios", "text"),
        [
            pytest.param(
                (3, 3, 3),
                None,
                "Insufficient Node information: allocatable CPU or zone not specified on one or more nodes",
                id="nodes",
            ),
            pytest.param((1, 1), EVEN, "Insufficient number of endpoints (2 endpoints, 3 zones)", id="endpoints"),
            pytest.param(
                (2, 1, 1),
                EVEN,
                "Unable to allocate minimum required endpoints to each zone without exceeding overload threshold"
                " (4 endpoints, 3 zones)",
                id="overload",
            ),
        ],
    )
    def test_reasons_for_no_hints(self, counts, ratios, text):
        shot = snapshot(spread(*counts), subject=service(annotations=AUTO), ratios=ratios)
        decision = plan(shot, "IPv4")
        (notice,) = decision.notices
        assert (notice.type, notice.reason) == ("Warning", "TopologyAwareHintsDisabled")
        assert notice.message == f"{text}, addressType: IPv4"
        assert decision.zones is None
        assert hints(settled(shot)) == {}

    def test_an_endpoint_without_zone_forbids_hints(self):
        nodes = {**NODES, "n1": node("n1")}
        shot = snapshot(spread(3, 3, 3), subject=service(annotations=AUTO), ratios=EVEN, nodes=nodes)
        message = plan(shot, "IPv4").notices[0].message
        assert message == "One or more endpoints do not have a zone specified, addressType: IPv4"

    def test_even_endpoints_stay_in_their_zones(self):
        shot = snapshot(spread(3, 3, 3), subject=service(annotations=AUTO), ratios=EVEN)
        decision = plan(shot, "IPv4")
        assert decision.zones == {"z1": 3, "z2": 3, "z3": 3}
        (notice,) = decision.notices
        assert (notice.type, notice.reason) == ("Normal", "TopologyAwareHintsEnabled")
        assert notice.message == "Topology Aware Hints has been enabled, addressType: IPv4"
        found = hints(settled(shot))
        assert len(found) == 9
        assert found == {name: (f"z{int(name[1]) + 1}",) for name in found}

    def test_zones_with_surplus_endpoints_serve_zones_with_too_few(self):
        shot = snapshot(spread(7, 1, 1), subject=service(annotations=AUTO), ratios=EVEN)
        assert plan(shot, "IPv4").zones == {"z1": 3, "z2": 3, "z3": 3}
        counted = Counter(zone for zones in hints(settled(shot)).values() for zone in zones)
        assert counted == {"z1": 3, "z2": 3, "z3": 3}

    def test_unchanged_hints_are_kept(self):
        subject = service(annotations=AUTO)
        slices = settled(snapshot(spread(7, 1, 1), subject=subject, ratios=EVEN))
        shot = snapshot(spread(7, 1, 1), slices, subject, ratios=EVEN, hinted=True)
        assert writes(shot) == []
        assert plan(shot, "IPv4").notices == ()

    def test_removing_the_annotation_removes_the_hints(self):
        slices = settled(snapshot(spread(3, 3, 3), subject=service(annotations=AUTO), ratios=EVEN))
        shot = snapshot(spread(3, 3, 3), slices, ratios=EVEN, hinted=True)
        assert [notice.message for notice in plan(shot, "IPv4").notices] == [
            "Topology Aware Hints has been disabled, addressType: IPv4"
        ]
        assert hints(settled(shot)) == {}

    def test_hints_for_a_removed_zone_are_replaced(self):
        subject = service(annotations=AUTO)
        slices = settled(snapshot(spread(3, 3, 3), subject=subject, ratios=EVEN))
        two = {"z1": 0.5, "z2": 0.5}
        shot = snapshot(spread(3, 3), slices, subject, ratios=two, hinted=True)
        assert set(hints(settled(shot)).values()) == {("z1",), ("z2",)}


def shares(nodes):
    """The zones' shares of the CPUs of these nodes."""
    return zone_ratios(Counter(value for each in nodes for value in filed_cpus(each)))


one_node = st.builds(
    lambda name, zone, cpu, ready: node(name, zone, cpu, ready=ready),
    st.sampled_from("abcd"),
    st.sampled_from(("z1", "z2", "z3", "")),
    st.sampled_from(("1", "500m", "3", "lots", "")),
    st.booleans(),
)


class TestShares:
    @given(st.lists(st.tuples(one_node, st.booleans())))
    async def test_the_index_follows_nodes_that_change_and_go(self, changes):
        store = Store()
        zones = Zones(store, WorkQueue("services", LoopClock()))
        for each, stays in changes:
            if stays:
                store.put(each)
            else:
                store.pop(each.key)
            await zones.sync("nodes")
            assert zones.ratios == shares(store)

    def test_shares_of_cpus(self):
        nodes = [node("a", "z1", "3"), node("b", "z2", "500m"), node("c", "z2", "500m")]
        assert shares(nodes) == {"z1": 0.75, "z2": 0.25}

    @pytest.mark.parametrize(
        "extra",
        [node("x", "z3", ready=False), node("x", "")],
        ids=["unready", "no zone"],
    )
    def test_unready_nodes_do_not_count_but_unknown_zones_do(self, extra):
        nodes = [node("a", "z1"), node("b", "z2"), extra]
        assert shares(nodes) == (None if not extra.labels else {"z1": 0.5, "z2": 0.5})

    def test_control_planes_do_not_count(self):
        control = node("x", "", **{"node-role.kubernetes.io/control-plane": ""})
        assert shares([node("a", "z1"), node("b", "z2"), control]) == {"z1": 0.5, "z2": 0.5}

    @pytest.mark.parametrize(
        "nodes",
        [
            [],
            [node("a", "z1")],
            [node("a", "z1"), node("b", "z2", cpu="")],
            [node("a", "z1"), node("b", "z2", cpu="lots")],
        ],
        ids=["no nodes", "one zone", "no CPUs", "CPUs that cannot be read"],
    )
    def test_unknown(self, nodes):
        assert shares(nodes) is None

    @pytest.mark.parametrize(
        ("counts", "ratios", "wanted"),
        [
            pytest.param({}, None, False, id="no hints"),
            pytest.param({"z1": 1}, None, True, id="no shares any more"),
            pytest.param({"z1": 5, "z2": 5}, {"z1": 0.5, "z2": 0.5}, False, id="even"),
            pytest.param({"z1": 10}, {"z1": 0.5, "z2": 0.5}, True, id="new zone"),
            pytest.param({"z1": 8, "z2": 2}, {"z1": 0.5, "z2": 0.5}, True, id="too few in one"),
        ],
    )
    def test_overloaded(self, counts, ratios, wanted):
        assert overloaded(counts, ratios) is wanted

    @pytest.mark.parametrize(
        ("gives", "takes", "expected"),
        [
            pytest.param(1.0, 1.0, 1, id="one each"),
            pytest.param(1.5, 1.5, 1, id="less than one left on both sides"),
            pytest.param(2.0, 2.0, 2, id="two"),
            pytest.param(0.75, 0.75, 0, id="less than one on both sides"),
            pytest.param(1.25, 0.25, 0, id="less than half on one side"),
            pytest.param(0.25, 1.25, 0, id="less than half on the other side"),
            pytest.param(0.5, 1.0, 1, id="half on one side"),
            pytest.param(1.0, 0.5, 1, id="half on the other side"),
        ],
    )
    def test_endpoints_are_exchanged_in_units(self, gives, takes, expected):
        allocations = {
            "a": Allocation(0, 9, 5.0 - gives),
            "b": Allocation(0, 9, 1.0 + takes),
            "c": Allocation(0, 9, 2.0),
        }
        giving, receiving = exchanges(allocations, {"a": 5, "b": 1, "c": 2})
        assert (giving, receiving) == (({"a": expected}, {"b": expected}) if expected else ({}, {}))

    @given(st.dictionaries(st.sampled_from("abcd"), st.integers(0, 20), min_size=1), st.data())
    def test_redistributed_endpoints_add_up(self, counts, data):
        total = sum(counts.values())
        weights = [data.draw(st.integers(1, 5)) for _ in counts]
        allocations = {
            zone: Allocation(0, total, total * weight / sum(weights))
            for zone, weight in zip(counts, weights, strict=True)
        }
        giving, receiving = exchanges(allocations, counts)
        assert sum(giving.values()) == sum(receiving.values())
        assert not giving.keys() & receiving.keys()
        assert all(number <= counts[zone] for zone, number in giving.items())
