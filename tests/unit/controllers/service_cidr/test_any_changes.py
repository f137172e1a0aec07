"""Whatever ranges and addresses come and go, with late news and lost answers: no address loses its last range, and at
rest those that are not needed are gone."""

import ipaddress
import random

from hypothesis import given, settings
from hypothesis import strategies as st

from kcm_cli.sandbox.apiserver.security.certificates import Certificates
from tests.kit.controlling import controllers
from tests.kit.faults import Late
from tests.kit.world import World, resource, running_world

RANGES = resource("servicecidrs", "networking.k8s.io", namespaced=False)
ADDRESSES = resource("ipaddresses", "networking.k8s.io", namespaced=False)
FINALIZER = "networking.k8s.io/service-cidr-finalizer"
BLOCKS = (
    "192.168.0.0/16",
    "192.168.0.0/24",
    "192.168.0.0/28",
    "192.168.0.0/24",
    "fd00::/108",
    "fd00::/112",
    "fd00::/112",
    "192.168.0.0/24",
)
"""The network with which a range of this number is created."""
IPS = (
    "192.168.0.1",
    "192.168.0.20",
    "192.168.0.2",
    "192.168.0.3",
    "fd00::1",
    "fd00::ffff",
    "fd00::1:1",
    "192.168.0.4",
)
STEPS = ("add", "add", "delete", "widen", "allocate", "allocate", "release", "delete", "wait")


class Story:
    """Ranges ``r0`` to ``r7`` and addresses. Only protected ranges are deleted: others are gone at once, needed or
    not."""

    def __init__(self, world: World) -> None:
        self.world = world

    async def ranges(self) -> dict[str, dict]:
        return {one["metadata"]["name"]: one for one in await self.world.items(RANGES)}

    async def ips(self) -> list[str]:
        names = [one["metadata"]["name"] for one in await self.world.items(ADDRESSES)]
        return [name for name in names if name in IPS]

    async def step(self, name: str, number: int, rng: random.Random) -> None:
        world, known = self.world, await self.ranges()
        range_ = f"r{number}"
        if name == "add" and range_ not in known:
            await world.create(RANGES, {"metadata": {"name": range_}, "spec": {"cidrs": [BLOCKS[number]]}})
        elif name == "delete" and FINALIZER in known.get(range_, {"metadata": {}})["metadata"].get("finalizers", ()):
            await world.delete(RANGES, range_)
        elif name == "widen" and range_ in known and len(known[range_]["spec"]["cidrs"]) == 1:
            other = rng.choice([one for one in BLOCKS if (":" in one) != (":" in BLOCKS[number])])
            await world.patch(RANGES, range_, {"spec": {"cidrs": [BLOCKS[number], other]}})
        elif name == "allocate" and await world.is_deleted(IPS[number], ADDRESSES):
            if any(is_ready(one) and has(one, IPS[number]) for one in known.values()):
                await world.create(ADDRESSES, allocated(IPS[number]))
        elif name == "release" and not await world.is_deleted(IPS[number], ADDRESSES):
            await world.delete(ADDRESSES, IPS[number])
        elif name == "wait":
            await world.wait(rng.choice((0.1, 1, 3, 6, 9, 11)))
        await self.safe()

    async def safe(self) -> None:
        known = await self.ranges()
        for ip in await self.ips():
            assert any(has(one, ip) for one in known.values()), ip

    async def check(self) -> None:
        await self.safe()
        known, ips = await self.ranges(), await self.ips()
        for name, one in known.items():
            going = "deletionTimestamp" in one["metadata"]
            others = [other for other in known.values() if other is not one]
            assert FINALIZER in one["metadata"]["finalizers"]
            assert is_ready(one) != going
            if going:
                needing = [ip for ip in ips if has(one, ip) and not any(has(other, ip) for other in others)]
                assert needing, name


def allocated(ip: str) -> dict:
    """What an API server creates for an address of a Service."""
    labels = {"ipaddress.kubernetes.io/managed-by": "ipallocator.k8s.io"}
    parent = {"resource": "services", "namespace": "default", "name": "web"}
    return {"metadata": {"name": ip, "labels": labels}, "spec": {"parentRef": parent}}


def is_ready(one: dict) -> bool:
    """Whether API servers allocate from a range."""
    return [each["status"] for each in one.get("status", {}).get("conditions", ())] == ["True"]


def has(one: dict, ip: str) -> bool:
    return any(ipaddress.ip_address(ip) in ipaddress.ip_network(block) for block in one["spec"]["cidrs"])


@settings(max_examples=8)
@given(st.integers(0, 2**32 - 1), st.integers(5, 60))
async def test_no_address_is_orphaned(certificates: Certificates, seed, length):
    rng = random.Random(seed)
    async with running_world(certificates, alone=True) as world:
        story, few = Story(world), rng.sample(range(len(BLOCKS)), 3)
        late = Late(world.server.transport(), world.clock, random.Random(seed))
        async with controllers(world, names=["service-cidr-controller"], transport=late):
            for _ in range(length):
                await story.step(rng.choice(STEPS), rng.choice(few), rng)
            late.steady()
            for _ in range(100):
                await world.wait(15)
                await story.safe()
            await story.check()
