"""Labels, annotations and label selectors.

Checks of single keys and values are cached: the same few come again and again.

Source: apimachinery pkg/apis/meta/v1/validation, pkg/api/validation/objectmeta.go.
"""

import re
from collections.abc import Mapping
from functools import lru_cache

from kcm_cli.machinery import labels as machinery_labels
from kcm_cli.machinery import names
from kcm_cli.machinery.errors import FormatError
from kcm_cli.sandbox.apiserver.types import Errors, Tree
from kcm_cli.sandbox.apiserver.validation import errors

ANNOTATIONS_LIMIT = 256 * 1024
"""Bytes that all annotations of an object may have together."""

_OPERATORS = {
    "In": machinery_labels.IN,
    "NotIn": machinery_labels.NOT_IN,
    "Exists": machinery_labels.EXISTS,
    "DoesNotExist": machinery_labels.NOT_EXISTS,
}


@lru_cache(maxsize=8192)
def key_messages(key: str) -> tuple[str, ...]:
    """What is wrong with a label key."""
    return tuple(names.qualified_name(key))


@lru_cache(maxsize=8192)
def value_messages(value: str) -> tuple[str, ...]:
    """What is wrong with the value of a label."""
    return tuple(names.label_value(value))


def validate_key(key: str, path: str) -> Errors:
    """A label key, or another qualified name."""
    return errors.invalid_each(path, key, key_messages(key))


_http_path = re.compile(r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+").fullmatch
_HTTP_PATH = "[A-Za-z0-9/\\-._~%!$&'()*+,;=:]+"


def domain_prefixed_path(value: str, path: str) -> Errors:
    """A name like ``acme.io/foo``."""
    if not value:
        yield errors.required(path)
        return
    host, slash, rest = value.partition("/")
    if not (host and slash and rest):
        yield errors.invalid(path, value, 'must be a domain-prefixed path (such as "acme.io/foo")')
        return
    yield from errors.invalid_each(path, host, names.dns1123_subdomain(host))
    if not _http_path(rest):
        yield errors.invalid(path, rest, names.regex_message("Invalid path", _HTTP_PATH))


def validate_labels(labels: Mapping[str, str] | None, path: str) -> Errors:
    """Keys and values of a set of labels."""
    for key, value in (labels or {}).items():
        if messages := key_messages(key):
            yield from errors.invalid_each(path, key, messages)
        if messages := value_messages(value):
            yield from errors.invalid_each(path, value, messages)


def validate_annotations(annotations: Mapping[str, str] | None, path: str) -> Errors:
    """Keys, in any case, and the size of all together."""
    if not annotations:
        return
    size = 0
    for key, value in annotations.items():
        size += len(key) + len(value)
        if messages := key_messages(key.lower()):
            yield from errors.invalid_each(path, key, messages)
    if size > ANNOTATIONS_LIMIT // 4 and _size(annotations) > ANNOTATIONS_LIMIT:
        yield errors.too_long(path, ANNOTATIONS_LIMIT)


def _size(annotations: Mapping[str, str]) -> int:
    return sum(len(key.encode()) + len(value.encode()) for key, value in annotations.items())


def validate_selector(
    selector: Tree | None, path: str, *, lenient_values: bool = False, lenient_operators: bool = False
) -> Errors:
    """A LabelSelector. ``lenient_values`` lets through values that an older object already has."""
    if not selector:
        return
    yield from validate_labels(selector.get("matchLabels"), f"{path}.matchLabels")
    for index, requirement in enumerate(selector.get("matchExpressions") or ()):
        yield from _validate_requirement(
            requirement,
            f"{path}.matchExpressions[{index}]",
            lenient_values=lenient_values,
            lenient_operators=lenient_operators,
        )


def _validate_requirement(requirement: Tree, path: str, *, lenient_values: bool, lenient_operators: bool) -> Errors:
    operator, values = requirement.get("operator", ""), requirement.get("values") or ()
    if operator in ("In", "NotIn"):
        if not values:
            yield errors.required(f"{path}.values", "must be specified when `operator` is 'In' or 'NotIn'")
    elif operator in ("Exists", "DoesNotExist"):
        if values:
            detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
            yield errors.forbidden(f"{path}.values", detail)
    elif not lenient_operators:
        yield errors.invalid(f"{path}.operator", operator, "not a valid selector operator")
    yield from validate_key(requirement.get("key", ""), f"{path}.key")
    if not lenient_values:
        for index, value in enumerate(values):
            yield from errors.invalid_each(f"{path}.values[{index}]", value, value_messages(value))


def has_invalid_value(selector: Tree | None) -> bool:
    """Whether an expression of a selector names a value that no label can have."""
    expressions = (selector or {}).get("matchExpressions") or ()
    return any(value_messages(value) for item in expressions for value in item.get("values") or ())


def selector_is_empty(selector: Tree | None) -> bool:
    """Whether a selector, given or not, selects by nothing."""
    return not selector or not (selector.get("matchLabels") or selector.get("matchExpressions"))


def compile_selector(selector: Tree | None) -> machinery_labels.Selector | None:
    """The selector to match with, or None if it cannot be one. Absent selects nothing, empty everything."""
    if selector is None:
        return machinery_labels.NOTHING
    terms = [(key, machinery_labels.EQUALS, (value,)) for key, value in (selector.get("matchLabels") or {}).items()]
    for item in selector.get("matchExpressions") or ():
        operator = _OPERATORS.get(item.get("operator", ""))
        if operator is None:
            return None
        terms.append((item.get("key", ""), operator, tuple(item.get("values") or ())))
    try:
        return machinery_labels.Selector(tuple(machinery_labels.requirement(*term) for term in terms))
    except FormatError:
        return None


def shown(selector: Tree | None) -> Tree | None:
    """A LabelSelector as error texts print it."""
    if selector is None:
        return None
    result: Tree = {}
    if selector.get("matchLabels"):
        result["matchLabels"] = errors.sorted_map(selector["matchLabels"])
    if selector.get("matchExpressions"):
        result["matchExpressions"] = [_shown_requirement(item) for item in selector["matchExpressions"]]
    return result


def _shown_requirement(item: Tree) -> Tree:
    result: Tree = {"key": item.get("key", ""), "operator": item.get("operator", "")}
    if item.get("values"):
        result["values"] = item["values"]
    return result
