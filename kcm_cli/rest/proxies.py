"""Proxies: which URLs can be used, and which one the environment asks for, by Go's rules.

Loopback is never proxied; NO_PROXY takes hosts, domains, addresses and CIDRs, with or without a port.

upstream: golang.org/x/net/http/httpproxy, staging/src/k8s.io/client-go/tools/clientcmd/helpers.go
"""

import re
from collections.abc import Mapping
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from urllib.parse import SplitResult, urlsplit

from kcm_cli.rest.errors import AccessError

SCHEMES = ("http", "https", "socks5")
_PASSWORD = re.compile("(//[^/:@]*:).*", re.DOTALL)


def environment_proxy(server: str, environ: Mapping[str, str]) -> str:
    """The URL of the proxy for a server, or an empty text. Raises AccessError for one that cannot be used."""
    url = urlsplit(server if "://" in server else f"http://{server}")
    name = "HTTPS_PROXY" if url.scheme == "https" else "HTTP_PROXY"
    name = name if environ.get(name) else name.lower()
    proxy = environ.get(name, "")
    if not proxy or _excluded(url, environ.get("NO_PROXY") or environ.get("no_proxy", "")):
        return ""
    return checked(name, proxy if "://" in proxy else f"http://{proxy}", (*SCHEMES, "socks5h"))


def checked(field: str, proxy: str, schemes: tuple[str, ...] = SCHEMES) -> str:
    """The proxy's URL. Raises AccessError, which names the field, for a scheme that is not served, and for no URL."""
    try:
        url = urlsplit(proxy)
        usable = bool(url.hostname) and (url.port or 1) > 0
    except ValueError:
        raise AccessError(f'{field}: "{shown(proxy)}" is no URL') from None
    if url.scheme not in schemes:
        raise AccessError(f'{field}: unsupported scheme "{url.scheme}", must be http, https, or socks5')
    if not usable:
        raise AccessError(f'{field}: "{shown(proxy)}" names no host')
    return proxy


def shown(proxy: str) -> str:
    """A proxy's URL without its password, fit for a log."""
    user, at, host = proxy.rpartition("@")
    return _PASSWORD.sub(r"\1***", user) + at + host if at else proxy  # in one that is no URL, too


def _excluded(url: SplitResult, no_proxy: str) -> bool:
    host = (url.hostname or "").lower()
    port = str(url.port or (443 if url.scheme == "https" else 80))
    address = _address(host)
    if host == "localhost" or (address is not None and address.is_loopback):
        return True
    rules = (rule.strip().lower() for rule in no_proxy.split(","))
    return any(_matches(rule, host, port, address) for rule in rules if rule)


def _matches(rule: str, host: str, port: str, address: IPv4Address | IPv6Address | None) -> bool:
    if rule == "*":
        return True
    if "/" in rule:
        return address is not None and _within(rule, address)
    rule_host, rule_port = _split(rule)
    if not rule_host or (rule_port and rule_port != port):
        return False
    if address is not None:
        return _address(rule_host) == address
    if rule_host.startswith("*."):
        rule_host = rule_host[1:]
    if rule_host.startswith("."):
        return host.endswith(rule_host)
    return host == rule_host or host.endswith(f".{rule_host}")


def _split(rule: str) -> tuple[str, str]:
    """The host and port of a rule. An IPv6 address that has a port is in brackets."""
    if rule.startswith("["):
        host, _, rest = rule[1:].partition("]")
        return host, rest.removeprefix(":")
    host, colon, port = rule.rpartition(":")
    return (host, port) if colon and ":" not in host else (rule, "")


def _within(rule: str, address: IPv4Address | IPv6Address) -> bool:
    try:
        return address in ip_network(rule, strict=False)
    except ValueError:
        return False


def _address(host: str) -> IPv4Address | IPv6Address | None:
    try:
        return ip_address(host)
    except ValueError:
        return None
