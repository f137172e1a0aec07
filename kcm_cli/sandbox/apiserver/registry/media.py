"""The forms of objects in responses: JSON as stored, JSON of another version, metadata only, YAML, protobuf.

Tables are in ``tables.media``.
"""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import aclosing
from functools import partial
from typing import Any, Protocol

from kcm_cli.api.protobuf.decoding import UnknownForm
from kcm_cli.api.protobuf.encoding import enveloped, to_parts, to_protobuf, to_protobuf_frame
from kcm_cli.machinery import codec
from kcm_cli.machinery.codec import Doc
from kcm_cli.rest.transport import Response, Stream
from kcm_cli.runtime.turns import Turns, joined_in_turns, made_in_turns
from kcm_cli.sandbox.apiserver.errors import wrong_shape
from kcm_cli.sandbox.apiserver.registry import responses, yaml_text
from kcm_cli.sandbox.apiserver.registry.catalog import Served
from kcm_cli.sandbox.apiserver.store import Event, Stored, frame_of
from kcm_cli.sandbox.apiserver.types import Tree

META_V1 = "meta.k8s.io/v1"
_DECODED = 50
"""Items of a list that are decoded at once for their protobuf form."""
PROTOBUF = "application/vnd.kubernetes.protobuf"
CONNECTIONS = frozenset(["exec", "attach", "portforward", "proxy"])
"""Subresources whose answers are of another server, whatever the client accepts."""
LOG = "log"
KUBELET = CONNECTIONS | {LOG}
"""Subresources that a kubelet serves. Their responses are not objects."""


class Media(Protocol):
    """A form of the responses for a resource."""

    def object(self, status: int, stored: Stored) -> Response:
        """A stored object."""

    def document(self, status: int, doc: Doc) -> Response:
        """A document that is not stored, in the resource's form: the result of a dry run, a Scale, a Status."""
        return responses.doc_response(status, doc)

    async def list(self, items: Sequence[Stored], revision: str, more: str, left: int | None) -> Response:
        """A list, in turns of the loop. ``more``, ``left``: see ``responses.list_metadata``. What is prepared until the
        next await is read before it suspends."""

    def frame(self, type_: str, stored: Stored) -> bytes:
        """A watch event of any type."""

    def event(self, event: Event) -> bytes:
        """A watch event with the type and object of a write."""
        return self.frame(event.type, event.stored)

    def bookmark(self, mark: Doc) -> bytes:
        """A BOOKMARK event. ``mark``: its object."""
        return frame_of("BOOKMARK", codec.encode(mark))


class PlainJson(Media):
    """JSON as it is stored, neither decoded nor encoded."""

    def __init__(self, served: Served) -> None:
        self._served = served

    def object(self, status: int, stored: Stored) -> Response:
        return Response(status, responses.JSON_HEADERS, stored.data + b"\n")

    async def list(self, items: Sequence[Stored], revision: str, more: str, left: int | None) -> Response:
        served = self._served
        data = [stored.data for stored in items]
        parts = responses.list_parts(served.info, served.list_kind, data, revision=revision, more=more, left=left)
        return Response(200, responses.JSON_HEADERS, await joined_in_turns(parts))

    def frame(self, type_: str, stored: Stored) -> bytes:
        return frame_of(type_, stored.data)

    def event(self, event: Event) -> bytes:
        return event.frame


class ShapedJson(Media):
    """JSON of another version, made from the stored documents by a function.

    list_names: kind and apiVersion of lists. typed: whether their items have kind and apiVersion, too.
    """

    def __init__(
        self, served: Served, shape: Callable[[Tree], Tree], list_names: tuple[str, str], *, typed: bool
    ) -> None:
        self._served = served
        self._shape = shape
        self._list_names = list_names
        self._typed = typed

    def object(self, status: int, stored: Stored) -> Response:
        return responses.doc_response(status, self._shape(stored.doc))

    async def list(self, items: Sequence[Stored], revision: str, more: str, left: int | None) -> Response:
        kind, api_version = self._list_names
        conversion = self._served.conversion
        if conversion is None or conversion.lasts:
            made = await made_in_turns(self._item, items)
        else:
            made = [self._item(stored) for stored in items]
        metadata = responses.list_metadata(revision, more, left)
        if self._served.info.custom:
            metadata.setdefault("continue", "")
        head = codec.encode({"kind": kind, "apiVersion": api_version, "metadata": metadata})[:-1]
        return Response(200, responses.JSON_HEADERS, b'%s,"items":[%s]}\n' % (head, b",".join(made)))

    def _item(self, stored: Stored) -> bytes:
        doc = self._shape(stored.doc)
        if not self._typed:
            doc = {key: value for key, value in doc.items() if key not in ("kind", "apiVersion")}
        return codec.encode(doc)

    def frame(self, type_: str, stored: Stored) -> bytes:
        return frame_of(type_, codec.encode(self._shape(stored.doc)))


