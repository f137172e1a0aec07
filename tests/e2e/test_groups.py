"""Two managers with a group of controllers each (docs/scaling.md): both lead, and no key is worked on by two."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.kit.processes import KCM, Processes, ask, free_port, until
from tests.kit.units import GROUPS, unit_flags

pytestmark = pytest.mark.e2e
TOKEN = "tok"
KEPT = ("--controllers", "--leader-elect-resource-name")
"""Flags of the unit that a group sets."""
_WORKED = re.compile(r'^workqueue_work_duration_seconds_count\{[^}]*name="([^"]+)"[^}]*\} ([1-9]\S*)$', re.MULTILINE)
OWN = {"DynamicCABundle-client-ca", "DynamicConfigMapCABundle-client-ca", "DynamicServingCertificateController"}
OWN |= {"DynamicCABundle-serving-cert", "RequestHeaderAuthRequestController"}
"""Of each server, for its own files."""


class Groups:
    """A sandbox with nodes, and a manager for each group."""

    def __init__(self, folder: Path, processes: Processes) -> None:
        port, config = free_port(), folder / "kubeconfig"
        self.url = f"https://127.0.0.1:{port}"
        words = [f"--port={port}", f"--token={TOKEN}", f"--kubeconfig={config}", "--nodes=2", "--no-manager"]
        processes.start(*KCM, "sandbox", *words, log=folder / "sandbox.log")
        until(lambda: ask(f"{self.url}/healthz", token=TOKEN).status == 200, why=(folder / "sandbox.log").read_text)
        self.ports = {}
        for group in GROUPS:
            self.ports[group] = free_port()
            flags = [flag for flag in unit_flags(group) if flag.startswith(KEPT)]
            access = [f"--{who}kubeconfig={config}" for who in ("", "authentication-", "authorization-")]
            more = [f"--secure-port={self.ports[group]}", "--authorization-always-allow-paths=/metrics"]
            processes.start(*KCM, *access, *flags, *more, log=folder / f"{group}.log")

    def call(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        answer = ask(f"{self.url}{path}", token=TOKEN, method=method, body=body)
        assert answer.status < 300 or answer.status == 404, answer
        return answer.doc

    def worked(self, group: str) -> set[str]:
        """The queues of which the group's manager worked on keys."""
        text = ask(f"https://127.0.0.1:{self.ports[group]}/metrics").text
        return {name for name, _ in _WORKED.findall(text)}


@pytest.fixture
def groups(tmp_path: Path) -> Iterator[Groups]:
    with Processes() as processes:
        yield Groups(tmp_path, processes)


def test_groups_do_the_work_of_one_manager_and_none_meets_another(groups: Groups) -> None:
    space = "/api/v1/namespaces/team"
    groups.call("POST", "/api/v1/namespaces", {"metadata": {"name": "team"}})
    labels = {"app": "web"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "nginx"}]}}
    spec = {"replicas": 3, "selector": {"matchLabels": labels}, "template": template}
    until(lambda: groups.call("GET", f"{space}/serviceaccounts/default")["kind"] == "ServiceAccount")
    path = "/apis/apps/v1/namespaces/team/deployments"
    groups.call("POST", path, {"metadata": {"name": "web"}, "spec": spec})
    groups.call(
        "POST",
        f"{space}/services",
        {"metadata": {"name": "web"}, "spec": {"selector": labels, "ports": [{"port": 80}]}},
    )
    until(lambda: groups.call("GET", f"{path}/web").get("status", {}).get("readyReplicas") == 3)
    slices = "/apis/discovery.k8s.io/v1/namespaces/team/endpointslices"
    until(lambda: sum(len(item["endpoints"] or ()) for item in groups.call("GET", slices)["items"]) == 3)
    groups.call("DELETE", f"{path}/web")
    until(lambda: groups.call("GET", f"{space}/pods")["items"] == [])
    groups.call("DELETE", space)
    until(lambda: groups.call("GET", space).get("code") == 404)
    workloads, others = map(groups.worked, GROUPS)
    assert {"deployment", "replicaset"} <= workloads
    assert {"namespace", "endpoint_slice", "garbage_collector_attempt_to_delete"} <= others
    assert (workloads & others) - OWN == set()
