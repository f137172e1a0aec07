"""The volume that a claim gets."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcm_cli.planning.volumes.classes import class_of_claim, class_of_volume
from kcm_cli.planning.volumes.index import VolumeIndex
from kcm_cli.planning.volumes.matching import capacity, has_access_modes, satisfies
from tests.unit.planning.volumes.objects import claim, ref, volume, with_changes

RWO, ROX, RWX, RWOP = "ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany", "ReadWriteOncePod"
BETA_CLASS = "volume.beta.kubernetes.io/storage-class"


def index_of(*volumes):
    index = VolumeIndex()
    for each in volumes:
        index.change(None, each)
    return index


def chosen(wanted, *volumes, **options):
    found = index_of(*volumes).match(wanted, **options)
    return found.name if found is not None else None


CASES = [
    pytest.param(claim(size="3Gi"), [volume("a", "1Gi"), volume("b", "50Gi"), volume("c", "5Gi")], "c", id="smallest"),
    pytest.param(claim(), [volume("b"), volume("a")], "a", id="equally small"),
    pytest.param(claim(), [volume("a", "big"), volume("b")], "b", id="one whose size cannot be read"),
    pytest.param(claim(), [volume("a", phase="Pending"), volume("b", "9Gi")], "b", id="not available yet"),
    pytest.param(claim(), [volume("a", phase="Released")], None, id="released"),
    pytest.param(claim(), [volume("a", accessModes=[ROX])], None, id="other modes"),
    pytest.param(
        claim(), [volume("a", accessModes=[RWO, ROX]), volume("b", "9Gi")], "b", id="just the modes before more"
    ),
    pytest.param(
        claim(accessModes=[ROX, RWX]), [volume("a", accessModes=[RWX, RWO, ROX])], "a", id="modes in any order"
    ),
    pytest.param(claim(), [volume("a", storageClassName="tin")], None, id="other class"),
    pytest.param(
        claim(), [volume("a", storageClassName="", metadata={"annotations": {BETA_CLASS: "gold"}})], "a", id="old class"
    ),
    pytest.param(claim(volumeMode="Block"), [volume("a"), volume("b", volumeMode="Block")], "b", id="block"),
    pytest.param(claim(), [volume("a", volumeMode="Filesystem")], "a", id="file systems are the default"),
    pytest.param(claim(), [volume("a", volumeAttributesClassName="fast")], None, id="attributes not requested"),
    pytest.param(
        claim(volumeAttributesClassName="fast"),
        [volume("a"), volume("b", volumeAttributesClassName="fast")],
        "b",
        id="attributes",
    ),
    pytest.param(
        claim(selector={"matchLabels": {"disk": "ssd"}}),
        [volume("a"), volume("b", "9Gi", metadata={"labels": {"disk": "ssd"}})],
        "b",
        id="selector",
    ),
    pytest.param(
        claim(), [volume("a", metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"})], None, id="being deleted"
    ),
    pytest.param(claim(), [volume("a"), volume("b", "9Gi", claimRef=ref())], "b", id="kept for it"),
    pytest.param(
        claim(),
        [volume("a"), volume("b", claimRef=ref(), accessModes=[RWO, ROX])],
        "a",
        id="kept for it, with modes that it does not need",
    ),
    pytest.param(claim(), [volume("a", claimRef=ref("other"))], None, id="kept for another"),
    pytest.param(claim(), [volume("a", claimRef=ref(uid="older"))], None, id="kept for an older claim of its name"),
    pytest.param(claim(size="2Gi"), [volume("a", claimRef=ref())], None, id="kept for it but too small"),
    pytest.param(claim(), [volume("a", claimRef=ref(), storageClassName="tin")], "a", id="kept for it, of any class"),
    pytest.param(claim(), [volume("a", claimRef=ref(), phase="Pending")], "a", id="kept for it, in any phase"),
    pytest.param(claim(accessModes=[RWOP]), [volume("a"), volume("b", accessModes=[RWOP])], "b", id="one pod"),
]


@pytest.mark.parametrize(("wanted", "volumes", "expected"), CASES)
def test_a_claim_gets(wanted, volumes, expected):
    assert chosen(wanted, *volumes) == expected
    assert chosen(wanted, *reversed(volumes)) == expected


def test_a_claim_that_waits_for_its_consumer_gets_only_reserved_volumes():
    assert chosen(claim(), volume("a"), reserved_only=True) is None
    assert chosen(claim(), volume("a"), volume("b", "9Gi", claimRef=ref()), reserved_only=True) == "b"


def test_the_index_has_the_current_state_of_volumes():
    index, before = VolumeIndex(), volume("a")
    index.change(None, before)
    taken = volume("a", claimRef=ref("other"))
    index.change(before, taken)
    assert index.match(claim()) is None
    assert index.kept_for("d/other") == ["a"]
    index.change(taken, before)
    assert index.match(claim()) is before
    index.change(before, None)
    assert index.match(claim()) is None
    assert index.kept_for("d/other") == []


SIZES = st.sampled_from(["1Gi", "1000M", "2Gi", "2048Mi", "5Gi"])
MODES = st.lists(st.sampled_from([RWO, ROX, RWX]), min_size=1, max_size=3, unique=True)
VOLUMES = st.lists(
    st.tuples(SIZES, MODES, st.sampled_from(["gold", "tin"]), st.sampled_from(["Available", "Pending"])), max_size=12
)


@given(VOLUMES, SIZES, MODES, st.randoms(use_true_random=False))
def test_the_index_equals_a_search_of_all_volumes(kinds, size, modes, rng: random.Random):
    volumes = [
        volume(f"v{n}", each, accessModes=has, storageClassName=class_name, phase=phase)
        for n, (each, has, class_name, phase) in enumerate(kinds)
    ]
    wanted = claim(size=size, accessModes=modes)
    fitting = [
        v
        for v in volumes
        if satisfies(v, wanted)
        and has_access_modes(v, wanted)
        and v.status.phase == "Available"
        and class_of_volume(v) == class_of_claim(wanted)
    ]
    index = index_of(*volumes)
    for each in rng.sample(volumes, len(volumes)):  # through another state and back
        other = with_changes(each, {("spec", "claimRef"): ref("other")})
        index.change(each, other)
        index.change(other, each)
    found = index.match(wanted)
    if not fitting:
        assert found is None
        return
    fewest = min(len(v.spec.access_modes) for v in fitting)
    assert found in fitting
    assert len(found.spec.access_modes) == fewest
    alike = [v for v in fitting if set(v.spec.access_modes) == set(found.spec.access_modes)]
    assert capacity(found) == min(capacity(v) for v in alike)
