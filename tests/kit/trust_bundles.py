"""ClusterTrustBundles as custom resources, for servers that have none."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from msgspec.structs import replace

from kcm_cli.rest.transport import Around, Request, Response, Stream, Transport

OURS, THEIRS = "kubernetes.io:kube-apiserver-serving:", "kubernetes.io.kube-apiserver-serving."


class Renaming(Around):
    """Custom resources stand for the bundles, and their names cannot have colons: there they have dots."""

    def __init__(self, inner: Transport) -> None:
        super().__init__(inner)

    async def send(self, request: Request) -> Response:
        path, body = request.path.replace(OURS, THEIRS), request.body.replace(OURS.encode(), THEIRS.encode())
        answer = await self._inner.send(replace(request, path=path, body=body))
        return replace(answer, body=answer.body.replace(THEIRS.encode(), OURS.encode()))

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[Stream]:
        async with self._inner.stream(request) as stream:
            chunks = (chunk.replace(THEIRS.encode(), OURS.encode()) async for chunk in stream.chunks)
            yield Stream(stream.status, stream.headers, chunks)
