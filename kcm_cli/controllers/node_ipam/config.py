"""Options of the node-ipam-controller."""

from collections.abc import Iterator
from dataclasses import dataclass

from kcm_cli.component.kinds import INT32, STRING
from kcm_cli.component.options import option


@dataclass(frozen=True, slots=True)
class NodeIPAMConfig:
    """Options of the node-ipam controller."""

    service_cidr: str = option(
        STRING,
        "",
        flag="service-cluster-ip-range",
        key="ServiceCIDR",
        help=(
            "Range of Service addresses, kept out of the nodes' ranges; two with a comma between for dual "
            "stack. Used only with --allocate-node-cidrs."
        ),
    )
    secondary_service_cidr: str = option(
        STRING,
        "",
        key="SecondaryServiceCIDR",
        help="The second range of Service addresses of a dual-stack cluster.",
    )
    node_cidr_mask_size: int = option(
        INT32,
        0,
        flag="node-cidr-mask-size",
        key="NodeCIDRMaskSize",
        help=("Size of a node's range in a cluster of one address family; 0 stands for 24 (IPv4) or 64 (IPv6)."),
    )
    node_cidr_mask_size_ipv4: int = option(
        INT32,
        0,
        flag="node-cidr-mask-size-ipv4",
        key="NodeCIDRMaskSizeIPv4",
        help="Size of a node's IPv4 range in a dual-stack cluster; 0 stands for 24.",
    )
    node_cidr_mask_size_ipv6: int = option(
        INT32,
        0,
        flag="node-cidr-mask-size-ipv6",
        key="NodeCIDRMaskSizeIPv6",
        help="Size of a node's IPv6 range in a dual-stack cluster; 0 stands for 64.",
    )

    def problems(self) -> Iterator[str]:
        if self.service_cidr.count(",") > 1:
            yield "service-cluster-ip-range must not hold more than two ranges"
