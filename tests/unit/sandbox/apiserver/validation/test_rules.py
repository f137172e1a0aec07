"""The language of rules: errors, their paths, and their order."""

import pytest

from kcm_cli.sandbox.apiserver.types import Errors, Tree
from kcm_cli.sandbox.apiserver.validation import errors, rules

_ITEM = rules.fields(rules.required("name", rules.LABEL), rules.optional("size", rules.between(1, 9)))
_THING = rules.fields_of(
    "core.v1.Container",
    rules.present("mode", detail="say how"),
    rules.one_of("imagePullPolicy"),
    rules.forbidden("gone", "was removed"),
    rules.each("items", _ITEM, key="name"),
    rules.always("total", rules.at_least(1, "too few"), default=0, at="Total"),
    rules.nonempty("labels", rules.max_items(1)),
)


def said(doc: Tree, path: str = "spec", rule: rules.Rule = _THING) -> list[str]:
    return [f"{error.field}: {error.message}" for error in rule(doc, path)]


GOOD = {"mode": "", "imagePullPolicy": "Never", "total": 1}


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({}, []),
        ({"mode": None}, ["spec.mode: Required value: say how"]),
        ({"imagePullPolicy": ""}, ["spec.imagePullPolicy: Required value"]),
        ({"gone": 0}, []),
        ({"gone": 1}, ["spec.gone: Forbidden: was removed"]),
        ({"items": [{"name": "a", "size": 9}, {"name": "b"}]}, []),
        ({"items": [{"size": 0}]}, ["spec.items[0].name: Required value", "spec.items[0].size: Invalid value: 0"]),
        ({"items": [{"name": "a"}, {"name": "a"}]}, ['spec.items[1].name: Duplicate value: "a"']),
        ({"total": None}, ["spec.Total: Invalid value: 0: too few"]),
        ({"labels": {}}, []),
        ({"labels": {"a": "", "b": ""}}, ["spec.labels: Too many: 2: must have at most 1 item"]),
    ],
)
def test_fields(change: Tree, expected: list[str]) -> None:
    found = said({**GOOD, **change})
    assert len(found) == len(expected)
    assert all(text.startswith(start) for text, start in zip(found, expected, strict=True))


def test_values_of_enumerations_are_those_of_the_api() -> None:
    assert rules.choices("core.v1.Container", "imagePullPolicy") == ("Always", "IfNotPresent", "Never")
    assert said({**GOOD, "imagePullPolicy": "x"}) == [
        'spec.imagePullPolicy: Unsupported value: "x": supported values: "Always", "IfNotPresent", "Never"'
    ]


def test_paths_at_the_root_have_no_dot_in_front() -> None:
    assert said({"total": 1, "mode": ""}, "") == ["imagePullPolicy: Required value"]


def test_later_rules_are_skipped_after_an_error() -> None:
    rule = rules.unless(rules.max_items(1), rules.items(rules.LABEL))
    assert len(said(["A", "B"], "list", rule)) == 1  # type: ignore[arg-type]
    assert len(said(["A"], "list", rule)) == 1  # type: ignore[arg-type]
    assert said(["a"], "list", rule) == []  # type: ignore[arg-type]


def test_a_duplicate_is_reported_between_the_rules() -> None:
    rule = rules.items(
        rules.fields(rules.always("name", rules.LABEL)), key="name", then=rules.fields(rules.required("value"))
    )
    kinds = [error.type for error in rule([{"name": "A", "value": 1}, {"name": "A"}], "list")]
    assert kinds == ["FieldValueInvalid", "FieldValueInvalid", "FieldValueDuplicate", "FieldValueRequired"]


def test_a_rule_is_chosen_by_a_value() -> None:
    rule = rules.by_value("type", {"A": rules.fields(rules.required("a")), "B": rules.fields(rules.required("b"))})
    assert [error.field for error in rule({"type": "A"}, "spec")] == ["spec.a"]
    assert [error.field for error in rule({"type": "B", "b": 1}, "spec")] == []
    (unknown,) = rule({}, "spec")
    assert (unknown.field, unknown.message) == ("spec.type", 'Unsupported value: "": supported values: "A", "B"')


def test_duplicate_and_not_found_have_details() -> None:
    assert errors.duplicate("a", "x", "twice").message == 'Duplicate value: "x": twice'
    assert errors.not_found("a", "x", "nowhere").message == 'Not found: "x": nowhere'


def test_messages_may_be_joined_to_one_error() -> None:
    def messages(text: str) -> list[str]:
        return ["too short", "too dull"] if text == "a" else []

    each = rules.form(messages)
    assert [error.message for error in each("a", "name")] == [
        'Invalid value: "a": too short',
        'Invalid value: "a": too dull',
    ]
    once = rules.form(messages, start="no: ", separator=", ")
    assert [error.message for error in once("a", "name")] == ['Invalid value: "a": no: too short, too dull']
    assert list(once("b", "name")) == []


def test_the_last_valid_value_is_not_checked_again() -> None:
    seen: list[object] = []

    def small(value: int, path: str) -> Errors:
        seen.append(value)
        return [errors.invalid(path, value, "too large")] if value > 2 else ()

    rule = rules.seldom_changing(small)
    found = [[error.field for error in rule(value, f"at{index}")] for index, value in enumerate((1, 1, 5, 5, 1, 2, 2))]
    assert found == [[], [], ["at2"], ["at3"], [], [], []]
    assert seen == [1, 5, 5, 2]
