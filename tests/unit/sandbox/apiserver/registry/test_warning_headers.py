"""Warning headers."""

from kcm_cli.sandbox.apiserver.registry.warning_headers import header_values


def test_each_is_sent_once_and_quoted() -> None:
    assert header_values(['a "b" \\', "c", 'a "b" \\']) == ['299 - "a \\"b\\" \\\\"', '299 - "c"']


def test_none_can_end_the_header() -> None:
    assert header_values(["a\r\nset-cookie: b", "tab\there", "", "\x7f", "\x85"]) == []


def test_warnings_of_yaml_are_sent_line_by_line() -> None:
    assert header_values(["yaml: unmarshal errors:\n  line 2: a\n  line 3: b"]) == [
        '299 - "line 2: a"',
        '299 - "line 3: b"',
    ]


def test_too_many_are_cut() -> None:
    values = header_values([f"{number:02}" + "x" * 400 for number in range(30)])
    assert len(values) == 16
    assert {len(value) for value in values} == {256 + len('299 - ""')}
