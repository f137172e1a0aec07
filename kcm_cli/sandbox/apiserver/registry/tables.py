"""Negotiates the form of responses: a table, or one of ``registry.negotiation``.

upstream: apiserver pkg/endpoints/handlers/response.go (v1.36)
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from functools import partial

from kcm_cli.machinery import codec
from kcm_cli.machinery.codec import Doc
from kcm_cli.rest.transport import Request, Response
from kcm_cli.runtime.turns import made_in_turns
from kcm_cli.sandbox.apiserver.errors import bad_request
from kcm_cli.sandbox.apiserver.registry import negotiation, responses
from kcm_cli.sandbox.apiserver.registry.catalog import Served
from kcm_cli.sandbox.apiserver.registry.core import Core
from kcm_cli.sandbox.apiserver.registry.media import CONNECTIONS, LOG, Media, PlainJson, YamlMedia, metadata_only
from kcm_cli.sandbox.apiserver.store import Stored, frame_of
from kcm_cli.sandbox.apiserver.tables.column import PLAIN, Layout
from kcm_cli.sandbox.apiserver.tables.templates import CUSTOM_SCALE, SCALE
from kcm_cli.sandbox.apiserver.types import Tree

_PLAIN_HEADERS = ("", "application/json", "*/*")
_INCLUDED = ("", "Metadata", "Object", "None")


def media(
    served: Served, request: Request, query: Mapping[str, str], core: Core, *, verb: str, subresource: str
) -> Media:
    """The form of a request's response. Raises ApiError 400, 406."""
    header = request.headers.get("accept", "")
    if (header in _PLAIN_HEADERS and not served.converts) or subresource in CONNECTIONS:
        return PlainJson(served)
    custom = served.info.custom
    if not custom:
        negotiation.check_route(header, listing=verb in ("list", "watch"), text=subresource == LOG)
    transforms = negotiation.TRANSFORMS if _has_table(core, served, subresource) else negotiation.PARTIAL
    form = negotiation.wanted(header, custom=custom, stream=verb == "watch", transforms=transforms)
    if form.transform != "Table":
        return negotiation.media_for(served, form, core.from_storage)
    included = query.get("includeObject", "")
    if included not in _INCLUDED:
        why = f"includeObject: Invalid value: \"{included}\": must be 'Metadata', 'Object', 'None', or empty"
        raise bad_request(f"Unable to convert to Table as requested: {why}")
    table = TableMedia(served, _layout(core, served, subresource), f"meta.k8s.io/{form.version}", included, core)
    return YamlMedia(table) if form.yaml else table


def _has_table(core: Core, served: Served, subresource: str) -> bool:
    """Whether responses may be tables: not logs, and not those of creations whose objects are not stored."""
    if subresource:
        return subresource != LOG and subresource not in core.kinds.of(served.info).handlers
    return served.info.verbs != {"create"}


def _layout(core: Core, served: Served, subresource: str) -> Layout:
    """The table of a resource or of its scale."""
    if subresource == "scale":
        return CUSTOM_SCALE if served.info.custom else SCALE
    return served.table or core.kinds.of(served.info).table


class TableMedia(Media):
    """Tables. Only the first event of a watch has the column definitions."""

    def __init__(self, served: Served, layout: Layout, api_version: str, included: str, core: Core) -> None:
        self._served = served
        self._layout = layout
        self._version = api_version
        self._included = included
        self._core = core
        self._sent = False

    def object(self, status: int, stored: Stored) -> Response:
        return self.document(status, stored.doc)

    def document(self, status: int, doc: Doc) -> Response:
        if doc.get("kind") == "Status":
            return responses.doc_response(status, doc)
        return responses.doc_response(status, self._table(self._rows([doc]), _version_of(doc)))

    async def list(self, items: Sequence[Stored], revision: str, more: str, left: int | None) -> Response:
        metadata = responses.list_metadata(revision, more, left)
        if not self._core.lasts(self._served):
            rows = self._rows([stored.doc for stored in items])
            return responses.doc_response(200, self._table(rows, metadata))
        docs = await made_in_turns(lambda stored: self._read(stored.doc), items)
        if self._layout.order is not None:
            docs.sort(key=self._layout.order)
        rows = await made_in_turns(partial(self._row, now=self._core.clock.now()), docs)
        return responses.doc_response(200, self._table(rows, metadata))

    def frame(self, type_: str, stored: Stored) -> bytes:
        frame = self._frame(type_, self._rows([stored.doc]), stored.doc)
        self._sent = True
        return frame

    def bookmark(self, mark: Doc) -> bytes:
        """The cells of an object without a name. The end of the initial events shows its object in any case."""
        doc: Tree = mark
        (row,) = self._rows([{**doc, "metadata": {"name": "", **doc["metadata"]}}])
        if self._included != "None" or "annotations" in doc["metadata"]:
            row["object"] = self._object(doc)
        return self._frame("BOOKMARK", [row], doc)

    def _frame(self, type_: str, rows: Sequence[Doc], doc: Doc) -> bytes:
        table = self._table(rows, _version_of(doc))
        if self._sent:
            table["columnDefinitions"] = None
        return frame_of(type_, codec.encode(table))

    def _rows(self, docs: Iterable[Doc]) -> Sequence[Doc]:
        """The rows of prepared documents."""
        now = self._core.clock.now()
        return [self._row(self._read(doc), now) for doc in docs]

    def _read(self, doc: Tree) -> Tree:
        return self._core.from_storage(self._served, doc) if self._served.info.custom else doc

    def _table(self, rows: Sequence[Doc], metadata: Doc) -> Doc:
        return {
            "kind": "Table",
            "apiVersion": self._version,
            "metadata": metadata,
            "columnDefinitions": self._layout.definitions(),
            "rows": rows if rows or self._layout is not PLAIN else None,
        }

    def _row(self, doc: Tree, now: datetime) -> Doc:
        row: Doc = {"cells": self._layout.cells(doc, now)}
        if self._layout.completed is not None and (conditions := self._layout.completed(doc)):
            row["conditions"] = conditions
        row["object"] = None if self._included == "None" else self._object(doc)
        return row

    def _object(self, doc: Tree) -> Doc:
        if self._included == "Object":
            return self._core.from_storage(self._served, doc)
        return {**metadata_only(self._served, doc), "apiVersion": self._version}


def _version_of(doc: Doc) -> Doc:
    metadata = doc.get("metadata")
    assert isinstance(metadata, dict)
    version = metadata.get("resourceVersion")
    return {"resourceVersion": version} if version else {}
