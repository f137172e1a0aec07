"""docs/api.md: what is public in Python, from the names that the modules export and their docstrings."""

import importlib
import inspect
import re
import types
import typing
from collections.abc import Iterator
from enum import Enum
from functools import cache
from types import ModuleType

import msgspec

from kcm_cli import extension
from kcm_cli.testing import public

MODULES = ("kcm_cli.testing", "kcm_cli.plan", "kcm_cli.extension")
_HEAD = """\
# Python API

Written by `make docs` from the modules; do not edit.

Public are the names below, the fixtures of [pytest](testing-operators.md#fixtures), and the command lines. Before the
first release they may still change; CHANGELOG.md says so. Everything else in `kcm_cli` may change at any time: members
and parameters whose types are not public are left out here. All names are typed (`py.typed`). A name that ends in `_s`
is in seconds.
"""
PARTS: dict[type, frozenset[str]] = {
    public.Console: frozenset({"write"}),
    extension.Client: frozenset({"get", "find", "get_doc", "create", "update", "patch", "delete"}),
    extension.ControllerContext: frozenset(
        {"cache", "client", "clock", "config", "executor", "metrics", "name", "queue", "queues", "rng", "served"}
    ),
    extension.Executor: frozenset({"run"}),
    extension.Informer: frozenset({"listen"}),
    extension.Registry: frozenset({"counter", "gauge", "histogram"}),
    extension.Resource: frozenset({"api_version", "metadata_only", "plural"}),
    extension.Store: frozenset({"add_index", "by_index", "count", "get", "keys", "list"}),
    extension.WorkQueue: frozenset({"add", "add_after", "add_rate_limited", "forget"}),
}
"""Classes that a controller is given, or declares kinds with, and what of them is public. The rest is the engine's."""
_ALSO = {"Door": "Client"}
"""Types that are shown as a public base of theirs."""
_STANDARD = frozenset(
    (
        "AbstractEventLoop", "Any", "AssertionError", "Awaitable", "C", "Callable", "Collection", "Coroutine",
        "Counter", "Event", "Exception", "False", "Family", "Gauge", "Histogram", "Iterable", "Iterator", "Literal",
        "LookupError", "Mapping", "None", "Path", "PathLike", "Random", "Raw", "Self", "Sequence", "T", "TimerHandle",
        "True", "Union",
    )
)  # fmt: skip
"""Names in signatures that are Python's or msgspec's, and those of metrics, whose use is in docs/controllers.md."""
_QUALIFIED = re.compile(r"\b(?:[a-z_]\w*\.)+(?=[A-Za-z_])")


def api_document() -> str:
    """The page."""
    lines = [_HEAD]
    for name in MODULES:
        module = importlib.import_module(name)
        about = inspect.cleandoc(module.__doc__ or "").partition("\n\n")[0]
        lines += [f"## {name}", "", " ".join(about.split()), "", *_module(module)]
    return "\n".join(lines).rstrip() + "\n"


def exports(module: ModuleType) -> dict[str, object]:
    """What the module makes public, by name."""
    return {
        name: getattr(module, name) for name in sorted(module.__all__, key=lambda name: (name.isupper(), name.lower()))
    }


def text_of(thing: object) -> str:
    """The docstring in one line."""
    return " ".join(inspect.cleandoc(thing.__doc__ or "").split()).rstrip(":").replace("``", "`")


@cache
def public_names() -> frozenset[str]:
    """All names that are public, of whichever module."""
    return frozenset(name for module in MODULES for name in exports(importlib.import_module(module)))


def private(text: str) -> set[str]:
    """The types in a signature that are not public."""
    names = set(re.findall(r"\b[A-Z]\w*", re.sub(r"'[^']*'", "", text)))
    return {name for name in names if name not in _STANDARD and name not in public_names()}


def signature(function: object) -> str:
    """As it is called: without ``self``, without parameters that have a default and a type that is not public, names
    without their modules."""
    try:
        found = inspect.signature(function)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return "()"
    except NameError:  # a struct with an annotation that only a type checker imports
        found = _of_struct(typing.cast(type[msgspec.Struct], function))
    parameters = [
        one.replace(annotation=_annotation(one.annotation), default=_default(one.default))
        for one in found.parameters.values()
        if one.name not in ("self", "cls")
    ]
    parameters = [one for one in parameters if one.default is one.empty or not private(_short(one.annotation))]
    returns = _annotation(found.return_annotation)
    return _short(str(found.replace(parameters=parameters, return_annotation=returns)).removesuffix(" -> None"))


