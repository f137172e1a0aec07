"""Go's regular expressions: the same matches, the same refusals."""

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
    ],
)
def test_matches(expression, text, matches):
    assert bool(compile_go(expression).search(text)) is matches


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
    ],
)
def test_refusals(expression, problem):
    with pytest.raises(FormatError) as found:
        compile_go(expression)
    assert str(found.value) == f"error parsing regexp: {problem}"
