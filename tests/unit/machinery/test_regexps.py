"""Go's regular expressions: the same matches and errors."""

import pytest

from kcm_cli.machinery.errors import FormatError
from kcm_cli.machinery.regexps import compile_go


@pytest.mark.parametrize(
    ("expression", "text", "matches"),
    [
        ("^a+$", "aa", True),
        ("^a+$", "aa\n", False),
        ("(?i)ab|CD", "cd", True),
        ("x(?i)a|b", "B", True),
        (r"^[[:alpha:]_]+$", "ab_", True),
        (r"^[^[:digit:]]$", "1", False),
        (r"\Qa.b\E$", "a.b", True),
        (r"\Qa.b\E$", "axb", False),
        (r"^\w+\z", "ä", False),
        ("(?m)^b$", "a\nb", True),
        (r"^\x{e4}$", "ä", True),
        ("^a{0,2}$", "aaa", False),
        ("a{,2}", "a{,2}", True),
        (r"^\PL$", "1", True),
        (r"^\p{Greek}+$", "αβ", True),
        ("^(a+)+$", "a" * 5000 + "b", False),
        (r"^(\pL{1000})$", "ä" * 1000, True),
        ("(" * 999 + "a" + ")" * 999, "a", True),
        (r"\(" * 1100, "(" * 1100, True),
        ("[(]" * 1100, "(" * 1100, True),
        (r"^\Q\C\E$", r"\C", True),
    ],
)
def test_matches(expression, text, matches):
    assert compile_go(expression).matches(text) is matches


@pytest.mark.parametrize(
    ("expression", "problem"),
    [
        ("[a", "missing closing ]: `[a`"),
        ("(a", "missing closing ): `(a`"),
        ("a)", "unexpected ): `a)`"),
        ("*a", "missing argument to repetition operator: `*`"),
        ("a**", "invalid nested repetition operator: `**`"),
        ("a{1001}", "invalid repeat count: `{1001}`"),
        ("(?=a)", "invalid or unsupported Perl syntax: `(?=`"),
        (r"\1", r"invalid escape sequence: `\1`"),
        ("[z-a]", "invalid character class range: `z-a`"),
        ("a\\", "trailing backslash at end of expression: ``"),
        ("(?:", "missing closing ): `(?:`"),
        ("a{2,1}", "invalid repeat count: `{2,1}`"),
        ("(x{500}){3}", "invalid repeat count: `{3}`"),
        (r"\C", r"invalid escape sequence: `\C`"),
        (r"\pX", r"invalid character class range: `\pX`"),
        ("(?<=a)b", "invalid named capture: `(?<=a)b`"),
        ("(?<!a>)b", "invalid named capture: `(?<!a>`"),
        ("(?P<a-b>a)", "invalid named capture: `(?P<a-b>`"),
        ("(?P<日>a)", "invalid named capture: `(?P<日>`"),
        ("(" * 1000 + ")" * 1000, f"expression nests too deeply: `{'(' * 1000}{')' * 1000}`"),
    ],
)
def test_refusals(expression, problem):
    with pytest.raises(FormatError) as found:
        compile_go(expression)
    assert str(found.value) == f"error parsing regexp: {problem}"


def test_finds():
    assert compile_go("b+").find("abbc") == "bb"
    assert compile_go("x").find("abbc") == ""
    assert compile_go("a*").find_all("baac") == ["", "aa", ""]
    assert compile_go("(?P<x>ä)b?").find_all("äbää") == ["äb", "ä", "ä"]
    assert compile_go("x*").find_all("日本") == ["", "", ""], "no match within a character"
    assert compile_go("日").find_all("日本日") == ["日", "日"]


def test_finds_at_most_the_requested_number():
    for expression in ("a", "[a]"):
        assert compile_go(expression).find_all("aaa", 2) == ["a", "a"]
        assert compile_go(expression).find_all("aaa", 0) == []