class PartialJson(Media):
    """PartialObjectMetadata, or with ``of_list`` PartialObjectMetadataList. Raises ApiError 406 for the other one.

    bare: items of lists have no kind and apiVersion.
    """

    def __init__(self, served: Served, version: str, *, of_list: bool, bare: bool = False) -> None:
        self._served = served
        self._version = f"meta.k8s.io/{version}"
        self._of_list = of_list
        self._bare = bare

    def object(self, status: int, stored: Stored) -> Response:
        return responses.doc_response(status, self._shown(stored.doc))

    def document(self, status: int, doc: Doc) -> Response:
        return responses.doc_response(status, doc if doc.get("kind") == "Status" else self._shown(doc))

    async def list(self, items: Sequence[Stored], revision: str, more: str, left: int | None) -> Response:
        if not self._of_list:
            raise wrong_shape("PartialObjectMetadata", f"a list (*{self._served.go_type}List)")
        item = partial(_metadata, self._served) if self._bare else self._part
        shown = await made_in_turns(lambda stored: item(stored.doc), items) or None
        kind, metadata = "PartialObjectMetadataList", responses.list_metadata(revision, more, left)
        doc: Doc = {"kind": kind, "apiVersion": self._version, "metadata": metadata, "items": shown}
        return responses.doc_response(200, doc)

    def frame(self, type_: str, stored: Stored) -> bytes:
        return frame_of(type_, codec.encode(self._shown(stored.doc)))

    def bookmark(self, mark: Doc) -> bytes:
        return frame_of("BOOKMARK", codec.encode(self._part(mark)))

    def _shown(self, doc: Tree) -> Tree:
        if self._of_list:
            raise wrong_shape("PartialObjectMetadataList", f"not a list (*{self._served.go_type})")
        return self._part(doc)

    def _part(self, doc: Tree) -> Tree:
        return {**metadata_only(self._served, doc), "apiVersion": self._version}


class _Rewritten:
    """Another form, whose responses are rewritten. Watch events are not."""

    def __init__(self, inner: Media, rewrite: Callable[[Response], Response]) -> None:
        self._inner = inner
        self._rewrite = rewrite

    def object(self, status: int, stored: Stored) -> Response:
        return self._rewrite(self._inner.object(status, stored))

    def document(self, status: int, doc: Doc) -> Response:
        return self._rewrite(self._inner.document(status, doc))

    async def list(self, items: Sequence[Stored], revision: str, more: str, left: int | None) -> Response:
        return self._rewrite(await self._inner.list(items, revision, more, left))

    def frame(self, type_: str, stored: Stored) -> bytes:
        return self._inner.frame(type_, stored)

    def event(self, event: Event) -> bytes:
        return self._inner.event(event)

    def bookmark(self, mark: Doc) -> bytes:
        return self._inner.bookmark(mark)


class YamlMedia(_Rewritten):
    """YAML. There are no watches in YAML."""

    def __init__(self, inner: Media) -> None:
        super().__init__(inner, as_yaml)


class ProtobufMedia(_Rewritten):
    """Protobuf, or JSON for kinds without a protobuf form. Watches: see ``protobuf_stream``."""

    def __init__(self, inner: Media) -> None:
        super().__init__(inner, as_protobuf)

    async def list(self, items: Sequence[Stored], revision: str, more: str, left: int | None) -> Response:
        """An item takes 0.15 ms."""
        plain = await self._inner.list((), revision, more, left)
        doc = codec.decode_doc(plain.body)
        try:
            parts = list(to_parts(doc))
        except UnknownForm:
            return await self._inner.list(items, revision, more, left)
        for start in range(0, len(items), _DECODED):
            some = await self._inner.list(items[start : start + _DECODED], revision, more, left)
            _, *made = await made_in_turns(bytes, to_parts(codec.decode_doc(some.body)))
            parts += made
        return _in_protobuf(plain, enveloped(doc, parts))


def metadata_only(served: Served, doc: Tree) -> Tree:
    """The object's PartialObjectMetadata."""
    return {"kind": "PartialObjectMetadata", "apiVersion": META_V1, **_metadata(served, doc)}


def _metadata(served: Served, doc: Tree) -> Tree:
    meta: Tree = doc.get("metadata") or {}
    if served.hidden and served.hidden in (found := meta.get("annotations") or {}):
        rest = {key: value for key, value in found.items() if key != served.hidden}
        meta = {
            key: rest if key == "annotations" else value for key, value in meta.items() if key != "annotations" or rest
        }
    return {"metadata": meta}


def as_yaml(response: Response) -> Response:
    """A JSON response as YAML."""
    text = yaml_text.dump(codec.decode_doc(response.body))
    return Response(response.status, {**response.headers, "content-type": "application/yaml"}, text.encode())


def as_protobuf(response: Response, media: str = PROTOBUF) -> Response:
    """A JSON response as protobuf, if its kind has a protobuf form."""
    try:
        body = to_protobuf(codec.decode_doc(response.body))
    except UnknownForm:
        return response
    return _in_protobuf(response, body, media)


def _in_protobuf(response: Response, body: bytes, media: str = PROTOBUF) -> Response:
    return Response(response.status, {**response.headers, "content-type": media}, body)


def protobuf_stream(stream: Stream) -> Stream:
    """A watch of JSON lines as protobuf."""
    headers = {**stream.headers, "content-type": f"{PROTOBUF};stream=watch"}
    return Stream(stream.status, headers, _protobuf_frames(stream.chunks))


async def _protobuf_frames(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    endless: Any = chunks
    turns = Turns.of_loop()
    async with aclosing(endless):
        async for chunk in endless:
            frames: list[bytes] = []
            for line in chunk.splitlines():
                frames.append(to_protobuf_frame(codec.decode_doc(line)))
                if turns.is_over():  # an event takes thirty times as long as in JSON
                    yield b"".join(frames)
                    frames.clear()
                    await turns.next()
            if frames:
                yield b"".join(frames)
