"""Defaults of the core kinds that are neither workloads nor storage.

Source: pkg/apis/core/v1/defaults.go.
"""

import base64

from kcm_cli.sandbox.apiserver.types import Tree


def namespace(doc: Tree) -> None:
    meta = doc["metadata"]
    if name := meta.get("name"):
        labels = meta.get("labels")
        if labels is None:
            labels = meta["labels"] = {}
        labels["kubernetes.io/metadata.name"] = name
    doc.setdefault("spec", {})
    status = doc.setdefault("status", {})
    if not status.get("phase"):
        status["phase"] = "Active"


def secret(doc: Tree) -> None:
    if not doc.get("type"):
        doc["type"] = "Opaque"
    if (plain := doc.pop("stringData", None)) is not None and plain:
        data = doc["data"] = dict(doc.get("data") or {})
        for key, value in plain.items():
            data[key] = base64.b64encode(value.encode()).decode()


def service(doc: Tree) -> None:
    spec = doc.setdefault("spec", {})
    if not spec.get("sessionAffinity"):
        spec["sessionAffinity"] = "None"
    _session_affinity(spec)
    if not spec.get("type"):
        spec["type"] = "ClusterIP"
    for port in spec.get("ports") or ():
        if not port.get("protocol"):
            port["protocol"] = "TCP"
        if not port.get("targetPort"):
            port["targetPort"] = port.get("port", 0)
    kind = spec["type"]
    external = kind in ("LoadBalancer", "NodePort") or (kind == "ClusterIP" and spec.get("externalIPs"))
    if external and not spec.get("externalTrafficPolicy"):
        spec["externalTrafficPolicy"] = "Cluster"
    if spec.get("internalTrafficPolicy") is None and kind in ("NodePort", "LoadBalancer", "ClusterIP"):
        spec["internalTrafficPolicy"] = "Cluster"
    balancer = doc.setdefault("status", {}).setdefault("loadBalancer", {})
    if kind == "LoadBalancer":
        if spec.get("allocateLoadBalancerNodePorts") is None:
            spec["allocateLoadBalancerNodePorts"] = True
        for ingress in balancer.get("ingress") or ():
            if ingress.get("ip") and ingress.get("ipMode") is None:
                ingress["ipMode"] = "VIP"


def _session_affinity(spec: Tree) -> None:
    if spec["sessionAffinity"] == "None":
        spec.pop("sessionAffinityConfig", None)
    elif spec["sessionAffinity"] == "ClientIP":
        client = (spec.get("sessionAffinityConfig") or {}).get("clientIP") or {}
        if client.get("timeoutSeconds") is None:
            spec["sessionAffinityConfig"] = {"clientIP": {"timeoutSeconds": 10800}}
