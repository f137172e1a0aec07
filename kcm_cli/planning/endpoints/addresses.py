"""IP addresses as Go reads and writes them: leading zeros are skipped, and IPv4 in IPv6 is IPv4.

upstream: staging/src/k8s.io/endpointslice/utils.go#getEndpointAddresses, k8s.io/utils/net#ParseIPSloppy
"""

import ipaddress
import re
from typing import NamedTuple

from kcm_cli.api.discovery import IPV4, IPV6
from kcm_cli.machinery.addresses import parse_ip
from kcm_cli.machinery.remembered import remembered

_NUMBER = r"(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])"
_PLAIN_IPV4 = re.compile(rf"(?:{_NUMBER}\.){{3}}{_NUMBER}").fullmatch


class Address(NamedTuple):
    """An address in canonical form, and its addressType in EndpointSlices."""

    text: str
    type: str


@remembered(65536)
def parse(text: str) -> Address | None:
    """The address; None for a text that is not one."""
    if _PLAIN_IPV4(text):
        return Address(text, IPV4)
    address = parse_ip(text)
    if address is None:
        return None
    if isinstance(address, ipaddress.IPv6Address):
        inner = address.ipv4_mapped
        return Address(str(inner), IPV4) if inner is not None else Address(str(address), IPV6)
    return Address(str(address), IPV4)


def is_ipv6(text: str) -> bool:
    """Whether a text is an IPv6 address."""
    address = parse(text)
    return address is not None and address.type == IPV6
