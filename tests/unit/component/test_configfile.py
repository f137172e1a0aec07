"""The configuration file: its values, and errors with their paths."""

from dataclasses import dataclass

import pytest

from kcm_cli.component import configfile, options, value_types
from kcm_cli.component.configfile import ConfigFileError, Form

FORM = Form("Thing", ("things.io/v2", "things.io/v1"))
HEAD = "apiVersion: things.io/v1\nkind: Thing\n"


@dataclass(frozen=True, slots=True)
class Inner:
    """Nested options."""

    period_s: float = options.option(value_types.DURATION, 5.0, flag="period", key="Period")
    deep: int = options.option(value_types.INT32, 1, key="Below.Deep")


@dataclass(frozen=True, slots=True)
class Empty:
    """A section without fields."""


@dataclass(frozen=True, slots=True)
class Root:
    """All options."""

    name: str = options.option(value_types.STRING, "x", key="Name")
    inner: Inner = options.group(Inner, key="Inner")
    empty: Empty = options.group(Empty, key="Empty")
    names: tuple[str, ...] = options.option(value_types.STRINGS, (), key="Names")
    only_flag: bool = options.option(value_types.BOOL, False, flag="only-flag")


def read(text: str) -> Root:
    return options.build(Root, configfile.parse(HEAD + text, FORM, Root))


def problems(text: str) -> tuple[str, ...]:
    with pytest.raises(ConfigFileError) as caught:
        configfile.parse(text, FORM, Root)
    return caught.value.problems


def test_an_empty_file_has_the_defaults() -> None:
    assert read("") == Root()


def test_values_are_set_at_their_places() -> None:
    tree = read("Name: y\nInner: {Period: 1m, Below: {Deep: 3}}\nEmpty: {}\nNames: [a, b]\n")
    assert tree == Root("y", Inner(60.0, 3), Empty(), ("a", "b"))


def test_case_does_not_matter() -> None:
    assert read("inner: {period: 1m}\n").inner.period_s == 60.0


def test_null_leaves_the_default() -> None:
    assert read("Name: null\nInner: {Period: null, Below:}\nEmpty: null\n") == Root()


def test_json_is_accepted() -> None:
    text = '{"apiVersion": "things.io/v2", "kind": "Thing", "Inner": {"Below": {"Deep": 7}}}'
    values = configfile.parse(text, FORM, Root)
    assert options.build(Root, values).inner.deep == 7


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param("Inner: {Perod: 1m}", "Inner.Perod: unknown field (did you mean Period?)", id="unknown"),
        pytest.param("only_flag: true", "only_flag: unknown field", id="flag without a key"),
        pytest.param("Inner: {Below: {Deep: x}}", 'Inner.Below.Deep: must be a whole number, but got "x"', id="type"),
        pytest.param(
            "Inner: {Period: soon}",
            'Inner.Period: time: invalid duration "soon", but got "soon"',
            id="duration",
        ),
        pytest.param("Inner: [1]", "Inner: must be an object, but got [1]", id="no object"),
        pytest.param("Empty: {x: 1}", "Empty.x: unknown field", id="field of an empty section"),
        pytest.param("Name: a\nname: b", "name: given twice", id="twice in two spellings"),
        pytest.param("Names: 5", "Names: must be a list of strings, but got 5", id="list"),
    ],
)
def test_an_error_has_its_path(text: str, problem: str) -> None:
    assert problems(HEAD + text) == (problem,)


def test_all_errors_are_reported() -> None:
    assert len(problems(HEAD + "A: 1\nB: 2\nInner: {Period: 5}\n")) == 3


def test_names_version_and_kind() -> None:
    assert problems("apiVersion: v1\nName: y\n") == (
        'apiVersion: must be "things.io/v2" or "things.io/v1", but got "v1"',
        'kind: must be "Thing", but got null',
    )


@pytest.mark.parametrize(
    ("text", "start"),
    [
        pytest.param("a: [", "not YAML: ", id="syntax"),
        pytest.param("Name: a\nName: b\n", 'not YAML: line 2: field "Name" is given twice', id="twice"),
        pytest.param("1: a\n", "not YAML: line 1: field names must be strings", id="number as a name"),
        pytest.param("", "must hold one document, and holds 0", id="empty"),
        pytest.param("a: 1\n---\nb: 1\n", "must hold one document, and holds 2", id="two documents"),
        pytest.param("[]", "must be an object", id="list"),
        pytest.param("!!python/object:os.system {}", "not YAML: ", id="unsafe tag"),
    ],
)
def test_invalid_documents_are_refused(text: str, start: str) -> None:
    (problem,) = problems(text)
    assert problem.startswith(start)
    assert "\n" not in problem


def test_fields_are_written_in_order_of_declaration() -> None:
    document = configfile.to_document(Root())
    assert document == {"Name": "x", "Inner": {"Period": "5s", "Below": {"Deep": 1}}, "Empty": {}, "Names": []}
    assert list(document) == ["Name", "Inner", "Empty", "Names"]


def test_deep_nesting_is_an_error_of_one_line() -> None:
    with pytest.raises(configfile.ConfigFileError, match="not YAML: nested too deeply"):
        configfile.parse("a: " + "[" * 100_000, FORM, Root)
