"""The interface of pytest-kind's cluster."""

import os
import time
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from kcm_cli.testing.kind import KindCluster
from kcm_cli.testing.sandbox import Sandbox

KUBECTL = """#!/bin/sh
[ "$1" = port-forward ] || { echo "$KUBECONFIG $*"; exit; }
[ "$2" = missing ] && { echo no such pod; exit 1; }
echo "Forwarding from 127.0.0.1:40123 -> 80"
[ "$2" = busy ] && { head -c 200000 /dev/zero | tr '\\0' '\\n'; touch "$0.wrote"; }
exec sleep 60
"""


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> KindCluster:
    (tmp_path / "kubectl").write_text(KUBECTL)
    (tmp_path / "kubectl").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    return KindCluster(cast(Sandbox, SimpleNamespace(kubeconfig="/tmp/config")))


def test_kubectl_is_run_with_the_clusters_kubeconfig(cluster: KindCluster) -> None:
    assert cluster.kubectl("get", "pods") == "/tmp/config get pods\n"
    assert cluster.kubeconfig_path == Path("/tmp/config")


def test_a_port_is_forwarded_while_inside(cluster: KindCluster) -> None:
    with cluster.port_forward("service/web", 80) as port:
        assert port == 40123


def test_what_kubectl_writes_meanwhile_is_read(cluster: KindCluster, tmp_path: Path) -> None:
    with cluster.port_forward("busy", 80):
        for _ in range(500):
            if (tmp_path / "kubectl.wrote").exists():
                return
            time.sleep(0.01)
    raise AssertionError("kubectl waits for somebody to read")


def test_what_cannot_be_forwarded_is_an_error(cluster: KindCluster) -> None:
    with pytest.raises(RuntimeError, match="no such pod"), cluster.port_forward("missing", 80):
        pass


def test_images_and_the_clusters_life_are_ignored(cluster: KindCluster) -> None:
    cluster.create("kind.yaml")
    cluster.load_docker_image("app:1")
    cluster.delete()
    assert cluster.name == "kcm-sandbox"
