"""Braces in bash, which other shells take literally."""

from datetime import UTC, datetime

import pytest

from kcm_cli.sandbox.programs.filesystem import There
from kcm_cli.sandbox.programs.simulate import answer

THERE = There({"/d/f": "", "/d/g": ""}, ("/d",), began=datetime(2030, 7, 1, tzinfo=UTC), input="")


def said(shell: str, script: str) -> tuple[str, str]:
    known = answer([shell, "-c", script], {"HOME": "/root", "PATH": "/bin"}, THERE)
    return "".join(each.text for each in known.output), known.problem


@pytest.mark.parametrize(
    ("script", "output"),
    [
        ("echo /data/{a,b}/c", "/data/a/c /data/b/c"),
        ("echo {a,b{1,2}}{x,}", "ax a b1x b1 b2x b2"),
        ("echo x{1..3} {3..1} {01..3} {-1..1} {1..9..4} {c..a}", "x1 x2 x3 3 2 1 01 02 03 -1 0 1 1 5 9 c b a"),
        ("echo {} {a} {a,b {a{b,c}} {a{b,c} a,b} {a,b}}", "{} {a} {a,b {ab} {ac} {ab {ac a,b} a} b}"),
        ("echo '{a,b}' \"{a,b}\" \\{a,b} {a\\,b} {1..'2'}", "{a,b} {a,b} {a,b} {a,b} {1..2}"),
        ('echo {"a":1,"b":"c d"}', "a:1 b:c d"),
        ("N=3; echo {1..$N} {$N,x$N}; X={a,b}; echo $X", "{1..3} 3 x3\n{a,b}"),
        ("cd /d; echo {f,h}* ${X:-{a,b}}; for i in a{1,2}; do echo $i; done", "f h* {a,b}\na1\na2"),
        ("mkdir -p /d/{x,y} && touch /d/{x,y}/n{1,2} && ls /d/y", "n1\nn2"),
    ],
)
def test_words_with_braces(script: str, output: str) -> None:
    assert said("bash", script) == (f"{output}\n", "")


def test_braces_in_other_shells() -> None:
    assert said("sh", "echo /data/{a,b} {1..3}") == ("/data/{a,b} {1..3}\n", "")


@pytest.mark.parametrize("script", ["echo {1..100000}", "echo " + "{a,b}" * 13, "echo " + "{a,b}" * 40, "echo {a..Z}"])
def test_braces_that_are_not_expanded(script: str) -> None:
    output, problem = said("bash", script)
    assert not output and "the sandbox cannot simulate" in problem
