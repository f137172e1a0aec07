"""Objects for tests of endpoints, decoded as they come from the API server."""

from typing import Any

from kcm_cli.api.core import NODES, PODS, SERVICES, Node, Pod, Service
from kcm_cli.machinery import codec

BORN = "2026-01-01T00:00:00Z"


def pod(
    name: str,
    ip: str = "10.0.0.1",
    *ips: str,
    ready: bool | None = True,
    phase: str = "Running",
    node: str = "n1",
    deleted: bool = False,
    since: str = BORN,
    labels: dict[str, str] | None = None,
    **spec: Any,
) -> Pod:
    metadata: dict[str, Any] = {
        "name": name,
        "namespace": "ns",
        "uid": f"uid-{name}",
        "labels": labels or {"app": "web"},
    }
    if deleted:
        metadata["deletionTimestamp"] = BORN
    status: dict[str, Any] = {"phase": phase}
    if ip:
        status |= {"podIP": ip, "podIPs": [{"ip": each} for each in (ip, *ips)]}
    if ready is not None:
        status["conditions"] = [{"type": "Ready", "status": str(ready), "lastTransitionTime": since}]
    body = {"containers": [{"name": "c"}], "nodeName": node, **spec}
    return PODS.decode(codec.encode({"metadata": metadata, "spec": body, "status": status}))


def service(name: str = "web", **spec: Any) -> Service:
    """A Service with an address and port 80; ``labels`` and ``annotations`` are its metadata's, as is ``deleted``."""
    metadata: dict[str, Any] = {"name": name, "namespace": "ns", "uid": f"uid-{name}", "creationTimestamp": BORN}
    for field in ("labels", "annotations"):
        if field in spec:
            metadata[field] = spec.pop(field)
    if spec.pop("deleted", False):
        metadata["deletionTimestamp"] = BORN
    full = {
        "selector": {"app": "web"},
        "clusterIP": "10.96.0.1",
        "ipFamilies": ["IPv4"],
        "ports": [{"port": 80, "targetPort": 80, "protocol": "TCP"}],
    }
    return SERVICES.decode(codec.encode({"metadata": metadata, "spec": full | spec}))


def node(name: str = "n1", zone: str = "", cpu: str = "4", *, ready: bool = True, **labels: str) -> Node:
    metadata: dict[str, Any] = {
        "name": name,
        "labels": {key.replace("__", "/"): value for key, value in labels.items()},
    }
    if zone:
        metadata["labels"]["topology.kubernetes.io/zone"] = zone
    status: dict[str, Any] = {"conditions": [{"type": "Ready", "status": str(ready)}]}
    if cpu:
        status["allocatable"] = {"cpu": cpu}
    return NODES.decode(codec.encode({"metadata": metadata, "status": status}))
