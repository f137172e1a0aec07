"""Snapshots of a cluster's objects, and their restoration in the store, without finalizers, webhooks and policies.

Watchers (controllers, nodes, operators) see ordinary events. Leases of nodes and of the control plane, and the status
of nodes, are not restored, and time does not go back. Objects that were being deleted, and all objects in a namespace
that was, are not restored, since they would be deleted again.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from kcm_cli.api.resource import GVR
from kcm_cli.api.well_known import LEASE_NAMESPACE
from kcm_cli.machinery import codec
from kcm_cli.sandbox.apiserver.crd.controller import DEFINITIONS
from kcm_cli.sandbox.apiserver.store import Store, Stored
from kcm_cli.sandbox.kubelet_api.attached import Key, RunOutput
from kcm_cli.sandbox.nodes.empty_dirs import Left

LEASES, NODES = GVR("coordination.k8s.io", "v1", "leases"), GVR("", "v1", "nodes")
NAMESPACES = GVR("", "v1", "namespaces")
_SYSTEM = frozenset({LEASE_NAMESPACE, "kube-system"})
"""Namespaces of Leases that are renewed continuously. Those in other namespaces are operators'."""
_FIRST = {DEFINITIONS: 0, NAMESPACES: 1}
"""Resources that are created before all others, and deleted after them."""
_CONDITIONS = "node.kubernetes.io/"


class Snapshot(msgspec.Struct, frozen=True):
    """The objects of a cluster by resource and by ``namespace/name``, each in its encoded form.

    ending: the namespaces that were being deleted. written: files that commands had left in emptyDirs, by uid of the
    pod. cluster: the identity of the cluster. spoken: what programs had written to clients that attach.
    """

    objects: Mapping[GVR, Mapping[str, Stored]]
    ending: frozenset[str] = frozenset()
    written: Mapping[str, Left] = msgspec.field(default_factory=dict)
    cluster: str = ""
    spoken: Mapping[Key, RunOutput] = msgspec.field(default_factory=dict)

    def covers(self, gvr: GVR, stored: Stored) -> bool:
        """Whether an object is restored or removed."""
        if gvr == LEASES and stored.namespace in _SYSTEM:
            return False
        return stored.namespace not in self.ending and not _is_ending(self._was(gvr, stored))

    def _was(self, gvr: GVR, stored: Stored) -> Stored | None:
        return self.objects.get(gvr, {}).get(stored.key)


def take(store: Store) -> Snapshot:
    """A snapshot of the present objects."""
    found = {gvr: {stored.key: stored for stored in store.list(gvr)} for gvr in list(store.sizes())}
    return Snapshot(found, frozenset(one.name for one in found.get(NAMESPACES, {}).values() if _is_ending(one)))


def _is_ending(stored: Stored | None) -> bool:
    if stored is None or b"deletionTimestamp" not in stored.data:
        return False
    doc: Any = stored.doc
    return bool(doc["metadata"].get("deletionTimestamp"))


def restore(store: Store, snapshot: Snapshot) -> list[tuple[GVR, Stored]]:
    """Restore the objects of the snapshot. Returns those that were written, as they are now, or were before they were
    deleted."""
    written: list[tuple[GVR, Stored]] = []
    for gvr in sorted(store.sizes(), key=_order, reverse=True):
        kept: Mapping[str, Stored] = snapshot.objects.get(gvr, {})
        for stored in store.list(gvr):
            if stored.key not in kept and snapshot.covers(gvr, stored):
                store.delete(gvr, stored.namespace, stored.name)
                written.append((gvr, stored))
    for gvr in sorted(snapshot.objects, key=_order):
        covered = [one for one in snapshot.objects[gvr].values() if snapshot.covers(gvr, one)]
        written += [(gvr, now) for one in covered if (now := _put_back(store, gvr, one)) is not None]
    return written


def differences(store: Store, snapshot: Snapshot) -> Iterator[str]:
    """The objects that ``restore`` would change, as ``resource namespace/name``."""
    for gvr in {*store.sizes(), *snapshot.objects}:
        now, then = {one.key: one for one in store.list(gvr)}, snapshot.objects.get(gvr, {})
        for key in {*now, *then}:
            if not snapshot.covers(gvr, now.get(key) or then[key]):
                continue
            if key not in now or key not in then or _changed(gvr, now[key], then[key]) is not None:
                yield f"{gvr.plural} {key}"


def _put_back(store: Store, gvr: GVR, then: Stored) -> Stored | None:
    """The object as it was written; None if it is as it was then."""
    now = store.get(gvr, then.namespace, then.name)
    if now is None:
        return store.create(gvr, then.namespace, then.name, then.copy())
    doc = _changed(gvr, now, then)
    return None if doc is None else store.update(gvr, then.namespace, then.name, doc)


def _changed(gvr: GVR, now: Stored, then: Stored) -> dict[str, object] | None:
    """The document to write, or None."""
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
    """A node's taints: those by conditions (``own``), or all others."""
    return [one for one in node["spec"].get("taints") or () if one["key"].startswith(_CONDITIONS) == own]


def _order(gvr: GVR) -> tuple[int, str]:
    return _FIRST.get(gvr, 2), str(gvr)
