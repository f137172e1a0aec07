"""Validates values against a schema, with the errors of kube-openapi's validator in the same order.

On updates, errors in unchanged values are not reported (ratcheting). Values are correlated with those of the old object
by field names, and by the keys of lists of type map.

upstream: kube-openapi pkg/validation/validate,
apiextensions-apiserver pkg/apiserver/validation/{validation,ratcheting}.go
"""

import math
from typing import Any, cast

from kcm_cli.machinery.errors import FormatError
from kcm_cli.machinery.regexps import compile_go
from kcm_cli.machinery.same import same
from kcm_cli.machinery.whole_floats import widen
from kcm_cli.sandbox.apiserver.crd.findings import Findings, number
from kcm_cli.sandbox.apiserver.crd.formats import check_of, recognized
from kcm_cli.sandbox.apiserver.crd.lists import by_key, identity, item_key, unchanged

ABSENT = object()
"""There is no old value to compare with."""

_TYPES: dict[type, str] = {
    bool: "boolean",
    str: "string",
    int: "integer",
    float: "number",
    list: "array",
    dict: "object",
}
_MOST_EXACT = (1 << 53) - 1
"""The largest integer that every reader of JSON knows exactly."""
_INT_LIMITS = {"int32": 1 << 31, "int64": 1 << 63, "": 1 << 63}
_FLOAT32_MOST = 3.4028235677973366e38


def type_of(value: object) -> str:
    """The JSON type of a value."""
    return "null" if value is None else _TYPES[type(value)]


