"""Labels, annotations and label selectors.

Checks of keys and values are cached, since few of them are distinct.

upstream: apimachinery pkg/apis/meta/v1/validation, pkg/api/validation/objectmeta.go
"""

import re
from collections.abc import Mapping
from functools import cache

from kcm_cli.machinery import labels as machinery_labels
from kcm_cli.machinery import names
from kcm_cli.machinery.errors import FormatError
from kcm_cli.machinery.remembered import remembered
from kcm_cli.sandbox.apiserver.trees import places
from kcm_cli.sandbox.apiserver.types import Errors, FieldError, Tree
from kcm_cli.sandbox.apiserver.validation import errors, rules

ANNOTATIONS_LIMIT = 256 * 1024
"""The limit for all annotations of an object, in bytes."""


@remembered(8192)
def key_messages(key: str) -> tuple[str, ...]:
    """The errors of a label key."""
    return tuple(names.qualified_name(key))


@remembered(8192)
def value_messages(value: str) -> tuple[str, ...]:
    """The errors of a label value."""
    return tuple(names.label_value(value))


validate_key = rules.form(key_messages)
"""A label key, or another qualified name."""


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


def validate_labels(labels: Mapping[str, str] | None, path: str) -> list[FieldError]:
    """Keys and values of a set of labels."""
    found: list[FieldError] = []
    for key, value in (labels or {}).items():
        if messages := key_messages(key):
            found += errors.invalid_each(path, key, messages)
        if messages := value_messages(value):
            found += errors.invalid_each(path, value, messages)
    return found


def validate_annotations(annotations: Mapping[str, str] | None, path: str) -> list[FieldError]:
    """Check keys, in lower or upper case, and the total size."""
    found: list[FieldError] = []
    size = 0
    for key, value in (annotations or {}).items():
        size += len(key) + len(value)
        if messages := key_messages(key.lower()):
            found += errors.invalid_each(path, key, messages)
    if annotations and size > ANNOTATIONS_LIMIT // 4 and _size(annotations) > ANNOTATIONS_LIMIT:
        found.append(errors.too_long(path, ANNOTATIONS_LIMIT))
    return found


def validate_selector(selector: Tree | None, path: str, *, lenient_values: bool = False) -> list[FieldError]:
    """Check a LabelSelector. ``lenient_values``: the old object has values that are invalid for labels."""
    return [*selector_rule(lenient_values)(selector, path)] if selector else []


@cache
def selector_rule(lenient_values: bool) -> rules.Rule:
    """The rule for a LabelSelector (see ``validate_selector``)."""
    requirement = rules.fields(
        operator_and_values("not a valid selector operator"),
        rules.always("key", validate_key),
        *(() if lenient_values else (VALUES,)),
    )
    return rules.fields(rules.optional("matchLabels", validate_labels), rules.each("matchExpressions", requirement))


def operator_and_values(otherwise: str = "", **counted: str) -> rules.Rule:
    """An operator with a valid number of values.

    otherwise: the error for an unknown operator; empty if none is. ``counted``: operators with exactly one value, each
    with the error for another number.
    """

    def check(requirement: Tree, path: str) -> Errors:
        operator, values = requirement.get("operator", ""), requirement.get("values") or ()
        if operator in ("In", "NotIn"):
            if not values:
                yield errors.required(f"{path}.values", "must be specified when `operator` is 'In' or 'NotIn'")
        elif operator in ("Exists", "DoesNotExist"):
            if values:
                detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
                yield errors.forbidden(f"{path}.values", detail)
        elif operator in counted:
            if len(values) != 1:
                yield errors.required(f"{path}.values", counted[operator])
        elif otherwise:
            yield errors.invalid(f"{path}.operator", operator, otherwise)

    return check


VALUES = rules.each("values", rules.form(value_messages))
"""The label values in an expression of a selector."""


def _size(annotations: Mapping[str, str]) -> int:
    return sum(len(key.encode()) + len(value.encode()) for key, value in annotations.items())


def has_invalid_value(selector: Tree | None) -> bool:
    """Whether an expression of a selector has a value that is invalid for labels."""
    return any(value_messages(value) for value, _ in places(selector, "matchExpressions[].values[]"))


def selector_is_empty(selector: Tree | None) -> bool:
    """Whether a selector is absent or without requirements."""
    return not selector or not (selector.get("matchLabels") or selector.get("matchExpressions"))


def compile_selector(selector: Tree | None) -> machinery_labels.Selector | None:
    """The compiled selector, or None if it is invalid. Absent matches nothing, empty everything."""
    try:
        return machinery_labels.from_label_selector(machinery_labels.read_label_selector(selector))
    except FormatError:
        return None


def shown(selector: Tree | None) -> Tree | None:
    """A LabelSelector as errors print it."""
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
