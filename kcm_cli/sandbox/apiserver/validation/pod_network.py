"""How a pod is named and how it finds others: host names, DNS, the node's network.

Source: pkg/apis/core/validation/validation.go#validatePodDNSConfig, #validatePodHostName, #ValidateHostAliases.
"""

from kcm_cli.machinery import names
from kcm_cli.sandbox.apiserver.types import Errors, Tree
from kcm_cli.sandbox.apiserver.validation import addresses, errors

DNS_POLICIES = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
_SERVERS_MAX, _SEARCHES_MAX, _SEARCH_CHARS_MAX = 3, 32, 2048
_HOSTNAME_MAX = 64


def validate_dns(spec: Tree, path: str) -> Errors:
    """Name servers and search domains."""
    config, none = spec.get("dnsConfig"), spec.get("dnsPolicy") == "None"
    if config is None:
        if not none:
            return
        yield errors.required(path, "must provide `dnsConfig` when `dnsPolicy` is None")
        return
    servers, searches = config.get("nameservers") or [], config.get("searches") or []
    if none and not servers:
        detail = "must provide at least one DNS nameserver when `dnsPolicy` is None"
        yield errors.required(f"{path}.nameservers", detail)
        return
    if len(servers) > _SERVERS_MAX:
        yield errors.invalid(f"{path}.nameservers", servers, f"must not have more than {_SERVERS_MAX} nameservers")
    for index, server in enumerate(servers):
        yield from addresses.legacy_ip(server, f"{path}.nameservers[{index}]")
    yield from _searches(searches, f"{path}.searches")
    for index, option in enumerate(config.get("options") or ()):
        if not option.get("name"):
            yield errors.required(f"{path}.options[{index}]", "must not be empty")


def _searches(searches: list[str], path: str) -> Errors:
    if len(searches) > _SEARCHES_MAX:
        yield errors.invalid(path, searches, f"must not have more than {_SEARCHES_MAX} search paths")
    if len(" ".join(searches)) > _SEARCH_CHARS_MAX:
        detail = f"must not have more than {_SEARCH_CHARS_MAX} characters (including spaces) in the search list"
        yield errors.invalid(path, searches, detail)
    for index, search in enumerate(searches):
        if search != ".":
            domain = search.removesuffix(".")
            yield from errors.invalid_each(f"{path}[{index}]", domain, names.dns1123_subdomain_with_underscore(domain))


def validate_hostname_override(spec: Tree, path: str) -> Errors:
    """A host name that replaces the one made from the pod's name."""
    name, place = spec["hostnameOverride"], f"{path}.hostnameOverride"
    if spec.get("setHostnameAsFQDN"):
        yield errors.forbidden(place, "may not be specified when setHostnameAsFQDN is true")
    if spec.get("hostNetwork"):
        yield errors.forbidden(place, "may not be specified when hostNetwork is true")
    if len(name) > _HOSTNAME_MAX:
        yield errors.too_long(place, _HOSTNAME_MAX)
    yield from errors.invalid_each(place, name, names.dns1123_subdomain(name))


def validate_aliases(aliases: list[Tree], path: str) -> Errors:
    """Lines of the pod's hosts file."""
    for index, alias in enumerate(aliases):
        yield from addresses.legacy_ip(alias.get("ip", ""), f"{path}[{index}].ip")
        for number, name in enumerate(alias.get("hostnames") or ()):
            place = f"{path}[{index}].hostnames[{number}]"
            yield from errors.invalid_each(place, name, names.dns1123_subdomain(name))


def validate_host_ports(spec: Tree, path: str, *, is_pod: bool) -> Errors:
    """On the node's network a container's port is the node's port."""
    for index, container in enumerate(spec.get("containers") or ()):
        for number, port in enumerate(container.get("ports") or ()):
            host_port = port.get("hostPort", 0)
            if host_port != port.get("containerPort", 0) and (is_pod or host_port):
                place = f"{path}.containers[{index}].ports[{number}].hostPort"
                yield errors.invalid(place, host_port, "must match `containerPort` when `hostNetwork` is true")
