"""metrics.k8s.io for a real API server: an APIService whose Service leads to this process."""

import asyncio
import json
import ssl
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from kcm_cli.api.resource import GVR, Resource
from kcm_cli.machinery.meta import PartialObject
from kcm_cli.rest.client import Client

Usage = Callable[[str, str], Awaitable[list[dict[str, Any]]]]
"""The items of a namespace's pods that a label selector matches."""
PREFIX = "/apis/metrics.k8s.io/v1beta1"
_SERVICES = Resource(GVR("", "v1", "services"), "Service", PartialObject)
_API_SERVICES = Resource(
    GVR("apiregistration.k8s.io", "v1", "apiservices"), "APIService", PartialObject, namespaced=False
)
_DISCOVERY = {
    "kind": "APIResourceList",
    "apiVersion": "v1",
    "groupVersion": "metrics.k8s.io/v1beta1",
    "resources": [
        {"name": "pods", "singularName": "", "namespaced": True, "kind": "PodMetrics", "verbs": ["get", "list"]}
    ],
}


class MetricsApi:
    """Serves until ``stop``."""

    def __init__(self, usage: Usage) -> None:
        self._usage = usage
        self._server: asyncio.Server | None = None

    async def start(self, client: Client, folder: Path) -> None:
        """Serve with the certificate of the API server in ``folder``, and register."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(folder / "serving" / "apiserver.crt", folder / "serving" / "apiserver.key")
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=context)
        port = self._server.sockets[0].getsockname()[1]
        place = {"name": "metrics", "namespace": "kube-system"}
        service = {"metadata": place, "spec": {"type": "ExternalName", "externalName": "localhost"}}
        await client.create(_SERVICES, "kube-system", {"apiVersion": "v1", "kind": "Service", **service})
        spec = {
            "group": "metrics.k8s.io",
            "version": "v1beta1",
            "service": {**place, "port": port},
            "groupPriorityMinimum": 100,
            "versionPriority": 100,
            "insecureSkipTLSVerify": True,
        }
        doc: dict[str, object] = {"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "spec": spec}
        await client.create(_API_SERVICES, "", {**doc, "metadata": {"name": "v1beta1.metrics.k8s.io"}})

    async def stop(self) -> None:
        """Serve no longer."""
        if self._server is not None:
            self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while line := await reader.readline():
                while (await reader.readline()).strip():
                    pass
                body = json.dumps(await self._answer(line.split()[1].decode())).encode()
                head = f"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
                writer.write(head.encode() + body)
                await writer.drain()
        except (ConnectionError, asyncio.CancelledError):
            pass  # the API server hangs up when it likes, and the recording ends when it does
        finally:
            writer.close()

    async def _answer(self, target: str) -> dict[str, Any]:
        parts = urlsplit(target)
        words = parts.path.removeprefix(PREFIX).strip("/").split("/")
        if words[0] != "namespaces":
            return _DISCOVERY
        selector = parse_qs(parts.query).get("labelSelector", [""])[0]
        items = await self._usage(words[1], selector)
        return {"kind": "PodMetricsList", "apiVersion": "metrics.k8s.io/v1beta1", "metadata": {}, "items": items}
