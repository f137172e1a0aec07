"""The forms in which objects are answered: JSON as stored, YAML, metadata only, tables."""

from collections.abc import Sequence
from typing import Protocol

from kcm_cli.machinery import codec
from kcm_cli.machinery.codec import Doc
from kcm_cli.rest.transport import Response
from kcm_cli.sandbox.apiserver.registry import answers
from kcm_cli.sandbox.apiserver.registry.catalog import Served
from kcm_cli.sandbox.apiserver.store import Event, Stored, frame_of


class Media(Protocol):
    """One form of answers for one resource."""

    def object(self, status: int, stored: Stored) -> Response:
        """One stored object."""

    def document(self, status: int, doc: Doc) -> Response:
        """One document that is not stored in this form (a Scale, a dry run's result, a Status)."""

    def list(self, items: Sequence[Stored], revision: str, more: str, left: int | None) -> Response:
        """A list."""

    def frame(self, type_: str, stored: Stored) -> bytes:
        """One event of a watch."""

    def event(self, event: Event) -> bytes:
        """One event of a watch, as it was written."""

    def raw_frame(self, type_: str, doc: Doc) -> bytes:
        """A bookmark or an error in a watch."""

    @property
    def watch_type(self) -> str:
        """The content type of a watch."""


class PlainJson:
    """JSON as it is stored: nothing is decoded or encoded."""

    watch_type = "application/json"

    def __init__(self, served: Served) -> None:
        self._served = served

    def object(self, status: int, stored: Stored) -> Response:
        return Response(status, answers.JSON_HEADERS, stored.data + b"\n")

    def document(self, status: int, doc: Doc) -> Response:
        return answers.doc_response(status, doc)

    def list(self, items: Sequence[Stored], revision: str, more: str, left: int | None) -> Response:
        served = self._served
        data = [stored.data for stored in items]
        body = answers.list_body(served.info, served.list_kind, data, revision=revision, more=more, left=left)
        return Response(200, answers.JSON_HEADERS, body)

    def frame(self, type_: str, stored: Stored) -> bytes:
        return frame_of(type_, stored.data)

    def event(self, event: Event) -> bytes:
        return event.frame

    def raw_frame(self, type_: str, doc: Doc) -> bytes:
        return frame_of(type_, codec.encode(doc))
