"""What every verb works with."""

import random
from collections.abc import Iterable
from typing import Protocol

import msgspec

from kcm_cli.component.clock import Clock
from kcm_cli.sandbox.apiserver import kinds
from kcm_cli.sandbox.apiserver.apply.patching import Patching
from kcm_cli.sandbox.apiserver.errors import UnknownVersion
from kcm_cli.sandbox.apiserver.registry import conversion
from kcm_cli.sandbox.apiserver.registry import errors as api_errors
from kcm_cli.sandbox.apiserver.registry.catalog import Catalog, Served
from kcm_cli.sandbox.apiserver.schema import Schemas
from kcm_cli.sandbox.apiserver.security.authorizer import Authorizer
from kcm_cli.sandbox.apiserver.store import Store, Stored
from kcm_cli.sandbox.apiserver.strategy import Strategy
from kcm_cli.sandbox.apiserver.strategy.service_allocation import ServiceAllocator
from kcm_cli.sandbox.apiserver.types import Attributes, ResourceInfo, Tree

_DEFINITIONS = "apiextensions.k8s.io"


class Admission(Protocol):
    """Decides on writes, and may change them."""

    async def mutate(self, attrs: Attributes) -> None:
        """Raises ApiError."""

    async def validate(self, attrs: Attributes) -> None:
        """Raises ApiError."""


class CustomKinds(Protocol):
    """The rules of CustomResourceDefinitions and of the kinds that they bring."""

    def rules(self, info: ResourceInfo, subresource: str) -> Strategy:
        """The strategy of a custom kind, or of its status."""

    def default(self, info: ResourceInfo, doc: Tree) -> None:
        """Fill in the defaults of a custom kind, in place."""

    def read(self, info: ResourceInfo, doc: Tree) -> Tree:
        """A stored object, of whatever version, as a resource shows it. Changes nothing. Raises ApiError."""

    async def prepare(self, info: ResourceInfo, doc: Tree) -> None:
        """Do what reading a stored object takes but does not wait for. Raises ApiError."""

    def check_versions(self, info: ResourceInfo, docs: Iterable[Tree]) -> None:
        """Whether all that is stored is in versions that are known. Raises UnknownVersion."""

    async def stored(self, info: ResourceInfo, doc: Tree) -> Tree:
        """A document of a resource in the version in which it is to be stored, kind and apiVersion first. Raises
        ApiError.
        """

    async def answered(self, info: ResourceInfo, doc: Tree) -> Tree:
        """What would have been stored, as a resource shows it. Raises ApiError."""


class Core(msgspec.Struct, frozen=True):
    """The store and the parts that the verbs share. ratchets: what was wrong with an object already, since it came from
    another server, is no reason to refuse an update.
    """

    store: Store
    catalog: Catalog
    clock: Clock
    random: random.Random
    schemas: Schemas
    patching: Patching
    admission: Admission
    authorizer: Authorizer
    services: ServiceAllocator
    custom: CustomKinds | None = None
    ratchets: bool = False

    def rules(self, info: ResourceInfo, subresource: str = "") -> Strategy:
        """The strategy of a kind, or of a subresource with rules of its own."""
        if self.custom is not None and (info.custom or info.gvr.group == _DEFINITIONS):
            return self.custom.rules(info, subresource)
        return kinds.strategy_of(info, subresource)

    def default(self, info: ResourceInfo, doc: Tree) -> None:
        """Fill in what the client left out, in place."""
        if self.custom is not None and (info.custom or info.gvr.group == _DEFINITIONS):
            self.custom.default(info, doc)
        else:
            kinds.of(info).defaults(doc)

    def to_storage(self, served: Served, doc: Tree) -> Tree:
        """A document of a request in the form that is stored: custom objects as they were written."""
        if not served.converts or served.info.custom:
            return doc
        return conversion.to_storage(served, doc)

    def prepares(self, served: Served) -> bool:
        """Whether ``prepare`` does anything for a resource."""
        return self.custom is not None and served.info.custom and served.converts

    async def prepare(self, served: Served, *stored: Stored) -> None:
        """To be waited for before ``from_storage`` of these. Raises ApiError 500, UnknownVersion."""
        if self.custom is not None and self.prepares(served):
            for one in stored:
                await self.custom.prepare(served.info, one.doc)

    def check_versions(self, served: Served) -> None:
        """Before a watch. Raises ApiError 429 where an object is stored in a version that its definition has lost."""
        if self.custom is not None and served.info.custom and served.converts:
            try:
                self.custom.check_versions(served.info, (one.doc for one in self.store.scan(served.storage)))
            except UnknownVersion as error:
                raise api_errors.initializing(served.info, str(error)) from None

    async def prepare_all(self, served: Served, stored: Iterable[Stored]) -> None:
        """The same as ``prepare`` for a list. Raises ApiError 429, 500."""
        try:
            await self.prepare(served, *stored)
        except UnknownVersion as error:  # upstream's watch cache cannot be filled then
            raise api_errors.initializing(served.info, str(error)) from None

    async def stored_version(self, served: Served, doc: Tree) -> Tree:
        """A custom object in the version in which it is stored. Raises ApiError 500."""
        if self.custom is None or not served.info.custom:
            return doc
        return await self.custom.stored(served.info, doc)

    async def answered(self, served: Served, doc: Tree) -> Tree:
        """What a dry run would have stored, in the form of a resource. Raises ApiError 500."""
        if self.custom is None or not served.info.custom or not served.converts:
            return self.from_storage(served, doc)
        return await self.custom.answered(served.info, doc)

    def completed(self, served: Served, doc: Tree) -> Tree:
        """A document with what its built-in stored form adds to it: the defaults of the other version."""
        if not served.converts or served.info.custom:
            return doc
        return conversion.from_storage(served, conversion.to_storage(served, doc))

    def from_storage(self, served: Served, doc: Tree) -> Tree:
        """A stored document in the form of a resource; never changes the given one."""
        if not served.converts:
            return doc
        if served.info.custom and self.custom is not None:
            return self.custom.read(served.info, doc)
        return conversion.from_storage(served, doc)
