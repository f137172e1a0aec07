"""JSON merge patches (RFC 7386) and JSON patches (RFC 6902), as API servers apply them.

Guarantees: arguments are not modified. Results may share parts with them, so treat all as read-only. Where the API
server departs from the RFCs, so does this: a merge patch drops nulls in new values, also in lists; ``replace`` sets a
missing key; a missing ``value`` is null; indexes may be negative. The package ``jsonpatch`` differs in all of these and
in its texts.
"""

import re
from collections.abc import Iterable

from kcm_cli.machinery import codec
from kcm_cli.machinery.codec import Doc
from kcm_cli.machinery.errors import PatchError
from kcm_cli.machinery.quoting import quote
from kcm_cli.machinery.same import same

_index = re.compile(r"[+-]?[0-9]+").fullmatch
_MISSING = "missing value"
MAX_COPIED = 3 * 1024 * 1024
"""Bytes of JSON that the copies of one JSON patch may add together (apiserver's JSONPatchMaxCopyBytes)."""


# --- merge patches ---------------------------------------------------------------------------------------


def merge_patch(document: Doc, patch: Doc) -> Doc:
    """The patched document: null removes a key, objects are merged, other values are replaced."""
    merged = dict(document)
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = _merged(merged.get(key), value)
    return merged


def _merged(current: object, patch: object) -> object:
    if not isinstance(current, dict):
        return _without_nulls(patch)
    return merge_patch(current, patch) if isinstance(patch, dict) else patch


def _without_nulls(value: object) -> object:
    if isinstance(value, dict):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [_without_nulls(item) for item in value]
    return value


# --- JSON patches ----------------------------------------------------------------------------------------


def json_patch(document: object, operations: Iterable[Doc]) -> object:
    """The document after all operations. Raises PatchError with upstream's text for the first one that fails."""
    root = copy(document)
    copied = 0
    for operation in operations:
        kind = operation.get("op")
        match kind:
            case "add":
                _add(root, operation)
            case "remove":
                _remove(root, operation)
            case "replace":
                root = _replace(root, operation)
            case "move":
                _move(root, operation)
            case "test":
                _test(root, operation)
            case "copy":
                copied = _copy(root, operation, copied)
            case _:
                raise PatchError(f"Unexpected kind: {kind if isinstance(kind, str) else 'unknown'}")
    return root


def copy(value: object) -> object:
    """A deep copy of a JSON value."""
    if isinstance(value, dict):
        return {key: copy(item) for key, item in value.items()}
    if isinstance(value, list):
        return [copy(item) for item in value]
    return value


def _add(root: object, operation: Doc) -> None:
    path = _pointer(operation, "path", f"add operation failed to decode path: {_MISSING}")
    target = _find(root, path)
    if target is None:
        raise PatchError(f'add operation does not apply: doc is missing path: "{path}": {_MISSING}')
    _insert(*target, copy(operation.get("value")), f"error in add for path: '{path}'")


def _remove(root: object, operation: Doc) -> None:
    path = _pointer(operation, "path", f"remove operation failed to decode path: {_MISSING}")
    target = _find(root, path)
    if target is None:
        raise PatchError(f'remove operation does not apply: doc is missing path: "{path}": {_MISSING}')
    _delete(*target, f"error in remove for path: '{path}'")


def _replace(root: object, operation: Doc) -> object:
    path = _pointer(operation, "path", "replace operation failed to decode path")
    value = copy(operation.get("value"))
    if path == "":
        if not isinstance(value, (dict, list)):
            raise PatchError("replace operation value must be object or array: %!w(<nil>)")
        return value
    target = _find(root, path)
    if target is None:
        raise PatchError(f"replace operation does not apply: doc is missing path: {path}: {_MISSING}")
    container, key = target
    if isinstance(container, dict):
        container[key] = value
        return root
    try:
        container[_existing(container, key)] = value
    except PatchError:
        raise PatchError(f"replace operation does not apply: doc is missing key: {path}: {_MISSING}") from None
    return root


def _move(root: object, operation: Doc) -> None:
    source = _pointer(operation, "from", "move operation failed to decode from")
    found = _find(root, source)
    if found is None:
        raise PatchError(f"move operation does not apply: doc is missing from path: {source}: {_MISSING}")
    container, key = found
    problem = f"error in move for path: '{key}'"
    value = _get(container, key, problem)
    _delete(container, key, problem)
    path = _pointer(operation, "path", "move operation failed to decode path")
    target = _find(root, path)
    if target is None:
        raise PatchError(f"move operation does not apply: doc is missing destination path: {path}: {_MISSING}")
    _insert(*target, value, f"error in move for path: '{path}'")


