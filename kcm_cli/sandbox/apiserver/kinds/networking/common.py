"""What the kinds of networking share."""

from kcm_cli.sandbox.apiserver.trees import at, each_at
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


_STATUS = "status.loadBalancer"
NOT_IP = "must be a DNS name, not an IP address"


def points(doc: Tree) -> list[Tree]:
    """The ingress points of a load balancer, in a status."""
    found: list[Tree] = at(doc, f"{_STATUS}.ingress", [])
    return found


def balancer_addresses(doc: Tree) -> str:
    return ",".join(sorted({one.get("ip") or one.get("hostname") or "" for one in points(doc)} - {""}))


def balancer_warnings(new: Tree, old: Tree | None) -> list[str]:
    """Warnings about non-canonical addresses of a load balancer."""
    return each_at(lambda point, path: addresses.ip_warnings(point.get("ip", ""), path), new, f"{_STATUS}.ingress[]")
