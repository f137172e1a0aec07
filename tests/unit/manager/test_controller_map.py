"""The meaning of --controllers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcm_cli.engine.descriptor import Descriptor
from kcm_cli.manager.controller_map import Controllers, is_enabled

KNOWN = Controllers(
    (
        Descriptor(name="a-controller", alias="a"),
        Descriptor(name="b-controller"),
        Descriptor(name="c-controller", alias="old-c", default_enabled=False),
    )
)


@pytest.mark.parametrize(
    ("selection", "running"),
    [
        pytest.param(["*"], ["a-controller", "b-controller"], id="all that are on by default"),
        pytest.param(["*", "c-controller"], ["a-controller", "b-controller", "c-controller"], id="one more"),
        pytest.param(["*", "-a"], ["b-controller"], id="but one, by its former name"),
        pytest.param(["a", "old-c"], ["a-controller", "c-controller"], id="these alone"),
        pytest.param(["-a-controller"], [], id="none without *"),
        pytest.param([], [], id="nothing"),
        pytest.param(["a", "-a", "*"], ["a-controller", "b-controller"], id="the first mention decides"),
        pytest.param(["-a", "a"], [], id="the first mention decides against"),
    ],
)
def test_selects(selection: list[str], running: list[str]) -> None:
    assert list(KNOWN.selected(selection)) == running


@pytest.mark.parametrize(
    ("selection", "problems"),
    [
        pytest.param(["*", "a", "-b-controller"], [], id="known"),
        pytest.param(["xyz"], ['"xyz" is not in the list of known controllers (kcm --help lists them)'], id="unknown"),
        pytest.param(
            ["-d-controller"],
            ['"d-controller" is not in the list of known controllers (did you mean c-controller?)'],
            id="near name",
        ),
        pytest.param(
            ["-*"], ['"*" is not in the list of known controllers (kcm --help lists them)'], id="no minus star"
        ),
    ],
)
def test_names_unknown_ones(selection: list[str], problems: list[str]) -> None:
    assert list(KNOWN.unknown(selection)) == problems


@given(st.lists(st.sampled_from(["*", "a-controller", "-a-controller", "b-controller", "-b-controller"])))
def test_canonical_names_are_kept(selection: list[str]) -> None:
    assert KNOWN.canonical(selection) == tuple(selection)


@given(st.lists(st.sampled_from(["*", "a", "-a", "b", "-b"])), st.booleans())
def test_other_names_do_not_matter(selection: list[str], off: bool) -> None:
    alone = [item for item in selection if item in ("*", "a", "-a")]
    assert is_enabled("a", selection, off_by_default=off) is is_enabled("a", alone, off_by_default=off)
