"""Counts pods of a kind by node, updated as pods come and go.

Guarantees: the cost of a decision depends on the number of nodes, not of pods. A kind is counted on first use, from the
pods with its rarest label, and the least recently used kinds are dropped. A pod that comes or goes is compared with the
kinds of its namespace that require no label, or one of its labels that was rare when the kind was counted first, and
with those of any namespace. In the same way, it is compared with the terms of others that may be about it.

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


class Matched(msgspec.Struct, frozen=True, cache_hash=True):
    """The pods that match all of these terms."""

    terms: tuple[Term, ...]

    @property
    def namespace(self) -> str:
        """Most terms are about one namespace, that of the pod that has them."""
        named = self.terms[0].namespaces if self.terms else frozenset[str]()
        same = len(named) == 1 and all(term.namespaces == named and _is_about_named(term) for term in self.terms)
        return next(iter(named)) if same else _ANYWHERE

    @property
    def labels(self) -> Sequence[Label]:
        if self.namespace == _ANYWHERE:
            return ()
        return [label for term in self.terms for label in term.selector.exact_labels]

    def has(self, info: PodInfo, namespaces: Namespaces) -> bool:
        return matches_all(self.terms, info, namespaces)


def _is_about_named(term: Term) -> bool:
    """Whether it is about the namespaces that it names, and no others."""
    return not term.namespace_selector.selectable


def matches_all(terms: tuple[Term, ...], info: PodInfo, namespaces: Namespaces) -> bool:
    """Whether there are terms and all of them match this pod."""
    labels = namespaces.get(info.pod.metadata.namespace, _NO_LABELS)
    return bool(terms) and all(term.matches(info.pod, labels) for term in terms)


_NO_LABELS: Mapping[str, str] = {}
_NO_KINDS: Mapping[PodSet, Counts] = {}


class PodIndex:
    """The counts by kind, and the terms of assigned pods.

    counted: called with a kind and the name of a node after the node's number of these pods has changed. located: the
    node of an assigned pod, by its key, and the pod.
    """

    def __init__(
        self, counted: Callable[[PodSet, str], None], located: Callable[[str], tuple[str, PodInfo] | None]
    ) -> None:
        self._counted, self._located = counted, located
        self.namespaces: dict[str, Mapping[str, str]] = {}
        self._counts: OrderedDict[PodSet, tuple[_Group, Counts]] = OrderedDict()
        """The counts by kind, with the key of the kind in ``_groups``."""
        self._groups: dict[_Group, dict[PodSet, Counts]] = {}
        """The counts by namespace and label of the kind."""
        self._labelled: dict[_Group, set[str]] = {}
        """The keys of the pods with a label in a namespace."""
        self._priorities: Counter[int] = Counter()
        self._anti: dict[_Group, dict[Term, Counts]] = {}
        """Of each term of required anti-affinity the pods that have it, by namespace and label of those it is about."""
        self._drawn: dict[_Group, dict[tuple[Term, int], Counts]] = {}
        """The same of all weighted terms."""

    def set_namespace(self, name: str, labels: Mapping[str, str]) -> None:
        """A namespace has these labels now, by which terms may match its pods or not."""
        self.namespaces[name] = labels
        for kind in list(self._groups.get((_ANYWHERE, None), ())):
            self._give_up(kind)

    def add(self, node: str, info: PodInfo) -> None:
        self._change(node, info, 1)

    def remove(self, node: str, info: PodInfo) -> None:
        self._change(node, info, -1)

    def counts(self, kind: PodSet, keys: Callable[[str], Iterable[str]]) -> Counts:
        """The pods of a kind by node. keys: of all pods in a namespace, or in any; called for a new kind only, and
        only if it has no labels."""
        found = self._counts.get(kind)
        if found is not None:
            self._counts.move_to_end(kind)
            return found[1]
        namespace = kind.namespace
        groups: list[_Group] = [(namespace, label) for label in kind.labels]
        rarest = min(groups, key=lambda group: len(self._labelled.get(group, ())), default=(namespace, None))
        counts: Counts = {}
        self._counts[kind] = rarest, counts
        self._groups.setdefault(rarest, {})[kind] = counts
        for key in self._labelled.get(rarest, ()) if groups else keys(namespace):
            located = self._located(key)
            if located is not None and kind.has(located[1], self.namespaces):
                counts[located[0]] = counts.get(located[0], 0) + 1
        if len(self._counts) > MOST_KINDS:
            self._give_up(next(iter(self._counts)))
        return counts

    def anti(self, info: PodInfo) -> Iterator[tuple[Term, Counts]]:
        """The terms of required anti-affinity that may be about a pod, with the numbers of pods that have them."""
        for group in _groups_about(info):
            yield from self._anti.get(group, _NO_TERMS).items()

    def drawn(self, info: PodInfo) -> Iterator[tuple[tuple[Term, int], Counts]]:
        """The same of all other terms, with their weights."""
        for group in _groups_about(info):
            yield from self._drawn.get(group, _NO_WEIGHTED).items()

    def has_below(self, priority: int) -> bool:
        """Whether some pod has a lower priority."""
        return min(self._priorities, default=priority) < priority

    def _give_up(self, kind: PodSet) -> None:
        group, _ = self._counts.pop(kind)
        alike = self._groups[group]
        del alike[kind]
        if not alike:
            del self._groups[group]

    def replace(self, node: str, old: PodInfo, new: PodInfo) -> None:
        """A pod has other labels, or is being deleted."""
        self._count_terms(node, old, -1)
        self._file(old, -1)
        self._file(new, 1)
        self._count_terms(node, new, 1)
        was, now = self._kinds_of(old), self._kinds_of(new)
        for kind in was ^ now:
            self._count_kind(kind, node, 1 if kind in now else -1)

    def _change(self, node: str, info: PodInfo, sign: int) -> None:
        self._file(info, sign)
        for kind in self._kinds_of(info):
            self._count_kind(kind, node, sign)
        self._count_terms(node, info, sign)

    def _kinds_of(self, info: PodInfo) -> set[PodSet]:
        return {
            kind
            for group in _groups_about(info)
            for kind in self._groups.get(group, _NO_KINDS)
            if kind.has(info, self.namespaces)
        }

    def _count_kind(self, kind: PodSet, node: str, sign: int) -> None:
        _count(self._counts[kind][1], node, sign)
        self._counted(kind, node)

    def _file(self, info: PodInfo, sign: int) -> None:
        """File a pod under its labels and its priority, or take it out."""
        _count(self._priorities, info.priority, sign)
        for group in _groups_of(info):
            if sign > 0:
                self._labelled.setdefault(group, set()).add(info.key)
            elif (keys := self._labelled.get(group)) is not None:
                keys.discard(info.key)
                if not keys:
                    del self._labelled[group]

    def _count_terms(self, node: str, info: PodInfo, sign: int) -> None:
        for term in info.anti_affinity:
            _count_in(self._anti, term, term, node, sign)
        for weighted in _drawn_by(info):
            _count_in(self._drawn, weighted, weighted[0], node, sign)


_NO_TERMS: Mapping[Term, Counts] = {}
_NO_WEIGHTED: Mapping[tuple[Term, int], Counts] = {}


def _groups_of(info: PodInfo) -> list[_Group]:
    meta = info.pod.metadata
    return [(meta.namespace, label) for label in (meta.labels or _NO_LABELS).items()]


def _groups_about(info: PodInfo) -> list[_Group]:
    """The groups of all kinds and terms that may be about a pod."""
    return [(_ANYWHERE, None), (info.pod.metadata.namespace, None), *_groups_of(info)]


def _groups_of_term(term: Term) -> list[_Group]:
    """A pod that the term is about is in one of these groups, and only in one."""
    if not _is_about_named(term):
        return [(_ANYWHERE, None)]
    label = next(iter(term.selector.exact_labels), None)
    return [(namespace, label) for namespace in term.namespaces]


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


def _count_in(filed: dict[_Group, dict[K, Counts]], key: K, term: Term, node: str, sign: int) -> None:
    """Count a pod of a node that has a term."""
    for group in _groups_of_term(term):
        all_counts = filed.setdefault(group, {})
        counts = all_counts.setdefault(key, {})
        _count(counts, node, sign)
        if not counts:
            del all_counts[key]
            if not all_counts:
                del filed[group]
