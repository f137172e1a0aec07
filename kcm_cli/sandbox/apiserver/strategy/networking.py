"""Strategies of the kinds of networking.k8s.io and discovery.k8s.io.

Source: pkg/registry/networking/*/strategy.go, pkg/registry/discovery/endpointslice/strategy.go.
"""

from kcm_cli.sandbox.apiserver.strategy import parts
from kcm_cli.sandbox.apiserver.strategy.base import Strategy
from kcm_cli.sandbox.apiserver.strategy.warnings import others
from kcm_cli.sandbox.apiserver.types import Tree
from kcm_cli.sandbox.apiserver.validation import endpoints, ingress, network_policy, service_ranges

_HOST_NAME = "kubernetes.io/hostname"


def _slice_update(new: Tree, old: Tree) -> None:
    fields = ("addressType", "endpoints", "ports")
    changed = any((new.get(field) or None) != (old.get(field) or None) for field in fields)
    labels = new["metadata"].get("labels") or {}
    if changed or labels != (old["metadata"].get("labels") or {}):
        parts.bump_generation(new, old)
    if (new.get("endpoints") or []) != (old.get("endpoints") or []):
        _drop_topology(new, old)


def _new_slice(doc: Tree) -> None:
    parts.first_generation(doc)
    _drop_topology(doc, None)


def _drop_topology(new: Tree, old: Tree | None) -> None:
    """Version 1 does not write the field; the name of a node that it held before becomes ``nodeName``."""
    before = [item.get("deprecatedTopology") or {} for item in (old or {}).get("endpoints") or ()]
    known = {topology.get(_HOST_NAME) for topology in before}
    for endpoint in new.get("endpoints") or ():
        host = (endpoint.pop("deprecatedTopology", None) or {}).get(_HOST_NAME)
        if host is not None and host in known and endpoint.get("nodeName") is None:
            endpoint["nodeName"] = host


INGRESS = Strategy(
    on_create=parts.new_with_status({"loadBalancer": {}}, generation=True),
    on_update=parts.spec_update,
    on_status=parts.status_update,
    check_create=ingress.validate_ingress,
    check_update=ingress.validate_ingress_update,
    check_status=ingress.validate_ingress_status,
    warn=others.of_ingress,
    warn_status=others.of_ingress_status,
)
INGRESS_CLASS = Strategy(
    namespaced=False,
    on_create=parts.first_generation,
    on_update=parts.bump_if_spec_changed,
    check_create=ingress.validate_ingress_class,
    check_update=ingress.validate_ingress_class_update,
)
NETWORK_POLICY = Strategy(
    on_create=parts.first_generation,
    on_update=parts.bump_if_spec_changed,
    check_create=network_policy.validate_policy,
    check_update=network_policy.validate_policy_update,
    warn=others.of_network_policy,
)
IP_ADDRESS = Strategy(
    namespaced=False,
    check_create=service_ranges.validate_address,
    check_update=service_ranges.validate_address_update,
)
SERVICE_CIDR = Strategy(
    namespaced=False,
    on_create=parts.new_with_status({}, generation=False),
    on_update=parts.keep_status,
    on_status=parts.strict_status_update,
    check_create=service_ranges.validate_range,
    check_update=service_ranges.validate_range_update,
    check_status=service_ranges.validate_range_status,
)
ENDPOINT_SLICE = Strategy(
    on_create=_new_slice,
    on_update=_slice_update,
    check_create=endpoints.validate_slice,
    check_update=endpoints.validate_slice_update,
    warn=others.of_slice,
)
