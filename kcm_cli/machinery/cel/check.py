"""The type checker: finds unknown names and fields, and operators and functions without a matching overload.

upstream: cel-go checker/checker.go
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from kcm_cli.machinery.cel.errors import CelTypeError, located
from kcm_cli.machinery.cel.literals import bad_literals
from kcm_cli.machinery.cel.signatures import Overload, overloads
from kcm_cli.machinery.cel.syntax import (
    Call,
    Constant,
    Ident,
    ListNode,
    Macro,
    MapNode,
    Node,
    Select,
    StructNode,
    qualified_name,
)
from kcm_cli.machinery.cel.types import (
    BOOL,
    BYTES,
    DOUBLE,
    DURATION,
    DYN,
    ERROR,
    INT,
    NULL,
    STRING,
    TIMESTAMP,
    TYPE,
    UINT,
    Bindings,
    Type,
    list_of,
    map_of,
    most_general,
    optional_of,
    type_of,
    unwrapped,
)
from kcm_cli.machinery.cel.values import Literal, Uint

Fields = Mapping[str, Type]
_A, _B = Type("A", variable=True), Type("B", variable=True)
_NAMED_TYPES = {
    kind.name: type_of(kind)
    for kind in (BOOL, BYTES, DOUBLE, DURATION, INT, list_of(_A), map_of(_A, _B), NULL, STRING, TIMESTAMP, TYPE, UINT)
}
_OBJECTS = "kubernetes."
_MAX_ERRORS = 100


def no_objects(name: str) -> Fields | None:
    """An ``objects`` function without object types."""
    return None


class Environment(msgspec.Struct, frozen=True):
    """The names that an expression may use. objects: returns the fields of an object type by its name, or None."""

    variables: Mapping[str, Type] = msgspec.field(default_factory=dict)
    objects: Callable[[str], Fields | None] = no_objects

    def with_variables(self, variables: Mapping[str, Type]) -> "Environment":
        return replace(self, variables={**self.variables, **variables})


class Checked(msgspec.Struct, frozen=True):
    """The result type, and the type of each node by its ``id`` (valid while the nodes exist)."""

    result: Type
    types: Mapping[int, Type]


def check(text: str, node: Node, environment: Environment) -> Checked:
    """Check an expression. Raises CelTypeError with all errors."""
    checker = Checker(environment)
    checker.check(node)
    types = {key: checker.bindings.resolved(kind, final=True) for key, kind in checker.types.items()}
    problems = checker.errors or list(bad_literals(node, types))
    if problems:
        found = sorted(problems, key=lambda each: each[0])[:_MAX_ERRORS]
        lines = [located(text, offset, message) for offset, message in found]
        if len(problems) > _MAX_ERRORS:
            lines.append(f"{len(problems) - _MAX_ERRORS} more errors were truncated")
        raise CelTypeError("\n".join(lines))
    return Checked(types[id(node)], types)


class Checker:
    """Checks a tree once. ``errors``: offsets and messages."""

    def __init__(self, environment: Environment) -> None:
        self.bindings = Bindings()
        self.errors: list[tuple[int, str]] = []
        self.types: dict[int, Type] = {}
        self._environment = environment
        self._locals: dict[str, Type] = {}

    def check(self, node: Node) -> Type:
        """The type of a node. A level of the tree takes few frames of Python, whose number is limited."""
        found = self.types[id(node)] = _CHECKS[type(node)](self, node)
        return found

    def _constant(self, node: Constant) -> Type:
        return _literal(node.value)

    # Names and fields

    def _ident(self, node: Ident) -> Type:
        found = self._named(node.name)
        if found is None:
            return self._undeclared(node.offset, node.name)
        return found

    def _named(self, name: str) -> Type | None:
        if not name.startswith(".") and name in self._locals:
            return self._locals[name]
        name = name.removeprefix(".")
        found = self._environment.variables.get(name) or _NAMED_TYPES.get(name)
        if found is None and self._environment.objects(name) is not None:
            return type_of(Type(name))
        return found

    def _undeclared(self, offset: int, name: str) -> Type:
        return self.wrong(offset, f"undeclared reference to '{name}' (in container '')")

    def wrong(self, offset: int, message: str) -> Type:
        """Record an error. Its type causes no further errors."""
        self.errors.append((offset, message))
        return ERROR

    def _select(self, node: Select) -> Type:
        qualified = qualified_name(node)
        found = self._named(qualified) if qualified else None
        if found is not None:
            return found
        kind = self._field(node)
        return BOOL if node.test else self.bindings.resolved(kind)

    def _field(self, node: Select) -> Type:
        whole, was_optional = unwrapped(self.bindings.resolved(self.check(node.operand)))
        result = self._field_of(node, whole)
        return optional_of(result) if was_optional or node.optional else result

    def _field_of(self, node: Select, whole: Type) -> Type:
        if whole.name == "map":
            return whole.params[1]
        if whole.variable:
            self.bindings.accepts(DYN, whole)
            return DYN
        if whole.dynamic:
            return DYN
        fields = self._environment.objects(whole.name)
        if fields is not None:
            return self._known_field(node.offset, fields, node.field)
        if whole.name.startswith(_OBJECTS):
            return self.wrong(node.offset, f"unexpected failed resolution of '{whole}'")
        self.wrong(node.offset, f"type '{whole}' does not support field selection")
        return DYN

    def _known_field(self, offset: int, fields: Fields, name: str) -> Type:
        found = fields.get(name)
        return self.wrong(offset, f"undefined field '{name}'") if found is None else found

    # Calls

    def _call(self, node: Call) -> Type:
        args: list[Type] = []
        for arg in node.args:  # a comprehension takes a frame
            args.append(self.check(arg))
        known = overloads()
        if node.target is None:
            if node.function not in known:
                return self._undeclared(node.offset, node.function)
            return self.resolve(node.offset, node.function, args, args_at=node.args)
        prefix = qualified_name(node.target)
        qualified = f"{prefix}.{node.function}" if prefix else ""
        if qualified in known and self._offers(qualified):
            return self.resolve(node.offset, qualified, args)
        target = self.check(node.target)
        if node.function not in known:
            return self._undeclared(node.offset, node.function)
        return self.resolve(node.offset, node.function, [target, *args], method=True)

    def _offers(self, function: str) -> bool:
        """Whether the environment has the function. Only expressions that make JSON patches have those for them."""
        return not function.startswith("jsonpatch.") or self._environment.objects("JSONPatch") is not None

    def resolve(
        self, offset: int, name: str, args: Sequence[Type], *, method: bool = False, args_at: Sequence[Node] = ()
    ) -> Type:
        """The result type of a call. It is dynamic if several overloads match and their results differ."""
        if name in ("_&&_", "_||_"):
            return self._logical(args, args_at)
        result: Type | None = None
        for form in overloads()[name]:
            if form.method is not method:
                continue
            given, made = self._instance(form)
            if self.bindings.accept_all(args, given):
                made = self.bindings.resolved(made)
                if result is None:
                    result = made
                elif result != DYN and made != result:
                    result = DYN
        if result is not None:
            return result
        shown = [str(self.bindings.resolved(each, final=True)) for each in args]
        signature = f"{shown[0]}.({', '.join(shown[1:])})" if method else f"({', '.join(shown)})"
        return self.wrong(offset, f"found no matching overload for '{name}' applied to '{signature}'")

    def _logical(self, args: Sequence[Type], at: Sequence[Node]) -> Type:
        result = BOOL
        for arg, node in zip(args, at, strict=True):
            if not self.bindings.accepts(arg, BOOL):
                result = self.mismatch(node.offset, BOOL, arg)
        return result

    def mismatch(self, offset: int, wanted: Type, given: Type) -> Type:
        return self.wrong(offset, f"expected type '{wanted}' but found '{given}'")

    def _instance(self, form: Overload) -> tuple[tuple[Type, ...], Type]:
        """The overload with fresh type variables."""
        if not form.variables:
            return form.args, form.result
        fresh = {name: self.bindings.fresh() for name in form.variables}
        return tuple(_renamed(each, fresh) for each in form.args), _renamed(form.result, fresh)

    # Literals

    def _list(self, node: ListNode) -> Type:
        joined: Type | None = None
        for index, element in enumerate(node.elements):
            kind = self._element(element, optional=index in node.optional)
            joined = self._joined(joined, kind)
        return list_of(self.bindings.fresh() if joined is None else joined)

    def _map(self, node: MapNode) -> Type:
        keys: Type | None = None
        values: Type | None = None
        for key, value, optional in node.entries:
            keys = self._joined(keys, self.check(key))
            values = self._joined(values, self._element(value, optional=optional))
        return map_of(keys or self.bindings.fresh(), values or self.bindings.fresh())

    def _element(self, node: Node, *, optional: bool) -> Type:
        kind = self.check(node)
        if not optional:
            return kind
        inner, was_optional = unwrapped(kind)
        if not was_optional and inner != DYN:
            self.mismatch(node.offset, optional_of(inner), inner)
        return inner

    def _joined(self, before: Type | None, kind: Type) -> Type:
        if before is None:
            return kind
        if self.bindings.accepts(before, kind):
            return most_general(before, kind)
        return DYN  # literals of several types are refused later, except where they are formatted

    def _struct(self, node: StructNode) -> Type:
        fields = self._environment.objects(node.type_name)
        if fields is None:
            return self._no_struct(node)
        for (name, value, optional), offset in zip(node.fields, node.colons, strict=True):
            given = self._element(value, optional=optional)
            wanted = self._known_field(offset, fields, name)
            if not self.bindings.accepts(wanted, given):
                self.wrong(offset, f"expected type of field '{name}' is '{wanted}' but provided type is '{given}'")
        return Type(node.type_name)

    def _no_struct(self, node: StructNode) -> Type:
        found = self._named(node.type_name)
        if found is None:
            return self._undeclared(node.offset, node.type_name)
        if found.name != "type":
            return self.wrong(node.offset, f"'{node.type_name}' is not a type")
        return self.wrong(node.offset, f"'{node.type_name}' is not a message type")

    # Macros

    def _macro(self, node: Macro) -> Type:
        source = self.check(node.range)
        if node.kind in ("optMap", "optFlatMap"):
            return self._optional_map(node, source)
        first, second = self._steps(node, self.bindings.resolved(source))
        names = dict(zip(node.names, (first, second) if len(node.names) == 2 else (first,), strict=True))
        before, self._locals = self._locals, {**self._locals, **names}
        args: list[Type] = []
        for arg in node.args:
            args.append(self.check(arg))
        self._locals = before
        return self.bindings.resolved(self._collected(node, first, args))

    def _steps(self, node: Macro, source: Type) -> tuple[Type, Type]:
        """The types of a macro's variables."""
        if source.name == "list":
            item = source.params[0]
            return (INT, item) if len(node.names) == 2 else (item, item)
        if source.name == "map":
            return source.params[0], source.params[1]
        if source.dynamic or source.variable:
            self.bindings.accepts(DYN, source)
            return DYN, DYN
        why = f"expression of type '{source}' cannot be range of a comprehension (must be list, map, or dynamic)"
        return self.wrong(node.range.offset, why), ERROR

    def _collected(self, node: Macro, first: Type, args: list[Type]) -> Type:
        match node.kind:
            case "all" | "exists":
                return self._logical(args, node.args)
            case "exists_one":
                return self._conditional(node, args[0], INT) and BOOL
            case "filter":
                return self._conditional(node, args[0], list_of(first))
            case "sortBy":
                keys = list_of(args[0])
                return self.resolve(node.offset, "@sortByAssociatedKeys", [list_of(first), keys], method=True)
            case "map" | "transformList":
                made = list_of(args[-1])
            case "transformMapEntry":
                made = args[-1] if args[-1].name == "map" else map_of(DYN, DYN)
            case _:
                made = map_of(first, args[-1])
        return made if len(args) == 1 else self._conditional(node, args[0], made)

    def _conditional(self, node: Macro, test: Type, made: Type) -> Type:
        self.resolve(node.offset, "_?_:_", [test, made, made])
        return made

    def _optional_map(self, node: Macro, source: Type) -> Type:
        self.resolve(node.offset, "hasValue", [source], method=True)
        value = self.resolve(node.offset, "value", [source], method=True)
        before, self._locals = self._locals, {**self._locals, node.names[0]: value}
        made = self.check(node.args[0])
        self._locals = before
        if node.kind == "optMap":
            return self.bindings.resolved(optional_of(made))
        return self.resolve(node.offset, "_?_:_", [BOOL, made, optional_of(self.bindings.fresh())])


def _renamed(kind: Type, names: Mapping[str, Type]) -> Type:
    if kind.variable:
        return names[kind.name]
    return Type(kind.name, tuple(_renamed(each, names) for each in kind.params)) if kind.params else kind


def _literal(value: Literal) -> Type:
    for python, kind in _LITERALS:
        if isinstance(value, python):
            return kind
    return NULL


_LITERALS: tuple[tuple[type, Type], ...] = (
    (bool, BOOL),
    (Uint, UINT),
    (int, INT),
    (float, DOUBLE),
    (str, STRING),
    (bytes, BYTES),
)
_CHECKS: Mapping[type[Node], Callable[[Checker, Any], Type]] = {
    Constant: Checker._constant,
    Ident: Checker._ident,
    Select: Checker._select,
    Call: Checker._call,
    ListNode: Checker._list,
    MapNode: Checker._map,
    StructNode: Checker._struct,
    Macro: Checker._macro,
}
