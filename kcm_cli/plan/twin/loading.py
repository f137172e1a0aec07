"""Loads a snapshot into an API server's store. Objects are stored as they are, without admission, defaults or
validation.

Missing objects that others refer to get stand-ins, so that controllers do not delete or write anything because of their
absence: owners of kinds that were not read, nodes with pods, namespaces, bound volumes, and objects that quotas count.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from kcm_cli.api.resource import GVR
from kcm_cli.api.well_known import HOSTNAME
from kcm_cli.machinery import codec
from kcm_cli.machinery.codec import Doc
from kcm_cli.machinery.documents import nested_map, nested_str
from kcm_cli.machinery.integers import parse_int64
from kcm_cli.machinery.meta import OwnerReference, SlimObject, View
from kcm_cli.machinery.times import format_time
from kcm_cli.plan.snapshot import Snapshot
from kcm_cli.sandbox.apiserver.crd.definition import storage_of
from kcm_cli.sandbox.apiserver.kinds import KINDS
from kcm_cli.sandbox.apiserver.registry.catalog import Catalog, Served
from kcm_cli.sandbox.apiserver.store import Stored

STAND_IN = "plan.kcm.dev/stand-in"
"""The annotation of objects that were not in the snapshot."""
Row = tuple[GVR, str, str, int, bytes]
_NAMESPACES, _NODES, _QUOTAS = GVR("", "v1", "namespaces"), GVR("", "v1", "nodes"), GVR("", "v1", "resourcequotas")
_DEFINITIONS = GVR("apiextensions.k8s.io", "v1", "customresourcedefinitions")
_VOLUMES, _CLAIMS = GVR("", "v1", "persistentvolumes"), GVR("", "v1", "persistentvolumeclaims")
_COUNTED = {
    "configmaps": GVR("", "v1", "configmaps"),
    "secrets": GVR("", "v1", "secrets"),
    "count/configmaps": GVR("", "v1", "configmaps"),
    "count/secrets": GVR("", "v1", "secrets"),
}
MOST_OF_QUOTA, MOST_COUNTED = 10_000, 100_000
"""The most stand-ins for objects that one quota counts, and that all do: a kilobyte may claim millions."""
_DEVICES = "resource.k8s.io"
_ROOM = {"cpu": "100000", "memory": "1000Ti", "ephemeral-storage": "1000Ti", "pods": "100000"}


class _Spec(View, frozen=True, gc=False):
    node_name: str = ""
    node_selector: dict[str, str] | None = None


class _Pod(SlimObject, frozen=True, gc=False, kw_only=True):
    spec: _Spec = _Spec()


class Loaded:
    """Implements ``store.Journal`` for a snapshot: returns its objects, and discards writes.

    unknown: kinds that the twin does not serve, with the number of their objects. stand_ins: the stand-ins. touched:
    the written objects, in the order of their first write. uncounted: the number of objects that quotas count and that
    have no stand-ins, since there are too many.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        self.unknown: dict[str, int] = {}
        self.stand_ins: dict[str, int] = {}
        self.uncounted = 0
        self.touched: dict[tuple[GVR, str, str], None] = {}
        self.rows = list(_Rows(snapshot, self).all())

    def load(self) -> tuple[int, Iterable[Row]]:
        return max((row[3] for row in self.rows), default=1), self.rows

    def write(self, gvr: GVR, stored: Stored, deleted: bool) -> None:
        """Record that the object was written; its data is not kept."""
        self.touched[gvr, stored.namespace, stored.name] = None

    def drop(self, gvr: GVR) -> None:
        """Does nothing."""

    def close(self) -> None:
        """Does nothing."""


