import pytest

from kcm_cli.api.apps import CONTROLLER_REVISIONS
from kcm_cli.controllers.daemonset.plan import history as rules
from kcm_cli.machinery import codec
from tests.unit.controllers.daemonset.conftest import TEMPLATE, pod_of, set_of


def revision(hash_, number, template=None, name=None):
    metadata = {"name": name or f"agent-{hash_}", "namespace": "ns", "labels": {"controller-revision-hash": hash_}}
    template = {"x": hash_} if template is None else template
    data = {"spec": {"template": {**template, "$patch": "replace"}}}
    return CONTROLLER_REVISIONS.decode(codec.encode({"metadata": metadata, "revision": number, "data": data}))


def test_the_revision_of_the_template_is_current_and_has_the_highest_number():
    current, older, oldest = revision("c", 1, TEMPLATE), revision("b", 2), revision("a", 1)
    found = rules.sort_out(set_of(), [oldest, current, older])
    assert (found.current, found.old, found.number) == ((current,), (oldest, older), 3)


def test_without_history_the_first_number_is_one():
    found = rules.sort_out(set_of(), [])
    assert (found.current, found.old, found.number) == ((), (), 1)


def test_of_duplicates_the_highest_revision_is_kept():
    assert rules.to_keep([revision("b", 5, TEMPLATE), revision("a", 7, TEMPLATE)]).name == "agent-a"


def test_names_have_the_hash_and_change_on_collisions():
    first, body = rules.name_and_body(set_of(annotations={"a": "b"}), {"spec": {}}, 4)
    doc = codec.decode_doc(body)
    assert doc["metadata"]["labels"] == {"app": "agent", "controller-revision-hash": first.removeprefix("agent-")}
    assert doc["metadata"]["annotations"] == {"a": "b"}
    assert doc["revision"] == 4
    assert rules.name_and_body(set_of({"collisionCount": 1}), {"spec": {}}, 4)[0] != first


@pytest.mark.parametrize(
    ("limit", "used", "expected"),
    [
        (2, [], ["agent-a"]),
        (0, [], ["agent-a", "agent-b", "agent-c"]),
        (3, [], []),
        (1, ["a"], ["agent-b", "agent-c"]),
        (2, ["a"], ["agent-b"]),
        (0, ["a", "b", "c"], []),
    ],
)
def test_the_oldest_unused_revisions_beyond_the_limit_are_deleted(limit, used, expected):
    old = [revision("c", 3), revision("a", 1), revision("b", 2)]
    pods = [pod_of(f"n{hash_}", hash_=hash_) for hash_ in used]
    assert [r.name for r in rules.surplus(set_of(revisionHistoryLimit=limit), old, pods)] == expected
