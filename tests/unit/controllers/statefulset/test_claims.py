import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcm_cli.api.apps import STATEFUL_SETS
from kcm_cli.api.core import PERSISTENT_VOLUME_CLAIMS
from kcm_cli.controllers.statefulset.plan import claims as rules
from kcm_cli.machinery import codec
from tests.unit.controllers.statefulset.conftest import DATA, UID, controlled_by

SET = controlled_by("apps/v1", "StatefulSet", "db", UID)
POD = controlled_by("v1", "Pod", "db-0", "pod-0")
POD_2 = controlled_by("v1", "Pod", "db-2", "pod-2")
OTHER = controlled_by("v1", "ConfigMap", "boss", "boss-uid")
PLAIN_OTHER = controlled_by("v1", "ConfigMap", "friend", "friend-uid", controller=False)
EARLIER_SET = controlled_by("apps/v1", "StatefulSet", "db", "earlier")
EARLIER_POD = controlled_by("v1", "Pod", "db-0", "earlier-pod")
UNCONTROLLED = controlled_by("apps/v1", "StatefulSet", "db", UID, controller=False)


def policy(deleted, scaled):
    return {"whenDeleted": deleted, "whenScaled": scaled}


def owners(found):
    """The owners that a claim gets, by name; None if it is left alone."""
    if not found or found[0].references is None:
        return None
    return [reference["name"] for reference in found[0].references]


@pytest.mark.parametrize(
    ("deleted", "scaled", "ordinal", "present", "expected"),
    [
        ("Retain", "Retain", 0, [], None),
        ("Retain", "Retain", 0, [SET], []),
        ("Retain", "Retain", 0, [POD], []),
        ("Retain", "Retain", 0, [OTHER], None),
        ("Delete", "Retain", 0, [], ["db"]),
        ("Delete", "Retain", 0, [SET], None),
        ("Delete", "Retain", 0, [SET, POD], ["db"]),
        ("Delete", "Retain", 2, [SET], None),
        ("Retain", "Delete", 0, [], None),
        ("Retain", "Delete", 0, [SET], []),
        ("Retain", "Delete", 2, [], ["db-2"]),
        ("Retain", "Delete", 2, [POD_2], None),
        ("Retain", "Delete", 0, [POD], []),
        ("Delete", "Delete", 0, [], ["db"]),
        ("Delete", "Delete", 2, [SET], ["db-2"]),
        ("Delete", "Delete", 2, [POD_2], None),
        ("Delete", "Delete", 0, [POD], ["db"]),
        ("Delete", "Retain", 0, [PLAIN_OTHER], ["friend", "db"]),
        ("Delete", "Retain", 0, [UNCONTROLLED], ["db"]),
        ("Strange", "Retain", 0, [], None),
        ("Strange", "Retain", 0, [SET], []),
        ("Delete", "Delete", 0, [EARLIER_SET], None),
        ("Delete", "Delete", 0, [EARLIER_POD], None),
    ],
)
def test_owners_follow_the_policy(make_set, make_claim, deleted, scaled, ordinal, present, expected):
    set_ = make_set(
        replicas=2, volumeClaimTemplates=[DATA], persistentVolumeClaimRetentionPolicy=policy(deleted, scaled)
    )
    claim = make_claim(ordinal, *present)
    found = rules.ownership(set_, ordinal, f"pod-{ordinal}", {claim.name: claim})
    assert owners(found) == expected


def test_without_a_policy_everything_is_retained(make_set, make_claim):
    claim = make_claim(0, SET)
    assert owners(rules.ownership(make_set(volumeClaimTemplates=[DATA]), 0, "pod-0", {claim.name: claim})) == []


@pytest.mark.parametrize(
    ("present", "expected", "conflicting"),
    [
        ([OTHER], None, True),
        ([OTHER, SET], ["boss"], True),
        ([EARLIER_SET], None, True),
        ([SET], None, False),
        ([PLAIN_OTHER, SET], None, False),
    ],
    ids=["other", "other and set", "earlier set", "set", "friend"],
)
def test_a_claim_of_another_owner_is_released_and_reported(make_set, make_claim, present, expected, conflicting):
    set_ = make_set(volumeClaimTemplates=[DATA], persistentVolumeClaimRetentionPolicy=policy("Delete", "Retain"))
    claim = make_claim(0, *present)
    found = rules.ownership(set_, 0, "pod-0", {claim.name: claim})
    assert owners(found) == expected
    assert bool(found and found[0].conflicting) is conflicting


