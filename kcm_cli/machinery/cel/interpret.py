"""Compiles nodes to closures.

An error in one operand of ``||`` or ``&&`` is ignored if the other operand decides.

upstream: cel-go interpreter
"""

from collections.abc import Callable, Mapping

from kcm_cli.machinery.cel import comprehensions, operators
from kcm_cli.machinery.cel.comprehensions import Run, Scope
from kcm_cli.machinery.cel.functions import FUNCTIONS, METHODS
from kcm_cli.machinery.cel.kubernetes import FormatValue, QuantityValue, SemverValue
from kcm_cli.machinery.cel.meter import Meter, called, fixed, price_of
from kcm_cli.machinery.cel.networks import CidrValue, IpValue, UrlValue
from kcm_cli.machinery.cel.overloads import Function, takes
from kcm_cli.machinery.cel.prices import Price
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
from kcm_cli.machinery.cel.values import NONE, TYPES, CelError, Optional, Value, equal

_OPAQUE = (CidrValue, FormatValue, IpValue, QuantityValue, SemverValue, UrlValue)


def _compared(one: Value, other: Value) -> bool:
    """``_==_``: a value of Kubernetes' types can be compared with its own type and null only. Raises CelError."""
    if isinstance(one, _OPAQUE) and other is not None and type(one) is not type(other):
        raise CelError("no such overload")
    return equal(one, other)


_BINARY: Mapping[str, operators.Binary] = {
    "_+_": operators.add,
    "_-_": operators.subtract,
    "_*_": operators.multiply,
    "_/_": operators.divide,
    "_%_": operators.modulus,
    "_<_": operators.less,
    "_<=_": operators.less_equal,
    "_>_": operators.greater,
    "_>=_": operators.greater_equal,
    "_==_": _compared,
    "_!=_": lambda one, other: not _compared(one, other),
    "@in": operators.contained,
    "_[_]": operators.index,
    "_[?_]": operators.optional_index,
}
_ESCAPED = {"__underscores__": "__", "__dot__": ".", "__dash__": "-", "__slash__": "/"}


def compile_node(node: Node, meter: Meter) -> Run:
    """The closure of a node. It raises CelError, or OverLimit. Its cost is added to the meter, without the part that
    ``meter.fixed`` returns."""
    match node:
        case Constant(value=value):
            return lambda scope: value
        case Ident():
            return _ident(node.name.lstrip("."))
        case Select():
            return _select(node, meter)
        case Call():
            return _call(node, meter)
        case ListNode():
            return _list(node, meter)
        case MapNode():
            return _map(node, meter)
        case StructNode():
            return _struct(node, meter)
        case Macro():
            source = compile_node(node.range, meter)
            return comprehensions.run_of(node, source, tuple(compile_node(arg, meter) for arg in node.args), meter)


def _ident(name: str) -> Run:
    kind = TYPES.get(name)

    def run(scope: Scope) -> Value:
        try:
            value = scope[name]
        except KeyError:
            if kind is not None:
                return kind
            raise CelError(f"no such attribute(s): {name}") from None
        return value() if isinstance(value, Lazy) else value

    return run


class Lazy:
    """A variable that is computed on first use."""

    __slots__ = ("_make", "_made", "_value")

    def __init__(self, make: Callable[[], Value]) -> None:
        self._make = make
        self._made = False
        self._value: Value = None

    def __call__(self) -> Value:
        if not self._made:
            self._value = self._make()
            self._made = True
        return self._value


def unescaped(field: str) -> str:
    """The name of a property that is escaped in CEL."""
    if "__" not in field:
        return field
    for escape, text in _ESCAPED.items():
        field = field.replace(escape, text)
    if field.startswith("__") and field.endswith("__") and len(field) > 4:
        return field[2:-2]
    return field


