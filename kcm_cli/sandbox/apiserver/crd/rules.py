"""Runs the validation rules (x-kubernetes-validations) of a schema.

If an update does not change a value, a broken rule that does not use oldSelf is only a warning (ratcheting).

All rules of an object share a cost budget. When it is used up, or a rule exceeds its own limit, no more rules run.

upstream: apiextensions-apiserver pkg/apiserver/schema/cel/{validation,compilation,values}.go
"""

import base64
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import NoReturn

import msgspec

from kcm_cli.machinery import cel
from kcm_cli.machinery.cel.texts import zoned_time
from kcm_cli.machinery.cel.values import NONE, AssociativeList, CelError, Optional, Value
from kcm_cli.machinery.durations import parse_nanoseconds
from kcm_cli.machinery.errors import FormatError
from kcm_cli.machinery.quoting import quote
from kcm_cli.machinery.same import same
from kcm_cli.machinery.times import parse_time
from kcm_cli.machinery.whole_floats import has_whole_float
from kcm_cli.sandbox.apiserver.crd.expressions import uses
from kcm_cli.sandbox.apiserver.crd.field_paths import resolve
from kcm_cli.sandbox.apiserver.crd.findings import invalid, shown
from kcm_cli.sandbox.apiserver.crd.lists import by_key, item_key, unchanged
from kcm_cli.sandbox.apiserver.crd.structural import Structural
from kcm_cli.sandbox.apiserver.crd.values import ABSENT
from kcm_cli.sandbox.apiserver.types import FieldError, Tree
from kcm_cli.sandbox.apiserver.validation import errors

_LONGEST_MESSAGE = 5 * 1024
_BUDGET = 10_000_000
_NO_MORE = "no further validation rules will be run"
_RULES = "x-kubernetes-validations"


class _Rule(msgspec.Struct, frozen=True):
    """A rule. path: fieldPath, relative to the rule's value. compares: it uses oldSelf. program: None if the rule
    cannot be compiled; problem: why.
    """

    raw: Tree
    program: cel.Program | None
    message: cel.Program | None = None
    compares: bool = False
    path: str = ""
    problem: str = ""

    @property
    def text(self) -> str:
        """The rule's message, or the rule itself."""
        return str(self.raw.get("message") or self.raw["rule"]).strip()


class _Outcome(msgspec.Struct):
    """Errors and warnings. floats: the object has whole floats, which are no integers. budget: the remaining cost."""

    errors: list[FieldError]
    warnings: list[str]
    floats: bool
    budget: int = _BUDGET
    ended: bool = False

    def spend(self, cost: int) -> bool:
        """Reduce the budget. False if it was not sufficient."""
        self.budget -= cost
        return self.budget >= 0

    def end(self, error: FieldError) -> FieldError:
        """Run no more rules."""
        self.ended = True
        return error


