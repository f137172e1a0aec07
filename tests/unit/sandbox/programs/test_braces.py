"""Braces in bash, which other shells take literally."""

import tracemalloc
from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from kcm_cli.sandbox.programs.braces import expanded
from kcm_cli.sandbox.programs.errors import TooMuch
from kcm_cli.sandbox.programs.filesystem import There, Work
from kcm_cli.sandbox.programs.simulate import answer
from kcm_cli.sandbox.programs.syntax import Text
from tests.kit.growth import grows_linearly

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
        (
            "echo }{a,b}}{{1..3} {{a,b}} {a,{b},c}, {1.\\\n.3}",
            "}a}{1 }a}{2 }a}{3 }b}{1 }b}{2 }b}{3 {a} {b} a, {b}, c, 1 2 3",
        ),
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


@pytest.mark.parametrize("text", ["{", "{a,", "{a}", "}", ",", "x{a,b"])
def test_long_words_with_braces_cost_linear_time(text: str) -> None:
    def run(size: int) -> Callable[[], object]:
        word = (Text(text * size),)
        return lambda: expanded(word, Work(1 << 20))

    assert grows_linearly(run, 1000)


def test_nested_braces_cost_linear_time() -> None:
    def run(size: int) -> Callable[[], object]:
        word = (Text("{" * size + "a" + "}" * size),)
        return lambda: expanded(word, Work(1 << 20))

    assert grows_linearly(run, 1000)


@pytest.mark.parametrize(
    "text",
    [
        "{" + ",".join(["{1..4096}"] * 6000) + "}",
        "{1..4096}" + "x," * 30_000,
        "{1..4096}" + "x" * 60_000,
    ],
)
def test_words_beyond_a_limit_are_not_built(text: str) -> None:
    tracemalloc.start()
    try:
        with pytest.raises(TooMuch):
            expanded((Text(text),), Work(1 << 20))
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 64 << 20


def test_many_words_with_braces_cost_work() -> None:
    output, problem = said("bash", "echo" + " {1..4096}" * 6000)
    assert not output and "it takes too many steps" in problem
