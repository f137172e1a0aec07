"""Transports to servers that answer in protobuf: the sandbox answers in JSON where a client accepts both."""

import re
from contextlib import AbstractAsyncContextManager
from functools import cache

from msgspec.structs import replace

from kcm_cli.machinery.envelope import MEDIA_TYPE
from kcm_cli.rest.transport import Around, Request, Response, Stream, Transport
from tests.unit.api.schemas import resources

_NAMESPACE = re.compile(r"/namespaces/[^/]+(?=/[^/]+$)")


class OnlyFirst(Around):
    """Requests accept what they accept first, and nothing else. packed: how many asked for protobuf."""

    def __init__(self, inner: Transport) -> None:
        super().__init__(inner)
        self.packed = 0

    def turned(self, request: Request) -> Request:
        accept = request.headers.get("accept", "").split(",")[0]
        self.packed += accept.startswith(MEDIA_TYPE)
        return replace(request, headers={**request.headers, "accept": accept})

    async def send(self, request: Request) -> Response:
        return await self._inner.send(self.turned(request))

    def stream(self, request: Request) -> AbstractAsyncContextManager[Stream]:
        return self._inner.stream(self.turned(request))


class InProtobuf(OnlyFirst):
    """Lists and watches that can be read in protobuf are asked for in it, also by clients that want JSON."""

    def turned(self, request: Request) -> Request:
        accept = request.headers.get("accept", "")
        if request.method != "GET" or not self._readable(request, accept):
            return request
        return super().turned(
            replace(request, headers={**request.headers, "accept": accept.replace("application/json", MEDIA_TYPE)})
        )

    def _readable(self, request: Request, accept: str) -> bool:
        if "as=PartialObjectMetadataList" in accept or ("watch", "true") in request.query and "as=" in accept:
            return True
        return _NAMESPACE.sub("", request.path) in _collections() and "as=" not in accept


@cache
def _collections() -> frozenset[str]:
    return frozenset(one.gvr.path() for one in resources().values() if one.reader() is not None)
