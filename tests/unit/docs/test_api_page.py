"""What is public in Python is documented and typed, and all that a controller of one's own needs."""

import ast
import importlib
import inspect
import re
import typing
from collections.abc import Iterator

import pytest

from tests.generate.api import MODULES, exports, first_sentence
from tests.kit.places import ROOT

PAGES = sorted((ROOT / "docs").glob("*.md"))


def functions(module: str) -> Iterator[tuple[str, object]]:
    """Public functions, classes, and the members of these that this project defines."""
    for name, thing in exports(importlib.import_module(module)).items():
        if inspect.isclass(thing):
            yield name, thing
            for member, value in inspect.getmembers_static(thing):
                owner = next((base for base in thing.__mro__ if member in vars(base)), object)
                function = getattr(value, "fget", None) or inspect.unwrap(getattr(value, "__func__", value))
                if inspect.isfunction(function) and member[0] != "_" and owner.__module__.startswith("kcm_cli."):
                    yield f"{name}.{member}", function
        elif inspect.isfunction(thing):
            yield name, thing


@pytest.mark.parametrize("module", MODULES)
def test_everything_has_a_sentence(module: str) -> None:
    assert [name for name, thing in functions(module) if not first_sentence(thing)] == []


@pytest.mark.parametrize("module", MODULES)
def test_everything_is_typed(module: str) -> None:
    missing = []
    for name, function in functions(module):
        if not inspect.isclass(function):
            found = inspect.signature(typing.cast(typing.Callable[..., object], function))
            named = [one for one in found.parameters.values() if one.name not in ("self", "cls")]
            annotations = [found.return_annotation, *(one.annotation for one in named)]
            missing += [name] if inspect.Signature.empty in annotations else []
    assert missing == []


def imported(code: str) -> Iterator[tuple[str, str]]:
    """The modules of kcm that a program imports from, and the names."""
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("kcm_cli"):
            yield from ((str(node.module), alias.name) for alias in node.names)


def test_pages_import_public_names_only() -> None:
    """But for a new kind, which is a part of the sandbox itself."""
    blocks = [code for page in PAGES for code in re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL)]
    found = {one for code in blocks for one in imported(code) if not one[0].startswith("kcm_cli.sandbox.apiserver")}
    assert len(found) > 30
    public = {(module, name) for module in MODULES for name in exports(importlib.import_module(module))}
    assert found - public == set()
