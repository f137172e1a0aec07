"""URLs, IP addresses and CIDRs in expressions.

upstream: staging/src/k8s.io/apiserver/pkg/cel/library/{urls,ip,cidr}.go
"""

import ipaddress
import re
from collections.abc import Mapping
from typing import ClassVar

import msgspec

from kcm_cli.machinery.addresses import Address, Network
from kcm_cli.machinery.cel.overloads import Function, overloaded
from kcm_cli.machinery.cel.values import CelError, Value
from kcm_cli.machinery.quoting import quote
from kcm_cli.machinery.urls import Url, UrlError, is_request, parse, parse_request

Methods = Mapping[str, Function]


class UrlValue(msgspec.Struct, frozen=True):
    """An absolute URL, or an absolute path."""

    parts: Url
    cel_type: ClassVar[str] = "kubernetes.URL"
    cel_methods: ClassVar[Methods]


_U = UrlValue
UrlValue.cel_methods = {
    "getScheme": overloaded("getScheme", ((_U,), lambda url: url.parts.scheme)),
    "getHost": overloaded("getHost", ((_U,), lambda url: url.parts.host)),
    "getHostname": overloaded("getHostname", ((_U,), lambda url: url.parts.hostname)),
    "getPort": overloaded("getPort", ((_U,), lambda url: url.parts.port)),
    "getEscapedPath": overloaded("getEscapedPath", ((_U,), lambda url: url.parts.escaped_path)),
    "getQuery": overloaded("getQuery", ((_U,), lambda url: url.parts.values)),
}


def _url(text: str) -> UrlValue:
    try:
        parse_request(text)
        return UrlValue(parse(text))
    except UrlError as error:
        raise CelError(f"URL parse error during conversion from string: {error}") from None


class IpValue(msgspec.Struct, frozen=True):
    """An address."""

    address: Address
    cel_type: ClassVar[str] = "net.IP"
    cel_methods: ClassVar[Methods]

    def __str__(self) -> str:
        return str(self.address)

    def global_unicast(self) -> bool:
        address = self.address
        special = address.is_unspecified or address.is_loopback or address.is_multicast
        broadcast = isinstance(address, ipaddress.IPv4Address) and str(address) == "255.255.255.255"
        return not (special or broadcast or address.is_link_local)

    def link_local_multicast(self) -> bool:
        networks = {4: "224.0.0.0/24", 6: "ff02::/16"}
        return self.address in ipaddress.ip_network(networks[self.address.version])


_I = IpValue
IpValue.cel_methods = {
    "family": overloaded("family", ((_I,), lambda ip: ip.address.version)),
    "isUnspecified": overloaded("isUnspecified", ((_I,), lambda ip: ip.address.is_unspecified)),
    "isLoopback": overloaded("isLoopback", ((_I,), lambda ip: ip.address.is_loopback)),
    "isLinkLocalMulticast": overloaded("isLinkLocalMulticast", ((_I,), _I.link_local_multicast)),
    "isLinkLocalUnicast": overloaded("isLinkLocalUnicast", ((_I,), lambda ip: ip.address.is_link_local)),
    "isGlobalUnicast": overloaded("isGlobalUnicast", ((_I,), _I.global_unicast)),
}


def _ip(text: str) -> IpValue:
    try:
        if "%" in text:
            raise CelError(f"IP address {quote(text)} with zone value is not allowed")
        address = ipaddress.ip_address(text)
    except ValueError:
        raise CelError(f"IP Address {quote(text)} parse error during conversion from string: ") from None
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        raise CelError(f"IPv4-mapped IPv6 address {quote(text)} is not allowed")
    return IpValue(address)


def _is_ip(text: str) -> bool:
    try:
        _ip(text)
    except CelError:
        return False
    return True


class CidrValue(msgspec.Struct, frozen=True):
    """An address with a prefix length."""

    address: Address
    prefix: int
    cel_type: ClassVar[str] = "net.CIDR"
    cel_methods: ClassVar[Methods]

    @property
    def network(self) -> Network:
        return ipaddress.ip_network(f"{self.address}/{self.prefix}", strict=False)

    def __str__(self) -> str:
        return f"{self.address}/{self.prefix}"

    def holds_ip(self, other: "IpValue | str") -> bool:
        if isinstance(other, str):
            if not _is_ip(other):
                raise CelError("no such overload")  # as upstream, which does not tell why
            other = _ip(other)
        return other.address in self.network

    def holds_cidr(self, other: "CidrValue | str") -> bool:
        cidr = _cidr(other) if isinstance(other, str) else other
        same_family = cidr.address.version == self.address.version
        return same_family and cidr.prefix >= self.prefix and cidr.address in self.network

    def masked(self) -> "CidrValue":
        return CidrValue(self.network.network_address, self.prefix)


_C = CidrValue
CidrValue.cel_methods = {
    "containsIP": overloaded("containsIP", ((_C, IpValue), _C.holds_ip), ((_C, str), _C.holds_ip)),
    "containsCIDR": overloaded("containsCIDR", ((_C, _C), _C.holds_cidr), ((_C, str), _C.holds_cidr)),
    "ip": overloaded("ip", ((_C,), lambda cidr: IpValue(cidr.address))),
    "masked": overloaded("masked", ((_C,), _C.masked)),
    "prefixLength": overloaded("prefixLength", ((_C,), lambda cidr: cidr.prefix)),
}


def _cidr(text: str) -> CidrValue:
    said = "network address parse error during conversion from string: "
    try:
        address, bits = _prefix(text)
    except ValueError as error:
        why = f"netip.ParsePrefix({quote(text)}): {error}"
        raise CelError(f"{said}{said}{why}") from None  # upstream says it twice
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        raise CelError(f"{said}IPv4-mapped IPv6 address {quote(text)} is not allowed")
    return CidrValue(address, bits)


def _prefix(text: str) -> tuple[Address, int]:
    """An address and its prefix length, as Go's netip.ParsePrefix reads them. Raises ValueError with its words."""
    host, slash, bits = text.rpartition("/")
    if not slash:
        raise ValueError("no '/'")
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        raise ValueError(f"ParseAddr({quote(host)}): unable to parse IP") from None
    if "%" in host:
        raise ValueError("IPv6 zones cannot be present in a prefix")
    if _BITS.fullmatch(bits) is None:
        raise ValueError(f"bad bits after slash: {quote(bits)}")
    if int(bits) > address.max_prefixlen:
        raise ValueError("prefix length out of range")
    return address, int(bits)


_BITS = re.compile(r"0|[1-9][0-9]{0,8}")


def _is_cidr(text: str) -> bool:
    try:
        _cidr(text)
    except CelError:
        return False
    return True


def _canonical(text: str) -> Value:
    return str(_ip(text).address) == text


FUNCTIONS: Mapping[str, Function] = {
    "url": overloaded("url", ((str,), _url)),
    "isURL": overloaded("isURL", ((str,), is_request)),
    "ip": overloaded("ip", ((str,), _ip)),
    "isIP": overloaded("isIP", ((str,), _is_ip)),
    "ip.isCanonical": overloaded("ip.isCanonical", ((str,), _canonical)),
    "cidr": overloaded("cidr", ((str,), _cidr)),
    "isCIDR": overloaded("isCIDR", ((str,), _is_cidr)),
}
