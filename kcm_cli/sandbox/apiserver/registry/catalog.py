"""The catalog of served resources: built-in ones from data, custom ones from CustomResourceDefinitions."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from fnmatch import fnmatchcase
from functools import cache, lru_cache
from typing import Protocol

import msgspec
from msgspec.structs import replace

from kcm_cli.api.resource import GVR
from kcm_cli.machinery import codec
from kcm_cli.sandbox.apiserver.data import read_data
from kcm_cli.sandbox.apiserver.registry.conversion import Conversion, StoredAs
from kcm_cli.sandbox.apiserver.schema.scheme import internal
from kcm_cli.sandbox.apiserver.selectable import Selectable
from kcm_cli.sandbox.apiserver.tables.column import Layout
from kcm_cli.sandbox.apiserver.types import ResourceInfo, Tree

ALL_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
PART_VERBS = frozenset(["get", "patch", "update"])


class Subresource(msgspec.Struct, frozen=True):
    """A subresource. ``kind``, ``group`` and ``version`` are empty if they are the parent's."""

    name: str
    verbs: frozenset[str] = PART_VERBS
    kind: str = ""
    group: str = ""
    version: str = ""


class ScalePaths(msgspec.Struct, frozen=True):
    """The dotted paths of replicas (in spec and status) and selector. ``selector`` may be empty."""

    spec: str
    status: str
    selector: str = ""


class Served(msgspec.Struct, frozen=True, eq=False):
    """A served resource.

    storage: the resource that its objects are stored as. warning: in all responses. hidden: an annotation that
    PartialObjectMetadata does not have. conversion: None for objects that are stored as they are. For custom resources:
    selectable: fields for selectors; scale: paths for its Scale; table: its columns; same: the definition never had
    another version, so objects are stored as served; closed: the definition is terminating, so none are created.
    """

    info: ResourceInfo
    storage: GVR
    subresources: Mapping[str, Subresource] = msgspec.field(default_factory=dict)
    storage_hash: str = ""
    list_kind: str = ""
    selectable: Selectable | None = None
    scale: ScalePaths | None = None
    table: Layout | None = None
    warning: str = ""
    hidden: str = ""
    same: bool = False
    closed: bool = False
    conversion: Conversion | None = None

    @property
    def go_type(self) -> str:
        """The Go type of its objects: ``core.ConfigMap``, ``unstructured.Unstructured``."""
        if self.info.custom:
            return "unstructured.Unstructured"
        return f"{internal(self.info.gvr.group)}.{self.info.kind}"

    @property
    def converts(self) -> bool:
        """Whether the stored form of objects differs from this resource's."""
        return self.storage != self.info.gvr and not self.same

    def to_storage(self, doc: Tree) -> Tree:
        """A document of a built-in resource in the stored form. Custom objects stay as they are."""
        return doc if self.conversion is None else self.conversion.to_storage(doc)

    def from_storage(self, doc: Tree) -> Tree:
        """A stored document of a built-in resource in its form. Custom objects stay as they are."""
        return doc if self.conversion is None or self.info.custom else self.conversion.read(doc)


class Facts(msgspec.Struct, frozen=True):
    """A built-in resource, as discovery lists it. gv: group and version."""

    gv: tuple[str, str]
    name: str
    singular: str
    kind: str
    namespaced: bool
    verbs: tuple[str, ...] = ALL_VERBS
    short: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    hash: str = ""
    subresources: tuple[Subresource, ...] = ()


class Declared(Protocol):
    """What the declaration of a built-in kind says about its resource: see ``core.Kind``."""

    @property
    def group(self) -> str: ...
    @property
    def resource(self) -> str: ...
    @property
    def stored_as(self) -> Mapping[str, StoredAs]: ...
    @property
    def warning(self) -> str: ...
    @property
    def hidden(self) -> str: ...
    @property
    def facts(self) -> Facts | None: ...


