"""A version of a custom kind: decoding, defaulting, conversion, and its strategy.

Objects are stored in the storage version at the time of the write. As in upstream, a read prunes and defaults the
object as that version, whatever the storage version is now, and converts it to the requested version, without or with a
webhook. The result is pruned, but not defaulted.

upstream: apiextensions-apiserver pkg/apiserver/customresource_handler.go
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import cast

from kcm_cli.machinery import codec
from kcm_cli.machinery.codec import Doc
from kcm_cli.machinery.patches import copy
from kcm_cli.machinery.whole_floats import settle_numbers, widen
from kcm_cli.sandbox.apiserver.crd import shape
from kcm_cli.sandbox.apiserver.crd.conversion import Webhook
from kcm_cli.sandbox.apiserver.crd.embedded import Malformed, MetaReader, has_embedded
from kcm_cli.sandbox.apiserver.crd.nodes import root_node
from kcm_cli.sandbox.apiserver.crd.structural import META_FIELDS, NO_DEFAULT, Structural, structural
from kcm_cli.sandbox.apiserver.errors import UnknownVersion, internal, invalid_kind
from kcm_cli.sandbox.apiserver.registry.conversion import Conversion
from kcm_cli.sandbox.apiserver.schema import strict
from kcm_cli.sandbox.apiserver.schema.bodies import (
    STRICT,
    WARN,
    Body,
    Target,
    cannot_handle,
    kind_in,
    unrecognized,
    wrong_version,
)
from kcm_cli.sandbox.apiserver.schema.model import Node
from kcm_cli.sandbox.apiserver.strategy import Strategy
from kcm_cli.sandbox.apiserver.types import ApiError, Tree

_ANY = Node("any")


class Shape:
    """The schema of a version, decoded at its first use: in large installs most kinds have no objects."""

    def __init__(self, target: Target, schema: Doc, reader: MetaReader) -> None:
        self.target = target
        self._schema = schema
        self._reader = reader

    @cached_property
    def schema(self) -> Structural:
        """The schema's structure."""
        return structural(self._schema)

    @cached_property
    def node(self) -> Node:
        """The type for server-side apply."""
        return root_node(self.schema, self._reader.node)

    @cached_property
    def _embeds(self) -> bool:
        return has_embedded(self.schema)

    @cached_property
    def keeps_applied(self) -> bool:
        """Whether results of server-side apply may have fields that have to be pruned."""
        return shape.has_bare(self.schema, root=True)

    def coerce(self, doc: Doc, *, applied: bool = False) -> list[str]:
        """Prune a document of this version, in place. Returns the paths of unknown fields. Raises Malformed.

        applied: see ``schema.bodies.CustomKind.finish``.
        """
        try:
            widen(doc)
        except OverflowError:
            raise Malformed(strict.examine(_ANY, doc).fatal) from None
        if applied:
            self._reader.drop_malformed(doc)
        unknown = self._reader.read(doc)
        if not applied:
            unknown += shape.prune(self.schema, doc, root=True)
        shape.drop_nulls(self.schema, doc, typed=not applied)  # validation rejects the others of an apply
        if self._embeds:
            unknown += sorted(self._reader.coerce(self.schema, doc))
        return unknown

    def bare(self, doc: Doc) -> list[str]:
        """``coerce`` for a document of an unknown version, which has metadata only. Raises Malformed."""
        unknown = self._reader.read(doc)
        return unknown + sorted(doc.keys() - META_FIELDS)

    def read_metadata(self, doc: Doc) -> list[str]:
        """``coerce`` for a document of another kind: only its metadata is read. Raises Malformed."""
        return self._reader.read(doc)

    def default(self, doc: Doc) -> None:
        """Fill in the schema's defaults, in place."""
        shape.fill(self.schema, doc)


