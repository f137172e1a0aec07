"""Variations of an object: one field at a time is dropped, emptied, doubled or set to something odd, by the
schema of its kind (OpenAPI v3)."""

import copy
import fnmatch
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Tree = dict[str, Any]
Path = tuple[str | int, ...]


class Absent:
    """Stands for a field that is not there."""

    def __repr__(self) -> str:
        return "absent"


ABSENT = Absent()
TEXTS = ("", "x", "A_b", "a.b", "-x", "x" * 64, "x" * 254, "a b", "/abs", "../x", "1", "a/b", "*", "http://h/p", 5)
NUMBERS = (-1, 0, 1, 7, 70000, 2147483647, 5000000000, 1.5, "x")
QUANTITIES = ("-1", "abc", "0", "1.5", "100m", "1e3", "0.0001", "1Ki", "", "100%")
NUMBERS_OR_TEXTS = (-1, 0, 1, 70000, "x", "10%", "200%", "-5%", "", "HTTP_x", "a-very-long-port-name")
TIMES = ("x", "2011-02-03T04:05:06Z")
KEYS = ("a b", "/x", "X_y", "a.b/c", "x" * 64, "", "kubernetes.io/x", "-", "a/b/c")
BY_NAME = (
    ("resource.Quantity", QUANTITIES, "1"),
    ("intstr.IntOrString", NUMBERS_OR_TEXTS, 1),
    ("Time", TIMES, "2011-02-03T04:05:06Z"),
)
"""Schemas that are known by the end of their name: what is tried, and an ordinary value."""
BY_TYPE: dict[str, tuple[Sequence[object], object]] = {
    "string": (TEXTS, "x"),
    "integer": (NUMBERS, 1),
    "number": (NUMBERS, 1),
    "boolean": ((True, False, "x"), True),
}


@dataclass(frozen=True)
class Variation:
    """A value for a place in an object."""

    path: Path
    value: Any

    def fits(self, doc: Tree) -> bool:
        """Whether the object has a place for the value."""
        parent: Any = doc
        for step in self.path[:-1]:
            if not (step in parent if isinstance(step, str) else step < len(parent)):
                return False
            parent = parent[step]
        return True

    def applied(self, doc: Tree) -> Tree:
        """The object with the value in its place; the given one stays as it is."""
        if not self.path:
            whole: Tree = copy.deepcopy(self.value)
            return whole
        made = copy.deepcopy(doc)
        parent: Any = made
        for step in self.path[:-1]:
            parent = parent[step]
        last = self.path[-1]
        if self.value is not ABSENT:
            parent[last] = copy.deepcopy(self.value)
        elif isinstance(last, int) or last in parent:
            del parent[last]
        return made

    def __str__(self) -> str:
        return f"{'.'.join(map(str, self.path)) or 'the whole'} = {self.value!r}"[:300]


@dataclass(frozen=True)
class Schemas:
    """The schemas of one document of OpenAPI v3, by name. ``skip``: places that are left alone, as patterns."""

    named: Mapping[str, Tree]
    skip: tuple[str, ...] = ()

    def of_kind(self, api_version: str, kind: str) -> Tree:
        """The schema of a kind. Raises LookupError."""
        group, _, version = api_version.rpartition("/")
        wanted = {"group": group, "version": version, "kind": kind}
        for schema in self.named.values():
            if "properties" in schema and wanted in schema.get("x-kubernetes-group-version-kind", ()):
                return schema
        raise LookupError(f"no schema of {api_version} {kind}")

    def variations(self, schema: Tree, doc: Tree) -> Iterator[Variation]:
        """All variations of an object, the deep ones included."""
        yield from self._of(schema, doc, ())

    def _of(self, schema: Tree, value: Any, path: Path) -> Iterator[Variation]:
        if self._skipped(path):
            return
        plain = self._resolved(schema)
        yield from (Variation(path, one) for one in (ABSENT,) if path)
        known = _known(schema, plain)
        if known is not None:
            yield from (Variation(path, one) for one in known[0] if not _same(one, value))
        elif isinstance(value, list) and plain.get("type") == "array":
            yield from self._of_list(plain["items"], value, path)
        elif isinstance(value, dict) and "properties" in plain:
            yield from self._of_struct(plain["properties"], value, path)
        elif isinstance(value, dict) and "additionalProperties" in plain:
            yield from self._of_map(plain["additionalProperties"], value, path)

    def _of_list(self, item: Tree, value: list[Any], path: Path) -> Iterator[Variation]:
        doubled = [*value, value[0]] if value else [self.ordinary(item)] * 2
        for one in ([], None, "x", doubled, [*value, self.ordinary(item)], [*value, None]):
            yield Variation(path, one)
        for index, one in enumerate(value):
            yield from self._of(item, one, (*path, index))

    def _of_struct(self, properties: Mapping[str, Tree], value: Tree, path: Path) -> Iterator[Variation]:
        yield Variation(path, {})
        for name, schema in properties.items():
            if name in value:
                yield from self._of(schema, value[name], (*path, name))
            elif not self._skipped((*path, name)):
                yield from (Variation((*path, name), one) for one in self._added(schema))

    def _of_map(self, item: Tree, value: Tree, path: Path) -> Iterator[Variation]:
        yield Variation(path, {})
        yield from (Variation((*path, key), self.ordinary(item)) for key in KEYS)
        for key, one in value.items():
            yield from self._of(item, one, (*path, key))

    def _added(self, schema: Tree) -> list[Any]:
        """What is put where nothing was."""
        one = self.ordinary(schema)
        if one == "x":
            return [*TEXTS[:6], *TEXTS[8:10]]
        if isinstance(one, bool):
            return [True, False]
        if isinstance(one, int):
            return [1, -1, 0]
        return [one, []] if isinstance(one, list) else [one]

    def ordinary(self, schema: Tree) -> Any:
        """A simple value of a schema: one item in a list, no field in a struct."""
        plain = self._resolved(schema)
        known = _known(schema, plain)
        if known is not None:
            return known[1]
        if plain.get("type") == "array":
            return [self.ordinary(plain["items"])]
        return {"x": self.ordinary(plain["additionalProperties"])} if "additionalProperties" in plain else {}

    def _resolved(self, schema: Tree) -> Tree:
        name = _name(schema)
        return self._resolved(self.named[name]) if name else schema

    def _skipped(self, path: Path) -> bool:
        place = ".".join(map(str, path))
        return any(fnmatch.fnmatch(place, pattern) for pattern in self.skip)


def _known(schema: Tree, plain: Tree) -> tuple[Sequence[object], object] | None:
    name = _name(schema)
    for ending, values, ordinary in BY_NAME:
        if name.endswith(ending):
            return values, ordinary
    return BY_TYPE.get(plain.get("type", ""))


def _name(schema: Tree) -> str:
    """The schema that one refers to, alone or with a default beside it; empty where it refers to none."""
    within = schema if "$ref" in schema else schema.get("allOf", [{}])[0]
    return str(within.get("$ref", "")).rsplit("/", 1)[-1]


def _same(one: object, other: object) -> bool:
    return type(one) is type(other) and one == other
