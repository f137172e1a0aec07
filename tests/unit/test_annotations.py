"""Annotations of fields mean the same with every release of Python.

Python 3.14 evaluates them when they are used, in the namespace of the class: a field or method that has the name of a
type hides it there.
"""

import ast
from collections.abc import Iterator

from tests.kit.places import ROOT


def hidden(class_: ast.ClassDef) -> Iterator[str]:
    """The annotations of fields that use a name that the class gives to a field or method."""
    fields = [each for each in class_.body if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name)]
    names = {field.target.id for field in fields if isinstance(field.target, ast.Name)}
    names |= {each.name for each in class_.body if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)}
    for field in fields:
        if names & {each.id for each in ast.walk(field.annotation) if isinstance(each, ast.Name)}:
            yield f"{class_.name}: {ast.unparse(field)}"


def test_no_field_hides_a_type_of_its_class() -> None:
    found = [
        f"{path}: {line}"
        for path in (ROOT / "kcm_cli").rglob("*.py")
        for class_ in ast.walk(ast.parse(path.read_text()))
        if isinstance(class_, ast.ClassDef)
        for line in hidden(class_)
    ]
    assert found == []


def test_a_hidden_type_is_found() -> None:
    (class_,) = ast.parse("class Row:\n    cells: tuple[object, ...]\n    object: int").body
    assert isinstance(class_, ast.ClassDef)
    assert list(hidden(class_)) == ["Row: cells: tuple[object, ...]"]
