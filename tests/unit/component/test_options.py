"""One declaration per field, and what derives from it."""

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import pytest

from kcm_cli.component import options, value_types
from kcm_cli.component.flagset import FlagSet


@dataclass(frozen=True, slots=True)
class Workers:
    """Nested options with a section of their own."""

    SECTION: ClassVar[str] = "Workers"

    count: int = options.option(value_types.INT32, 5, flag="workers", key="Count", minimum=1, maximum=9)
    kind: str = options.option(value_types.STRING, "", flag="kind", section="Other")

    def problems(self) -> Iterator[str]:
        if self.kind == "bad":
            yield "kind must not be bad"


@dataclass(frozen=True, slots=True)
class Root:
    """The tree."""

    SECTION: ClassVar[str] = "Root"

    old: bool = options.option(value_types.BOOL, False, flag="old", key="Old", deprecated="it does nothing.")
    workers: Workers = options.group(Workers, key="Some.Workers")
    rate: float = options.option(value_types.FLOAT32, 0.5, key="Rate", minimum=0)
    period_s: float = options.duration(20, flag="period", minimum=1)


def test_bindings_have_paths_and_sections() -> None:
    assert [(b.path, b.key, b.option.section) for b in options.bind(Root)] == [
        (("old",), ("Old",), "Root"),
        (("workers", "count"), ("Some", "Workers", "Count"), "Workers"),
        (("workers", "kind"), (), "Other"),
        (("rate",), ("Rate",), "Root"),
        (("period_s",), (), "Root"),
    ]


def test_layout_is_in_order_with_groups() -> None:
    assert [key for key, _ in options.layout(Root)] == [
        ("Old",),
        ("Some", "Workers"),
        ("Some", "Workers", "Count"),
        ("Rate",),
    ]


def test_a_tree_is_built_from_values() -> None:
    assert options.build(Root, {("workers", "count"): 7, ("rate",): 1.0}) == Root(False, Workers(7), 1.0)


def test_the_flags_of_a_tree() -> None:
    flags = FlagSet(options.flags_of(Root))
    assert flags.parse(["--workers=3", "--kind", "x", "--old"]).values == {"workers": 3, "kind": "x", "old": True}
    assert [(flag.name, flag.section, flag.hidden) for flag in flags] == [
        ("old", "Root", True),
        ("workers", "Workers", False),
        ("kind", "Other", False),
        ("period", "Root", False),
    ]


@pytest.mark.parametrize(
    ("tree", "problems"),
    [
        pytest.param(Root(), [], id="defaults"),
        pytest.param(Root(workers=Workers(0)), ["workers must be greater than 0, but got 0"], id="minimum of one"),
        pytest.param(Root(workers=Workers(10)), ["workers must not be more than 9, but got 10"], id="maximum"),
        pytest.param(Root(rate=-1.0), ["Rate must not be less than 0, but got -1"], id="a field without a flag"),
        pytest.param(Root(period_s=0.5), ["period must not be less than 1s, but got 500ms"], id="a duration"),
        pytest.param(
            Root(workers=Workers(0, "bad")),
            ["workers must be greater than 0, but got 0", "kind must not be bad"],
            id="all together",
        ),
    ],
)
def test_problems(tree: Root, problems: list[str]) -> None:
    assert options.problems(tree) == problems


def test_parts_are_found_by_type() -> None:
    assert {type(part): part for part in options.parts(Root(workers=Workers(2)))} == {Workers: Workers(2)}


class Limits(options.OptionGroup):
    """A group as kcm's own are."""

    most: int = options.option(value_types.INT32, 5, flag="most", key="Most")
    workers: Workers = options.group(Workers, key="Workers")


def test_an_option_group_is_a_frozen_dataclass() -> None:
    given = Limits(most=7)
    assert (given, hash(given)) == (Limits(most=7, workers=Workers()), hash(Limits(most=7)))
    assert given != Limits() and Limits() != Root()
    assert repr(given) == f"Limits(most=7, workers={Workers()!r})"
    assert dataclasses.replace(given, most=8) == Limits(most=8)
    assert options.build(Limits, {("workers", "count"): 6}) == Limits(workers=Workers(6))
    with pytest.raises(dataclasses.FrozenInstanceError):
        given.most = 8  # type: ignore[misc]
    with pytest.raises(TypeError, match="Limits has no least"):
        Limits(least=1)  # type: ignore[call-arg]
