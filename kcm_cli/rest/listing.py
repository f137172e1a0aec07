"""Whole lists in pages, for those who have no informer.

upstream: staging/src/k8s.io/client-go/tools/pager/pager.go
"""

import asyncio
from typing import Any, Generic, TypeVar

import msgspec

from kcm_cli.api.resource import Resource
from kcm_cli.machinery import codec
from kcm_cli.machinery.meta import Object
from kcm_cli.rest.client import Client
from kcm_cli.rest.errors import Expired

T = TypeVar("T", bound=Object)
PAGE = 500


class _Meta(msgspec.Struct, frozen=True, gc=False):
    resource_version: str = msgspec.field(default="", name="resourceVersion")
    continue_: str = msgspec.field(default="", name="continue")


class _Page(msgspec.Struct, frozen=True):
    metadata: _Meta = _Meta()
    items: list[msgspec.Raw] | None = None


class Listed(Generic[T]):
    """Objects, and the version at which they were so."""

    def __init__(self, items: list[T], resource_version: str) -> None:
        self.items = items
        self.resource_version = resource_version


async def list_all(
    client: Client,
    resource: Resource[T],
    namespace: str = "",
    *,
    label_selector: str = "",
    field_selector: str = "",
    metadata_only: bool = False,
) -> Listed[T]:
    """All objects that match, PAGE at a time. Raises ApiError, TransportError.

    Where the continue token expires on the way, everything is asked for once more in one piece.
    """
    selection: dict[str, Any] = {
        "label_selector": label_selector,
        "field_selector": field_selector,
        "metadata_only": metadata_only,
    }
    items: list[T] = []
    token = ""
    while True:
        try:
            body = await client.list_page(resource, namespace, limit=PAGE, continue_=token, **selection)
        except Expired:
            if not token:
                raise
            items.clear()
            body = await client.list_page(resource, namespace, **selection)
        page = codec.decode(body, _Page)
        items.extend(resource.decode(item) for item in page.items or ())
        token = page.metadata.continue_
        if not token:
            return Listed(items, page.metadata.resource_version)
        await asyncio.sleep(0)
