"""Every pattern of the package takes time in proportion to its text: foreign text meets most of them.

The structure of a pattern decides (``tests.kit.patterns``). What cannot be decided by it is named below, with a reason.
"""

import ast
import importlib
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.kit.growth import grows_linearly
from tests.kit.patterns import fault, repeats_groups_possessively
from tests.kit.places import ROOT

PACKAGE = ROOT / "kcm_cli"
_OF_PATTERNS = frozenset({"match", "fullmatch", "search", "finditer", "findall", "sub", "subn", "split"})
_OF_TEXT = frozenset({"match", "fullmatch", "search", "finditer", "findall"})
_MADE = frozenset({*_OF_PATTERNS, "compile"})

OWN_TEXT: dict[str, str | bytes] = {
    "machinery/go_types.py": r"(\w+)(?:=([\w.]+))?:(\S+)",
    "sandbox/apiserver/validation/go_print.py": r"(\w+)(?:=([\w.^$]+))?:(\S+)",
}
"""These read facts of the package, not foreign text."""
BOUNDED: dict[str, str | bytes] = {
    # read on only after a bracket: a match without one is the last
    "machinery/nesting.py": rb'[^{}\[\]"]*+(?:"[^"]*+"[^{}\[\]"]*+)*(?:([{\[])|([}\]])|\Z|")',
    "sandbox/nodes/expansion.py": r"\$\$|\$\(([^)]*)\)",  # searched up to the last closing parenthesis
}
"""These are not searched further than to what ends each match."""
FOUND = {
    "sandbox/apiserver/crd/field_paths.py": r"'(?:[^'\\]|\\.)*'|[.\[\]]|[^.\[\]]+",
    "sandbox/apiserver/schema/gojson.py": r'"[^"]*+"?|[\[\]{}]',
}
"""Each start at which these could read on and on belongs to an earlier match. They are measured."""
UNNAMED = {
    r"""machinery/nesting.py:b'"%s"[ \\t\\r\\n]*+:' % re.escape(anywhere.encode())""",  # a name of a field
    "machinery/times.py:pattern",  # the elements of a layout, which are short
    "sandbox/apiserver/crd/formats.py:pattern",  # found in the module, see _held
    "sandbox/programs/builtins.py:f'[{re.escape(separators)}]'",  # one character
    "sandbox/programs/text_commands.py:'|'.join(alternatives)",  # texts without signs
    "sandbox/programs/text_commands.py:f'([{re.escape(source)}])\\\\1+'",  # one character again and again
    "sandbox/programs/text_commands.py:re.escape(text)",
}
"""Patterns that are made when they are needed."""


def _files() -> list[Path]:
    return sorted(path for path in PACKAGE.rglob("*.py") if "re." in path.read_text())


def _module(path: Path) -> ModuleType:
    return importlib.import_module(".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"))


@cache
def _in_source(path: Path) -> list[tuple[str, str | bytes | None, int, frozenset[str]]]:
    """The patterns in a file: expression, text (None if it is made when needed), flags, and the methods used."""
    tree, module = ast.parse(path.read_text()), _module(path)
    parents = {child: parent for parent in ast.walk(tree) for child in ast.iter_child_nodes(parent)}
    used: dict[str, set[str]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            used.setdefault(node.value.id, set()).add(node.attr)
    found = []
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _MADE):
            continue
        if not (isinstance(node.func.value, ast.Name) and node.func.value.id == "re"):
            continue
        flags = node.args[1:2] if node.func.attr == "compile" else node.args[2:3] if node.func.attr in _OF_TEXT else []
        flags = [*flags] + [one.value for one in node.keywords if one.arg == "flags"]
        expression = ast.unparse(node.args[0])
        try:
            text = eval(expression, dict(vars(module)))
            number = sum(int(eval(ast.unparse(one), dict(vars(module)))) for one in flags[:1])
        except NameError:
            text, number = None, 0
        found.append((expression, text, number, _methods(node, node.func.attr, parents, used)))
    return found


