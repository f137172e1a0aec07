"""Endpoints hold a thousand addresses at most; of more, ready ones stay before others, each subset in proportion.

upstream: pkg/controller/endpoint/endpoints_controller.go#truncateEndpoints
"""

import math

import msgspec

from kcm_cli.planning.endpoints.subsets import Subsets

CAPACITY = 1000


def size(subsets: Subsets) -> int:
    """How many addresses there are, ready or not."""
    return sum(len(subset.addresses) + len(subset.not_ready_addresses) for subset in subsets)


def truncated(subsets: Subsets) -> Subsets:
    """The subsets as they came, or as much of them as there is room for."""
    if size(subsets) <= CAPACITY:
        return subsets
    ready = sum(len(subset.addresses) for subset in subsets)
    if ready > CAPACITY:
        shares = _shares([len(subset.addresses) for subset in subsets], CAPACITY)
        return tuple(
            msgspec.structs.replace(subset, addresses=subset.addresses[:share], not_ready_addresses=())
            for subset, share in zip(subsets, shares, strict=True)
        )
    shares = _shares([len(subset.not_ready_addresses) for subset in subsets], CAPACITY - ready)
    return tuple(
        msgspec.structs.replace(subset, not_ready_addresses=subset.not_ready_addresses[:share])
        for subset, share in zip(subsets, shares, strict=True)
    )


def _shares(counts: list[int], room: int) -> list[int]:
    """Room divided in proportion, each share rounded up while there is room."""
    total, left, shares = sum(counts), room, []
    for count in counts:
        share = min(math.ceil(count / total * room), left)
        shares.append(share)
        left -= min(share, count)
    return shares
