"""Errors in YAML are one line with the position."""

import pytest
import yaml

from kcm_cli.machinery.yaml_errors import described


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
