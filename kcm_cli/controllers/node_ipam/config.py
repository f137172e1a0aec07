"""Options of the node-ipam-controller."""

from collections.abc import Iterator
from dataclasses import replace  # noqa: TID251  # option groups are dataclasses

from kcm_cli.component.options import OptionGroup, option
from kcm_cli.component.value_types import INT32, STRING


class NodeIPAMConfig(OptionGroup):
    service_cidr: str = option(
        STRING,
        "",
        flag="service-cluster-ip-range",
        key="ServiceCIDR",
        help=(
            "CIDR of Service addresses, which nodes' CIDRs must not overlap, or two separated by a "
            "comma for dual stack. Used only with --allocate-node-cidrs."
        ),
    )
    secondary_service_cidr: str = option(
        STRING,
        "",
        key="SecondaryServiceCIDR",
        help="Second CIDR of Service addresses in a dual-stack cluster.",
    )
    node_cidr_mask_size: int = option(
        INT32,
        0,
        flag="node-cidr-mask-size",
        key="NodeCIDRMaskSize",
        help=("Mask size of nodes' CIDRs in a single-stack cluster. 0: 24 for IPv4, 64 for IPv6."),
    )
    node_cidr_mask_size_ipv4: int = option(
        INT32,
        0,
        flag="node-cidr-mask-size-ipv4",
        key="NodeCIDRMaskSizeIPv4",
        help="Mask size of nodes' IPv4 CIDRs in a dual-stack cluster. 0: 24.",
    )
    node_cidr_mask_size_ipv6: int = option(
        INT32,
        0,
        flag="node-cidr-mask-size-ipv6",
        key="NodeCIDRMaskSizeIPv6",
        help="Mask size of nodes' IPv6 CIDRs in a dual-stack cluster. 0: 64.",
    )

    def completed(self) -> "NodeIPAMConfig":
        """Two ranges of the flag are two fields."""
        first, comma, second = self.service_cidr.partition(",")
        return replace(self, service_cidr=first.strip(), secondary_service_cidr=second.strip()) if comma else self

    def problems(self) -> Iterator[str]:
        if "," in self.secondary_service_cidr:
            yield "service-cluster-ip-range must not hold more than two ranges"
