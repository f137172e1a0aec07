"""Removes nulls from a JSON value where a type does not allow them, as Go's encoding/json does.

A null field of a struct gets its default; a null element of a list or value of a map becomes the zero value of its
type. Other values are not changed, even if their type is wrong: the decoder reports that.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

from msgspec import inspect

Prune = Callable[[Any], Any]
_ZEROS: dict[type[inspect.Type], object] = {
    inspect.StrType: "",
    inspect.IntType: 0,
    inspect.FloatType: 0.0,
    inspect.BoolType: False,
}
_LISTS = (inspect.VarTupleType, inspect.ListType, inspect.SetType, inspect.FrozenSetType)


def without(value: object, type_: object) -> object:
    """The value without nulls that the type's decoder rejects."""
    return _prune_of(type_)(value)


@cache
def _prune_of(type_: object) -> Prune:
    return _Pruner().of(inspect.type_info(type_))


class _Pruner:
    """Creates the functions for one type, which may be recursive."""

    def __init__(self) -> None:
        self._structs: dict[type, Prune] = {}

    def of(self, info: inspect.Type) -> Prune:
        if isinstance(info, inspect.StructType):
            return self._struct(info)
        if isinstance(info, _LISTS):
            return _list_of(self.of(info.item_type))
        if isinstance(info, inspect.DictType):
            return _dict_of(self.of(info.value_type))
        if isinstance(info, inspect.UnionType):
            return self._union(info)
        zero = _ZEROS.get(type(info))
        return (lambda value: value) if zero is None else (lambda value: zero if value is None else value)

    def _struct(self, info: inspect.StructType) -> Prune:
        known = self._structs.get(info.cls)
        if known is not None:
            return known
        fields: dict[str, Prune] = {}

        def prune(value: Any) -> Any:
            if value is None:
                return {}
            if not isinstance(value, dict):
                return value
            found = {}
            for name, field in fields.items():
                held = value.get(name)
                if held is not None:
                    found[name] = field(held)
            return found

        self._structs[info.cls] = prune
        fields.update({field.encode_name: self.of(field.type) for field in info.fields})
        return prune

    def _union(self, info: inspect.UnionType) -> Prune:
        """The function for a union: it applies the member that matches the JSON type. Null is kept if it is allowed."""
        members = [one for one in info.types if not isinstance(one, inspect.NoneType)]
        of_dict = next(
            (self.of(one) for one in members if isinstance(one, inspect.StructType | inspect.DictType)), _same
        )
        of_list = next((self.of(one) for one in members if isinstance(one, _LISTS)), _same)
        zero = None if len(members) < len(info.types) else self.of(members[0])(None)

        def prune(value: Any) -> Any:
            if value is None:
                return zero
            if isinstance(value, dict):
                return of_dict(value)
            return of_list(value) if isinstance(value, list) else value

        return prune


def _same(value: Any) -> Any:
    return value


def _list_of(item: Prune) -> Prune:
    def prune(value: Any) -> Any:
        if value is None:
            return []
        return [item(one) for one in value] if isinstance(value, list) else value

    return prune


def _dict_of(item: Prune) -> Prune:
    def prune(value: Any) -> Any:
        if value is None:
            return {}
        return {key: item(one) for key, one in value.items()} if isinstance(value, dict) else value

    return prune
