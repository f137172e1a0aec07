"""The custom kinds of a server, for the registry, the decoder and OpenAPI."""

import random
from collections.abc import Callable, Collection
from functools import partial
from weakref import WeakValueDictionary

from kcm_cli.api.resource import GVR
from kcm_cli.machinery.codec import Doc
from kcm_cli.sandbox.apiserver.crd import columns, published
from kcm_cli.sandbox.apiserver.crd.conversion import Webhook
from kcm_cli.sandbox.apiserver.crd.definition import Definition, VersionFacts, by_priority
from kcm_cli.sandbox.apiserver.crd.embedded import MetaReader
from kcm_cli.sandbox.apiserver.crd.kinds import CustomVersion, Shape
from kcm_cli.sandbox.apiserver.crd.rules import rules_of
from kcm_cli.sandbox.apiserver.crd.writes import CustomKind, strategy_of
from kcm_cli.sandbox.apiserver.registry.catalog import ALL_VERBS, PART_VERBS, Catalog, Group, Served, Subresource
from kcm_cli.sandbox.apiserver.schema import Schemas, Target, target_of
from kcm_cli.sandbox.apiserver.selectable import Selectable
from kcm_cli.sandbox.apiserver.strategy import Strategy
from kcm_cli.sandbox.apiserver.types import ResourceInfo, Tree
from kcm_cli.sandbox.apiserver.webhooks import Calls


class CustomResources:
    """See the module."""

    def __init__(self, schemas: Schemas, catalog: Catalog, calls: Calls, rng: random.Random) -> None:
        self._calls = calls
        self._rng = rng
        self._schemas = schemas
        self._catalog = catalog
        meta = schemas.builtin.node("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta")
        self._reader = MetaReader(meta, schemas.normalizers)
        self._latest: WeakValueDictionary[Target, CustomVersion] = WeakValueDictionary()
        """Those of deleted definitions are kept by requests and watches."""
        self._kept: dict[str, tuple[Definition, list[Served]]] = {}
        """The established definitions by name, in order, with their resources."""
        self.replaced: Callable[[Collection[GVR]], None] = lambda storages: None
        """Called with the storages whose definitions were deleted, or have another spec or other accepted names."""
        schemas.custom = self._latest

    def serve(self, definitions: list[Definition]) -> None:
        """Serve exactly the established ones of these definitions."""
        before = self._kept
        kept: dict[str, tuple[Definition, list[Served]]] = {}
        for one in definitions:
            if one.established:
                known = before.get(one.name)
                same = known is not None and (known[0] is one or known[0].state == one.state)
                kept[one.name] = known if known is not None and same else (one, self._make(one))
        if len(kept) == len(before) and all(before.get(name) is each for name, each in kept.items()):
            return
        self._kept = kept
        versions: dict[str, set[str]] = {}
        for one, made in kept.values():
            versions.setdefault(one.group, set()).update(each.info.gvr.version for each in made)
        groups = {}
        for group, names in sorted(versions.items()):
            if names:
                order = tuple(by_priority(names))
                groups[group] = Group(group, order, order[0])
        self._schemas.changes += 1
        self._catalog.set_custom(groups, [each for _, made in kept.values() for each in made])
        gone = [one for name, (one, _) in before.items() if name not in kept or kept[name][0].identity != one.identity]
        self.replaced({one.stored_as for one in gone})

    def _make(self, definition: Definition) -> list[Served]:
        named = definition.names["kind"]
        shapes = {
            version.name: Shape(Target(definition.group, version.name, named), version.schema, self._reader)
            for version in definition.versions
        }
        called = definition.webhook if self._calls.possible else None
        webhook = None if called is None else Webhook(called, self._calls, self._rng)
        served: list[Served] = []
        for version in definition.served:
            own = shapes[version.name]
            strategy = partial(_strategy, definition, version, own)
            kind = CustomVersion(own, shapes[definition.storage], shapes, strategy, webhook)
            if (before := self._latest.get(own.target)) is not None:
                before.later = kind
            self._latest[own.target] = kind
            served.append(_served(definition, version, kind))
        return served

    def rules(self, info: ResourceInfo) -> Strategy:
        """The strategy of a custom kind."""
        return self.kind(info).strategy

    def default(self, info: ResourceInfo, doc: Tree) -> None:
        """Fill in defaults, in place."""
        self.kind(info).default(doc)

    def kind(self, info: ResourceInfo) -> CustomVersion:
        """The kind, or its last state: requests and watches may outlive their definition."""
        return self._latest[target_of(info)]

    def openapi(self, served: Served, *, old: bool) -> Doc:
        """The published schema of a custom kind, with references in the form of v2.

        ``old``: without what v2 does not have.
        """
        kind = served.conversion
        assert isinstance(kind, CustomVersion)
        return published.schema_of(kind.schema, target_of(served.info), old=old)


def _strategy(definition: Definition, version: VersionFacts, own: Shape) -> Strategy:
    rules = rules_of(own.schema)
    return strategy_of(CustomKind(own.target, definition.namespaced, own.schema, version.status, version.scale, rules))


def _served(definition: Definition, version: VersionFacts, kind: CustomVersion) -> Served:
    names = definition.names
    gvr = GVR(definition.group, version.name, names["plural"])
    parts: dict[str, Subresource] = {}
    if version.status:
        parts["status"] = Subresource("status", PART_VERBS, names["kind"])
    if version.scale is not None:
        parts["scale"] = Subresource("scale", PART_VERBS, "Scale", "autoscaling", "v1")
    info = ResourceInfo(
        gvr=gvr,
        kind=names["kind"],
        singular=names.get("singular") or "",
        namespaced=definition.namespaced,
        verbs=frozenset(ALL_VERBS),
        short_names=tuple(names.get("shortNames") or ()),
        categories=tuple(names.get("categories") or ()),
        subresources=frozenset(parts),
        custom=True,
    )
    return Served(
        info=info,
        storage=definition.stored_as,
        subresources=parts,
        storage_hash=definition.storage_hash,
        list_kind=names.get("listKind") or f"{names['kind']}List",
        selectable=Selectable({path[1:]: path[1:] for path in version.selectable}),
        scale=version.scale,
        table=columns.layout_of(version.columns),
        warning=version.warning,
        same=len(definition.versions) == 1 and definition.generation == 1,
        closed=definition.terminating,
        conversion=kind,
    )
