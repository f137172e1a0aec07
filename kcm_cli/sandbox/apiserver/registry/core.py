"""What a kind declares, and the parts of a server that verbs and the functions of kinds share.

Each built-in kind is one file of ``kinds`` with a ``Kind``; custom kinds are made from their definitions (``crd``). The
verbs of this package are loops over these declarations and know no kind.
"""

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager
from random import Random
from typing import Protocol

import msgspec
from msgspec.structs import replace

from kcm_cli.api.resource import GVR
from kcm_cli.component.clock import Clock
from kcm_cli.machinery import labels
from kcm_cli.machinery.codec import Doc
from kcm_cli.rest.transport import Response, Stream
from kcm_cli.runtime.turns import Part
from kcm_cli.sandbox.apiserver.apply.patching import Patching
from kcm_cli.sandbox.apiserver.apply.resets import ALL, SPEC, SPEC_AND_METADATA, STATUS, Writable
from kcm_cli.sandbox.apiserver.components import Components
from kcm_cli.sandbox.apiserver.errors import UnknownVersion, initializing
from kcm_cli.sandbox.apiserver.registry.call import Call
from kcm_cli.sandbox.apiserver.registry.catalog import Catalog, Facts, Served
from kcm_cli.sandbox.apiserver.registry.conversion import StoredAs
from kcm_cli.sandbox.apiserver.registry.own_writes import OwnWrites
from kcm_cli.sandbox.apiserver.schema import Schemas, Target
from kcm_cli.sandbox.apiserver.security.assembly import Security
from kcm_cli.sandbox.apiserver.selectable import PLAIN as SELECTABLE_PLAIN
from kcm_cli.sandbox.apiserver.selectable import Selectable
from kcm_cli.sandbox.apiserver.settings import Settings
from kcm_cli.sandbox.apiserver.store import Store, Stored
from kcm_cli.sandbox.apiserver.strategy import Strategy
from kcm_cli.sandbox.apiserver.strategy.base import nothing
from kcm_cli.sandbox.apiserver.tables.column import PLAIN, Layout
from kcm_cli.sandbox.apiserver.types import ApiError, Attributes, Errors, ResourceInfo, Tree
from kcm_cli.sandbox.apiserver.unconverted import Unconverted, one_request
from kcm_cli.sandbox.apiserver.webhooks.routes import Routes, Where

Handler = Callable[["Core", Call], Awaitable[Response | Stream]]
"""Responds to a request, whatever its verb. Raises ApiError."""


class Write(msgspec.Struct, frozen=True):
    """A write of an object. ``old`` is None for a creation. ``doc`` may be changed."""

    doc: Tree
    old: Tree | None
    dry_run: bool


Around = Callable[[Write], AbstractAsyncContextManager[None]]
"""What surrounds the preparation, validation and storing of an object. Raises ApiError."""


def _unrestricted(core: "Core", call: Call, new: Tree, old: Tree | None) -> Errors:
    """Accept any request."""
    return ()


def label_selector(selector: Tree) -> str:
    """A LabelSelector as text."""
    return str(labels.from_label_selector(labels.read_label_selector(selector)))


class Kind(msgspec.Struct, frozen=True):
    """One built-in kind. The defaults do nothing.

    facts, schema: its resource, and its fields as OpenAPI publishes them; None for what is recorded of upstream, whose
    types are ``{"$ref": "#/definitions/NAME"}``. ``kind``, ``apiVersion`` and ``metadata`` need not be there.
    defaults: sets defaults in place, and makes quantities canonical. Idempotent.
    status_defaults: instead of ``defaults``, for a write of the status that leaves the spec unchanged.
    strategy: preparation, validation and deletion of objects, and of their status.
    subresources: strategies of subresources with rules of their own (``finalize``, ``approval``, ``resize``).
    check_access: the errors of a user who may not create this object, or set this status (``old`` is not None).
    around: makes, once for a server, what surrounds each write of an object, but not those of its subresources.
    handlers: by subresource (``""``: the resource), instead of the usual verbs.
    stored_as: by version, how objects are stored, if not in this version.
    table: the columns of ``kubectl get``.
    selectable: the fields for field selectors.
    writable: the fields that writers of a subresource (``""``: of the object) can own, if not the usual ones.
    scale_selector: ``spec.selector`` as the text in a Scale.
    etcd: the prefix of its keys in etcd, which errors show, if not the resource.
    warning: in all responses.
    hidden: an annotation that stands for a field of an older version, which PartialObjectMetadata does not have.
    """

    group: str
    resource: str
    facts: Facts | None = None
    schema: Doc | None = None
    defaults: Callable[[Tree], None] = nothing
    status_defaults: Callable[[Tree], None] | None = None
    strategy: Strategy = msgspec.field(default_factory=Strategy)
    subresources: Mapping[str, Strategy] = msgspec.field(default_factory=dict)
    check_access: Callable[["Core", Call, Tree, Tree | None], Errors] = _unrestricted
    around: Callable[["Core"], Around] | None = None
    handlers: Mapping[str, Handler] = msgspec.field(default_factory=dict)
    stored_as: Mapping[str, StoredAs] = msgspec.field(default_factory=dict)
    table: Layout = PLAIN
    selectable: Selectable = SELECTABLE_PLAIN
    writable: Mapping[str, Writable] = msgspec.field(default_factory=dict)
    scale_selector: Callable[[Tree], str] = label_selector
    etcd: str = ""
    warning: str = ""
    hidden: str = ""


