"""The configuration file: a document with apiVersion and kind, whose fields are those of the options.

Guarantees: all fields that are unknown, duplicate or of another type are reported together, with their paths. A written
file reads back the same. As in Go, field names are case insensitive, and null leaves a field at its default.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches

import msgspec

from kcm_cli.component.options import Binding, Group, Path, layout, read


class Form(msgspec.Struct, frozen=True):
    """The kind and API versions of a file. Files are written in the first version."""

    kind: str
    api_versions: tuple[str, ...]


class ConfigFileError(Exception):
    """An invalid configuration file. ``problems``: one line for each error."""

    def __init__(self, problems: Iterable[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("; ".join(self.problems))


class _Node(msgspec.Struct):
    """A place in the document: nested fields, or an option's value."""

    fields: dict[str, "_Node"]
    binding: Binding | None = None


def parse(text: str, form: Form, root: type[Group]) -> dict[Path, object]:
    """The values that a file sets, by attribute path. Raises ConfigFileError."""
    # imported here: a start without a file needs no YAML
    from kcm_cli.component.yaml_documents import documents

    try:
        found = [document for document in documents(text) if document is not None]
    except ValueError as error:
        raise ConfigFileError([f"not YAML: {error}"]) from error
    if len(found) != 1:
        raise ConfigFileError([f"must hold one document, and holds {len(found)}"])
    document = found[0]
    if not isinstance(document, dict):
        raise ConfigFileError(["must be an object with apiVersion and kind"])
    values: dict[Path, object] = {}
    problems = [*_type_problems(document, form)]
    fields = {key: value for key, value in document.items() if key not in ("apiVersion", "kind")}
    problems += _read(fields, _tree(root), (), values)
    if problems:
        raise ConfigFileError(problems)
    return values


def _type_problems(document: Mapping[str, object], form: Form) -> Iterator[str]:
    for name, wanted in (("apiVersion", form.api_versions), ("kind", (form.kind,))):
        if document.get(name) not in wanted:
            yield f"{name}: must be {' or '.join(map(json.dumps, wanted))}, but got {_short(document.get(name))}"


def _tree(root: type[Group]) -> _Node:
    top = _Node({})
    for key, binding in layout(root):
        _descend(top, key).binding = binding
    return top


def _descend(node: _Node, key: Path) -> _Node:
    for name in key:
        node = node.fields.setdefault(name, _Node({}))
    return node


def _read(given: object, node: _Node, path: Path, values: dict[Path, object]) -> Iterator[str]:
    shown = ".".join(path)
    if given is None:
        return
    if node.binding is not None:
        try:
            values[node.binding.path] = node.binding.option.kind.from_doc(given)
        except ValueError as error:
            yield f"{shown}: {error}, but got {_short(given)}"
        return
    if not isinstance(given, dict):
        yield f"{shown}: must be an object, but got {_short(given)}"
        return
    known = {name.lower(): name for name in node.fields}
    seen: set[str] = set()
    for name, value in given.items():
        exact = known.get(name.lower())
        if exact is None:
            near = get_close_matches(name.lower(), known, n=1)
            hint = f" (did you mean {known[near[0]]}?)" if near else ""
            yield f"{'.'.join((*path, name))}: unknown field{hint}"
        elif exact in seen:
            yield f"{'.'.join((*path, name))}: given twice"
        else:
            seen.add(exact)
            yield from _read(value, node.fields[exact], (*path, exact), values)


def to_document(tree: Group) -> dict[str, object]:
    """The document without apiVersion and kind, in the order of the declarations."""
    document: dict[str, object] = {}
    for key, binding in layout(type(tree)):
        target = document
        for name in key[:-1]:
            target = target.setdefault(name, {})  # type: ignore[assignment]  # made by this line
        target[key[-1]] = {} if binding is None else binding.option.kind.to_doc(read(tree, binding.path))
    return document


def _short(value: object) -> str:
    text = json.dumps(value, default=str)
    return text if len(text) <= 80 else text[:77] + "..."
