"""Results and errors of ``format``, as recorded from a kube-apiserver of v1.36."""

import pytest

from kcm_cli.machinery import cel
from kcm_cli.machinery.cel.parser import parse
from kcm_cli.machinery.cel.texts import LONGEST
from kcm_cli.machinery.cel.types import INT, STRING

GIVES = {
    "'%s'.format([['a', 'b']])": '["a", "b"]',
    "'%s'.format([[1.5, 2.25]])": "[1.500000, 2.250000]",
    "'%s'.format([{'b': 'x', 'a': 'y'}])": '{"a":"y", "b":"x"}',
    "'%s'.format([{1u: 'a', 2u: 'b', 10u: 'c'}])": '{1:"a", 10:"c", 2:"b"}',
    "'%s'.format([{true: null}])": "{true:null}",
    "'%s'.format([[null, [1], {'a': {}}]])": '[null, [1], {"a":{}}]',
    "'%s'.format([[b'ab']])": '[b"ab"]',
    "'%s'.format([b'ab'])": "ab",
    "'%s'.format([100000000.0])": "1e+08",
    "'%s'.format([1e-7])": "1e-07",
    "'%s'.format([1.0 / 0.0])": "+Inf",
    "'%s'.format([[1.0 / 0.0]])": '["+Inf"]',
    "'%s'.format([duration('3661s')])": "3661s",
    "'%s'.format([timestamp('2020-01-01T00:00:00.123Z')])": "2020-01-01T00:00:00.123Z",
    "'%s'.format([[duration('1.5s'), timestamp('2020-01-01T00:00:00.5Z')]])": (
        '[duration("1.5s"), timestamp("2020-01-01T00:00:00.5Z")]'
    ),
    "'%s'.format([[type(1), type('a')]])": "[int, string]",
    "'%s'.format([['q\"uo\\nte', 'ü']])": '["q\\"uo\\nte", "ü"]',
    "'%s'.format(dyn(['a', 'b']))": "a",
    "'%s%%'.format(['a'])": "a%",
    "'%d'.format([1234567u])": "1234567",
    "'%.2d'.format([1])": "1",
    "'%f'.format([1234567.5])": "1,234,567.500000",
    "'%.3f'.format([999.9999])": "1,000.000",
    "'%.0f'.format([2.5])": "2",
    "'%.1f'.format([-0.05])": "-0.1",
    "'%.3f'.format([-0.0])": "0.000",
    "'%f'.format(['-Infinity'])": "-∞",
    "'%f'.format(['NaN'])": "NaN",
    "'%.2e'.format([0.00012])": "1.200000×10⁻⁰⁴",
    "'%e'.format([-1.0e100])": "-1.000000×10¹⁰⁰",
    "'%e'.format([0.0])": "0.000000×10⁰⁰",
    "'%e'.format([9.9999999])": "1.000000×10⁰¹",
    "'%b %b'.format([-5, true])": "-101 1",
    "'%x %X'.format(['hi', -255])": "6869 -FF",
    "'%X'.format([b'hi\\xff'])": "6869FF",
    "'%o'.format([-8])": "-10",
}
FAILS = {
    "'%s'.format([b'\\xff'])": "invalid UTF-8",
    "'%s'.format([dyn([quantity('1Gi')])])": "was given kubernetes.Quantity",
    "'%s'.format([dyn(optional.of(1))])": "was given optional_type",
    "'%d'.format([dyn('x')])": "decimal clause can only be used on integers, was given string",
    "'%d'.format([dyn(1.5)])": "was given double",
    "'%f'.format([dyn(1)])": "fixed-point clause can only be used on doubles, was given int",
    "'%f'.format([dyn('x')])": "was given string",
    "'%b'.format([dyn('x')])": "only integers and bools can be formatted as binary, was given string",
    "'%x'.format([dyn(1.5)])": "only integers, byte buffers, and strings can be formatted as hex, was given double",
    "'%o'.format([dyn(true)])": "octal clause can only be used on integers, was given bool",
    "('%' + 'd').format(['a'])": "was given string",
}
_STRING = (
    "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, and "
    "timestamps"
)
SAYS = {
    "'%s'.format([optional.of(1)])": (25, f"error during formatting: {_STRING}, was given optional_type"),
    "'%s'.format([[optional.of(1)]])": (26, f"error during formatting: {_STRING}, was given optional_type"),
    "'%s'.format([{'a': [optional.of(1)]}])": (32, f"error during formatting: {_STRING}, was given optional_type"),
    "'%s'.format([quantity('1Gi')])": (22, f"error during formatting: {_STRING}, was given kubernetes.Quantity"),
    "'%d'.format([text])": (
        14,
        "error during formatting: decimal clause can only be used on integers, was given string",
    ),
    "'%f'.format([number])": (
        14,
        "error during formatting: fixed-point clause can only be used on doubles, was given int",
    ),
    "'%e'.format([1])": (14, "error during formatting: scientific clause can only be used on doubles, was given int"),
    "'%b'.format([1.5])": (
        14,
        "error during formatting: only integers and bools can be formatted as binary, was given double",
    ),
    "'%X'.format([1.5])": (
        14,
        "error during formatting: only integers, byte buffers, and strings can be formatted as hex, was given double",
    ),
    "'%o'.format([true])": (14, "error during formatting: octal clause can only be used on integers, was given bool"),
    "'%s %d'.format([text])": (15, "index 1 out of range"),
    "'%s'.format([text, number])": (12, "too many arguments supplied to string.format (expected 1, got 2)"),
    "'%'.format([1])": (11, "unexpected end of string"),
    "'%5d'.format([1])": (13, 'could not parse formatting clause: unrecognized formatting clause "5"'),
    "'%é'.format([1])": (12, 'could not parse formatting clause: unrecognized formatting clause "Ã"'),
    "'%.3'.format([1.0])": (
        13,
        "could not parse formatting clause: error while parsing precision: could not find end of precision specifier",
    ),
    "'%.f'.format([1.0])": (
        13,
        "could not parse formatting clause: error while parsing precision: error while converting precision to "
        'integer: strconv.Atoi: parsing "": invalid syntax',
    ),
    "'%.99999999999999999999f'.format([1.0])": (
        33,
        "could not parse formatting clause: error while parsing precision: error while converting precision to "
        'integer: strconv.Atoi: parsing "99999999999999999999": value out of range',
    ),
}