class Checker:
    """Validates values against a schema (JSONSchemaProps)."""

    __slots__ = (
        "_raw", "_types", "_nullable", "_format", "_string_format", "_enum", "_numeric", "_items", "_properties",
        "_additional", "_any", "_one", "_all", "_not", "_required", "_lone", "_number_format",
    )  # fmt: skip

    def __init__(self, raw: dict[str, Any], *, unions: bool = True) -> None:
        """``unions``: check the type of x-kubernetes-int-or-string values, which upstream does not for defaults."""
        self._raw = raw
        both = unions and raw.get("x-kubernetes-int-or-string")
        self._types: tuple[str, ...] = ("integer", "string") if both else ((raw["type"],) if raw.get("type") else ())
        self._nullable = bool(raw.get("nullable"))
        format_ = raw.get("format") or ""
        self._lone = self._types[0] if len(self._types) == 1 else ""
        self._format = format_ if recognized(format_, self._lone) else ""
        self._string_format = check_of(self._format)
        self._number_format = self._format if self._lone in ("integer", "number") else ""
        self._enum: list[object] = raw.get("enum") or []
        items, additional, negated = raw.get("items"), raw.get("additionalProperties"), raw.get("not")
        self._items = Checker(items, unions=unions) if isinstance(items, dict) else None
        self._additional = Checker(additional, unions=unions) if isinstance(additional, dict) else None
        self._properties = {
            name: Checker(sub, unions=unions) for name, sub in sorted((raw.get("properties") or {}).items())
        }
        self._required: list[str] = raw.get("required") or []
        self._any = [Checker(sub, unions=unions) for sub in raw.get("anyOf") or ()]
        self._one = [Checker(sub, unions=unions) for sub in raw.get("oneOf") or ()]
        self._all = [Checker(sub, unions=unions) for sub in raw.get("allOf") or ()]
        self._not = Checker(negated, unions=unions) if isinstance(negated, dict) else None

    def check(self, value: object, old: object = ABSENT) -> Findings:
        """The errors of a value."""
        return self._ratcheted(value, "", old)

    def _ratcheted(self, value: object, path: str, old: object) -> Findings:
        found = Findings()
        self._run(value, path, found, old)
        if found.errors and old is not ABSENT and unchanged(self._raw, value, old):
            found.errors.clear()
        return found

    def _sub(self, value: object, path: str, found: Findings, old: object) -> None:
        """Add the errors of a field or item."""
        if old is ABSENT:
            self._run(value, path, found, old)
        else:
            found.merge(self._ratcheted(value, path, old))

    def _run(self, value: object, path: str, found: Findings, old: object) -> None:
        self._check_type(value, path, found)
        if value is None:
            self._check_enum(value, path, found)
            return
        self._check_alternatives(value, path, found)
        if isinstance(value, str):
            self._check_string(value, path, found)
        elif isinstance(value, list):
            self._check_list(value, path, found, old)
        elif isinstance(value, int | float) and not isinstance(value, bool):
            self._check_number(value, path, found)
        self._check_enum(value, path, found)
        if isinstance(value, dict):
            self._check_object(value, path, found, old)
        found.matches += 3

    def _check_type(self, value: object, path: str, found: Findings) -> None:
        types, format_ = self._types, self._format
        if not types and not format_:
            return
        found.matches += 1
        if value is None:
            if types and not self._nullable:
                found.wrong_type(path, ",".join(types), "null")
            return
        kind = type_of(value)
        fits = kind in types or (kind == "integer" and "number" in types)
        fits = fits or (isinstance(value, float) and "integer" in types and _whole(value))
        texts = isinstance(value, str | list)
        if not texts and format_ and not fits:
            own = {"integer": "int64", "number": "float64"}.get(kind, "")
            if own != format_:
                found.wrong_type(path, format_, own)
                return
        if texts and format_ and not ("number" in types or "integer" in types):
            return
        if not fits:
            found.wrong_type(path, ",".join(types), kind)

    def _check_alternatives(self, value: object, path: str, found: Findings) -> None:
        """Check anyOf, oneOf, allOf and not, without ratcheting."""
        found.matches += 2
        if self._any:
            self._check_any(value, path, found)
        if self._one:
            self._check_one(value, path, found)
        if self._all:
            results = [sub._made(value, path) for sub in self._all]
            for result in results:
                found.merge(result)
            if not all(result.valid for result in results):
                none = "" if any(result.valid for result in results) else ". None validated"
                found.composite(f'"{path}" must validate all the schemas (allOf){none}')
        if self._not is not None and self._not._made(value, path).valid:
            found.composite(f'"{path}" must not validate the schema (not)')

    def _made(self, value: object, path: str) -> Findings:
        found = Findings()
        self._run(value, path, found, ABSENT)
        return found

    def _check_any(self, value: object, path: str, found: Findings) -> None:
        best: Findings | None = None
        for sub in self._any:
            result = sub._made(value, path)
            if result.valid:
                found.merge(result)
                return
            if best is None or result.matches > best.matches:
                best = result
        found.composite(f'"{path}" must validate at least one schema (anyOf)')
        if best is not None:
            found.merge(best)

    def _check_one(self, value: object, path: str, found: Findings) -> None:
        results = [sub._made(value, path) for sub in self._one]
        valid = [result for result in results if result.valid]
        if len(valid) == 1:
            found.merge(valid[0])
            return
        how = f"Found {len(valid)} valid alternatives" if valid else "Found none valid"
        found.composite(f'"{path}" must validate one and only one schema (oneOf). {how}')
        if not valid:
            found.merge(max(results, key=lambda result: result.matches))

    def _check_string(self, value: str, path: str, found: Findings) -> None:
        raw = self._raw
        most, least, pattern = raw.get("maxLength"), raw.get("minLength"), raw.get("pattern")
        if most is not None and len(value) > most:
            found.too_long(path, most)
        elif least is not None and len(value) < least:
            found.invalid(path, value, f"should be at least {least} chars long")
        elif pattern:
            self._check_pattern(value, pattern, path, found)
        found.matches += 1
        if self._string_format is not None:
            if not self._string_format(value):
                found.wrong_type(path, self._format, value)
            found.matches += 1

    def _check_pattern(self, value: str, pattern: str, path: str, found: Findings) -> None:
        try:
            if not compile_go(pattern).matches(value):
                found.invalid(path, value, f"should match '{pattern}'")
        except FormatError as error:
            found.invalid(path, value, f"should match '{pattern}, but pattern is invalid: {error}'")

    def _check_number(self, value: float, path: str, found: Findings) -> None:
        raw = self._raw
        self._check_range(value, "Checked", path, found)
        factor, least, most = (_limit(raw.get(name)) for name in ("multipleOf", "minimum", "maximum"))
        if factor is not None:
            given, factor = self._alike(value, factor, "MultipleOf", path, found)
            if factor <= 0:
                found.not_positive(path, factor)
            elif not _is_multiple(given, factor):
                found.invalid(path, given, f"should be a multiple of {number(factor)}")
        if least is not None:
            given, least = self._alike(value, least, "Minimum boundary", path, found)
            apart = bool(raw.get("exclusiveMinimum"))
            if given <= least if apart else given < least:
                than = "greater than" if apart else "greater than or equal to"
                found.invalid(path, given, f"should be {than} {number(least)}")
        if most is not None:
            given, most = self._alike(value, most, "Maximum boundary", path, found)
            apart = bool(raw.get("exclusiveMaximum"))
            if given >= most if apart else given > most:
                than = "less than" if apart else "less than or equal to"
                found.invalid(path, given, f"should be {than} {number(most)}")
        found.matches += 2

    def _alike(self, value: float, limit: float, what: str, path: str, found: Findings) -> tuple[float, float]:
        """A number and a limit for comparison: integers if the number is one and the limit fits the type (its fraction
        is cut off), otherwise floats.
        """
        fits = self._check_range(limit, what, path, found)
        if fits and isinstance(value, int):
            return value, int(limit)
        return float(value), float(limit)

    def _check_range(self, value: float, what: str, path: str, found: Findings) -> bool:
        """Whether a number (or a limit of the schema) fits the type."""
        type_, format_ = self._lone, self._number_format
        if type_ == "integer":
            limit = _INT_LIMITS.get(format_, 1 << 63)
            fits = value == int(value) and -limit <= value < limit if math.isfinite(value) else False
        else:
            fits = format_ != "float" or abs(value) <= _FLOAT32_MOST
        if not fits:
            how = f"with format {format_}" if format_ else "(default format)"
            found.composite(f"{what} value must be of type {type_} {how} in {path}")
        return fits

    def _check_list(self, value: list[object], path: str, found: Findings, old: object) -> None:
        raw = self._raw
        if self._items is not None:
            keys = raw.get("x-kubernetes-list-map-keys") or ()
            is_map = raw.get("x-kubernetes-list-type") == "map"
            before = by_key(keys, old) if is_map and isinstance(old, list) else {}
            for index, item in enumerate(value):
                known = before.get(item_key(keys, item), ABSENT) if before else ABSENT
                self._items._sub(item, f"{path}[{index}]", found, known)
        size, least, most = len(value), raw.get("minItems"), raw.get("maxItems")
        if least is not None and size < least:
            found.invalid(path, size, f"should have at least {least} items")
        if most is not None and size > most:
            found.too_many(path, size, most, "items")
        if raw.get("uniqueItems") and len({identity(item) for item in value}) < size:
            found.invalid(path, "", "shouldn't contain duplicates")
        found.matches += 2

    def _check_enum(self, value: object, path: str, found: Findings) -> None:
        if self._enum and (value is None or not any(_equal(value, one) for one in self._enum)):
            found.not_supported(path, value, self._enum)
        found.matches += 1

    def _check_object(self, value: dict[str, object], path: str, found: Findings, old: object) -> None:
        raw, size = self._raw, len(value)
        least, most = raw.get("minProperties"), raw.get("maxProperties")
        if least is not None and size < least:
            found.invalid(path, size, f"should have at least {least} properties")
        if most is not None and size > most:
            found.too_many(path, size, most, "properties")
        before: dict[str, object] = old if isinstance(old, dict) else {}
        self._check_additional(value, path, found, before)
        for name, sub in self._properties.items():
            if name in value:
                known = before.get(name, ABSENT) if path or name not in ("kind", "apiVersion") else ABSENT
                sub._sub(value[name], f"{path}.{name}" if path else name, found, known)
        for name in self._required:
            if name not in value:
                found.required(f"{path}.{name}")
        found.matches += 1

    def _check_additional(
        self, value: dict[str, object], path: str, found: Findings, before: dict[str, object]
    ) -> None:
        """Check the fields that are not in properties."""
        if self._additional is not None:
            for key, item in value.items():
                if key not in self._properties:
                    self._additional._sub(item, f"{path}.{key}", found, before.get(key, ABSENT))
        elif self._raw.get("additionalProperties") is False:
            for key in value:
                if key not in self._properties:
                    found.composite(f"{path}.{key} in body is a forbidden property")


def _whole(value: float) -> bool:
    """Whether a float is an integer that JSON can represent exactly."""
    return math.isfinite(value) and value == int(value) and abs(value) <= _MOST_EXACT


def _is_multiple(value: float, factor: float) -> bool:
    if isinstance(value, int) and factor == int(factor):
        return value % int(factor) == 0
    quotient = value / factor if factor >= 1 else 1 / factor * value
    exact = math.isfinite(quotient) and abs(quotient) <= _MOST_EXACT
    return exact and math.isclose(quotient, round(quotient), rel_tol=1e-9, abs_tol=0)


def _limit(limit: float | None) -> float | None:
    return limit if limit is None else cast("float", widen(limit))


def _equal(value: object, choice: object) -> bool:
    """Equality for enums: numbers are compared by value, without the fraction if the choice is an integer."""
    if isinstance(value, bool) or isinstance(choice, bool):
        return value is choice
    if isinstance(value, int | float) and isinstance(choice, int | float):
        given, wanted = widen(value), widen(choice)
        if isinstance(given, float) and isinstance(wanted, int) and math.isfinite(given):
            given = int(given)
        return given == wanted
    return same(value, choice)
