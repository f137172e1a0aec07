"""What is public in Python is documented and typed, and all that a controller of one's own needs."""

import ast
import builtins
import importlib
import inspect
import re
from collections.abc import Iterator

import pytest

from tests.generate.api import (
    MODULES,
    PARTS,
    exports,
    is_made,
    is_shown,
    members,
    private,
    public_names,
    signature,
    text_of,
)
from tests.kit.places import ROOT

PAGES = sorted((ROOT / "docs").glob("*.md"))


LEFT_OUT: dict[str, set[str]] = {
    "kcm_cli.testing.Injection": {"()"},
    "kcm_cli.testing.Operator": {"()"},
    "kcm_cli.testing.OperatorTrial": {"begin", "record"},
    "kcm_cli.testing.Rule": {"applies"},
    "kcm_cli.testing.Sandbox": {"clock", "loop", "new_identity", "server", "remove_fault"},
    "kcm_cli.testing.Snapshot": {"()", "covers", "objects"},
    "kcm_cli.plan.Twin": {"()", "type_of"},
    "kcm_cli.extension.Clock": {"()"},
    "kcm_cli.extension.ConcurrentSyncs": {"()"},
    "kcm_cli.extension.Controller": {"fill", "followed_under", "needed_under"},
    "kcm_cli.extension.Group": {"()"},
    "kcm_cli.extension.Mode": {"()"},
}
"""What the page leaves out of public classes, since its types are not public: how a class is made, and members."""


def of_each(module: str) -> Iterator[tuple[str, object, str]]:
    """What a module makes public: (name, function or class, as it is written). Of its classes the members that are
    shown."""
    for name, thing in exports(importlib.import_module(module)).items():
        if inspect.isclass(thing):
            yield name, thing, ""
            for member, function, written in members(thing):
                if function is not None and is_shown(thing, member, written):
                    yield f"{name}.{member}", function, written
        elif inspect.isfunction(thing):
            yield name, thing, signature(thing)


@pytest.mark.parametrize("module", MODULES)
def test_everything_has_a_sentence(module: str) -> None:
    assert [name for name, thing, _ in of_each(module) if not text_of(thing)] == []


@pytest.mark.parametrize("module", MODULES)
def test_everything_is_typed(module: str) -> None:
    missing = []
    for name, function, _ in of_each(module):
        if inspect.isfunction(function):
            found = inspect.signature(function)
            named = [one for one in found.parameters.values() if one.name not in ("self", "cls")]
            annotations = [found.return_annotation, *(one.annotation for one in named)]
            missing += [name] if inspect.Signature.empty in annotations else []
    assert missing == []


@pytest.mark.parametrize("module", MODULES)
def test_what_is_public_names_public_types_only(module: str) -> None:
    assert {
        name: private(written)
        for name, function, written in of_each(module)
        if inspect.isfunction(function) and "." not in name and private(written)
    } == {}


@pytest.mark.parametrize("module", MODULES)
def test_errors_that_are_raised_are_public(module: str) -> None:
    public = vars(builtins).keys() | public_names() | {"CalledProcessError"}
    named = {
        f"{name}: {error}"
        for name, thing, _ in of_each(module)
        for error in re.findall(r"\b[A-Z]\w+Error\b|(?<=Raises )[A-Z]\w+", text_of(thing))
        if error not in public
    }
    assert named == set()


def test_what_is_left_out_is_for_kcm_itself() -> None:
    found: dict[str, set[str]] = {}
    for module in MODULES:
        for name, thing in exports(importlib.import_module(module)).items():
            if inspect.isclass(thing) and thing not in PARTS and not issubclass(thing, BaseException):
                left = {member for member, _, written in members(thing) if not is_shown(thing, member, written)}
                left |= set() if is_made(thing) else {"()"}
                found |= {f"{module}.{name}": left} if left else {}
    assert found == LEFT_OUT


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