class RuleSet:
    """The rules of a schema and of its parts."""

    def __init__(self, schema: Structural, compile_: "Compile") -> None:
        self._schema = schema
        self._rules = [compile_(raw, schema) for raw in schema.raw.get(_RULES) or () if raw["rule"].strip()]
        self._converts = bool(self._rules) and _converts(schema)
        self._items = _rules_of(schema.items, compile_)
        self._values = _rules_of(schema.values, compile_)
        parts = ((name, _rules_of(sub, compile_)) for name, sub in schema.properties.items())
        self._properties = {name: found for name, found in parts if found}

    @property
    def empty(self) -> bool:
        return not (self._rules or self._items or self._values or self._properties)

    def check(self, new: object, old: object, path: str = "") -> list[FieldError]:
        """The errors of a value. ``old``: None on creation."""
        return self._run(new, old, path).errors

    def warnings(self, new: object, old: object) -> list[str]:
        """The errors in unchanged values, as warnings."""
        return self._run(new, old, "").warnings

    def _run(self, new: object, old: object, path: str) -> _Outcome:
        outcome = _Outcome([], [], has_whole_float(new))
        self._check(new, old, path, ABSENT if old is None else old, outcome)
        return outcome

    def _check(self, new: object, old: object, path: str, known: object, outcome: _Outcome) -> None:
        """``known``: the value in the old object. An item that cannot be correlated counts as unchanged if its whole
        list is; otherwise ABSENT.
        """
        if new is None or outcome.ended:
            return
        ratchets: bool | None = None
        scope = self._scope(new, old, floats=outcome.floats) if self._rules else {}
        for rule in self._rules:
            if rule.compares and old is None and not rule.raw.get("optionalOldSelf"):
                continue
            error, broken = self._judge(rule, new, self._for(rule, scope, old), path, outcome)
            if error is None:
                continue
            if broken and not rule.compares and ratchets is None:
                ratchets = known is not ABSENT and unchanged(self._schema.raw, new, known)
            if broken and not rule.compares and ratchets:
                outcome.warnings.append(f"{error.field}: {error.message}")
            else:
                outcome.errors.append(error)
            if outcome.ended:
                return
        self._check_below(new, old, path, known, outcome)

    def _check_below(self, new: object, old: object, path: str, known: object, outcome: _Outcome) -> None:
        if isinstance(new, dict):
            before = old if isinstance(old, dict) else {}
            past = known if isinstance(known, dict) else {}
            if self._values is not None:
                for key, item in sorted(new.items()):
                    self._values._check(item, before.get(key), f"{path}[{key}]", past.get(key, ABSENT), outcome)
            for key, sub in sorted(self._properties.items()):
                if key in new:
                    where = f"{path}.{key}" if path else key
                    sub._check(new[key], before.get(key), where, past.get(key, ABSENT), outcome)
        elif isinstance(new, list) and self._items is not None:
            keys = self._schema.list_keys
            before = by_key(keys, old) if self._schema.list_type == "map" and isinstance(old, list) else {}
            whole = self._schema.list_type != "map" and known is not ABSENT and same(new, known)
            for index, item in enumerate(new):
                match = before.get(item_key(keys, item))
                seen = match if match is not None else (item if whole else ABSENT)
                self._items._check(item, match, f"{path}[{index}]", seen, outcome)

    def _scope(self, new: object, old: object, *, floats: bool) -> dict[str, Value]:
        value = to_cel(self._schema, new) if self._converts or floats else new
        scope: dict[str, Value] = {"self": value.fail if isinstance(value, _Unfit) else value}
        if old is not None:
            scope["oldSelf"] = to_cel(self._schema, old) if self._converts else old
        return scope

    def _for(self, rule: _Rule, scope: dict[str, Value], old: object) -> Mapping[str, Value]:
        if not rule.raw.get("optionalOldSelf"):
            return scope
        return {**scope, "oldSelf": NONE if old is None else Optional(scope["oldSelf"], True)}

    def _judge(
        self, rule: _Rule, value: object, scope: Mapping[str, Value], path: str, outcome: _Outcome
    ) -> tuple[FieldError | None, bool]:
        """The error, if any, and whether the rule is broken: True if it is false, False if it failed to run."""
        type_, place = self._schema.type, path or "<nil>"
        if rule.program is None:
            return invalid(place, type_, f"rule compile error: {rule.problem}"), False
        passed, failure = _evaluated(rule.program, scope)
        if not outcome.spend(rule.program.cost):
            why = f"validation failed due to running out of cost budget, {_NO_MORE}"
            return outcome.end(invalid(place, type_, why)), False
        if isinstance(failure, cel.CelCancelled):
            why = f"{_NO_MORE} due to call cost exceeds limit for rule: {rule.text}"
            return outcome.end(invalid(place, type_, f"'{failure}': {why}")), False
        if failure is not None:
            return invalid(place, type_, _failed(str(failure), rule)), False
        if passed is True:
            return None, False
        where = f"{path}.{rule.path}" if path and rule.path else path or rule.path or "<nil>"
        message, problem = _message(rule, scope, outcome)
        if problem:
            return outcome.end(invalid(where, type_, problem)), True
        return _error(where, value, type_, message, rule.raw.get("reason")), True


def _failed(text: str, rule: _Rule) -> str:
    if text.startswith("no such overload"):
        said = "call arguments did not match a supported operator, function or macro signature for rule"
        return f"'{text}': {said}: {rule.text}"
    return f"{text} evaluating rule: {rule.text}"


def _evaluated(program: cel.Program, scope: Mapping[str, Value]) -> tuple[Value, CelError | None]:
    """The value, or the error."""
    try:
        return program.evaluate(scope), None
    except CelError as error:
        return None, error


def _message(rule: _Rule, scope: Mapping[str, Value], outcome: _Outcome) -> tuple[str, str]:
    """The message of a rule that is false, or an error that ends the run."""
    if rule.message is not None:
        text, failure = _evaluated(rule.message, scope)
        if not outcome.spend(rule.message.cost):
            return "", f"messageExpression evaluation failed due to running out of cost budget, {_NO_MORE}"
        if isinstance(failure, cel.CelCancelled):
            return "", f"{_NO_MORE} due to call cost exceeds limit for messageExpression: {quote(rule.message.text)}"
        if isinstance(text, str):
            text = text.strip()
            if text and "\n" not in text and len(text.encode()) <= _LONGEST_MESSAGE:
                return text, ""
    message = str(rule.raw.get("message") or "").strip()
    return message or f"failed rule: {rule.text}", ""


def _error(path: str, value: object, type_: str, detail: str, reason: str | None) -> FieldError:
    bare = type_ in ("object", "array")
    match reason:
        case "FieldValueForbidden":
            return errors.forbidden(path, detail)
        case "FieldValueRequired":
            return errors.required(path, detail)
        case "FieldValueDuplicate":
            return FieldError(
                "FieldValueDuplicate", path, "Duplicate value" if bare else f"Duplicate value: {shown(value)}"
            )
    text = "Invalid value" if bare else f"Invalid value: {shown(value)}"
    return FieldError("FieldValueInvalid", path, f"{text}: {detail}")


