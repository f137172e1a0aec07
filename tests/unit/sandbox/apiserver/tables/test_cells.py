"""Rows of tables: what ``kubectl get`` shows of an object."""

from datetime import UTC, datetime
from typing import Any

import pytest

from kcm_cli.sandbox.apiserver.kinds import KINDS
from kcm_cli.sandbox.apiserver.tables.column import PLAIN

NOW = datetime(2030, 1, 1, 1, tzinfo=UTC)
BORN = "2030-01-01T00:00:00Z"


LAYOUTS = {f"{kind.resource}.{kind.group}".rstrip("."): kind.table for kind in KINDS if kind.table is not PLAIN}


def row(resource: str, **doc: Any) -> dict[str, object]:
    """The cells of an object one hour old, by the column's name."""
    meta = {"name": "n", "creationTimestamp": BORN, **doc.pop("metadata", {})}
    layout = LAYOUTS[resource]
    cells = layout.cells({"metadata": meta, **doc}, NOW)
    names = [column.name for column in layout.columns]
    if resource == "ipaddresses.networking.k8s.io":
        names.append("Age")  # the real server sends an age without a column, too
    assert len(names) == len(cells)
    return dict(zip(names, cells, strict=True))


def container(**state: Any) -> dict[str, Any]:
    return {"name": "c", "ready": False, "restartCount": 0, **state}


def pod(*statuses: Any, phase: str = "Running", **more: Any) -> dict[str, object]:
    spec = {"containers": [{"name": f"c{i}"} for i in range(max(len(statuses), 1))], **more.pop("spec", {})}
    status = {"phase": phase, "containerStatuses": list(statuses), **more.pop("status", {})}
    return row("pods", spec=spec, status=status, **more)


RUNNING = container(ready=True, state={"running": {"startedAt": BORN}})


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        pytest.param(pod(phase="Pending"), ("0/1", "Pending", "0"), id="pending"),
        pytest.param(pod(RUNNING), ("1/1", "Running", "0"), id="running"),
        pytest.param(pod(RUNNING, container()), ("1/2", "Running", "0"), id="partly ready"),
        pytest.param(
            pod(container(state={"waiting": {"reason": "ImagePullBackOff"}})),
            ("0/1", "ImagePullBackOff", "0"),
            id="waiting",
        ),
        pytest.param(
            pod(container(state={"terminated": {"reason": "Error", "exitCode": 1}}), phase="Failed"),
            ("0/1", "Error", "0"),
            id="ended",
        ),
        pytest.param(
            pod(container(state={"terminated": {"exitCode": 3}})),
            ("0/1", "ExitCode:3", "0"),
            id="code without a reason",
        ),
        pytest.param(
            pod(container(state={"terminated": {"signal": 9, "exitCode": 137}})), ("0/1", "Signal:9", "0"), id="signal"
        ),
        pytest.param(pod(status={"reason": "Evicted"}, phase="Failed"), ("0/1", "Evicted", "0"), id="evicted"),
        pytest.param(pod(RUNNING, metadata={"deletionTimestamp": BORN}), ("1/1", "Terminating", "0"), id="terminating"),
        pytest.param(
            pod(metadata={"deletionTimestamp": BORN}, status={"reason": "NodeLost"}),
            ("0/1", "Unknown", "0"),
            id="node lost",
        ),
        pytest.param(
            pod(phase="Pending", status={"conditions": [{"type": "PodScheduled", "reason": "SchedulingGated"}]}),
            ("0/1", "SchedulingGated", "0"),
            id="gated",
        ),
        pytest.param(
            pod(
                container(
                    ready=True, restartCount=2, state={"running": {}}, lastState={"terminated": {"finishedAt": BORN}}
                )
            ),
            ("1/1", "Running", "2 (60m ago)"),
            id="restarted",
        ),
        pytest.param(
            pod(
                phase="Pending",
                spec={"initContainers": [{"name": "i"}, {"name": "j"}]},
                status={"initContainerStatuses": [container(name="i", state={"running": {}})]},
            ),
            ("0/1", "Init:0/2", "0"),
            id="initializing",
        ),
        pytest.param(
            pod(
                phase="Pending",
                spec={"initContainers": [{"name": "i"}]},
                status={
                    "initContainerStatuses": [container(name="i", state={"waiting": {"reason": "CrashLoopBackOff"}})]
                },
            ),
            ("0/1", "Init:CrashLoopBackOff", "0"),
            id="init fails",
        ),
    ],
)
def test_pods(shown: dict[str, object], expected: tuple[str, str, str]) -> None:
    assert (shown["Ready"], shown["Status"], shown["Restarts"]) == expected


def test_a_pods_node_and_address() -> None:
    found = pod(RUNNING, spec={"nodeName": "node-1"}, status={"podIPs": [{"ip": "10.0.0.1"}, {"ip": "fd::1"}]})
    assert (found["Node"], found["IP"], found["Age"]) == ("node-1", "10.0.0.1", "60m")
    nowhere = pod()
    assert (nowhere["Node"], nowhere["IP"], nowhere["Nominated Node"]) == ("<none>", "<none>", "<none>")


