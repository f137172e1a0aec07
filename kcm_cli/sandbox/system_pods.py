"""What kubeadm and kind run in ``kube-system``, with the names and labels that tools look for.

The control plane's pods are those of a node's kubelet (mirrors of static pods). The others come from a Deployment and a
DaemonSet, so they need the controllers.

upstream: cmd/kubeadm/app/phases/addons, cmd/kubeadm/app/phases/controlplane/manifests.go
"""

from collections.abc import Collection, Sequence
from ipaddress import ip_network

from kcm_cli.api.well_known import MIRROR
from kcm_cli.component.version import GIT_VERSION
from kcm_cli.machinery.codec import Doc
from kcm_cli.sandbox.networks import DNS_OFFSET

NAMESPACE = "kube-system"
_SOURCE, _HASH = "kubernetes.io/config.source", "kubernetes.io/config.hash"
_REGISTRY = "registry.k8s.io"
_CONTROL_PLANE = {
    "etcd": ("etcd", "3.6.8-0"),
    "kube-apiserver": ("kube-apiserver", GIT_VERSION),
    "kube-controller-manager": ("kube-controller-manager", GIT_VERSION),
    "kube-scheduler": ("kube-scheduler", GIT_VERSION),
}
_DNS, _PROXY = {"k8s-app": "kube-dns"}, {"k8s-app": "kube-proxy"}


def system_objects(service_ranges: Sequence[str], taken: Collection[str] = ()) -> list[Doc]:
    """What the addons are, in an order in which they can be created.

    taken: the addresses that Services have. If the one for DNS is among them, the server chooses another.
    """
    dns = str(ip_network(service_ranges[0])[1 + DNS_OFFSET])
    return [
        *(_account(name) for name in ("coredns", "kube-proxy")),
        *(_config(name, key) for name, key in (("coredns", "Corefile"), ("kube-proxy", "config.conf"))),
        _dns_service("" if dns in taken else dns),
        _workload("Deployment", "coredns", _DNS, f"{_REGISTRY}/coredns/coredns:v1.14.2", {"replicas": 2}),
        _workload("DaemonSet", "kube-proxy", _PROXY, f"{_REGISTRY}/kube-proxy:{GIT_VERSION}", {}),
    ]


def static_pods(node: str) -> list[Doc]:
    """The pods of the control plane on its node."""
    return [_static(name, f"{_REGISTRY}/{image}:{tag}", node) for name, (image, tag) in _CONTROL_PLANE.items()]


def _meta(name: str, **more: object) -> Doc:
    return {"name": name, "namespace": NAMESPACE, **more}


def _account(name: str) -> Doc:
    return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": _meta(name)}


def _config(name: str, key: str) -> Doc:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": _meta(name), "data": {key: ""}}


def _dns_service(address: str) -> Doc:
    labels = {**_DNS, "kubernetes.io/cluster-service": "true", "kubernetes.io/name": "CoreDNS"}
    ports = [
        {"name": "dns", "port": 53, "protocol": "UDP", "targetPort": 53},
        {"name": "dns-tcp", "port": 53, "protocol": "TCP", "targetPort": 53},
        {"name": "metrics", "port": 9153, "protocol": "TCP", "targetPort": 9153},
    ]
    spec: Doc = {"clusterIP": address, "selector": _DNS, "ports": ports}
    return {"apiVersion": "v1", "kind": "Service", "metadata": _meta("kube-dns", labels=labels), "spec": spec}


def _workload(kind: str, name: str, labels: dict[str, str], image: str, more: Doc) -> Doc:
    host = kind == "DaemonSet"
    pod: Doc = {
        "containers": [{"name": name, "image": image}],
        "serviceAccountName": name,
        "priorityClassName": "system-node-critical" if host else "system-cluster-critical",
        "hostNetwork": host,
        "tolerations": [{"operator": "Exists"}] if host else [{"key": "CriticalAddonsOnly", "operator": "Exists"}],
    }
    template = {"metadata": {"labels": labels}, "spec": pod}
    spec: Doc = {**more, "selector": {"matchLabels": labels}, "template": template}
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": _meta(name, labels=labels), "spec": spec}


def _static(name: str, image: str, node: str) -> Doc:
    annotations = {MIRROR: name, _HASH: name, _SOURCE: "file"}
    metadata = _meta(f"{name}-{node}", labels={"component": name, "tier": "control-plane"}, annotations=annotations)
    spec: Doc = {
        "nodeName": node,
        "hostNetwork": True,
        "priorityClassName": "system-node-critical",
        "tolerations": [{"effect": "NoExecute", "operator": "Exists"}],
        "containers": [{"name": name, "image": image}],
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
