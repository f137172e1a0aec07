"""The names and paths of a kind in the API, and its view."""

from collections.abc import Iterator
from functools import lru_cache
from itertools import chain
from typing import Any, Generic, TypeVar

import msgspec

from kcm_cli.api.protobuf.messages import message_of
from kcm_cli.api.protobuf.views import Reader, reader_of
from kcm_cli.machinery import codec
from kcm_cli.machinery.codec import Doc
from kcm_cli.machinery.errors import FormatError
from kcm_cli.machinery.meta import Object, ObjectMeta, PartialObject
from kcm_cli.machinery.protofields import fields
from kcm_cli.machinery.quoting import quote
from kcm_cli.machinery.raw_fields import RawField

T = TypeVar("T", bound=Object)


def group_resource(group: str, plural: str) -> str:
    """``deployments.apps``, or ``pods`` in the core group."""
    return f"{plural}.{group}" if group else plural


def group_version(group: str, version: str) -> str:
    """``apps/v1``, or ``v1`` in the core group."""
    return f"{group}/{version}" if group else version


class GVR(msgspec.Struct, frozen=True):
    """Group, version and plural name of a resource."""

    group: str
    version: str
    plural: str

    @property
    def group_version(self) -> str:
        """``apps/v1``, or ``v1`` for the core group."""
        return group_version(self.group, self.version)

    @property
    def group_resource(self) -> str:
        """``deployments.apps``, or ``pods`` in the core group."""
        return group_resource(self.group, self.plural)

    @property
    def base(self) -> str:
        """``/apis/apps/v1`` or ``/api/v1``."""
        return f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"

    def path(self, namespace: str = "", name: str = "", subresource: str = "") -> str:
        """The URL path of the collection (no name), of an object, or of its subresource."""
        path = f"{self.base}/namespaces/{namespace}/{self.plural}" if namespace else f"{self.base}/{self.plural}"
        if name:
            path += f"/{name}"
        return f"{path}/{subresource}" if subresource else path

    def __str__(self) -> str:
        return f"{self.group or 'core'}/{self.version}/{self.plural}"


class Undecodable(msgspec.Struct, frozen=True):
    """An object that cannot be decoded to its kind's view: the readable part of its metadata, and the reason.

    The key is empty if its name is unknown. ``spoilt``: the bytes are not JSON, so that another request may return it
    intact.
    """

    metadata: ObjectMeta
    why: str
    spoilt: bool = False

    @property
    def key(self) -> str:
        meta = self.metadata
        return f"{meta.namespace}/{meta.name}" if meta.namespace and meta.name else meta.name


class Message(msgspec.Struct, frozen=True, gc=False):
    """An object of a list or watch in protobuf, without its envelope."""

    data: bytes


class _TypeMeta(msgspec.Struct, frozen=True, gc=False):
    api_version: str = msgspec.field(default="", name="apiVersion")
    kind: str = ""


_METADATA_ONLY = ("meta.k8s.io/v1", "PartialObjectMetadata")
_LONGEST_HEAD = 512
_UNTYPED = b'{"metadata":{'


