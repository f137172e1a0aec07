"""The syntax of flags."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcm_cli.component import value_types
from kcm_cli.component.flagset import Flag, FlagSet

FLAGS = FlagSet(
    [
        Flag("leader-elect", value_types.BOOL, True),
        Flag("help", value_types.BOOL, False, shorthand="h"),
        Flag("v", value_types.LEVEL, 0, shorthand="v"),
        Flag("kube-api-qps", value_types.FLOAT32, 20.0),
        Flag("controllers", value_types.STRINGS, ("*",)),
        Flag("bind-address", value_types.IP, "0.0.0.0"),
        Flag("feature-gates", value_types.MULTIMAP, ()),
        Flag("version", value_types.VERSION, "false"),
        Flag("pod-eviction-timeout", value_types.DURATION, 0.0, hidden=True, deprecated="it does nothing."),
    ]
)

TAKEN = [
    pytest.param(["--leader-elect"], {"leader-elect": True}, id="bare bool"),
    pytest.param(["--leader-elect=false"], {"leader-elect": False}, id="bool with value"),
    pytest.param(["--kube-api-qps", "5"], {"kube-api-qps": 5.0}, id="value apart"),
    pytest.param(["--kube_api_qps=5"], {"kube-api-qps": 5.0}, id="underscores"),
    pytest.param(["--kube-api-qps", "-1"], {"kube-api-qps": -1.0}, id="value that looks like a flag"),
    pytest.param(["--kube-api-qps=5", "--kube-api-qps=6"], {"kube-api-qps": 6.0}, id="the last one wins"),
    pytest.param(["-v", "2"], {"v": 2}, id="letter, value apart"),
    pytest.param(["-v=2"], {"v": 2}, id="letter with ="),
    pytest.param(["-v2"], {"v": 2}, id="letter with value"),
    pytest.param(["--v=2"], {"v": 2}, id="long form of a letter"),
    pytest.param(["-hv2"], {"help": True, "v": 2}, id="letters together"),
    pytest.param(["--version"], {"version": "true"}, id="optional value left out"),
    pytest.param(["--version=raw"], {"version": "raw"}, id="optional value"),
    pytest.param(["--controllers=a,b", "--controllers", "c"], {"controllers": ("a", "b", "c")}, id="list grows"),
    pytest.param(["--bind-address="], {}, id="an empty address changes nothing"),
    pytest.param(["--bind-address=::1", "--bind-address="], {"bind-address": "::1"}, id="nor does a later one"),
    pytest.param(
        ["--feature-gates=A=true", "--feature-gates=kube:B=false"],
        {"feature-gates": (("", "A=true"), ("kube", "B=false"))},
        id="map grows",
    ),
]


@pytest.mark.parametrize(("args", "values"), TAKEN)
def test_takes(args: list[str], values: dict[str, object]) -> None:
    parsed = FLAGS.parse(args)
    assert (parsed.problems, parsed.values, parsed.rest) == ([], values, [])


REFUSED = [
    pytest.param(["--kube-api-qsp=5"], "unknown flag: --kube-api-qsp (did you mean --kube-api-qps?)", id="near name"),
    pytest.param(["--kube_api_qsp", "5"], "unknown flag: --kube_api_qsp (did you mean --kube-api-qps?)", id="value"),
    pytest.param(["--xyzzy"], "unknown flag: --xyzzy", id="no near name"),
    pytest.param(["-x"], 'unknown shorthand flag: "x" in -x', id="letter"),
    pytest.param(["--kube-api-qps"], "flag needs an argument: --kube-api-qps", id="no value"),
    pytest.param(["-v"], "flag needs an argument: -v, --v", id="letter without value"),
    pytest.param(["--=5"], "bad flag syntax: --=5", id="no name"),
    pytest.param(["---v"], "bad flag syntax: ---v", id="three dashes"),
    pytest.param(["-v=x"], 'invalid argument "x" for "-v, --v" flag: must be a whole number', id="bad value"),
    pytest.param(
        ["--leader-elect=maybe"],
        'invalid argument "maybe" for "--leader-elect" flag: must be true or false',
        id="bad bool",
    ),
]


@pytest.mark.parametrize(("args", "problem"), REFUSED)
def test_an_error_is_one_line(args: list[str], problem: str) -> None:
    parsed = FLAGS.parse(args)
    assert parsed.problems == [problem]
    assert parsed.rest == []


def test_all_mistakes_are_reported_together() -> None:
    parsed = FLAGS.parse(["--nope=1", "-v", "x", "--kube-api-qps=y", "--leader-elect=false"])
    assert len(parsed.problems) == 3
    assert parsed.values == {"leader-elect": False}


def test_a_boolean_flag_takes_no_separate_value() -> None:
    assert FLAGS.parse(["--leader-elect", "false"]).rest == ["false"]


def test_two_dashes_end_the_flags() -> None:
    parsed = FLAGS.parse(["-v2", "--", "--leader-elect", "x"])
    assert (parsed.values, parsed.rest) == ({"v": 2}, ["--leader-elect", "x"])


def test_a_deprecated_flag_warns_once() -> None:
    parsed = FLAGS.parse(["--pod-eviction-timeout=5m", "--pod-eviction-timeout=6m"])
    assert parsed.warnings == ["Flag --pod-eviction-timeout has been deprecated, it does nothing."]
    assert parsed.values == {"pod-eviction-timeout": 360.0}


def test_a_name_declared_twice_is_refused() -> None:
    with pytest.raises(ValueError, match="there is another flag"):
        FlagSet([Flag("a", value_types.BOOL, False), Flag("a", value_types.STRING, "")])


@given(st.lists(st.text(max_size=20), max_size=6))
def test_never_raises(args: list[str]) -> None:
    FLAGS.parse(args)
