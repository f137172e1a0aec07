"""Errors in YAML are one line with the position."""

import pytest
import yaml

from kcm_cli.machinery.yaml_errors import described, load


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: 1\n\tb: 2", "line 2: found character '\\t' that cannot start any token"),
        ("a: {{ .Values.name }}", "line 1: found unhashable key"),
        ("\x01", "unacceptable character #x0001: special characters are not allowed"),
    ],
)
def test_an_error_has_its_line(text, message):
    with pytest.raises(yaml.YAMLError) as raised:
        yaml.safe_load(text)
    assert described(raised.value) == message


def test_an_error_without_text_has_its_name():
    assert described(RecursionError()) == "RecursionError"


@pytest.mark.parametrize("text", ["=", "2021-01-01", "2021-01-01T00:00:00Z"])
def test_plain_values_that_go_takes_for_strings_are_strings(text):
    """PyYAML cannot construct a plain ``=`` at all."""
    assert load(f"a: {text}") == {"a": text}
    assert load(f"{text}: 1") == {text: 1}