class DeclaredKinds(Protocol):
    """Declarations that do not change: they are compared by identity."""

    def __iter__(self) -> Iterator[Declared]: ...
    def __hash__(self) -> int: ...


class Group(msgspec.Struct, frozen=True):
    """An API group and its versions, the preferred one first."""

    group: str
    versions: tuple[str, ...]
    preferred: str = ""


class _File(msgspec.Struct):
    groups: tuple[Group, ...]
    resources: tuple[Facts, ...]


def _names(served: Served) -> Iterator[str]:
    """The names of a resource and its subresources, without and with its group."""
    gvr = served.info.gvr
    for name in ("", *(f"/{each}" for each in served.subresources)):
        yield f"{gvr.plural}{name}"
        if gvr.group:
            yield f"{gvr.plural}.{gvr.group}{name}"


class Catalog:
    """The served resources. ``changed``: callbacks, called after each change (discovery drops its cache)."""

    def __init__(self, kinds: DeclaredKinds) -> None:
        self._builtin_groups, served = _built_in(kinds)
        self._custom_groups: dict[str, Group] = {}
        self._served: dict[tuple[str, str, str], Served] = {}
        self._versions: set[tuple[str, str]] = set()
        self._remote: tuple[tuple[str, str], ...] = ()
        self.changed: list[Callable[[], None]] = []
        for one in served:
            self._insert(one)

    @property
    def groups(self) -> tuple[Group, ...]:
        """The groups that this server serves, in the order of discovery. The core group's name is empty."""
        return self._builtin_groups + tuple(self._custom_groups.values())

    @property
    def listed(self) -> tuple[Group, ...]:
        """The groups in discovery, including those of other servers."""
        known = {group.group for group in self.groups}
        remote: dict[str, list[str]] = {}
        for name, version in self._remote:
            remote.setdefault(name, []).append(version)
        ours = tuple(_with_versions(group, remote.get(group.group, ())) for group in self.groups)
        return ours + tuple(Group(name, tuple(remote[name])) for name in remote if name not in known)

    def unknown(self, patterns: Sequence[str]) -> list[str]:
        """Those of these patterns (``pods``, ``pods/status``, ``deployments.apps``, ``*``) that match no resource."""
        names = {name for served in self._served.values() for name in _names(served)}
        return [one for one in patterns if not any(fnmatchcase(name, one) for name in names)]

    def is_remote(self, group: str, version: str) -> bool:
        """Whether a version is served by another server (APIService) and not by this one."""
        return (group, version) in self._remote and (group, version) not in self._versions

    def knows(self, group: str, version: str) -> bool:
        """Whether the group, or the version by another server, is served."""
        return self.has_group(group) or self.is_remote(group, version)

    def find(self, group: str, version: str, plural: str) -> Served | None:
        return self._served.get((group, version, plural))

    def by_gvr(self, gvr: GVR) -> Served | None:
        return self._served.get((gvr.group, gvr.version, gvr.plural))

    def info(self, gvr: GVR) -> ResourceInfo:
        """A resource that is always served."""
        served = self.by_gvr(gvr)
        assert served is not None, f"{gvr} is not served"
        return served.info

    def by_kind(self, api_version: str, kind: str) -> Served | None:
        """The resource of a kind."""
        for served in self._served.values():
            if served.info.kind == kind and served.info.api_version == api_version:
                return served
        return None

    def has_version(self, group: str, version: str) -> bool:
        """Whether this server serves a resource of the group and version."""
        return (group, version) in self._versions

    def is_custom(self, group: str) -> bool:
        """Whether a group has custom resources only."""
        return group in self._custom_groups

    def has_group(self, group: str) -> bool:
        """Whether this server serves the group."""
        return any(one.group == group for one in self.groups)

    def resources(self, group: str, version: str) -> list[Served]:
        """The resources of a group and version, sorted by name."""
        found = [s for (g, v, _), s in self._served.items() if (g, v) == (group, version)]
        return sorted(found, key=lambda served: served.info.gvr.plural)

    def __iter__(self) -> Iterator[Served]:
        return iter(list(self._served.values()))

    def as_now(self) -> "Catalog":
        """What is served now: later changes do not show in it."""
        found = copy(self)
        found._served, found._versions, found.changed = dict(self._served), set(self._versions), []
        return found

    def set_custom(self, groups: Mapping[str, Group], served: list[Served]) -> None:
        """Replace all custom resources and their groups."""
        for key in [key for key, one in self._served.items() if one.info.custom]:
            del self._served[key]
        builtin = {group.group for group in self._builtin_groups}
        self._custom_groups = {name: group for name, group in groups.items() if name not in builtin}
        for one in served:
            self._insert(one)
        self._versions = {(s.info.gvr.group, s.info.gvr.version) for s in self._served.values()}
        for callback in self.changed:
            callback()

    def set_remote(self, versions: Iterable[tuple[str, str]]) -> None:
        """Replace the groups and versions of other servers."""
        remote = tuple(versions)
        if remote == self._remote:
            return
        self._remote = remote
        for callback in self.changed:
            callback()

    def add_aggregated(self, group: Group, served: Iterable[Served]) -> None:
        """Serve the group of an aggregated API."""
        self._builtin_groups = (*self._builtin_groups, group)
        for one in served:
            self._insert(one)
        for callback in self.changed:
            callback()

    def _insert(self, served: Served) -> None:
        gvr = served.info.gvr
        self._served[gvr.group, gvr.version, gvr.plural] = served
        self._versions.add((gvr.group, gvr.version))


