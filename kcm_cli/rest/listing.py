"""Lists, read in pages.

upstream: staging/src/k8s.io/client-go/tools/pager/pager.go
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from functools import cache
from typing import Any, Generic, Protocol, TypeVar

import msgspec
from msgspec.structs import replace

from kcm_cli.api.resource import Message, Resource, Undecodable
from kcm_cli.machinery import codec, upb
from kcm_cli.machinery.envelope import MAGIC, opened
from kcm_cli.machinery.errors import FormatError
from kcm_cli.machinery.meta import Object
from kcm_cli.machinery.quoting import quote
from kcm_cli.machinery.upb import BYTES, MESSAGE, STRING, Declared, Parse
from kcm_cli.rest.client import Client
from kcm_cli.rest.errors import Expired
from kcm_cli.rest.reading import read, unreadable
from kcm_cli.rest.transport import Unreadable

T = TypeVar("T", bound=Object)
P = TypeVar("P", bound="HasNext")
PAGE = 500
LARGE = 32 * 1024
"""Bytes of an object after which other tasks run."""


class _Meta(msgspec.Struct, frozen=True, gc=False):
    resource_version: str = msgspec.field(default="", name="resourceVersion")
    continue_: str = msgspec.field(default="", name="continue")


class _JsonPage(msgspec.Struct, frozen=True, gc=False):
    kind: str = ""
    metadata: _Meta = _Meta()
    items: tuple[msgspec.Raw, ...] = ()


class Page(msgspec.Struct, frozen=True):
    """A page of a list whose items are still bytes: JSON, or Messages."""

    kind: str = ""
    metadata: _Meta = _Meta()
    items: Sequence[msgspec.Raw | Message] = ()

    @property
    def resource_version(self) -> str:
        return self.metadata.resource_version

    @property
    def next_page(self) -> str:
        """The continue token, empty on the last page."""
        return self.metadata.continue_


def read_page(body: bytes, kind: str = "") -> Page:
    """An answer to a list; ``kind``: of its objects, where the list must be of that kind.

    Raises Unreadable, also for JSON that is no such list: it would be one of nothing.
    """
    return _of_kind(_unpacked(body) if body.startswith(MAGIC) else _page(read(body, _JsonPage)), kind)


async def read_page_in_turns(body: bytes, kind: str = "") -> Page:
    """As ``read_page``. If some item is not usual, the items are split one by one, and other tasks run in between."""
    if body.startswith(MAGIC):
        return read_page(body, kind)
    page = codec.usual(body, _JsonPage)
    if page is None:
        try:
            page = await _split(body)
        except codec.DecodeError as error:
            raise unreadable(error) from None
    return _of_kind(_page(page), kind)


async def _split(body: bytes) -> _JsonPage:
    head: dict[str, msgspec.Raw] = {}
    items: list[msgspec.Raw] = []
    for name, value, element in codec.parts(body):
        if not element:
            head[name] = value
        elif name == "items":
            items.append(value)
            if len(memoryview(value)) > LARGE:
                await asyncio.sleep(0)
    return replace(codec.decode(codec.encode(head), _JsonPage), items=tuple(items))


def _page(page: _JsonPage) -> Page:
    return Page(page.kind, page.metadata, page.items)


@cache
def _parse_list() -> Parse:
    """Parses ListMeta and the bytes of the items. All lists have these fields."""
    meta = Declared("resource_version", 2, STRING), Declared("next", 3, STRING)
    both = Declared("metadata", 1, MESSAGE, message="Meta"), Declared("items", 2, BYTES, repeated=True)
    return upb.parsers((("Meta", meta), ("List", both)))["List"]


def _unpacked(body: bytes) -> Page:
    """A list in protobuf. Raises Unreadable."""
    if not upb.available():
        raise Unreadable("the answer cannot be read: it is in protobuf")
    try:
        envelope = opened(body)
        found = _parse_list()(envelope.data)
        meta = _Meta(found.metadata.resource_version, found.metadata.next)
    except (FormatError, upb.decode_error()) as error:
        raise Unreadable(f"the answer cannot be read: protobuf is malformed: {error}") from None
    return Page(envelope.kind, meta, tuple(map(Message, found.items[:])))


def _of_kind(page: Page, kind: str) -> Page:
    if page.kind != f"{kind}List" if kind else not page.kind.endswith("List"):
        wanted = f"a {kind}List" if kind else "a list"
        raise Unreadable(f"the answer cannot be read: expected {wanted}, got {quote(page.kind)}")
    return page


class HasNext(Protocol):
    """A page of a list."""

    @property
    def next_page(self) -> str:
        """The continue token, empty on the last page."""


async def in_pages(
    fetch: Callable[[str, int], Awaitable[P]], *, again: bool = True
) -> AsyncGenerator[tuple[P, bool], None]:
    """The pages of a list, and whether a page is all of the list, anew: those before it do not count then.

    fetch: gets a page by its continue token (empty: the first) and limit (0: all objects). again: where a token has
    expired, get the whole list, instead of raising Expired. Raises Unreadable for a repeated token: the list would
    never end.
    """
    token, seen = "", set[str]()
    while True:
        try:
            page, anew = await fetch(token, PAGE), False
        except Expired:
            if not (token and again):
                raise
            page, anew = await fetch("", 0), True
        yield page, anew
        token = page.next_page
        if not token:
            return
        if token in seen:
            raise Unreadable("the answer cannot be read: the list goes round in circles")
        seen.add(token)


class Listed(msgspec.Struct, Generic[T], frozen=True):
    """Objects, and the resource version of the list. ``unknown``: objects that cannot be decoded."""

    items: list[T]
    resource_version: str
    unknown: list[Undecodable] = msgspec.field(default_factory=list)


async def list_all(
    client: Client, resource: Resource[T], namespace: str = "", *, metadata_only: bool = False
) -> Listed[T]:
    """All objects, PAGE at a time. Raises RequestError.

    An object that cannot be decoded makes the answer Unreadable: it must not look absent.
    """
    found = await list_readable(client, resource, namespace, metadata_only=metadata_only)
    for unknown in found.unknown:
        raise _unreadable(resource, unknown)
    return found


async def list_readable(
    client: Client,
    resource: Resource[T],
    namespace: str = "",
    *,
    label_selector: str = "",
    field_selector: str = "",
    metadata_only: bool = False,
) -> Listed[T]:
    """All objects that match, PAGE at a time; those that cannot be decoded are in ``unknown``. Raises RequestError.

    Where the continue token expires, everything is listed again in one request.
    """

    async def fetch(token: str, limit: int) -> Page:
        body = await client.list_page(
            resource,
            namespace,
            limit=limit,
            continue_=token,
            label_selector=label_selector,
            field_selector=field_selector,
            metadata_only=metadata_only,
        )
        return await read_page_in_turns(body, "" if metadata_only else resource.kind)

    version, items, unknown = "", list[T](), list[Undecodable]()
    async with aclosing(in_pages(fetch)) as pages:
        async for page, anew in pages:
            if anew:
                items.clear()
                unknown.clear()
            for item in page.items:
                obj = resource.read_item(item, metadata_only=metadata_only)
                if not isinstance(obj, Undecodable):
                    items.append(obj)
                elif obj.spoilt:
                    raise _unreadable(resource, obj)
                else:
                    unknown.append(obj)
                if _size(item) > LARGE:
                    await asyncio.sleep(0)
            version = page.resource_version
            if page.next_page:
                await asyncio.sleep(0)
    return Listed(items, version, unknown)


def _size(item: msgspec.Raw | Message) -> int:
    return len(item.data if isinstance(item, Message) else memoryview(item))


def _unreadable(resource: Resource[Any], obj: Undecodable) -> Unreadable:
    return Unreadable(f"{resource.plural} {quote(obj.key)} cannot be read: {obj.why}")
