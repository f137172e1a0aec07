"""Health checks of components over TLS, and their errors."""

import asyncio
import socket
from datetime import UTC, datetime
from typing import Any

import pytest

from kcm_cli.component.clock import LoopClock
from kcm_cli.rest.transport import Request, Response
from kcm_cli.sandbox.apiserver.http.server import HttpServer, tls_context
from kcm_cli.sandbox.apiserver.security.certificates import Certificates
from kcm_cli.sandbox.probes import healthz
from tests.kit.api import EPOCH, started

PATH = "/api/v1/componentstatuses"


async def ask(status: int) -> tuple[str, int]:
    """The error of a component that responds with this status, and its port."""

    async def handler(request: Request, peer: bytes | None) -> Response:
        return Response(status if request.path == "/healthz" else 404, {}, b"ok")

    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
        if not status:
            return await healthz(port), port
        server = HttpServer(handler, LoopClock())
        certificates = Certificates.load(None, datetime.now(UTC))
        await server.start([listener], tls_context(certificates))
        try:
            return await healthz(port), port
        finally:
            await server.stop(0.1)


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (200, ""),
        (500, "HTTP probe failed with statuscode: 500"),
        (0, 'Get "https://127.0.0.1:{0}/healthz": dial tcp 127.0.0.1:{0}: connect: connection refused'),
    ],
    ids=["well", "not well", "not there"],
)
def test_errors_of_components(status: int, expected: str) -> None:
    said, port = asyncio.run(ask(status))
    assert said == expected.format(port)


def shown(doc: Any) -> tuple[str, str, str]:
    (condition,) = doc["conditions"]
    return doc["metadata"]["name"], condition["status"], condition["message"]


async def test_all_components_are_listed_with_their_errors() -> None:
    api = await started(Certificates.load(None, EPOCH))

    async def probe(port: int) -> str:
        return f"no answer from {port}"

    components = api.server.api.components
    components.probe = probe
    components.running.add("scheduler")
    listed = await api.call("GET", PATH)
    assert listed.warnings == ("v1 ComponentStatus is deprecated in v1.19+",)
    assert [shown(item) for item in listed.doc["items"]] == [
        ("scheduler", "True", "ok"),
        ("controller-manager", "False", "no answer from 10257"),
        ("etcd-0", "True", "ok"),
    ]
    one = await api.call("GET", f"{PATH}/controller-manager")
    assert shown(one.doc)[1] == "False"
    named = await api.call("GET", f"{PATH}?fieldSelector=metadata.name=etcd-0")
    assert [item["metadata"]["name"] for item in named.doc["items"]] == ["etcd-0"]
    assert (await api.call("GET", f"{PATH}/none")).message == 'componentstatus "none" not found'
