"""Random work under random faults, with two managers at once: everything settles."""

import random
from typing import Any

import pytest

from kcm_cli.rest.errors import ApiError
from tests.kit.controlling import Faulty, controllers
from tests.kit.world import World
from tests.unit.controllers.persistentvolume_binder.storage import (
    CLAIMS,
    CONFIG,
    NAME,
    VOLUMES,
    make_claim,
    make_volume,
)

NAMES = [NAME, "persistentvolume-protection-controller", "persistentvolumeclaim-protection-controller"]
SIZES = ("1Gi", "2Gi", "5Gi")
STEPS = 60
NODE = {"annotations": {"volume.kubernetes.io/selected-node": "node-1"}}
Doc = dict[str, Any]


class Life:
    """A few names, which are created, deleted and recreated."""

    def __init__(self, world: World, seed: int) -> None:
        self._world = world
        self._rng = random.Random(seed)

    async def go_on(self) -> None:
        for _ in range(STEPS):
            step = self._rng.choice(
                (self._claim, self._claim, self._volume, self._drop_claim, self._drop_volume, self._free)
            )
            try:
                await step()
            except ApiError:
                pass  # it is there already, or not there
            await self._world.wait(self._rng.choice((0.0, 0.01, 0.5, 20.0)))

    async def _claim(self) -> None:
        name, size = f"c{self._rng.randrange(6)}", self._rng.choice(SIZES)
        kind = self._rng.randrange(4)
        if kind == 0:
            await make_claim(self._world, name, size, storageClassName="standard", metadata=NODE)
        elif kind == 1:
            await make_claim(self._world, name, size, volumeName=f"v{self._rng.randrange(6)}")
        else:
            await make_claim(self._world, name, size)

    async def _volume(self) -> None:
        kept: Doc = {"claimRef": {"namespace": "default", "name": f"c{self._rng.randrange(6)}"}}
        spec = kept if self._rng.randrange(4) == 0 else {}
        await make_volume(self._world, f"v{self._rng.randrange(6)}", self._rng.choice(SIZES), **spec)

    async def _drop_claim(self) -> None:
        await self._world.delete(CLAIMS, f"c{self._rng.randrange(6)}")

    async def _drop_volume(self) -> None:
        await self._world.delete(VOLUMES, f"v{self._rng.randrange(6)}")

    async def _free(self) -> None:
        """An administrator gives a released volume back."""
        volume = await self._world.get(VOLUMES, f"v{self._rng.randrange(6)}")
        if volume["status"]["phase"] == "Released":
            version = volume["metadata"]["resourceVersion"]
            patch = {"metadata": {"resourceVersion": version}, "spec": {"claimRef": None}}
            await self._world.patch(VOLUMES, volume["metadata"]["name"], patch)


def check(claims: dict[str, Doc], volumes: dict[str, Doc]) -> None:
    """Everything is as it should be when nothing happens any more."""
    for claim in claims.values():
        status, given = claim["status"]["phase"], volumes.get(claim["spec"].get("volumeName", ""))
        if status == "Bound":
            assert given is not None
            assert given["spec"]["claimRef"]["uid"] == claim["metadata"]["uid"]
            assert given["status"]["phase"] == "Bound"
        else:
            assert status in ("Pending", "Lost")
    for volume in volumes.values():
        phase, ref = volume["status"]["phase"], volume["spec"].get("claimRef", {})
        claim = claims.get(ref.get("name", ""))
        points = claim is not None and claim["metadata"]["uid"] == ref.get("uid")
        if phase == "Bound":
            assert points
            assert claim is not None
            assert claim["spec"]["volumeName"] == volume["metadata"]["name"]
        elif phase == "Available":
            assert not ref.get("uid")
            assert "deletionTimestamp" not in volume["metadata"]
        else:
            assert phase == "Released"
            assert ref["uid"], "what is kept by name only was nobody's"
            assert not points
            assert not volume["metadata"]["name"].startswith("pvc-"), "what was made for a claim goes with it"


@pytest.mark.cluster(nodes=1)
@pytest.mark.parametrize("seed", range(6))
async def test_any_sequence_of_changes_settles(world: World, seed):
    for number in range(3):
        await make_volume(world, f"v{number}", SIZES[number])
    transports = [Faulty(world.server.transport(), random.Random(seed * 2 + n), 0.2) for n in range(2)]
    first, second = (controllers(world, CONFIG, names=NAMES, transport=transport) for transport in transports)
    async with first, second:
        await Life(world, seed).go_on()
    assert all(transport.faults for transport in transports)
    async with controllers(world, CONFIG, names=NAMES):
        await world.wait(300)
    claims = {item["metadata"]["name"]: item for item in await world.items(CLAIMS)}
    volumes = {item["metadata"]["name"]: item for item in await world.items(VOLUMES)}
    assert claims
    check(claims, volumes)
