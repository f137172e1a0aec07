"""The objects that loads are made of, and what a kubelet would say of them."""

from typing import Any

Doc = dict[str, Any]


def template(name: str) -> Doc:
    env = [{"name": f"E{n}", "value": "v" * 20} for n in range(10)]
    requests = {"cpu": "100m", "memory": "64Mi"}
    container = {"name": "c", "image": "img", "env": env, "resources": {"requests": requests}}
    return {"metadata": {"labels": {"app": name}}, "spec": {"containers": [container]}}


def workload(kind: str, name: str, **spec: object) -> Doc:
    """Of the apps group; with a template and its selector."""
    own = {"selector": {"matchLabels": {"app": name}}, "template": template(name)}
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name}, "spec": {**own, **spec}}


def deployment(name: str, replicas: int) -> Doc:
    return workload("Deployment", name, replicas=replicas)


def job(name: str) -> Doc:
    body = template(name)
    body["spec"]["restartPolicy"] = "Never"
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": {"template": body}}


def pod(name: str, node: str) -> Doc:
    container = {"name": "c", "image": "img", "ports": [{"containerPort": 80}]}
    spec = {"nodeName": node, "containers": [container]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {"app": "web"}}, "spec": spec}


def service(name: str) -> Doc:
    spec = {"selector": {"app": "web"}, "ports": [{"port": 80}]}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec}


def node(name: str) -> Doc:
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}}


NODE_READY: Doc = {"status": {"conditions": [{"type": "Ready", "status": "True", "reason": "Bench"}]}}
SUCCEEDED: Doc = {"status": {"phase": "Succeeded"}}


def running(number: int, *, ready: bool = True) -> Doc:
    """The status of a pod with an address of its own."""
    address = f"10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}"
    conditions = [{"type": "Ready", "status": str(ready)}]
    status = {"phase": "Running", "podIP": address, "podIPs": [{"ip": address}], "conditions": conditions}
    return {"status": status}
