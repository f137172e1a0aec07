"""Macros that iterate over lists and maps.

upstream: cel-go parser/macro.go, ext/comprehensions.go, cel/library.go (optionals)
"""

from collections.abc import Callable, Iterator, Mapping

from kcm_cli.machinery.cel.list_functions import sorted_by
from kcm_cli.machinery.cel.meter import CALL_LIMIT, Meter, OverLimit, fixed, steps
from kcm_cli.machinery.cel.operators import shown
from kcm_cli.machinery.cel.prices import sorting
from kcm_cli.machinery.cel.syntax import Macro
from kcm_cli.machinery.cel.values import NONE, CelError, Optional, Value, type_name

Scope = Mapping[str, Value]
Run = Callable[[Scope], Value]


def run_of(node: Macro, source: Run, args: tuple[Run, ...], meter: Meter) -> Run:
    """The closure of a macro, made of the closures of its range and its arguments."""
    if node.kind in ("optMap", "optFlatMap"):
        return _optional_map(node, source, args[0], meter)
    step, hit = steps(node)
    each = _Each(node.names, meter, step)
    test = args[0] if not hit else _counted(args[0], meter, hit)
    match node.kind:
        case "all":
            return lambda scope: _decided(each(source(scope), scope), test, False)
        case "exists":
            return lambda scope: _decided(each(source(scope), scope), test, True)
        case "exists_one":
            return lambda scope: sum(_true(test(inner)) for inner in each(source(scope), scope)) == 1
        case "filter":
            name = node.names[0]
            return lambda scope: [inner[name] for inner in each(source(scope), scope) if _true(test(inner))]
        case "map" | "transformList":
            return _mapped(source, each, (test, *args[1:]))
        case "sortBy":
            return _sorted(source, each, test, meter)
    return _transformed(source, each, (test, *args[1:]), entries=node.kind == "transformMapEntry")


def _counted(test: Run, meter: Meter, cost: int) -> Run:
    """A test that adds to the cost if it is true."""

    def run(scope: Scope) -> Value:
        value = test(scope)
        if value is True:
            meter.cost += cost
        return value

    return run


_GO = {
    "null_type": "types.Null",
    "google.protobuf.Duration": "types.Duration",
    "google.protobuf.Timestamp": "types.Timestamp",
    "optional_type": "*types.Optional",
    "type": "*types.Type",
}
"""Types in Go, if these are called differently."""


class _Each:
    """The scopes of a macro's steps: a single scope, whose variables change. The cost of each step is added."""

    def __init__(self, names: tuple[str, ...], meter: Meter, cost: int) -> None:
        self._names = names
        self._meter = meter
        self._cost = cost

    def __call__(self, source: Value, scope: Scope) -> Iterator[Scope]:
        inner = dict(scope)
        names, meter, cost = self._names, self._meter, self._cost
        if isinstance(source, Mapping):
            for key, value in source.items():
                meter.cost += cost
                if meter.cost > CALL_LIMIT:
                    raise OverLimit
                inner[names[0]] = key
                if len(names) == 2:
                    inner[names[1]] = value
                yield inner
        elif isinstance(source, (list, tuple)):
            for position, value in enumerate(source):
                meter.cost += cost
                if meter.cost > CALL_LIMIT:
                    raise OverLimit
                inner[names[-1]] = value
                if len(names) == 2:
                    inner[names[0]] = position
                yield inner
        else:
            kind = type_name(source)
            raise CelError(f"got '{_GO.get(kind, f'types.{kind.title()}')}', expected iterable type")


def _true(value: Value) -> bool:
    if not isinstance(value, bool):
        raise CelError("no such overload")
    return value


def _decided(scopes: Iterator[Scope], test: Run, decisive: bool) -> bool:
    """Evaluate the steps until one of them decides. Errors of others are ignored then."""
    failure: CelError | None = None
    for scope in scopes:
        try:
            if _true(test(scope)) is decisive:
                return decisive
        except CelError as error:
            failure = failure or error
    if failure is not None:
        raise failure
    return not decisive


def _mapped(source: Run, each: _Each, args: tuple[Run, ...]) -> Run:
    make = args[-1]
    if len(args) == 1:
        return lambda scope: [make(inner) for inner in each(source(scope), scope)]
    test = args[0]
    return lambda scope: [make(inner) for inner in each(source(scope), scope) if _true(test(inner))]


def _sorted(source: Run, each: _Each, key: Run, meter: Meter) -> Run:
    def run(scope: Scope) -> Value:
        items = source(scope)
        keys = [key(inner) for inner in each(items, scope)]
        meter.cost += sorting(keys)
        return sorted_by(list(items), keys) if isinstance(items, (list, tuple)) else items

    return run


def _transformed(source: Run, each: _Each, args: tuple[Run, ...], *, entries: bool) -> Run:
    make, test, key_name = args[-1], args[0] if len(args) == 2 else None, each._names[0]

    def run(scope: Scope) -> Value:
        found: dict[Value, Value] = {}
        for inner in each(source(scope), scope):
            if test is not None and not _true(test(inner)):
                continue
            made = make(inner)
            if not entries:
                found[inner[key_name]] = made
                continue
            if not isinstance(made, Mapping):
                raise CelError("no such overload")
            for key, value in made.items():
                if key in found:
                    raise CelError(f"insert failed: key {shown(key)} already exists")
                found[key] = value
        return found

    return run


def _optional_map(node: Macro, source: Run, make: Run, meter: Meter) -> Run:
    name, flat = node.names[0], node.kind == "optFlatMap"
    again, body = fixed(node.range), fixed(node.args[0])

    def run(scope: Scope) -> Value:
        before = meter.cost
        value = source(scope)
        if not isinstance(value, Optional):
            raise CelError("no such overload")
        if not value.present:
            meter.cost += 1
            return NONE
        meter.cost += meter.cost - before + again + 1 + body + (0 if flat else 1)  # upstream asks the source twice
        made = make({**scope, name: value.value})
        return made if flat else Optional(made, True)

    return run
