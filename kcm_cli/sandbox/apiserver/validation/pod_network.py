"""The network of a pod: host names, DNS, host ports.

upstream: pkg/apis/core/validation/validation.go#validatePodDNSConfig, #validatePodHostName, #ValidateHostAliases
"""

from kcm_cli.machinery import names
from kcm_cli.sandbox.apiserver.trees import places
from kcm_cli.sandbox.apiserver.types import Errors, Tree
from kcm_cli.sandbox.apiserver.validation import addresses, errors, rules

_SERVERS_MAX, _SEARCHES_MAX, _SEARCH_CHARS_MAX = 3, 32, 2048
_HOSTNAME_MAX = 64


def validate_dns(spec: Tree, path: str) -> Errors:
    """Check the DNS policy and configuration."""
    config, none = spec.get("dnsConfig"), spec.get("dnsPolicy") == "None"
    place = f"{path}.dnsConfig"
    if config is None:
        if none:
            yield errors.required(place, "must provide `dnsConfig` when `dnsPolicy` is None")
    elif none and not config.get("nameservers"):
        detail = "must provide at least one DNS nameserver when `dnsPolicy` is None"
        yield errors.required(f"{place}.nameservers", detail)
    else:
        yield from _CONFIG(config, place)


_few_servers = rules.must(
    lambda servers: len(servers) <= _SERVERS_MAX, f"must not have more than {_SERVERS_MAX} nameservers"
)


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


def _option(option: Tree, path: str) -> Errors:
    return () if option.get("name") else [errors.required(path, "must not be empty")]


_CONFIG = rules.fields(
    rules.optional("nameservers", _few_servers),
    rules.each("nameservers", addresses.legacy_ip),
    rules.optional("searches", _searches),
    rules.each("options", _option),
)
validate_aliases = rules.items(
    rules.fields(rules.always("ip", addresses.legacy_ip), rules.each("hostnames", rules.SUBDOMAIN))
)
"""The host aliases of a pod."""


def validate_hostname_override(spec: Tree, path: str) -> Errors:
    """Check the host name that replaces that of the pod."""
    name, place = spec["hostnameOverride"], f"{path}.hostnameOverride"
    if spec.get("setHostnameAsFQDN"):
        yield errors.forbidden(place, "may not be specified when setHostnameAsFQDN is true")
    if spec.get("hostNetwork"):
        yield errors.forbidden(place, "may not be specified when hostNetwork is true")
    if len(name) > _HOSTNAME_MAX:
        yield errors.too_long(place, _HOSTNAME_MAX)
    yield from rules.SUBDOMAIN(name, place)


def validate_host_ports(spec: Tree, path: str, *, is_pod: bool) -> Errors:
    """Check that host ports equal container ports in the host network."""
    for port, place in places(spec, "containers[].ports[]", path):
        host_port = port.get("hostPort", 0)
        if host_port != port.get("containerPort", 0) and (is_pod or host_port):
            detail = "must match `containerPort` when `hostNetwork` is true"
            yield errors.invalid(f"{place}.hostPort", host_port, detail)
