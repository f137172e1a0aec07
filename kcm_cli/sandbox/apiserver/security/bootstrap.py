"""The objects of a new cluster, as documents without system metadata. Each start creates those that are missing.

upstream: pkg/controlplane, pkg/registry/{rbac,scheduling,flowcontrol}/rest
"""

from collections.abc import Sequence
from ipaddress import ip_network

from kcm_cli.machinery import codec
from kcm_cli.machinery.codec import Doc
from kcm_cli.sandbox.apiserver.data import read_data
from kcm_cli.sandbox.apiserver.settings import Proxies
from kcm_cli.sandbox.networks import SERVICE_RANGE


def fixed_objects() -> list[Doc]:
    """The objects in ``bootstrap.json.gz``: namespaces, priority classes, mandatory and suggested FlowSchemas and
    priority levels (the sandbox does not throttle), an APIService for each built-in version, and RBAC's roles and
    bindings.
    """
    return codec.decode(read_data("bootstrap"), list[dict[str, object]])


def bootstrap_objects(
    *,
    client_ca: str = "",
    proxies: Proxies | None = None,
    address: str = "",
    port: int = 443,
    service_ranges: Sequence[str] = (SERVICE_RANGE,),
    today: str = "",
) -> list[Doc]:
    """All objects, in an order in which they can be created.

    client_ca, proxies: for the ConfigMap extension-apiserver-authentication; the former is PEM. address, port: of the
    server; without an address there are no endpoints. service_ranges: see ``Settings``. today: the date since which the
    use of legacy tokens is recorded.
    """
    docs = [*fixed_objects(), service_cidr(service_ranges), _authentication(client_ca, proxies)]
    if today:
        docs.append(_token_tracking(today))
    docs.append(_service(str(ip_network(service_ranges[0])[1]), port))
    if address:
        docs += [_endpoints(address, port), _endpoint_slice(address, port)]
    return docs


def service_cidr(ranges: Sequence[str]) -> Doc:
    """The default ServiceCIDR."""
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "ServiceCIDR",
        "metadata": {"name": "kubernetes"},
        "spec": {"cidrs": list(ranges)},
    }


def _authentication(client_ca: str, proxies: Proxies | None) -> Doc:
    metadata = {"name": "extension-apiserver-authentication", "namespace": "kube-system"}
    data = {"client-ca-file": client_ca} if client_ca else {}
    if proxies is not None:
        names = proxies.headers
        data["requestheader-client-ca-file"] = proxies.cas.decode(errors="replace")
        for field, words in (
            ("username-headers", names.names),
            ("uid-headers", names.uids),
            ("group-headers", names.groups),
            ("extra-headers-prefix", names.extra_prefixes),
            ("allowed-names", names.allowed),
        ):
            if words or field != "uid-headers":
                data[f"requestheader-{field}"] = codec.encode(words).decode()
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def _token_tracking(today: str) -> Doc:
    metadata = {"name": "kube-apiserver-legacy-service-account-token-tracking", "namespace": "kube-system"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"since": today}}


def _service(address: str, port: int) -> Doc:
    labels = {"component": "apiserver", "provider": "kubernetes"}
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "kubernetes", "namespace": "default", "labels": labels},
        "spec": {
            "clusterIP": address,
            "ipFamilyPolicy": "SingleStack",
            "ports": [{"name": "https", "port": 443, "protocol": "TCP", "targetPort": port}],
            "sessionAffinity": "None",
            "type": "ClusterIP",
        },
    }


def _endpoints(address: str, port: int) -> Doc:
    labels = {"endpointslice.kubernetes.io/skip-mirror": "true"}
    ports = [{"name": "https", "port": port, "protocol": "TCP"}]
    return {
        "apiVersion": "v1",
        "kind": "Endpoints",
        "metadata": {"name": "kubernetes", "namespace": "default", "labels": labels},
        "subsets": [{"addresses": [{"ip": address}], "ports": ports}],
    }


def _endpoint_slice(address: str, port: int) -> Doc:
    return {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {
            "name": "kubernetes",
            "namespace": "default",
            "labels": {"kubernetes.io/service-name": "kubernetes"},
        },
        "addressType": "IPv6" if ":" in address else "IPv4",
        "endpoints": [{"addresses": [address], "conditions": {"ready": True}}],
        "ports": [{"name": "https", "port": port, "protocol": "TCP"}],
    }
