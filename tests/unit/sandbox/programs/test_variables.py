"""The variables of shells, and their expansion."""

import pytest

from kcm_cli.sandbox.programs.errors import TooMuch
from kcm_cli.sandbox.programs.filesystem import There, Work
from kcm_cli.sandbox.programs.simulate import answer, simulate
from kcm_cli.sandbox.programs.variables import Variables

ENV = {"A": "a", "E": "", "S": "x  y", "HOSTNAME": "web.ns", "HOME": "/root", "P": "/a/b.tar.gz", "G": "*", "H": None}


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ("$A ${A} ${A:-no} ${B:-no} ${B-no}", "a a a no no"),
        ("$E. ${E:-no} ${E-no}.", ". no ."),
        ("${E:+no}.${E+yes}.${A:+yes}", ".yes.yes"),
        ("${B:=new} $B", "new new"),
        ("$S \"$S\" '$S' \\$S", "x y x  y $S $S"),
        ("$((7 / -2)) $((1 + 2 * 3)) $((X = 4)) $((X 1))", None),
        ("$((7 / -2)) $(( (1 + 2) * 3 )) $((-7 % 3)) $((X - 4 < 0))", "-3 9 -1 1"),
        ("$((010)) $((0x10))", None),
        ("$((A++))", None),
        ("$((True))", "0"),
        ("$((9223372036854775808))", None),
        ("$((9223372036854775807 + 1))", "-9223372036854775808"),
        ("$(echo b) `echo c` \"$(echo 'd  e')\" $(echo 'd  e')", "b c d  e d e"),
        ("$(hostname) `hostname -s`", "web.ns web"),
        ("~ ~/x a~", "/root /root/x a~"),
        ("a # $A", "a"),
        ('a#b "#"', "a#b #"),
        ("$(echo $(echo $(echo deep)))", "deep"),
        ('"a\\"b\\$A\\c"', 'a"b$A\\c'),
        ("$? $# $0", "0 0 sh"),
        ("\"$(printf 'a\\n\\n')\"", "a"),
        ('${B:-"x  y"} ${B:-x  y}', "x  y x y"),
        ("$1x$@y", "xy"),
        ('"$G"', "*"),
        ("${A/b/c}", None),
        ("$'a'", None),
        ("$H", None),
        ("${H:-x}", None),
        ("${H-x}", None),
    ],
)
def test_expansion(words: str, text: str | None) -> None:
    known = answer(["sh", "-c", f"echo {words}"], ENV, There())
    is_known = not known.problem and known.code == 0
    assert ("".join(each.text for each in known.output) if is_known else None) == (
        None if text is None else f"{text}\n"
    )


def test_fields() -> None:
    script = 'set -- "a b" "" c; for x in "$@"; do echo "[$x]"; done; echo $#; X="1 2  3"; set -- $X; echo $# $3 "$*"'
    known = simulate(["sh", "-c", script], {}, There())
    assert known is not None
    assert "".join(each.text for each in known.output) == "[a b]\n[]\n[c]\n3\n3 3 1 2 3\n"


def variables(work: float = 1000, **env: str | None) -> Variables:
    return Variables(env, Work(work))


def test_a_nested_shell_has_exported_variables() -> None:
    known = variables(A="a")
    for name, value in (("A", "1"), ("B", "2"), ("C", "3")):
        known.put(name, value)
    known.exported |= {"C"}
    inner = known.inherited()
    assert inner.env == {"A": "1", "C": "3"} and not inner.has("B")
    inner.put("A", "4")
    assert known.get("A") == "1"


def test_a_copy_is_independent() -> None:
    known = variables()
    known.copied().put("A", "1")
    assert not known.has("A")


def test_values_cost_and_are_bounded() -> None:
    with pytest.raises(TooMuch):
        variables(100, A="x" * 10_000).get("A")
    with pytest.raises(TooMuch):
        variables().put("A", "x" * (1 << 18))
