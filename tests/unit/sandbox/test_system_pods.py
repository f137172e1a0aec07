"""What kubeadm runs in kube-system: made when it is missing, and left alone otherwise."""

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from kcm_cli.machinery import codec
from kcm_cli.machinery.codec import Doc
from kcm_cli.rest.transport import Request, Response
from kcm_cli.sandbox.apiserver.settings import Settings
from kcm_cli.sandbox.run import ADMIN, SandboxOptions, SandboxServer

pytestmark = pytest.mark.real_time

SERVICES, CONFIG = "/api/v1/namespaces/kube-system/services", "/api/v1/namespaces/kube-system/configmaps/coredns"


class Cluster:
    """A server with a data directory, which the test starts again and again."""

    def __init__(self, folder: Path, **options: Any) -> None:
        self._options = SandboxOptions(port=0, data_dir=str(folder), **options)

    async def __aenter__(self) -> "Cluster":
        self._server = SandboxServer(self._options)
        self._server.prepare()
        await self._server.serve()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._server.stop()

    async def call(self, method: str, path: str, doc: Doc | None = None) -> Any:
        body = b"" if doc is None else codec.encode(doc)
        headers = {"content-type": "application/merge-patch+json" if method == "PATCH" else "application/json"}
        answer = await self._server.api.handle_as(ADMIN, Request(method, path, (), headers, body))
        assert isinstance(answer, Response)
        assert answer.status < 300, answer.body
        return codec.decode_doc(answer.body)

    def with_system_pods(self) -> None:
        self._options = replace(self._options, system_pods=True)


async def test_a_restart_keeps_what_the_user_has_changed(tmp_path: Path) -> None:
    cluster, mine = Cluster(tmp_path, system_pods=True), {"Corefile": "mine"}
    async with cluster:
        await cluster.call("PATCH", CONFIG, {"data": mine})
        await cluster.call("DELETE", CONFIG.replace("coredns", "kube-proxy"))
    async with cluster:
        assert (await cluster.call("GET", CONFIG))["data"] == mine
        assert (await cluster.call("GET", CONFIG.replace("coredns", "kube-proxy")))["data"] == {"config.conf": ""}


async def test_a_service_that_has_the_tenth_address_keeps_it(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path, settings=Settings(service_ranges=("10.7.0.0/28",)))
    async with cluster:
        spec = {"clusterIP": "10.7.0.10", "ports": [{"port": 80}]}
        await cluster.call("POST", SERVICES, {"metadata": {"name": "mine"}, "spec": spec})
    cluster.with_system_pods()
    async with cluster:
        assert (await cluster.call("GET", f"{SERVICES}/kube-dns"))["spec"]["clusterIP"] not in ("10.7.0.10", "None", "")