@pytest.mark.parametrize(("text", "value"), GIVES.items(), ids=range(len(GIVES)))
def test_formatted_templates(text: str, value: str) -> None:
    cel.check(text, parse(text), cel.Environment())
    assert cel.Program(text).evaluate({}) == value


@pytest.mark.parametrize(("text", "message"), FAILS.items(), ids=range(len(FAILS)))
def test_values_that_cannot_be_formatted(text: str, message: str) -> None:
    with pytest.raises(cel.CelError, match=message):
        cel.Program(text).evaluate({})


@pytest.mark.parametrize(("text", "problem"), SAYS.items(), ids=range(len(SAYS)))
def test_errors_of_templates_and_arguments(text: str, problem: tuple[int, str]) -> None:
    with pytest.raises(cel.CelTypeError) as raised:
        cel.check(text, parse(text), cel.Environment({"text": STRING, "number": INT}))
    column, message = problem
    assert str(raised.value).startswith(f"ERROR: <input>:1:{column}: {message}\n")


def test_dynamic_arguments_are_checked_at_evaluation() -> None:
    for clause in "sdfebxXo":
        text = f"'%{clause}'.format([dyn('a')])"
        assert cel.check(text, parse(text), cel.Environment()).result == STRING


def test_a_precision_can_have_leading_zeros() -> None:
    assert cel.Program("a.format([1.25])").evaluate({"a": f"%.{'0' * 5000}1f"}) == "1.2"


@pytest.mark.parametrize(
    "text",
    [
        "'%s%s'.format([x, x])",
        "'%s'.format([[x, x]])",
        "'%s'.format([{'a': x, 'b': x}])",
        "'aa'.replace('a', x)",
        "'aa'.replace('', x, 2)",
    ],
)
def test_results_are_limited(text: str) -> None:
    program = cel.Program(text)
    assert "yy" in str(program.evaluate({"x": "y" * (LONGEST // 2 - 10)}))
    with pytest.raises(cel.CelError, match=f"text of more than {LONGEST} characters"):
        program.evaluate({"x": "y" * (LONGEST // 2 + 1)})
