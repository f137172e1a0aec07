"""The language in which kinds declare their validation: which fields are required, which values a field may have.

A declaration is compiled to one closure when its module is imported:

    fields_of("core.v1.ContainerPort", required("containerPort", ports.number), one_of("protocol"))
      -> a loop over (field, what counts as absent, the error for that, the rule for the value)
      -> the errors of one object, in the order of the declaration

Rules between fields are functions: a ``Rule`` among the others, for the whole object or for one value. Values of
enumerations are by default those of the OpenAPI data. Texts are upstream's (see ``errors``).
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from kcm_cli.machinery import codec, names
from kcm_cli.machinery.remembered import remembered
from kcm_cli.sandbox.apiserver.data import read_data
from kcm_cli.sandbox.apiserver.types import Errors, FieldError, Tree
from kcm_cli.sandbox.apiserver.validation import errors

Rule = Callable[[Any, str], Errors]
"""Returns the errors of a value at a path."""

_FACTS = codec.decode(read_data("openapi"), dict[str, dict[str, dict[str, Any]]])
_NONE: Errors = ()


class Field(msgspec.Struct, frozen=True):
    """The rules for one field of an object.

    zero: whether an empty value counts as absent (Go fields that are not pointers).
    missing: the detail of the error for an absent field; None if it may be absent.
    at: the field's name in paths, if upstream uses another one.
    enumerated: ``rule`` is made from the values in the OpenAPI data.
    """

    name: str
    rule: Rule
    zero: bool = False
    missing: str | None = None
    at: str = ""
    enumerated: bool = False


def choices(type_: str, field: str) -> tuple[str, ...]:
    """The enumeration of a field or its items, such as ``choices("core.v1.Container", "imagePullPolicy")``."""
    facts = _FACTS[f"io.k8s.api.{type_}"][field]
    return tuple((facts if "enum" in facts else facts["items"])["enum"])


def fields(*declared: Field | Rule) -> Rule:
    """An object, checked field by field."""
    return fields_of("", *declared)


def fields_of(type_: str, *declared: Field | Rule) -> Rule:
    """An object of an API type, checked field by field."""
    table = tuple(_compiled(type_, item) for item in declared)

    def rule(holder: Tree, path: str) -> Errors:
        found: list[FieldError] = []
        get = holder.get
        for name, at, check, zero, missing in table:
            if name is None:
                found += check(holder, path)
            elif (value := get(name)) is None or (zero and not value):
                if missing is not None:
                    found.append(errors.required(path + at if path else at[1:], missing))
            elif check is not anything:
                found += check(value, path + at if path else at[1:])
        return found

    return rule


def _compiled(type_: str, item: Field | Rule) -> tuple[str | None, str, Rule, bool, str | None]:
    if not isinstance(item, Field):
        return None, "", item, False, None
    rule = enum(*choices(type_, item.name)) if item.enumerated else item.rule
    return item.name, f".{item.at or item.name}", rule, item.zero, item.missing


def every(*rules: Rule) -> Rule:
    """All of these rules, in order, for the same value."""
    if len(rules) == 1:
        return rules[0]

    def rule(value: Any, path: str) -> Errors:
        return [error for one in rules for error in one(value, path)]

    return rule if rules else anything


def seldom_changing(rule: Rule) -> Rule:
    """The same rule, which is skipped for a value that equals the last valid one."""
    good = b""

    def check(value: Any, path: str) -> Errors:
        nonlocal good
        data = codec.encode(value)
        if data == good:
            return _NONE
        found = [*rule(value, path)]
        if not found:
            good = data
        return found

    return check


def anything(value: object, path: str) -> Errors:
    """Any value is valid."""
    return _NONE


def required(name: str, *rules: Rule, detail: str = "", at: str = "") -> Field:
    """A field that is not empty."""
    return Field(name, every(*rules), zero=True, missing=detail, at=at)


def present(name: str, *rules: Rule, detail: str = "", at: str = "") -> Field:
    """A field that must be present, but may be empty."""
    return Field(name, every(*rules), missing=detail, at=at)


def optional(name: str, *rules: Rule, at: str = "") -> Field:
    """A field that may be absent; an empty value is checked."""
    return Field(name, every(*rules), at=at)


def nonempty(name: str, *rules: Rule) -> Field:
    """A field that is checked unless it is empty."""
    return Field(name, every(*rules), zero=True)


def one_of(name: str, *values: str, detail: str = "") -> Field:
    """A field with one of these values, by default those of the OpenAPI data."""
    return Field(name, enum(*values) if values else anything, zero=True, missing=detail, enumerated=not values)


def maybe_one_of(name: str, *values: str, zero: bool = False) -> Field:
    """The same for a field that may be absent."""
    return Field(name, enum(*values) if values else anything, zero=zero, enumerated=not values)


def always(name: str, *rules: Rule, default: object = "", at: str = "") -> Rule:
    """A field that is always checked; an absent one as ``default``."""
    rule, shown = every(*rules), at or name

    def check(holder: Tree, path: str) -> Errors:
        found = holder.get(name)
        return rule(default if found is None else found, f"{path}.{shown}" if path else shown)

    return check


def each(name: str, *rules: Rule, key: str | None = None, then: Rule | None = None) -> Field:
    """The items of a list, one by one (see ``items``)."""
    return Field(name, items(*rules, key=key, then=then))


def items(*rules: Rule, key: str | None = None, at_key: bool = True, then: Rule | None = None) -> Rule:
    """The items of a list.

    key: the field that must be unique; ``""`` is the item itself. A duplicate is an error at that field, or without
    ``at_key`` at the item, after the errors of the rules and before those of ``then``.
    """
    rule, rest, at = every(*rules), then or anything, f".{key}" if key and at_key else ""

    def check(values: Iterable[Any], path: str) -> Errors:
        found: list[FieldError] = []
        for index, item in enumerate(values):
            found += rule(item, f"{path}[{index}]")
        return found

    def check_keyed(values: Iterable[Any], path: str) -> Errors:
        found: list[FieldError] = []
        seen = Unique()
        for index, item in enumerate(values):
            place = f"{path}[{index}]"
            found += rule(item, place)
            found += seen(item.get(key, "") if key else item, f"{place}{at}")
            found += rest(item, place)
        return found

    return check if key is None else check_keyed


class Unique:
    """Reports values with which it has been called before as duplicates."""

    def __init__(self, *known: object) -> None:
        self._seen = set(known)

    def __call__(self, value: object, path: str) -> tuple[FieldError, ...]:
        if value in self._seen:
            return (errors.duplicate(path, value),)
        self._seen.add(value)
        return ()


def enum(*values: str) -> Rule:
    """One of these values."""

    def check(value: object, path: str) -> Errors:
        return _NONE if value in values else (errors.not_supported(path, value, values),)

    return check


def form(messages: Callable[[Any], Sequence[str]], *, start: str = "", separator: str | None = None) -> Rule:
    """A value for which ``messages`` is empty. ``separator``: all messages are one error, after ``start``."""

    def check(value: Any, path: str) -> Errors:
        found = messages(value)
        return [errors.invalid(path, value, message) for message in found] if found else _NONE

    def check_once(value: Any, path: str) -> Errors:
        found = messages(value)
        return (errors.invalid(path, value, start + str(separator).join(found)),) if found else _NONE

    return check if separator is None else check_once


def must(valid: Callable[[Any], object], detail: str) -> Rule:
    """A value for which ``valid`` is true."""

    def check(value: Any, path: str) -> Errors:
        return _NONE if valid(value) else (errors.invalid(path, value, detail),)

    return check


def given(detail: str = "") -> Rule:
    """A value that is not empty."""
    return lambda value, path: _NONE if value else (errors.required(path, detail),)


def between(low: int, high: int, detail: str = "") -> Rule:
    """A number in a range, both ends included."""
    return must(lambda value: low <= value <= high, detail or names.range_message(low, high))


def at_least(low: int, detail: str = errors.NEGATIVE) -> Rule:
    """A number that is not lower."""
    return must(lambda value: value >= low, detail)


def at_most(high: int, detail: str) -> Rule:
    """A number that is not higher."""
    return must(lambda value: value <= high, detail)


def max_bytes(limit: int) -> Rule:
    """A string of at most ``limit`` bytes."""

    def check(value: str, path: str) -> Errors:
        return (errors.too_long(path, limit),) if len(value.encode()) > limit else _NONE

    return check


def max_size(limit: int) -> Rule:
    """A map whose keys and values have at most ``limit`` bytes."""

    def check(value: dict[str, str], path: str) -> Errors:
        size = sum(len(key.encode()) + len(text.encode()) for key, text in value.items())
        return (errors.too_long(path, limit),) if size > limit else _NONE

    return check


def max_items(limit: int) -> Rule:
    """A list or map of at most ``limit`` items."""

    def check(value: list[object], path: str) -> Errors:
        return (errors.too_many(path, len(value), limit),) if len(value) > limit else _NONE

    return check


def unless(first: Rule, *rest: Rule) -> Rule:
    """The rest of the rules, if the first one finds no error."""
    then = every(*rest)

    def check(value: object, path: str) -> Errors:
        return [*first(value, path)] or then(value, path)

    return check


def by_value(name: str, cases: Mapping[str, Rule], otherwise: Rule | None = None) -> Rule:
    """The rule for an object by the value of a field; by default an unknown value is an error at the field."""
    fallback = otherwise or fields(always(name, enum(*cases)))

    def check(holder: Tree, path: str) -> Errors:
        return cases.get(holder.get(name, ""), fallback)(holder, path)

    return check


def forbidden(name: str, detail: str, *, zero: bool = True, at: str = "") -> Field:
    """A field that must be absent, or with ``zero`` empty."""
    return Field(name, lambda value, path: (errors.forbidden(path, detail),), zero=zero, at=at)


LABEL = form(remembered(8192)(names.dns1123_label))
SUBDOMAIN = form(remembered(8192)(names.dns1123_subdomain))
SEGMENT = form(names.path_segment)
KIND = form(
    lambda name: names.dns1035_label(name.lower()),
    start="may have mixed case, but should otherwise match: ",
    separator=",",
)
"""The name of a kind."""
COUNT = at_least(0)


def counters(*fields_: str) -> tuple[Field, ...]:
    """Optional fields with numbers that are not negative."""
    return tuple(optional(field, COUNT) for field in fields_)