def _compiled(raw: Tree, schema: Structural) -> _Rule:
    """Raises CelSyntaxError; definitions with such rules are not accepted."""
    program = cel.Program(raw["rule"])
    message = cel.Program(raw["messageExpression"]) if raw.get("messageExpression") else None
    path = resolve(raw["fieldPath"], schema)[0] if raw.get("fieldPath") else ""
    return _Rule(raw, program, message, uses(program.node, "oldSelf"), path)


Compile = Callable[[Tree, Structural], _Rule]


def _unchecked(problem: Callable[[Tree, Structural], str]) -> Compile:
    def compiled(raw: Tree, schema: Structural) -> _Rule:
        if found := problem(raw, schema):
            return _Rule(raw, None, problem=found)
        try:
            return _compiled(raw, schema)
        except (cel.CelProblem, FormatError):
            return _Rule(raw, cel.Program(raw["rule"]))  # a wrong message or path is reported elsewhere

    return compiled


def _rules_of(schema: Structural | None, compile_: Compile) -> RuleSet | None:
    if schema is None:
        return None
    found = RuleSet(schema, compile_)
    return None if found.empty else found


def rules_of(schema: Structural, problem: Callable[[Tree, Structural], str] | None = None) -> RuleSet | None:
    """The rules of a schema; None if there are none. ``problem``: returns the compile error of a rule, for schemas that
    have not been validated.
    """
    return _rules_of(schema, _compiled if problem is None else _unchecked(problem))


# Values


def _converts(schema: Structural) -> bool:
    """Whether values have to be converted by ``to_cel``."""
    if schema.nullable or schema.type == "number" or schema.list_type in ("set", "map"):
        return True
    if schema.type == "string" and schema.raw.get("format") in _FORMATS:
        return True
    return any(_converts(sub) for sub in schema.subschemas())


class _Unfit:
    """A value of the wrong type, on which rules fail."""

    def __init__(self, text: str) -> None:
        self._text = text
        self.fail = cel.Lazy(self.read)

    def read(self) -> NoReturn:
        """Raises CelError."""
        raise CelError(self._text)


class _Fields(dict[str, Value]):
    """An object with ``_Unfit`` values."""

    def __getitem__(self, key: str) -> Value:
        value = super().__getitem__(key)
        return value.read() if isinstance(value, _Unfit) else value

    def __contains__(self, key: object) -> bool:
        found = super().__contains__(key)
        if found:
            self[str(key)]  # raises CelError for an unfit value
        return found


class _Items(list[Value]):
    """A list with an ``_Unfit`` item. Rules fail on all items."""

    def __init__(self, unfit: _Unfit, size: int) -> None:
        super().__init__([None] * size)
        self._unfit = unfit

    def __getitem__(self, index: object) -> NoReturn:
        self._unfit.read()

    def __iter__(self) -> NoReturn:
        self._unfit.read()


def to_cel(schema: Structural | None, value: object) -> Value:
    """A JSON value, converted to the types of CEL."""
    if schema is None or value is None:
        return value
    if isinstance(value, dict):
        declared = schema.properties  # declared fields that are null count as absent
        shown = ((key, item) for key, item in value.items() if item is not None or key not in declared)
        fields = {key: to_cel(schema.child(key), item) for key, item in shown}
        return _Fields(fields) if any(isinstance(item, _Unfit) for item in fields.values()) else fields
    if isinstance(value, list):
        items = [to_cel(schema.items, item) for item in value]
        if unfit := [item for item in items if isinstance(item, _Unfit)]:
            return _Items(unfit[0], len(items))
        return AssociativeList(items, schema.list_keys) if schema.list_type in ("set", "map") else items
    if schema.type == "number" and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if isinstance(value, float) and schema.int_or_string:
        return _Unfit("invalid data, expected XIntOrString value to be either a string or integer")
    if isinstance(value, float) and schema.type == "integer":
        return _Unfit("invalid data, expected int, got float64")
    if isinstance(value, str) and schema.type == "string":
        convert = _FORMATS.get(schema.raw.get("format") or "")
        if convert is not None:
            try:
                return convert(value)
            except (FormatError, ValueError):
                return value
    return value


def _bytes(text: str) -> Value:
    return base64.b64decode(text, validate=True)


def _date(text: str) -> Value:
    return parse_time(f"{text}T00:00:00Z")


def _duration(text: str) -> Value:
    return cel.Duration.of(timedelta(microseconds=parse_nanoseconds(text) / 1000))


_FORMATS: dict[str, Callable[[str], Value]] = {
    "byte": _bytes,
    "date": _date,
    "date-time": zoned_time,
    "duration": _duration,
}
