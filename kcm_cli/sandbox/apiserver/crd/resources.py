"""The custom kinds of a server, for the registry, the decoder and OpenAPI."""

import random
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import partial
from weakref import WeakValueDictionary

from kcm_cli.api.resource import GVR
from kcm_cli.machinery.codec import Doc
from kcm_cli.sandbox.apiserver.crd import columns, published
from kcm_cli.sandbox.apiserver.crd.conversion import Webhook
from kcm_cli.sandbox.apiserver.crd.definition import GROUP, Definition, VersionFacts, by_priority
from kcm_cli.sandbox.apiserver.crd.definitions import STRATEGY, default_definition
from kcm_cli.sandbox.apiserver.crd.embedded import MetaReader
from kcm_cli.sandbox.apiserver.crd.kinds import CustomVersion, Shape
from kcm_cli.sandbox.apiserver.crd.rules import rules_of
from kcm_cli.sandbox.apiserver.crd.writes import Kind, strategy_of
from kcm_cli.sandbox.apiserver.registry.catalog import Catalog, Group, Served, Subresource
from kcm_cli.sandbox.apiserver.schema import Schemas, Target, target_of
from kcm_cli.sandbox.apiserver.schema.bodies import Body
from kcm_cli.sandbox.apiserver.schema.model import Node
from kcm_cli.sandbox.apiserver.strategy import Strategy
from kcm_cli.sandbox.apiserver.types import ApiError, ResourceInfo, Tree
from kcm_cli.sandbox.apiserver.webhooks import WebhookCalls

_VERBS = frozenset(["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"])
_PART_VERBS = frozenset(["get", "patch", "update"])


def storage_of(group: str, plural: str) -> GVR:
    """The resource that objects of a custom kind are stored as, in any version."""
    return GVR(group, "", plural)


