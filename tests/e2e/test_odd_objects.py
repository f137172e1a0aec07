"""Odd objects that a real API server accepts, and an aggregated API that answers nulls; beside them work goes on.

With kube-apiserver and etcd, where KUBEBUILDER_ASSETS names a folder with them.
"""

import json
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from kcm_cli.manager.server import self_signed
from tests.e2e.test_originals import ASSETS, needs
from tests.kit.processes import KCM, Processes, ask, free_port, until
from tests.kit.servers import TOKEN, kubeconfig, real_server

pytestmark = pytest.mark.e2e

POD: dict[str, Any] = {"containers": [{"name": "c", "image": "x"}], "restartPolicy": "Never"}
GROUP = "odd.example.com"
NULLS = {
    "kind": "APIResourceList",
    "apiVersion": "v1",
    "groupVersion": f"{GROUP}/v1",
    "resources": [
        {"name": "odds", "singularName": None, "namespaced": True, "kind": "Odd", "verbs": None},
        {"name": None, "singularName": None, "namespaced": None, "kind": None, "verbs": None},
    ],
}


def job(name: str, **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"template": {"spec": POD}, "backoffLimit": 0, **spec}}


ODD: dict[str, dict[str, Any]] = {
    "/apis/batch/v1/namespaces/odd/jobs": job("odd", podFailurePolicy={}),
    "/apis/resource.k8s.io/v1/namespaces/odd/resourceclaims": {"metadata": {"name": "odd"}, "spec": {}},
    "/apis/resource.k8s.io/v1/namespaces/odd/resourceclaimtemplates": {
        "metadata": {"name": "odd"},
        "spec": {"spec": {}},
    },
    "/api/v1/namespaces/odd/pods": {
        "metadata": {"name": "odd"},
        "spec": {
            **POD,
            "volumes": [{"name": "v", "projected": {}}],
            "resourceClaims": [{"name": "r", "resourceClaimTemplateName": "odd"}],
        },
    },
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions": {
        "metadata": {"name": "things.example.com"},
        "spec": {
            "group": "example.com",
            "names": {"plural": "things", "kind": "Thing"},
            "scope": "Namespaced",
            "versions": [
                {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
            ],
        },
        "status": {"conditions": None, "storedVersions": None, "acceptedNames": {"plural": "", "kind": ""}},
    },
}


class _Nulls(BaseHTTPRequestHandler):
    """An aggregated API server whose lists are null."""

    def do_GET(self) -> None:
        body = json.dumps(NULLS).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None: ...


@contextmanager
def aggregated(folder: Path) -> Iterator[int]:
    """The port of such a server."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*self_signed.kept_pair(str(folder), "odd", "127.0.0.1", datetime.now(UTC)))
    server = ThreadingHTTPServer(("127.0.0.1", free_port()), _Nulls)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()


@needs("kube-apiserver")
def test_ordinary_requests_succeed_beside_odd_objects(tmp_path: Path) -> None:
    with real_server(Path(ASSETS), tmp_path) as url, aggregated(tmp_path) as port, Processes() as processes:
        (tmp_path / "kubeconfig").write_text(kubeconfig(url))

        def send(path: str, doc: dict[str, Any]) -> None:
            answer = ask(f"{url}{path}", token=TOKEN, method="POST", body=doc)
            assert answer.status == 201, answer.text

        def get(path: str) -> Any:
            answer = ask(f"{url}{path}", token=TOKEN)
            return answer.doc if answer.content_type.startswith("application/json") else {}

        for name in ("odd", "usual", "ending"):
            send("/api/v1/namespaces", {"metadata": {"name": name}})
            account = {"metadata": {"name": "default"}}
            ask(f"{url}/api/v1/namespaces/{name}/serviceaccounts", token=TOKEN, method="POST", body=account)
        for path, doc in ODD.items():
            send(path, doc)
        service = {"type": "ExternalName", "externalName": "localhost", "ports": [{"port": port}]}
        send("/api/v1/namespaces/odd/services", {"metadata": {"name": "odd"}, "spec": service})
        spec = {"group": GROUP, "version": "v1", "groupPriorityMinimum": 100, "versionPriority": 1}
        there = {"name": "odd", "namespace": "odd", "port": port}
        api = {**spec, "insecureSkipTLSVerify": True, "service": there}
        send("/apis/apiregistration.k8s.io/v1/apiservices", {"metadata": {"name": f"v1.{GROUP}"}, "spec": api})
        until(lambda: get(f"/apis/{GROUP}/v1").get("kind") == "APIResourceList")

        log = tmp_path / "kcm.log"
        command = [*KCM, f"--kubeconfig={tmp_path}/kubeconfig", "--secure-port=0", "--leader-elect=false"]
        manager = processes.start(*command, log=log)
        send("/apis/batch/v1/namespaces/usual/jobs", job("usual"))
        labels = {"app": "web"}
        template = {"metadata": {"labels": labels}, "spec": {"containers": POD["containers"]}}
        web = {"replicas": 2, "selector": {"matchLabels": labels}, "template": template}
        send("/apis/apps/v1/namespaces/usual/deployments", {"metadata": {"name": "web"}, "spec": web})
        ask(f"{url}/api/v1/namespaces/ending", token=TOKEN, method="DELETE")

        def pods(namespace: str, selector: str) -> int:
            return len(get(f"/api/v1/namespaces/{namespace}/pods?labelSelector={selector}")["items"])

        until(lambda: pods("usual", "job-name%3Dusual") == 1, why=log.read_text)
        until(lambda: pods("odd", "job-name%3Dodd") == 1, why=log.read_text)
        until(lambda: pods("usual", "app%3Dweb") == 2, why=log.read_text)
        until(lambda: ask(f"{url}/api/v1/namespaces/ending", token=TOKEN).status == 404, why=log.read_text)
        until(
            lambda: len(get("/apis/resource.k8s.io/v1/namespaces/odd/resourceclaims")["items"]) == 2, why=log.read_text
        )
        assert manager.poll() is None
        text = log.read_text()
        assert "cannot be decoded" not in text
        assert "Listener failed" not in text
        assert "got null" not in text
