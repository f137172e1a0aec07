"""The names and paths of a kind in the API, and its view."""

from collections.abc import Iterator
from functools import lru_cache
from itertools import chain
from typing import Any, Generic, TypeVar

import msgspec

from kcm_cli.machinery import codec
from kcm_cli.machinery.codec import Doc
from kcm_cli.machinery.meta import Object, ObjectMeta, PartialObject
from kcm_cli.machinery.quoting import quote
from kcm_cli.machinery.raw_fields import RawField

T = TypeVar("T", bound=Object)


def group_resource(group: str, plural: str) -> str:
    """``deployments.apps``, or ``pods`` in the core group."""
    return f"{plural}.{group}" if group else plural


class GVR(msgspec.Struct, frozen=True):
    """Group, version and plural name of a resource."""

    group: str
    version: str
    plural: str

    @property
    def group_version(self) -> str:
        """``apps/v1``, or ``v1`` for the core group."""
        return f"{self.group}/{self.version}" if self.group else self.version

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
        return self.gvr.group_version

    @property
    def plural(self) -> str:
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
        try:
            found = codec.decode(data, _TypeMeta)
        except codec.DecodeError:
            return ""  # it cannot be decoded as any kind
        if metadata_only and found.kind == _METADATA_ONLY[1]:
            return ""
        if found.kind in ("", self.kind) and (metadata_only or found.api_version in ("", self.api_version)):
            return ""  # client-go does not look at the version of metadata
        return f"{quote(found.kind)} ({quote(found.api_version)})"

    def read_item(self, data: msgspec.Raw, *, metadata_only: bool = False) -> "T | Undecodable":
        """Decode one object of a list. One of another kind is returned as ``spoilt``, since the object in its place is
        unknown."""
        if memoryview(data)[: len(_UNTYPED)] != _UNTYPED:  # items do not repeat what the list says
            what = self.foreign(data, metadata_only=metadata_only)
            if what:
                return Undecodable(ObjectMeta(), f"an object of another kind: {what}", spoilt=True)
        return self.decode_or_explain(data)

    def decode_or_explain(self, data: bytes | msgspec.Raw) -> "T | Undecodable":
        """Decode one object of a list or watch, or return why that is not possible."""
        try:
            obj = self.decode(data)
        except codec.DecodeError as error:
            return Undecodable(_metadata_of(data), str(error), spoilt=not isinstance(error, codec.ShapeError))
        return obj if obj.metadata.name else Undecodable(obj.metadata, "the object has no name")

    def __str__(self) -> str:
        return str(self.gvr)


_METADATA = frozenset(field.encode_name for field in msgspec.structs.fields(ObjectMeta))


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


@lru_cache(1024)
def _metadata_only(resource: Resource[Any]) -> Resource[PartialObject]:
    return Resource(resource.gvr, resource.kind, PartialObject, resource.namespaced)


def _metadata_of(data: bytes | msgspec.Raw) -> ObjectMeta:
    """The readable part of an object's metadata, field by field if necessary."""
    try:
        return codec.decode(data, PartialObject).metadata
    except codec.DecodeError:
        pass
    metadata = codec.members(data).get("metadata", msgspec.Raw(b"{}"))
    fields = codec.members(metadata).items()
    return codec.convert(dict(chain.from_iterable(_readable(name, value) for name, value in fields)), ObjectMeta)


def _readable(name: str, text: msgspec.Raw) -> Iterator[tuple[str, object]]:
    """A field of metadata as far as it can be decoded: whole, or the valid items of a list."""
    if name not in _METADATA:
        return
    value = _decoded(text)
    if value is not None and _fits({name: value}):
        yield name, value
        return
    items = [item for item in map(_decoded, codec.elements(text)) if item is not None and _fits({name: [item]})]
    if items:
        yield name, items


def _decoded(text: msgspec.Raw) -> object:
    try:
        return codec.decode(text, object)
    except codec.DecodeError:
        return None


def _fits(fields: Doc) -> bool:
    try:
        codec.convert(fields, ObjectMeta)
    except codec.DecodeError:
        return False
    return True
