"""From options to flags."""

from collections.abc import Iterator

from kcm_cli.component.flagset import Flag
from kcm_cli.component.options import Binding, Group, bind


def flags_of(type_: type[Group]) -> Iterator[Flag]:
    """The flags that a tree of groups declares, in order of declaration. Deprecated ones are hidden."""
    return (_flag(binding) for binding in bind(type_) if binding.option.flag)


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
