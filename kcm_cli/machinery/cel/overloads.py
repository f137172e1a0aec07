"""Functions with overloads by the types of their arguments."""

import inspect
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta

from kcm_cli.machinery.cel.operators import no_overload
from kcm_cli.machinery.cel.values import Uint, Value

Function = Callable[..., Value]
Kinds = tuple[type, ...]
ANY = object
LIST, MAP, TIMESTAMP, DURATION = list, Mapping, datetime, timedelta


def is_a(value: Value, kind: type) -> bool:
    """Whether a value has a CEL type: a bool is no int, and neither is a uint."""
    if kind is ANY:
        return True
    if kind is int:
        return isinstance(value, int) and not isinstance(value, bool | Uint)
    if kind is list:
        return isinstance(value, (list, tuple))
    return isinstance(value, kind)


def overloaded(name: str, *choices: tuple[Kinds, Function]) -> Function:
    """A function that calls the first overload whose types match. Raises CelError if none does."""

    def run(*args: Value) -> Value:
        for kinds, function in choices:
            if len(kinds) == len(args) and all(map(is_a, args, kinds)):
                return function(*args)
        raise no_overload(name, *args)

    return run


def takes(function: Function, count: int) -> bool:
    """Whether a function can be called with this number of values."""
    try:
        inspect.signature(function).bind(*range(count))
    except TypeError:
        return False
    return True
