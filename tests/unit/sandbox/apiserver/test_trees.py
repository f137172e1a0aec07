"""Paths in documents: the values at a path, each with its own path."""

from kcm_cli.sandbox.apiserver.trees import at, each_at, places

DOC = {"spec": {"rules": [{"host": "a", "ports": [1, 2]}, {"host": None}, {"ports": []}, {"host": ""}], "class": None}}


def test_a_value_at_a_path_or_what_stands_for_it() -> None:
    assert at(DOC, "spec.rules") == DOC["spec"]["rules"]
    assert at(DOC, "spec.class", "none") == "none"
    assert at(DOC, "spec.rules.host.name") is None


def test_each_value_has_its_own_path_and_missing_and_null_ones_are_left_out() -> None:
    assert list(places(DOC, "spec.rules[].host")) == [("a", "spec.rules[0].host"), ("", "spec.rules[3].host")]
    assert [path for _, path in places(DOC["spec"], "rules[].ports[]", "spec")] == [
        "spec.rules[0].ports[0]",
        "spec.rules[0].ports[1]",
    ]
    assert list(places(None, "spec.rules[]")) == []


def test_a_rule_at_each_place() -> None:
    assert each_at(lambda port, path: [f"{path}={port}"] * (port - 1), DOC, "spec.rules[].ports[]") == [
        "spec.rules[0].ports[1]=2"
    ]
