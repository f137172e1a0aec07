"""Slices, classes and claims for tables, and the allocator's results."""

import random
from collections.abc import Iterable
from typing import Any

from kcm_cli.machinery import codec
from kcm_cli.sandbox.scheduler.devices.allocator import Search, allocate
from kcm_cli.sandbox.scheduler.devices.pools import Inventory, Target
from kcm_cli.sandbox.scheduler.devices.results import allocation_of
from kcm_cli.sandbox.scheduler.devices.usage import Usage
from kcm_cli.sandbox.scheduler.devices.views import CLAIMS, CLASSES, SLICES, Claim, DeviceClass, Result, Slice

Doc = dict[str, Any]
DRIVER = "gpu.x"
NODE = Target("n1", {"zone": "a"})


def device(name: str, **fields: Any) -> Doc:
    """A device. Plain attribute values get a type."""
    attributes = {key: _typed(value) for key, value in fields.pop("attributes", {}).items()}
    return {"name": name, "attributes": attributes, **fields}


def _typed(value: Any) -> Doc:
    kind = {bool: "bool", int: "int", str: "string"}.get(type(value))
    return {kind: value} if kind else value


def slice_of(
    *devices: Doc | str, name: str = "s", pool: str = "p", generation: int = 1, count: int = 1, **spec: Any
) -> Slice:
    """A slice, by default of node n1."""
    where = {"nodeName", "nodeSelector", "allNodes", "perDeviceNodeSelection", "sharedCounters"} & spec.keys()
    full = {
        "driver": DRIVER,
        "pool": {"name": pool, "generation": generation, "resourceSliceCount": count},
        "devices": [device(one) if isinstance(one, str) else one for one in devices],
        **({} if where else {"nodeName": "n1"}),
        **spec,
    }
    return SLICES.decode(codec.encode({"metadata": {"name": name}, "spec": full}))


def class_of(name: str = "any", *expressions: str, **spec: Any) -> DeviceClass:
    selectors = [{"cel": {"expression": one}} for one in expressions]
    return CLASSES.decode(codec.encode({"metadata": {"name": name}, "spec": {"selectors": selectors} | spec}))


def wanted(*expressions: str, **fields: Any) -> Doc:
    selectors = [{"cel": {"expression": one}} for one in expressions]
    return {"deviceClassName": "any", "selectors": selectors} | fields


def claim(*requests: Doc, name: str = "c", **devices: Any) -> Claim:
    """A claim. A request is the exact part, or a whole request."""
    full = [
        one if "firstAvailable" in one else {"name": f"r{number}", "exactly": one}
        for number, one in enumerate(requests)
    ]
    doc = {
        "metadata": {"name": name, "namespace": "ns", "uid": name},
        "spec": {"devices": {"requests": full} | devices},
    }
    return CLAIMS.decode(codec.encode(doc))


def first_of(*alternatives: Doc, name: str = "r0") -> Doc:
    return {"name": name, "firstAvailable": [{"name": f"s{n}"} | one for n, one in enumerate(alternatives)]}


def used(*devices: str, **result: Any) -> Usage:
    usage = Usage()
    for one in devices:
        usage.hold(one, [Result(driver=DRIVER, pool="p", device=one, **result)])
    return usage


def allocated(
    claims: Iterable[Claim],
    slices: Iterable[Slice],
    *classes: DeviceClass,
    usage: Usage | None = None,
    node: Target = NODE,
) -> list[Doc] | None:
    """``status.allocation`` of each claim."""
    known = {one.name: one for one in classes or (class_of(),)}
    search = Search(tuple(claims), known.get, Inventory(slices), usage or Usage())
    choices = allocate(search, node)
    if choices is None:
        return None
    rng = random.Random(1)
    return [codec.decode_doc(codec.encode(allocation_of(one, node.name, rng))) for one in choices]


def devices_of(*args: Any, **kwargs: Any) -> list[list[str]] | None:
    """The names of the devices of each claim."""
    found = allocated(*args, **kwargs)
    return None if found is None else [[one["device"] for one in each["devices"]["results"]] for each in found]