class _Rows:
    def __init__(self, snapshot: Snapshot, loaded: Loaded) -> None:
        self._snapshot = snapshot
        self._loaded = loaded
        self._catalog = Catalog(KINDS)
        self._there: set[tuple[str, str, str, str]] = set()
        self._owners: dict[str, tuple[str, OwnerReference]] = {}
        self._nodes: dict[str, dict[str, str]] = {}
        """The nodes of pods, with the labels that these select."""
        self._namespaces: set[str] = set()

    def all(self) -> Iterator[Row]:
        for collection in self._snapshot.collections.values():
            gvr = self._stored_as(collection.gvr)
            if gvr is None:
                key = collection.gvr.group_resource
                if collection.items:
                    self._loaded.unknown[key] = len(collection.items)
                continue
            for item in collection.items:
                if gvr.plural == _DEFINITIONS.plural and not self._has_read(item.name):
                    continue  # a kind that is served and has no objects would be one whose objects are gone
                version = self._note(gvr, item.namespace, item.data)
                self._there.add((gvr.group, gvr.plural, item.namespace, item.name))
                yield gvr, item.namespace, item.name, version, _as(gvr, collection.gvr, item.data)
        yield from self._stand_ins()

    def _stored_as(self, gvr: GVR) -> GVR | None:
        """The storage version of a resource, whatever version was read."""
        found = self._catalog.by_gvr(gvr)
        if found is None:
            found = next(
                (s for s in self._catalog if (s.info.gvr.group, s.info.gvr.plural) == (gvr.group, gvr.plural)), None
            )
        if found is not None:
            return found.storage
        return storage_of(gvr.group, gvr.plural) if self._is_defined(gvr) else None

    def _is_defined(self, gvr: GVR) -> bool:
        return any(item.name == gvr.group_resource for item in self._snapshot.items(_DEFINITIONS))

    def _has_read(self, name: str) -> bool:
        """Whether the snapshot has the objects of a CustomResourceDefinition."""
        return any(gvr.group_resource == name for gvr in self._snapshot.collections)

    def _note(self, gvr: GVR, namespace: str, data: bytes) -> int:
        """The version of an object. The objects that it refers to are recorded."""
        if namespace:
            self._namespaces.add(namespace)
        partial = codec.decode_or_none(data, _Pod if gvr.plural == "pods" else SlimObject)
        if partial is None:
            return 1
        if isinstance(partial, _Pod) and partial.spec.node_name:
            self._nodes.setdefault(partial.spec.node_name, {}).update(partial.spec.node_selector or {})
        for ref in partial.metadata.owner_references:
            if ref.uid:
                self._owners.setdefault(ref.uid, (namespace, ref))
        return partial.version or 1

    def _stand_ins(self) -> Iterator[Row]:
        missing = self._snapshot.missing
        if "namespaces" in missing:
            for name in sorted(self._namespaces):
                status: Doc = {"phase": "Active"}
                spec: Doc = {"finalizers": ["kubernetes"]}
                yield self._made(self._served(_NAMESPACES), "", name, "", {"spec": spec, "status": status})
        if "nodes" in missing:
            uids = {ref.name: uid for uid, (_, ref) in self._owners.items() if ref.kind == "Node"}
            now = format_time(self._snapshot.taken_at)
            for name in sorted(self._nodes.keys() | uids.keys()):
                labels = {**self._nodes.get(name, {}), HOSTNAME: name}
                yield self._made(self._served(_NODES), "", name, uids.get(name, ""), _node(now), labels)
        if "persistentvolumes" in missing:
            bound = {nested_str(claim, "spec", "volumeName"): claim for claim in self._snapshot.docs(_CLAIMS)}
            for name in sorted(bound.keys() - {""}):
                yield self._made(self._served(_VOLUMES), "", name, "", _volume(bound[name]))
        for uid, (namespace, ref) in sorted(self._owners.items()):
            served = self._catalog.by_kind(ref.api_version, ref.kind)
            if served is None or self._is_read(served):
                continue
            space = namespace if served.info.namespaced else ""
            if (served.storage.group, served.storage.plural, space, ref.name) not in self._there:
                yield self._made(served, space, ref.name, uid, {})
        yield from self._counted()

    def _is_read(self, served: Served) -> bool:
        gvr = served.info.gvr
        return any((one.group, one.plural) == (gvr.group, gvr.plural) for one in self._snapshot.collections)

    def _counted(self) -> Iterator[Row]:
        """Stand-ins for kinds that were not read, as many as quotas count."""
        wanted: dict[tuple[GVR, str], int] = {}
        for quota in self._snapshot.docs(_QUOTAS):
            used, namespace = nested_map(quota, "status", "used"), nested_str(quota, "metadata", "namespace")
            for name, gvr in _COUNTED.items():
                count = parse_int64(str(used.get(name, ""))) or 0
                if count > 0 and not self._is_read(self._served(gvr)):
                    key = gvr, namespace
                    wanted[key] = max(wanted.get(key, 0), count)
        room = MOST_COUNTED
        for (gvr, namespace), count in sorted(wanted.items(), key=str):
            made = min(count, MOST_OF_QUOTA, room)
            room -= made
            self._loaded.uncounted += count - made
            for number in range(made):
                yield self._made(self._served(gvr), namespace, f"not-read-{number}", "", {})

    def _served(self, gvr: GVR) -> Served:
        found = self._catalog.by_gvr(gvr)
        assert found is not None
        return found

    def _made(
        self, served: Served, namespace: str, name: str, uid: str, rest: Doc, labels: Mapping[str, str] | None = None
    ) -> Row:
        gvr = served.storage
        metadata: Doc = {
            "name": name,
            "uid": uid or f"stand-in-{gvr.plural}-{namespace}-{name}",
            "resourceVersion": "1",
            "creationTimestamp": format_time(self._snapshot.taken_at),
            "annotations": {STAND_IN: "true"},
        }
        if labels:
            metadata["labels"] = dict(labels)
        if namespace:
            metadata["namespace"] = namespace
        self._there.add((gvr.group, gvr.plural, namespace, name))
        self._loaded.stand_ins[gvr.plural] = self._loaded.stand_ins.get(gvr.plural, 0) + 1
        doc: Doc = {"apiVersion": gvr.group_version, "kind": served.info.kind, "metadata": metadata, **rest}
        return gvr, namespace, name, 1, codec.encode(doc)