def _methods(node: ast.Call, called: str, parents: dict[Any, Any], used: dict[str, set[str]]) -> frozenset[str]:
    if called != "compile":
        return frozenset({called})
    parent = parents[node]
    if isinstance(parent, ast.Attribute):
        return frozenset({parent.attr})
    names = [one.id for one in getattr(parent, "targets", ()) if isinstance(one, ast.Name)]
    methods = frozenset().union(*(used.get(name, set()) for name in names)) & _OF_PATTERNS
    return methods or frozenset({"search"})


def _held(value: object, seen: set[int]) -> Iterator[tuple[re.Pattern[Any], str]]:
    """The compiled patterns in the globals of a module, with the method where only that is held."""
    if id(value) in seen:
        return
    seen.add(id(value))
    if isinstance(value, re.Pattern):
        yield value, ""
    elif isinstance(owner := getattr(value, "__self__", None), re.Pattern):
        yield owner, getattr(value, "__name__", "")
    elif isinstance(value, dict):
        for one in value.values():
            yield from _held(one, seen)
    elif isinstance(value, list | tuple | set | frozenset):
        for one in value:
            yield from _held(one, seen)
    elif (closure := getattr(value, "__closure__", None)) is not None:
        for cell in closure:
            yield from _held(cell.cell_contents, seen)


def _patterns(path: Path) -> Iterator[tuple[str | bytes, int, str]]:
    """Text, flags and method of each pattern of a file."""
    source = _in_source(path)
    for _, text, flags, methods in source:
        for method in methods if text is not None else ():
            assert text is not None
            yield text, flags, method
    named = {text for _, text, _, _ in source}
    module, seen = _module(path), set[int]()
    for value in list(vars(module).values()):
        for pattern, method in _held(value, seen):
            if pattern.pattern not in named:
                yield pattern.pattern, pattern.flags, method or "search"


def _named(table: Mapping[str, str | bytes], path: Path, text: str | bytes) -> bool:
    return table.get(str(path.relative_to(PACKAGE))) == text


@pytest.mark.parametrize("path", [pytest.param(path, id=str(path.relative_to(PACKAGE))) for path in _files()])
def test_no_pattern_grows_faster_than_its_text(path: Path) -> None:
    for text, flags, method in _patterns(path):
        known = any(_named(table, path, text) for table in (OWN_TEXT, BOUNDED, FOUND))
        assert known or not (why := fault(text, flags, method)), f"{method} of {text!r}: {why}"
    unnamed = {
        f"{path.relative_to(PACKAGE)}:{expression}" for expression, text, _, _ in _in_source(path) if text is None
    }
    assert unnamed <= UNNAMED


@pytest.mark.parametrize("path", [pytest.param(path, id=str(path.relative_to(PACKAGE))) for path in _files()])
def test_possessive_repetitions_are_of_characters(path: Path) -> None:
    assert [text for text, flags, _ in _patterns(path) if repeats_groups_possessively(text, flags)] == []


@pytest.mark.parametrize("text", [r"((?:[^\\]++|\\.)++)", r'"[^"\\]*+(?:\\.[^"\\]*+)*+"', r"a(?>b)"])
def test_possessive_groups_are_found(text: str) -> None:
    assert repeats_groups_possessively(text)
    assert not repeats_groups_possessively(r"[a-z]*+(?:b++|c)*")


UNICODE_DIGITS = {"sandbox/nodes", "sandbox/programs", "testing"}
"""Parts that read the shell's words and the texts of tests."""
OF_DIGITS = {"isdigit", "isdecimal", "isnumeric"}
ASCII_ALREADY = {"machinery/cel/kubernetes.py"}
"""What is looked at was matched before."""


def _of_strangers() -> list[Any]:
    names = [(path, str(path.relative_to(PACKAGE))) for path in sorted(PACKAGE.rglob("*.py"))]
    return [pytest.param(path, id=name) for path, name in names if not any(map(name.startswith, UNICODE_DIGITS))]


