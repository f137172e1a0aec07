"""IP addresses and networks, parsed as leniently as Go's older parser does: leading zeros are ignored.

upstream: k8s.io/utils/net#ParseIPSloppy, ParseCIDRSloppy
"""

import ipaddress
import re

from kcm_cli.machinery.integers import parse_int64
from kcm_cli.machinery.remembered import remembered

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network

_BYTE = r"(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])"
is_canonical_ipv4 = re.compile(rf"{_BYTE}(?:\.{_BYTE}){{3}}").fullmatch
_LEADING_ZEROS = re.compile("(^|[.:])0+(?=[0-9A-Fa-f])")


@remembered(1024)
def parse_ip(value: str) -> Address | None:
    """The address; None if it is invalid. Leading zeros are ignored."""
    if "%" in value or "/" in value:
        return None
    try:
        return ipaddress.ip_address(_LEADING_ZEROS.sub(r"\1", value))
    except ValueError:
        return None


def plain(address: Address | None) -> Address | None:
    """The IPv4 address of an IPv4-mapped IPv6 address, as Go treats it; any other address itself."""
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        return address.ipv4_mapped
    return address


def is_ipv6(value: str) -> bool:
    """Whether a text is an IPv6 address, and none that is IPv4-mapped."""
    return isinstance(plain(parse_ip(value)), ipaddress.IPv6Address)


def can_allocate(network: Network, address: Address) -> bool:
    """Whether a Service can have an address of this range: not the first, nor for IPv4 the last one."""
    if address not in network or address == network.network_address:
        return False
    return network.version == 6 or address != network.broadcast_address


def host_and_port(host: str, port: int | str) -> str:
    """Both in one text, with an IPv6 address in brackets. upstream: net#JoinHostPort"""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def parse_cidr(value: str) -> tuple[Address, Network] | None:
    """The address and its network; None if it is invalid. Parsed as leniently as ``parse_ip``."""
    text, slash, length = value.partition("/")
    address = parse_ip(text)
    if address is None or not slash or not (length.isascii() and length.isdigit()):
        return None
    bits = parse_int64(length)
    if bits is None or bits > address.max_prefixlen:
        return None
    return address, ipaddress.ip_network((address, bits), strict=False)
