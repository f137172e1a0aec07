"""Documents as YAML."""

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from kcm_cli.sandbox.apiserver.registry.yaml_text import dump


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("", "''"),
        ("y", "'y'"),
        ("off", "'off'"),
        ("~", "'~'"),
        (".inf", "'.inf'"),
        ("1", "'1'"),
        ("+1", "'+1'"),
        ("1_000", "'1_000'"),
        ("0o7", "'0o7'"),
        ("1e3", "'1e3'"),
        ("1:30", "'1:30'"),
        ("2011-02-03T04:05:06Z", "'2011-02-03T04:05:06Z'"),
        ("1e", "1e"),
        ("NaN", "NaN"),
        ("1,000", "1,000"),
        ("-", "'-'"),
        ("*x", "'*x'"),
        ("a: b", "'a: b'"),
        (" lead", "' lead'"),
        ("it's", "it's"),
        ("a\tb", '"a\\tb"'),
        ("é☃", "é☃"),
        (1, "1"),
        (True, "true"),
        (None, "null"),
    ],
    ids=repr,
)
def test_a_value(value: object, text: str) -> None:
    assert dump({"k": value}) == f"k: {text}\n"


def nested(inner: st.SearchStrategy[object]) -> st.SearchStrategy[object]:
    return st.lists(inner) | st.dictionaries(st.text(), inner)


class Reader(yaml.SafeLoader):
    """Reads a lone equals sign as a string, as YAML 1.2 does."""


Reader.add_constructor("tag:yaml.org,2002:value", yaml.SafeLoader.construct_yaml_str)


@given(st.recursive(st.text() | st.integers() | st.booleans() | st.none(), nested))
def test_what_is_written_is_read_as_the_same(value: object) -> None:
    assert yaml.load(dump({"k": value}), Reader) == {"k": value}
