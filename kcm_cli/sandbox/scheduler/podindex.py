"""Counts pods of a kind by node, updated as pods come and go.

Guarantees: the cost of a decision depends on the number of nodes, not of pods. A kind is counted on first use, and the
least recently used kinds are dropped. A pod that comes or goes is compared with the kinds of its namespace that require
no label, or one of its labels that was rare when the kind was counted first, and with those of any namespace.

upstream: pkg/scheduler/framework/plugins/{interpodaffinity,podtopologyspread} count all pods anew for each pod.
"""

from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Protocol, TypeVar

import msgspec

from kcm_cli.machinery.labels import Selector
from kcm_cli.sandbox.scheduler.podinfo import PodInfo, Term

K = TypeVar("K")

MOST_KINDS = 2048
_ANYWHERE = ""
Namespaces = Mapping[str, Mapping[str, str]]
"""The labels of namespaces."""
Counts = dict[str, int]
"""How many pods of some kind a node has, by its name; nodes without one are not in it."""


Label = tuple[str, str]
_Group = tuple[str, Label | None]


class PodSet(Protocol):
    """A set of pods. Hashable."""

    @property
    def namespace(self) -> str:
        """The namespace of the pods; empty if they may be in any."""

    @property
    def labels(self) -> Sequence[Label]:
        """Labels that all of the pods have."""

    def has(self, info: PodInfo, namespaces: Namespaces) -> bool: ...


class Labelled(msgspec.Struct, frozen=True, cache_hash=True):
    """The pods in a namespace that a selector matches and that are not being deleted."""

    namespace: str
    selector: Selector

    @property
    def labels(self) -> Sequence[Label]:
        return self.selector.exact_labels

    def has(self, info: PodInfo, namespaces: Namespaces) -> bool:
        meta = info.pod.metadata
        if meta.namespace != self.namespace or meta.deletion_timestamp is not None:
            return False
        return self.selector.matches(meta.labels or {})


class Matched(msgspec.Struct, frozen=True):
    """The pods that match all of these terms."""

    terms: tuple[Term, ...]

    @property
    def namespace(self) -> str:
        return _ANYWHERE

    @property
    def labels(self) -> Sequence[Label]:
        return ()

    def has(self, info: PodInfo, namespaces: Namespaces) -> bool:
        return matches_all(self.terms, info, namespaces)


def matches_all(terms: tuple[Term, ...], info: PodInfo, namespaces: Namespaces) -> bool:
    """Whether there are terms and all of them match this pod."""
    labels = namespaces.get(info.pod.metadata.namespace, _NO_LABELS)
    return bool(terms) and all(term.matches(info.pod, labels) for term in terms)


_NO_LABELS: Mapping[str, str] = {}
_NO_KINDS: Mapping[PodSet, Counts] = {}


class PodIndex:
    """The counts, and the terms of assigned pods: ``anti`` has required anti-affinity, ``drawn`` all weighted terms.

    counted: called with a kind and the name of a node after the node's number of these pods has changed.
    """

    def __init__(self, counted: Callable[[PodSet, str], None]) -> None:
        self._counted = counted
        self.namespaces: Namespaces = {}
        self._counts: OrderedDict[PodSet, tuple[_Group, Counts]] = OrderedDict()
        """The counts by kind, with the key of the kind in ``_groups``."""
        self._groups: dict[_Group, dict[PodSet, Counts]] = {}
        """The counts by namespace and label of the kind."""
        self._labelled: Counter[_Group] = Counter()
        """The number of pods with a label in a namespace."""
        self.anti: dict[Term, Counts] = {}
        self.drawn: dict[tuple[Term, int], Counts] = {}

    def set_namespaces(self, namespaces: Namespaces) -> None:
        """Set the namespaces, by whose labels terms may match other pods now."""
        self.namespaces = namespaces
        for kind in list(self._groups.get((_ANYWHERE, None), ())):
            self._give_up(kind)

    def add(self, node: str, info: PodInfo) -> None:
        self._change(node, info, 1)

    def remove(self, node: str, info: PodInfo) -> None:
        self._change(node, info, -1)

    def counts(self, kind: PodSet, pods: Iterable[tuple[str, PodInfo]]) -> Counts:
        """The pods of a kind by node. ``pods``: those in its namespace with their nodes, read for a new kind only,
        and only if some pod has each of its labels."""
        found = self._counts.get(kind)
        if found is not None:
            self._counts.move_to_end(kind)
            return found[1]
        groups: list[_Group] = [(kind.namespace, label) for label in kind.labels]
        rarest = min(groups, key=self._labelled.__getitem__, default=(kind.namespace, None))
        counts: Counts = {}
        self._counts[kind] = rarest, counts
        self._groups.setdefault(rarest, {})[kind] = counts
        if rarest[1] is None or rarest in self._labelled:
            for node, info in pods:
                if kind.has(info, self.namespaces):
                    counts[node] = counts.get(node, 0) + 1
        if len(self._counts) > MOST_KINDS:
            self._give_up(next(iter(self._counts)))
        return counts

    def _give_up(self, kind: PodSet) -> None:
        group, _ = self._counts.pop(kind)
        alike = self._groups[group]
        del alike[kind]
        if not alike:
            del self._groups[group]

    def replace(self, node: str, old: PodInfo, new: PodInfo) -> None:
        """A pod has other labels, or is being deleted."""
        self._count_terms(node, old, -1)
        self._count_labels(old, -1)
        self._count_labels(new, 1)
        self._count_terms(node, new, 1)
        was, now = self._kinds_of(old), self._kinds_of(new)
        for kind in was ^ now:
            self._count_kind(kind, node, 1 if kind in now else -1)

    def _change(self, node: str, info: PodInfo, sign: int) -> None:
        self._count_labels(info, sign)
        for kind in self._kinds_of(info):
            self._count_kind(kind, node, sign)
        self._count_terms(node, info, sign)

    def _kinds_of(self, info: PodInfo) -> set[PodSet]:
        groups = ((_ANYWHERE, None), (info.pod.metadata.namespace, None), *_groups_of(info))
        return {
            kind for group in groups for kind in self._groups.get(group, _NO_KINDS) if kind.has(info, self.namespaces)
        }

    def _count_kind(self, kind: PodSet, node: str, sign: int) -> None:
        _count(self._counts[kind][1], node, sign)
        self._counted(kind, node)

    def _count_labels(self, info: PodInfo, sign: int) -> None:
        for group in _groups_of(info):
            _count(self._labelled, group, sign)

    def _count_terms(self, node: str, info: PodInfo, sign: int) -> None:
        for term in info.anti_affinity:
            _count_in(self.anti, term, node, sign)
        for weighted in _drawn_by(info):
            _count_in(self.drawn, weighted, node, sign)


def _groups_of(info: PodInfo) -> list[_Group]:
    meta = info.pod.metadata
    return [(meta.namespace, label) for label in (meta.labels or _NO_LABELS).items()]


def _drawn_by(info: PodInfo) -> Iterator[tuple[Term, int]]:
    for term in info.affinity:  # who has to be near others is drawn to them, with a weight of 1
        yield term, 1
    for term in info.preferred:
        yield term, term.weight
    for term in info.preferred_anti:
        yield term, -term.weight


def _count(counts: dict[K, int], key: K, sign: int) -> None:
    left = counts.get(key, 0) + sign
    if left:
        counts[key] = left
    else:
        counts.pop(key, None)


def _count_in(all_counts: dict[K, Counts], key: K, node: str, sign: int) -> None:
    counts = all_counts.setdefault(key, {})
    _count(counts, node, sign)
    if not counts:
        del all_counts[key]