def _as(stored: GVR, read: GVR, data: bytes) -> bytes:
    """The object, converted from an older version to the storage version."""
    if not stored.version or stored.version == read.version:  # custom objects keep the version that they have
        return data
    doc: Doc = {**codec.decode_doc(data), "apiVersion": stored.group_version}
    if stored.group == _DEVICES and read.version == "v1beta1":
        doc["spec"] = _devices(doc.get("spec"))
    return codec.encode(doc)


def _devices(spec: Any) -> Any:
    """The spec of a ResourceClaim, template or ResourceSlice, converted from v1beta1.

    upstream: staging/src/k8s.io/api/resource/v1beta1/types.go
    """
    if not isinstance(spec, dict):
        return spec
    if isinstance(spec.get("spec"), dict):
        return {**spec, "spec": _devices(spec["spec"])}
    devices = spec.get("devices")
    if isinstance(devices, dict) and isinstance(devices.get("requests"), list):
        return {**spec, "devices": {**devices, "requests": [_request(one) for one in devices["requests"]]}}
    if isinstance(devices, list):
        return {**spec, "devices": [_device(one) for one in devices]}
    return spec


def _request(request: Any) -> Any:
    if not isinstance(request, dict) or not request.get("deviceClassName"):
        return request
    kept = {key: value for key, value in request.items() if key in ("name", "firstAvailable")}
    return {**kept, "exactly": {key: value for key, value in request.items() if key not in kept}}


def _device(device: Any) -> Any:
    if not isinstance(device, dict) or not isinstance(device.get("basic"), dict):
        return device
    return {**{key: value for key, value in device.items() if key != "basic"}, **device["basic"]}


def _node(now: str) -> Doc:
    ready: Doc = {"type": "Ready", "status": "True", "reason": "KubeletReady", "lastTransitionTime": now}
    status: Doc = {"capacity": _ROOM, "allocatable": _ROOM, "conditions": [{**ready, "lastHeartbeatTime": now}]}
    return {"spec": {}, "status": status}


def _volume(claim: Doc) -> Doc:
    spec, ref = nested_map(claim, "spec"), {"apiVersion": "v1", "kind": "PersistentVolumeClaim"}
    ref |= {name: nested_str(claim, "metadata", name) for name in ("namespace", "name", "uid")}
    kept: Doc = {name: spec[name] for name in ("accessModes", "storageClassName", "volumeMode") if name in spec}
    kept |= {"capacity": nested_map(claim, "status", "capacity"), "claimRef": ref}
    return {"spec": {**kept, "persistentVolumeReclaimPolicy": "Retain"}, "status": {"phase": "Bound"}}