_PLAIN = Kind("", "", strategy=Strategy(names=None))


class Kinds:
    """The built-in kinds, by group and resource (plural)."""

    def __init__(self, kinds: Iterable[Kind]) -> None:
        self._all = {(kind.group, kind.resource): kind for kind in kinds}
        self._strategies: dict[tuple[GVR, str], Strategy] = {}

    def __iter__(self) -> Iterator[Kind]:
        return iter(self._all.values())

    def get(self, group: str, resource: str) -> Kind:
        """A kind; an empty one if there is none."""
        return self._all.get((group, resource), _PLAIN)

    @property
    def schemas(self) -> Iterator[tuple[Target, Doc]]:
        """The declared schemas."""
        for kind in self:
            if kind.facts is not None and kind.schema is not None:
                yield Target(*kind.facts.gv, kind.facts.kind), kind.schema

    def of(self, resource: ResourceInfo) -> Kind:
        """The kind of a built-in resource; an empty one for custom resources and those without a declaration."""
        return _PLAIN if resource.custom else self.get(resource.gvr.group, resource.gvr.plural)

    def strategy(self, resource: ResourceInfo, subresource: str = "") -> Strategy:
        """The strategy of a resource, or of a subresource with rules of its own (use its ``prepare_update`` and
        ``validate_update``)."""
        found = self._strategies.get((resource.gvr, subresource))
        if found is None:
            kind = self.of(resource)
            found = kind.subresources.get(subresource, _PLAIN.strategy) if subresource else kind.strategy
            found = self._strategies[resource.gvr, subresource] = replace(found, namespaced=resource.namespaced)
        return found

    def writable(self, resource: ResourceInfo, subresource: str) -> Writable:
        """The fields that writers of a resource or subresource can own."""
        kind = self.of(resource)
        own = kind.writable.get(subresource)
        if own is not None:
            return own
        if subresource == "status":
            return SPEC_AND_METADATA if resource.custom or kind.strategy.status_keeps_metadata else SPEC
        return STATUS if not subresource and "status" in resource.subresources else ALL


class Admission(Protocol):
    """Admission plugins: they may change writes and refuse them."""

    async def mutate(self, attrs: Attributes) -> None:
        """Change the object of a write. Raises ApiError."""

    async def validate(self, attrs: Attributes) -> None:
        """Check a write. Raises ApiError."""


class CustomKinds(Protocol):
    """The custom kinds of a server."""

    def rules(self, info: ResourceInfo) -> Strategy:
        """The strategy of a custom kind."""

    def default(self, info: ResourceInfo, doc: Tree) -> None:
        """Fill in defaults, in place."""


class Kubelets(Protocol):
    """What kubelets serve: the insides of containers, and the servers that stand for their ports."""

    def logs(self, call: Call, stored: Stored) -> Response | Stream:
        """Respond to ``kubectl logs``. Raises ApiError."""

    def remote_command(self, call: Call, stored: Stored) -> Response | Stream:
        """Respond to ``kubectl exec`` and ``kubectl attach``. Raises ApiError."""

    def port_forward(self, call: Call, stored: Stored) -> Response | Stream:
        """Respond to ``kubectl port-forward``. Raises ApiError."""

    def server_of(self, stored: Stored, port: int) -> Where:
        """The server that stands for a port of a pod. Raises LookupError."""


