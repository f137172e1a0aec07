"""Projected volumes: several sources in one directory.

Source: pkg/apis/core/validation/validation.go#validateProjectionSources.
"""

from collections.abc import Callable

from kcm_cli.sandbox.apiserver.types import Errors, Tree
from kcm_cli.sandbox.apiserver.validation import errors, file_paths

_MIN_TOKEN_S, _MAX_TOKEN_S = 600, 2**32
_CLASH = "conflicting duplicate paths"
Check = Callable[[Tree, str], Errors]


def validate_projected(source: Tree, path: str, item_check: Check, downward_check: Check) -> Errors:
    """All sources; no two write the same file."""
    yield from file_paths.mode(source.get("defaultMode"), f"{path}.defaultMode")
    taken: set[str] = set()
    for index, part in enumerate(source.get("sources") or ()):
        place = f"{path}.sources[{index}]"
        for kind in ("secret", "configMap"):
            items = part.get(kind)
            if items is not None:
                yield from _items(items, f"{place}.{kind}", path, taken, item_check)
        if (downward := part.get("downwardAPI")) is not None:
            yield from _downward(downward, f"{place}.downwardAPI", path, taken, downward_check)
        if (token := part.get("serviceAccountToken")) is not None:
            yield from _token(token, f"{place}.serviceAccountToken", path)
        if len(part) > 1:
            yield errors.forbidden(place, "may not specify more than 1 volume type per source")


def _claim_path(target: str, shown: str, path: str, taken: set[str]) -> Errors:
    if not target:
        return []
    if target in taken:
        return [errors.invalid(path, shown, _CLASH)]
    taken.add(target)
    return []


def _items(items: Tree, place: str, path: str, taken: set[str], check: Check) -> Errors:
    name = items.get("name", "")
    if not name:
        yield errors.required(f"{place}.name")
    for index, item in enumerate(items.get("items") or ()):
        yield from check(item, f"{place}.items[{index}]")
        yield from _claim_path(item.get("path", ""), name, path, taken)


def _downward(downward: Tree, place: str, path: str, taken: set[str], check: Check) -> Errors:
    for item in downward.get("items") or ():
        yield from check(item, place)
        target = item.get("path", "")
        yield from _claim_path(target, target, path, taken)


def _token(token: Tree, place: str, path: str) -> Errors:
    seconds = token.get("expirationSeconds", 0)
    if seconds < _MIN_TOKEN_S:
        yield errors.invalid(f"{place}.expirationSeconds", seconds, "may not specify a duration less than 10 minutes")
    if seconds > _MAX_TOKEN_S:
        detail = "may not specify a duration larger than 2^32 seconds"
        yield errors.invalid(f"{place}.expirationSeconds", seconds, detail)
    target = token.get("path", "")
    if not target:
        yield errors.required(f"{path}.path")
        return
    yield from file_paths.not_reserved(target, f"{path}.path")
