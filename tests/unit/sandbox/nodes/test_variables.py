"""The expansions of a shell, before its script runs and when a command runs."""

import pytest

from kcm_cli.sandbox.nodes.filesystem import FileSystem, Work
from kcm_cli.sandbox.nodes.shell import Unknown
from kcm_cli.sandbox.nodes.variables import Variables

WORK = 1 << 20


def variables(work: float = WORK, **env: str) -> Variables:
    return Variables(env, FileSystem({}, (), set(), None, Work(work)))


@pytest.mark.parametrize(
    ("script", "expanded"),
    [
        ("echo $A ${A} ${A:-no} ${B:-no} ${B-no}", "echo a a a no no"),
        ("echo $B ${B:?must be set}", "echo $B ${B:?must be set}"),
        ("echo $E. ${E:-no} ${E-no}", "echo . no "),
        ("A=b; echo $A", "A=b; echo $A"),
        ("for A in x; do echo $A; done", "for A in x; do echo $A; done"),
        ("echo $((7 / -2)) $((1 / 0)) $(expr 2 * 3)", "echo -3 $((1 / 0)) 6"),
        ("echo $(hostname) `hostname -s` $(hostname -f)", "echo web.ns web $(hostname -f)"),
        ("echo $(id -u)", "echo $(id -u)"),
        ("echo a # $A", "echo a "),
    ],
)
def test_constant_values_are_expanded_before_parsing(script: str, expanded: str) -> None:
    assert variables(A="a", E="", HOSTNAME="web.ns").expanded(script) == expanded


@pytest.mark.parametrize("value", ["a; exit 1", "$(reboot)", "a | b", "'"])
def test_values_with_special_characters_are_one_word(value: str) -> None:
    known = variables(A=value)
    script = known.expanded('echo "$A"')
    assert value not in script
    assert known.filled(script.split('"')[1], 0) == value


@pytest.mark.parametrize("quoted", ["'$A; b'", r'"\$A; b"'])
def test_quoted_text_is_not_interpreted(quoted: str) -> None:
    known = variables(A="a")
    script = known.expanded(quoted)
    assert ";" not in script
    assert known.filled(script[1:-1].replace("\\", ""), 0) == "$A; b"


def test_variables_of_the_script_are_expanded_when_a_command_runs() -> None:
    known = variables(A="a")
    known.expanded("A=b; C=c; D=$(date)")
    assert known.filled("$A ${C:-x} $C $D $?", 3) == "a x $C $D 3"
    for word in ("A=b", "C=", "D=$(date)"):
        known.assign(word)
    assert known.filled("$A ${C:-x} ${C-y} $D", 0) == "b x  $D"
    assert known.are_own("$A$C")
    assert not known.are_own("$A$OTHER")


def test_a_nested_shell_has_exported_variables() -> None:
    known = variables(A="a")
    known.expanded("A=1; B=2; C=3")
    for word in ("A=1", "B=2", "C=3"):
        known.assign(word)
    known.exported |= {"C"}
    inner = known.inherited()
    assert inner.env == {"A": "1", "C": "3"}
    assert inner.filled("$B.", 0) == "."
    inner.assign("A=4")
    assert known.get("A") == "1"


def test_a_copy_is_independent() -> None:
    known = variables()
    known.copied().assign("A=1")
    assert known.get("A") is None


@pytest.mark.parametrize("script", ["a\x06", "x" * (1 << 20)])
def test_unsupported_and_too_long_expansions_are_unknown(script: str) -> None:
    with pytest.raises(Unknown):
        variables().expanded(script)


def test_the_cost_of_expansions_grows_with_their_length() -> None:
    known = variables(A="x" * 1000)
    known.expanded("echo $A")
    assert known.fs.work.done > 250
    with pytest.raises(Unknown):
        variables(100, A="x" * 1000).expanded("echo $A")
