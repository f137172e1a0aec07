"""IP addresses as Go reads and writes them: leading zeros are skipped, and IPv4 in IPv6 is IPv4.

upstream: staging/src/k8s.io/endpointslice/utils.go#getEndpointAddresses, k8s.io/utils/net#ParseIPSloppy
"""

from typing import NamedTuple

from kcm_cli.api.discovery import IPV4, IPV6
from kcm_cli.machinery.addresses import is_canonical_ipv4, parse_ip, plain
from kcm_cli.machinery.remembered import remembered


class Address(NamedTuple):
    """An address in canonical form, and its addressType in EndpointSlices."""

    text: str
    type: str


@remembered(65536)
def parse(text: str) -> Address | None:
    """The address; None for a text that is not one."""
    if is_canonical_ipv4(text):
        return Address(text, IPV4)
    address = plain(parse_ip(text))
    return None if address is None else Address(str(address), IPV6 if address.version == 6 else IPV4)
