"""Selects the part of an answer to show: objects in a namespace, or with certain labels.

An object matches a selector if its labels match, if the labels of its pod template match, or if its owner matches. So a
Deployment's label selects its ReplicaSets and pods, too.
"""

from collections.abc import Iterable, Mapping

import msgspec

from kcm_cli.api.short_names import kind_in
from kcm_cli.machinery import codec
from kcm_cli.machinery.labels import Selector
from kcm_cli.machinery.meta import ObjectMeta, PartialObject, View
from kcm_cli.plan.answer import Object
from kcm_cli.plan.kinds import kind_of_owner
from kcm_cli.plan.simulation import Simulation
from kcm_cli.plan.snapshot import Snapshot

_NO_OBJECTS = frozenset(("Image",))


class _Template(View, frozen=True, gc=False):
    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)


class _Spec(View, frozen=True, gc=False):
    template: _Template | None = None


class _Head(PartialObject, frozen=True, gc=False, kw_only=True):
    spec: _Spec | None = None


class Shown:
    """``namespace``: empty for all. Cluster-scoped objects are always shown, except other Namespaces."""

    def __init__(self, namespace: str, selector: Selector, snapshot: Snapshot, outcomes: Iterable[Simulation]) -> None:
        self._namespace = namespace
        self._selector = selector
        self._labels: dict[Object, list[Mapping[str, str]]] = {}
        self._owners: dict[Object, list[Object]] = {}
        self._known: dict[Object, bool] = {}
        if not selector.empty:
            for collection in snapshot.collections.values():
                for item in collection.items:
                    self._note(item.data)
            for outcome in outcomes:
                for data in outcome.finals.values():
                    if data is not None:
                        self._note(data)

    @property
    def everything(self) -> bool:
        """Whether nothing is left out."""
        return not self._namespace and self._selector.empty

    def has(self, about: Object, owner: str = "") -> bool:
        """Whether to show an object. owner: ``Kind/name``, in case the object itself is unknown."""
        if self._namespace:
            if about.namespace not in (self._namespace, ""):
                return False
            if about.kind == "Namespace" and about.name != self._namespace:
                return False
        if self._selector.empty or about.kind in _NO_OBJECTS:
            return True
        kind, _, name = owner.partition("/")
        return self._matches(about) or (bool(name) and self._matches(Object(kind, about.namespace, name)))

    def _matches(self, about: Object) -> bool:
        known = self._known.get(about)
        if known is None:
            self._known[about] = False  # an owner of itself
            known = any(self._selector.matches(labels) for labels in self._labels.get(about, ()))
            known = known or any(self._matches(owner) for owner in self._owners.get(about, ()))
            self._known[about] = known
        return known

    def _note(self, data: bytes) -> None:
        head = codec.decode_or_none(data, _Head)
        if head is None:
            return  # such as another kind's spec; what it belongs to is not known either
        about = Object(kind_in(head.api_version.rpartition("/")[0], head.kind), head.namespace, head.name)
        self._labels[about] = [head.labels]
        if head.spec is not None and head.spec.template is not None:
            self._labels[about].append(head.spec.template.metadata.labels or {})
        owners = [Object(kind_of_owner(ref), head.namespace, ref.name) for ref in head.metadata.owner_references]
        if owners:
            self._owners[about] = owners
