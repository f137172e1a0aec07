"""Checks arguments of the testing API against their annotations, before they are used.

Numbers, strings, functions, lists of these and instances of classes are checked. Other annotations (type variables,
protocols, strings) accept any value.
"""

import inspect
import os
import reprlib
import types
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from functools import wraps
from numbers import Real
from typing import Any, Literal, ParamSpec, TypeVar, Union, cast, get_args, get_origin

import msgspec

P = ParamSpec("P")
T = TypeVar("T")
_PLAIN = {
    str: "a string",
    int: "a whole number",
    float: "a number",
    bool: "True or False",
    type(None): "None",
    type: "a class",
    os.PathLike: "a path",
}
_LISTS = (tuple, list, Sequence, Collection, Iterable)


def checked(function: Callable[P, T], name: str = "") -> Callable[P, T]:
    """Wrap a function so that it raises TypeError, with the argument's name, for arguments of another type.

    A coroutine function stays one, and raises when it is awaited. name: the function's name in the error.
    """
    whose = name or function.__name__
    signature = inspect.signature(function)
    known = {name: one for name, one in signature.parameters.items() if one.annotation is not one.empty}

    def check(args: tuple[Any, ...], keywords: dict[str, Any]) -> None:
        __tracebackhide__ = True  # in the report of a test that fails
        try:
            given = signature.bind(*args, **keywords).arguments
        except TypeError:  # Python says it with the function's name
            given = {}
        for argument, value in given.items():
            if (parameter := known.get(argument)) is None:
                continue
            for one in _given(parameter, value):
                if not fits(one, parameter.annotation):
                    raise TypeError(_problem(f"{whose}: {argument}", one, parameter.annotation))

    @wraps(function)
    def call(*args: P.args, **keywords: P.kwargs) -> T:
        __tracebackhide__ = True
        check(args, keywords)
        return function(*args, **keywords)

    @wraps(function)
    async def call_async(*args: P.args, **keywords: P.kwargs) -> Any:
        __tracebackhide__ = True
        check(args, keywords)
        return await cast(Awaitable[Any], function(*args, **keywords))

    return cast(Callable[P, T], call_async) if inspect.iscoroutinefunction(function) else call


def _given(parameter: inspect.Parameter, value: Any) -> Iterable[object]:
    if parameter.kind is parameter.VAR_KEYWORD:
        return list(value.values())
    return value if parameter.kind is parameter.VAR_POSITIONAL else (value,)


def checks_arguments(cls: type[T]) -> type[T]:
    """Check the arguments of ``__init__`` and of the public methods that a class itself defines."""
    for name, function in list(vars(cls).items()):
        if inspect.isfunction(function) and (name == "__init__" or not name.startswith("_")):
            setattr(cls, name, checked(function, cls.__name__ if name == "__init__" else name))
    return cls


def check_fields(struct: msgspec.Struct) -> None:
    """For ``__post_init__``. Raises TypeError for a field whose value is not of its type."""
    for field in msgspec.structs.fields(type(struct)):
        value = getattr(struct, field.name)
        if not fits(value, field.type):
            raise TypeError(_problem(f"{type(struct).__name__}: {field.name}", value, field.type))


def fits(value: object, annotation: Any) -> bool:
    """Whether a value matches a type.

    A list matches a tuple of any length. An iterator is not consumed, and matches an Iterable only.
    """
    origin, args = get_origin(annotation) or annotation, get_args(annotation)
    if origin in (Union, types.UnionType):
        return any(fits(value, one) for one in args)
    if origin is Literal:
        return isinstance(value, str) and value in args
    if origin is Callable:
        return callable(value)
    if origin is Any or not isinstance(origin, type) or getattr(origin, "_is_protocol", False):
        return True
    if origin is type:
        return isinstance(value, type) and (not args or not isinstance(args[0], type) or issubclass(value, args[0]))
    if origin is tuple and args[-1:] != (...,):
        return isinstance(value, tuple) and len(value) == len(args) and all(map(fits, value, args))
    if origin in _LISTS:
        if _is_text(value) or not isinstance(value, Iterable if origin is Iterable else Collection):
            return False
        items = value if isinstance(value, Collection) and args else ()
        return all(fits(one, args[0]) for one in items)
    if origin is int:  # they are written into objects, where no other type is known
        return isinstance(value, int) and not isinstance(value, bool)
    if origin is float:
        return isinstance(value, Real) and not isinstance(value, bool) and _is_float(value)
    return isinstance(value, origin)


def _is_float(value: Real) -> bool:
    try:
        float(value)
    except OverflowError:
        return False
    return True


def _is_text(value: object) -> bool:
    return isinstance(value, (str, bytes, Mapping))


def _problem(what: str, value: object, annotation: Any) -> str:
    return f"{what} has to be {_words(annotation)}, not {reprlib.repr(value)}"


def _words(annotation: Any) -> str:
    """A type, for people."""
    origin, args = get_origin(annotation) or annotation, get_args(annotation)
    if origin in (Union, types.UnionType):
        return " or ".join(dict.fromkeys(map(_words, args)))
    if origin is Literal:
        return f"one of {', '.join(map(str, args))}"
    if origin in _PLAIN:
        return _PLAIN[origin]
    if origin is Callable:
        return "a function"
    if not isinstance(origin, type):
        return "of any type"
    if origin is tuple and args[-1:] != (...,):
        return f"({', '.join(map(_words, args))})"
    if issubclass(origin, Mapping):
        return "a dict"
    if origin in _LISTS:
        return f"a list ({_words(args[0])} each)" if args else "a list"
    return f"of type {origin.__name__}"
