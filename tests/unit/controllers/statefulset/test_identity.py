import pytest

from kcm_cli.controllers.statefulset.plan import identity


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("db-0", ("db", 0)),
        ("my-db-12", ("my-db", 12)),
        ("db-007", ("db", 7)),
        ("db-2147483647", ("db", 2147483647)),
        ("db-2147483648", ("db", -1)),
        ("db", ("", -1)),
        ("db-", ("", -1)),
        ("db-x", ("", -1)),
        ("db-1x", ("", -1)),
        ("db-²", ("", -1)),
        ("-1", ("", 1)),
    ],
)
def test_names_have_parent_and_ordinal(name, expected):
    assert identity.parent_and_ordinal(name) == expected


@pytest.mark.parametrize(
    ("start", "replicas", "ordinal", "expected"),
    [
        (0, 2, 0, True),
        (0, 2, 1, True),
        (0, 2, 2, False),
        (5, 2, 4, False),
        (5, 2, 5, True),
        (5, 2, 6, True),
        (5, 2, 7, False),
        (0, 0, 0, False),
    ],
)
def test_the_range_starts_at_the_first_ordinal(make_set, start, replicas, ordinal, expected):
    set_ = make_set(replicas=replicas, ordinals={"start": start})
    assert identity.in_range(set_, ordinal) is expected


@pytest.mark.parametrize(
    ("ordinal", "labels", "expected"),
    [
        (0, {"statefulset.kubernetes.io/pod-name": "db-0"}, True),
        (0, {"statefulset.kubernetes.io/pod-name": "db-1"}, False),
        (0, {}, False),
        ("00", {"statefulset.kubernetes.io/pod-name": "db-00"}, False),
    ],
)
def test_identity_is_name_and_label(make_set, make_pod, ordinal, labels, expected):
    assert identity.identity_matches(make_set(), make_pod(ordinal, labels=labels)) is expected