def _short(text: object) -> str:
    """A signature or annotation with names as they are public: without their modules."""
    short = _QUALIFIED.sub("", str(text).replace("~", ""))
    return re.sub(r"\b[A-Z]\w*", lambda name: _ALSO.get(name[0], name[0]), short)


def _of_struct(cls: type[msgspec.Struct]) -> inspect.Signature:
    annotations = {name: text for base in reversed(cls.__mro__) for name, text in inspect.get_annotations(base).items()}
    defaults = (inspect.Parameter.empty,) * len(cls.__struct_fields__) + cls.__struct_defaults__
    kind = inspect.Parameter.KEYWORD_ONLY
    fields = zip(cls.__struct_fields__, defaults[-len(cls.__struct_fields__) :], strict=True)
    return inspect.Signature([inspect.Parameter(n, kind, default=d, annotation=annotations[n]) for n, d in fields])


class _Shown:
    """Is shown as this text."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __repr__(self) -> str:
        return self._text


def _annotation(annotation: object) -> object:
    """As it is written, in each version of Python."""
    if annotation is inspect.Parameter.empty:
        return annotation
    if isinstance(annotation, str):
        return _Shown(annotation)
    if typing.get_origin(annotation) in (typing.Union, types.UnionType):
        parts = [repr(_annotation(one)) for one in typing.get_args(annotation)]
        return _Shown(" | ".join(parts))
    return _Shown("None" if annotation in (None, type(None)) else inspect.formatannotation(annotation))


def _default(default: object) -> object:
    """Shown where it is short."""
    if default is inspect.Parameter.empty or default is None or isinstance(default, str | int | float):
        return default
    if isinstance(default, tuple) and all(inspect.isclass(one) for one in default):
        return _Shown("()" if not default else f"({', '.join(one.__name__ for one in default)})")
    return _Shown("...")


def _module(module: ModuleType) -> Iterator[str]:
    values = []
    for name, thing in exports(module).items():
        if not inspect.isclass(thing) and not inspect.isfunction(thing):
            values.append(name)
            continue
        yield f"### {name}"
        yield ""
        if _is_error(thing):
            yield from ("An exception.", "")
        elif is_made(thing):
            yield from (f"`{name}{signature(thing)}`", "")
        yield text_of(thing)
        yield ""
        if inspect.isclass(thing):
            yield from _members(thing)
    if values:
        yield f"Values and types: {', '.join(f'`{name}`' for name in values)}."
        yield ""


def is_made(thing: object) -> bool:
    """Whether a user calls it: not a protocol, an enumeration, or a class that is made of parts that are not public."""
    if thing in PARTS and thing is not extension.Resource:
        return False
    if inspect.isclass(thing) and (getattr(thing, "_is_protocol", False) or issubclass(thing, Enum)):
        return False
    return not typing.is_typeddict(thing) and not private(signature(thing))


def members(cls: type) -> Iterator[tuple[str, object, str]]:
    """The members of a class that this project defines: (name, the function or None for a field, as it is written)."""
    given = inspect.isclass(cls) and issubclass(cls, msgspec.Struct) and not is_made(cls)
    for name, member in inspect.getmembers_static(cls):
        if name.startswith("_") or not _is_own(cls, name) or (_is_error(cls) and name not in vars(cls)):
            continue
        if isinstance(member, property):
            returns = _short(_annotation(inspect.signature(member.fget).return_annotation)) if member.fget else ""
            yield name, member, f"{name}: {returns}"
        elif callable(member) or isinstance(member, classmethod | staticmethod):
            function = inspect.unwrap(getattr(member, "__func__", member))
            yield name, function, name + signature(function)
        elif given and name in cls.__struct_fields__:
            yield name, None, f"{name}: {_short(_annotation(_of_struct(cls).parameters[name].annotation))}"


def is_shown(cls: type, name: str, written: str) -> bool:
    """Whether a member is public."""
    return name in PARTS[cls] if cls in PARTS else not private(written)


def _members(cls: type) -> Iterator[str]:
    rows = [
        f"| `{_cell(written)}` | {_cell(text_of(member)) if member is not None else ''} |"
        for name, member, written in members(cls)
        if is_shown(cls, name, written)
    ]
    if rows:
        yield from ("| member | what it does |", "| --- | --- |", *rows, "")


def _is_own(cls: type, name: str) -> bool:
    """Whether a class of this project has it."""
    return any(name in vars(base) for base in cls.__mro__ if base.__module__.startswith("kcm_cli."))


def _is_error(thing: object) -> bool:
    return inspect.isclass(thing) and issubclass(thing, BaseException)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