class CustomVersion(Conversion):
    """See the module."""

    def __init__(
        self,
        own: Shape,
        storage: Shape,
        shapes: Mapping[str, Shape],
        strategy: Callable[[], Strategy],
        webhook: Webhook | None = None,
    ) -> None:
        """``strategy``: makes the strategy at the first write."""
        self._make_strategy = strategy
        self._strategy: Strategy | None = None
        self._webhook = webhook
        self._own = own
        self._storage = storage
        self._shapes = shapes
        self._all_known = False
        self.later: CustomVersion | None = None
        """The kind in the next state of its definition, which is kept as long as this one."""

    @property
    def strategy(self) -> Strategy:
        if self._strategy is None:
            self._strategy = self._make_strategy()
        return self._strategy

    @property
    def target(self) -> Target:
        return self._own.target

    @property
    def node(self) -> Node:
        """The type for server-side apply."""
        return self._own.node

    @property
    def schema(self) -> Structural:
        """The schema's structure."""
        return self._own.schema

    # Bodies.

    def decode(self, body: Body, mode: str) -> tuple[Doc, list[str]]:
        """See ``schema.bodies.CustomKind``."""
        target = self.target
        doc = body.doc
        if not doc.get("kind"):
            text = body.data.decode("utf-8", "replace")
            raise unrecognized(target, f"Object 'Kind' is missing in '{text}'", body.data)
        found = kind_in(target, doc, lambda text: unrecognized(target, text, body.data))
        problems = list(body.problems)

        def refuse(text: str) -> ApiError:
            return cannot_handle(found, target, text)

        if body.pairs is not None:
            findings = strict.examine(_ANY, body.pairs)
            if findings.fatal:
                raise refuse(findings.fatal)
            problems += findings.strict

        if found.group == target.group and found.kind == target.kind and found.version in self._shapes:
            problems += _coerced(self._shapes[found.version].coerce, doc, refuse)
        else:
            _coerced(self._own.bare, doc, refuse)  # metadata is always decoded
        if mode == STRICT and problems:
            raise refuse("strict decoding error: " + ", ".join(problems))
        if doc.get("apiVersion") != target.api_version:
            raise wrong_version(str(doc.get("apiVersion") or ""), target)
        return doc, problems if mode in (WARN, "") else []

    def finish(self, doc: Doc, refuse: Callable[[str], ApiError], *, applied: bool = False) -> tuple[Doc, list[str]]:
        """See ``schema.bodies.CustomKind``."""
        if not doc.get("kind"):
            raise refuse(f"Object 'Kind' is missing in '{codec.encode(doc).decode()}'")
        found = kind_in(self.target, doc, refuse)
        if not doc.get("apiVersion"):
            raise internal("Object 'apiVersion' is missing in 'object has no apiVersion field'")
        if found.group != self.target.group or found.kind != self.target.kind:
            return doc, _coerced(self._own.read_metadata, doc, refuse)  # validation rejects it
        of = self._shapes.get(found.version)
        if of is None:
            return doc, _coerced(self._own.bare, doc, refuse)
        try:
            return doc, [f'unknown field "{path}"' for path in of.coerce(doc, applied=applied)]
        except Malformed as error:
            if not applied or error.error is None:
                raise refuse(str(error)) from None
            name = str(cast("Doc", doc["metadata"]).get("name", ""))
            raise invalid_kind(found.group, found.kind, name, [error.error]) from None

    # Conversion: see ``registry.conversion``.

    @property
    def lasts(self) -> bool:
        return self._webhook is None

    def default(self, doc: Tree) -> None:
        """Fill in the defaults of this version, in place."""
        if doc.get("kind") == self.target.kind:
            self._own.default(doc)

    async def prepare(self, docs: Sequence[Tree], *, cached: bool) -> None:
        """Convert stored documents by the webhook, if there is one. Raises ApiError 500, UnknownVersion."""
        for doc in docs:
            self._check_version(doc)
        if self._webhook is not None:
            await self._webhook.prepare(docs, self.target.api_version, self._settled, cached=cached)

    def check_versions(self, docs: Iterable[Tree]) -> None:
        """Raises UnknownVersion if a document has a version that the definition no longer has. A success is final:
        later writes use the current storage version, and a changed definition makes a new CustomVersion."""
        if not self._all_known:
            for doc in docs:
                self._check_version(doc)
            self._all_known = True

    def _check_version(self, doc: Tree) -> None:
        if doc["apiVersion"].rpartition("/")[2] not in self._shapes:
            raise UnknownVersion(doc["apiVersion"])

    async def stored(self, doc: Tree) -> Tree:
        """A document of this version, converted to the storage version. Raises ApiError 500."""
        if self._own.keeps_applied:
            shape.prune(self._own.schema, doc, root=True)
        settle_numbers(doc)
        storage = self._storage.target.api_version
        if self._webhook is None or doc.get("apiVersion") == storage:
            if doc.get("apiVersion") != storage:
                self._set_version(doc, self._storage)
            return self._with_status(doc)
        converted = await self._webhook.convert(doc, storage)
        head = {key: converted.pop(key) for key in ("kind", "apiVersion", "metadata")}
        return self._with_status({**head, **converted})

    def _with_status(self, doc: Tree) -> Tree:
        """Set the status' default: creation removes the status, and reads default it."""
        status = self._own.schema.properties.get("status")
        if status is not None and status.default is not NO_DEFAULT and "status" not in doc:
            doc["status"] = copy(status.default)
            shape.fill(status, doc["status"])
        return doc

    async def dry_run_result(self, doc: Tree) -> Tree:
        """A document of a dry run, converted to this version. Raises ApiError 500."""
        version = self.target.api_version
        if self._webhook is None or doc.get("apiVersion") == version:
            return self.read(doc)
        return self._pruned(await self._webhook.convert(self._settled(doc), version))

    def read(self, doc: Tree) -> Tree:
        """A stored document in this version. Does not change ``doc``. Raises ApiError 500 if it needs the webhook and
        ``prepare`` was not called.
        """
        return self.nop_converted(doc) if self._webhook is None else self._converted(doc, self._webhook)

    def versioned(self, doc: Tree, *, stored: bool) -> Tree:
        """An object for comparison in this version, neither pruned nor defaulted, as upstream's field managers see it.
        ``stored``: it exists, so that the webhook is called, if there is one. Raises Unconverted, ApiError 500.
        """
        if self._webhook is None or not stored:
            return {**doc, "apiVersion": self.target.api_version}
        return self._webhook.known(doc, self.target.api_version)

    def nop_converted(self, doc: Tree) -> Tree:
        """A document in this version without the webhook: only apiVersion changes. upstream: nopConverter"""
        known = str(doc.get("apiVersion")).rpartition("/")[2] in self._shapes
        fresh = self._settled(doc) if known else cast("Tree", copy(doc))
        if fresh.get("apiVersion") != self.target.api_version:
            self._set_version(fresh, self._own)
        return fresh

    def _converted(self, doc: Tree, webhook: Webhook) -> Tree:
        version = self.target.api_version
        if doc.get("apiVersion") == version:
            return self._settled(doc)
        fresh = webhook.prepared(doc, version)
        if fresh is None:
            raise internal(f"the object is not converted to {version} yet")
        return self._pruned(fresh)

    def _settled(self, doc: Tree) -> Tree:
        """A copy of a stored document, pruned and defaulted as the version in which it is stored."""
        fresh = cast("Tree", copy(doc))
        written = self._shapes[doc["apiVersion"].rpartition("/")[2]]
        self._coerce_stored(written, fresh)
        written.default(fresh)
        return fresh

    def _pruned(self, doc: Tree) -> Tree:
        self._coerce_stored(self._own, doc)
        return doc

    def _set_version(self, doc: Doc, to: Shape) -> None:
        doc["apiVersion"] = to.target.api_version
        self._coerce_stored(to, doc)

    def _coerce_stored(self, of: Shape, doc: Doc) -> None:
        try:
            of.coerce(doc)
        except Malformed:
            return  # the object was stored under another schema


def _coerced(read: Callable[[Doc], list[str]], doc: Doc, refuse: Callable[[str], ApiError]) -> list[str]:
    """The errors of unknown fields. Raises ``refuse(text)`` for a malformed document."""
    try:
        return [f'unknown field "{path}"' for path in read(doc)]
    except Malformed as error:
        raise refuse(str(error)) from None
