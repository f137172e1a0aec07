import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcm_cli.machinery import fields
from kcm_cli.machinery.errors import FormatError
from kcm_cli.machinery.fields import FieldRequirement, FieldSelector


@pytest.mark.parametrize(
    ("text", "requirements"),
    [
        ("", ()),
        (",", ()),
        ("a=b", (FieldRequirement("a", "b"),)),
        ("c!=d,a==b", (FieldRequirement("a", "b"), FieldRequirement("c", "d", equal=False))),
        ("a=", (FieldRequirement("a", ""),)),
        (r"a=b\,c\=\\", (FieldRequirement("a", "b,c=\\"),)),
        ("=x", (FieldRequirement("", "x"),)),
    ],
)
def test_parses(text, requirements):
    assert fields.parse(text).requirements == requirements


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a", "invalid selector: 'a'; can't understand 'a'"),
        ("x=y,a", "invalid selector: 'x=y,a'; can't understand 'a'"),
        ("a=b=c", "invalid field selector: unescaped character in value: 61"),
        ("a=b\\", "invalid field selector: invalid escape sequence: \\"),
        ("a=\\b", "invalid field selector: invalid escape sequence: \\b"),
    ],
)
def test_error_messages(text, message):
    with pytest.raises(FormatError) as caught:
        fields.parse(text)
    assert str(caught.value) == message


def test_matches_with_missing_fields_as_empty():
    selector = fields.parse("a=b,c!=d,e=")
    assert selector.matches({"a": "b"})
    assert not selector.matches({"a": "b", "c": "d"})
    assert not selector.matches({"a": "b", "e": "x"})
    assert selector.exact("a") == "b"
    assert selector.exact("c") is None


_requirements = st.builds(FieldRequirement, st.text("ab.", min_size=1), st.text("ab,=!\\x"), st.booleans())


@given(st.lists(_requirements))
def test_every_selector_round_trips(requirements):
    selector = FieldSelector(tuple(requirements))
    assert set(fields.parse(str(selector)).requirements) == set(requirements)
