"""Each write says why: the door logs it. Writes of a status and of other subresources have a reason by default."""

import ast
from collections.abc import Iterator

import pytest

from tests.kit.places import ROOT

PACKAGE = ROOT / "kcm_cli"
FILES = sorted(
    path.relative_to(PACKAGE).as_posix()
    for part in ("controllers", "planning")
    for path in (PACKAGE / part).rglob("*.py")
)
ACTIONS = {"Create", "Update", "Patch", "Delete"}
VERBS = {"create", "update", "patch", "delete", "delete_collection"}
SUBRESOURCES = {"status", "scale", "finalize"}
NOT_STORED = {"SUBJECT_ACCESS_REVIEWS"}


def writes_without_reason(source: str) -> Iterator[int]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and _writes(node) and not _says_why(node):
            yield node.lineno


def _writes(call: ast.Call) -> bool:
    function = call.func
    if isinstance(function, ast.Name):
        return function.id in ACTIONS and bool(call.args)
    if not isinstance(function, ast.Attribute):
        return False
    owner = ast.unparse(function.value)
    return (owner.endswith(("client", "_bulk")) and function.attr in VERBS) or function.attr == "retry_on_conflict"


def _says_why(call: ast.Call) -> bool:
    if any(word.arg == "reason" for word in call.keywords):
        return True
    values = [*call.args, *(word.value for word in call.keywords)]
    names = {value.value for value in values if isinstance(value, ast.Constant)}
    names |= {value.id for value in values if isinstance(value, ast.Name)}
    return bool(names & (SUBRESOURCES | NOT_STORED))


@pytest.mark.parametrize("file", FILES)
def test_a_write_has_a_reason(file: str) -> None:
    lines = list(writes_without_reason((PACKAGE / file).read_text()))
    assert lines == [], "give the writes on these lines `reason`, a few words for the log"


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("Delete(PODS, a, b)", 1),
        ('Delete(PODS, a, b, reason="surplus")', 0),
        ('Update(PODS, a, b, "status")', 0),
        ("self._client.patch(PODS, a, b, c)", 1),
        ("match x:\n    case Delete(name=n): pass", 0),
        ("self._found.update(a)", 0),
    ],
)
def test_what_is_found(source: str, found: int) -> None:
    assert len(list(writes_without_reason(source))) == found