def _select(node: Select, meter: Meter) -> Run:
    qualified = qualified_name(node).lstrip(".")
    if qualified in TYPES:
        kind = TYPES[qualified]
        return lambda scope: kind
    operand, field = compile_node(node.operand, meter), node.field
    other = unescaped(field)
    if node.test:
        return lambda scope: _present(operand(scope), field, other)
    if node.optional:
        return lambda scope: _optional_field(operand(scope), field, other)

    def run(scope: Scope) -> Value:
        value = operand(scope)
        if type(value) is dict:
            try:
                return value[field]
            except KeyError:
                pass
        return _field(value, field, other)

    return run


def _field(value: Value, field: str, other: str) -> Value:
    if isinstance(value, Mapping):
        if field in value:
            return value[field]
        if other in value:
            return value[other]
        raise CelError(f"no such key: {field}")
    if isinstance(value, Optional):
        return _optional_field(value, field, other)
    own = getattr(value, "cel_fields", {}).get(field)
    if own is not None:
        return own(value)
    raise operators.no_element(value, field)


def _present(value: Value, field: str, other: str) -> bool:
    if isinstance(value, Optional):
        return value.present and _present(value.value, field, other)
    if isinstance(value, Mapping):
        return field in value or other in value
    if isinstance(value, (list, tuple)):
        raise operators.no_element(value, field)
    return False


def _optional_field(value: Value, field: str, other: str) -> Optional:
    if isinstance(value, Optional):
        if not value.present:
            return value
        value = value.value
    if isinstance(value, (list, tuple)):
        raise operators.no_element(value, field)
    if not isinstance(value, Mapping):
        return NONE
    if field in value:
        return Optional(value[field], True)
    return Optional(value[other], True) if other in value else NONE


# Calls


def _call(node: Call, meter: Meter) -> Run:
    args = tuple(compile_node(arg, meter) for arg in node.args)
    match node.function:
        case "_&&_":
            return _logical(args[0], _charged(node.args[1], args[1], meter), False)
        case "_||_":
            return _logical(args[0], _charged(node.args[1], args[1], meter), True)
        case "_?_:_":
            chosen, otherwise = (_charged(node.args[i], args[i], meter, bare=True) for i in (1, 2))
            return _conditional(args[0], chosen, otherwise)
        case "!_" | "-_":
            unary = operators.logical_not if node.function == "!_" else operators.negate
            return lambda scope: unary(args[0](scope))
    name, aim = called(node)
    price = price_of(node, name)
    binary = _BINARY.get(node.function)
    if binary is not None:
        return _binary(binary, args, price, meter)
    if aim is None:
        return _priced(_applied(name, FUNCTIONS.get(name), len(args)), args, price, meter)
    target = compile_node(aim, meter)
    if node.function in ("or", "orValue") and len(args) == 1:
        return _alternative(target, _charged(node.args[0], args[0], meter), node.function)
    return _priced(_applied(name, METHODS.get(name), len(args) + 1), (target, *args), price, meter)


def _charged(node: Node, run: Run, meter: Meter, *, bare: bool = False) -> Run:
    """A branch whose cost is added when it is taken."""
    cost = fixed(node, bare=bare)
    if not cost:
        return run

    def charged(scope: Scope) -> Value:
        meter.cost += cost
        return run(scope)

    return charged


def _binary(binary: operators.Binary, args: tuple[Run, ...], price: Price | None, meter: Meter) -> Run:
    one, other = args
    if price is None:
        return lambda scope: binary(one(scope), other(scope))

    def run(scope: Scope) -> Value:
        left, right = one(scope), other(scope)
        meter.cost += price((left, right), None)
        return binary(left, right)

    return run


def _applied(name: str, function: Function | None, count: int) -> Function:
    """A function for this number of values. One that is not declared is looked up among the methods of its target."""
    fits = function is None or takes(function, count)

    def run(*values: Value) -> Value:
        if not fits:
            raise operators.no_overload(name, *values)
        if function is not None:
            return function(*values)
        method = getattr(values[0], "cel_methods", {}).get(name) if values else None
        if method is None:
            raise operators.no_overload(name, *values)
        return method(*values)

    return run


