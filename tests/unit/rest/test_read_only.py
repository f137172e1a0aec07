"""The read-only transport."""

import asyncio

import pytest

from kcm_cli.rest.read_only import NotReadOnly, ReadOnly
from kcm_cli.rest.transport import Request, Response, Stream


class Recording:
    """Answers everything."""

    def __init__(self) -> None:
        self.sent: list[Request] = []

    async def send(self, request: Request) -> Response:
        self.sent.append(request)
        return Response(200, {}, b"{}")

    def stream(self, request: Request) -> Stream:  # type: ignore[override]
        self.sent.append(request)
        return Stream(200, {}, None)  # type: ignore[arg-type]

    async def close(self) -> None: ...


@pytest.mark.parametrize(
    "path",
    [
        "/version",
        "/api",
        "/apis",
        "/apis/apps/v1",
        "/api/v1/namespaces",
        "/api/v1/namespaces/shop",
        "/api/v1/namespaces/shop/pods",
        "/api/v1/namespaces/shop/pods/web",
        "/apis/apps/v1/deployments",
    ],
)
def test_reading_passes(path: str) -> None:
    below = Recording()
    asyncio.run(ReadOnly(below).send(Request("GET", path)))  # type: ignore[arg-type]
    assert [request.path for request in below.sent] == [path]


@pytest.mark.parametrize(
    "request_",
    [
        *(Request(method, "/api/v1/namespaces/shop/pods/web") for method in ("POST", "PUT", "PATCH", "DELETE", "HEAD")),
        Request("GET", "/api/v1/namespaces/shop/pods", body=b"{}"),
        Request("GET", "/api/v1/namespaces/shop/pods/web/exec"),
        Request("GET", "/api/v1/namespaces/shop/pods/web/portforward"),
        Request("GET", "/api/v1/nodes/node-1/proxy/run"),
        Request("GET", "/api/v1/proxy/nodes/node-1"),
        Request("GET", "/api/v1/secrets"),
        Request("GET", "/api/v1/namespaces/shop/secrets"),
        Request("GET", "/api/v1/namespaces/shop/secrets/token"),
        Request("GET", "/healthz"),
        Request("GET", "/"),
    ],
)
def test_writes_are_refused(request_: Request) -> None:
    below = Recording()
    reader = ReadOnly(below)  # type: ignore[arg-type]
    with pytest.raises(NotReadOnly):
        asyncio.run(reader.send(request_))
    with pytest.raises(NotReadOnly):
        reader.stream(request_)
    assert below.sent == []