def _copy(root: object, operation: Doc, copied: int) -> int:
    """Apply a copy operation. Returns the number of bytes that copies have added so far, including ``copied``."""
    source = _pointer(operation, "from", "copy operation failed to decode from")
    found = _find(root, source)
    if found is None:
        raise PatchError(f"copy operation does not apply: doc is missing from path: {source}: {_MISSING}")
    value = _get(*found, f"error in copy for from: '{source}'")
    path = _pointer(operation, "path", f"copy operation failed to decode path: {_MISSING}")
    target = _find(root, path)
    if target is None:
        raise PatchError(f"copy operation does not apply: doc is missing destination path: {path}: {_MISSING}")
    copied += len(codec.encode(value))
    if copied > MAX_COPIED:
        why = f"the accumulated size increase of copy is {copied}, exceeding the limit {MAX_COPIED}"
        raise PatchError(f"Unable to complete the copy, {why}")
    _insert(*target, copy(value), "error while adding value during copy")
    return copied


def _test(root: object, operation: Doc) -> None:
    path = _pointer(operation, "path", "test operation failed to decode path")
    if path == "":
        value = root
    else:
        target = _find(root, path)
        if target is None:
            raise PatchError(f"test operation does not apply: is missing path: {path}: {_MISSING}")
        value = _get(*target, f"error in test for path: '{path}'")
    if not same(value, operation.get("value")):
        raise PatchError(f"testing value {path} failed: test failed")


def _pointer(operation: Doc, field: str, problem: str) -> str:
    pointer = operation.get(field)
    if isinstance(pointer, str):
        return pointer
    if problem.endswith(_MISSING):
        raise PatchError(problem)
    comma = "," if field == "from" else ""
    raise PatchError(f"{problem}: operation{comma} missing {field} field: {_MISSING}")


def _find(root: object, pointer: str) -> tuple[Doc | list[object], str] | None:
    """(the object or list that contains what the pointer names, the last part of the pointer); None if there is
    none."""
    parts = [part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")]
    if len(parts) < 2:
        return None
    current = root
    for part in parts[1:-1]:
        if isinstance(current, dict):
            current = current.get(part)
        elif isinstance(current, list):
            index = _position(part)
            if index is None or not -len(current) <= index < len(current):
                return None
            current = current[index]
        else:
            return None
    return (current, parts[-1]) if isinstance(current, (dict, list)) else None


def _get(container: Doc | list[object], key: str, problem: str) -> object:
    if isinstance(container, dict):
        return container.get(key)
    try:
        return container[_existing(container, key)]
    except PatchError as error:
        raise PatchError(f"{problem}: {error}") from None


def _delete(container: Doc | list[object], key: str, problem: str) -> None:
    if isinstance(container, dict):
        if key not in container:
            raise PatchError(f"{problem}: Unable to remove nonexistent key: {key}: {_MISSING}")
        del container[key]
        return
    try:
        del container[_existing(container, key)]
    except PatchError as error:
        raise PatchError(f"{problem}: {error}") from None


def _insert(container: Doc | list[object], key: str, value: object, problem: str) -> None:
    if isinstance(container, dict):
        container[key] = value
        return
    if key == "-":
        container.append(value)
        return
    index = _position(key)
    if index is None:
        raise PatchError(f"{problem}: value was not a proper array index: '{key}': {_not_a_number(key)}")
    if not -len(container) - 1 <= index <= len(container):
        raise PatchError(f"{problem}: {_out_of_range(index)}")
    container.insert(index if index >= 0 else index + len(container) + 1, value)


def _existing(items: list[object], key: str) -> int:
    """The index of an existing element. Raises PatchError."""
    index = _position(key)
    if index is None:
        raise PatchError(_not_a_number(key))
    if not -len(items) <= index < len(items):
        raise PatchError(_out_of_range(index))
    return index


def _position(key: str) -> int | None:
    return int(key) if len(key) < 20 and _index(key) else None


def _not_a_number(key: str) -> str:
    return f"strconv.Atoi: parsing {quote(key)}: invalid syntax"


def _out_of_range(index: int) -> str:
    return f"Unable to access invalid index: {index}: invalid index referenced"