class CustomResources:
    """Implements ``registry.core.CustomKinds``, ``schema.bodies.CustomTypes`` and ``openapi.CustomSchemas``."""

    def __init__(self, schemas: Schemas, catalog: Catalog, calls: WebhookCalls, rng: random.Random) -> None:
        self._calls = calls
        self._rng = rng
        self._schemas = schemas
        self._catalog = catalog
        meta = schemas.builtin.node("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta")
        self._reader = MetaReader(meta, schemas.normalizers)
        self._kinds: dict[Target, CustomVersion] = {}
        self._latest: WeakValueDictionary[Target, CustomVersion] = WeakValueDictionary()
        """Those of deleted definitions are kept by requests and watches."""
        self._kept: dict[tuple[object, ...], tuple[list[Served], dict[Target, CustomVersion]]] = {}
        """The resources and kinds of each definition by its state, in order."""
        self._storages: dict[tuple[object, ...], GVR] = {}
        self.replaced: Callable[[Collection[GVR]], None] = lambda storages: None
        """Called with the storages whose definitions were deleted, or have another spec or other accepted names."""
        schemas.custom = self

    def serve(self, definitions: list[Definition]) -> None:
        """Serve exactly the established ones of these definitions."""
        kept = self._kept
        wanted = {definition.state: definition for definition in definitions if definition.established}
        if list(wanted) == list(kept):
            return
        self._kept = {}
        self._kinds = {}
        every: list[Served] = []
        versions: dict[str, set[str]] = {}
        for state, definition in wanted.items():
            made = kept.get(state) or self._make(definition)
            self._kept[state] = made
            every += made[0]
            self._kinds |= made[1]
            versions.setdefault(definition.group, set()).update(version.name for version in definition.served)
        groups = {}
        for group, names in sorted(versions.items()):
            if names:
                order = tuple(by_priority(names))
                groups[group] = Group(group, order, order[0])
        self._schemas.changes += 1
        self._catalog.set_custom(groups, every)
        before = self._storages
        self._storages = {one.identity: storage_of(one.group, one.names["plural"]) for one in wanted.values()}
        self.replaced({before[identity] for identity in before.keys() - self._storages.keys()})

    def _make(self, definition: Definition) -> tuple[list[Served], dict[Target, CustomVersion]]:
        named = definition.names["kind"]
        shapes = {
            version.name: Shape(Target(definition.group, version.name, named), version.schema, self._reader)
            for version in definition.versions
        }
        webhook = None if definition.webhook is None else Webhook(definition.webhook, self._calls, self._rng)
        kinds: dict[Target, CustomVersion] = {}
        served: list[Served] = []
        for version in definition.served:
            own = shapes[version.name]
            strategy = partial(_strategy, definition, version, own)
            kind = CustomVersion(own, shapes[definition.storage], shapes, strategy, webhook)
            kinds[own.target] = kind
            if (before := self._latest.get(own.target)) is not None:
                before.later = kind
            self._latest[own.target] = kind
            served.append(_served(definition, version, kind))
        return served, kinds

    # registry.core.CustomKinds

    def rules(self, info: ResourceInfo) -> Strategy:
        """The strategy of a custom kind or of CustomResourceDefinitions."""
        if info.gvr.group == GROUP:
            return STRATEGY
        return self._kind(info).strategy

    def default(self, info: ResourceInfo, doc: Tree) -> None:
        """Fill in defaults, in place."""
        if info.gvr.group == GROUP:
            default_definition(doc)
        else:
            self._kind(info).default(doc)

    def read(self, served: Served, doc: Tree) -> Tree:
        """A stored object, converted from any version to the resource's."""
        return _kind_of(served).read(doc)

    def versioned(self, info: ResourceInfo, doc: Tree, *, stored: bool) -> Tree:
        """An object, converted to the resource's version to compare it. Raises Unconverted, ApiError."""
        return self._kind(info).versioned(doc, stored=stored)

    async def prepare(self, served: Served, docs: Sequence[Tree], *, cached: bool) -> None:
        """See ``registry.core.CustomKinds``."""
        await _kind_of(served).prepare(docs, cached=cached)

    def check_versions(self, served: Served, docs: Iterable[Tree]) -> None:
        """See ``registry.core.CustomKinds``."""
        _kind_of(served).check_versions(docs)

    async def stored(self, served: Served, doc: Tree) -> Tree:
        """See ``registry.core.CustomKinds``."""
        return await _kind_of(served).stored(doc)

    async def dry_run_result(self, served: Served, doc: Tree) -> Tree:
        """See ``registry.core.CustomKinds``."""
        return await _kind_of(served).dry_run_result(doc)

    def _kind(self, info: ResourceInfo) -> CustomVersion:
        """The kind, or its last state: requests and watches may outlive their definition."""
        return self._latest[target_of(info)]

    # schema.bodies.CustomTypes

    def has(self, target: Target) -> bool:
        """Whether a kind is custom, or was when a request began that has not ended."""
        return target in self._latest

    def node(self, target: Target) -> Node:
        """The type of a custom kind."""
        return self._latest[target].node

    def decode(self, target: Target, body: Body, mode: str) -> tuple[Doc, list[str]]:
        """The pruned document in a body, and warnings. Raises ApiError."""
        return self._latest[target].decode(body, mode)

    def finish(
        self, target: Target, doc: Doc, refuse: Callable[[str], ApiError], *, applied: bool = False
    ) -> tuple[Doc, list[str]]:
        """The pruned result of a patch, and its unknown fields. Raises ApiError."""
        return self._latest[target].finish(doc, refuse, applied=applied)

    # openapi

    def openapi(self, target: Target, *, old: bool) -> Doc | None:
        """The published schema of a kind."""
        found = self._kinds.get(target)
        return None if found is None else published.schema_of(found.schema, target, old=old)


def _kind_of(served: Served) -> CustomVersion:
    assert isinstance(served.kind, CustomVersion)
    return served.kind


def _strategy(definition: Definition, version: VersionFacts, own: Shape) -> Strategy:
    rules = rules_of(own.schema)
    return strategy_of(Kind(own.target, definition.namespaced, own.schema, version.status, version.scale, rules))


def _served(definition: Definition, version: VersionFacts, kind: CustomVersion) -> Served:
    names = definition.names
    gvr = GVR(definition.group, version.name, names["plural"])
    parts: dict[str, Subresource] = {}
    if version.status:
        parts["status"] = Subresource("status", _PART_VERBS, names["kind"])
    if version.scale is not None:
        parts["scale"] = Subresource("scale", _PART_VERBS, "Scale", "autoscaling", "v1")
    info = ResourceInfo(
        gvr=gvr,
        kind=names["kind"],
        singular=names.get("singular") or "",
        namespaced=definition.namespaced,
        verbs=_VERBS,
        short_names=tuple(names.get("shortNames") or ()),
        categories=tuple(names.get("categories") or ()),
        subresources=frozenset(parts),
        custom=True,
    )
    return Served(
        info=info,
        storage=storage_of(definition.group, names["plural"]),
        subresources=parts,
        storage_hash=definition.storage_hash,
        list_kind=names.get("listKind") or f"{names['kind']}List",
        selectable={path[1:]: path[1:] for path in version.selectable},
        scale=version.scale,
        table=columns.layout_of(version.columns),
        warning=version.warning,
        same=len(definition.versions) == 1 and definition.generation == 1,
        closed=definition.terminating,
        kind=kind,
    )
