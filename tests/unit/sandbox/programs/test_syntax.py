"""Scripts as commands: what is complete, what is an error, and that the work is linear."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcm_cli.sandbox.programs import syntax
from kcm_cli.sandbox.programs.errors import Incomplete, Malformed, TooMuch, Unknown, Unsupported
from tests.kit.growth import grows_linearly


@pytest.mark.parametrize(
    "script",
    [
        "",
        "\n\n",
        "# why\n",
        "a; b && c || d &",
        "a |\n b",
        "a &&\n# why\nb",
        "if a; then b; elif c; then d; else e; fi",
        "while a; do b; done > f 2>&1",
        "for x; do a; done",
        "for x in a 'b c'; do d; done",
        "f() { a; }",
        "f ( ) ( a )",
        "{ a; } < f | b",
        "(a; b) & wait",
        "a=1 b=$(c `d`) e",
        "a <<E\n$x\nE\nb",
        "a <<E <<-'F' | c\n1\nE\n\t2\nF\nb",
        '$(a $(b "$(c)"))',
        "echo $((1 + (2 * 3)))",
        "a &> f",
        "! a | b",
        "a >&2 b",
        "${x:-a b}",
        "echo }",
        "echo if then",
        "a \\\n b",
    ],
)
def test_complete_scripts(script: str) -> None:
    syntax.parse(script)


@pytest.mark.parametrize(
    "script",
    [
        "if a",
        "if a; then",
        "while a; do",
        "{ a",
        "(a",
        "a &&",
        "a |",
        "'a",
        '"a',
        "`a",
        "$(a",
        "${a",
        "$((1",
        "a <<E",
        "a <<E\nb\n",
        "for x in a",
        "f() {",
        "a \\",
    ],
)
def test_more_lines_may_complete_a_script(script: str) -> None:
    with pytest.raises(Incomplete):
        syntax.parse(script)


@pytest.mark.parametrize(
    "script",
    [
        "fi",
        "a; then",
        "if then",
        "a ;; b",
        "a || && b",
        "| a",
        ") a",
        "{ }",
        "for 1 in a; do b; done",
        "a > ",
        "f() a",
    ],
)
def test_errors(script: str) -> None:
    with pytest.raises(Malformed):
        syntax.parse(script)


@pytest.mark.parametrize(
    ("script", "construct"),
    [
        ("a <(b)", "a process substitution"),
        ("a=(1 2)", "an array"),
        ("((1))", "(("),
        ("${a/b/c}", "${a/…}"),
        ("${#a}", "${#a…}"),
        ("$'a'", "$'"),
        ("a |& b", "|&"),
        ("a <<< b", "<<<"),
        ("case a in b) c;; esac", "case"),
        ("function f { a; }", "function"),
    ],
)
def test_what_is_not_simulated_is_named(script: str, construct: str) -> None:
    with pytest.raises(Unsupported) as raised:
        syntax.parse(script)
    assert str(raised.value) == construct


def test_what_is_too_deep_or_long() -> None:
    for script in (
        "$(" * 100,
        "{ " * 100,
        "(" * 100,
        "if " * 100,
        "${a:-" * 100,
        "`" * 3 + "a" * (1 << 17),
        '"$(' * 60,
    ):
        with pytest.raises((TooMuch, Malformed, Unsupported)):
            syntax.parse(script)


@pytest.mark.parametrize(
    "piece",
    [
        "a ",
        "a;",
        "'a'",
        '"a$b"',
        "$((1+",
        "`a` ",
        "\\\n",
        "<<E ",
        "a=b ",
        "x|",
        "${a:-b}",
        "# a\n",
        "$(a) ",
        ">f ",
        "a&",
        "(a)",
        "if a; then ",
    ],
)
def test_the_work_is_linear(piece: str) -> None:
    def run(size: int) -> Callable[[], object]:
        def parse() -> object:
            try:
                syntax.assigned(piece * size)
                return syntax._Parser(piece * size).script()
            except Unknown:
                return None

        return parse

    assert grows_linearly(run, 400)


@given(st.text("abfi \n;&|()<>{}'\"\\$`#=*E1", max_size=60))
def test_any_text_is_parsed_or_refused(script: str) -> None:
    try:
        syntax.parse(script)
    except Unknown:
        pass
