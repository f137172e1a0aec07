"""What is tried with an object, and when two answers count as the same."""

import random
from typing import Any

import pytest

from tests.differential.bases import changed, load
from tests.differential.changes import changes
from tests.differential.sameness import Answer, differences
from tests.differential.variations import ABSENT, Schemas, Variation

POD = {
    "x-kubernetes-group-version-kind": [{"group": "", "version": "v1", "kind": "Pod"}],
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "limits": {"type": "object", "additionalProperties": {"$ref": "#/components/schemas/api.resource.Quantity"}},
        "ports": {"type": "array", "items": {"allOf": [{"$ref": "#/components/schemas/Port"}], "default": {}}},
        "fixed": {"type": "string"},
    },
}
PORT = {"type": "object", "properties": {"port": {"type": "integer"}, "on": {"type": "boolean"}}}
SCHEMAS = Schemas({"Pod": POD, "Port": PORT, "api.resource.Quantity": {"type": "string"}}, skip=("fixed*",))
DOC: dict[str, Any] = {"name": "a", "ports": [{"port": 1}], "fixed": "f"}


def tried() -> dict[tuple[str | int, ...], list[object]]:
    found: dict[tuple[str | int, ...], list[object]] = {}
    for one in SCHEMAS.variations(SCHEMAS.of_kind("v1", "Pod"), DOC):
        found.setdefault(one.path, []).append(one.value)
    return found


def test_every_field_is_dropped_and_varied_also_those_that_are_not_there() -> None:
    found = tried()
    assert set(found) == {
        (),
        ("name",),
        ("limits",),
        ("ports",),
        ("ports", 0),
        ("ports", 0, "port"),
        ("ports", 0, "on"),
    }
    assert ABSENT in found["name",] and "" in found["name",] and "a" not in found["name",]
    assert found["limits",] == [{"x": "1"}]
    assert [{"port": 1}, {"port": 1}] in found["ports",] and [] in found["ports",]
    assert 1 not in found["ports", 0, "port"] and -1 in found["ports", 0, "port"]
    assert found["ports", 0, "on"] == [True, False]


def test_a_kind_without_a_schema_is_told() -> None:
    with pytest.raises(LookupError, match="apps/v1 Pod"):
        SCHEMAS.of_kind("apps/v1", "Pod")


def test_a_variation_leaves_the_object_as_it_was() -> None:
    assert Variation(("ports", 0, "port"), 7).applied(DOC)["ports"] == [{"port": 7}]
    assert Variation(("ports", 0), ABSENT).applied(DOC)["ports"] == []
    assert "name" not in Variation(("name",), ABSENT).applied(DOC)
    assert not Variation(("ports", 1, "port"), 7).fits(DOC)
    assert DOC["ports"] == [{"port": 1}] and DOC["name"] == "a"


def test_changes_are_merged() -> None:
    assert changed(DOC, {"name": ABSENT, "ports": [1], "more": {"x": 1}}) == {
        "ports": [1],
        "fixed": "f",
        "more": {"x": 1},
    }


def test_random_changes_are_repeated_by_their_seed_and_keep_what_names_the_object() -> None:
    body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": DOC, "status": {"x": 1}}
    made = [[*changes(body, {"phase": "x"}, random.Random(seed), 40)] for seed in (1, 1, 2)]
    assert made[0] == made[1] != made[2]
    applied = [one.body for one in made[0] if "apply" in one.content_type]
    assert {(one["kind"], one["metadata"]["name"]) for one in applied} == {("Pod", "a")}
    assert {tuple(one.body) for one in made[0] if one.place} == {("status",)}
    assert DOC == {"name": "a", "ports": [{"port": 1}], "fixed": "f"}


def test_conflicts_have_no_order_but_other_causes_have() -> None:
    def status(reason: str, *fields: str) -> Answer:
        return answer(details={"causes": [{"reason": reason, "field": field} for field in fields]})

    for reason, count in (("FieldManagerConflict", 0), ("FieldValueInvalid", 2)):
        assert len(differences(status(reason, "a", "b"), status(reason, "b", "a"), "")) == count


def test_some_lists_have_no_order() -> None:
    rules = [{"verbs": ["get"], "nonResourceURLs": ["/a"]}, {"nonResourceURLs": ["/b"], "verbs": ["*"]}]
    turned = [dict(reversed(rule.items())) for rule in reversed(rules)]
    assert differences(answer(nonResourceRules=rules), answer(nonResourceRules=turned), "") == []
    assert differences(answer(others=rules), answer(others=turned), "") != []


def answer(**body: Any) -> Answer:
    return Answer(200, (), body)


def test_what_no_two_servers_share_is_no_difference() -> None:
    uids = ("6d5ff1c5-3c55-4d28-a0a5-6b4a2f0a8f5e", "0e2b3b0a-97f4-4f0c-8e6e-0a6d2f9a1b2c")
    one, other = (
        answer(metadata={"uid": uid, "resourceVersion": version, "at": at}, clusterIP=address)
        for uid, version, at, address in zip(
            uids, "12", ("2026-01-02T03:04:05Z",) * 2, ("10.0.0.3", "10.0.0.4"), strict=True
        )
    )
    assert differences(one, other, "") == []
    assert len(differences(one, other, "10.0.0.3")) == 1


@pytest.mark.parametrize(
    ("real", "ours", "line"),
    [
        (answer(a=1), answer(a=2), "a: 1"),
        (answer(a=[{}]), answer(), "a: [{}]"),
        (answer(a="x" * 100 + "1"), answer(a="x" * 100 + "2"), "a: \u2026"),
        (Answer(409, (), {"kind": "Status", "message": "no"}), answer(kind="Pod"), "409: no"),
        (Answer(200, ("299 - x",), {}), answer(), "warnings: ['299 - x']"),
    ],
)
def test_differences_are_told_by_place(real: Answer, ours: Answer, line: str) -> None:
    lines = differences(real, ours, "")
    assert lines[0].startswith(line)


def test_the_objects_can_be_read_and_have_names_of_their_own() -> None:
    bases = [*load()]
    assert len({base.name for base in bases}) == len(bases) > 80
    assert all(base.body["apiVersion"] and base.path.startswith(("/api/", "/apis/")) for base in bases)


def test_texts_that_print_what_is_empty_otherwise_are_the_same() -> None:
    def differ(*messages: str) -> bool:
        real, ours = (Answer(422, (), {"message": text}) for text in messages)
        return bool(differences(real, ours, ""))

    assert not differ("a: Invalid value: []: why", "a: Invalid value: null: why")
    assert not differ('x\n-  "Ports": [],\n', 'x\n-  "Ports": null,\n')
    assert differ("a: Invalid value: []: why", "a: Invalid value: null: other")
    assert differ("a: Invalid value: []: why", "a: Invalid value: [1]: why")