@pytest.mark.parametrize("path", _of_strangers())
def test_digits_are_those_of_ascii(path: Path) -> None:
    """Python reads the digits of all scripts as numbers, Go those of ASCII."""
    text = path.read_text()
    for _, pattern, flags, _ in _in_source(path) if "re." in text else ():
        if isinstance(pattern, str) and r"\d" in pattern.replace(r"[^\W\d_]", ""):
            assert flags & re.ASCII or "(?a" in pattern, pattern
    if str(path.relative_to(PACKAGE)) in ASCII_ALREADY or not any(name in text for name in OF_DIGITS):
        return
    tree = ast.parse(text)
    checked = {
        id(part)
        for node in ast.walk(tree)
        if isinstance(node, ast.BoolOp) and _asks(node, {"isascii"})
        for part in ast.walk(node)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr in OF_DIGITS:
            assert id(node) in checked, f"line {node.lineno}: {node.attr} without isascii"


def _asks(node: ast.AST, names: set[str]) -> bool:
    return any(isinstance(part, ast.Attribute) and part.attr in names for part in ast.walk(node))


@pytest.mark.parametrize("table", [OWN_TEXT, BOUNDED, FOUND], ids=["own", "bounded", "found"])
def test_what_is_excepted_exists(table: Mapping[str, str | bytes]) -> None:
    for name, text in table.items():
        assert any(text == one for _, one, _, _ in _in_source(PACKAGE / name)), name


@pytest.mark.parametrize("text", FOUND.values())
@pytest.mark.parametrize("pumped", ["'", '"', "\\'", '\\"', "'\\'", '"\\"', "\\", "#", ".'", "['", " #'"])
def test_what_is_found_in_one_pass_is_measured(text: str, pumped: str) -> None:
    for start in ("", "'", '"', "."):
        compiled = re.compile(text, re.DOTALL)
        assert grows_linearly(lambda size: lambda: compiled.sub("", start + pumped * size), 2000)  # noqa: B023


@pytest.mark.parametrize(
    ("text", "method"),
    [
        pytest.param("(a+)+b", "fullmatch", id="a loop in a loop"),
        pytest.param(r"(?:ax|\wx)*b", "fullmatch", id="two branches"),
        pytest.param("(?:a*)*b", "fullmatch", id="a loop of nothing"),
        pytest.param("a*a*b", "fullmatch", id="two loops"),
        pytest.param("a*b?a*c", "fullmatch", id="two loops with little between them"),
        pytest.param(r"([+-]?)0*([0-9]*)(?:\.([0-9]*))?([eE]*[-+]?[0-9]*)", "fullmatch", id="quantities"),
        pytest.param(r"(?:a|ab)(?:bc|c)*(?:bc)*d", "fullmatch", id="longer words"),
        pytest.param("(?i:a*A*)b", "fullmatch", id="cases"),
        pytest.param("a+b", "search", id="a search"),
        pytest.param("[ \t]+$", "search", id="spaces at the end"),
        pytest.param(r"\s*=\s*", "split", id="a split"),
        pytest.param(r'"(?:[^"\\]|\\.)*"', "finditer", id="quotations with escapes"),
        pytest.param(r"^-----BEGIN ([^\n]*?)-----[ \t]*\r?\n(.*?)^-----END \1-----", "search", id="PEM"),
        pytest.param(r",(?=[^']*$)", "split", id="a look ahead"),
        pytest.param("a{200}a*b", "fullmatch", id="many times"),
    ],
)
def test_patterns_that_grow_are_found(text: str, method: str) -> None:
    assert fault(text, re.DOTALL | re.MULTILINE, method)


@pytest.mark.parametrize(
    ("text", "method"),
    [
        pytest.param("a*b", "fullmatch", id="one loop"),
        pytest.param("(?:ab)*(?:ac)*d", "fullmatch", id="loops that differ later"),
        pytest.param("[a-z0-9](?:[-a-z0-9]*[a-z0-9])?", "fullmatch", id="labels"),
        pytest.param(r"'(?:[^'\\]|\\.)*'", "fullmatch", id="quotations"),
        pytest.param("'[^']*'", "search", id="quotations in a text"),
        pytest.param("[0-9]+", "finditer", id="numbers"),
        pytest.param("(?<![0-9])[0-9]+x", "search", id="guarded"),
        pytest.param(r"\b\w+=", "search", id="words"),
        pytest.param(r"\Aa+b", "search", id="anchored"),
        pytest.param(r"(?:[^'\\]++|\\.)*+'", "match", id="possessive"),
        pytest.param("[0-9a-f]{8}-[0-9a-f]{4}", "search", id="a few times"),
    ],
)
def test_patterns_that_do_not_grow_are_not_found(text: str, method: str) -> None:
    assert not fault(text, 0, method)
