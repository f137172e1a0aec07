"""Field selectors: ``metadata.name=a,status.phase!=Running``.

This is the grammar only; which fields a resource supports is defined with the resource (``sandbox.apiserver``). In
values, ``\\``, ``,`` and ``=`` are written with a backslash before them.

upstream: apimachinery pkg/fields/selector.go
"""

import re
from collections.abc import Mapping

import msgspec

from kcm_cli.machinery.errors import FormatError

_term = re.compile(r"(?:[^\\,]|\\.)*\\?", re.DOTALL).match
_operator = re.compile("!=|==|=")
_escape = re.compile(r"\\(.?)|[,=]", re.DOTALL)


class FieldRequirement(msgspec.Struct, frozen=True):
    """``field`` must have this value or, if ``equal`` is False, another one."""

    field: str
    value: str
    equal: bool = True

    def __str__(self) -> str:
        return f"{self.field}{'=' if self.equal else '!='}{escape(self.value)}"


class FieldSelector(msgspec.Struct, frozen=True):
    """All requirements must be met. An absent field counts as empty."""

    requirements: tuple[FieldRequirement, ...] = ()

    @property
    def empty(self) -> bool:
        """Whether it matches everything."""
        return not self.requirements

    def matches(self, fields: Mapping[str, str]) -> bool:
        return all((fields.get(r.field, "") == r.value) is r.equal for r in self.requirements)

    def exact(self, field: str) -> str | None:
        """The value that the field must have; None if there is no such requirement."""
        for requirement in self.requirements:
            if requirement.field == field and requirement.equal:
                return requirement.value
        return None

    def __str__(self) -> str:
        return ",".join(str(requirement) for requirement in self.requirements)


EVERYTHING = FieldSelector()


def parse(text: str) -> FieldSelector:
    """Parse a selector; terms are sorted, empty ones skipped. Raises FormatError with upstream's texts."""
    if not text:
        return EVERYTHING
    found = (_requirement(term, text) for term in sorted(_terms(text)) if term)
    return FieldSelector(tuple(one for one in found if one.field or one.value))  # a bare sign restricts nothing


def escape(value: str) -> str:
    """The value, escaped for a selector."""
    return value.replace("\\", "\\\\").replace(",", "\\,").replace("=", "\\=")


def _terms(text: str) -> list[str]:
    terms, at = [], 0
    while at <= len(text) and (term := _term(text, at)) is not None:
        terms.append(term[0])
        at = term.end() + 1
    return terms


def _requirement(term: str, text: str) -> FieldRequirement:
    operator = _operator.search(term)
    if operator is None:
        raise FormatError(f"invalid selector: '{text}'; can't understand '{term}'")
    value = _unescape(term[operator.end() :])
    return FieldRequirement(term[: operator.start()], value, equal=operator[0] != "!=")


def _unescape(value: str) -> str:
    if not _escape.search(value):
        return value
    return _escape.sub(_unescaped, value)


def _unescaped(match: re.Match[str]) -> str:
    if match[1] is None:
        raise FormatError(f"invalid field selector: unescaped character in value: {ord(match[0])}")
    if match[1] not in ("\\", ",", "="):
        raise FormatError(f"invalid field selector: invalid escape sequence: {match[0]}")
    return match[1]
