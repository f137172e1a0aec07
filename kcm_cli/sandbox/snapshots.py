"""What was in a cluster at a moment, and the way back, through the store: no finalizer, webhook or policy is asked.

Everything that follows the cluster (controllers, nodes, operators) sees ordinary events. Leases of nodes and of the
control plane, and what nodes say of themselves, go on as they are; time does not go back. What was being deleted at
that moment, and all in a namespace that was, goes on its way: brought back, it would be deleted again.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from kcm_cli.api.resource import GVR
from kcm_cli.machinery import codec
from kcm_cli.sandbox.apiserver.crd.controller import DEFINITIONS
from kcm_cli.sandbox.apiserver.store import Store, Stored
from kcm_cli.sandbox.nodes.empty_dirs import Left

LEASES, NODES = GVR("coordination.k8s.io", "v1", "leases"), GVR("", "v1", "nodes")
NAMESPACES = GVR("", "v1", "namespaces")
_SYSTEM = frozenset({"kube-node-lease", "kube-system"})
"""Namespaces whose Leases are renewed all the time; one elsewhere is an operator's."""
_FIRST = {DEFINITIONS: 0, NAMESPACES: 1}
"""Made before all others, and deleted after them."""
_CONDITIONS = "node.kubernetes.io/"


class Snapshot(msgspec.Struct, frozen=True):
    """The objects of a cluster: by resource and by ``namespace/name``, each as it was encoded.

    ending: the namespaces that were being deleted. written: what commands had left in emptyDirs, by the uids of pods.
    cluster: which one it is of.
    """

    objects: Mapping[GVR, Mapping[str, Stored]]
    ending: frozenset[str] = frozenset()
    written: Mapping[str, Left] = msgspec.field(default_factory=dict)
    cluster: str = ""

    def covers(self, gvr: GVR, stored: Stored) -> bool:
        """Whether an object, as it was or as it is now, is brought back or taken away."""
        if gvr == LEASES and stored.namespace in _SYSTEM:
            return False
        return stored.namespace not in self.ending and not _is_ending(self._was(gvr, stored))

    def _was(self, gvr: GVR, stored: Stored) -> Stored | None:
        return self.objects.get(gvr, {}).get(stored.key)


def take(store: Store) -> Snapshot:
    """What is there now."""
    found = {gvr: {stored.key: stored for stored in store.list(gvr)} for gvr in list(store.sizes())}
    return Snapshot(found, frozenset(one.name for one in found.get(NAMESPACES, {}).values() if _is_ending(one)))


def _is_ending(stored: Stored | None) -> bool:
    if stored is None or b"deletionTimestamp" not in stored.data:
        return False
    doc: Any = stored.doc
    return bool(doc["metadata"].get("deletionTimestamp"))


def restore(store: Store, snapshot: Snapshot) -> int:
    """Make the objects those of the snapshot; how many writes that took."""
    writes = 0
    for gvr in sorted(store.sizes(), key=_order, reverse=True):
        kept: Mapping[str, Stored] = snapshot.objects.get(gvr, {})
        for stored in store.list(gvr):
            if stored.key not in kept and snapshot.covers(gvr, stored):
                store.delete(gvr, stored.namespace, stored.name)
                writes += 1
    for gvr in sorted(snapshot.objects, key=_order):
        covered = [one for one in snapshot.objects[gvr].values() if snapshot.covers(gvr, one)]
        writes += sum(1 for one in covered if _put_back(store, gvr, one))
    return writes


def differences(store: Store, snapshot: Snapshot) -> Iterator[str]:
    """What ``restore`` would change, as ``resource namespace/name``."""
    for gvr in {*store.sizes(), *snapshot.objects}:
        now, then = {one.key: one for one in store.list(gvr)}, snapshot.objects.get(gvr, {})
        for key in {*now, *then}:
            if not snapshot.covers(gvr, now.get(key) or then[key]):
                continue
            if key not in now or key not in then or _changed(gvr, now[key], then[key]) is not None:
                yield f"{gvr.plural} {key}"


def _put_back(store: Store, gvr: GVR, then: Stored) -> bool:
    now = store.get(gvr, then.namespace, then.name)
    if now is None:
        store.create(gvr, then.namespace, then.name, then.copy())
        return True
    doc = _changed(gvr, now, then)
    if doc is None:
        return False
    store.update(gvr, then.namespace, then.name, doc)
    return True


def _changed(gvr: GVR, now: Stored, then: Stored) -> dict[str, object] | None:
    """What has to be written, if anything."""
    if now.revision == then.revision:
        return None
    doc: Any = then.copy()
    current: Any = now.copy()
    if gvr == NODES:
        doc["status"] = current.get("status", {})
        doc["metadata"]["managedFields"] = current["metadata"].get("managedFields")
        doc["spec"]["taints"] = [*_taints(current, own=True), *_taints(doc, own=False)]
        current["spec"].setdefault("taints", [])
    doc["metadata"]["resourceVersion"] = current["metadata"]["resourceVersion"]
    return None if codec.encode_sorted(doc) == codec.encode_sorted(current) else doc


def _taints(node: Any, *, own: bool) -> list[Any]:
    """Those of a node, either the ones that say how it does, or all others."""
    return [one for one in node["spec"].get("taints") or () if one["key"].startswith(_CONDITIONS) == own]


def _order(gvr: GVR) -> tuple[int, str]:
    return _FIRST.get(gvr, 2), str(gvr)
