"""Projected volumes: several sources in one directory.

Source: pkg/apis/core/validation/validation.go#validateProjectionSources.
"""

from collections.abc import Callable

from kcm_cli.sandbox.apiserver.types import FieldError, Tree
from kcm_cli.sandbox.apiserver.validation import errors, file_paths

_MIN_TOKEN_S, _MAX_TOKEN_S = 600, 2**32
_CLASH = "conflicting duplicate paths"
Check = Callable[[Tree, str], list[FieldError]]


def validate_projected(source: Tree, path: str, item_check: Check, downward_check: Check) -> list[FieldError]:
    """All sources; no two write the same file."""
    found = file_paths.mode(source.get("defaultMode"), f"{path}.defaultMode")
    taken: set[str] = set()
    for index, part in enumerate(source.get("sources") or ()):
        place = f"{path}.sources[{index}]"
        for kind in ("secret", "configMap"):
            items = part.get(kind)
            if items is not None:
                found += _items(items, f"{place}.{kind}", path, taken, item_check)
        if (downward := part.get("downwardAPI")) is not None:
            found += _downward(downward, f"{place}.downwardAPI", path, taken, downward_check)
        if (token := part.get("serviceAccountToken")) is not None:
            found += _token(token, f"{place}.serviceAccountToken", path)
        if len(part) > 1:
            found.append(errors.forbidden(place, "may not specify more than 1 volume type per source"))
    return found


def _claim_path(target: str, shown: str, path: str, taken: set[str]) -> list[FieldError]:
    if not target:
        return []
    if target in taken:
        return [errors.invalid(path, shown, _CLASH)]
    taken.add(target)
    return []


def _items(items: Tree, place: str, path: str, taken: set[str], check: Check) -> list[FieldError]:
    name = items.get("name", "")
    found = [] if name else [errors.required(f"{place}.name")]
    for index, item in enumerate(items.get("items") or ()):
        found += check(item, f"{place}.items[{index}]")
        found += _claim_path(item.get("path", ""), name, path, taken)
    return found


def _downward(downward: Tree, place: str, path: str, taken: set[str], check: Check) -> list[FieldError]:
    found: list[FieldError] = []
    for item in downward.get("items") or ():
        found += check(item, place)
        target = item.get("path", "")
        found += _claim_path(target, target, path, taken)
    return found


def _token(token: Tree, place: str, path: str) -> list[FieldError]:
    seconds = token.get("expirationSeconds", 0)
    found: list[FieldError] = []
    if seconds < _MIN_TOKEN_S:
        detail = "may not specify a duration less than 10 minutes"
        found.append(errors.invalid(f"{place}.expirationSeconds", seconds, detail))
    if seconds > _MAX_TOKEN_S:
        detail = "may not specify a duration larger than 2^32 seconds"
        found.append(errors.invalid(f"{place}.expirationSeconds", seconds, detail))
    target = token.get("path", "")
    if not target:
        return [*found, errors.required(f"{path}.path")]
    return found + file_paths.not_reserved(target, f"{path}.path")
