"""Records what ``kcm top`` reads of a manager, of kube-controller-manager and of kcm, on a real API server.

    KUBEBUILDER_ASSETS=... python -m tests.generate.top_metrics

A Deployment of 300 pods is created, at the default rate of requests. tests/recorded/top gets go.json.gz and
kcm.json.gz: two readings two seconds apart, of /metrics only what ``top.figures`` reads.
"""

import gzip
import json
import os
import tempfile
import time
from pathlib import Path
from typing import Any

from kcm_cli.top.figures import FAMILIES
from tests.kit.places import ROOT
from tests.kit.processes import KCM, Processes, ask, free_port, until
from tests.kit.servers import TOKEN, kubeconfig, real_server

PLACE = ROOT / "tests" / "recorded" / "top"
APPS, LEASE = (
    "/apis/apps/v1/namespaces/default/deployments",
    "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases",
)
PAUSE_S, PODS = 2.0, 300


def main() -> None:
    assets = Path(os.environ["KUBEBUILDER_ASSETS"])
    PLACE.mkdir(exist_ok=True)
    for name, words in (("go", (f"{assets}/kube-controller-manager",)), ("kcm", KCM)):
        with tempfile.TemporaryDirectory(prefix="kcm-top-") as folder:
            body = json.dumps(recorded(assets, Path(folder), words)).encode()
        (PLACE / f"{name}.json.gz").write_bytes(gzip.compress(body, mtime=0))
        print(f"{name}: {len(body)} bytes")


def recorded(assets: Path, folder: Path, words: tuple[str, ...]) -> list[dict[str, Any]]:
    """Two readings of a manager at work."""
    with real_server(assets, folder) as url, Processes() as processes:
        config, port = folder / "config", free_port()
        config.write_text(kubeconfig(url))
        access = [f"--{who}kubeconfig={config}" for who in ("", "authentication-", "authorization-")]
        keys = [f"--service-account-private-key-file={folder}/sa.key", f"--root-ca-file={folder}/ca.crt"]
        more = [f"--secure-port={port}", f"--cert-dir={folder}/m", "--use-service-account-credentials"]
        log = folder / "manager.log"
        processes.start(*words, *access, *keys, *more, log=log)
        account = f"{url}/api/v1/namespaces/default/serviceaccounts/default"
        until(lambda: ask(account, token=TOKEN).status == 200, why=log.read_text)
        labels = {"app": "web"}
        template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "nginx"}]}}
        spec = {"replicas": PODS, "selector": {"matchLabels": labels}, "template": template}
        ask(f"{url}{APPS}", token=TOKEN, method="POST", body={"metadata": {"name": "web"}, "spec": spec})
        time.sleep(3 * PAUSE_S)
        first = reading(url, port)
        time.sleep(PAUSE_S)
        return [first, reading(url, port)]


def reading(url: str, port: int) -> dict[str, Any]:
    manager = f"https://127.0.0.1:{port}"
    at, metrics = time.time(), ask(f"{manager}/metrics", token=TOKEN)
    health = ask(f"{manager}/healthz?verbose", token=TOKEN)
    lease = ask(f"{url}{LEASE}/kube-controller-manager", token=TOKEN).doc
    assert metrics.status == health.status == 200
    kept = [line for line in metrics.text.splitlines() if line.startswith(FAMILIES) and "_bucket{" not in line]
    holder = "cp-1_" + lease["spec"]["holderIdentity"].rpartition("_")[2]
    return {"at": at, "metrics": "\n".join(kept), "health": health.text, "holder": holder}


if __name__ == "__main__":
    main()
