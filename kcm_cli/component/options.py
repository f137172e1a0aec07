"""Options: one declaration per field, from which flags, configuration file, /configz, docs and validation follow.

A *group* is a frozen dataclass (an ``OptionGroup``) whose fields are made with ``option`` (one value) or ``group``
(nested options). It may carry ``SECTION`` (the help section of its flags), a ``problems`` method (rules that one
field's bounds cannot say) and a ``completed`` method (the group with values that follow from others). ``bind`` lists
everything that a tree of groups declares; ``build`` makes the tree from the values that were set. Pure: no reading of
files, no logging.
"""

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar, Protocol, TypeVar, cast, dataclass_transform

import msgspec
from msgspec.structs import replace

from kcm_cli.component.flagset import Flag
from kcm_cli.component.value_types import DURATION, INT32, ValueType

T = TypeVar("T")
G = TypeVar("G", bound="Group")
Path = tuple[str, ...]

_OPTION = "kcm option"
_GROUP = "kcm group"


class Group(Protocol):
    """A frozen dataclass of options."""

    __dataclass_fields__: ClassVar[dict[str, dataclasses.Field[Any]]]


class _Group(msgspec.Struct, frozen=True):
    type_of: Callable[[], type[Group]]
    key: str = ""
    section: str = ""


@dataclass_transform(frozen_default=True, kw_only_default=True)
class OptionGroup:
    """A group: each subclass is a frozen dataclass, whose values are given by name.

    They share these methods, while ``dataclass(frozen=True)`` compiles six for each class: 0.7 ms of each start.
    """

    __dataclass_fields__: ClassVar[dict[str, dataclasses.Field[Any]]]

    def __init_subclass__(cls) -> None:
        cls.__doc__ = cls.__doc__ or cls.__name__  # else the signature is computed for it
        dataclasses.dataclass(init=False, repr=False, eq=False)(cls)

    def __init__(self, **values: Any) -> None:
        for field in dataclasses.fields(self):
            if field.name in values:
                value = values.pop(field.name)
            elif field.default_factory is not dataclasses.MISSING:
                value = field.default_factory()
            else:
                value = field.default
            object.__setattr__(self, field.name, value)
        if values:
            raise TypeError(f"{type(self).__name__} has no {', '.join(values)}")

    def __setattr__(self, name: str, value: object) -> None:
        raise dataclasses.FrozenInstanceError(f"cannot assign to {name}")

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash((type(self), *vars(self).values()))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in vars(self).items())})"


class Binding(msgspec.Struct, frozen=True):
    """An option in a tree: its attribute path, and its key path in the file."""

    path: Path
    key: Path
    option: Flag


def option(kind: ValueType, default: T, flag: str = "", **words: Any) -> T:
    """A field with an option, which is parsed and shown as its ``kind`` says. ``flag``: the name of its flag, if any.

    Keyword arguments: ``help``, its text; ``key``, its field in the configuration file, with dots for nesting;
    ``minimum`` and ``maximum``, inclusive bounds; ``choices``, the allowed values; ``unit``, such as "s", for the
    pages. The others are those of ``component.flagset.Flag``.
    """
    declared = Flag(flag, kind, default, hidden=bool(words.get("deprecated")), **words)
    return dataclasses.field(default=default, metadata={_OPTION: declared})


def duration(default_s: float, **words: Any) -> float:
    """A field for a duration in seconds. Keyword arguments are those of ``option``."""
    return option(DURATION, default_s, unit="s", **words)


def concurrency(objects: str, default: int, flag: str, key: str, **bounds: int) -> int:
    """A field for the number of objects that a controller syncs at a time. Bounds are Flag's."""
    text = f"Number of {objects} to sync in parallel. A higher number responds faster, at the cost of CPU and network."
    return option(INT32, default, flag=flag, key=key, help=text, **bounds)


