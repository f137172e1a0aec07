"""Label selectors: compiled from the API's form or parsed from text, matched, printed.

Guarantees: a Selector is immutable. Equal requirements have equal texts, sorted by key, with sorted values.

upstream: apimachinery pkg/labels/selector.go, pkg/apis/meta/v1/helpers.go
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from weakref import ref

import msgspec

from kcm_cli.machinery import codec, names
from kcm_cli.machinery.errors import FormatError, aggregated
from kcm_cli.machinery.integers import parse_int64
from kcm_cli.machinery.meta import View
from kcm_cli.machinery.quoting import quote
from kcm_cli.machinery.remembered import remembered_documents

IN, NOT_IN, EXISTS, NOT_EXISTS = "in", "notin", "exists", "!"
EQUALS, DOUBLE_EQUALS, NOT_EQUALS, GREATER, LESS = "=", "==", "!=", "gt", "lt"

_BINARY = (IN, NOT_IN, EQUALS, DOUBLE_EQUALS, NOT_EQUALS, GREATER, LESS)
_API_OPERATORS = {"In": IN, "NotIn": NOT_IN, "Exists": EXISTS, "DoesNotExist": NOT_EXISTS}
_NAMES = {operator: name for name, operator in _API_OPERATORS.items()}
_SIGNS = {GREATER: ">", LESS: "<", IN: " in ", NOT_IN: " notin "}


_NONE: Mapping[str, Any] = {}


class LabelSelectorRequirement(View, frozen=True, gc=False):
    """metav1.LabelSelectorRequirement."""

    key: str = ""
    operator: str = ""
    values: tuple[str, ...] = ()


class LabelSelector(View, frozen=True, gc=True, weakref=True):  # gc: msgspec has no weak references without
    """metav1.LabelSelector."""

    match_labels: dict[str, str] | None = None
    match_expressions: tuple[LabelSelectorRequirement, ...] = ()


class Requirement(msgspec.Struct, frozen=True):
    """One term of a selector."""

    key: str
    operator: str
    values: tuple[str, ...] = ()

    def __str__(self) -> str:
        if self.operator == EXISTS:
            return self.key
        if self.operator == NOT_EXISTS:
            return f"!{self.key}"
        values = ",".join(sorted(self.values))
        if self.operator in (IN, NOT_IN):
            values = f"({values})"
        return f"{self.key}{_SIGNS.get(self.operator, self.operator)}{values}"


class _Allowed:
    """What the requirements about one label allow its value to be."""

    def __init__(self) -> None:
        self._values: frozenset[str] | None = None
        self._above: int | None = None
        self._below: int | None = None

    def narrow(self, term: Requirement) -> None:
        """Add a requirement that the label has to exist for."""
        if term.operator == IN:
            self._values = frozenset(term.values) if self._values is None else self._values.intersection(term.values)
        elif term.operator in (GREATER, LESS):
            bound = parse_int64(term.values[0])
            if bound is None:
                self._values = frozenset()
            elif term.operator == GREATER:
                self._above = bound if self._above is None else max(bound, self._above)
            else:
                self._below = bound if self._below is None else min(bound, self._below)

    def has(self, value: str) -> bool:
        """Whether a value is allowed."""
        if self._values is not None and value not in self._values:
            return False
        if self._above is None and self._below is None:
            return True
        number = parse_int64(value)
        if number is None or (self._above is not None and number <= self._above):
            return False
        return self._below is None or number < self._below


@dataclass(frozen=True, slots=True)
class Selector:
    """All requirements must be met. ``selectable`` is False for NOTHING only.

    To match takes time for the labels, not for the requirements, of which anyone may make thousands: they are grouped
    by their label. ``_exact``: the labels with their values of equalities. ``_needed``: the other labels that must
    exist. ``_barred``: the values that a label must not have; None for a label that must not exist.
    """

    requirements: tuple[Requirement, ...] = ()
    selectable: bool = True
    _exact: tuple[tuple[str, str], ...] = field(init=False, repr=False, compare=False)
    _needed: Mapping[str, _Allowed] = field(init=False, repr=False, compare=False)
    _barred: Mapping[str, frozenset[str] | None] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        exact: dict[tuple[str, str], None] = {}
        needed: dict[str, _Allowed] = {}
        barred: dict[str, set[str] | None] = {}
        for term in self.requirements:
            if term.operator in (EQUALS, DOUBLE_EQUALS):
                exact[term.key, term.values[0]] = None
            elif term.operator == NOT_EXISTS:
                barred[term.key] = None
            elif term.operator in (NOT_IN, NOT_EQUALS):
                values = barred.setdefault(term.key, set())
                if values is not None:
                    values.update(term.values)
            else:
                needed.setdefault(term.key, _Allowed()).narrow(term)
        fixed = {key: None if values is None else frozenset(values) for key, values in barred.items()}
        object.__setattr__(self, "_exact", tuple(exact))
        object.__setattr__(self, "_needed", needed or _NONE)
        object.__setattr__(self, "_barred", fixed or _NONE)

    @property
    def empty(self) -> bool:
        """Whether it matches everything."""
        return self.selectable and not self.requirements

    def matches(self, labels: Mapping[str, str]) -> bool:
        for key, value in self._exact:  # distinct pairs: as many as there are labels can be met
            if labels.get(key) != value:
                return False
        if self._needed:
            for key, allowed in self._needed.items():
                present = labels.get(key)
                if present is None or not allowed.has(present):
                    return False
        if self._barred:
            for key in labels.keys() & self._barred.keys():
                values = self._barred[key]
                if values is None or labels[key] in values:
                    return False
        return self.selectable

    def implies(self, labels: Mapping[str, str]) -> bool:
        """Whether everything selected has these labels."""
        return all(label in self._exact for label in labels.items())

    @property
    def exact_labels(self) -> tuple[tuple[str, str], ...]:
        """The labels that everything selected has, with their only values."""
        return self._exact

    def exact(self, key: str) -> str | None:
        """The only value that this label may have, by the first requirement about it; None if there is no such
        value."""
        for requirement in self.requirements:
            if requirement.key == key:
                single = requirement.operator in (EQUALS, DOUBLE_EQUALS, IN) and len(requirement.values) == 1
                return requirement.values[0] if single else None
        return None

    def __str__(self) -> str:
        return ",".join(str(requirement) for requirement in self.requirements)


EVERYTHING = Selector()
"""Matches all labels."""

NOTHING = Selector(selectable=False)
"""Matches no labels, not even none."""


def from_label_selector(selector: LabelSelector | None) -> Selector:
    """Compile a selector. An absent one matches nothing, an empty one everything. Raises FormatError."""
    if selector is None:
        return NOTHING
    if not selector.match_labels and not selector.match_expressions:
        return EVERYTHING
    known = _large.get(id(selector))
    if known is not None:
        return known[1]
    document, ident = codec.encode(selector), id(selector)
    compiled = _compiled(document)
    if len(document) > LARGE:
        _large[ident] = ref(selector, lambda _: _large.pop(ident, None)), compiled
    return compiled


LARGE = 2048
_large: dict[int, tuple[ref[LabelSelector], Selector]] = {}
"""The compiled form of each selector whose document has more than LARGE bytes, as long as that lives: in a cache, as
long as its owner has this version. Two dozen of a megabyte do not fit among the documents, and every pod asks for each.
Selectors are immutable, and the entry ends before its id can be used again."""


@remembered_documents(4 << 20)
def _compiled(document: bytes) -> Selector:
    """Every sync of an owner needs its selector: compiling one takes 8 us, with thousands of terms 25 ms."""
    selector = codec.decode(document, LabelSelector)
    terms = [requirement(key, EQUALS, (value,)) for key, value in (selector.match_labels or {}).items()]
    for term in selector.match_expressions:
        operator = _API_OPERATORS.get(term.operator)
        if operator is None:
            raise FormatError(f"{quote(term.operator)} is not a valid label selector operator")
        terms.append(requirement(term.key, operator, term.values))
    return _sorted(terms)


def from_labels(wanted: Mapping[str, str]) -> Selector:
    """Selects what has all these labels, which are not validated (upstream's SelectorFromSet)."""
    return _sorted(Requirement(key, EQUALS, (value,)) for key, value in wanted.items())


def read_label_selector(doc: codec.Doc | None) -> LabelSelector | None:
    """The selector in a document."""
    return None if doc is None else codec.convert(doc, LabelSelector)


def to_label_selector(text: str) -> LabelSelector:
    """The API's form of a selector's text. Raises FormatError for inequality and comparisons."""
    try:
        requirements = parse(text).requirements
    except FormatError as error:
        raise FormatError(f'couldn\'t parse the selector string "{text}": {error}') from None
    exact: dict[str, str] = {}
    others: list[LabelSelectorRequirement] = []
    for term in requirements:
        if term.operator in (EQUALS, DOUBLE_EQUALS):
            exact[term.key] = term.values[0]
        elif term.operator in _NAMES:
            others.append(LabelSelectorRequirement(term.key, _NAMES[term.operator], term.values))
        elif term.operator in (GREATER, LESS):
            raise FormatError(f"{quote(term.operator)} isn't supported in label selectors")
        else:
            raise FormatError(f"{quote(term.operator)} is not a valid label selector operator")
    return LabelSelector(exact, tuple(others))


def format_label_selector(selector: LabelSelector | None) -> str:
    """The selector in kubectl's columns: ``<none>`` if it is empty or absent, ``<error>`` if it is invalid."""
    try:
        return str(from_label_selector(selector)) or "<none>"
    except FormatError:
        return "<error>"


def format_go(selector: LabelSelector | None) -> str:
    """The selector in Go's format, as upstream's messages print it."""
    if selector is None:
        return "nil"
    labels = "".join(f"{key}: {value}," for key, value in sorted((selector.match_labels or {}).items()))
    terms = "".join(
        f"LabelSelectorRequirement{{Key:{term.key},Operator:{term.operator},Values:[{' '.join(term.values)}],}},"
        for term in selector.match_expressions
    )
    expressions = f"[]LabelSelectorRequirement{{{terms}}}"
    return f"&LabelSelector{{MatchLabels:map[string]string{{{labels}}},MatchExpressions:{expressions},}}"


def format_set(labels: Mapping[str, str]) -> str:
    """``a=b,c=d``, sorted by key."""
    return ",".join(f"{key}={labels[key]}" for key in sorted(labels))


def requirement(key: str, operator: str, values: tuple[str, ...]) -> Requirement:
    """A validated requirement. Raises FormatError with all errors."""
    return _checked(key, operator, values, names.qualified_name(key))


def _checked(key: str, operator: str, values: tuple[str, ...], key_errors: Sequence[str] = ()) -> Requirement:
    problems = [_invalid("key", quote(key), key_errors)] if key_errors else []
    problems += _value_count(operator, values)
    for index, value in enumerate(values):
        if errors := names.label_value(value):
            problems.append(_invalid(f"values[{index}][{key}]", quote(value), errors))
    if not problems:
        return Requirement(key, operator, values)
    raise FormatError(aggregated(problems))


def _value_count(operator: str, values: Sequence[str]) -> list[str]:
    if operator in (IN, NOT_IN):
        rule = "" if values else "for 'in', 'notin' operators, values set can't be empty"
    elif operator in (EQUALS, DOUBLE_EQUALS, NOT_EQUALS):
        rule = "" if len(values) == 1 else "exact-match compatibility requires one single value"
    elif operator in (EXISTS, NOT_EXISTS):
        rule = "values set must be empty for exists and does not exist" if values else ""
    else:
        rule = "" if len(values) == 1 else "for 'Gt', 'Lt' operators, exactly one value is required"
    problems = [_invalid("values", codec.encode(values or None).decode(), [rule])] if rule else []
    if operator in (GREATER, LESS):
        for index, value in enumerate(values):
            if parse_int64(value) is None:
                reason = "for 'Gt', 'Lt' operators, the value must be an integer"
                problems.append(_invalid(f"values[{index}]", quote(value), [reason]))
    return problems


def _invalid(path: str, shown: str, reasons: Iterable[str]) -> str:
    return f"{path}: Invalid value: {shown}: {'; '.join(reasons)}"


def _sorted(terms: Iterable[Requirement]) -> Selector:
    return Selector(tuple(sorted(terms, key=lambda term: term.key)))


# --- the text form ---------------------------------------------------------------------------------------

_token = re.compile(r"[ \t\r\n]*(==|!=|[=!(),<>]|[^ \t\r\n=!(),<>]+)?")
_NO_IDENTIFIER = frozenset(["", "=", "==", "!=", "!", "(", ")", ",", "<", ">"])
_TEXT_OPERATORS = {"in": IN, "notin": NOT_IN, "=": EQUALS, "==": DOUBLE_EQUALS, "!=": NOT_EQUALS}
_TEXT_OPERATORS |= {">": GREATER, "<": LESS}


def parse(text: str) -> Selector:
    """Parse ``a=b,c!=d,e in (f,g),h notin (i),j,!k,l>1``. Raises FormatError with upstream's texts."""
    if not text:
        return EVERYTHING
    tokens = _Tokens(text)
    terms: list[Requirement] = []
    while tokens.next:
        if tokens.next in _NO_IDENTIFIER and tokens.next != "!":
            raise FormatError(f"found '{tokens.next}', expected: !, identifier, or 'end of string'")
        try:
            terms.append(_parse_requirement(tokens))
        except FormatError as error:
            raise FormatError(f"unable to parse requirement: {error}") from None
        separator = tokens.take()
        if separator not in ("", ","):
            raise FormatError(f"found '{separator}', expected: ',' or 'end of string'")
        if separator and tokens.next in _NO_IDENTIFIER and tokens.next != "!":
            raise FormatError(f"found '{tokens.next}', expected: identifier after ','")
    return _sorted(terms)


class _Tokens:
    """The tokens of a selector's text, with one token of lookahead. The empty token marks the end."""

    def __init__(self, text: str) -> None:
        self._rest = iter(_token.findall(text))
        self.next = ""
        self.take()

    def take(self) -> str:
        """Consume the next token."""
        token = self.next
        self.next = next(self._rest, "")
        return token

    def identifier(self) -> str:
        """Consume the next token, which must be an identifier. Raises FormatError."""
        token = self.take()
        if token in _NO_IDENTIFIER:
            raise FormatError(f"found '{token}', expected: identifier")
        return token


def _parse_requirement(tokens: _Tokens) -> Requirement:
    negated = tokens.next == "!"
    if negated:
        tokens.take()
    key = tokens.identifier()
    if errors := names.qualified_name(key):
        raise FormatError(_invalid("<nil>", quote(key), errors))
    if negated:
        return Requirement(key, NOT_EXISTS)
    if tokens.next in ("", ","):
        return Requirement(key, EXISTS)
    sign = tokens.take()
    operator = _TEXT_OPERATORS.get(sign)
    if operator is None:
        raise FormatError(f"found '{sign}', expected: {', '.join(_BINARY)}")
    if operator in (IN, NOT_IN):
        return _checked(key, operator, _parse_values(tokens))
    value = "" if tokens.next in ("", ",") else tokens.identifier()
    return _checked(key, operator, (value,))


def _parse_values(tokens: _Tokens) -> tuple[str, ...]:
    opening = tokens.take()
    if opening != "(":
        raise FormatError(f"found '{opening}' expected: '('")
    if tokens.next in _NO_IDENTIFIER and tokens.next not in (",", ")"):
        raise FormatError(f"found '{tokens.next}', expected: ',', ')' or identifier")
    values: set[str] = set()
    while True:
        present = tokens.next not in _NO_IDENTIFIER
        values.add(tokens.take() if present else "")
        separator = tokens.take()
        if separator == ")":
            return tuple(sorted(values))
        if separator != ",":
            expected = "',' or ')'" if present else "',', or identifier"
            raise FormatError(f"found '{separator}', expected: {expected}")
