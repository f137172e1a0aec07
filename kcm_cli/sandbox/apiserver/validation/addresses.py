"""IP addresses and CIDR blocks.

Old fields accept any form of an address, but neither leading zeros nor IPv4-mapped IPv6, unless the old object has the
value. New fields accept the canonical form only.

upstream: apimachinery pkg/util/validation/ip.go; pkg/apis/core/validation/validation.go#ValidateEndpointIP
"""

import ipaddress
from collections.abc import Sequence

from kcm_cli.machinery.addresses import Address as Address
from kcm_cli.machinery.addresses import Network as Network
from kcm_cli.machinery.addresses import is_canonical_ipv4, plain
from kcm_cli.machinery.addresses import is_ipv6 as is_ipv6
from kcm_cli.machinery.addresses import parse_cidr as parse_cidr
from kcm_cli.machinery.addresses import parse_ip as parse_ip
from kcm_cli.machinery.quoting import quote
from kcm_cli.sandbox.apiserver.types import Errors, FieldError
from kcm_cli.sandbox.apiserver.validation import errors

_NOT_IP = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
_NOT_CIDR = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"


def legacy_ip(value: str, path: str, known: Sequence[str] = ()) -> list[FieldError]:
    """Check an address in an old field. ``known``: values that the object already has."""
    if value in known or is_canonical_ipv4(value):
        return []
    address = parse_ip(value)
    if address is None:
        return [errors.invalid(path, value, _NOT_IP)]
    found: list[FieldError] = []
    if ":" not in value and str(address) != value:
        found.append(errors.invalid(path, value, "must not have leading 0s"))
    if plain(address) is not address:
        found.append(errors.invalid(path, value, "must not be an IPv4-mapped IPv6 address"))
    return found


def strict_ip(value: str, path: str) -> list[FieldError]:
    """Check that an address has its canonical form."""
    found = [*legacy_ip(value, path)]
    if found:
        return found
    canonical = str(parse_ip(value))
    if value != canonical:
        return [errors.invalid(path, value, f"must be in canonical form ({quote(canonical)})")]
    return []


def legacy_cidr(value: str, path: str, known: Sequence[str] = ()) -> list[FieldError]:
    """Check a CIDR block in an old field."""
    if value in known:
        return []
    parsed = parse_cidr(value)
    if parsed is None:
        return [errors.invalid(path, value, _NOT_CIDR)]
    address, network = parsed
    text, _, length = value.partition("/")
    if (":" not in text and str(address) != text) or length != str(int(length)):
        return [errors.invalid(path, value, "must not have leading 0s in IP or prefix length")]
    if plain(address) is not address:
        return [errors.invalid(path, value, "must not have an IPv4-mapped IPv6 address")]
    if address != network.network_address:
        return [errors.invalid(path, value, "must not have bits set beyond the prefix length")]
    return []


def endpoint_ip(value: str, path: str) -> Errors:
    """Check that traffic can be sent to an address."""
    address = plain(parse_ip(value))
    if address is None:
        yield errors.invalid(path, value, "must be a valid IP address")
        return
    if address.is_unspecified:
        yield errors.invalid(path, value, f"may not be unspecified ({value})")
    if address.is_loopback:
        yield errors.invalid(path, value, "may not be in the loopback range (127.0.0.0/8, ::1/128)")
    if address.is_link_local:
        yield errors.invalid(path, value, "may not be in the link-local range (169.254.0.0/16, fe80::/10)")
    if _link_local_multicast(address):
        yield errors.invalid(path, value, "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)")


def _link_local_multicast(address: Address) -> bool:
    if isinstance(address, ipaddress.IPv4Address):
        return address.packed[:3] == b"\xe0\x00\x00"
    return address.packed[0] == 0xFF and address.packed[1] & 0x0F == 0x02


def ip_warnings(value: str, path: str) -> list[str]:
    """Warnings about a non-canonical address in an old field."""
    address = None if is_canonical_ipv4(value) else parse_ip(value)
    if address is None:
        return []
    if plain(address) is not address or (":" not in value and str(address) != value):
        return [f"{path}: non-standard IP address {quote(value)} is invalid: use {quote(str(plain(address)))}"]
    if str(address) != value:
        canonical = quote(str(address))
        return [f"{path}: IPv6 address {quote(value)} should be in RFC 5952 canonical format ({canonical})"]
    return []


def cidr_warnings(value: str, path: str) -> list[str]:
    """The same for CIDR blocks."""
    parsed = parse_cidr(value)
    if parsed is None:
        return []
    address, network = parsed
    found: list[str] = []
    if address != network.network_address:
        single = quote(f"{address}/{address.max_prefixlen}")
        hint = f"should be {quote(str(network))} or {single}?"
        found.append(f"{path}: CIDR value {quote(value)} is ambiguous in this context ({hint})")
    text, _, length = value.partition("/")
    zeros = (":" not in text and str(address) != text) or length != str(int(length))
    if zeros or plain(address) is not address:
        usable = quote(str(network))
        found.append(f"{path}: non-standard CIDR value {quote(value)} is invalid: use {usable}")
    if not found and f"{address}/{length}" != value:
        canonical = quote(f"{address}/{length}")
        text = "should be in RFC 5952 canonical format"
        found.append(f"{path}: IPv6 CIDR value {quote(value)} {text} ({canonical})")
    return found
