"""The store and the other parts that the verbs share."""

from collections.abc import Callable, Iterable
from random import Random
from typing import Protocol

import msgspec

from kcm_cli.component.clock import Clock
from kcm_cli.sandbox.apiserver import kinds
from kcm_cli.sandbox.apiserver.apply.patching import Patching
from kcm_cli.sandbox.apiserver.crd.conversion import one_request
from kcm_cli.sandbox.apiserver.crd.resources import CustomResources, kind_of
from kcm_cli.sandbox.apiserver.errors import Unconverted, UnknownVersion
from kcm_cli.sandbox.apiserver.kinds.core.service_allocation import ServiceAllocator
from kcm_cli.sandbox.apiserver.registry import conversion
from kcm_cli.sandbox.apiserver.registry import errors as api_errors
from kcm_cli.sandbox.apiserver.registry.catalog import Catalog, Served
from kcm_cli.sandbox.apiserver.schema import Schemas
from kcm_cli.sandbox.apiserver.security.authorizer import Authorizer
from kcm_cli.sandbox.apiserver.store import Store, Stored
from kcm_cli.sandbox.apiserver.strategy import Strategy
from kcm_cli.sandbox.apiserver.types import Attributes, ResourceInfo, Tree

_DEFINITIONS = "apiextensions.k8s.io"


class Admission(Protocol):
    """Admission plugins: they may change writes and refuse them."""

    async def mutate(self, attrs: Attributes) -> None:
        """Change the object of a write. Raises ApiError."""

    async def validate(self, attrs: Attributes) -> None:
        """Check a write. Raises ApiError."""


class Core(msgspec.Struct, frozen=True):
    """See the module. ratchets: an update may keep errors that the stored object has. Objects that were copied from
    another server may have such errors.
    """

    store: Store
    catalog: Catalog
    clock: Clock
    random: Random
    schemas: Schemas
    patching: Patching
    admission: Admission
    authorizer: Authorizer
    services: ServiceAllocator
    custom: CustomResources
    ratchets: bool = False

    def rules(self, info: ResourceInfo, subresource: str = "") -> Strategy:
        """The strategy of a kind, or of a subresource that has its own."""
        if info.custom or info.gvr.group == _DEFINITIONS:
            return self.custom.rules(info)
        return kinds.strategy_of(info, subresource)

    def default(self, info: ResourceInfo, doc: Tree) -> None:
        """Fill in defaults, in place."""
        if info.custom or info.gvr.group == _DEFINITIONS:
            self.custom.default(info, doc)
        else:
            kinds.of(info).defaults(doc)

    def default_status(self, info: ResourceInfo, doc: Tree, stored: Tree) -> None:
        """The same for a write of the status, which keeps the stored spec: one that is equal gets no defaults."""
        defaults = None if info.custom else kinds.of(info).status_defaults
        if defaults is not None and doc.get("spec") == stored.get("spec"):
            defaults(doc)
        else:
            self.default(info, doc)

    def to_storage(self, served: Served, doc: Tree) -> Tree:
        """A request's document in the stored form. Custom objects stay as they are: see ``stored_version``."""
        return conversion.to_storage(served, doc)

    def prepares(self, served: Served) -> bool:
        """Whether ``prepare`` does anything for a resource."""
        return served.info.custom and served.converts

    async def prepare(self, served: Served, *stored: Stored, cached: bool = False) -> None:
        """Prepare ``from_storage`` of these objects, until the next await. cached: call the conversion webhook only for
        those whose conversion is not known. Raises ApiError 500, UnknownVersion."""
        if self.prepares(served):
            await kind_of(served).prepare([one.doc for one in stored], cached=cached)

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
        if self.prepares(served):
            try:
                kind_of(served).check_versions(one.doc for one in self.store.scan(served.storage))
            except UnknownVersion as error:
                raise api_errors.initializing(served.info, str(error)) from None

    async def prepare_all(self, served: Served, stored: Iterable[Stored]) -> None:
        """``prepare`` for a list. Raises ApiError 429, 500."""
        try:
            await self.prepare(served, *stored, cached=True)
        except UnknownVersion as error:  # upstream's watch cache cannot be filled then
            raise api_errors.initializing(served.info, str(error)) from None

    async def stored_version(self, served: Served, doc: Tree) -> Tree:
        """A custom object in the storage version. Raises ApiError 500."""
        return await kind_of(served).stored(doc) if served.info.custom else doc

    async def dry_run_result(self, served: Served, doc: Tree) -> Tree:
        """The result of a dry run, in the resource's form. Raises ApiError 500."""
        if self.prepares(served):
            return await kind_of(served).dry_run_result(doc)
        return self.from_storage(served, doc)

    def completed(self, served: Served, doc: Tree) -> Tree:
        """A document after a round trip through the stored form, which adds the defaults of the other version."""
        return conversion.from_storage(served, conversion.to_storage(served, doc))

    def from_storage(self, served: Served, doc: Tree) -> Tree:
        """A stored document in the resource's form. Does not change ``doc``."""
        if served.info.custom and served.converts:
            return kind_of(served).read(doc)
        return conversion.from_storage(served, doc)
