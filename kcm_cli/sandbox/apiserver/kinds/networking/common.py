"""What the kinds of networking share."""

from kcm_cli.sandbox.apiserver.types import Errors, Tree
from kcm_cli.sandbox.apiserver.validation import addresses, errors, rules

validate_reference = rules.fields(
    rules.optional("apiGroup", rules.SUBDOMAIN),
    rules.required("kind", rules.SEGMENT),
    rules.required("name", rules.SEGMENT),
)
"""A reference to an object of any kind in the same namespace."""


def host_name(host: str, path: str) -> Errors:
    """Check the DNS name of a load balancer."""
    yield from rules.SUBDOMAIN(host, path)
    if addresses.parse_ip(host) is not None:
        yield errors.invalid(path, host, NOT_IP)


NOT_IP = "must be a DNS name, not an IP address"


def balancer_addresses(doc: Tree) -> str:
    status = (doc.get("status") or {}).get("loadBalancer") or {}
    return ",".join(sorted({one.get("ip") or one.get("hostname") or "" for one in status.get("ingress") or ()} - {""}))
