"""Path elements: how they are written in fieldsV1, printed in conflicts, and ordered.

upstream: sigs.k8s.io/structured-merge-diff fieldpath/{element,serialize-pe}.go
"""

import json

from kcm_cli.machinery import go_json
from kcm_cli.machinery.go_floats import go_float
from kcm_cli.machinery.integers import parse_int64
from kcm_cli.machinery.quoting import quote
from kcm_cli.machinery.remembered import remembered, remembered_all
from kcm_cli.machinery.whole_floats import settle_numbers
from kcm_cli.sandbox.apiserver.schema.model import Node

_ORDER = {"f": 0, "k": 1, "v": 2, "i": 3}


class NoElement(Exception):
    """An item of a set or keyed list has no path element, for lack of its keys for example. The text is upstream's."""


def item_element(node: Node, item: object) -> str:
    """The element of an item of a set or keyed list. Raises NoElement."""
    if node.list_type != "map":
        return _value_element(item)
    if item is None:
        raise NoElement("associative list with keys may not have a null element")
    if not isinstance(item, dict):
        raise NoElement("associative list with keys may not have non-map elements")
    keys = node.keys
    if len(keys) == 1:
        value = item.get(keys[0])
        if value.__class__ is str:
            return _string_key(keys[0], value)
    found = {}
    for key in sorted(keys):
        if key in item:
            found[key] = item[key]
        elif key in node.key_defaults:
            found[key] = node.key_defaults[key]
    if not found:
        names = "[" + " ".join(quote(key) for key in keys) + "]"
        raise NoElement(
            f"associative list with keys has an element that omits all key fields {names}"
            " (and doesn't have default values for any key fields)"
        )
    return "k:" + go_json.encode(settle_numbers(found)).decode()


@remembered_all(8192)
def _string_key(name: str, value: str) -> str:
    return "k:" + go_json.encode({name: value}).decode()


def _value_element(item: object) -> str:
    if item.__class__ is str:
        return _string_value(item)
    if isinstance(item, dict):
        raise NoElement("associative list without keys has an element that's a map type")
    if isinstance(item, list):
        raise NoElement("not supported: associative list with lists as elements")
    if item is None:
        raise NoElement("associative list without keys has an element that's an explicit null")
    return "v:" + go_json.encode(settle_numbers(item)).decode()


@remembered(8192)
def _string_value(value: str) -> str:
    return "v:" + go_json.encode(value).decode()


def text(element: str) -> str:
    """An element as conflicts print it: ``.image``, ``[name="a"]``, ``[="x"]``, ``[0]``."""
    kind, _, content = element.partition(":")
    if kind == "f":
        return "." + content
    if kind == "k":
        pairs = sorted(json.loads(content).items())
        return "[" + ",".join(f"{name}={_text_of(value)}" for name, value in pairs) + "]"
    return f"[={_text_of(json.loads(content))}]" if kind == "v" else f"[{content}]"


def _text_of(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, str):
        return quote(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return "[" + ",".join(map(_text_of, value)) + "]"
    if isinstance(value, dict):
        return "".join(f"{key}={_text_of(item)}" for key, item in value.items())
    return go_float(value) if isinstance(value, float) else str(value)


def order(element: str) -> tuple[int, object]:
    """A sort key: fields by name, items by their key fields, values, indexes."""
    kind, _, content = element.partition(":")
    if kind == "f":
        return 0, content
    if kind == "i":
        return 3, parse_int64(content) or 0
    value = json.loads(content)
    if kind == "k":
        return 1, [(name, _rank(item)) for name, item in sorted(value.items())]
    return _ORDER.get(kind, 4), _rank(value)


def _rank(value: object) -> tuple[int, object]:
    """Numbers before strings before booleans."""
    if isinstance(value, bool):
        return 2, value
    if isinstance(value, int | float):
        return 0, value
    return (1, value) if isinstance(value, str) else (3, json.dumps(value))
