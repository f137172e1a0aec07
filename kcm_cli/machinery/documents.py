"""Access to parts of a document, in which any part may have the wrong type.

upstream: staging/src/k8s.io/apimachinery/pkg/apis/meta/v1/unstructured/helpers.go
"""

from typing import Any


def nested_map(doc: object, *path: str) -> dict[str, Any]:
    """The map at a path (not a copy); an empty one if it is absent or not a map."""
    found = _at(doc, path)
    return found if isinstance(found, dict) else {}


def nested_list(doc: object, *path: str) -> list[Any]:
    """The list at a path (not a copy); an empty one if it is absent or not a list."""
    found = _at(doc, path)
    return found if isinstance(found, list) else []


def nested_str(doc: object, *path: str) -> str:
    """The string at a path; empty if it is absent or not a string."""
    found = _at(doc, path)
    return found if isinstance(found, str) else ""


def _at(doc: object, path: tuple[str, ...]) -> object:
    for name in path:
        doc = doc.get(name) if isinstance(doc, dict) else None
    return doc
