"""Between options and flags: the flags of a tree of groups, and the tree that parsed flags make."""

from collections.abc import Iterator, Mapping
from typing import TypeVar

from kcm_cli.component.flagset import Flag
from kcm_cli.component.options import Binding, Group, bind, build

G = TypeVar("G", bound=Group)


def flags_of(type_: type[Group]) -> Iterator[Flag]:
    """The flags that a tree of groups declares, in order of declaration. Deprecated ones are hidden."""
    return (_flag(binding) for binding in bind(type_) if binding.option.flag)


def tree_of(type_: type[G], values: Mapping[str, object]) -> G:
    """The tree that these values of flags make, with defaults elsewhere."""
    return build(type_, {b.path: values[b.option.flag] for b in bind(type_) if b.option.flag in values})


def _flag(binding: Binding) -> Flag:
    declared = binding.option
    return Flag(
        declared.flag,
        declared.kind,
        declared.default,
        declared.help,
        binding.section,
        shorthand=declared.shorthand,
        hidden=bool(declared.deprecated),
        deprecated=declared.deprecated,
        choices=declared.choices,
        unit=declared.unit,
    )
