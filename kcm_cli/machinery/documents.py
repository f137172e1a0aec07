"""Parts of a document, where anything may stand in the place of what belongs there.

upstream: staging/src/k8s.io/apimachinery/pkg/apis/meta/v1/unstructured/helpers.go
"""

from typing import Any


def nested_map(doc: object, *path: str) -> dict[str, Any]:
    """The map at a path, itself and no copy; an empty one where there is none, or something else."""
    found = _at(doc, path)
    return found if isinstance(found, dict) else {}


def nested_list(doc: object, *path: str) -> list[Any]:
    """The list at a path, itself and no copy; an empty one where there is none, or something else."""
    found = _at(doc, path)
    return found if isinstance(found, list) else []


def nested_str(doc: object, *path: str) -> str:
    """The text at a path; an empty one where there is none, or something else."""
    found = _at(doc, path)
    return found if isinstance(found, str) else ""


def _at(doc: object, path: tuple[str, ...]) -> object:
    for name in path:
        doc = doc.get(name) if isinstance(doc, dict) else None
    return doc