class Resource(msgspec.Struct, Generic[T], frozen=True, eq=False):
    """A kind: its GVR, whether it is namespaced, and its view.

    keeps_raw: views keep the raw document, so that an update can edit it without losing unknown fields.
    raw_fields: fields that must keep their stored bytes; all RawExtensions of a kind with ``keeps_raw``.
    """

    gvr: GVR
    kind: str
    view: type[T]
    namespaced: bool = True
    keeps_raw: bool = False
    raw_fields: tuple[RawField, ...] = ()

    @property
    def api_version(self) -> str:
        """As in objects: group/version, or version of the core group."""
        return self.gvr.group_version

    @property
    def plural(self) -> str:
        """The last part of its paths."""
        return self.gvr.plural

    @property
    def metadata_only(self) -> "Resource[PartialObject]":
        """The resource, decoded to metadata only."""
        return _metadata_only(self)

    def decode(self, data: bytes | msgspec.Raw) -> T:
        """Decode one object, and keep its bytes if ``keeps_raw``. Raises codec.DecodeError."""
        raw = bytes(data) if self.keeps_raw else b""
        try:
            obj = codec.decode(data, self.view)
            codec.check_text(raw)
        except codec.TextError:
            self._check_text_but_stored(data)
            obj = codec.decode(bytes(data).decode(errors="replace"), self.view)
        if self.keeps_raw:
            msgspec.structs.force_setattr(obj, "raw", raw)
        return obj

    def _check_text_but_stored(self, data: bytes | msgspec.Raw) -> None:
        """Raises codec.TextError for invalid UTF-8 outside of what the API server returns as it was written."""
        codec.check_text(codec.without(data, (field.names for field in self.raw_fields), codec.MANAGED_FIELDS))

    def reader(self, *, metadata_only: bool = False) -> "Reader[T] | None":
        """The reader of objects in protobuf; None for those that are read in JSON.

        That is what updates edit: the bytes that are kept must be JSON.
        """
        return _reader(self, metadata_only)

    def heads(self, *, metadata_only: bool = False) -> tuple[bytes, ...]:
        """The first bytes of most objects of this kind. Go writes structs and maps in different orders."""
        return _heads(self.api_version, self.kind, metadata_only)

    def foreign(self, data: bytes | msgspec.Raw, *, metadata_only: bool = False) -> str:
        """The kind of an object of another kind, as ``Service (v1)``; empty if it is of this kind, or states none.

        metadata_only: accept the kind PartialObjectMetadata.
        """
        head = memoryview(data)[:_LONGEST_HEAD].tobytes()
        if not self.kind or head.startswith(self.heads(metadata_only=metadata_only)):
            return ""
        found = codec.decode_or_none(data, _TypeMeta)
        if found is None:
            return ""  # it cannot be decoded as any kind
        if not self.is_foreign(found.api_version, found.kind, metadata_only=metadata_only):
            return ""
        return f"{quote(found.kind)} ({quote(found.api_version)})"

    def is_foreign(self, api_version: str, kind: str, *, metadata_only: bool = False) -> bool:
        """Whether an object that states these is of another kind."""
        if metadata_only and kind == _METADATA_ONLY[1]:
            return False
        # client-go does not look at the version of metadata
        return kind not in ("", self.kind) or not (metadata_only or api_version in ("", self.api_version))

    def read_item(self, data: msgspec.Raw | Message, *, metadata_only: bool = False) -> "T | Undecodable":
        """Decode one object of a list. One of another kind is returned as ``spoilt``, since the object in its place is
        unknown."""
        if isinstance(data, Message):  # its list says of which kind it is
            return self.read_message(data.data, metadata_only=metadata_only)
        if memoryview(data)[: len(_UNTYPED)] != _UNTYPED:  # items do not repeat what the list says
            what = self.foreign(data, metadata_only=metadata_only)
            if what:
                return Undecodable(ObjectMeta(), f"an object of another kind: {what}", spoilt=True)
        return self.decode_or_explain(data)

    def read_message(self, data: bytes, *, metadata_only: bool = False) -> "T | Undecodable":
        """Decode one object in protobuf, without its envelope, or return why that is not possible."""
        reader = self.reader(metadata_only=metadata_only)
        if reader is None:
            return Undecodable(ObjectMeta(), f"{self.kind} is not read in protobuf", spoilt=True)
        try:
            obj = reader.read(data)
        except codec.DecodeError as error:
            return Undecodable(_metadata_of_message(data), str(error), spoilt=not isinstance(error, codec.ShapeError))
        if obj.metadata.name and _INVALID not in obj.metadata.name:
            return obj
        why = "the object has no name" if not obj.metadata.name else "the name of the object is not UTF-8"
        return Undecodable(ObjectMeta(), why, spoilt=True)

    def decode_or_explain(self, data: bytes | msgspec.Raw) -> "T | Undecodable":
        """Decode one object of a list or watch, or return why that is not possible."""
        if not codec.is_utf8(data) and _is_garbled(data):
            return Undecodable(_metadata_of(data), "the metadata is not UTF-8", spoilt=True)
        try:
            obj = self.decode(data)
        except codec.DecodeError as error:
            return Undecodable(_metadata_of(data), str(error), spoilt=not isinstance(error, codec.ShapeError))
        return obj if obj.metadata.name else Undecodable(obj.metadata, "the object has no name")

    def __str__(self) -> str:
        return str(self.gvr)


