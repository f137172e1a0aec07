"""docs/api.md: what is public in Python, from the names that the modules export and their docstrings."""

import importlib
import inspect
import re
import types
import typing
from collections.abc import Iterator
from types import ModuleType

import msgspec

MODULES = ("kcm_cli.testing", "kcm_cli.plan", "kcm_cli.extension")
_HEAD = """\
# Python API

Written by `make docs` from the modules; do not edit.

Public are the names below, the fixtures of [pytest](testing-operators.md#fixtures), and the command lines. Before the
first release they may still change; CHANGELOG.md says so. Everything else in `kcm_cli` may change at any time. All
names are typed (`py.typed`).
"""
_QUALIFIED = re.compile(r"\b(?:[a-z_]\w*\.)+(?=[A-Za-z_])")


def api_document() -> str:
    """The page."""
    lines = [_HEAD]
    for name in MODULES:
        module = importlib.import_module(name)
        lines += [f"## {name}", "", first_sentence(module), "", *_module(module)]
    return "\n".join(lines).rstrip() + "\n"


def exports(module: ModuleType) -> dict[str, object]:
    """What the module makes public, by name."""
    return {
        name: getattr(module, name) for name in sorted(module.__all__, key=lambda name: (name.isupper(), name.lower()))
    }


def first_sentence(thing: object) -> str:
    """Of the docstring, in one line."""
    text = " ".join(inspect.cleandoc(thing.__doc__ or "").partition("\n\n")[0].split())
    found = re.match(r".*?[.:](?= [A-Z`]|$)", text)
    return (found[0] if found else text).rstrip(":").replace("``", "`")


def signature(function: object) -> str:
    """As it is called: without ``self``, names without their modules."""
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
    returns = _annotation(found.return_annotation)
    text = str(found.replace(parameters=parameters, return_annotation=returns)).removesuffix(" -> None")
    return _QUALIFIED.sub("", text.replace("~", ""))


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
        yield f"`{name}{signature(thing)}`" if _is_called(thing) else "An exception." if _is_error(thing) else ""
        yield ""
        yield first_sentence(thing)
        yield ""
        if inspect.isclass(thing):
            yield from _members(thing)
    if values:
        yield f"Values and types: {', '.join(f'`{name}`' for name in values)}."
        yield ""


def _members(cls: type) -> Iterator[str]:
    rows = []
    for name, member in inspect.getmembers_static(cls):
        if name.startswith("_") or not _is_own(cls, name) or (_is_error(cls) and name not in vars(cls)):
            continue
        if isinstance(member, property):
            rows.append(f"| `{name}` | {_cell(first_sentence(member))} |")
        elif callable(member) or isinstance(member, classmethod | staticmethod):
            function = inspect.unwrap(getattr(member, "__func__", member))
            rows.append(f"| `{_cell(name + signature(function))}` | {_cell(first_sentence(function))} |")
    if rows:
        yield from ("| member | what it does |", "| --- | --- |", *rows, "")


def _is_own(cls: type, name: str) -> bool:
    """Whether a class of this project has it."""
    return any(name in vars(base) for base in cls.__mro__ if base.__module__.startswith("kcm_cli."))


def _is_error(thing: object) -> bool:
    return inspect.isclass(thing) and issubclass(thing, BaseException)


def _is_called(thing: object) -> bool:
    return not _is_error(thing) and not typing.is_typeddict(thing)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