class Core(msgspec.Struct, frozen=True):
    """See the module. routes: the servers behind Services. components: whose health ComponentStatuses show. own: the
    writes of the server itself."""

    store: Store
    catalog: Catalog
    clock: Clock
    random: Random
    schemas: Schemas
    kinds: Kinds
    custom: CustomKinds
    patching: Patching
    own: OwnWrites
    admission: Admission
    security: Security
    kubelets: Kubelets
    routes: Routes
    components: Components
    settings: Settings

    def rules(self, info: ResourceInfo, subresource: str = "") -> Strategy:
        """The strategy of a kind, or of a subresource that has its own."""
        return self.custom.rules(info) if info.custom else self.kinds.strategy(info, subresource)

    def default(self, info: ResourceInfo, doc: Tree) -> None:
        """Fill in defaults, in place."""
        if info.custom:
            self.custom.default(info, doc)
        else:
            self.kinds.of(info).defaults(doc)

    def default_status(self, info: ResourceInfo, doc: Tree, stored: Tree) -> None:
        """The same for a write of the status, which keeps the stored spec: one that is equal gets no defaults."""
        defaults = self.kinds.of(info).status_defaults
        if defaults is not None and doc.get("spec") == stored.get("spec"):
            defaults(doc)
        else:
            self.default(info, doc)

    def prepares(self, served: Served) -> bool:
        """Whether ``prepare`` does anything for a resource."""
        return served.info.custom and served.converts

    def lasts(self, served: Served) -> bool:
        """Whether what ``prepare`` does for a resource lasts beyond the next await."""
        return served.conversion is None or served.conversion.lasts

    async def prepare(self, served: Served, *stored: Stored, cached: bool = False) -> None:
        """Prepare ``from_storage`` of these objects, until the next await. cached: call the conversion webhook only for
        those whose conversion is not known. Raises ApiError 500, UnknownVersion."""
        if served.conversion is not None and self.prepares(served):
            await served.conversion.prepare([one.doc for one in stored], cached=cached)

    async def made(self, served: Served, current: Stored, make: Callable[[Stored], Tree]) -> Tree:
        """What ``make`` returns for a prepared object, called again after each conversion that it needs. Raises
        ApiError.
        """
        with one_request():
            while True:
                try:
                    return make(current)
                except Unconverted as needed:
                    await needed.convert()
                    await self.prepare(served, current, cached=True)

    def check_versions(self, served: Served) -> None:
        """Raises ApiError 429 if an object is stored in a version that its definition no longer has."""
        if served.conversion is not None and self.prepares(served):
            try:
                served.conversion.check_versions(one.doc for one in self.store.scan(served.storage))
            except UnknownVersion as error:
                raise initializing(served.info, str(error)) from None

    async def prepare_all(self, served: Served, stored: Iterable[Stored], *, direct: bool = False) -> None:
        """``prepare`` for a list, in turns of the loop if what is prepared lasts. Raises ApiError 429, and 500 if the
        list is ``direct``: past upstream's watch cache, which cannot be filled after such an error.
        """
        try:
            if not self.lasts(served):
                await self.prepare(served, *stored, cached=True)
                return
            part = Part()
            for one in stored if self.prepares(served) else ():
                await self.prepare(served, one)
                if part.is_over():
                    await part.next()
        except UnknownVersion as error:
            raise initializing(served.info, str(error)) from None
        except ApiError as error:
            raise error if direct else initializing(served.info, str(error)) from None

    async def stored_version(self, served: Served, doc: Tree) -> Tree:
        """A custom object in the storage version. Raises ApiError 500."""
        return await served.conversion.stored(doc) if served.conversion is not None else doc

    async def dry_run_result(self, served: Served, doc: Tree) -> Tree:
        """The result of a dry run, in the resource's form. Raises ApiError 500."""
        if served.conversion is not None and self.prepares(served):
            return await served.conversion.dry_run_result(doc)
        return self.from_storage(served, doc)

    def completed(self, served: Served, doc: Tree) -> Tree:
        """A document after a round trip through the stored form, which adds the defaults of the other version."""
        return served.from_storage(served.to_storage(doc))

    def from_storage(self, served: Served, doc: Tree) -> Tree:
        """A stored document in the resource's form. Does not change ``doc``."""
        return served.conversion.read(doc) if served.conversion is not None and served.converts else doc

    def form_of(self, served: Served) -> Callable[[Stored], Tree] | None:
        """Makes of a stored and prepared object its form in the resource; None if that is what is stored."""
        return (lambda stored: self.from_storage(served, stored.doc)) if self.prepares(served) else None

    def storage_key(self, info: ResourceInfo, key: str, *, dry_run: bool = False) -> str:
        """The etcd key of an object in upstream's errors. Those of dry runs lack the prefix."""
        prefix = f"{info.gvr.group}/{info.gvr.plural}" if info.custom else self.kinds.of(info).etcd or info.gvr.plural
        return f"{'' if dry_run else '/registry'}/{prefix}/{key}"
