"""Everything else that is warned of.

Source: pkg/registry/*/*/strategy.go, pkg/apis/admissionregistration/validation/validation.go.
"""

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_private_key

from kcm_cli.machinery.formats import decoded_base64
from kcm_cli.machinery.quantity import from_json
from kcm_cli.machinery.quoting import quote
from kcm_cli.sandbox.apiserver.types import Tree
from kcm_cli.sandbox.apiserver.validation.addresses import cidr_warnings, ip_warnings

_INGRESS_CLASS = "kubernetes.io/ingress.class"
_MANAGED_BY = "endpointslice.kubernetes.io/managed-by"
_CONTROLLERS = ("endpointslice-controller.k8s.io", "endpointslicemirroring-controller.k8s.io")
_STATIC = ".static.k8s.io"


def of_ingress(new: Tree, old: Tree | None) -> list[str]:
    """A new Ingress."""
    used = _INGRESS_CLASS in (new["metadata"].get("annotations") or ())
    if old is not None or not used or new["spec"].get("ingressClassName") is not None:
        return []
    return [f"annotation {quote(_INGRESS_CLASS)} is deprecated, please use 'spec.ingressClassName' instead"]


def of_ingress_status(new: Tree, old: Tree | None) -> list[str]:
    """Addresses in an Ingress's status."""
    points = ((new.get("status") or {}).get("loadBalancer") or {}).get("ingress") or ()
    found: list[str] = []
    for index, point in enumerate(points):
        if address := point.get("ip"):
            found += ip_warnings(address, f"status.loadBalancer.ingress[{index}]")
    return found


def of_network_policy(new: Tree, old: Tree | None) -> list[str]:
    """Blocks of addresses in a NetworkPolicy."""
    found: list[str] = []
    for field, peers in (("ingress", "from"), ("egress", "to")):
        for index, rule in enumerate((new.get("spec") or {}).get(field) or ()):
            for number, peer in enumerate(rule.get(peers) or ()):
                block = peer.get("ipBlock") or {}
                path = f"spec.{field}[{index}].{peers}[{number}].ipBlock"
                found += cidr_warnings(block.get("cidr", ""), f"{path}.cidr")
                for place, item in enumerate(block.get("except") or ()):
                    found += cidr_warnings(item, f"{path}.except[{place}]")
    return found


def of_slice(new: Tree, old: Tree | None) -> list[str]:
    """An EndpointSlice that is not one of a controller's."""
    found: list[str] = []
    if old is None and new.get("addressType") == "FQDN":
        found.append("spec.addressType: FQDN endpoints are deprecated")
    if (new["metadata"].get("labels") or {}).get(_MANAGED_BY) in _CONTROLLERS:
        return found
    for index, endpoint in enumerate(new.get("endpoints") or ()):
        for number, address in enumerate(endpoint.get("addresses") or ()):
            found += ip_warnings(address, f"endpoints[{index}].addresses[{number}]")
    return found


def of_endpoints(new: Tree, old: Tree | None) -> list[str]:
    """Endpoints that are not the controller's."""
    if (new["metadata"].get("labels") or {}).get("endpoints.kubernetes.io/managed-by") == "endpoint-controller":
        return []
    found: list[str] = []
    for index, subset in enumerate(new.get("subsets") or ()):
        for field in ("addresses", "notReadyAddresses"):
            for number, address in enumerate(subset.get(field) or ()):
                found += ip_warnings(address.get("ip", ""), f"subsets[{index}].{field}[{number}].ip")
    return found


def of_quota(new: Tree, old: Tree | None) -> list[str]:
    """A new ResourceQuota that allows more requests than limits."""
    hard = (new.get("spec") or {}).get("hard") or {}
    found: list[str] = []
    for name in ("cpu", "memory", "storage", "ephemeral-storage") if old is None else ():
        request, limit = f"requests.{name}", f"limits.{name}"
        if request not in hard and name in ("cpu", "memory"):
            request = name
        if request in hard and limit in hard and from_json(hard[request]) > from_json(hard[limit]):
            found.append(f"ResourceQuota {request} ({hard[request]}) should be less than {limit} ({hard[limit]})")
    return found


def of_admission(new: Tree, old: Tree | None) -> list[str]:
    """A name that is kept for configuration from files."""
    if not new["metadata"].get("name", "").endswith(_STATIC):
        return []
    rest = "are reserved for static manifest-based configurations and cannot be managed via the API"
    return [f"metadata.name: names ending with {quote(_STATIC)} {rest}"]


def of_secret(new: Tree, old: Tree | None) -> list[str]:
    """A certificate and a key that do not belong together."""
    if new.get("type") != "kubernetes.io/tls":
        return []
    data = new.get("data") or {}
    problem = _pair_problem(decoded_base64(data.get("tls.crt", "")), decoded_base64(data.get("tls.key", "")))
    return [problem] if problem else []


def _pair_problem(certificate: bytes, key: bytes) -> str:
    if b"-----BEGIN " not in certificate:
        return "tls: failed to find any PEM data in certificate input"
    if b"-----BEGIN " not in key:
        return "tls: failed to find any PEM data in key input"
    try:
        public = x509.load_pem_x509_certificate(certificate).public_key()
    except (ValueError, UnsupportedAlgorithm):
        return "x509: malformed certificate"
    try:
        own = load_pem_private_key(key, None).public_key()
    except (ValueError, TypeError, UnsupportedAlgorithm):
        return "tls: failed to parse private key"
    if type(own) is not type(public):
        return "tls: private key type does not match public key type"
    form = (Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return "" if own.public_bytes(*form) == public.public_bytes(*form) else "tls: private key does not match public key"