def _with_versions(group: Group, versions: Iterable[str]) -> Group:
    more = tuple(version for version in versions if version not in group.versions)
    return Group(group.group, group.versions + more, group.preferred) if more else group


def built_in_versions() -> set[str]:
    """The groups and versions that are served without definitions: ``v1``, ``apps/v1``."""
    return {GVR(*data.gv, "").group_version for data in _recorded().resources}


def _with_version(groups: tuple[Group, ...], name: str, version: str) -> tuple[Group, ...]:
    """Groups with a version of one of them, as a new group if there is none."""
    known = next((group for group in groups if group.group == name), None)
    if known is None:
        return (*groups, Group(name, (version,), version))
    return tuple(_with_versions(group, (version,)) if group is known else group for group in groups)


@cache
def _recorded() -> _File:
    """The built-in groups and resources."""
    return codec.decode(read_data("discovery"), _File)


@lru_cache(2)
def _built_in(kinds: DeclaredKinds) -> tuple[tuple[Group, ...], tuple[Served, ...]]:
    """The groups and resources of these kinds, which all servers of a process share."""
    recorded, declared = _recorded(), {(kind.group, kind.resource): kind for kind in kinds}
    own = [kind.facts for kind in declared.values() if kind.facts is not None]
    groups = recorded.groups
    for facts in own:
        groups = _with_version(groups, *facts.gv)
    served = (_served(facts, declared.get((facts.gv[0], facts.name))) for facts in (*recorded.resources, *own))
    return groups, tuple(served)


def _served(data: Facts, declared: Declared | None) -> Served:
    gvr = GVR(*data.gv, data.name)
    info = ResourceInfo(
        gvr=gvr,
        kind=data.kind,
        singular=data.singular,
        namespaced=data.namespaced,
        verbs=frozenset(data.verbs),
        short_names=data.short,
        categories=data.categories,
        subresources=frozenset(sub.name for sub in data.subresources),
    )
    subresources = {sub.name: replace(sub, kind=sub.kind or data.kind) for sub in data.subresources}
    list_kind = "" if "list" not in data.verbs else data.kind + "List"
    served = Served(info, gvr, subresources, data.hash, list_kind)
    if declared is None:
        return served
    form = declared.stored_as.get(gvr.version)
    served = replace(served, warning=declared.warning, hidden=declared.hidden, conversion=form)
    return served if form is None else replace(served, storage=form.storage)
