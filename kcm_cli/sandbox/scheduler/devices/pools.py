"""The pools of devices that a node can access, in the order in which they are tried.

Pools are sorted by driver and name, their slices by name, so that drivers can influence the order by names. Pools with
binding conditions come last.

upstream: staging/src/k8s.io/dynamic-resource-allocation/structured/internal/incubating/pools_incubating.go
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

import msgspec

from kcm_cli.api.core import NodeSelector
from kcm_cli.planning.node_affinity import selects
from kcm_cli.sandbox.scheduler.devices.views import CounterSet, Device, DeviceId, Slice

PoolId = tuple[str, str]


class Target(msgspec.Struct, frozen=True):
    """The node for which devices are allocated."""

    name: str
    labels: Mapping[str, str]


class Candidate(msgspec.Struct, frozen=True):
    """A device and its slice."""

    id: DeviceId
    device: Device
    slice: Slice
    pool: "Pool"


class Pool(msgspec.Struct, frozen=True, eq=False):
    """A pool. ``incomplete``: slices are missing. ``invalid``: slices contradict each other. Devices of neither are
    allocated.

    others: slices of the pool that the node cannot access, but that may consume counters.
    """

    id: PoolId
    slices: tuple[Slice, ...] = ()
    others: tuple[Slice, ...] = ()
    counters: Mapping[str, CounterSet] = msgspec.field(default_factory=dict)
    incomplete: bool = False
    invalid: bool = False

    @property
    def usable(self) -> bool:
        return not self.incomplete and not self.invalid

    def candidates(self) -> Iterator[Candidate]:
        for one in self.slices:
            for device in one.spec.devices:
                yield Candidate((*self.id, device.name), device, one, self)


class Inventory:
    """All slices by pool. Only the latest generation of each pool counts."""

    def __init__(self, slices: Iterable[Slice]) -> None:
        found: defaultdict[PoolId, list[Slice]] = defaultdict(list)
        for one in slices:
            found[one.spec.driver, one.spec.pool.name].append(one)
        self._pools = {id_: _latest(pool) for id_, pool in found.items()}
        self._whole: dict[PoolId, Pool] = {}

    def pools_of(self, node: Target) -> list[Pool]:
        """The pools that the node can access, in order."""
        pools = [pool for id_ in sorted(self._pools) if (pool := self._pool_of(id_, node)) is not None]
        return sorted(pools, key=_has_to_be_prepared)

    def _pool_of(self, id_: PoolId, node: Target) -> Pool | None:
        all_slices = self._pools[id_]
        reached = [one for one in all_slices if _reaches(one, node)]
        if not reached:
            return None
        if len(all_slices) != reached[0].spec.pool.resource_slice_count:
            return Pool(id_, incomplete=True)
        if len(reached) < len(all_slices):
            return _checked(id_, reached, [one for one in all_slices if one not in reached])
        whole = self._whole.get(id_)
        if whole is None:
            whole = self._whole[id_] = _checked(id_, reached, [])
        return whole


def on_node(node: Target, name: str | None, selector: NodeSelector | None, *, everywhere: bool) -> bool:
    """Whether a slice or device with these fields is available on a node."""
    if name:
        return node.name == name
    return everywhere or (selector is not None and selects(selector, node.name, node.labels))


def _latest(slices: list[Slice]) -> list[Slice]:
    generation = max(one.spec.pool.generation for one in slices)
    return sorted((one for one in slices if one.spec.pool.generation == generation), key=lambda one: one.name)


def _reaches(one: Slice, node: Target) -> bool:
    """Whether the node can access a slice. Slices with counters count for all nodes, since the pool requires them."""
    spec = one.spec
    if spec.shared_counters:
        return True
    if spec.node_name or spec.all_nodes or spec.node_selector is not None:
        return on_node(node, spec.node_name, spec.node_selector, everywhere=spec.all_nodes)
    return spec.per_device_node_selection and any(
        on_node(node, device.node_name, device.node_selector, everywhere=device.all_nodes) for device in spec.devices
    )


def _checked(id_: PoolId, reached: list[Slice], others: list[Slice]) -> Pool:
    sets = [found for one in reached for found in one.spec.shared_counters]
    counters = {found.name: found for found in sets}
    devices = tuple(one for one in reached if not one.spec.shared_counters)
    names = [device.name for one in devices for device in one.spec.devices]
    known = all(_counters_known(device, counters) for one in (*reached, *others) for device in one.spec.devices)
    if len(counters) < len(sets) or len(set(names)) < len(names) or not known:
        return Pool(id_, invalid=True)
    return Pool(id_, devices, tuple(others), counters)


def _counters_known(device: Device, counters: Mapping[str, CounterSet]) -> bool:
    return all(
        use.counter_set in counters and use.counters.keys() <= counters[use.counter_set].counters.keys()
        for use in device.consumes_counters
    )


def _has_to_be_prepared(pool: Pool) -> bool:
    return any(device.binding_conditions for one in pool.slices for device in one.spec.devices)
