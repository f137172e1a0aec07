"""Endpoints into slices: the limit, and the fewest writes."""

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kcm_cli.controllers.endpointslice.plan import plan
from kcm_cli.planning.actions import Create, Update
from tests.unit.controllers.endpointslice.making import (
    apply,
    many,
    settled,
    sizes,
    snapshot,
    verbs,
    writes,
)
from tests.unit.planning.endpoints.making import pod


def slices_of(*counts, limit=10):
    """Slices with these numbers of endpoints: created full, then some pods are deleted."""
    pods = many(limit * len(counts))
    full = settled(snapshot(pods, max_per_slice=limit))
    by_name = {subject.name: subject for subject in pods}
    kept = []
    for slice_, count in zip(full, counts, strict=True):
        kept += [by_name[endpoint.target_ref.name] for endpoint in slice_.members[:count]]
    return kept, settled(snapshot(kept, full, max_per_slice=limit))


@pytest.mark.parametrize(
    ("counts", "added", "changes", "wanted"),
    [
        pytest.param((10, 10), 1, ["Create"], [10, 10, 1], id="all full: a new one"),
        pytest.param((10, 4), 1, ["Update"], [10, 5], id="room in one"),
        pytest.param((7, 4, 8), 2, ["Update"], [10, 7, 4], id="the one that it fills"),
        pytest.param((9, 9), 2, ["Create"], [9, 9, 2], id="no single one has room"),
        pytest.param((9, 4), 10, ["Create"], [10, 9, 4], id="a full one of their own"),
        pytest.param((4,), 12, ["Create", "Update"], [10, 6], id="a full one, the rest where there is room"),
    ],
)
def test_new_endpoints(counts, added, changes, wanted):
    pods, slices = slices_of(*counts)
    more = [pod(f"q{n}", f"10.9.0.{n + 1}") for n in range(added)]
    done = writes(snapshot([*pods, *more], slices, max_per_slice=10))
    assert verbs(done) == changes
    assert sizes(apply(slices, done)) == wanted


def test_changed_slices_are_filled_first_in_order_of_fullness():
    pods, slices = slices_of(8, 5, 3)
    changed = [msgspec.structs.replace(subject) for subject in pods]
    by_name = {subject.name: index for index, subject in enumerate(pods)}
    for slice_ in slices:
        if len(slice_.members) in (8, 3):
            first = by_name[slice_.members[0].target_ref.name]
            changed[first] = pod(pods[first].name, pods[first].status.pod_ip, ready=False)
    more = [pod(f"q{n}", f"10.9.0.{n + 1}") for n in range(4)]
    done = writes(snapshot([*changed, *more], slices, max_per_slice=10))
    assert verbs(done) == ["Update", "Update"]
    assert sizes(apply(slices, done)) == [10, 5, 5]


def test_a_changed_endpoint_changes_only_its_slice():
    pods = many(300)
    slices = settled(snapshot(pods))
    pods[150] = pod(pods[150].name, pods[150].status.pod_ip, ready=False)
    (update,) = writes(snapshot(pods, slices))
    assert isinstance(update, Update)
    assert any(endpoint.target_ref.name == pods[150].name for endpoint in update.obj.members)


def test_a_replaced_pod_costs_one_write():
    pods = many(300)
    slices = settled(snapshot(pods))
    pods[150] = pod("new", "10.9.9.9")
    assert verbs(writes(snapshot(pods, slices))) == ["Update"]


def test_an_empty_slice_is_deleted():
    pods = many(150)
    slices = settled(snapshot(pods))
    (small,) = [slice_ for slice_ in slices if len(slice_.members) == 50]
    gone = {endpoint.target_ref.name for endpoint in small.members}
    done = writes(snapshot([subject for subject in pods if subject.name not in gone], slices))
    assert verbs(done) == ["Delete"]


def test_half_empty_slices_are_not_merged():
    pods, slices = slices_of(5, 5)
    assert sizes(slices) == [5, 5]
    assert writes(snapshot(pods, slices, max_per_slice=10)) == []


def test_a_duplicate_endpoint_of_another_client_is_removed():
    (slice_,) = settled(snapshot([pod("a")]))
    doc = msgspec.json.decode(slice_.raw)
    doc["endpoints"] *= 2
    double = msgspec.json.decode(msgspec.json.encode(doc), type=type(slice_))
    msgspec.structs.force_setattr(double, "raw", msgspec.json.encode(doc))
    (after,) = apply([double], writes(snapshot([pod("a")], [double])))
    assert len(after.members) == 1


numbers = st.sets(st.integers(0, 40), max_size=30)
histories = st.lists(st.tuples(numbers, numbers), min_size=1, max_size=6)


def pods_of(present, unready):
    return [pod(f"p{n}", f"10.0.0.{n + 1}", ready=n not in unready) for n in sorted(present)]


@settings(deadline=None, max_examples=60)
@given(histories, st.integers(1, 7), st.randoms())
def test_any_sequence_of_changes(history, limit, rng):
    """No endpoint twice, none missing, no slice over the limit; a sync with nothing to do writes nothing; order does
    not matter; no sync writes more slices than have changed, or are new, beyond the one that takes the rest."""
    slices = []
    for present, unready in history:
        pods = pods_of(present, unready)
        shot = snapshot(pods, slices, max_per_slice=limit)
        decision = plan(shot, "IPv4")
        decided = [action for stage in decision.stages for action in stage.actions]
        written = [one.obj.name if isinstance(one, Update) else one.name for one in decided if type(one) is not Create]
        assert len(set(written)) == len(written)
        shuffled = list(pods), list(slices)
        for each in shuffled:
            rng.shuffle(each)
        assert writes(snapshot(*shuffled, max_per_slice=limit)) == writes(shot)
        touched = touched_by(pods, slices)
        after = apply(slices, writes(shot))
        placed = [endpoint.target_ref.name for slice_ in after for endpoint in slice_.members]
        assert sorted(placed) == sorted(subject.name for subject in pods)
        assert max(sizes(after)) <= limit
        assert len(set(written) - touched) <= 1
        assert len(decided) - len(written) <= -(-decision.added // limit) + (not pods)
        assert writes(snapshot(pods, after, max_per_slice=limit)) == []
        slices = after


def touched_by(pods, slices):
    """The slices with a changed or removed endpoint, and empty ones."""
    wanted = {subject.name: subject.status.conditions[0].status == "True" for subject in pods}
    return {
        slice_.name
        for slice_ in slices
        if not slice_.members
        or any(wanted.get(endpoint.target_ref.name) is not endpoint.ready for endpoint in slice_.members)
    }
