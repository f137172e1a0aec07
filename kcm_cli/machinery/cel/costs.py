"""Estimates the maximum cost of an expression, which limits the rules in a CustomResourceDefinition.

Sizes are (minimum, maximum); an unknown size is unlimited. Costs are maximums. Numbers saturate at 2^64-1.

upstream: cel-go checker/cost.go (how trees add up), apiserver pkg/cel/library/cost.go (functions: ``cost_functions``)
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import msgspec

from kcm_cli.machinery.cel import cost_functions
from kcm_cli.machinery.cel.check import Checked
from kcm_cli.machinery.cel.cost_functions import MOST, UNKNOWN, Operand, Path, Size, plus, scaled, times
from kcm_cli.machinery.cel.signatures import overloads
from kcm_cli.machinery.cel.syntax import (
    COMPARED,
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
from kcm_cli.machinery.cel.types import DYN, Type

SizeOf = Callable[[Path], int | None]
"""The most that a value at a path of a variable can have; None where nothing is known. Items are ``@items``, ``@keys``
and ``@values``.
"""

_LIST, _MAP, _STRUCT = 10, 30, 40
_SCALARS = frozenset(["bool", "double", "int", "uint", "google.protobuf.Duration", "google.protobuf.Timestamp"])
_PLAIN_TYPES = _SCALARS | {"string", "bytes", "list", "map", "dyn", "null_type", "type", "!error!"}
_TRAVERSED = ("string", "bytes")


def most_cost(node: Node, checked: Checked, size_of: SizeOf) -> int:
    """The maximum cost of a checked expression."""
    return _Estimate(checked.types, size_of).cost(node)


class _Entries(msgspec.Struct, frozen=True):
    """The sizes of the entries in a list or map that an expression creates. ``key`` is 1 for lists."""

    of_list: bool
    key: Size
    value: Size

    def union(self, other: "_Entries | None") -> "_Entries":
        if other is None:
            return self
        return _Entries(self.of_list, _either(self.key, other.key), _either(self.value, other.value))


class _Local(msgspec.Struct, frozen=True):
    """A variable of a macro."""

    path: Path
    size: Size | None
    entries: _Entries | None = None


def _either(one: Size, other: Size) -> Size:
    return min(one[0], other[0]), max(one[1], other[1])


class _Estimate(msgspec.Struct):
    types: Mapping[int, Type]
    size_of: SizeOf
    locals: dict[str, _Local] = msgspec.field(default_factory=dict)
    paths: dict[int, Path] = msgspec.field(default_factory=dict)
    sizes: dict[int, Size] = msgspec.field(default_factory=dict)
    entries: dict[int, _Entries] = msgspec.field(default_factory=dict)

    def cost(self, node: Node) -> int:
        """The cost of a node. Its path, size and entries are recorded."""
        match node:
            case Constant():
                return 0
            case Ident(name=name):
                local = self.locals.get(name)
                self.paths[id(node)] = (name.removeprefix("."),) if local is None else local.path
                return 1
            case Select():
                return self._select(node)
            case Call():
                return self._call(node)
            case ListNode(elements=elements):
                return self._list(node, elements)
            case MapNode():
                return self._map(node)
            case StructNode(fields=fields):
                return plus(_STRUCT, *(self.cost(value) for _, value, _ in fields))
            case Macro():
                return self._macro(node)

    # Sizes

    def operand(self, node: Node) -> Operand:
        """The node as the operand of a function."""
        value = node.value if isinstance(node, Constant) else None
        return Operand(self._path(node), self._type(node), self._size(node), value)

    def _type(self, node: Node) -> Type:
        return self.types.get(id(node), DYN)

    def _path(self, node: Node) -> Path:
        if isinstance(node, Ident) and node.name in self.locals:
            return self.locals[node.name].path
        return self.paths.get(id(node), ())

    def _size(self, node: Node) -> Size | None:
        known = self.sizes.get(id(node)) or _literal_size(node)
        if known is not None:
            return known
        path = self._path(node)
        most = self.size_of(path) if path else None
        if most is not None:
            self.sizes[id(node)] = (0, most)
            return 0, most
        if _is_scalar(self._type(node)):
            return 1, 1
        local = self.locals.get(node.name) if isinstance(node, Ident) else None
        return None if local is None else local.size

    def _size_or_unknown(self, node: Node) -> Size:
        return self._size(node) or UNKNOWN

    def _entries(self, node: Node) -> _Entries | None:
        found = self.entries.get(id(node))
        if found is None and isinstance(node, Ident) and node.name in self.locals:
            return self.locals[node.name].entries
        return found

    # Parts

    def _select(self, node: Select) -> int:
        inner = self.cost(node.operand)
        if node.test:
            return inner
        whole = self._type(node.operand)
        self.paths[id(node)] = (*self._path(node.operand), node.field)
        plain = whole.name in _PLAIN_TYPES and whole.name != "map"
        return inner if plain or whole.name == "optional_type" else plus(inner, 1)

    def _list(self, node: Node, elements: Sequence[Node]) -> int:
        total = plus(_LIST, *(self.cost(one) for one in elements))
        self.entries[id(node)] = _Entries(True, (1, 1), self._united(elements))
        return total

    def _map(self, node: MapNode) -> int:
        total = plus(_MAP, *(plus(self.cost(key), self.cost(value)) for key, value, _ in node.entries))
        keys, values = [key for key, _, _ in node.entries], [value for _, value, _ in node.entries]
        self.entries[id(node)] = _Entries(False, self._united(keys), self._united(values))
        return total

    def _united(self, nodes: Sequence[Node]) -> Size:
        found: Size | None = None
        for node in nodes:
            size = self._size_or_unknown(node)
            found = size if found is None else _either(found, size)
        return found or (0, 0)

    # Calls

    def _call(self, node: Call) -> int:
        prefix = qualified_name(node.target) if node.target is not None else ""
        qualified = f"{prefix}.{node.function}" if prefix else ""
        if qualified in overloads():
            return self._function(node, qualified, None)
        return self._function(node, node.function, node.target)

    def _function(self, node: Call, name: str, target: Node | None) -> int:
        costs = [self.cost(arg) for arg in node.args]
        if name == "dyn":
            self._like(node, node.args[0])
            return plus(1, *costs)
        before = 0 if target is None else self.cost(target)
        if name in ("_&&_", "_||_"):
            return plus(before, *costs)
        if name == "_?_:_":
            return self._conditional(node, costs)
        own = self._operator(node, name)
        if own is None:
            args = tuple(self.operand(arg) for arg in node.args)
            aim = None if target is None else self.operand(target)
            found = cost_functions.estimate(name, aim, args, self.size_of)
            own, size = (1, None) if found is None else found
            if size is not None:
                self.sizes[id(node)] = size
        return plus(before, own, *costs)

    def _conditional(self, node: Call, costs: Sequence[int]) -> int:
        _, one, other = node.args
        self.sizes[id(node)] = _either(self._size_or_unknown(one), self._size_or_unknown(other))
        self._keep_entries(node, one, other)
        return plus(costs[0], max(costs[1:]))

    def _keep_entries(self, node: Call, one: Node, other: Node) -> None:
        """Record that the result may have the entries of either operand."""
        first, second = self._entries(one), self._entries(other)
        known = first.union(second) if first is not None else second
        if known is not None:
            self.entries[id(node)] = known

    def _operator(self, node: Call, name: str) -> int | None:
        """The cost of an operator without its operands; None for functions."""
        if name in COMPARED:
            return self._comparison(node, name)
        if name == "_+_":
            return self._sum(node)
        if name == "@in":
            items, entries = node.args[1], self._type(node.args[1])
            return 1 if entries.name == "map" else max(1 if entries.dynamic else 0, self._size_or_unknown(items)[1])
        if name in ("_[_]", "_[?_]"):
            return self._index(node)
        return None

    def _comparison(self, node: Call, name: str) -> int:
        left, right = (self._type(arg) for arg in node.args)
        ordered = name not in ("_==_", "_!=_")
        if ordered and not any(kind.name in (*_TRAVERSED, "dyn") for kind in (left, right)):
            return 1
        fixed = cost_functions.equality(left, right) if name == "_==_" else None
        if fixed is not None:
            return fixed
        most = min(self._size_or_unknown(arg)[1] for arg in node.args)
        return max(scaled(most), 1 if ordered and DYN in (left, right) else 0)

    def _sum(self, node: Call) -> int:
        kinds = {self._type(arg).name for arg in node.args} - {"dyn", "null_type"}
        if not kinds & {*_TRAVERSED, "list"} and kinds:
            return 1
        one, other = (self._size_or_unknown(arg) for arg in node.args)
        total = (plus(one[0], other[0]), plus(one[1], other[1]))
        self.sizes[id(node)] = total
        self._keep_entries(node, *node.args)
        return 1 if kinds == {"list"} else scaled(total[1])

    def _index(self, node: Call) -> int:
        whole = node.args[0]
        entries = self._entries(whole)
        if entries is not None:
            self.sizes[id(node)] = entries.value
        kind = self._type(whole).name
        if kind in ("list", "map"):
            self.paths[id(node)] = (*self._path(whole), "@items" if kind == "list" else "@values")
        return 1

    def _like(self, node: Node, other: Node) -> None:
        if (size := self._size(other)) is not None:
            self.sizes[id(node)] = size
        if (entries := self._entries(other)) is not None:
            self.entries[id(node)] = entries

    # Macros

    def _macro(self, node: Macro) -> int:
        source = self.cost(node.range)
        if node.kind in ("optMap", "optFlatMap"):
            return self._optional(node, source)
        with self._steps(node):
            costs = [self.cost(arg) for arg in node.args]
            made = self._size_or_unknown(node.args[-1]) if node.args else UNKNOWN
            step, around = self._step(node, costs)
        count = self._size_or_unknown(node.range)
        if node.kind in ("filter", "map", "transformList", "sortBy"):
            self.sizes[id(node)] = count
            kept = self._item(node)[1] if node.kind in ("filter", "sortBy") else made
            self.entries[id(node)] = _Entries(True, (1, 1), _either((0, 0), kept or UNKNOWN))
        elif node.kind in ("transformMap", "transformMapEntry"):
            self.sizes[id(node)] = count
        return plus(source, around, times(count[1], step))

    def _step(self, node: Macro, costs: Sequence[int]) -> tuple[int, int]:
        """(cost of each step, cost of the macro itself)."""
        test = costs[0] if len(costs) == 2 else 0
        match node.kind:
            case "all":
                return plus(costs[0], 3), 1
            case "exists":
                return plus(costs[0], 4), 1
            case "exists_one":
                return plus(costs[0], 2), 2
            case "filter":
                return plus(costs[0], _LIST + 3), _LIST + 1
            case "map" | "transformList" | "sortBy":
                return plus(test, costs[-1], _LIST + 2), _LIST + 1
            case "transformMap":
                return plus(test, costs[-1], 3), _MAP + 1
        return plus(test, costs[-1], 2), _MAP + 1  # the entry of transformMapEntry is a map with a cost of its own

    @contextmanager
    def _steps(self, node: Macro) -> Iterator[None]:
        """Declares the variables of a macro while its arguments are estimated."""
        before = dict(self.locals)
        path, first = self._path(node.range), self._item(node)
        if len(node.names) == 1:
            self.locals[node.names[0]] = _Local((*path, first[0]), first[1])
        else:
            keys, values = ("@indices", "@items") if self._is_list(node.range) else ("@keys", "@values")
            entries = self._entries(node.range)
            sizes = (entries.key, entries.value) if entries is not None else (None, None)
            for name, part, size in zip(node.names, (keys, values), sizes, strict=True):
                self.locals[name] = _Local((*path, part), size)
        yield
        self.locals = before

    def _item(self, node: Macro) -> tuple[str, Size | None]:
        entries, of_list = self._entries(node.range), self._is_list(node.range)
        if entries is None:
            return ("@items" if of_list else "@keys"), None
        return ("@items", entries.value) if of_list else ("@keys", entries.key)

    def _is_list(self, node: Node) -> bool:
        entries = self._entries(node)
        return entries.of_list if entries is not None else self._type(node).name == "list"

    def _optional(self, node: Macro, source: int) -> int:
        before = dict(self.locals)
        self.locals[node.names[0]] = _Local((), None)
        inner = self.cost(node.args[0])
        self.locals = before
        return plus(source, source, inner, _LIST + 4)


def _literal_size(node: Node) -> Size | None:
    match node:
        case Constant(value=value):
            size = len(value) if isinstance(value, (str, bytes)) else 1
            return size, size
        case ListNode(elements=elements):
            return len(elements), len(elements)
        case MapNode(entries=entries):
            return len(entries), len(entries)
    return None


def _is_scalar(kind: Type) -> bool:
    return _is_scalar(kind.params[0]) if kind.name == "optional_type" and kind.params else kind.name in _SCALARS


__all__ = ["MOST", "SizeOf", "most_cost"]