def test_a_deployment() -> None:
    spec = {
        "replicas": 3,
        "selector": {"matchLabels": {"a": "b"}},
        "template": {"spec": {"containers": [{"name": "x", "image": "i"}, {"name": "y", "image": "j"}]}},
    }
    found = row("deployments.apps", spec=spec, status={"readyReplicas": 1, "updatedReplicas": 2})
    assert (found["Ready"], found["Up-to-date"], found["Available"]) == ("1/3", 2, 0)
    assert (found["Containers"], found["Images"], found["Selector"]) == ("x,y", "i,j", "a=b")


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"type": "ClusterIP", "clusterIPs": ["10.0.0.1"], "ports": [{"port": 80}]}, ("10.0.0.1", "<none>", "80/")),
        (
            {
                "type": "NodePort",
                "clusterIPs": ["10.0.0.1"],
                "ports": [{"port": 80, "nodePort": 30000, "protocol": "TCP"}],
            },
            ("10.0.0.1", "<none>", "80:30000/TCP"),
        ),
        ({"type": "LoadBalancer", "clusterIPs": ["10.0.0.1"]}, ("10.0.0.1", "<pending>", "<none>")),
        ({"type": "ExternalName", "externalName": "a.b"}, ("<none>", "a.b", "<none>")),
        (
            {"type": "ClusterIP", "clusterIPs": ["None"], "externalIPs": ["1.1.1.1", "2.2.2.2"]},
            ("None", "1.1.1.1,2.2.2.2", "<none>"),
        ),
    ],
    ids=["cluster", "node port", "pending balancer", "name", "headless"],
)
def test_services(spec: dict[str, object], expected: tuple[str, str, str]) -> None:
    found = row("services", spec=spec)
    assert (found["Cluster-IP"], found["External-IP"], found["Port(s)"]) == expected


@pytest.mark.parametrize(
    ("doc", "status"),
    [
        ({"status": {"conditions": [{"type": "Ready", "status": "True"}]}}, "Ready"),
        ({"status": {"conditions": [{"type": "Ready", "status": "False"}]}}, "NotReady"),
        ({"status": {}}, "Unknown"),
        (
            {"spec": {"unschedulable": True}, "status": {"conditions": [{"type": "Ready", "status": "True"}]}},
            "Ready,SchedulingDisabled",
        ),
    ],
    ids=["ready", "not ready", "silent", "cordoned"],
)
def test_nodes(doc: dict[str, Any], status: str) -> None:
    assert row("nodes", **doc)["Status"] == status


def test_a_nodes_roles() -> None:
    roles = {"node-role.kubernetes.io/worker": "", "node-role.kubernetes.io/etcd": "", "kubernetes.io/role": "old"}
    assert row("nodes", metadata={"labels": roles})["Roles"] == "etcd,old,worker"


def test_volumes_and_claims() -> None:
    volume = row(
        "persistentvolumes",
        spec={
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteMany", "ReadWriteOnce"],
            "claimRef": {"namespace": "a", "name": "b"},
        },
        status={"phase": "Bound"},
    )
    assert (volume["Capacity"], volume["Access Modes"], volume["Claim"]) == ("1Gi", "RWO,RWX", "a/b")
    spec = {"volumeName": "v", "storageClassName": "fast"}
    claim = row("persistentvolumeclaims", spec=spec, status={"phase": "Bound", "capacity": {"storage": "1Gi"}})
    assert (claim["Status"], claim["Volume"], claim["Capacity"], claim["StorageClass"]) == ("Bound", "v", "1Gi", "fast")
    old = {"metadata": {"annotations": {"volume.beta.kubernetes.io/storage-class": "slow"}}}
    unbound = row(
        "persistentvolumeclaims", **old, spec=spec | {"volumeName": ""}, status={"capacity": {"storage": "1Gi"}}
    )
    assert (unbound["Capacity"], unbound["StorageClass"]) == ("", "slow")


@pytest.mark.parametrize("resource", sorted(LAYOUTS))
def test_an_empty_object_has_a_row(resource: str) -> None:
    row(resource)


@pytest.mark.parametrize("resource", sorted(LAYOUTS))
def test_columns_have_descriptions(resource: str) -> None:
    """A description ``Type.field`` is looked up. One that is not found would be shown unchanged."""
    for definition in LAYOUTS[resource].definitions():
        text = str(definition["description"])
        assert " " in text or "." not in text, definition["name"]


def test_a_service_account_without_a_namespace_in_a_binding() -> None:
    subjects = [{"kind": "ServiceAccount", "name": "a"}, {"kind": "ServiceAccount", "name": "b", "namespace": "n"}]
    shown = row("rolebindings.rbac.authorization.k8s.io", roleRef={"kind": "Role", "name": "r"}, subjects=subjects)
    assert shown["ServiceAccounts"] == "/a, n/b"
