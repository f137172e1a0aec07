import random
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcm_cli.machinery import names
from kcm_cli.machinery.quoting import quote

_KEY_TEXT = (
    "must consist of alphanumeric characters, '-', '_' or '.', "
    "and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', "
    "regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)


@pytest.mark.parametrize(
    ("check", "value"),
    [
        (names.dns1123_label, "a"),
        (names.dns1123_label, "0-a"),
        (names.dns1123_subdomain, "a.b-c.d0"),
        (names.dns1035_label, "a-0"),
        (names.wildcard_subdomain, "*.example.com"),
        (names.dns1123_subdomain_with_underscore, "_a.b"),
        (names.qualified_name, "example.com/My_Name.x"),
        (names.qualified_name, "a" * 63),
        (names.label_value, ""),
        (names.label_value, "A.b_c-d"),
        (names.config_map_key, "KEY_name.x-1"),
        (names.relaxed_env_var_name, "1 a!"),
        (names.port_name, "http-2"),
        (names.http_header_name, "X-A"),
        (names.c_identifier, "_a1"),
        (names.percent, "93%"),
        (names.path_segment, "system:x"),
    ],
)
def test_accepts(check, value):
    assert check(value) == []


@pytest.mark.parametrize(
    ("check", "value", "messages"),
    [
        (names.dns1123_label, "a.b", ["must not contain dots"]),
        (
            names.dns1123_subdomain,
            "a_b",
            [
                "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, "
                "'-' or '.', and must start and end with an alphanumeric character "
                "(e.g. 'example.com', regex used for "
                r"validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
            ],
        ),
        (names.dns1123_label, "a" * 64, ["must be no more than 63 characters"]),
        (names.label_value, "a" * 64, ["must be no more than 63 bytes"]),
        (names.qualified_name, "", ["name part must be non-empty", f"name part {_KEY_TEXT}"]),
        (names.qualified_name, "/a", ["prefix part must be non-empty"]),
        (names.qualified_name, "-a", [f"name part {_KEY_TEXT}"]),
        (
            names.qualified_name,
            "a/b/c",
            [
                f"a valid label key {_KEY_TEXT} with an optional DNS subdomain prefix "
                "and '/' (e.g. 'example.com/MyName')"
            ],
        ),
        (
            names.port_name,
            "-1--",
            [
                "must contain at least one letter (a-z)",
                "must not contain consecutive hyphens",
                "must not begin or end with a hyphen",
            ],
        ),
        (names.path_segment, "..", ["may not be '..'"]),
        (names.path_segment, "a/b%", ["may not contain '/'", "may not contain '%'"]),
        (names.config_map_key, "..a", ["must not start with '..'"]),
        (names.port_name, "a\n", ["must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)"]),
    ],
)
def test_error_messages(check, value, messages):
    assert check(value) == messages


@pytest.mark.parametrize("check", [names.dns1123_label, names.dns1035_label, names.label_value, names.percent])
def test_a_trailing_newline_is_invalid(check):
    assert check("a1%\n") != []


@given(st.integers(), st.text("abcdefgh-.", max_size=80))
def test_generated_names_are_valid_where_their_base_is(seed, base):
    name = names.generate_name(base, random.Random(seed))
    assert len(name) <= 63
    assert name[:-5] == base[:58]
    assert re.fullmatch("[bcdfghjklmnpqrstvwxz2456789]{5}", name[-5:])


@pytest.mark.parametrize(
    ("text", "quoted"),
    [
        ("a b", '"a b"'),
        ('a"\\', '"a\\"\\\\"'),
        ("a\n\x00\x7f", '"a\\n\\x00\\x7f"'),
        ("é", '"é"'),
        ("\u200b", '"\\u200b"'),
    ],
)
def test_quotes_as_in_go(text, quoted):
    assert quote(text) == quoted
