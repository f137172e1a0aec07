"""The kinds in question: those of a change whose objects the snapshot does not have."""

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from kcm_cli.api.short_names import kind_of
from kcm_cli.machinery import codec
from kcm_cli.machinery.codec import Doc
from kcm_cli.machinery.documents import nested_map, nested_str
from kcm_cli.machinery.meta import OwnerReference, SlimObject
from kcm_cli.plan.changes import Apply, Change, Delete, custom_kinds
from kcm_cli.plan.collect import defined_kind, item_of, names_of
from kcm_cli.plan.kinds import CONFIG_MAPS, DEFINITIONS, EVENTS, KINDS, SECRETS, ListedKind
from kcm_cli.plan.snapshot import Collection, Item, Snapshot
from kcm_cli.plan.twin.loading import STAND_IN

_BUILT_IN = {(one.gvr.group, one.kind): one.key for one in (*KINDS, CONFIG_MAPS, EVENTS)} | {("", "Secret"): SECRETS}


def with_kinds(snapshot: Snapshot, changes: Sequence[Change]) -> tuple[Snapshot, tuple[str, ...]]:
    """(the snapshot with the custom kinds that the changes name, an assumption for each that was not read).

    Their objects are those that others refer to as owners, without contents, so that no dependent loses its owner.
    """
    asked, applied = custom_kinds(changes), custom_kinds(one for one in changes if isinstance(one, Apply))
    collections = dict(snapshot.collections)
    assumed: list[str] = []
    for item in snapshot.items(DEFINITIONS.gvr):
        spec = nested_map(item.doc, "spec")
        kind = defined_kind(spec) if names_of(spec) & asked else None
        if kind is None or any(gvr.group_resource == item.name for gvr in collections):
            continue
        owners = tuple(_owners(snapshot, kind))
        collections[kind.gvr] = Collection(kind.gvr, kind.kind, kind.namespaced, owners, read=False)
        if f"{kind.kind}.{kind.gvr.group}".lower() in applied:
            assumed.append(f"objects of kind {kind.kind} in manifests are new: the snapshot has none")
        else:
            assumed.append(f"objects of kind {kind.kind}, which the snapshot does not have, make no difference")
    whole = replace(snapshot, collections=collections) if assumed else snapshot
    return whole, (*assumed, *_kept_namespaces(whole, changes))


def _kept_namespaces(snapshot: Snapshot, changes: Sequence[Change]) -> Iterator[str]:
    """An assumption for each namespace that is deleted while it may have custom resources, whose finalizers keep it."""
    read = {gvr.group_resource for gvr, one in snapshot.collections.items() if one.read}
    unread = (item.doc for item in snapshot.items(DEFINITIONS.gvr) if item.name not in read)
    if any(nested_str(doc, "spec", "scope") == "Namespaced" for doc in unread):
        for change in changes:
            if isinstance(change, Delete) and kind_of(change.target.kind) == "Namespace":
                where = f"custom resources in namespace {change.target.name}"
                yield f"{where}, which were not read (--include custom), do not keep it"


def shown_as_created(snapshot: Snapshot, changes: Sequence[Change]) -> Iterator[str]:
    """A line for each built-in kind of manifests that was not read."""
    applied = (change.doc for change in changes if isinstance(change, Apply))
    places = {(nested_str(doc, "apiVersion").rpartition("/")[0], nested_str(doc, "kind")) for doc in applied}
    for kind in sorted(kind for group, kind in places if _BUILT_IN.get((group, kind)) in snapshot.missing):
        yield f"whether objects of kind {kind} in manifests are there was not read: they are shown as created"


def _owners(snapshot: Snapshot, kind: ListedKind) -> list[Item]:
    """Stand-ins for the objects of a kind that others refer to as owners."""
    found: dict[tuple[str, str], Item] = {}
    for collection in snapshot.collections.values():
        for item in collection.items:
            if f'"{kind.kind}"'.encode() not in item.data:
                continue
            head = codec.decode_or_none(item.data, SlimObject)
            for ref in head.metadata.owner_references if head is not None else ():
                group = ref.api_version.rpartition("/")[0]
                if ref.kind == kind.kind and group == kind.gvr.group and ref.name:
                    space = item.namespace if kind.namespaced else ""
                    made = _stand_in(kind, space, ref)
                    if made is not None:
                        found[space, ref.name] = made
    return [found[key] for key in sorted(found)]


def _stand_in(kind: ListedKind, namespace: str, ref: OwnerReference) -> Item | None:
    metadata: Doc = {"name": ref.name, "uid": ref.uid, "resourceVersion": "1", "annotations": {STAND_IN: "true"}}
    if namespace:
        metadata["namespace"] = namespace
    doc: Doc = {"apiVersion": kind.gvr.group_version, "kind": kind.kind, "metadata": metadata}
    return item_of(codec.encode(doc), kind.gvr, kind.kind)
