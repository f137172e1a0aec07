"""The types for checking, and their assignability.

upstream: cel-go checker/{types,mapping,format}.go, common/types/types.go
"""

from collections.abc import Sequence

import msgspec

_SHOWN = {
    "google.protobuf.Duration": "duration",
    "google.protobuf.Timestamp": "timestamp",
    "null_type": "null",
}
_CONTAINERS = frozenset({"list", "map", "optional_type", "type"})
_PRIMITIVES = frozenset({"bool", "bytes", "double", "int", "string", "uint"})


class Type(msgspec.Struct, frozen=True):
    """A type. ``params``: the type parameters. ``variable``: whether it is a type variable."""

    name: str
    params: tuple["Type", ...] = ()
    variable: bool = False

    def __str__(self) -> str:
        """The type as errors print it."""
        name = _SHOWN.get(self.name, self.name)
        return f"{name}({', '.join(map(str, self.params))})" if self.params else name

    @property
    def full_name(self) -> str:
        """The type with the names of protocol buffers."""
        return f"{self.name}({', '.join(each.full_name for each in self.params)})" if self.params else self.name

    @property
    def dynamic(self) -> bool:
        """Whether the type is unknown: dyn, or the type of an expression with an error."""
        return self.name in ("dyn", "!error!")

    @property
    def nullable(self) -> bool:
        """Whether null is assignable to the type."""
        return not (self.name in _PRIMITIVES or self.name in ("list", "map", "type"))


DYN, ERROR, NULL = Type("dyn"), Type("!error!"), Type("null_type")
BOOL, INT, UINT, DOUBLE = Type("bool"), Type("int"), Type("uint"), Type("double")
STRING, BYTES, TYPE = Type("string"), Type("bytes"), Type("type")
DURATION, TIMESTAMP = Type("google.protobuf.Duration"), Type("google.protobuf.Timestamp")


def list_of(item: Type) -> Type:
    return Type("list", (item,))


def map_of(key: Type, value: Type) -> Type:
    return Type("map", (key, value))


def optional_of(value: Type) -> Type:
    return Type("optional_type", (value,))


def type_of(value: Type) -> Type:
    """The type of a type."""
    return Type("type", (value,))


def unwrapped(kind: Type) -> tuple[Type, bool]:
    """(the value type of an optional, True), or (the type itself, False)."""
    return (kind.params[0], True) if kind.name == "optional_type" else (kind, False)


class Bindings:
    """The types of type variables, as far as known. A failed attempt changes nothing."""

    def __init__(self) -> None:
        self._known: dict[str, Type] = {}
        self._before: list[tuple[str, Type | None]] = []
        """What the attempt has changed: copies would make the check quadratic."""
        self._count = 0

    def fresh(self) -> Type:
        """A new type variable."""
        self._count += 1
        return Type(f"_var{self._count - 1}", variable=True)

    def resolved(self, kind: Type, *, final: bool = False) -> Type:
        """The type with variables replaced. final: unknown variables become dyn."""
        if kind.variable:
            known = self._known.get(kind.name)
            if known is not None:
                return self.resolved(known, final=final)
            return DYN if final else kind
        if not kind.params:
            return kind
        return Type(kind.name, tuple(self.resolved(each, final=final) for each in kind.params))

    def accepts(self, wanted: Type, given: Type) -> bool:
        """Whether a value of the given type is assignable to the wanted one."""
        return self.accept_all((wanted,), (given,))

    def accept_all(self, wanted: Sequence[Type], given: Sequence[Type]) -> bool:
        """Whether all given types are assignable to the wanted ones."""
        if len(wanted) != len(given):
            return False
        self._before.clear()
        if all(self._fits(one, other) for one, other in zip(wanted, given, strict=True)):
            return True
        for name, before in reversed(self._before):
            if before is None:
                del self._known[name]
            else:
                self._known[name] = before
        return False

    def _set(self, name: str, kind: Type) -> None:
        self._before.append((name, self._known.get(name)))
        self._known[name] = kind

    def _fits(self, one: Type, other: Type) -> bool:
        if other.variable:
            fits, known = self._binds(other, one)
            if fits or known:
                return fits
        if one.variable:
            return self._binds(one, other)[0]
        if one.dynamic or other.dynamic:
            return True
        if NULL in (one, other):
            return one.nullable and other.nullable
        if one.name != other.name:
            return False
        if one.name == "type":
            return True
        return len(one.params) == len(other.params) and all(map(self._fits, one.params, other.params))

    def _binds(self, variable: Type, kind: Type) -> tuple[bool, bool]:
        """(whether the variable can have the type, whether it had a type already)."""
        if variable == kind:
            return True, True
        known = self._known.get(variable.name)
        if known is None:
            if self._mentions(kind, variable):
                return False, False
            self._set(variable.name, kind)
            return True, False
        if kind == known:
            return True, True
        if not self._fits(kind, known):
            return False, True
        general = most_general(kind, known)
        if not self._mentions(general, variable):
            self._set(variable.name, general)
        return True, True

    def _mentions(self, kind: Type, variable: Type) -> bool:
        if kind == variable:
            return True
        if kind.variable:
            known = self._known.get(kind.name)
            return known is not None and self._mentions(known, variable)
        return any(self._mentions(each, variable) for each in kind.params)


def most_general(one: Type, other: Type) -> Type:
    """The more general of two compatible types."""
    return one if _says_no_more(one, other) else other


def _says_no_more(one: Type, other: Type) -> bool:
    if one.name == "dyn" or one.variable:
        return True
    if other.name == "dyn" or other.variable or one.name != other.name:
        return False
    if one.name == "type" or one.name not in _CONTAINERS:
        return True
    return len(one.params) == len(other.params) and all(map(_says_no_more, one.params, other.params))
