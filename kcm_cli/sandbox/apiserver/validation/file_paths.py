"""Paths inside of volumes and containers.

upstream: pkg/apis/core/validation/validation.go#validateLocalDescendingPath, #ValidateLocalNonReservedPath
"""

from kcm_cli.sandbox.apiserver.types import Errors, FieldError
from kcm_cli.sandbox.apiserver.validation import errors, rules


def no_backsteps(target: str, path: str) -> list[FieldError]:
    """Check that a path has no part ``..``."""
    if ".." in target and ".." in target.split("/"):
        return [errors.invalid(path, target, "must not contain '..'")]
    return []


def descending(target: str, path: str) -> Errors:
    """Check that a path is relative and has no part ``..``."""
    if target.startswith("/"):
        yield errors.invalid(path, target, "must be a relative path")
    yield from no_backsteps(target, path)


def not_reserved(target: str, path: str) -> Errors:
    """Check that a path is descending, and does not begin with two dots."""
    yield from descending(target, path)
    if target.startswith("..") and not target.startswith("../"):
        yield errors.invalid(path, target, "must not start with '..'")


mode = rules.between(0, 0o777, "must be a number between 0 and 0777 (octal), both inclusive")
"""The permission bits of a file."""