def _priced(function: Function, args: tuple[Run, ...], price: Price | None, meter: Meter) -> Run:
    if price is None:
        return lambda scope: function(*[arg(scope) for arg in args])

    def run(scope: Scope) -> Value:
        values = [arg(scope) for arg in args]
        result = function(*values)
        meter.cost += price(values, result)
        return result

    return run


def _logical(one: Run, other: Run, decisive: bool) -> Run:
    """``||`` and ``&&``: the decisive value in either operand decides."""

    def run(scope: Scope) -> Value:
        first: CelError | None = None
        try:
            value = one(scope)
            if value is decisive:
                return decisive
            if not isinstance(value, bool):
                first = CelError("no such overload")
        except CelError as error:
            first = error
        try:
            value = other(scope)
        except CelError as error:
            raise first or error from None
        if value is decisive:
            return decisive
        if first is not None:
            raise first
        if not isinstance(value, bool):
            raise CelError("no such overload")
        return value

    return run


def _conditional(condition: Run, chosen: Run, otherwise: Run) -> Run:
    def run(scope: Scope) -> Value:
        value = condition(scope)
        if not isinstance(value, bool):
            raise CelError("no such overload")
        return chosen(scope) if value else otherwise(scope)

    return run


def _alternative(target: Run, otherwise: Run, function: str) -> Run:
    def run(scope: Scope) -> Value:
        value = target(scope)
        if not isinstance(value, Optional):
            raise CelError("no such overload")
        if value.present:
            return value if function == "or" else value.value
        return otherwise(scope)

    return run


# Literals


def _list(node: ListNode, meter: Meter) -> Run:
    elements = tuple(compile_node(element, meter) for element in node.elements)
    if not node.optional:
        return lambda scope: [element(scope) for element in elements]

    def run(scope: Scope) -> Value:
        found: list[Value] = []
        for position, element in enumerate(elements):
            value = element(scope)
            if position not in node.optional:
                found.append(value)
            elif isinstance(value, Optional):
                found += [value.value] if value.present else []
            else:
                raise CelError(f"cannot initialize optional list element from non-optional value {value}")
        return found

    return run


def _map(node: MapNode, meter: Meter) -> Run:
    entries = tuple(
        (compile_node(key, meter), compile_node(value, meter), optional) for key, value, optional in node.entries
    )

    def run(scope: Scope) -> Value:
        found: dict[Value, Value] = {}
        for make_key, make_value, optional in entries:
            key, value = make_key(scope), make_value(scope)
            if not isinstance(key, (str, bool, int)):
                raise CelError(f"unsupported key type: {operators.shown(key)}")
            if optional:
                if not isinstance(value, Optional):
                    raise CelError(f"cannot initialize optional entry '{key}' from non-optional value {value}")
                if not value.present:
                    found.pop(key, None)
                    continue
                value = value.value
            found[key] = value
        return found

    return run


def _struct(node: StructNode, meter: Meter) -> Run:
    fields = tuple((name, compile_node(value, meter), optional) for name, value, optional in node.fields)
    type_name = node.type_name.lstrip(".")

    def run(scope: Scope) -> Value:
        found = MadeObject(type_name)
        for name, make, optional in fields:
            value = make(scope)
            if optional:
                if not isinstance(value, Optional):
                    raise CelError(f"cannot initialize optional entry '{name}' from non-optional value {value}")
                if not value.present:
                    continue
                value = value.value
            found[unescaped(name)] = value
        return found

    return run


class MadeObject(dict[str, Value]):
    """An object that an expression created, with the name of its type."""

    __slots__ = ("cel_type",)

    def __init__(self, cel_type: str) -> None:
        super().__init__()
        self.cel_type = cel_type
