"""The log lines that the code can write: message, verbosity and keys, as far as they are constants.

Verbosity: 0 and more for Info, -1 for errors, -2 for warnings. Keys come from the dictionary in the call, or from those
that are assigned to its name in the same function; a Remark of a plan counts, too, as do the tables of messages.
"""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

from tests.kit.places import ROOT

_LEVELS = {"info": 0, "error": -1, "warning": -2, "debug": 4, "exception": -1}
_DECLARATIONS = ("Failures", "ObjectFailed")
_ERROR, _WARNING = -1, -2
_PARTS = ("controllers", "engine", "manager", "planning", "runtime")
_WORDS = ("log", "Remark", "retried=", "ObjectFailed")
UNKNOWN = 99
"""The verbosity of a call that decides it at run time."""


class Line(NamedTuple):
    """One call. keys: those that may be there. complete: whether there can be no others."""

    message: str
    verbosity: int
    keys: frozenset[str]
    complete: bool


@cache
def lines() -> tuple[Line, ...]:
    """All lines of the manager and its controllers."""
    return tuple(line for tree in _trees() for line in _in_module(tree))


@cache
def constants() -> frozenset[str]:
    """All constant texts, for messages that come from tables."""
    nodes = (node for tree in _trees() for node in ast.walk(tree))
    return frozenset(node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str))


@cache
def _trees() -> tuple[ast.Module, ...]:
    files = (path for part in _PARTS for path in sorted((ROOT / "kcm_cli" / part).rglob("*.py")))
    return tuple(ast.parse(text) for text in map(Path.read_text, files) if any(word in text for word in _WORDS))


def _in_module(tree: ast.Module) -> Iterator[Line]:
    texts = _assigned_texts(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _DECLARATIONS:
            yield from _of_failures(node)
    for function in ast.walk(tree):
        if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef) or not _logs(function):
            continue
        known, local = _dictionaries(function), texts | _assigned_texts(function)
        for node in ast.walk(function):
            if isinstance(node, ast.Call):
                yield from _of_call(node, known, local)


def _logs(function: ast.AST) -> bool:
    return any(isinstance(node, ast.Name) and node.id in ("log", "Remark") for node in ast.walk(function))


def _of_call(node: ast.Call, known: dict[str, tuple[set[str], bool]], texts: dict[str, set[str]]) -> Iterator[Line]:
    called = node.func
    if isinstance(called, ast.Attribute) and isinstance(called.value, ast.Name) and called.value.id == "log":
        if called.attr == "log":
            level, message = _level(node.args[0]), node.args[1]
        elif called.attr in _LEVELS:
            level, message = _LEVELS[called.attr], node.args[0]
        else:
            return
        extra = next((word.value for word in node.keywords if word.arg == "extra"), None)
        keys, complete = _keys_of_extra(extra, known)
    elif isinstance(called, ast.Name) and called.id == "Remark":
        message = node.args[0]
        keys, complete = _keys(node.args[1], known)
        level = 2
        if len(node.args) > 2:
            level = node.args[2].value if isinstance(node.args[2], ast.Constant) else UNKNOWN  # type: ignore[assignment]
    else:
        return
    for text in _texts(message, texts):
        yield Line(text, level, frozenset(keys), complete)


def _of_failures(node: ast.Call) -> Iterator[Line]:
    """The lines that a queue or a pass declares."""
    words = {word.arg: word.value for word in node.keywords}
    if node.args:  # ObjectFailed(message, key)
        words = {"retried": node.args[0], "key": node.args[1]}
    key = words.get("key")
    named = [word.value for word in (key, words.get("retries")) if isinstance(word, ast.Constant)]
    keys = {"err", *map(str, named)}
    for name, level in (("retried", "level"), ("dropped", "dropped_level")):
        text = words.get(name)
        if isinstance(text, ast.Constant):
            yield Line(str(text.value), _level(words[level]) if level in words else _ERROR, frozenset(keys), True)
    end = words.get("end")
    if isinstance(end, ast.Constant):
        yield Line(str(end.value), _ERROR, frozenset(("err",)), True)


def _texts(node: ast.expr, known: dict[str, set[str]]) -> set[str]:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return {node.value}
    if isinstance(node, ast.IfExp):
        return _texts(node.body, known) | _texts(node.orelse, known)
    if isinstance(node, ast.Name):
        return known.get(node.id, set())
    if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name):
        return known.get(node.value.id, set())
    return set()


def _assigned_texts(scope: ast.AST) -> dict[str, set[str]]:
    """Texts by the name that they are assigned to, also those in a tuple or a table."""
    found: dict[str, set[str]] = {}
    for node in ast.walk(scope):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                names = target.elts if isinstance(target, ast.Tuple) else [target]
                texts = {
                    part.value
                    for part in ast.walk(node.value)
                    if isinstance(part, ast.Constant) and isinstance(part.value, str)
                }
                for name in names:
                    if isinstance(name, ast.Name):
                        found.setdefault(name.id, set()).update(texts)
    return found


def _level(node: ast.expr) -> int:
    if isinstance(node, ast.Name | ast.Attribute):
        name = node.id if isinstance(node, ast.Name) else node.attr
        if name[:1] == "V" and name[1:].isdigit():
            return int(name[1:])
        return {"ERROR": _ERROR, "WARNING": _WARNING, "INFO": 0, "DEBUG": 4}.get(name, UNKNOWN)
    return UNKNOWN


def _keys_of_extra(extra: ast.expr | None, known: dict[str, tuple[set[str], bool]]) -> tuple[set[str], bool]:
    if extra is None:
        return set(), True
    if isinstance(extra, ast.Dict) and isinstance(extra.values[0], ast.expr):
        return _keys(extra.values[0], known)
    return set(), False


def _keys(node: ast.expr, known: dict[str, tuple[set[str], bool]]) -> tuple[set[str], bool]:
    if isinstance(node, ast.Dict):
        found: set[str] = set()
        complete = True
        for key, value in zip(node.keys, node.values, strict=True):
            if isinstance(key, ast.Constant):
                found.add(str(key.value))
            elif key is None:
                more, whole = _keys(value, known)
                found |= more
                complete = complete and whole
            else:
                complete = False
        return found, complete
    if isinstance(node, ast.Name):
        return known.get(node.id, (set(), False))
    if isinstance(node, ast.BinOp):
        (left, one), (right, two) = _keys(node.left, known), _keys(node.right, known)
        return left | right, one and two
    return set(), False


def _dictionaries(function: ast.AST) -> dict[str, tuple[set[str], bool]]:
    found: dict[str, tuple[set[str], bool]] = {}
    for node in ast.walk(function):
        pairs: list[tuple[ast.expr, ast.expr]] = []
        if isinstance(node, ast.Assign):
            pairs = [(target, node.value) for target in node.targets]
        elif isinstance(node, ast.AnnAssign | ast.AugAssign) and node.value is not None:
            pairs = [(node.target, node.value)]
        for target, value in pairs:
            name = target.value if isinstance(target, ast.Subscript) else target
            if isinstance(name, ast.Name):
                keys, complete = found.get(name.id, (set(), True))
                if isinstance(target, ast.Subscript):
                    whole = isinstance(target.slice, ast.Constant)
                    more = {str(target.slice.value)} if isinstance(target.slice, ast.Constant) else set()
                else:
                    more, whole = _keys(value, found)
                found[name.id] = keys | more, complete and whole
    return found