def group(type_: type[G], key: str = "", section: str = "") -> G:
    """A field with nested options; ``key`` (dots descend) is where they stand in the configuration file, ``section``
    in the help, if the type has no SECTION."""
    return dataclasses.field(default_factory=type_, metadata={_GROUP: _Group(lambda: type_, key, section)})


def lazy_group(type_of: Callable[[], type[Group]]) -> Any:
    """A field with nested options that are known only when they are asked for."""
    return dataclasses.field(default_factory=lambda: type_of()(), metadata={_GROUP: _Group(type_of)})


def bind(type_: type[Group]) -> tuple[Binding, ...]:
    """Everything that a tree of groups declares, in order of declaration."""
    return tuple(place for place in _places(type_, (), (), "") if isinstance(place, Binding))


def flags_of(type_: type[Group]) -> Iterator[Flag]:
    """The flags that a tree of groups declares, in order of declaration."""
    return (binding.option for binding in bind(type_) if binding.option.name)


def layout(type_: type[Group]) -> Iterator[tuple[Path, Binding | None]]:
    """The fields of the configuration file in order: key path and option, or None where a nested group begins."""
    for place in _places(type_, (), (), ""):
        if not isinstance(place, Binding):
            yield place, None
        elif place.key:
            yield place.key, place


def _places(type_: type[Group], path: Path, key: Path, section: str) -> Iterator[Binding | Path]:
    section = getattr(type_, "SECTION", section)
    for field in dataclasses.fields(type_):
        here = (*path, field.name)
        if _OPTION in field.metadata:
            declared: Flag = field.metadata[_OPTION]
            keys = (*key, *declared.key.split(".")) if declared.key else ()
            yield Binding(here, keys, replace(declared, section=declared.section or section))
        elif _GROUP in field.metadata:
            nested: _Group = field.metadata[_GROUP]
            inner = (*key, *nested.key.split(".")) if nested.key else key
            if nested.key:
                yield inner
            yield from _places(nested.type_of(), here, inner, nested.section or section)


def build(type_: type[G], values: Mapping[Path, object], path: Path = ()) -> G:
    """The tree with these values at these attribute paths and defaults elsewhere."""
    given: dict[str, object] = {}
    for field in dataclasses.fields(type_):
        here = (*path, field.name)
        if _GROUP in field.metadata:
            given[field.name] = build(field.metadata[_GROUP].type_of(), values, here)
        elif here in values:
            given[field.name] = values[here]
    made = type_(**given)
    complete = getattr(made, "completed", None)
    return made if complete is None else cast(G, complete())


def read(tree: Group, path: Path) -> object:
    """The value at an attribute path."""
    value: object = tree
    for name in path:
        value = getattr(value, name)
    return value


def parts(tree: Group) -> Iterator[Group]:
    """All nested groups of a tree, outermost first."""
    for field in dataclasses.fields(tree):
        if _GROUP in field.metadata:
            nested = getattr(tree, field.name)
            yield nested
            yield from parts(nested)


def problems(tree: Group) -> list[str]:
    """All errors in the values of a tree, in order of declaration."""
    found = [text for binding in bind(type(tree)) if (text := _out_of_bounds(binding, read(tree, binding.path)))]
    return found + list(_group_problems(tree))


def _out_of_bounds(binding: Binding, value: object) -> str:
    declared = binding.option
    name = declared.name or ".".join(binding.key)
    if not isinstance(value, int | float):
        return ""
    show = declared.kind.show
    if declared.minimum is not None and value < declared.minimum:
        if declared.minimum == 1 and isinstance(value, int):
            return f"{name} must be greater than 0, but got {value}"
        return f"{name} must not be less than {show(declared.minimum)}, but got {show(value)}"
    if declared.maximum is not None and value > declared.maximum:
        return f"{name} must not be more than {show(declared.maximum)}, but got {show(value)}"
    return ""


def _group_problems(tree: Group) -> Iterator[str]:
    check = getattr(tree, "problems", None)
    if check is not None:
        yield from check()
    for field in dataclasses.fields(tree):
        if _GROUP in field.metadata:
            yield from _group_problems(getattr(tree, field.name))