def test_retained_claims_can_have_any_owner(make_set, make_claim):
    claim = make_claim(0, OTHER)
    assert rules.ownership(make_set(volumeClaimTemplates=[DATA]), 0, "pod-0", {claim.name: claim}) == ()


@pytest.mark.parametrize(
    ("scaled", "present", "expected"),
    [
        ("Delete", [EARLIER_POD], True),
        ("Delete", [SET], False),
        ("Delete", [], False),
        ("Retain", [EARLIER_POD], False),
    ],
)
def test_a_claim_deleted_with_an_earlier_pod_is_waited_for(make_set, make_claim, scaled, present, expected):
    set_ = make_set(volumeClaimTemplates=[DATA], persistentVolumeClaimRetentionPolicy=policy("Retain", scaled))
    claim = make_claim(0, *present)
    assert rules.blocked_by_stale_claim(set_, 0, {claim.name: claim}) is expected


def test_missing_claims_are_created_from_the_template(make_set):
    template = {"metadata": {"name": "data", "labels": {"own": "x", "app": "overwritten"}}, "spec": {"a": 1}}
    missing, going = rules.to_create(make_set(volumeClaimTemplates=[template]), 1, {})
    assert going == ()
    assert missing[0]["metadata"] == {"name": "data-db-1", "namespace": "ns", "labels": {"own": "x", "app": "db"}}
    assert missing[0]["spec"] == {"a": 1}


def test_terminating_claims_delay_the_pod(make_set, make_claim):
    claim = make_claim(0, deleting=True)
    missing, going = rules.to_create(make_set(volumeClaimTemplates=[DATA]), 0, {claim.name: claim})
    assert (missing, going) == ((), ("data-db-0",))


@given(
    deleted=st.sampled_from(["Retain", "Delete"]),
    scaled=st.sampled_from(["Retain", "Delete"]),
    ordinal=st.integers(0, 3),
    present=st.lists(st.sampled_from([SET, POD, OTHER, PLAIN_OTHER, UNCONTROLLED]), unique_by=id, max_size=3),
)
def test_corrected_claims_are_not_changed_again(deleted, scaled, ordinal, present):
    set_ = STATEFUL_SETS.decode(
        codec.encode(
            {
                "metadata": {"name": "db", "namespace": "ns", "uid": UID},
                "spec": {
                    "replicas": 2,
                    "volumeClaimTemplates": [DATA],
                    "persistentVolumeClaimRetentionPolicy": policy(deleted, scaled),
                },
            }
        )
    )

    def look(references):
        metadata = {"name": f"data-db-{ordinal}", "ownerReferences": references}
        claim = PERSISTENT_VOLUME_CLAIMS.decode(codec.encode({"metadata": metadata}))
        return rules.ownership(set_, ordinal, f"pod-{ordinal}", {claim.name: claim})

    first = look(present)
    if first and first[0].references is not None:
        again = look(list(first[0].references))
        assert not again or again[0].references is None
        kept = [reference["uid"] for reference in first[0].references]
        assert len(kept) == len(set(kept))


@pytest.mark.parametrize(
    ("own", "expected"), [([OTHER], ["boss"]), ([PLAIN_OTHER], ["friend", "db"]), ([], ["db"])],
    ids=["another controller", "another owner", "none"],
)  # fmt: skip
def test_a_new_claim_has_one_controller(make_set, own, expected):
    """Operators give the claims to their own object in the template. The API server refuses two controllers."""
    template = {"metadata": {"name": "data", "ownerReferences": own}, "spec": {}}
    set_ = make_set(volumeClaimTemplates=[template], persistentVolumeClaimRetentionPolicy=policy("Delete", "Retain"))
    (claim,), _ = rules.to_create(set_, 0, {})
    assert [ref["name"] for ref in claim["metadata"]["ownerReferences"]] == expected
