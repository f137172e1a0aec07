"""How a pod is named and how it finds others: host names, DNS, the node's network.

Source: pkg/apis/core/validation/validation.go#validatePodDNSConfig, #validatePodHostName, #ValidateHostAliases.
"""

from kcm_cli.machinery import names
from kcm_cli.sandbox.apiserver.types import FieldError, Tree
from kcm_cli.sandbox.apiserver.validation import addresses, errors

DNS_POLICIES = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
_SERVERS_MAX, _SEARCHES_MAX, _SEARCH_CHARS_MAX = 3, 32, 2048
_HOSTNAME_MAX = 64


def validate_dns(spec: Tree, path: str) -> list[FieldError]:
    """Name servers and search domains."""
    config, none = spec.get("dnsConfig"), spec.get("dnsPolicy") == "None"
    if config is None:
        if not none:
            return []
        return [errors.required(path, "must provide `dnsConfig` when `dnsPolicy` is None")]
    servers, searches = config.get("nameservers") or [], config.get("searches") or []
    if none and not servers:
        detail = "must provide at least one DNS nameserver when `dnsPolicy` is None"
        return [errors.required(f"{path}.nameservers", detail)]
    found: list[FieldError] = []
    if len(servers) > _SERVERS_MAX:
        detail = f"must not have more than {_SERVERS_MAX} nameservers"
        found.append(errors.invalid(f"{path}.nameservers", servers, detail))
    for index, server in enumerate(servers):
        found += addresses.legacy_ip(server, f"{path}.nameservers[{index}]")
    found += _searches(searches, f"{path}.searches")
    for index, option in enumerate(config.get("options") or ()):
        if not option.get("name"):
            found.append(errors.required(f"{path}.options[{index}]", "must not be empty"))
    return found


def _searches(searches: list[str], path: str) -> list[FieldError]:
    found: list[FieldError] = []
    if len(searches) > _SEARCHES_MAX:
        detail = f"must not have more than {_SEARCHES_MAX} search paths"
        found.append(errors.invalid(path, searches, detail))
    if len(" ".join(searches)) > _SEARCH_CHARS_MAX:
        detail = f"must not have more than {_SEARCH_CHARS_MAX} characters (including spaces) in the search list"
        found.append(errors.invalid(path, searches, detail))
    for index, search in enumerate(searches):
        if search != ".":
            domain = search.removesuffix(".")
            found += errors.invalid_each(f"{path}[{index}]", domain, names.dns1123_subdomain_with_underscore(domain))
    return found


def validate_hostname_override(spec: Tree, path: str) -> list[FieldError]:
    """A host name that replaces the one made from the pod's name."""
    name, place = spec["hostnameOverride"], f"{path}.hostnameOverride"
    found: list[FieldError] = []
    if spec.get("setHostnameAsFQDN"):
        found.append(errors.forbidden(place, "may not be specified when setHostnameAsFQDN is true"))
    if spec.get("hostNetwork"):
        found.append(errors.forbidden(place, "may not be specified when hostNetwork is true"))
    if len(name) > _HOSTNAME_MAX:
        found.append(errors.too_long(place, _HOSTNAME_MAX))
    return found + errors.invalid_each(place, name, names.dns1123_subdomain(name))


def validate_aliases(aliases: list[Tree], path: str) -> list[FieldError]:
    """Lines of the pod's hosts file."""
    found: list[FieldError] = []
    for index, alias in enumerate(aliases):
        found += addresses.legacy_ip(alias.get("ip", ""), f"{path}[{index}].ip")
        for number, name in enumerate(alias.get("hostnames") or ()):
            place = f"{path}[{index}].hostnames[{number}]"
            found += errors.invalid_each(place, name, names.dns1123_subdomain(name))
    return found


def validate_host_ports(spec: Tree, path: str, *, is_pod: bool) -> list[FieldError]:
    """On the node's network a container's port is the node's port."""
    found: list[FieldError] = []
    for index, container in enumerate(spec.get("containers") or ()):
        for number, port in enumerate(container.get("ports") or ()):
            host_port = port.get("hostPort", 0)
            if host_port != port.get("containerPort", 0) and (is_pod or host_port):
                place = f"{path}.containers[{index}].ports[{number}].hostPort"
                detail = "must match `containerPort` when `hostNetwork` is true"
                found.append(errors.invalid(place, host_port, detail))
    return found
