import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcm_cli.api.apps import DAEMON_SETS, ControllerRevision
from kcm_cli.machinery.meta import Object, ObjectMeta
from kcm_cli.planning import revisions


def revision(number, name="r", created="2026-01-01T00:00:00Z", data=None):
    return ControllerRevision(metadata=ObjectMeta(name, creation_timestamp=created), revision=number, data=data)


def test_order_is_by_number_then_age_then_name():
    expected = [
        revision(1, "z"),
        revision(2, "y"),
        revision(2, "a", "2026-01-01T00:00:01Z"),
        revision(2, "b", "2026-01-01T00:00:01Z"),
    ]
    assert revisions.in_order(reversed(expected)) == expected
    assert revisions.next_number(expected) == 3
    assert revisions.next_number([]) == 1


TEMPLATE = {
    "metadata": {"labels": {"a": "b"}, "creationTimestamp": None},
    "spec": {"containers": [{"name": "c", "resources": {}}]},
}
DATA = {
    "spec": {
        "template": {
            "metadata": {"labels": {"a": "b"}},
            "spec": {"containers": [{"name": "c", "resources": {}}]},
            "$patch": "replace",
        }
    }
}


def test_data_replaces_the_whole_template():
    assert revisions.patch_of(TEMPLATE) == DATA
    template = revisions.template_of(revision(1, data=DATA))
    assert template == {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "resources": {}}]}}
    assert revisions.patch_of(template) == DATA


@pytest.mark.parametrize("data", [None, {}, {"spec": {}}, {"spec": []}])
def test_foreign_data_has_no_template(data):
    assert revisions.template_of(revision(1, data=data)) is None


def test_finds_equal_data():
    same, other = revision(1, data=DATA), revision(2, data={"spec": {}})
    assert revisions.with_data([same, other, same], revisions.patch_of(TEMPLATE)) == [same, same]


def test_long_names_are_truncated():
    assert revisions.name_of("web", "abc") == "web-abc"
    assert revisions.name_of("w" * 57, "x" * 5) == "w" * 57 + "-xxxxx"
    assert revisions.name_of("w" * 57, "x" * 10) == "w" * 52 + "-xxxxxxxxxx"


@pytest.mark.parametrize(
    ("limit", "used", "count_used", "deleted"),
    [
        (2, (), False, [1, 2]),
        (2, (1, 4), False, []),
        (1, (1, 4), False, [2]),
        (1, (1, 4), True, [2, 3]),
        (0, (3,), True, [1, 2, 4]),
        (10, (), True, []),
        (-1, (), False, []),
    ],
)
def test_surplus_is_the_oldest_that_nothing_uses(limit, used, count_used, deleted):
    history = [revision(number) for number in (3, 1, 4, 2)]
    found = revisions.surplus(history, limit, lambda r: r.revision in used, count_used=count_used)
    assert [r.revision for r in found] == deleted


@given(st.lists(st.integers(0, 20), unique=True), st.sets(st.integers(0, 20)), st.integers(0, 5), st.booleans())
def test_surplus_keeps_the_limit_and_what_is_used(numbers, used, limit, count_used):
    history = [revision(number) for number in numbers]
    found = {r.revision for r in revisions.surplus(history, limit, lambda r: r.revision in used, count_used=count_used)}
    assert not found & used
    kept = [number for number in numbers if number not in found]
    assert len(kept) <= limit or found == set(numbers) - used or not count_used
    if not count_used:
        assert len([number for number in kept if number not in used]) <= limit


def test_the_body_is_serialised_as_in_go():
    owner = Object(metadata=ObjectMeta("agent", "ns", "u1", annotations={"k": "v"}))
    body = revisions.encode(
        DAEMON_SETS,
        owner,
        name="agent-1",
        labels={"a": "b"},
        data=revisions.patch_of({"spec": {"nodeSelector": {"a": "b && c"}}}),
        revision=7,
    )
    assert b'"a":"b \\u0026\\u0026 c"' in body
    assert json.loads(body) == {
        "apiVersion": "apps/v1",
        "kind": "ControllerRevision",
        "metadata": {
            "name": "agent-1",
            "namespace": "ns",
            "labels": {"a": "b"},
            "annotations": {"k": "v"},
            "ownerReferences": [
                {
                    "apiVersion": "apps/v1",
                    "kind": "DaemonSet",
                    "name": "agent",
                    "uid": "u1",
                    "controller": True,
                    "blockOwnerDeletion": True,
                }
            ],
        },
        "data": revisions.patch_of({"spec": {"nodeSelector": {"a": "b && c"}}}),
        "revision": 7,
    }