_METADATA_NAMES = frozenset(field.encode_name for field in msgspec.structs.fields(ObjectMeta))


@lru_cache(1024)
def _heads(api_version: str, of_kind: str, metadata_only: bool) -> tuple[bytes, ...]:
    kinds = [(api_version, of_kind)]
    if metadata_only:
        kinds.insert(0, _METADATA_ONLY)
    texts = [
        text
        for version, kind in kinds
        for text in (f'{{"kind":"{kind}","apiVersion":"{version}",', f'{{"apiVersion":"{version}","kind":"{kind}",')
    ]
    return tuple(text.encode() for text in texts)


_INVALID = "\ufffd"
PARTIAL = "meta.v1.PartialObjectMetadata"
_METADATA, _IDENTITY = 1, (1, 3, 5, 6)
"""Numbers in protobuf: of metadata in an object; in that of name, namespace, uid and resourceVersion."""


@lru_cache(1024)
def _reader(resource: Resource[Any], metadata_only: bool) -> Reader[Any] | None:
    if metadata_only:
        return reader_of(resource.view, PARTIAL)
    group = resource.gvr.group
    if resource.keeps_raw or ("." in group and not group.endswith(".k8s.io")):
        return None
    return reader_of(resource.view, message_of(resource.api_version, resource.kind))


def _metadata_of_message(data: bytes) -> ObjectMeta:
    """The readable part of the metadata of an object that cannot be decoded: all of it, or what identifies it."""
    reader = reader_of(PartialObject, PARTIAL)
    try:
        if reader is not None:
            return reader.read(data).metadata
    except codec.DecodeError:
        pass
    found: dict[int, str] = {}
    try:
        for number, value in fields(data):
            for inner, text in fields(value) if number == _METADATA and isinstance(value, bytes) else ():
                if isinstance(text, bytes):
                    found[inner] = text.decode()
    except (FormatError, UnicodeDecodeError):
        pass  # what came before that is known
    name, namespace, uid, version = (found.get(number, "") for number in _IDENTITY)
    return ObjectMeta(name=name, namespace=namespace, uid=uid, resource_version=version)


@lru_cache(1024)
def _metadata_only(resource: Resource[Any]) -> Resource[PartialObject]:
    return Resource(resource.gvr, resource.kind, PartialObject, resource.namespaced)


def _is_garbled(data: bytes | msgspec.Raw) -> bool:
    """Whether there are bytes that are not UTF-8 where an object says which one it is. In managed fields and raw
    extensions an API server passes on any bytes that it was given."""
    members = codec.members(data)
    metadata = codec.members(members.get("metadata", msgspec.Raw(b"{}")))
    own = (value for name, value in metadata.items() if name != "managedFields")
    return any(_INVALID in name for name in (*members, *metadata)) or not all(map(codec.is_utf8, own))


def _metadata_of(data: bytes | msgspec.Raw) -> ObjectMeta:
    """The readable part of an object's metadata, field by field if necessary."""
    partial = codec.decode_or_none(data, PartialObject)
    if partial is not None:
        return partial.metadata
    metadata = codec.members(data).get("metadata", msgspec.Raw(b"{}"))
    members = codec.members(metadata).items()
    return codec.convert(dict(chain.from_iterable(_readable(name, value) for name, value in members)), ObjectMeta)


def _readable(name: str, text: msgspec.Raw) -> Iterator[tuple[str, object]]:
    """A field of metadata as far as it can be decoded: whole, or the valid items of a list."""
    if name not in _METADATA_NAMES:
        return
    value = codec.decode_or_none(text, object)
    if value is not None and _fits({name: value}):
        yield name, value
        return
    found = (codec.decode_or_none(element, object) for element in codec.elements(text))
    items = [item for item in found if item is not None and _fits({name: [item]})]
    if items:
        yield name, items


def _fits(fields: Doc) -> bool:
    try:
        codec.convert(fields, ObjectMeta)
    except codec.DecodeError:
        return False
    return True
