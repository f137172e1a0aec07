"""The groups, resources and subresources that an API server serves, as values.

Pure; ``discovery`` fetches them. They are in the server's order: groups by priority, versions by preference.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches

import msgspec

from kcm_cli.api.resource import GVR, Resource
from kcm_cli.machinery.meta import PartialObject

ANY = "*"
_ALIKE = 0.8
"""How much a word has to be like a name (``SequenceMatcher.ratio``) to be taken for a typo."""


class Subresource(msgspec.Struct, frozen=True):
    """A subresource, such as ``status`` or ``scale``, and its kind."""

    name: str
    group: str = ""
    version: str = ""
    kind: str = ""
    verbs: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class ServedResource:
    """One resource in one version."""

    gvr: GVR
    kind: str
    singular: str
    namespaced: bool
    verbs: frozenset[str]
    subresources: Mapping[str, Subresource] = field(default_factory=dict, hash=False)
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()

    @property
    def group_resource(self) -> tuple[str, str]:
        """Group and plural, which are the same in all versions."""
        return self.gvr.group, self.gvr.plural

    def supports(self, *verbs: str) -> bool:
        """Whether all these verbs are served."""
        return self.verbs.issuperset(verbs)

    def partial(self) -> Resource[PartialObject]:
        """The resource with only its metadata (PartialObjectMetadata)."""
        return Resource(self.gvr, self.kind, PartialObject, namespaced=self.namespaced)


class Group(msgspec.Struct, frozen=True):
    """An API group. ``versions`` in the server's order, ``preferred`` is one of them (empty: all are stale)."""

    name: str
    versions: tuple[str, ...]
    preferred: str


@dataclass(frozen=True, slots=True)
class Discovery:
    """Everything that is served. ``failed``: the reason by group/version whose discovery failed.

    In ``failed``, ``group/*`` stands for the versions of a group whose names are unknown, ``*`` for unknown groups.
    """

    groups: tuple[Group, ...] = ()
    resources: Mapping[tuple[str, str], tuple[ServedResource, ...]] = field(default_factory=dict, hash=False)
    failed: Mapping[str, str] = field(default_factory=dict, hash=False)

    def complete(self, gvr: GVR) -> bool:
        """Whether discovery of this group version succeeded, so that a resource missing from it is not served."""
        return not self.failed.keys() & {ANY, f"{gvr.group}/{ANY}", gvr.group_version}

    def all(self) -> Iterator[ServedResource]:
        """All resources in all versions."""
        for group in self.groups:
            for version in group.versions:
                yield from self.resources.get((group.name, version), ())

    def preferred(self) -> tuple[ServedResource, ...]:
        """Each resource once: in its group's preferred version, else in the first that has it."""
        chosen: dict[tuple[str, str], ServedResource] = {}
        for group in self.groups:
            for version in group.versions:
                for resource in self.resources.get((group.name, version), ()):
                    if version == group.preferred or resource.group_resource not in chosen:
                        chosen[resource.group_resource] = resource
        return tuple(chosen.values())

    def find(self, group: str, plural: str, version: str = "") -> ServedResource | None:
        """A resource by its plural; without a version in the preferred one."""
        return self._first(group, version, lambda served: served.gvr.plural == plural)

    def find_kind(self, group: str, kind: str, version: str = "") -> ServedResource | None:
        """A resource by its kind; without a version in the preferred one."""
        return self._first(group, version, lambda served: served.kind == kind)

    def find_lower_kind(self, group: str, kind: str, version: str = "") -> ServedResource | None:
        """A resource by its kind in lower case; without a version in the preferred one."""
        return self._first(group, version, lambda served: served.kind.lower() == kind)

    def named(self, word: str) -> ServedResource | None:
        """The resource with this plural, singular, short name or kind, with or without its group."""
        bare, _, group = word.lower().partition(".")
        for served in self.preferred():
            words = (served.gvr.plural, served.singular, *served.short_names, served.kind.lower())
            if bare in words and (not group or served.gvr.group == group):
                return served
        return None

    def near(self, word: str) -> str:
        """The kind that a word may mean, for an error; empty if it is like none."""
        bare = word.partition(".")[0].lower()
        words = {name.lower(): served.kind for served in self.preferred() for name in (served.gvr.plural, served.kind)}
        found = get_close_matches(bare, words, n=1, cutoff=_ALIKE)
        return words[found[0]] if found else ""

    def _first(self, group: str, version: str, wanted: Callable[[ServedResource], bool]) -> ServedResource | None:
        for candidate in (version,) if version else self._versions(group):
            for resource in self.resources.get((group, candidate), ()):
                if wanted(resource):
                    return resource
        return None

    def _versions(self, name: str) -> tuple[str, ...]:
        for group in self.groups:
            if group.name == name:
                return (group.preferred, *(v for v in group.versions if v != group.preferred))
        return ()
